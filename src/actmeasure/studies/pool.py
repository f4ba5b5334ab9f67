"""The pool of worker processes that `train_seeds`, studies and interim reports run in.

Each worker is a loky executor with a single process: a process that is killed breaks its own executor only, so that the call that
was lost is known and the other workers go on. Workers are new interpreters, not copies of this one (which would share its threads
and locks), and do not import the script that started them.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

import loky
import loky.backend
from loky.backend import resource_tracker as loky_tracker
from loky.process_executor import ProcessPoolExecutor

__all__ = ["Worker", "WorkerDiedError", "WorkerPool", "available_cores"]

#: Environment of a worker. One thread for numerical libraries: the other cores belong to other workers, and sums do not depend on
#: the number of cores. No restart when memory has grown: trials differ in size, and a worker holds the agent that it trains.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",
}
#: Warning filter, as for the option -W of Python, of the processes that remove shared resources.
TRACKER_WARNINGS = "ignore:resource_tracker:UserWarning"
#: How loky writes the exit code of a process: `SIGKILL(-9)`, `EXIT(3)`.
EXIT_CODE = re.compile(r"\((-?\d+)\)")


def available_cores() -> int:
    """Return how many processes can run at once: cores and container limits of this process, 1 where it may start none."""
    return 1 if multiprocessing.current_process().daemon else int(loky.cpu_count())


class WorkerDiedError(Exception):
    """A worker process ended before its call was done; the message is a sentence for the user."""


class WorkerPool:
    """Worker processes, ended at once when the `with` block is left.

    Parameters
    ----------
    count : int
        Number of processes.

    Examples
    --------
    >>> with WorkerPool(1) as pool:  # doctest: +SKIP
    ...     pool.workers[0].submit(pow, 2, 10)
    ...     while not pool.wait(0.1):
    ...         pass
    ...     pool.workers[0].result()
    1024
    """

    def __init__(self, count: int) -> None:
        # Workers hold one end, this process the other: when it ends, however it ends, they notice.
        self._their_end, self._own_end = multiprocessing.Pipe(duplex=False)
        _start_trackers()  # which unblocks Ctrl-C, and would happen with the first worker otherwise
        self.workers = [Worker(self._their_end) for _ in range(count)]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end()

    def wait(self, seconds: float) -> list[Worker]:
        """Return the workers that have finished starting or a call whose result was not fetched yet, after `seconds` at most."""
        unfinished = {worker.future: worker for worker in self.workers if worker.future is not None}
        done = futures.wait(unfinished, seconds, futures.FIRST_COMPLETED).done
        return [worker for future, worker in unfinished.items() if future in done]

    def replace(self, worker: Worker) -> None:
        """Start a new worker in the place of one that has died."""
        worker.end()
        self.workers[self.workers.index(worker)] = Worker(self._their_end)

    def remove(self, worker: Worker) -> None:
        """Give up a worker that has died."""
        worker.end()
        self.workers.remove(worker)

    def end(self) -> None:
        """End all workers at once, whatever they are doing."""
        self._own_end.close()  # upon which they end by themselves, all at the same time
        for worker in self.workers:
            worker.end()
        self.workers.clear()
        self._their_end.close()


class Worker:
    """One worker process, which runs one call after the other; what a call leaves in global variables is there for the next.

    Attributes
    ----------
    pid : int or None
        Process number, None before it has started.
    task : object
        For the caller: what the worker is doing.
    future : Future or None
        Of the call that is running, or whose result was not fetched yet.
    """

    def __init__(self, lifeline: Connection) -> None:
        self._executor = ProcessPoolExecutor(
            max_workers=1,
            context=loky.backend.get_context("loky"),
            initializer=_end_with_parent,
            initargs=(lifeline,),
            env=ENVIRONMENT,
        )
        self.pid: int | None = None
        self.task: Any = None
        self.future: futures.Future[Any] | None = None
        with _interrupts_blocked():
            self.submit(os.getpid)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have the process call a function; errors have to be returned, since not all can be sent back."""
        try:
            self.future = self._executor.submit(function, *arguments)
        except futures.BrokenExecutor as error:  # it died while it had nothing to do
            self.future = futures.Future()
            self.future.set_exception(error)

    def result(self) -> Any:
        """Return what the call gave; the process number, for the first one.

        Raises
        ------
        WorkerDiedError
            If the process has ended.
        """
        future, self.future = self.future, None
        assert future is not None
        try:
            found = future.result()
        except futures.BrokenExecutor as error:
            raise WorkerDiedError(_why_died(error)) from error
        if self.pid is None:
            self.pid = found
        return found

    def end(self) -> None:
        """End the process at once."""
        self._executor.shutdown(kill_workers=True)


def _why_died(error: BaseException) -> str:
    """Return a sentence on the end of a worker process."""
    found = EXIT_CODE.search(str(error))
    if found and int(found[1]) < 0:
        return f"a worker process was killed (signal {-int(found[1])}), perhaps for lack of memory; try fewer workers"
    code = f" (exit code {found[1]})" if found else ""
    return f"a worker process ended unexpectedly{code}; try workers=1 to see why"


def _end_with_parent(lifeline: Connection) -> None:
    """End this worker process when the one that started it ends, even if that is killed."""

    def watch() -> None:
        wait([lifeline])
        os._exit(1)

    threading.Thread(target=watch, name="watch the parent process", daemon=True).start()


def _start_trackers() -> None:
    """Start the processes that remove shared resources, such as semaphores, of a process that was killed.

    They would warn of "leaked" resources at the end of its log. They are started with the warning filters of this process.
    """
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows, which needs none
        return
    sys.warnoptions.append(TRACKER_WARNINGS)
    try:
        loky_tracker.ensure_running()
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(TRACKER_WARNINGS)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes started meanwhile: a terminal sends it to all of them, and only this one deals with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
