"""What engines share: orders, outcomes, and what a worker does with an order."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from actmeasure.errors import ActMeasureError, StudyError
from actmeasure.interrupts import Interrupts
from actmeasure.studies.spec import Trial
from actmeasure.studies.store import arrow

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Engine", "Order", "Outcome", "Report", "environment", "perform", "unpacked"]

OTHER_CODE = (
    "the code that computes it is another where the worker runs than where the study was started; install the same there, or, "
    "if it was edited meanwhile, run the study again"
)
#: What a worker sends back: a packed table or None, seconds, why there is no table, and whether these seconds include loading.
Report = tuple[bytes | None, float, str] | tuple[bytes | None, float, str, bool]
#: Agents and methods that this process has run: the first trial of each also loads what was compiled.
_LOADED: set[str] = set()


class Order(NamedTuple):
    """A trial to run.

    Attributes
    ----------
    trial : Trial
    contents : bytes or None
        Of its model file, if it has one.
    memory : int
        Bytes that a worker takes for it.
    code : str
        Digest of the code that is to compute it, as `code_of` gives it where the study was started.
    """

    trial: Trial
    contents: bytes | None
    memory: int
    code: str

    def packed(self) -> tuple[str, bytes | None]:
        """What is sent to a worker."""
        return json.dumps({"trial": self.trial.to_json(), "code": self.code}), self.contents


class Outcome(NamedTuple):
    """What became of an order: a packed table, or why there is none."""

    trial: Trial
    table: bytes | None
    seconds: float
    failure: str = ""
    has_loaded: bool = False


class Engine(Protocol):
    """Something that runs trials."""

    #: What it is called on the command line.
    name: str
    #: How many trials are run at once, while some are.
    at_once: int

    def run(
        self, orders: Sequence[Order], interrupts: Interrupts, note: Callable[[str], None]
    ) -> Iterator[Outcome | None]:
        """Run trials, the first ones first; gives every outcome as it comes, and None now and then meanwhile.

        After Ctrl-C it ends at once, without those in flight. `note` is called with a sentence when something was lost and is
        tried again. Results are not written here: only the process that called does that.
        """
        ...


def perform(packed: str, contents: bytes | None) -> Report:
    """Run a trial in a worker; whatever goes wrong is a sentence."""
    begun = time.perf_counter()
    try:
        from actmeasure.studies.code import code_of
        from actmeasure.studies.trial import run_trial

        order = json.loads(packed)
        trial = Trial.from_json(order["trial"])
        if code_of(trial) != order["code"]:
            raise StudyError(OTHER_CODE)
        begun = time.perf_counter()  # what is loaded once says nothing about other trials
        name = trial.method if trial.agent is None else trial.agent.name
        table = _pack(run_trial(trial, contents))
    except Exception as error:  # which must not lose the other trials
        return None, time.perf_counter() - begun, _sentence(error)
    has_loaded = name not in _LOADED
    _LOADED.add(name)
    return table, time.perf_counter() - begun, "", has_loaded


def _sentence(error: Exception) -> str:
    if isinstance(error, ActMeasureError):
        return str(error)
    if isinstance(error, MemoryError):
        return "the memory of this machine is used up; try fewer workers"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _pack(table: pyarrow.Table) -> bytes:
    library = arrow("running a trial")
    sink = library.BufferOutputStream()
    with library.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(table: bytes) -> Any:
    """The table that a worker packed."""
    return arrow("running a trial").ipc.open_stream(table).read_all()


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Have other environment variables meanwhile, also for processes that are started."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
