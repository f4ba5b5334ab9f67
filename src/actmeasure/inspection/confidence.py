"""Uncertainty of a plan whose model is a fit: the plan compared with the best plans of models fitted to resampled records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.inspection.schedules import completed, valid_on_other_models
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.baselines import Control
from actmeasure.planning.budget import Budget
from actmeasure.planning.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Agreement", "Confidence", "confidence"]

#: Quantiles of the middle 90 % of the models.
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True)
class Agreement:
    """Agreement of the resampled models with the plan after one state.

    Attributes
    ----------
    same_plan, same_action : float
        Fraction of the models whose best plan is the same, and whose best plan begins with the same action.
    earliest, latest : float
        Ends of the middle 90 % of their times until the next inspection, in periods; infinite without an inspection.
    """

    same_plan: float
    same_action: float
    earliest: float
    latest: float


@dataclass(frozen=True, eq=False)
class Confidence:
    """The plan evaluated in the resampled models.

    Attributes
    ----------
    agreement : dict from state to Agreement
        The key of a start that is not shown is None.
    values : float64 array, shape (n_models,)
        Discounted return of the plan in each model, exactly.
    best : float64 array, shape (n_models,)
        Discounted return of each model's best plan.
    asked : int
        Number of resampled models; fewer are solved if time is short.
    """

    agreement: dict[int | None, Agreement]
    values: FloatArray
    best: FloatArray
    asked: int

    @property
    def losses(self) -> FloatArray:
        """Loss of the plan against the best plan of each model, shape (n_models,)."""
        return np.maximum(self.best - self.values, 0.0)

    @property
    def same_schedule(self) -> float:
        """Mean over the plans of the fraction of models with the same plan."""
        return float(np.mean([one.same_plan for one in self.agreement.values()]))


def confidence(
    model: Model,
    schedule: Schedule,
    others: Iterable[Model],
    asked: int,
    tolerance: float,
    budget: Budget,
    tell: Callable[[str], None],
) -> Confidence | None:
    """Solve each resampled model of `others` and compare with the schedule; None if there was no time for any."""
    # The same behaviour can be written as several plans; without claims on known states there is only one.
    plans = valid_on_other_models(model, schedule)
    followed = _for_all_states(model, plans)
    schedules: list[Schedule] = []
    values, best = [], []
    for number, other in enumerate(others, start=1):
        if budget.is_over:
            break
        tell(f"resampled model {number} of {asked}{_time_left(budget, number - 1, asked)}")
        try:
            solution = solve(other, "optimal", tolerance, budget=budget.separate())
        except PlanError:  # no time for a bound on it
            break
        schedules.append(
            valid_on_other_models(other, completed(other, solution.schedule, tolerance, budget.separate()))
        )
        values.append(evaluate(other, followed).discounted_return)
        best.append(max(solution.value, values[-1]))
    if not schedules:
        return None
    states: list[int | None] = [*schedule, *([None] if schedule.start is not None else [])]
    agreement = {state: _agreement(_plan(plans, state), [_plan(one, state) for one in schedules]) for state in states}
    return Confidence(agreement, np.array(values), np.array(best), asked)


def _time_left(budget: Budget, done: int, asked: int) -> str:
    """Return the estimated remaining time for a progress message; empty before the first model is done."""
    return f", about {budget.elapsed / done * (asked - done):.0f} s left" if done else ""


def _for_all_states(model: Model, schedule: Schedule) -> Schedule:
    """Return the schedule with, for states without a plan, the best action under full observability, then a measurement."""
    actions = Control(model).actions
    missing = {
        int(state): BlindPlan((int(actions[state]),), then="measure")
        for state in np.flatnonzero(~model.terminal)
        if int(state) not in schedule
    }
    return Schedule(missing | dict(schedule), model.n_states, schedule.start)


def _plan(schedule: Schedule, state: int | None) -> BlindPlan | None:
    return schedule.start if state is None else schedule.get(state)


def _agreement(plan: BlindPlan | None, others: list[BlindPlan | None]) -> Agreement:
    assert plan is not None  # the schedule has a plan for each of its states
    known = [other for other in others if other is not None]
    waits = [len(other) if other.then == "measure" else math.inf for other in known]
    return Agreement(
        same_plan=sum(other == plan for other in known) / len(others),
        same_action=sum(other.actions[0] == plan.actions[0] for other in known) / len(others),
        earliest=_quantile(waits, LOW),
        latest=_quantile(waits, HIGH),
    )


def _quantile(values: list[float], share: float) -> float:
    """Return a quantile without interpolation, which would give a time of no plan, or infinity minus infinity."""
    if not values:
        return math.nan
    return sorted(values)[min(len(values) - 1, math.floor(share * len(values)))]
