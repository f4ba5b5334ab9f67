"""Worker processes on this machine, each of which runs one trial after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from actmeasure.errors import StudyError
from actmeasure.interrupts import Interrupts
from actmeasure.settings import whole
from actmeasure.studies.engines.base import Order, Outcome, Report, environment, perform
from actmeasure.studies.journal import available_memory, workers_that_fit
from actmeasure.studies.processes import WorkerProcess, available_cores, check_may_start, end_with_parent

__all__ = ["LocalEngine"]

#: Ctrl-C and progress are attended to this often, in seconds.
ATTENTION_SECONDS = 0.2
#: A trial whose worker is killed is tried so many times in all.
TRIES = 3
#: Every worker keeps to one core: others have theirs, and sums do not depend on how many cores there are.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class LocalEngine:
    """Runs trials in processes of this machine.

    Parameters
    ----------
    workers : int, optional
        How many processes; by default as many as there are cores, or fewer if the memory would not suffice.
    """

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = None if workers is None else whole(workers, "workers", 1, error=StudyError)
        self.at_once = 1

    def _suitable(self, orders: Sequence[Order]) -> int:
        """How many processes to use for these orders."""
        most = min(self._workers or available_cores(), len(orders))
        if self._workers is not None:
            return most
        return workers_that_fit([order.memory for order in orders], most, available_memory())

    def run(
        self, orders: Sequence[Order], interrupts: Interrupts, note: Callable[[str], None]
    ) -> Iterator[Outcome | None]:
        """See `Engine.run`."""
        check_may_start("run_study", StudyError)
        crew = _Crew(orders, note)
        try:
            self.at_once = self._suitable(orders)
            crew.hire(self.at_once)
            while crew.is_busy and not interrupts.requested:
                yield from crew.attend()
        finally:
            crew.dismiss()


class _Worker(WorkerProcess):
    """A worker process and the order that it is at, if any."""

    def __init__(self) -> None:
        with environment(ONE_THREAD):  # for processes that are started meanwhile
            super().__init__(_work)
        self.is_ready = False
        self.order: Order | None = None

    def take(self, order: Order) -> None:
        self.order = order
        self.say(order.packed())


class _Crew:
    """The workers, and the orders that wait for them."""

    def __init__(self, orders: Sequence[Order], note: Callable[[str], None]) -> None:
        self._waiting = deque(orders)
        self._note = note
        self._staff: list[_Worker] = []
        self._tries: dict[str, int] = {}
        self._false_starts = 0

    @property
    def is_busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._waiting) or any(worker.order is not None for worker in self._staff)

    def hire(self, count: int) -> None:
        """Start so many workers."""
        for _ in range(count):
            self._staff.append(_Worker())

    def dismiss(self) -> None:
        """End the workers at once: they hold nothing that has not been delivered, or is still wanted."""
        for worker in self._staff:
            worker.kill()
            worker.end()

    def attend(self) -> Iterator[Outcome | None]:
        """Listen to the workers once."""
        ready = wait([worker.connection for worker in self._staff], ATTENTION_SECONDS)
        if not ready:
            yield None
        for worker in [worker for worker in self._staff if worker.connection in ready]:
            try:
                said: Report | None = worker.connection.recv()
            except (EOFError, OSError):
                yield self._replace(worker)
                continue
            done, worker.order, worker.is_ready = worker.order, None, True
            self._give(worker)  # before the results are looked at, so that it does not wait meanwhile
            if done is not None and said is not None:
                self._false_starts = 0
                yield Outcome(done.trial, *said)

    def _give(self, worker: _Worker) -> None:
        if self._waiting:
            worker.take(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Outcome | None:
        """Have another worker in the place of one that is dead; what it was at is tried again, or given up."""
        why, order = worker.obituary(), worker.order
        self._staff.remove(worker)
        worker.end()
        if order is None:
            self._false_starts += not worker.is_ready
            if self._false_starts >= TRIES:
                raise StudyError(why)
        if self._waiting or order is not None:
            self._staff.append(_Worker())
        if order is None:
            return None
        tries = self._tries[order.trial.hash] = self._tries.get(order.trial.hash, 0) + 1
        if tries >= TRIES:
            return Outcome(order.trial, None, 0.0, f"{why} (after {tries} tries)")
        self._note(f"{order.trial}: {why}. It is tried again")
        self._waiting.appendleft(order)
        return None


def _work(connection: Connection) -> None:
    """What a worker process does."""
    end_with_parent()
    with suppress(EOFError, OSError):  # the process that started this one has let go of it
        connection.send(None)  # ready
        while True:
            connection.send(perform(*connection.recv()))
