"""Why a plan looks when it does: the worth of looking now against later, step by step."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.belief import Belief
from actmeasure.errors import PlanError, quoted, unknown_name
from actmeasure.model import Model
from actmeasure.planners.explanation import ExplainedStep, Explanation
from actmeasure.planners.weighing import LookValues, weigh
from actmeasure.planners.wording import some_states
from actmeasure.schedule import BlindPlan
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    from actmeasure.planners.solution import Solution

__all__ = ["explain"]

#: A plan that goes on for ever is explained for so many steps, or for its own length if that is more.
STEPS_SHOWN = 10


def explain(solution: Solution, state: int | str | None = None) -> Explanation:
    """Follow the plan for a known state (None: the start) and weigh a look at each of its steps."""
    model = solution.model
    known = _asked_state(solution, state)
    plan, belief = _plan_and_belief(solution, known)
    beliefs, actions, chances = _follow(model, plan, belief)
    values = LookValues(model, _known_values(solution))
    ahead, looking = weigh(values, plan, beliefs, actions)
    steps = []
    for number, (action, before) in enumerate(zip(actions, beliefs[:-1], strict=True)):
        looks = plan.decision(number).measure
        waiting = values.one_later(before, action) if looks else ahead[number]
        running = float(np.prod(chances[:number]))
        steps.append(ExplainedStep(number + 1, action, before, running, looking[number], waiting, looks))
    return Explanation(model, known, plan, float(ahead[0]), tuple(steps))


def _known_values(solution: Solution) -> FloatArray:
    """What is achieved from each state once it is known, shape (S,); NaN where that is not known.

    Minus infinity is the truth about a state that has a plan, but elsewhere only a bound that says nothing.
    """
    is_planned = np.zeros(solution.model.n_states, np.bool_)
    is_planned[list(solution.schedule)] = True
    return np.where(is_planned | np.isfinite(solution.values), solution.values, np.nan)


def _asked_state(solution: Solution, state: int | str | None) -> int | None:
    """The state whose plan is meant; None for a start that is not shown."""
    model = solution.model
    if isinstance(state, str):
        return _state_named(model, state)
    if state is not None:
        return _state_numbered(solution, state)
    if not model.start_is_known:
        return None
    if len(model.initial_states) > 1:
        raise PlanError(
            f"an episode may begin in {len(model.initial_states)} states and shows which; say which one to explain: "
            f"{some_states(model, model.initial_states.tolist())}"
        )
    return int(model.initial_states[0])


def _state_named(model: Model, name: str) -> int:
    names = model.state_names
    if names is None:
        raise PlanError(f"the states of this model have no names, got {quoted(name)}; give the state's number")
    if name not in names:
        raise PlanError(unknown_name("state", name, names))
    return names.index(name)


def _state_numbered(solution: Solution, state: int) -> int:
    model = solution.model
    try:
        number = index(state)
    except TypeError:
        number = None
    if number is None or isinstance(state, bool):
        raise PlanError(f"the state is {quoted(state)}, expected its number, its name, or None for the start")
    if not 0 <= number < model.n_states:
        raise PlanError(
            f"there is no state {number}, the model has the states 0 to {model.n_states - 1}; the schedule has plans for "
            f"{some_states(model, list(solution.schedule))}"
        )
    return number


def _plan_and_belief(solution: Solution, state: int | None) -> tuple[BlindPlan, Belief]:
    model, schedule = solution.model, solution.schedule
    if state is None and schedule.start is not None:
        return schedule.start, Belief.start(model)
    if state is None or state not in schedule:
        named = "the start" if state is None else model.describe_state(state)
        raise PlanError(
            f"the schedule has no plan for {named}, which it never comes to know; it has plans for "
            f"{some_states(model, list(schedule))}"
        )
    return schedule[state], Belief.at(state)


def _follow(model: Model, plan: BlindPlan, belief: Belief) -> tuple[list[Belief], list[int], list[float]]:
    """Beliefs before each step and after the last, the actions, and each step's chance that the episode goes on."""
    count = len(plan) if plan.then != "repeat" else max(len(plan), STEPS_SHOWN)
    beliefs = [belief]
    actions: list[int] = []
    chances: list[float] = []
    while len(actions) < count and not belief.is_over:
        action = plan.decision(len(actions)).action
        chances.append(belief.running_probability(model, action))
        belief = belief.predict(model, action)
        actions.append(action)
        beliefs.append(belief)
    return beliefs, actions, chances
