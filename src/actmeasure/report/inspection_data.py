"""What the page of an inspection plan shows, as plain data for its script.

The script draws what is here and computes nothing but straight lines in the price and beliefs, step by step, from the
transitions that its plans need.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.evaluation import Evaluation
from actmeasure.inspection.advice import Advice, StatePlan, plan_words
from actmeasure.inspection.policies import Policy
from actmeasure.inspection.prices import PricedSchedule, at_price
from actmeasure.inspection.text import price_words
from actmeasure.model import Model
from actmeasure.planners.values import values_of
from actmeasure.planners.weighing import LookValues
from actmeasure.report.inspection_beliefs import Moves, steps_shown
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["page_data"]

#: The page has so many states at most, those that are expected first.
MOST_ROWS = 400
#: The prices on the page go on so far beyond the last change of schedule.
MARGIN = 1.25
#: Schedules with less than this share of the inspections that would be made for free hardly inspect.
FEW_LOOKS = 1e-3


def page_data(advice: Advice) -> dict[str, Any]:
    """Everything on the page; numbers that are not finite are None."""
    rows = advice.rows[:MOST_ROWS]
    pieces = advice.prices or (_only_piece(advice),)
    plans = _Plans(advice)
    shown = [_piece(advice, rows, piece, plans) for piece in pieces]
    moves = Moves(advice.model)
    made = plans.made
    drawn = [
        all(moves.add(row.state, made[piece["plans"][n]][0]) for piece in shown if piece["plans"][n] is not None)
        for n, row in enumerate(rows)
    ]
    found = {
        "units": {
            "currency": advice.units.currency,
            "period": advice.units.period,
            "figure": advice.units.figure,
            "sign": -1 if advice.units.is_cost else 1,
        },
        "price": advice.price,
        "onePrice": advice.has_one_price,
        "priceWords": price_words(advice),
        "mostPrice": _most_price(advice),
        "bound": _bound(advice),
        "rows": [_row(advice, row, is_drawn) for row, is_drawn in zip(rows, drawn, strict=True)],
        "plans": [_plan(plan, words) for plan, words in made],
        "pieces": shown,
        "moves": moves.data(),
        "policies": [_policy(advice, policy) for policy in advice.policies],
    }
    return {name: _finite(value) for name, value in found.items()}


class _Plans:
    """Plans that differ in what they do or in words, numbered as they are met."""

    def __init__(self, advice: Advice) -> None:
        self._advice = advice
        self._numbers: dict[tuple[BlindPlan, str], int] = {}

    @property
    def made(self) -> list[tuple[BlindPlan, str]]:
        return list(self._numbers)

    def number(self, plan: BlindPlan | None, state: int | None) -> int | None:
        if plan is None:
            return None
        words = plan_words(self._advice.model, self._advice.units, state, plan)
        return self._numbers.setdefault((plan, words), len(self._numbers))


def _plan(plan: BlindPlan, words: str) -> dict[str, Any]:
    return {
        "words": words,
        "actions": list(plan.actions),
        "then": plan.then,
        "repeat": plan.repeat,
        "shown": steps_shown(plan),
    }


def _only_piece(advice: Advice) -> PricedSchedule:
    """The plan alone, where there was no time for other prices."""
    result = advice.evaluation
    looks = result.discounted_measurements
    if not advice.has_one_price:
        looks = result.discounted_reward - result.discounted_return
    return PricedSchedule(
        advice.price,
        advice.price,
        advice.schedule,
        advice.expected,
        advice.price,
        result.discounted_reward,
        looks,
        result,
    )


def _piece(advice: Advice, rows: list[StatePlan], piece: PricedSchedule, plans: _Plans) -> dict[str, Any]:
    """A schedule with its prices, and what it is worth from each row as a line in the price: reward - price * looks."""
    rewards, looks = _lines(advice.model, piece.schedule)
    states = [row.state for row in rows]
    start = [piece.reward, piece.looks]
    lines = [start if state is None else [float(rewards[state]), float(looks[state])] for state in states]
    return {
        "low": piece.low,
        "high": piece.high,
        "inside": piece.inside,
        "reward": piece.reward,
        "looks": piece.looks,
        **_long_run(advice, piece.evaluation),
        "plans": [plans.number(_plan_of(piece.schedule, state), state) for state in states],
        "expected": [state is None or state in piece.expected for state in states],
        "rewards": [line[0] for line in lines],
        "rowLooks": [line[1] for line in lines],
    }


def _plan_of(schedule: Schedule, state: int | None) -> BlindPlan | None:
    return schedule.start if state is None else schedule.get(state)


def _lines(model: Model, schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Discounted reward and looks (cost at price 1, where costs are a table) from each known state, shape (S,)."""
    rewards = values_of(at_price(model, 0.0), schedule)
    with np.errstate(invalid="ignore"):  # without a plan there is neither
        return rewards, rewards - values_of(at_price(model, 1.0), schedule)


