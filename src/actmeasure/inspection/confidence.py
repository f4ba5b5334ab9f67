"""How sure the advice is when the model is a fit: the same question asked of models fitted to resampled records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.inspection.schedules import completed, without_claims
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.baselines import Control
from actmeasure.planning.budget import Budget
from actmeasure.planning.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Agreement", "Confidence", "confidence"]

#: The middle 90 % of the models.
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True)
class Agreement:
    """How the resampled models see the plan after one state.

    Attributes
    ----------
    same_plan, same_action : float
        Share of the models whose best plan is the same, and whose plan begins with the same action.
    earliest, latest : float
        The middle 90 % of their times until the next inspection, in periods; infinite where there is none.
    """

    same_plan: float
    same_action: float
    earliest: float
    latest: float


@dataclass(frozen=True, eq=False)
class Confidence:
    """What the uncertainty of a fit means for the plan.

    Attributes
    ----------
    agreement : dict from state to Agreement
        None is the key of a start that is not shown.
    values : float64 array, shape (n_models,)
        What the plan is worth, exactly, in each of the models.
    best : float64 array, shape (n_models,)
        What the best plan for each model is worth in it.
    asked : int
        So many models there are; fewer were solved if time was short.
    """

    agreement: dict[int | None, Agreement]
    values: FloatArray
    best: FloatArray
    asked: int

    @property
    def losses(self) -> FloatArray:
        """What following the plan loses against the best plan, if that model is the true one, shape (n_models,)."""
        return np.maximum(self.best - self.values, 0.0)

    @property
    def same_schedule(self) -> float:
        """The mean share of models that agree with a plan."""
        return float(np.mean([one.same_plan for one in self.agreement.values()]))

    @property
    def note(self) -> str:
        """Whether all models were asked, in a sentence; empty if so."""
        if len(self.values) == self.asked:
            return ""
        return f"There was time for {len(self.values)} of {self.asked} resampled models; allow more for the rest."


def confidence(
    model: Model,
    schedule: Schedule,
    others: Iterable[Model],
    asked: int,
    tolerance: float,
    budget: Budget,
    tell: Callable[[str], None],
) -> Confidence | None:
    """Solve each of the other models, and compare; None if there was no time for any."""
    # The same behaviour may be written in several ways, but in one only without claims.
    plans = without_claims(model, schedule)
    followed = _for_all_states(model, plans)
    schedules: list[Schedule] = []
    values, best = [], []
    for number, other in enumerate(others, start=1):
        if budget.is_over:
            break
        tell(f"resampled model {number} of {asked}{_time_left(budget, number - 1, asked)}")
        limit = budget.left(at_least=0.05)
        try:
            solution = solve(other, "optimal", tolerance, limit)
        except PlanError:  # no time for a bound on it
            break
        schedules.append(without_claims(other, completed(other, solution.schedule, tolerance, limit)))
        values.append(evaluate(other, followed).discounted_return)
        best.append(max(solution.value, values[-1]))
    if not schedules:
        return None
    states: list[int | None] = [*schedule, *([None] if schedule.start is not None else [])]
    agreement = {state: _agreement(_plan(plans, state), [_plan(one, state) for one in schedules]) for state in states}
    return Confidence(agreement, np.array(values), np.array(best), asked)


def _time_left(budget: Budget, done: int, asked: int) -> str:
    return f", about {budget.elapsed / done * (asked - done):.0f} s left" if done else ""


def _for_all_states(model: Model, schedule: Schedule) -> Schedule:
    """The schedule, and where it has no plan, the action that is best when looking is free, with a look."""
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
    assert plan is not None  # it is one of the schedule's own
    known = [other for other in others if other is not None]
    waits = [len(other) if other.then == "measure" else math.inf for other in known]
    return Agreement(
        same_plan=sum(other == plan for other in known) / len(others),
        same_action=sum(other.actions[0] == plan.actions[0] for other in known) / len(others),
        earliest=_quantile(waits, LOW),
        latest=_quantile(waits, HIGH),
    )


def _quantile(values: list[float], share: float) -> float:
    """One of the values: interpolation would turn two times into one that nobody advises, or into no number."""
    if not values:
        return math.nan
    return sorted(values)[min(len(values) - 1, math.floor(share * len(values)))]
