"""Planning that is never ended by the clock, so that the same problem gives the same plan on every machine."""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners import act_then_measure, solve
from actmeasure.planners.bounds import ALMOST_ONE, informed_bounds, start_bound
from actmeasure.planners.clock import Clock
from actmeasure.planners.limited import SMALLEST, WorkLimit
from actmeasure.planners.optimal import Search
from actmeasure.schedule import Schedule

__all__ = ["WorkPlan", "plan_by_work"]

#: Methods that search; the others end by themselves.
SEARCHES = ("optimal", "never")


class WorkPlan(NamedTuple):
    """A schedule, its value, a bound on the optimum, and why planning stopped: as `Solution.stopped`, or `beliefs`."""

    schedule: Schedule
    lower: float
    upper: float
    stopped: str


def plan_by_work(model: Model, method: str, tolerance: float, beliefs: int) -> WorkPlan:
    """Plan; searches end at a gap of `tolerance`, as a share of the value, or after so many beliefs (see `WorkLimit`).

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: half a plan is none.
    """
    if method in SEARCHES:
        found = _searched(model, tolerance, beliefs, may_look=method == "optimal")
    else:
        solution = solve(model, method, tolerance)
        found = WorkPlan(solution.schedule, solution.lower, solution.upper, solution.stopped)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    return found


def _searched(model: Model, tolerance: float, beliefs: int, may_look: bool) -> WorkPlan:
    """The best of what a search finds, of a search that hurries where there is no discount, and of act-then-measure."""
    limit = WorkLimit(beliefs=beliefs, tolerance=tolerance)
    limit.search = search = Search(model, limit, may_look)
    stopped = str(search.run(SMALLEST))
    schedules = []
    with contextlib.suppress(PlanError):  # without discount it may promise nothing finite
        schedules.append(search.schedule())
    if model.discount == 1:
        hurried = WorkLimit(beliefs=beliefs, tolerance=tolerance)
        hurried.search = hurried_search = Search(model.replace(discount=ALMOST_ONE), hurried, may_look)
        stopped = "interrupted" if hurried_search.run(SMALLEST) == "interrupted" else stopped
        schedules.append(hurried_search.schedule())
    value, best = _best(model, schedules)
    if may_look and not limit.is_close(value):
        schedules.append(act_then_measure.exact(model, tolerance, Clock()).schedule)
        value, best = _best(model, schedules)
    closed = limit.is_close(value) or search.upper - value <= SMALLEST
    upper = search.upper if may_look else start_bound(model, *informed_bounds(model, Clock()))
    reason = stopped if stopped != "time" else "beliefs"
    return WorkPlan(best, value, max(upper, value), "closed" if closed and stopped != "interrupted" else reason)


def _best(model: Model, schedules: list[Schedule]) -> tuple[float, Schedule]:
    """The schedule that is worth most, the first of equals; one without a value is worth nothing finite."""
    values = [evaluate(model, schedule).discounted_return for schedule in schedules]
    known = [-math.inf if math.isnan(value) else value for value in values]
    number = known.index(max(known))
    return known[number], schedules[number]
