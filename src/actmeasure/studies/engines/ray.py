"""Trials on a Ray cluster. Results travel back to this process, which alone writes them."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from actmeasure import __version__
from actmeasure.errors import MissingExtraError, StudyError, first_line
from actmeasure.interrupts import Interrupts
from actmeasure.settings import whole
from actmeasure.studies.engines.base import Order, Outcome, Report, environment, perform
from actmeasure.studies.pool import available_cores

__all__ = ["RayEngine", "is_installed"]

#: Seconds between two looks at Ctrl-C and at progress.
ATTENTION_SECONDS = 0.2
#: How often a trial is run again whose worker or node dies.
RETRIES = 3
#: Trials submitted for each processor of the cluster: one that runs and one that waits.
AHEAD = 2
#: Seconds that a connection and a first answer may take, and that a cluster may be without any processor.
CONNECT_SECONDS, ANSWER_SECONDS, EMPTY_SECONDS = 5.0, 40.0, 60.0
#: Seconds between two queries of the size of the cluster.
SURVEY_SECONDS = 2.0
#: Larger than the number of trials that any cluster runs at once.
NO_LIMIT = 10**9
#: Environment of Ray: no usage statistics and all log lines; and, for a cluster on this machine, the loopback interface only
#: (Ray's switch for that has another name).
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
#: Environment variables with which Ray finds a token: whether to use one, the token, the path of its file; and the default file.
AUTH_MODE, AUTH_TOKEN, AUTH_TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
USUAL_TOKEN_FILE = Path("~", ".ray", "auth_token")
#: Words in what Ray prints when a cluster refuses a token, or none is found.
REFUSALS = ("InvalidAuthToken", "Unauthenticated", "AuthenticationError")
PROBE = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR'); ray.shutdown()"


def is_installed() -> bool:
    """Return whether Ray is installed, without importing it."""
    try:
        return find_spec("ray") is not None
    except ValueError:  # `ray` is None in `sys.modules`
        return False


class RayEngine:
    """Runs trials on a Ray cluster (needs the extra `ray`).

    Parameters
    ----------
    address : str, optional
        Address of the cluster's head, such as `10.0.0.1:6379`; a node of the cluster has to run on this machine, and actmeasure
        has to be installed on every node. By default a Ray instance on this machine is started, and ended again. A cluster that
        asks for a token gets the one that Ray finds here (`RAY_AUTH_TOKEN`, `RAY_AUTH_TOKEN_PATH` or `~/.ray/auth_token`), unless
        `RAY_AUTH_MODE` says otherwise.
    workers : int, optional
        Most trials that are run at once; by default one for each processor.
    """

    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address = address
        self._workers = None if workers is None else whole(workers, "workers", 1, error=StudyError)
        self.at_once = 1

    def run(
        self, orders: Sequence[Order], interrupts: Interrupts, note: Callable[[str], None]
    ) -> Iterator[Outcome | None]:
        """See `Engine.run`."""
        with _connected(self.address, self._workers) as ray, redirect_stdout(_WithoutRay(sys.stdout)):
            queue = _ClusterQueue(ray, orders, self._workers, note)
            try:
                while queue.is_busy and not interrupts.requested:
                    self.at_once = max(1, min(int(queue.count_processors()), self._workers or NO_LIMIT))
                    queue.submit()
                    yield queue.next_outcome()
                queue.count_processors(at_once=True)  # for the notes
            except (ray.exceptions.RayError, OSError) as error:  # a closed socket, if the head dies
                raise StudyError(
                    f"the Ray cluster is lost: {first_line(error)}; what is stored is safe, run again to do what is missing"
                ) from error
            finally:
                queue.cancel()


class _ClusterQueue:
    """Orders that wait, and those submitted to the cluster."""

    def __init__(self, ray: Any, orders: Sequence[Order], workers: int | None, note: Callable[[str], None]) -> None:
        self._ray, self._note = ray, note
        self._waiting = deque((order, RETRIES) for order in orders)  # and how often each may still be lost
        self._most = workers
        self._sent: dict[Any, tuple[Order, int]] = {}
        self._processors = 0.0
        self._nodes: set[str] = set()
        self._surveyed = -SURVEY_SECONDS
        self._seen = time.monotonic()  # when the cluster last had a processor
        self._perform = ray.remote(num_cpus=1, max_retries=RETRIES)(_perform_there)

    @property
    def is_busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._waiting or self._sent)

    def count_processors(self, at_once: bool = False) -> float:
        """Return how many processors the cluster has at present."""
        now = time.monotonic()
        if at_once or now - self._surveyed >= SURVEY_SECONDS:
            self._surveyed = now
            self._check_head()
            alive = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]}
            for _ in self._nodes - alive.keys():
                self._note("A node of the Ray cluster has died; the trials that were there are run again.")
            self._nodes, self._processors = set(alive), sum(alive.values())
            if self._processors >= 1:
                self._seen = now
        if now - self._seen > EMPTY_SECONDS:
            raise StudyError(
                f"the Ray cluster has had no processor for {EMPTY_SECONDS:.0f} s; add a node with `ray start`, and run again"
            )
        return self._processors

    def _check_head(self) -> None:
        """Raise an error if the head is gone: Ray itself would end this process a minute later."""
        try:
            _check_port_open(self._ray.get_runtime_context().gcs_address)
        except OSError as error:
            raise StudyError(
                f"the Ray cluster is lost ({error}); what is stored is safe, run again to do what is missing"
            ) from error

    def submit(self) -> None:
        """Submit orders until there are enough at the cluster."""
        enough = self._most or AHEAD * max(1, int(self._processors))
        while self._waiting and len(self._sent) < enough:
            order, retries = self._waiting.popleft()
            self._sent[self._perform.remote(*order.packed(), __version__)] = order, retries

    def next_outcome(self) -> Outcome | None:
        """Return the next outcome, or None if there is none within `ATTENTION_SECONDS`."""
        ready, _ = self._ray.wait(list(self._sent), num_returns=1, timeout=ATTENTION_SECONDS)
        if not ready:
            return None
        order, retries = self._sent.pop(ready[0])
        try:
            report: Report = self._ray.get(ready[0])
        except self._ray.exceptions.RaySystemError:
            raise
        except self._ray.exceptions.RayError as error:
            # A result that was on a node as it died; Ray makes it anew, or calls its owner dead, which is this process.
            if isinstance(error, self._ray.exceptions.ObjectLostError) and retries:
                self._waiting.appendleft((order, retries - 1))
                return None
            return Outcome(order.trial, None, 0.0, f"the cluster could not run it: {_last_line(error)}")
        return Outcome(order.trial, *report)

    def cancel(self) -> None:
        """Cancel the orders at the cluster."""
        for reference in self._sent:
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(reference, force=True)


class _WithoutRay(io.TextIOBase):
    """Standard output without what Ray's own threads print, such as pages of logs when a node dies."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        is_ray = threading.current_thread().name.startswith("ray_")
        return len(text) if is_ray else self._out.write(text)

    def flush(self) -> None:
        self._out.flush()


