"""What is known about the optimum at every price of a look: schedules from below, bounds from above.

A schedule with discounted reward `r` and discounted looks `l` is worth `r - price * l`, a line in the price. The optimum is the
highest of all these lines, so it is convex and never rises. Solving at one price gives a line (from below) and an upper bound
there; between two solved prices the chord through their upper bounds is one too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners.clock import Stopped
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
from actmeasure.planners.frontier import Frontier, FrontierPiece
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = ["PriceBounds"]

#: A crossing is solved only if its gap exceeds that of the prices around it by this share of the tolerance: what is left
#: there otherwise is what the solver left open, and further prices would not close it.
CROSSING_SHARE = 0.5
#: Pieces that add less than this share of the tolerance are left out.
NEGLIGIBLE_SHARE = 0.01
#: No price beyond this many times the largest reward is tried (divided by the largest cost where costs are a table).
LARGEST_PRICE = 1e6


@dataclass(eq=False)
class PriceBounds:
    """Lines and upper bounds found so far.

    Attributes
    ----------
    model : Model
    tolerance : float
    horizon : int
        Steps for the undiscounted figures.
    lines : list of Line
        Schedules found, as lines in the price.
    uppers : dict
        Upper bounds on the optimum at the prices solved.
    never_upper : float
        Upper bound on schedules that never look.
    """

    model: Model
    tolerance: float
    horizon: int
    lines: list[Line] = field(default_factory=list)
    uppers: dict[float, float] = field(default_factory=dict)
    never_upper: float = math.inf

    def add_schedule(self, schedule: Schedule) -> None:
        """Take a schedule in, if its figures are finite.

        Without discount, one can look, or lose, for ever; it is then worth nothing at any price above 0.
        """
        line = _line(self.model, schedule, self.horizon)
        if math.isfinite(line.reward) and math.isfinite(line.looks):
            self.lines.append(line)

    def add_bound(self, price: float, upper: float) -> None:
        """Take an upper bound on the optimum at a price in."""
        self.uppers[price] = min(upper, self.uppers.get(price, math.inf))

    def next_price(self, unsolved: Collection[float]) -> float | None:
        """Where to solve next, but not at prices found `unsolved`; None if no gap is worth it.

        That is where lines cross and the gap is largest. If every schedule found has to look, the frontier goes down for ever,
        and is followed up to the largest price.
        """
        (prices, uppers), pieces = self._outer(), self._inner()
        largest = self._largest_price()
        has_flat_line = bool(pieces) and pieces[-1].line.looks == 0
        if not has_flat_line and prices[-1] < largest and largest not in unsolved:
            return largest
        return self._next_crossing(prices, uppers, pieces, np.array([*prices, *unsolved]))

    def _next_crossing(
        self, prices: FloatArray, uppers: FloatArray, pieces: list[Piece], tried: FloatArray
    ) -> float | None:
        solved_gaps = uppers - envelope_values(pieces, prices)
        best, largest = None, self.tolerance
        for piece in pieces[1:]:
            price = piece.low
            gap = float(np.interp(price, prices, uppers)) - piece.line.at(price)
            around = float(np.interp(price, prices, solved_gaps))
            is_new = np.abs(tried - price).min() > ROUNDING * (1 + price) and price <= self._largest_price()
            if is_new and gap > max(largest, around + CROSSING_SHARE * self.tolerance):
                best, largest = price, gap
        return best

    def most_open(self, besides: Collection[float]) -> float | None:
        """The solved price with the largest gap, if that is above the tolerance, `besides` some."""
        prices, uppers = self._outer()
        gaps = uppers - envelope_values(self._inner(), prices)
        gaps[np.isin(prices, list(besides))] = 0.0
        worst = int(np.argmax(gaps))
        return float(prices[worst]) if gaps[worst] > self.tolerance else None

    def gap(self) -> float:
        """Largest difference of the envelopes, which is at a solved price, at a crossing, or beyond them all."""
        (prices, uppers), pieces = self._outer(), self._inner()
        if not pieces or (pieces[-1].line.looks > 0 and prices[-1] < self._largest_price()):
            return math.inf
        crossings = np.array([piece.low for piece in pieces])
        crossings = crossings if pieces[-1].line.looks == 0 else crossings[crossings <= prices[-1]]
        where = np.concatenate([prices, crossings])
        return max(0.0, float((np.interp(where, prices, uppers) - envelope_values(pieces, where)).max()))

    def _largest_price(self) -> float:
        reward = float(np.abs(self.model.rewards).max()) or 1.0
        cost = self.model.measuring_cost
        unit = 1.0 if isinstance(cost, float) else float(cost.max()) or 1.0
        return LARGEST_PRICE * reward / unit

    def _inner(self) -> list[Piece]:
        return envelope(self.lines, NEGLIGIBLE_SHARE * self.tolerance)

    def _outer(self) -> tuple[FloatArray, FloatArray]:
        return tightened_bounds(self.uppers)

    def _break_even(self, pieces: list[Piece], prices: FloatArray, uppers: FloatArray) -> tuple[float, float]:
        blind = max(
            (line.reward for line in self.lines if line.evaluation.discounted_measurements == 0), default=-math.inf
        )
        # Never looking is one way to behave at any price, so the bounds on the optimum hold for it as well.
        low = price_at_value(pieces, max(blind, min(self.never_upper, float(uppers.min()))))
        # Never looking is the best found from `high` on; that is enough only where the bound confirms it.
        high = max(price_at_value(pieces, blind), price_at_bound(prices, uppers, blind + self.tolerance))
        return low, high

    def frontier(self, seconds: float, stopped: Stopped) -> Frontier:
        """The frontier so far."""
        pieces = self._inner()
        if not pieces:
            raise PlanError(
                "no schedule with a finite reward and finitely many looks was found; allow more time, or use a discount below 1"
            )
        prices, uppers = self._outer()
        lowers = envelope_values(pieces, prices)
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
            gap=self.gap(),
            break_even=self._break_even(pieces, prices, uppers),
            seconds=seconds,
            stopped=stopped,
        )


def _line(model: Model, schedule: Schedule, horizon: int) -> Line:
    evaluation = evaluate(model, schedule, horizon)
    reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
    if not isinstance(model.measuring_cost, float):
        looks = reward - evaluation.discounted_return
        # What is left of a difference of equal sums is rounding, and would look like a look.
        looks = 0.0 if looks <= ROUNDING * (1 + abs(reward)) else looks
    return Line(schedule, evaluation, reward, looks)
