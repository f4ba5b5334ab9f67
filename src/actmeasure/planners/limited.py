"""Planning with a limit on the work instead of the time, so that the same model always gives the same schedule."""

from __future__ import annotations

from dataclasses import dataclass

from actmeasure.evaluation import evaluate
from actmeasure.interrupts import Interrupts
from actmeasure.model import Model
from actmeasure.planners import act_then_measure
from actmeasure.planners.clock import Clock, Stopped
from actmeasure.planners.optimal import Search
from actmeasure.schedule import Schedule

__all__ = ["solve_within"]

#: A round of the search takes about as long as so many beliefs; where rounds come to little, they are the work.
ROUND = 40
#: A difference that does not matter, whatever the values are.
SMALLEST = 1e-9


@dataclass
class WorkLimit(Clock):
    """A clock that stands still, and is over when a search has done so much work, or is close enough to the optimum."""

    beliefs: int = 0
    tolerance: float = 0.0
    search: Search | None = None

    @property
    def is_over(self) -> bool:
        if self.search is None:
            return False
        work = self.search.nodes + ROUND * self.search.rounds
        return work >= self.beliefs or self.is_close(self.search.lower)

    def is_close(self, value: float) -> bool:
        """Whether a value is within the tolerance, as a share of it, of the bound on the optimum."""
        return self.search is not None and self.search.upper - value <= self.tolerance * abs(value)


class Undisturbed(Clock):
    """A clock that Ctrl-C does not stop: the work is small, and what it leads to must not depend on when a key was pressed."""

    def stops(self, interrupts: Interrupts) -> Stopped | None:
        return "time" if self.is_over else None


class UndisturbedLimit(Undisturbed, WorkLimit):
    """The same with a limit on the work."""


def solve_within(model: Model, tolerance: float, beliefs: int) -> tuple[Schedule, float, float]:
    """The best schedule found by a search over so many beliefs, its value, and a bound on the optimum.

    The search ends when they differ by less than `tolerance`, as a share of the value. If it does not come to that,
    act-then-measure is tried as well, and the better of the two returned.
    """
    clock = UndisturbedLimit(beliefs=beliefs, tolerance=tolerance)
    clock.search = search = Search(model, clock)
    search.run(SMALLEST)
    schedule = search.schedule()
    value = evaluate(model, schedule).discounted_return
    if not clock.is_close(value):
        other = act_then_measure.exact(model, tolerance, Undisturbed()).schedule
        earns = evaluate(model, other).discounted_return
        if earns > value:
            schedule, value = other, earns
    return schedule, value, max(search.upper, value)
