"""How far a study is, and how long the rest is going to take."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from actmeasure.studies.spec import Trial
from actmeasure.studies.trial import Expense

__all__ = ["Pace", "PartProgress", "StudyProgress"]

#: No trial is taken to be shorter than this, in seconds: less is noise.
SHORTEST = 1e-3
#: How much spread of the logarithm of work it takes to believe trials about how seconds grow with it.
PRIOR = 1.0
#: The largest power of work that seconds are taken to grow with.
STEEPEST = 2.0
#: A trial that takes longer than expected is expected to take this share of the time that it has taken again.
OVERDUE = 0.2
#: So many trials, or trials of so many seconds in all, are enough for an estimate.
ENOUGH, ENOUGH_SECONDS = 10, 5.0


@dataclass(frozen=True)
class PartProgress:
    """How far a part is.

    Attributes
    ----------
    name, title : str
    done, total : int
        Trials that are finished, one way or another, and all.
    seconds_left : float
        An estimate; not a number while there is none.
    """

    name: str
    title: str
    done: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is: its parts, and an estimate of the seconds that are left (not a number while there is none)."""

    parts: tuple[PartProgress, ...]
    seconds_left: float


class Pace:
    """Learns how long trials take, from those that are done.

    A trial is expected to take what others took that differ in nothing but their seed. Where there are none yet, trials of the
    same kind tell how seconds grow with the rough measure of work; then those of the same agent or method; then all of them.
    """

    def __init__(self, expenses: Mapping[str, Expense]) -> None:
        self._expenses = expenses
        self._cells: dict[str, list[float]] = defaultdict(list)
        self._kinds: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._families: dict[str, list[float]] = defaultdict(list)
        self._known: dict[str, list[tuple[Expense, float]]] = defaultdict(list)
        self._loading: set[str] = set()
        self._fits: dict[str, tuple[float, float]] = {}
        self._ratios: dict[str, float] = {}

    @property
    def knows(self) -> bool:
        """Whether enough is done to tell how fast this machine is: the first trials also load what was compiled."""
        return sum(map(len, self._cells.values())) >= ENOUGH or sum(map(sum, self._cells.values())) >= ENOUGH_SECONDS

    def note(self, trial: Trial, seconds: float, has_loaded: bool = False) -> None:
        """A trial has taken so many seconds; one that has loaded what was compiled counts until there is another of its kind."""
        expense, taken = self._expenses[trial.hash], max(seconds, SHORTEST)
        if has_loaded:
            if expense.kind in self._kinds:
                return
            self._loading.add(expense.kind)
        elif expense.kind in self._loading:
            self._loading.remove(expense.kind)
            self._forget(expense.kind)
        self._known[expense.kind].append((expense, taken))
        self._cells[expense.cell].append(taken)
        self._kinds[expense.kind].append((math.log(expense.work), math.log(taken)))
        self._families[expense.family].append(math.log(taken / expense.work))
        self._fits.pop(expense.kind, None)
        self._ratios.clear()

    def _forget(self, kind: str) -> None:
        """Forget what trials of a kind have taken."""
        for expense, taken in self._known.pop(kind):
            self._cells.pop(expense.cell, None)
            self._families[expense.family].remove(math.log(taken / expense.work))
        del self._kinds[kind]

    def expected(self, trial: Trial) -> float:
        """Seconds that a trial is going to take; by the rough rule while none is done."""
        expense = self._expenses[trial.hash]
        if expense.cell in self._cells:
            return _typical(self._cells[expense.cell])
        if expense.kind in self._kinds:
            level, slope = self._fit(expense.kind)
            return math.exp(level + slope * math.log(expense.work))
        return expense.work * self._ratio(expense.family)

    def _fit(self, kind: str) -> tuple[float, float]:
        """How seconds of a kind of trial grow with work, as a power of it: its logarithm's level and slope."""
        if kind not in self._fits:
            points = self._kinds[kind]
            middle = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
            spread = sum((x - middle[0]) ** 2 for x, _ in points)
            common = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
            # 1, in proportion, until trials of several sizes say otherwise, and nothing absurd.
            slope = min(max((PRIOR + common) / (PRIOR + spread), 0.0), STEEPEST)
            # The median: the first trial of a worker also loads what was compiled.
            self._fits[kind] = median(y - slope * x for x, y in points), slope
        return self._fits[kind]

    def _ratio(self, family: str) -> float:
        """Seconds for each of the rough rule, of an agent or method, or of all where it has none."""
        if family not in self._ratios:
            known = self._families.get(family) or [each for logs in self._families.values() for each in logs]
            self._ratios[family] = math.exp(median(known)) if known else 1.0
        return self._ratios[family]

    def finishing(
        self, trials: Sequence[Trial], workers: int, running: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """When each of the trials is going to be done: seconds from now, by hash.

        Parameters
        ----------
        trials : sequence of Trial
            In the order in which they are run, by whichever worker is free first.
        workers : int
        running : mapping, optional
            For how long trials have been running already, by hash.
        """
        free = [0.0] * max(1, min(workers, len(trials)))
        done: dict[str, float] = {}
        for trial in trials:
            own, since = self.expected(trial), (running or {}).get(trial.hash, 0.0)
            # One that takes longer than expected may take a good deal longer.
            left = max(own - since, OVERDUE * since)
            done[trial.hash] = free[0] + left
            heapq.heapreplace(free, done[trial.hash])
        return done


def _typical(seconds: Sequence[float]) -> float:
    """The mean, without the longest if there are several: a worker's first trial also loads what was compiled."""
    kept = sorted(seconds)[:-1] if len(seconds) > 2 else seconds
    return sum(kept) / len(kept)
