"""What people do today: look always, or by the calendar."""

from __future__ import annotations

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.planners.bounds import informed_bounds, start_bound
from actmeasure.planners.clock import Clock
from actmeasure.planners.control import Control
from actmeasure.planners.plan import Plan
from actmeasure.planners.values import values_of
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["always", "always_schedule", "every"]


def always(model: Model, tolerance: float, clock: Clock) -> Plan:
    """Look at every step, with the control that is best when looking is free."""
    control = Control(model, clock)
    schedule = always_schedule(control)
    return Plan(schedule, values_of(model, schedule), _upper(control, clock))


def always_schedule(control: Control) -> Schedule:
    """The control action in every state, and a look with each."""
    start = None if control.model.start_is_known else control(Belief.start(control.model))
    return Schedule.always_measure(control.actions, start)


def _upper(control: Control, clock: Clock) -> float:
    return start_bound(control.model, *informed_bounds(control.model, clock, control.bounds))


def every(model: Model, k: int, clock: Clock) -> Plan:
    """Look at every k-th step, with act-then-measure's control in between."""
    control = Control(model, clock)
    start, found = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, found = _calendar(control, Belief.start(model), k, clock)
    plans: dict[int, BlindPlan] = {}
    while found:
        state = found.pop()
        if state not in plans:
            plans[state], further = _calendar(control, Belief.at(state), k, clock)
            found += further
    schedule = Schedule(plans, model.n_states, start)
    return Plan(schedule, values_of(model, schedule), _upper(control, clock))


def _calendar(control: Control, belief: Belief, k: int, clock: Clock) -> tuple[BlindPlan, list[int]]:
    """k actions from a belief, the last with a look, and the states that it may show."""
    actions: list[int] = []
    for _ in range(k):
        clock.check("the calendar's plans")
        if belief.is_over:
            return BlindPlan(tuple(actions), then="end"), []
        actions.append(control(belief))
        belief = belief.predict(control.model, actions[-1])
    return BlindPlan(tuple(actions), then="measure"), [int(state) for state in belief.states]
