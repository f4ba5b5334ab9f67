"""The interface of engines: orders, outcomes, and the function that a worker runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from actmeasure.errors import StudyError
from actmeasure.interrupts import Interrupts
from actmeasure.kernels.jit import running_time
from actmeasure.studies.pool import error_sentence
from actmeasure.studies.spec import Trial
from actmeasure.studies.store import arrow

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Engine", "Order", "Outcome", "Report", "environment", "is_importing", "perform", "unpacked"]

OTHER_CODE = (
    "the code that computes it is another where the worker runs than where the study was started; install the same there, or, "
    "if it was edited meanwhile, run the study again"
)
#: Result of `perform`: a packed table or None, seconds without compiling, why there is no table, and whether the seconds include
#: importing modules.
Report = tuple[bytes | None, float, str] | tuple[bytes | None, float, str, bool]
#: Agents and methods that this process has run: the first trial of each also imports modules.
_LOADED: set[str] = set()
#: Whether modules from outside of this library are being imported.
_IMPORTING = [False]


class Order(NamedTuple):
    """A trial to run.

    Attributes
    ----------
    trial : Trial
    contents : bytes or None
        Contents of its model file, if it has one.
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
        """Return the arguments of `perform`."""
        from actmeasure.studies.code_digest import own_code

        order = {"trial": self.trial.to_json(), "code": self.code, "own": own_code(self.trial)}
        return json.dumps(order), self.contents


class Outcome(NamedTuple):
    """The result of an order: a packed table, or why there is none."""

    trial: Trial
    table: bytes | None
    seconds: float
    failure: str = ""
    has_loaded: bool = False


class Engine(Protocol):
    """Runs trials, in processes of this machine or elsewhere."""

    #: Name on the command line.
    name: str
    #: Number of trials that are run at once.
    at_once: int

    def run(
        self, orders: Sequence[Order], interrupts: Interrupts, note: Callable[[str], None]
    ) -> Iterator[Outcome | None]:
        """Run trials in order; yields every outcome as it comes, and None at least every second meanwhile.

        After Ctrl-C it ends at once, without the trials that are running. `note` is called with a sentence when a trial was lost
        and is tried again. Results are written by the caller.
        """
        ...


def perform(packed: str, contents: bytes | None) -> Report:
    """Run a trial in a worker; an error is returned as a sentence."""
    begun = running_time()
    try:
        from actmeasure.studies.code_digest import code_of
        from actmeasure.studies.trial import run_trial

        order = json.loads(packed)
        trial = Trial.from_json(order["trial"])
        _import_own(trial, order["own"])
        if code_of(trial) != order["code"]:
            raise StudyError(OTHER_CODE)
        begun = running_time()  # without importing, which happens once
        name = trial.method if trial.agent is None else trial.agent.name
        table = _pack(run_trial(trial, contents))
    except Exception as error:  # one trial must not stop the others
        return None, running_time() - begun, error_sentence(error)
    has_loaded = name not in _LOADED
    _LOADED.add(name)
    return table, running_time() - begun, "", has_loaded


def is_importing() -> bool:
    """Return whether this process is a worker that imports modules from outside of this library."""
    return _IMPORTING[0]


def _import_own(trial: Trial, own: Mapping[str, Any]) -> None:
    """Import what a trial needs from outside of this library, as `code_digest.own_code` lists it."""
    from actmeasure import learning
    from actmeasure.settings import imported

    for folder in reversed(own["path"]):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    _IMPORTING[0] = True
    try:
        for module in own["modules"]:
            import_module(module)  # which registers the planning method, if it has a name
        if own["agent"] is not None and trial.agent is not None:
            learning.register(trial.agent.name, imported("agent", own["agent"], StudyError))
    except ModuleNotFoundError as error:
        raise StudyError(
            f"the module {error.name!r} is not where the worker runs; install it there, or put it into a folder that both have"
        ) from error
    finally:
        _IMPORTING[0] = False


def _pack(table: pyarrow.Table) -> bytes:
    library = arrow("running a trial")
    sink = library.BufferOutputStream()
    with library.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(table: bytes) -> Any:
    """Return the table that a worker packed."""
    return arrow("running a trial").ipc.open_stream(table).read_all()


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside a `with` block, also for processes that are started in it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
