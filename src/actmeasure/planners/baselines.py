"""What people do today: look always, or by the calendar."""

from __future__ import annotations

import numpy as np

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.control import Control
from actmeasure.planners.plan import Plan
from actmeasure.planners.values import values_of
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["always", "control_actions", "every"]


def control_actions(control: Control) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The control action in every state, shape (S,); -1 in terminal ones."""
    model = control.model
    chosen = [-1 if model.terminal[state] else control(Belief.at(state)) for state in range(model.n_states)]
    return np.array(chosen, dtype=np.int64)


def always(model: Model, tolerance: float, clock: Clock) -> Plan:
    """Look at every step, with the control that is best when looking is free."""
    control = Control(model)
    start = None if model.start_is_known else control(Belief.start(model))
    schedule = Schedule.always_measure(control_actions(control), start)
    return Plan(schedule, values_of(model, schedule))


def every(model: Model, k: int, clock: Clock) -> Plan:
    """Look at every k-th step, with act-then-measure's control in between."""
    control = Control(model)
    start, found = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, found = _calendar(control, Belief.start(model), k)
    plans: dict[int, BlindPlan] = {}
    while found:
        state = found.pop()
        if state not in plans:
            clock.check("the calendar's plans")
            plans[state], further = _calendar(control, Belief.at(state), k)
            found += further
    schedule = Schedule(plans, model.n_states, start)
    return Plan(schedule, values_of(model, schedule))


def _calendar(control: Control, belief: Belief, k: int) -> tuple[BlindPlan, list[int]]:
    """k actions from a belief, the last with a look, and the states that it may show."""
    actions: list[int] = []
    for _ in range(k):
        if belief.is_over:
            return BlindPlan(tuple(actions), then="end"), []
        actions.append(control(belief))
        belief = belief.predict(control.model, actions[-1])
    return BlindPlan(tuple(actions), then="measure"), [int(state) for state in belief.states]
