"""The best of all schedules in hand: no plan is advised while a better one is known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from actmeasure.chain import plan_chain
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners.solution import Solution
from actmeasure.schedule import Schedule

__all__ = ["best_in_hand", "is_rounding", "schedule_met"]

#: Exact values that differ by less than this, relatively, are the same up to rounding.
ROUNDING = 1e-9


def is_rounding(difference: float, value: float) -> bool:
    """Whether a difference between exact values may come from rounding alone."""
    return abs(difference) <= ROUNDING * (1 + abs(value))


def best_in_hand(solution: Solution, others: Iterable[tuple[str, Schedule]], upper: float) -> tuple[Solution, str]:
    """The solution, or the best of other schedules if that is better, and its name; empty for the solution itself.

    Parameters
    ----------
    solution : Solution
    others : pairs of name and schedule
    upper : float
        Another bound on the optimum; the tighter one is kept.
    """
    model = solution.model
    best, name = replace(solution, upper=max(min(solution.upper, upper), solution.value)), ""
    for other, schedule in others:
        evaluation = evaluate(model, schedule)
        value = evaluation.discounted_return
        if math.isnan(value) or value <= best.value or is_rounding(value - best.value, value):
            continue
        bound = max(best.upper, value)
        best = replace(best, schedule=schedule_met(model, schedule), evaluation=evaluation, lower=value, upper=bound)
        name = other
    return best, name


def schedule_met(model: Model, schedule: Schedule) -> Schedule:
    """The schedule with plans only for the states that someone who follows it may come to know."""
    states = np.unique(plan_chain(model, schedule).states)
    plans = {int(state): schedule[int(state)] for state in states if state >= 0 and int(state) in schedule}
    return Schedule(plans, schedule.n_states, schedule.start)
