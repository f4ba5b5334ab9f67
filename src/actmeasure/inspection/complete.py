"""Plans for the states that a schedule does not expect to see, and plans that hold in other models."""

from __future__ import annotations

import contextlib

import numpy as np

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.model import Model
from actmeasure.planners.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["completed", "without_claims"]

#: A model with more states gets plans for the states that its schedule comes to know only.
MOST_STATES = 500


def completed(model: Model, schedule: Schedule, tolerance: float, time_limit: float | None) -> Schedule:
    """The schedule with plans also for the states that it never comes to know, if those can be found in the time.

    What is best once a state is known does not depend on the start, so they are those of the model begun in any state.
    """
    running = ~model.terminal
    if model.n_states > MOST_STATES or len(schedule) >= np.count_nonzero(running):
        return schedule
    anywhere = model.replace(initial=running / running.sum(), reveal_start=True)
    plans: dict[int, BlindPlan] = {}
    with contextlib.suppress(PlanError):  # without discount, there may be states from which nothing finite can be had
        plans = dict(solve(anywhere, "optimal", tolerance / running.sum(), time_limit).schedule)
    return Schedule(plans | dict(schedule), model.n_states, schedule.start)


def without_claims(model: Model, schedule: Schedule) -> Schedule:
    """The same behaviour on the model, in plans that can be followed on another one as well.

    That a state is known, or that it is over, may be true on one model only. So what follows on a known state is appended,
    and where it should be over, the last action goes on.
    """
    plans = {state: _endless(model, schedule, plan, Belief.at(state)) for state, plan in schedule.items()}
    start = None if schedule.start is None else _endless(model, schedule, schedule.start, Belief.start(model))
    return Schedule(plans, schedule.n_states, start)


def _endless(model: Model, schedule: Schedule, plan: BlindPlan, belief: Belief) -> BlindPlan:
    actions: list[int] = []
    begun: dict[int, int] = {}  # where in the actions the plan of a known state begins
    while plan.then == "known":
        for action in plan.actions:
            belief = belief.predict(model, action)
        actions += plan.actions
        state = belief.known
        if state is None or state not in schedule:  # the claim is not true even here, or nothing follows on it
            return BlindPlan(tuple(actions), then="measure")
        if state in begun:
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - begun[state])
        begun[state] = len(actions)
        plan = schedule[state]
    actions += plan.actions
    if plan.then == "end":
        return BlindPlan(tuple(actions), then="repeat", repeat=1)
    return BlindPlan(tuple(actions), then=plan.then, repeat=plan.repeat)
