"""Worker processes: new interpreters, not copies of this one, which would share its threads and locks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from actmeasure.errors import ActMeasureError

__all__ = ["WorkerProcess", "available_cores", "check_may_start", "end_with_parent"]

#: A worker that is told to go gets so many seconds.
FAREWELL_SECONDS = 5.0


def available_cores() -> int:
    """How many processes can run at once here: the cores that this process may use, or 1 where it may start none."""
    if multiprocessing.current_process().daemon:
        return 1
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_may_start(call: str, error: type[ActMeasureError]) -> None:
    """Notice a script that would start itself over and over: every worker process imports it first."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise error(
            f"worker processes import the script that starts them; put the call of {call} under "
            '`if __name__ == "__main__":`'
        )


class WorkerProcess:
    """A worker process and the connection to it, as this process sees them.

    Parameters
    ----------
    work : function
        What the process does: called with its end of the connection, and `arguments`.
    """

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # which it does at the first start anyway, and then lets Ctrl-C through
        self.connection: Connection
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(theirs, *arguments), daemon=True)
        with _ctrl_c_for_this_process_only():
            self.process.start()
        theirs.close()  # so that the end of the worker is the end of the connection

    def say(self, message: Any) -> None:
        """Send something to the worker."""
        with suppress(OSError):  # it has ended, which is noticed when it is listened to
            self.connection.send(message)

    def end(self) -> None:
        """Let it finish by itself, but not for long."""
        self.connection.close()
        self.process.join(FAREWELL_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()

    def obituary(self) -> str:
        """Why it ended without a word."""
        self.process.join(FAREWELL_SECONDS)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"a worker process was killed (signal {-code}), perhaps for lack of memory; try fewer workers"
        return (
            f"a worker process ended unexpectedly (exit code {code}); a script needs `if __name__ == \"__main__\":` before "
            "what it does, otherwise try workers=1"
        )  # fmt: skip


@contextmanager
def _ctrl_c_for_this_process_only() -> Iterator[None]:
    """Have processes that are started meanwhile never see Ctrl-C, which a terminal sends to all; this one sees it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Have this worker process end when the one that started it does, even if that is killed; nobody wants its results."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="watch the parent process", daemon=True).start()
