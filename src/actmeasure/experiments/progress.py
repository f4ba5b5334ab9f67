"""How far a study is, and how long the rest is going to take."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from actmeasure.experiments.expense import Expense
from actmeasure.experiments.spec import Trial

__all__ = ["Pace", "PartProgress", "StudyProgress"]


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
    """Learns how long trials take.

    Expected work becomes seconds with the speed that other trials with the same agent or method had, or with that of all of
    them where there are none yet.
    """

    def __init__(self, expenses: Mapping[str, Expense]) -> None:
        self._expenses = expenses
        self._work: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)

    def note(self, trial: Trial, seconds: float) -> None:
        """A trial has taken so many seconds."""
        kind, work, _ = self._expenses[trial.hash]
        self._work[kind] += work
        self._seconds[kind] += seconds

    def expected(self, trial: Trial) -> float:
        """Seconds that a trial is going to take; not a number if none is known."""
        kind, work, _ = self._expenses[trial.hash]
        if kind in self._work:
            return self._seconds[kind] / self._work[kind] * work
        if not self._work:
            return math.nan
        return sum(self._seconds.values()) / sum(self._work.values()) * work

    def finishing(self, trials: Sequence[Trial], workers: int) -> dict[str, float]:
        """When each of the trials, which are run in this order, is going to be done: seconds from now, by hash."""
        done: dict[str, float] = {}
        begins = 0.0
        for trial in trials:
            own = self.expected(trial)
            done[trial.hash] = begins + own
            begins += own / workers
        return done
