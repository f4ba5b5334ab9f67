"""Methods that come with a bound of their own, from a search over blind plans."""

from __future__ import annotations

import contextlib
import math

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.interrupts import deferred_interrupts
from actmeasure.model import Model
from actmeasure.planners import act_then_measure
from actmeasure.planners.bounds import ALMOST_ONE, informed_bounds, start_bound
from actmeasure.planners.clock import Clock, Stopped
from actmeasure.planners.optimal import Search
from actmeasure.planners.plan import Plan
from actmeasure.schedule import Schedule

__all__ = ["never", "optimal"]

#: A search that has not closed after so many seconds, or this share of the time, is joined by act-then-measure ...
HEAD_START, HEAD_SHARE = 1.0, 0.25
#: ... which may take this share of the time that is then left.
ATM_SHARE = 2 / 3
#: Without discount, the hurried search may take this share of the time, and so many seconds at most.
HURRIED_SHARE, HURRIED_SECONDS = 0.5, 10.0


def optimal(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule, with a bound that shows it.

    Where the search is still open after its head start, the schedule is at least as good as act-then-measure's, if that can be
    computed in half of the time that the first bounds left (a quarter without discount).
    """
    with deferred_interrupts():  # so that Ctrl-C in one part also stops the next
        best = _Best(model, Search(model, clock))
        best.hurry(tolerance)
        best.search_until(clock.part(HEAD_SHARE, HEAD_START), tolerance)
        if best.stopped == "time" and not clock.is_over:
            joined = act_then_measure.exact(model, tolerance, clock.part(ATM_SHARE))
            best.offer(joined.schedule)
            best.search_until(clock, tolerance)
    return best.plan(upper=best.search.upper)


def never(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule that never looks, with a bound on all such; as hard as the optimum."""
    with deferred_interrupts():
        best = _Best(model, Search(model, clock, may_look=False), may_look=False)
        best.hurry(tolerance)
        best.search_until(clock, tolerance)
    upper = start_bound(model, *informed_bounds(model, clock))
    return best.plan(upper, method_upper=best.search.upper)


class _Best:
    """A search, and the best schedule so far."""

    def __init__(self, model: Model, search: Search, may_look: bool = True) -> None:
        self.model, self.search, self._may_look = model, search, may_look
        self.stopped: Stopped = "time"
        self._schedule: Schedule | None = None
        self._value = -math.inf

    def hurry(self, tolerance: float) -> None:
        """Without discount, a hurried search first: its schedule makes progress, and is often the best already.

        Its bounds hold for another discount, so those of the slower search are what is noted meanwhile.
        """
        if self.model.discount < 1:
            return
        clock = self.search.clock
        part = clock.part(HURRIED_SHARE, HURRIED_SECONDS)
        own = Clock(part.limit, lambda _: clock.note(self.search.lower, self.search.upper), part.begun)
        with contextlib.suppress(PlanError):  # there may be no time for it
            hurried = Search(self.model.replace(discount=ALMOST_ONE), own, self._may_look)
            hurried.run(tolerance)
            self.offer(hurried.schedule())

    def search_until(self, clock: Clock, tolerance: float) -> None:
        """Search on, with that clock."""
        self.search.clock = clock
        self.stopped = self.search.run(tolerance)

    def offer(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better than the best so far."""
        value = evaluate(self.model, schedule).discounted_return
        if self._schedule is None or value > self._value:
            self._schedule, self._value = schedule, value
            self.search.at_least = max(self.search.at_least, value)

    def plan(self, upper: float, method_upper: float | None = None) -> Plan:
        """What the method hands back."""
        search = self.search
        return Plan(self._best_schedule(), search.bounds.lower, upper, self.stopped, method_upper=method_upper)

    def _best_schedule(self) -> Schedule:
        """The best that was offered, or the search's own if that is better."""
        if self._schedule is None:
            return self.search.schedule()
        with contextlib.suppress(PlanError):  # it may promise nothing finite, but there is a schedule already
            self.offer(self.search.schedule())
        return self._schedule