def _row(advice: Advice, row: StatePlan, is_drawn: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "state": row.state,
        "name": "the start" if row.state is None else row.name,
        "expected": row.is_expected,
        "isFirst": row.state is None or row.state in advice.model.initial_states,
        "drawn": is_drawn,
        "gain": _gain(advice, row),
    }
    if row.agreement is not None:
        found["samePlan"], found["sameAction"] = row.agreement.same_plan, row.agreement.same_action
    return found


def _gain(advice: Advice, row: StatePlan) -> float | None:
    """What it is worth to look when the plan says so instead of a period later, at the price of now."""
    if row.inspect_after is None:
        return None
    belief = Belief.start(advice.model) if row.state is None else Belief.at(row.state)
    for action in row.plan.actions[:-1]:
        belief = belief.predict(advice.model, action)
    values = LookValues(advice.model, np.where(np.isinf(advice.values), np.nan, advice.values))
    last = row.plan.actions[-1]
    return float(values.looking(belief, last) - values.one_later(belief, last))


def _most_price(advice: Advice) -> float:
    """The highest price on the page: a little beyond the price of now and the last one at which inspections are worth a word."""
    most = max((piece.looks for piece in advice.prices), default=0.0)
    last = [advice.price]
    for piece in advice.prices:
        if piece.looks > FEW_LOOKS * most:
            last.append(piece.high if math.isfinite(piece.high) else piece.low)
    return MARGIN * max(last) or 1.0


def _bound(advice: Advice) -> list[list[float]]:
    """Prices, and what nothing can be better than there; straight lines in between hold too."""
    if advice.frontier is None:
        return [[advice.price], [advice.upper]]
    return [advice.frontier.prices.tolist(), advice.frontier.upper.tolist()]


def _policy(advice: Advice, policy: Policy) -> dict[str, Any]:
    result = policy.evaluation
    looks = (
        result.discounted_measurements if advice.has_one_price else result.discounted_reward - result.discounted_return
    )
    return {
        "reward": result.discounted_reward,
        "looks": looks,
        **_long_run(advice, result),
    }


def _long_run(advice: Advice, result: Evaluation) -> dict[str, float | None]:
    """Averages per period as a line in the price, `average - price * averageCost`; or the number of looks where it ends."""
    reward, net, looks = result.average_reward, result.average_return, result.average_measurements
    if reward is None or net is None or looks is None:
        return {"average": None, "averageCost": None, "looksPerPeriod": None, "looksInAll": result.measurements}
    cost = looks if advice.has_one_price else reward - net
    return {"average": reward, "averageCost": cost, "looksPerPeriod": looks, "looksInAll": None}


def _finite(found: Any) -> Any:
    """The same with None for numbers that JSON does not have."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, dict):
        return {name: _finite(value) for name, value in found.items()}
    return [_finite(value) for value in found] if isinstance(found, (list, tuple, Iterator)) else found
