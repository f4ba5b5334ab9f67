"""Baselines: look at every step (`always`), or at every k-th step (`every-k`), with act-then-measure's control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.evaluation import evaluate
from actmeasure.kernels.stopping import CONTROL_TIE
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import ALMOST_ONE, free_action_values, informed_bounds, mdp_values, start_bound
from actmeasure.planning.budget import Budget
from actmeasure.planning.solution import Plan
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Always", "Control", "Every", "always_schedule", "values_of"]


@dataclass(frozen=True)
class Always:
    """Look at every step, with the control that is best when looking is free."""

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule, with the fast informed bound on the optimum."""
        control = Control(model, budget)
        schedule = always_schedule(control)
        return Plan(schedule, _upper(control, budget), values_of(model, schedule))


@dataclass(frozen=True)
class Every:
    """Look at every k-th step, with act-then-measure's control in between.

    Parameters
    ----------
    k : int
    """

    k: int

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule, with the fast informed bound on the optimum."""
        control = Control(model, budget)
        start, waiting = None, [int(state) for state in model.initial_states]
        if not model.start_is_known:
            start, waiting = self._plan(control, Belief.start(model), budget)
        plans: dict[int, BlindPlan] = {}
        while waiting:
            state = waiting.pop()
            if state not in plans:
                plans[state], shown = self._plan(control, Belief.at(state), budget)
                waiting += shown
        schedule = Schedule(plans, model.n_states, start)
        return Plan(schedule, _upper(control, budget), values_of(model, schedule))

    def _plan(self, control: Control, belief: Belief, budget: Budget) -> tuple[BlindPlan, list[int]]:
        """Return k actions from a belief, the last with a look, and the states that the look may show."""
        actions: list[int] = []
        for _ in range(self.k):
            budget.check("the plans between two looks")
            if belief.is_over:
                return BlindPlan(tuple(actions), then="end"), []
            actions.append(control(belief))
            belief = belief.predict(control.model, actions[-1])
        return BlindPlan(tuple(actions), then="measure"), [int(state) for state in belief.states]


def _upper(control: Control, budget: Budget) -> float:
    return start_bound(control.model, *informed_bounds(control.model, budget, control.bounds))


class Control:
    """Act-then-measure's control: the action with the highest mean value over a belief if looking were free from then on.

    Ties go to the first action; without discount, to the one that ends the episode sooner.

    Parameters
    ----------
    model : Model
    budget : Budget, optional
        Without limits by default.

    Attributes
    ----------
    bounds : float64 array, shape (S,)
        Upper bounds on the values of states when looking is free.
    values : float64 array, shape (S, A)
        The same of actions, up to rounding.
    tie_values : float64 array, shape (S, A)
        The highest mean of these decides between actions of equal value.
    """

    def __init__(self, model: Model, budget: Budget | None = None) -> None:
        budget = budget or Budget()
        self.model = model
        self.bounds: FloatArray = mdp_values(model, budget)
        self.values: FloatArray = free_action_values(model, budget, self.bounds)
        self.tie_values: FloatArray = np.zeros_like(self.values)
        if model.discount == 1:
            self.tie_values = free_action_values(model.replace(discount=ALMOST_ONE), budget)

    @property
    def actions(self) -> npt.NDArray[np.int64]:
        """The control action in every state once it is known, shape (S,); -1 in terminal states."""
        return np.where(self.model.terminal, -1, _choose(self.values, self.tie_values))

    def __call__(self, belief: Belief) -> int:
        return int(_choose(belief.expected(self.values), belief.expected(self.tie_values)))


def _choose(means: FloatArray, ties: FloatArray) -> npt.NDArray[np.int64]:
    """Return the actions (last axis) with the highest mean, and among equals the first with the highest tie value."""
    best = means.max(axis=-1, keepdims=True)
    ties = np.where(means >= best - CONTROL_TIE * (1 + np.abs(best)), ties, -np.inf)
    return np.asarray(np.argmax(ties >= ties.max(axis=-1, keepdims=True) - CONTROL_TIE, axis=-1))


def always_schedule(control: Control) -> Schedule:
    """Return the schedule that takes the control action and looks, in every state."""
    start = None if control.model.start_is_known else control(Belief.start(control.model))
    return Schedule.always_measure(control.actions, start)


def values_of(model: Model, schedule: Schedule) -> FloatArray:
    """Return a schedule's discounted return from each known state, shape (S,): 0 if terminal, -infinity without a plan."""
    planned = schedule.plan_of_state >= 0
    values = np.where(model.terminal, 0.0, -np.inf)
    if planned.any():
        anywhere = model.replace(initial=planned / planned.sum(), reveal_start=True)
        values[planned] = evaluate(anywhere, schedule).values[planned]
    return values
