"""Worker processes, and the loop that has them make calls: for `train_seeds`, studies, interim reports and compiling ahead.

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
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import loky
import loky.backend
from loky.backend import resource_tracker as loky_tracker
from loky.process_executor import ProcessPoolExecutor

from actmeasure.errors import ActMeasureError

__all__ = ["Call", "Work", "Worker", "WorkerDiedError", "WorkerPool", "available_cores", "error_sentence", "run_calls"]

#: Seconds between two looks at Ctrl-C and at progress while worker processes compute.
ATTENTION_SECONDS = 0.1

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


class Call(NamedTuple):
    """A call for a worker process.

    Attributes
    ----------
    task : object
        For the caller: what the call belongs to.
    function : function
        Errors have to be returned, since not all can be sent back.
    arguments : tuple
    """

    task: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Work:
    """The calls that `run_calls` has worker processes make, one after the other, and what becomes of their results.

    Attributes
    ----------
    waiting : deque
        Calls that no worker was given yet; subclasses may hold other objects from which `next_call` makes calls.
    setup : Call or None
        First call of every worker; its result is passed to `finished`.
    """

    setup: Call | None = None

    def __init__(self, waiting: Iterable[Any]) -> None:
        self.waiting = deque(waiting)

    @property
    def has_next(self) -> bool:
        """Whether there are calls that no worker was given yet."""
        return bool(self.waiting)

    def next_call(self, task: Any) -> Call | None:
        """Return the next call for a worker whose last one belonged to `task`, or None to leave it idle from now on."""
        return self.waiting.popleft() if self.waiting else None

    def finished(self, task: Any, result: Any) -> None:
        """Record the result of a call."""

    def lost(self, task: Any, why: str) -> bool:
        """Record that a worker died, while it started if `task` is None; returns whether another takes its place."""
        raise WorkerDiedError(why)


def run_calls(work: Work, processes: int) -> Generator[None]:
    """Have worker processes make calls until none is left; yields every `ATTENTION_SECONDS`, or more often.

    A worker gets its next call before the caller sees the results of the last ones. When the caller closes the iterator, the
    processes are ended at once, without the results of the calls that are running.
    """
    with WorkerPool(processes) as pool:
        while pool.workers and (work.has_next or any(worker.task is not None for worker in pool.workers)):
            for worker in pool.wait(ATTENTION_SECONDS):
                call = _after_call(worker, work, pool)
                if call is not None:
                    worker.task = call.task
                    worker.submit(call.function, *call.arguments)
            yield


def _after_call(worker: Worker, work: Work, pool: WorkerPool) -> Call | None:
    """Pass on the result of a worker's call, or its death, and return its next call."""
    is_new = worker.pid is None
    task, worker.task = worker.task, None
    try:
        result = worker.result()
    except WorkerDiedError as error:
        if work.lost(task, str(error)):
            pool.replace(worker)
        else:
            pool.remove(worker)
        return None
    if is_new and work.setup is not None:
        return work.setup
    if not is_new:
        work.finished(task, result)
    return work.next_call(task)


def error_sentence(error: Exception) -> str:
    """Return a sentence for the user on an error in a worker process; of one that is not ours with its place in the code."""
    if isinstance(error, ActMeasureError):
        return str(error)
    if isinstance(error, MemoryError):
        return "the memory of this machine is used up; try fewer workers"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


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
