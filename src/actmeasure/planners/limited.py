"""Planning with a limit on the work instead of the time, so that the same model always gives the same schedule."""

from __future__ import annotations

from dataclasses import dataclass

from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners import act_then_measure
from actmeasure.planners.clock import Clock
from actmeasure.planners.optimal import Search
from actmeasure.schedule import Schedule

__all__ = ["solve_within"]


@dataclass
class WorkLimit(Clock):
    """A clock that stands still, and is over when a search has come to so many beliefs."""

    beliefs: int = 0
    search: Search | None = None

    @property
    def is_over(self) -> bool:
        return self.search is not None and self.search.nodes >= self.beliefs


def solve_within(model: Model, tolerance: float, beliefs: int) -> tuple[Schedule, float, float]:
    """The best schedule found by a search over so many beliefs, its value, and a bound on the optimum.

    If the search does not close, act-then-measure is tried as well, and the better of the two returned.
    """
    clock = WorkLimit(beliefs=beliefs)
    search = Search(model, clock)
    clock.search = search
    search.run(tolerance)
    schedule = search.schedule()
    value = evaluate(model, schedule).discounted_return
    if search.upper - value > tolerance:
        other = act_then_measure.exact(model, tolerance, Clock()).schedule
        earns = evaluate(model, other).discounted_return
        if earns > value:
            schedule, value = other, earns
    return schedule, value, max(search.upper, value)
