"""The frontier between reward and looks: what to do at every price of a look, and under a budget of looks.

A schedule with discounted reward `r` and discounted looks `l` is worth `r - price * l`, a line in the price. The optimum is the
highest of all these lines, so it is convex and never rises. Solving at one price gives a line (from below) and an upper bound
there; between two solved prices the chord through their upper bounds is one too. New prices are solved where the lines found
so far cross, at the crossing that leaves the largest gap, until none is above the tolerance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.envelope import (
    ROUNDING,
    Line,
    Piece,
    envelope,
    envelope_values,
    price_at_bound,
    price_at_value,
    tightened_bounds,
)
from actmeasure.planners.frontier import BudgetPlan, Frontier, FrontierPiece
from actmeasure.planners.solution import Solution
from actmeasure.planners.solve import solve
from actmeasure.schedule import Schedule
from actmeasure.settings import real, whole
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    pass

__all__ = ["BudgetPlan", "Frontier", "FrontierPiece", "TradeoffProgress", "tradeoff"]

#: Each price is solved to this share of the tolerance; the rest is room for the chords between prices.
SOLVING_SHARE = 0.25
#: A crossing is solved only if its gap exceeds that of the prices around it by this share of the tolerance: what is left
#: there otherwise is what the solver left open, and further prices would not close it.
CROSSING_SHARE = 0.5
#: Pieces that add less than this share of the tolerance are left out.
NEGLIGIBLE_SHARE = 0.01
#: No price beyond this many times the largest reward is tried (divided by the largest cost where costs are a table).
LARGEST_PRICE = 1e6
#: The best schedule that never looks may take so many seconds, or so many times what the first price took, to be found.
NEVER_SECONDS, NEVER_TIMES = 60.0, 5.0
#: With a time limit, no single price takes more than this share of the time that is left.
TIME_SHARE = 0.25
#: What is left in the end goes to the prices that are most open, by this share each.
LAST_TIME_SHARE = 0.6


@dataclass(frozen=True)
class TradeoffProgress:
    """How far the frontier is after some seconds: prices solved and the largest gap left."""

    seconds: float
    solved: int
    gap: float


def tradeoff(
    model: Model,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
    progress: bool | Callable[[TradeoffProgress], None] = False,
    *,
    horizon: int = 200,
) -> Frontier:
    """Find the frontier between reward and looks: the best schedules for every price of a look.

    Parameters
    ----------
    model : Model
        Its measuring cost, if a number, is replaced by the price; a table per state and action is multiplied by it.
    tolerance : float
        At every price, the bounds on the optimum are to be so close.
    time_limit : float, optional
        Seconds. When they are over, or Ctrl-C is pressed, the frontier so far is returned, with the gap that is left.
    progress : bool or function
        True prints how the gap closes; a function is called with every `TradeoffProgress`.
    horizon : int
        Steps for the undiscounted figures.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> import actmeasure as am
    >>> from actmeasure.planners.tradeoff import tradeoff
    >>> frontier = tradeoff(am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=1.0))
    >>> [round(price, 3) for price in frontier.break_even]
    [0.16, 0.16]
    >>> round(frontier.budget(0.5).probability, 2)
    0.4
    """
    if not isinstance(model, Model):
        raise PlanError(f"the model is {model!r:.60}, expected a Model")
    asked = real(tolerance, "tolerance", PlanError, "a number above 0, such as 1e-3")
    if not 0 < asked < math.inf:
        raise PlanError(f"tolerance is {tolerance!r}, expected a finite number above 0, such as 1e-3")
    if time_limit is not None and not real(time_limit, "time_limit", PlanError, "seconds above 0, or None") > 0:
        raise PlanError(f"time_limit is {time_limit!r}, expected seconds above 0, or None for no limit")
    steps = whole(horizon, "horizon", 1, None, PlanError)
    listener = _print_progress if progress is True else progress or None
    search = _Search(model, asked, steps, Clock(time_limit), listener)
    with deferred_interrupts() as interrupts:
        search.run(interrupts)
    if progress is True:
        print(file=sys.stderr)
    return search.frontier()


@dataclass(eq=False)
class _Search:
    """Lines and upper bounds found so far."""

    model: Model
    tolerance: float
    horizon: int
    clock: Clock
    listener: Callable[[TradeoffProgress], None] | None
    lines: list[Line] = field(default_factory=list)
    uppers: dict[float, float] = field(default_factory=dict)
    never_upper: float = math.inf
    tried_again: set[float] = field(default_factory=set)

    def run(self, interrupts: Interrupts) -> None:
        """Solve price after price until the gap is closed, time is over or Ctrl-C is pressed."""
        self._solve(0.0)
        if not self._stopped(interrupts):
            self._never()
        self._tell()
        while not self._stopped(interrupts):
            price, share = self._next_price(), TIME_SHARE
            if price is None:
                price, share = self._most_open(), LAST_TIME_SHARE
            if price is None:
                break
            try:
                self._solve(price, share)
            except PlanError:  # no time was left for any bound at this price: those at others still hold
                break
            self._tell()

    def _stopped(self, interrupts: Interrupts) -> bool:
        return self.clock.is_over or interrupts.requested

    def _solve(self, price: float, share: float = TIME_SHARE) -> None:
        found = self._solution(_at_price(self.model, price), "optimal", None, share)
        self._add(found.schedule)
        self.uppers[price] = min(found.upper, self.uppers.get(price, math.inf))

    def _never(self) -> None:
        found = self._solution(self.model, "never", max(NEVER_SECONDS, NEVER_TIMES * self.clock.seconds))
        self._add(found.schedule)
        if found.method_upper is not None:
            self.never_upper = found.method_upper

    def _solution(self, model: Model, method: str, limit: float | None, share: float = TIME_SHARE) -> Solution:
        if self.clock.limit is not None:
            allowed = share * max(self.clock.limit - self.clock.seconds, 1e-3)
            limit = allowed if limit is None else min(limit, allowed)
        return solve(model, method, SOLVING_SHARE * self.tolerance, limit)

    def _add(self, schedule: Schedule) -> None:
        line = _line(self.model, schedule, self.horizon)
        # Without discount, a schedule can look, or lose, for ever; it is then worth nothing at any price above 0.
        if math.isfinite(line.reward) and math.isfinite(line.looks):
            self.lines.append(line)

    def _next_price(self) -> float | None:
        """Where to solve next: the crossing of lines with the largest gap, or None if no gap is worth it."""
        prices, uppers = self._outer()
        pieces = self._inner()
        if not pieces or pieces[-1].line.looks > 0:
            return self._next_without_flat_line(prices, uppers, pieces)
        return self._next_crossing(prices, uppers, pieces)

    def _next_without_flat_line(self, prices: FloatArray, uppers: FloatArray, pieces: list[Piece]) -> float | None:
        """Every schedule found has to look: the frontier then goes down for ever, and is followed up to the largest price."""
        if prices[-1] < self._largest_price():
            return self._largest_price()
        return self._next_crossing(prices, uppers, pieces)

    def _next_crossing(self, prices: FloatArray, uppers: FloatArray, pieces: list[Piece]) -> float | None:
        solved_gaps = uppers - envelope_values(pieces, prices)
        best, largest = None, self.tolerance
        for piece in pieces[1:]:
            price = piece.low
            gap = float(np.interp(price, prices, uppers)) - piece.line.at(price)
            around = float(np.interp(price, prices, solved_gaps))
            is_new = np.abs(prices - price).min() > ROUNDING * (1 + price) and price <= self._largest_price()
            if is_new and gap > max(largest, around + CROSSING_SHARE * self.tolerance):
                best, largest = price, gap
        return best

    def _most_open(self) -> float | None:
        """The solved price with the largest gap, if the time limit may have been the reason for it and there is time left."""
        if self.clock.limit is None:
            return None
        prices, uppers = self._outer()
        gaps = uppers - envelope_values(self._inner(), prices)
        gaps[np.isin(prices, list(self.tried_again))] = 0.0
        worst = int(np.argmax(gaps))
        if gaps[worst] <= self.tolerance:
            return None
        self.tried_again.add(float(prices[worst]))
        return float(prices[worst])

    def _largest_price(self) -> float:
        reward = float(np.abs(self.model.rewards).max()) or 1.0
        cost = self.model.measuring_cost
        unit = 1.0 if isinstance(cost, float) else float(cost.max()) or 1.0
        return LARGEST_PRICE * reward / unit

    def _inner(self) -> list[Piece]:
        return envelope(self.lines, NEGLIGIBLE_SHARE * self.tolerance)

    def _outer(self) -> tuple[FloatArray, FloatArray]:
        return tightened_bounds(self.uppers)

    def _gap(self, pieces: list[Piece], prices: FloatArray, uppers: FloatArray) -> float:
        """Largest difference of the envelopes, which is at a solved price, at a crossing, or beyond them all."""
        if not pieces or (pieces[-1].line.looks > 0 and prices[-1] < self._largest_price()):
            return math.inf
        crossings = np.array([piece.low for piece in pieces])
        crossings = crossings if pieces[-1].line.looks == 0 else crossings[crossings <= prices[-1]]
        where = np.concatenate([prices, crossings])
        return max(0.0, float((np.interp(where, prices, uppers) - envelope_values(pieces, where)).max()))

    def _break_even(self, pieces: list[Piece], prices: FloatArray, uppers: FloatArray) -> tuple[float, float]:
        blind = max(
            (line.reward for line in self.lines if line.evaluation.discounted_measurements == 0), default=-math.inf
        )
        # Never looking is one way to behave at any price, so the bounds on the optimum hold for it as well.
        low = price_at_value(pieces, max(blind, min(self.never_upper, float(uppers.min()))))
        # Never looking is the best found from `high` on; that is enough only where the bound confirms it.
        high = max(price_at_value(pieces, blind), price_at_bound(prices, uppers, blind + self.tolerance))
        return low, high

    def _tell(self) -> None:
        if self.listener is not None:
            gap = self._gap(self._inner(), *self._outer())
            self.listener(TradeoffProgress(self.clock.seconds, len(self.uppers), gap))

    def frontier(self) -> Frontier:
        """The frontier so far."""
        pieces = self._inner()
        if not pieces:
            raise PlanError("no schedule with finite looks was found in the time given; allow more time")
        prices, uppers = self._outer()
        lowers = envelope_values(pieces, prices)
        gap = self._gap(pieces, prices, uppers)
        for array in (prices, lowers, uppers):
            array.setflags(write=False)
        return Frontier(
            model=self.model,
            tolerance=self.tolerance,
            pieces=tuple(
                FrontierPiece(piece.low, piece.high, piece.line.schedule, piece.line.looks, piece.line.evaluation)
                for piece in pieces
            ),
            prices=prices,
            lower=lowers,
            upper=uppers,
            gap=gap,
            break_even=self._break_even(pieces, prices, uppers),
            seconds=self.clock.seconds,
        )


def _at_price(model: Model, price: float) -> Model:
    cost = model.measuring_cost
    return model.replace(measuring_cost=price if isinstance(cost, float) else price * cost)


def _line(model: Model, schedule: Schedule, horizon: int) -> Line:
    evaluation = evaluate(model, schedule, horizon)
    reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
    if not isinstance(model.measuring_cost, float):
        looks = reward - evaluation.discounted_return
        # What is left of a difference of equal sums is rounding, and would look like a look.
        looks = 0.0 if looks <= ROUNDING * (1 + abs(reward)) else looks
    return Line(schedule, evaluation, reward, looks)


def _print_progress(progress: TradeoffProgress) -> None:
    print(
        f"\r{progress.seconds:7.1f} s   {progress.solved} prices solved   gap {progress.gap:.2g}   ",
        end="",
        file=sys.stderr,
        flush=True,
    )
