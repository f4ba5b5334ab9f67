"""Methods that come with a bound of their own, from a search over blind plans."""

from __future__ import annotations

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.interrupts import deferred_interrupts
from actmeasure.model import Model
from actmeasure.planners.bounds import ALMOST_ONE
from actmeasure.planners.clock import Clock
from actmeasure.planners.optimal import Search
from actmeasure.planners.plan import Plan
from actmeasure.schedule import Schedule

__all__ = ["never", "optimal"]


def optimal(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule, with a bound that shows it."""
    schedule, search = _search(model, tolerance, clock, may_look=True)
    return Plan(schedule, search.bounds.lower, upper=search.upper)


def never(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule that never looks, with a bound on all such; as hard as the optimum."""
    schedule, search = _search(model, tolerance, clock, may_look=False)
    return Plan(schedule, search.bounds.lower, method_upper=search.upper)


def _search(model: Model, tolerance: float, clock: Clock, may_look: bool) -> tuple[Schedule, Search]:
    """Search, and without discount a hurried search first: its schedule makes progress, and is often the best already."""
    if model.discount < 1:
        search = Search(model, clock, may_look)
        search.run(tolerance)
        return search.schedule(), search
    with deferred_interrupts():  # so that Ctrl-C in the first search also stops the second
        hurried = Search(model.replace(discount=ALMOST_ONE), Clock(clock.limit, share=0.5, begun=clock.begun), may_look)
        hurried.run(tolerance)
        schedule = hurried.schedule()
        value = evaluate(model, schedule).discounted_return
        search = Search(model, clock, may_look, at_least=value)
        search.run(tolerance)
    try:
        own = search.schedule()
    except PlanError:  # it promises nothing finite, but there is a schedule already
        return schedule, search
    return (own if evaluate(model, own).discounted_return > value else schedule), search
