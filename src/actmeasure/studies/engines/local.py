"""Trials in worker processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from actmeasure.errors import StudyError
from actmeasure.interrupts import Interrupts
from actmeasure.settings import whole
from actmeasure.studies.engines.base import Order, Outcome, Report, perform
from actmeasure.studies.machine import available_memory, workers_that_fit
from actmeasure.studies.pool import Call, Work, available_cores, run_calls

__all__ = ["LocalEngine"]

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
        trials = _Trials(orders, note)
        with closing(run_calls(trials, self.at_once)) as rounds:
            for _ in rounds:
                yield from trials.outcomes or (None,)
                trials.outcomes.clear()
                if interrupts.requested:
                    return

    def _suitable(self, orders: Sequence[Order]) -> int:
        """Return how many processes to use for these orders."""
        most = min(self._workers or available_cores(), len(orders))
        if self._workers is not None:
            return most
        return workers_that_fit([order.memory for order in orders], most, available_memory())


class _Trials(Work):
    """Orders that wait for a worker, and the outcomes of those that are done; a trial whose worker dies is tried again."""

    def __init__(self, orders: Sequence[Order], note: Callable[[str], None]) -> None:
        super().__init__(orders)
        self.outcomes: list[Outcome] = []
        self._note = note
        self._losses: dict[str, int] = {}
        self._false_starts = 0

    def next_call(self, task: Order | None) -> Call | None:
        """See `Work.next_call`."""
        if not self.waiting:
            return None
        order: Order = self.waiting.popleft()
        return Call(order, perform, order.packed())

    def finished(self, task: Order, result: Report) -> None:
        """See `Work.finished`."""
        self._false_starts = 0
        self.outcomes.append(Outcome(task.trial, *result))

    def lost(self, task: Order | None, why: str) -> bool:
        """See `Work.lost`."""
        if task is None:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                raise StudyError(why)
            return True
        losses = self._losses[task.trial.hash] = self._losses.get(task.trial.hash, 0) + 1
        if losses >= TRIES:
            self.outcomes.append(Outcome(task.trial, None, 0.0, f"{why} (after {losses} tries)"))
        else:
            self._note(f"{task.trial}: {why}. It is tried again")
            self.waiting.appendleft(task)
        return True
