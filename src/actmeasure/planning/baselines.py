"""Baselines: look at every step (`always`), or at every k-th step (`every-k`), with act-then-measure's control."""

from __future__ import annotations

from dataclasses import dataclass

from actmeasure.belief import Belief
from actmeasure.evaluation import values_of
from actmeasure.model import Model
from actmeasure.planning.belief_plans import always_plan, every_plan
from actmeasure.planning.bounds import Control, informed_bounds, start_bound
from actmeasure.planning.budget import Budget
from actmeasure.planning.solution import Plan
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Always", "Every", "always_schedule"]


@dataclass(frozen=True)
class Always:
    """Look at every step, with the control that is best when looking is free.

    Parameters
    ----------
    measurement : int or str, optional
        The measurement to make, by number or name; by default the one with which that is best.
    """

    measurement: int | str | None = None

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule, with the fast informed bound on the optimum; a policy graph where looks are not exact."""
        if not model.is_exact_look_model:
            return always_plan(model, budget, self.measurement)
        model.measurement_number(self.measurement or 1)  # an error where there is no such measurement
        control = Control(model, budget)
        schedule = always_schedule(control)
        return Plan(schedule, _upper(control, budget), values_of(model, schedule))


@dataclass(frozen=True)
class Every:
    """Look at every k-th step, with act-then-measure's control in between.

    Parameters
    ----------
    k : int
    measurement : int or str, optional
        The measurement to make, by number or name; by default the one with which that is best.
    """

    k: int
    measurement: int | str | None = None

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule, with the fast informed bound on the optimum; a policy graph where looks are not exact."""
        if not model.is_exact_look_model:
            return every_plan(model, budget, self.k, self.measurement)
        model.measurement_number(self.measurement or 1)  # an error where there is no such measurement
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


def always_schedule(control: Control) -> Schedule:
    """Return the schedule that takes the control action and looks, in every state."""
    start = None if control.model.start_is_known else control(Belief.start(control.model))
    return Schedule.always_measure(control.actions, start)
