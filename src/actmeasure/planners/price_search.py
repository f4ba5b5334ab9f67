"""The search for the frontier between reward and looks: which prices of a look to solve, and for how long.

New prices are solved where the lines found so far cross, at the crossing that leaves the largest gap, until none is above the
tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from actmeasure.errors import PlanError
from actmeasure.interrupts import Interrupts
from actmeasure.model import Model
from actmeasure.planners.clock import Clock, Stopped
from actmeasure.planners.frontier import Frontier
from actmeasure.planners.price_bounds import PriceBounds
from actmeasure.planners.solution import Solution
from actmeasure.planners.solve import solve

__all__ = ["PriceSearch", "TradeoffProgress"]

#: Each price is solved to this share of the tolerance; the rest is room for the chords between prices.
SOLVING_SHARE = 0.25
#: The best schedule that never looks may take so many seconds, or so many times what the first price took, to be found.
NEVER_SECONDS, NEVER_TIMES = 60.0, 5.0
#: With a time limit, no single price takes more than this share of the time that is left.
TIME_SHARE = 0.25
#: What is left in the end goes to the prices that are most open, by this share each.
LAST_TIME_SHARE = 0.6


@dataclass(frozen=True)
class TradeoffProgress:
    """How far the frontier is after some seconds: prices solved and the largest gap left, infinite before the first."""

    seconds: float
    solved: int
    gap: float


@dataclass(eq=False)
class PriceSearch:
    """Solves price after price.

    Attributes
    ----------
    found : PriceBounds
        What is known so far.
    clock : Clock
    listener : function, optional
        Called with every `TradeoffProgress`.
    gap : float
        The largest gap when it was last told.
    stops : dict
        Why the solver stopped at each price solved.
    unsolved : set
        Prices at which the solver found no bound at all.
    tried_again : set
        Prices solved a second time, with the time that was left.
    """

    found: PriceBounds
    clock: Clock
    listener: Callable[[TradeoffProgress], None] | None
    gap: float = math.inf
    stops: dict[float, Stopped] = field(default_factory=dict)
    unsolved: set[float] = field(default_factory=set)
    tried_again: set[float] = field(default_factory=set)

    def run(self, interrupts: Interrupts) -> None:
        """Solve price after price until the gap is closed, time is over or Ctrl-C is pressed."""
        self._solve_first(interrupts)
        if not self._is_over(interrupts):
            self._never()
        self._tell()
        while not self._is_over(interrupts):
            price, share = self.found.next_price(self.unsolved), TIME_SHARE
            if price is None:
                price, share = self._most_open(), LAST_TIME_SHARE
            if price is None:
                break
            try:
                self._solve(price, share)
            except PlanError:
                # There is no bound at this price, in its share of the time or at all. Those at other prices still hold, and
                # the chord between them counts this one as open; so it is left out, and the search goes on elsewhere.
                self.unsolved.add(price)
            else:
                self._tell()

    def _is_over(self, interrupts: Interrupts) -> bool:
        return self.clock.is_over or interrupts.requested

    def _solve_first(self, interrupts: Interrupts) -> None:
        """Solve at price 0, without which there is nothing; if its share of the time is too short, with all of it."""
        try:
            self._solve(0.0)
        except PlanError:
            if self.clock.limit is None or interrupts.requested:
                raise
            self._solve_with_all_time(0.0)

    def _solve_with_all_time(self, price: float) -> None:
        try:
            self._solve(price, share=1.0)
        except PlanError as error:
            if not self.clock.is_over:
                raise
            raise PlanError(
                f"the time limit of {self.clock.limit:g} s was over before there was a bound at any price; allow more time"
            ) from error

    def _solve(self, price: float, share: float = TIME_SHARE) -> None:
        solution = self._solution(_at_price(self.found.model, price), "optimal", None, share)
        self.found.add_schedule(solution.schedule)
        self.found.add_bound(price, solution.upper)
        self.stops[price] = solution.stopped

    def _never(self) -> None:
        # Without it the frontier only says less about where looking breaks even, as bounds on the optimum hold for it too.
        with suppress(PlanError):
            limit = max(NEVER_SECONDS, NEVER_TIMES * self.clock.seconds)
            solution = self._solution(self.found.model, "never", limit)
            self.found.add_schedule(solution.schedule)
            if solution.method_upper is not None:
                self.found.never_upper = solution.method_upper

    def _solution(self, model: Model, method: str, limit: float | None, share: float = TIME_SHARE) -> Solution:
        if self.clock.limit is not None:
            allowed = share * max(self.clock.limit - self.clock.seconds, 1e-3)
            limit = allowed if limit is None else min(limit, allowed)
        return solve(model, method, SOLVING_SHARE * self.found.tolerance, limit, lambda _: self._tell_again())

    def _most_open(self) -> float | None:
        """The solved price with the largest gap, if time may have been the reason for it, once."""
        price = None if self.clock.limit is None else self.found.most_open(self.tried_again)
        if price is not None:
            self.tried_again.add(price)
        return price

    def _tell(self) -> None:
        """Say how far the frontier is."""
        if self.listener is not None:
            self.gap = self.found.gap()
            self._tell_again()

    def _tell_again(self) -> None:
        """Say that the search still runs, as a single price may take long."""
        if self.listener is not None:
            self.listener(TradeoffProgress(self.clock.seconds, len(self.found.uppers), self.gap))

    def frontier(self, by_hand: bool) -> Frontier:
        """The frontier so far; `by_hand` where Ctrl-C is the reason that there is no more."""
        return self.found.frontier(self.clock.seconds, self._stopped(by_hand))

    def _stopped(self, by_hand: bool) -> Stopped:
        reasons = set(self.stops.values())
        is_short = self.clock.limit is not None and (self.clock.is_over or bool(self.unsolved) or "time" in reasons)
        if self.found.gap() <= self.found.tolerance:
            return "closed"
        if by_hand:
            return "interrupted"
        if is_short:
            return "time"
        return "memory" if "memory" in reasons else "exhausted"


def _at_price(model: Model, price: float) -> Model:
    cost = model.measuring_cost
    return model.replace(measuring_cost=price if isinstance(cost, float) else price * cost)
