"""Trials in worker processes of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from actmeasure.errors import StudyError
from actmeasure.interrupts import Interrupts
from actmeasure.settings import whole
from actmeasure.studies.engines.base import Order, Outcome, Report, perform
from actmeasure.studies.machine import available_memory, workers_that_fit
from actmeasure.studies.pool import Worker, WorkerDiedError, WorkerPool, available_cores

__all__ = ["LocalEngine"]

#: Seconds between two looks at Ctrl-C and at progress.
ATTENTION_SECONDS = 0.2
#: How often a trial is tried whose worker dies, and how many workers in a row may die while they start.
TRIES = 3


class LocalEngine:
    """Runs trials in processes of this machine.

    Parameters
    ----------
    workers : int, optional
        Number of processes; by default one for each core, or fewer if the memory would not suffice.
    """

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = None if workers is None else whole(workers, "workers", 1, error=StudyError)
        self.at_once = 1

    def run(
        self, orders: Sequence[Order], interrupts: Interrupts, note: Callable[[str], None]
    ) -> Iterator[Outcome | None]:
        """See `Engine.run`."""
        self.at_once = self._suitable(orders)
        with WorkerPool(self.at_once) as pool:
            queue = _Queue(pool, orders, note)
            while queue.is_busy and not interrupts.requested:
                yield from queue.next_outcomes()

    def _suitable(self, orders: Sequence[Order]) -> int:
        """Return how many processes to use for these orders."""
        most = min(self._workers or available_cores(), len(orders))
        if self._workers is not None:
            return most
        return workers_that_fit([order.memory for order in orders], most, available_memory())


class _Queue:
    """Orders that wait for a worker, and those at one (as its `task`)."""

    def __init__(self, pool: WorkerPool, orders: Sequence[Order], note: Callable[[str], None]) -> None:
        self._pool, self._note = pool, note
        self._waiting = deque(orders)
        self._losses: dict[str, int] = {}
        self._false_starts = 0

    @property
    def is_busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._waiting) or any(worker.task is not None for worker in self._pool.workers)

    def next_outcomes(self) -> Iterator[Outcome | None]:
        """Return what workers have finished, None if nothing is for a while, and give them the next orders."""
        finished = self._pool.wait(ATTENTION_SECONDS)
        outcomes = [self._fetch(worker) for worker in finished]  # workers must not wait until results are stored
        yield from outcomes or [None]

    def _fetch(self, worker: Worker) -> Outcome | None:
        order, worker.task = worker.task, None
        try:
            report: Report = worker.result()
        except WorkerDiedError as error:
            return self._retry_or_fail(worker, order, str(error))
        if self._waiting:
            worker.task = self._waiting.popleft()
            worker.submit(perform, *worker.task.packed())
        if order is None:  # the worker has started
            return None
        self._false_starts = 0
        return Outcome(order.trial, *report)

    def _retry_or_fail(self, worker: Worker, order: Order | None, why: str) -> Outcome | None:
        """Deal with a worker that has died: another takes its place, and what it was doing is tried again or given up."""
        if order is None:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                raise StudyError(why)
        self._pool.replace(worker)
        if order is None:
            return None
        losses = self._losses[order.trial.hash] = self._losses.get(order.trial.hash, 0) + 1
        if losses >= TRIES:
            return Outcome(order.trial, None, 0.0, f"{why} (after {losses} tries)")
        self._note(f"{order.trial}: {why}. It is tried again")
        self._waiting.appendleft(order)
        return None
