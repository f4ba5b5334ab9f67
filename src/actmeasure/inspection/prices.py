"""The best schedule as a function of the price of an inspection."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.inspection.schedules import completed, is_rounding, reachable_part
from actmeasure.model import Model
from actmeasure.planning.budget import Budget
from actmeasure.planning.frontier import Frontier, FrontierPiece
from actmeasure.planning.solution import Solution
from actmeasure.planning.tradeoff import Piece, PriceLine, envelope, envelope_values, price_at_bound
from actmeasure.schedule import Schedule

__all__ = ["PricedSchedule", "at_price", "own_price", "priced_schedules", "with_schedules"]


@dataclass(frozen=True, eq=False)
class PricedSchedule:
    """The best schedule found in a range of prices of an inspection.

    Attributes
    ----------
    low, high : float
        Ends of the range; `high` is infinite for the last one.
    schedule : Schedule
        Also has plans for states that are not observed when it is followed; these are the best at the price `inside`.
    expected : frozenset of int
        States that can be observed when it is followed; their plans are the best in the whole range.
    inside : float
        A price in the range.
    reward, looks : float
        Discounted reward and number of inspections: the value is `reward - price * looks`. If the costs of an inspection are a
        table, `looks` is their discounted sum at price 1.
    evaluation : Evaluation
        At the model's own price.
    """

    low: float
    high: float
    schedule: Schedule
    expected: frozenset[int]
    inside: float
    reward: float
    looks: float
    evaluation: Evaluation

    def value(self, price: float) -> float:
        """Return the discounted return when an inspection costs `price`."""
        return self.reward - price * self.looks


def own_price(model: Model) -> float:
    """Return the model's price of an inspection; 1 if it is a table of costs, which a price multiplies."""
    return model.measuring_cost if isinstance(model.measuring_cost, float) else 1.0


def at_price(model: Model, price: float) -> Model:
    """Return the model with another price of an inspection; a table of costs is multiplied by it."""
    cost = model.measuring_cost
    return model.replace(measuring_cost=price if isinstance(cost, float) else price * cost)


def with_schedules(frontier: Frontier, schedules: Iterable[Schedule]) -> Frontier:
    """Return the frontier with other schedules where they are better than its own; its upper bounds do not change."""
    model, horizon = frontier.model, frontier.pieces[0].evaluation.horizon
    lines = _lines(frontier)
    for schedule in schedules:
        line = _line(model, reachable_part(model, schedule), evaluate(model, schedule, horizon))
        is_finite = math.isfinite(line.reward) and math.isfinite(line.looks)
        if is_finite and not any(_is_same(line, one) for one in lines):
            lines.append(line)
    pieces = envelope(lines, 0.0)
    prices, upper = frontier.prices, frontier.upper
    where = np.concatenate(
        [prices, [piece.low for piece in pieces if piece.low <= prices[-1] or pieces[-1].line.looks == 0]]
    )
    gap = max(0.0, float((np.interp(where, prices, upper) - envelope_values(pieces, where)).max()))
    gap = min(gap, frontier.gap) if math.isfinite(frontier.gap) else frontier.gap
    return replace(
        frontier,
        pieces=tuple(
            FrontierPiece(one.low, one.high, one.line.schedule, one.line.looks, one.line.evaluation) for one in pieces
        ),
        lower=envelope_values(pieces, prices),
        gap=gap,
        break_even=_break_even(frontier, pieces),
        stopped="closed" if gap <= frontier.tolerance else frontier.stopped,
    )


def _break_even(frontier: Frontier, pieces: list[Piece]) -> tuple[float, float]:
    """Return the range of the break-even price: its lower end is the frontier's, its upper end may be lower than before."""
    low, high = frontier.break_even
    if pieces[-1].line.looks > 0:
        return low, high
    blind = pieces[-1].line.reward
    confirmed = price_at_bound(frontier.prices, frontier.upper, blind + frontier.tolerance)
    return low, max(low, pieces[-1].low, confirmed)


def _is_same(one: PriceLine, other: PriceLine) -> bool:
    """Return whether two schedules have the same value at every price, up to rounding."""
    return is_rounding(one.reward - other.reward, one.reward) and is_rounding(one.looks - other.looks, one.looks)


def _lines(frontier: Frontier) -> list[PriceLine]:
    """Return the values of the frontier's schedules as lines in the price."""
    return [
        PriceLine(piece.schedule, piece.evaluation, piece.discounted_reward, piece.discounted_looks)
        for piece in frontier.pieces
    ]


def priced_schedules(
    frontier: Frontier, own: Solution, tolerance: float, budget: Budget
) -> tuple[tuple[PricedSchedule, ...], bool]:
    """Return the best schedule of every price range, of the frontier's and the plan, and whether there was time for all.

    The plan `own` is solved to a smaller tolerance than the frontier; with it, the schedule at the own price is the plan.
    """
    model = own.model
    line = _line(model, own.schedule, own.evaluation)
    lines = [line, *(one for one in _lines(frontier) if not _is_same(one, line))]
    found, in_time = [], True
    for piece in envelope(lines, 0.0):
        inside = _inside(piece.low, piece.high, own_price(model))
        schedule = piece.line.schedule
        if budget.is_over:
            in_time = False
        else:
            schedule = completed(at_price(model, inside), schedule, tolerance, budget.separate())
        found.append(
            PricedSchedule(
                piece.low, piece.high, schedule, frozenset(piece.line.schedule), inside,
                piece.line.reward, piece.line.looks, piece.line.evaluation,
            )
        )  # fmt: skip
    return tuple(found), in_time


def _line(model: Model, schedule: Schedule, evaluation: Evaluation) -> PriceLine:
    """Return the value of a schedule as a line in the price."""
    reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
    if not isinstance(model.measuring_cost, float):
        looks = max(0.0, reward - evaluation.discounted_return)
        looks = 0.0 if is_rounding(looks, reward) else looks
    return PriceLine(schedule, evaluation, reward, looks)


def _inside(low: float, high: float, own: float) -> float:
    """Return a price in a range: the own one if it is there, otherwise the middle, or a price above an infinite range's low."""
    if low <= own <= high:
        return own
    return (low + high) / 2 if high < float("inf") else 1.25 * low or 1.0
