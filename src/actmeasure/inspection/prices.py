"""How the schedule changes with the price of an inspection."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.inspection.schedules import completed, is_rounding, schedule_met
from actmeasure.model import Model
from actmeasure.planning.budget import Budget
from actmeasure.planning.frontier import Frontier, FrontierPiece
from actmeasure.planning.solution import Solution
from actmeasure.planning.tradeoff import Line, Piece, envelope, envelope_values, price_at_bound
from actmeasure.schedule import Schedule

__all__ = ["PricedSchedule", "at_price", "own_price", "priced_schedules", "with_schedules"]


@dataclass(frozen=True, eq=False)
class PricedSchedule:
    """The best schedule found between two prices of an inspection.

    Attributes
    ----------
    low, high : float
        The prices; `high` is infinite for the last one.
    schedule : Schedule
        With plans also for states that it never comes to know; these are the best at the price `inside`.
    expected : frozenset of int
        The states that it may come to know, whose plans are the best at all prices between the two.
    inside : float
        A price between the two.
    reward, looks : float
        Discounted, so that the schedule is worth `reward - price * looks` (looks are costs at price 1 where those are a table).
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
        """Discounted return when an inspection costs `price`."""
        return self.reward - price * self.looks


def own_price(model: Model) -> float:
    """The model's price of an inspection; 1 where it is a table, which a price multiplies."""
    return model.measuring_cost if isinstance(model.measuring_cost, float) else 1.0


def at_price(model: Model, price: float) -> Model:
    """The model at another price of an inspection; a table of costs is multiplied by it."""
    cost = model.measuring_cost
    return model.replace(measuring_cost=price if isinstance(cost, float) else price * cost)


def with_schedules(frontier: Frontier, schedules: Iterable[Schedule]) -> Frontier:
    """The frontier with other schedules on it, where they are better than its own; its bounds hold as they are."""
    model, horizon = frontier.model, frontier.pieces[0].evaluation.horizon
    lines = _lines(frontier)
    for schedule in schedules:
        line = _line(model, schedule_met(model, schedule), evaluate(model, schedule, horizon))
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
    """The price up to which looking certainly pays stays; from where on never looking is the best may be less far off."""
    low, high = frontier.break_even
    if pieces[-1].line.looks > 0:
        return low, high
    blind = pieces[-1].line.reward
    confirmed = price_at_bound(frontier.prices, frontier.upper, blind + frontier.tolerance)
    return low, max(low, pieces[-1].low, confirmed)


def _is_same(one: Line, other: Line) -> bool:
    """Whether two schedules come to the same at every price, up to rounding."""
    return is_rounding(one.reward - other.reward, one.reward) and is_rounding(one.looks - other.looks, one.looks)


def _lines(frontier: Frontier) -> list[Line]:
    return [
        Line(piece.schedule, piece.evaluation, piece.discounted_reward, piece.discounted_looks)
        for piece in frontier.pieces
    ]


def priced_schedules(
    frontier: Frontier, own: Solution, tolerance: float, budget: Budget
) -> tuple[tuple[PricedSchedule, ...], bool]:
    """The frontier's schedules and the one solved for the own price, each where it is the best; and whether time sufficed.

    The own one is solved more closely than the frontier; with it, the best at the own price is exactly the plan.
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
            schedule = completed(at_price(model, inside), schedule, tolerance, _left(budget))
        found.append(
            PricedSchedule(
                piece.low, piece.high, schedule, frozenset(piece.line.schedule), inside,
                piece.line.reward, piece.line.looks, piece.line.evaluation,
            )
        )  # fmt: skip
    return tuple(found), in_time


def _line(model: Model, schedule: Schedule, evaluation: Evaluation) -> Line:
    reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
    if not isinstance(model.measuring_cost, float):
        looks = max(0.0, reward - evaluation.discounted_return)
        looks = 0.0 if is_rounding(looks, reward) else looks
    return Line(schedule, evaluation, reward, looks)


def _inside(low: float, high: float, own: float) -> float:
    if low <= own <= high:
        return own
    return (low + high) / 2 if high < float("inf") else 1.25 * low or 1.0


def _left(budget: Budget) -> float | None:
    return budget.left(at_least=0.05)