def _perform_there(packed: str, contents: bytes | None, version: str) -> Report:
    """Run a trial in a worker of the cluster."""
    if version != __version__:
        return None, 0.0, f"a node has actmeasure {__version__}, but the study is run by {version}; install that there"
    return perform(packed, contents)


@contextmanager
def _connected(address: str | None, workers: int | None) -> Iterator[Any]:
    """Give the module `ray`, connected to a cluster until the `with` block ends; an existing connection is used and kept."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    loopback = LOOPBACK if address is None or _host(address) in LOCAL_HOSTS else {}
    with environment(QUIET | loopback | _authentication(address)):
        if not is_installed():
            raise MissingExtraError("the engine 'ray'", "ray")
        import ray

        if ray.is_initialized():
            yield ray
            return
        if address is None:
            ray.init(address="local", num_cpus=workers or available_cores(), include_dashboard=False, **quiet)
        else:
            _check_answers(address)
            _read_authentication_anew()
            try:
                ray.init(address=address, **quiet)
            except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
                raise StudyError(f"the Ray cluster at {address!r} cannot be used: {first_line(error):.300}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_port_open(address: str) -> None:
    """Connect to HOST:PORT and disconnect; an `OSError` if nothing listens there."""
    try:
        socket.create_connection((_host(address), int(address.rpartition(":")[2])), CONNECT_SECONDS).close()
    except OverflowError as error:
        raise OSError(str(error)) from error


def _host(address: str) -> str:
    return address.removeprefix("ray://").rpartition(":")[0].strip("[]")


def _check_answers(address: str) -> None:
    """Raise an error unless a Ray cluster answers: Ray itself tries for minutes, and may end the process that asks."""
    host, port = _host(address), address.rpartition(":")[2]
    if address != "auto":
        if not host or not port.isdigit():
            raise StudyError(f"the Ray address is {address!r}, expected HOST:PORT, such as 10.0.0.1:6379")
        try:
            _check_port_open(address)
        except OSError as error:
            raise StudyError(
                f"no Ray cluster can be reached at {address!r} ({error}); check the address, or start one with "
                "`ray start --head`"
            ) from error
    said, has_answered = _probe(address)
    if any(refusal in said for refusal in REFUSALS):
        raise StudyError(_refused(address))
    if not has_answered:
        raise StudyError(
            f"what is at {address!r} has not answered as a Ray cluster for {ANSWER_SECONDS:.0f} s; check the address, and that "
            "a node of the cluster runs on this machine (`ray start --address=...`)"
        )
    if said:
        last = said.splitlines()[-1]
        raise StudyError(f"the Ray cluster at {address!r} cannot be used: {last:.300}")


def _probe(address: str) -> tuple[str, bool]:
    """Connect from another process; returns what it printed if that failed (else ""), and whether it ended in time."""
    command = [sys.executable, "-P", "-c", PROBE, address]  # without the modules of the present folder
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        begun = time.monotonic()
        timer = threading.Timer(ANSWER_SECONDS, process.kill)
        timer.start()
        try:
            lines = []
            for line in process.stderr:
                lines.append(line)
                if any(refusal in line for refusal in REFUSALS):  # Ray would ask twenty times more
                    process.kill()
                    break
            code = process.wait()
        finally:
            timer.cancel()
    said = "".join(lines).strip() or "no reason given"
    return ("" if code == 0 else said), code == 0 or time.monotonic() - begun < ANSWER_SECONDS


def _authentication(address: str | None) -> dict[str, str]:
    """Return environment variables with which Ray uses a token if there is one; by itself it does so only for own clusters."""
    if os.environ.get(AUTH_MODE):
        return {}
    return {AUTH_MODE: "token"} if address is None or _token_place() else {}


def _token_place() -> str | None:
    """Return in words where Ray finds a token on this machine, None if nowhere."""
    if os.environ.get(AUTH_TOKEN):
        return f"the environment variable {AUTH_TOKEN}"
    if path := os.environ.get(AUTH_TOKEN_PATH):
        return f"the file {path} ({AUTH_TOKEN_PATH})"
    with suppress(OSError, RuntimeError):  # no home, or one that may not be read
        if USUAL_TOKEN_FILE.expanduser().is_file():
            return f"the file {USUAL_TOKEN_FILE}"
    return None


def _refused(address: str) -> str:
    """Return a sentence on a cluster that asks for a token and gets none, or another."""
    asks = f"the Ray cluster at {address!r} asks for a token"
    remedy = (
        f"`ray get-auth-token` prints it on the cluster's head: put it into {USUAL_TOKEN_FILE} or {AUTH_TOKEN} here"
    )
    mode, place = os.environ.get(AUTH_MODE, "token"), _token_place()
    if mode.lower() != "token":
        return f"{asks}, but {AUTH_MODE} is {mode!r}; unset it, so that the token is shown"
    if place is None:
        return f"{asks}, and there is none on this machine; {remedy}"
    return f"{asks}, and that of {place} is not the right one or cannot be read; {remedy}"


def _read_authentication_anew() -> None:
    """Make Ray read mode and token from the environment again: it keeps those of the time when it was imported."""
    inner = import_module("ray._raylet")
    if hasattr(inner, "AuthenticationTokenLoader"):  # older versions have no tokens
        inner.AuthenticationTokenLoader.instance().reset_cache()
        inner.Config.initialize("")


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
