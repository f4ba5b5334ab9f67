"""How the schedule changes with the price of an inspection."""

from __future__ import annotations

from dataclasses import dataclass

from actmeasure.evaluation import Evaluation
from actmeasure.inspection.complete import completed
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.envelope import Line, envelope
from actmeasure.planners.frontier import Frontier
from actmeasure.planners.solution import Solution
from actmeasure.schedule import Schedule

__all__ = ["PricedSchedule", "at_price", "own_price", "priced_schedules"]


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


def priced_schedules(
    frontier: Frontier, own: Solution, tolerance: float, clock: Clock
) -> tuple[tuple[PricedSchedule, ...], bool]:
    """The frontier's schedules and the one solved for the own price, each where it is the best; and whether time sufficed.

    The own one is solved more closely than the frontier; with it, the best at the own price is exactly the plan.
    """
    model = own.model
    lines = [
        Line(piece.schedule, piece.evaluation, piece.discounted_reward, piece.discounted_looks)
        for piece in frontier.pieces
    ]
    lines.append(_own_line(own))
    found, in_time = [], True
    for piece in envelope(lines, 0.0):
        inside = _inside(piece.low, piece.high, own_price(model))
        schedule = piece.line.schedule
        if clock.is_over:
            in_time = False
        else:
            schedule = completed(at_price(model, inside), schedule, tolerance, _left(clock))
        found.append(
            PricedSchedule(
                piece.low, piece.high, schedule, frozenset(piece.line.schedule), inside,
                piece.line.reward, piece.line.looks, piece.line.evaluation,
            )
        )  # fmt: skip
    return tuple(found), in_time


def _own_line(own: Solution) -> Line:
    evaluation = own.evaluation
    looks = evaluation.discounted_measurements
    if not isinstance(own.model.measuring_cost, float):
        looks = max(0.0, evaluation.discounted_reward - evaluation.discounted_return)
    return Line(own.schedule, evaluation, evaluation.discounted_reward, looks)


def _inside(low: float, high: float, own: float) -> float:
    if low <= own <= high:
        return own
    return (low + high) / 2 if high < float("inf") else 1.25 * low or 1.0


def _left(clock: Clock) -> float | None:
    return None if clock.limit is None else max(clock.limit - clock.seconds, 0.05)
