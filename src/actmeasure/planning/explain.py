"""Explanations of a schedule: at each step of a plan, the value of looking and that of not looking."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.belief import Belief
from actmeasure.errors import PlanError, import_extra, quoted, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.text import belief_text, percent, short_number, some_states, text_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from actmeasure.planning.solution import Solution


__all__ = ["ExplainedStep", "Explanation", "LookValues", "asked_state", "explain", "known_values", "weigh"]

#: Least number of steps that are explained of a plan without end.
STEPS_SHOWN = 10


def explain(solution: Solution, state: int | str | None = None) -> Explanation:
    """Return the plan for a known state (None: the start) with the values of looking and not looking at each step."""
    model = solution.model
    known = asked_state(solution, state)
    plan, belief = _plan_and_belief(solution, known)
    beliefs, actions, chances = _follow(model, plan, belief)
    values = LookValues(model, known_values(solution))
    ahead, looking = weigh(values, plan, beliefs, actions)
    steps = []
    for number, (action, before) in enumerate(zip(actions, beliefs[:-1], strict=True)):
        looks = plan.decision(number).measure
        waiting = values.one_later(before, action) if looks else ahead[number]
        running = float(np.prod(chances[:number]))
        steps.append(ExplainedStep(number + 1, action, before, running, looking[number], waiting, looks))
    return Explanation(model, known, plan, float(ahead[0]), tuple(steps))


def known_values(solution: Solution) -> FloatArray:
    """Return what is achieved from each state once it is known, shape (S,); NaN where there is no plan and no finite bound."""
    is_planned = np.zeros(solution.model.n_states, np.bool_)
    is_planned[list(solution.schedule)] = True
    return np.where(is_planned | np.isfinite(solution.values), solution.values, np.nan)


def asked_state(solution: Solution, state: int | str | None) -> int | None:
    """Return the state that is to be explained; None for a start that is not shown."""
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
        has = (
            ""
            if solution.schedule is None
            else f"; the schedule has plans for {some_states(model, list(solution.schedule))}"
        )
        raise PlanError(f"there is no state {number}, the model has the states 0 to {model.n_states - 1}{has}")
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
    """Return beliefs before each step and after the last, the actions, and the probability of running on at each step."""
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


# Values of looking and not looking.


@dataclass(frozen=True, eq=False)
class LookValues:
    """Values of decisions at a belief, given the values of known states.

    Attributes
    ----------
    model : Model
    known : float64 array, shape (S,)
        Value of each state once it is known; NaN where that is not known.
    """

    model: Model
    known: FloatArray

    def looking(self, belief: Belief, action: int, otherwise: FloatArray | None = None) -> float:
        """Return the value of an action with a look, after which one may also follow a plan of values `otherwise`, shape (S,)."""
        price = float(belief.expected(self.model.measuring_costs[:, action]))
        known = self.known if otherwise is None else np.maximum(self.known, otherwise)
        return self.shown(belief, action, known) - price

    def shown(self, belief: Belief, action: int, known: FloatArray) -> float:
        """Return the value of an action after which the state is shown for free, with values `known`, shape (S,)."""
        after = belief.predict(self.model, action)
        return self.step(belief, action, 0.0 if after.is_over else float(after.expected(known)))

    def one_later(self, belief: Belief, action: int) -> float:
        """Return the value of an action without a look, then the best action with one, unless the state is known by then."""
        after = belief.predict(self.model, action)
        if after.is_over:
            return self.step(belief, action, 0.0)
        options = [self._look_if_needed(after, then) for then in range(self.model.n_actions)]
        known = [option for option in options if not np.isnan(option)]
        return self.step(belief, action, max(known, default=np.nan))

    def step(self, belief: Belief, action: int, ahead: float) -> float:
        """Return the value of an action after which the rest is worth `ahead`, if the episode still runs."""
        reward = float(belief.expected(self.model.rewards[:, action]))
        chance = belief.running_probability(self.model, action)
        return reward + (self.model.discount * chance * ahead if chance > 0 else 0.0)

    def _look_if_needed(self, belief: Belief, action: int) -> float:
        after = belief.predict(self.model, action)
        nothing_to_see = after.is_over or after.known is not None
        return self.shown(belief, action, self.known) if nothing_to_see else self.looking(belief, action)


def weigh(
    values: LookValues, plan: BlindPlan, beliefs: list[Belief], actions: list[int]
) -> tuple[list[float], list[float]]:
    """Return the value of the plan from each of its steps on, and that of looking with that step.

    After a look one may still go on with the plan, so no state that is seen is worth less than that.
    """
    model = values.model
    rest = values.known
    if plan.then == "repeat" and not beliefs[-1].is_over:
        rest = _tail_values(model, plan, beliefs[-1], len(actions))
    ahead, looking = [], []
    for number in range(len(actions) - 1, -1, -1):
        belief, action = beliefs[number], actions[number]
        looking.append(values.looking(belief, action, rest))
        rest = _one_step_back(model, belief, action, rest)
        if plan.decision(number).measure:
            rest[belief.states] -= model.measuring_costs[belief.states, action]
        ahead.append(float(belief.expected(rest)))
    return ahead[::-1], looking[::-1]


def _one_step_back(model: Model, belief: Belief, action: int, rest: FloatArray) -> FloatArray:
    """Return the value of an action in each state of a belief if the next state has the value `rest`, both of shape (S,)."""
    rows = model.transitions.stacked()[belief.states * model.n_actions + action]
    worth = np.where(model.terminal, 0.0, np.nan)
    worth[belief.states] = model.rewards[belief.states, action] + model.discount * (rows @ rest)
    return worth


def _tail_values(model: Model, plan: BlindPlan, belief: Belief, step: int) -> FloatArray:
    """Return the value of a repeating plan from a later step on in each state of the belief, shape (S,)."""
    actions = tuple(plan.decision(step + later).action for later in range(plan.repeat))
    tail = BlindPlan(actions, then="repeat", repeat=plan.repeat)
    there = model.replace(initial=belief.dense(model.n_states), reveal_start=True)
    worth = evaluate(there, Schedule(dict.fromkeys(belief.states.tolist(), tail), model.n_states)).values
    return np.where(model.terminal, 0.0, worth)


# The result of `Solution.explain`.

LOSES = "Loses without end from here on, as there is no discount."


@dataclass(frozen=True)
class ExplainedStep:
    """One step of a plan; everything is given that the episode is still running.

    Attributes
    ----------
    step : int
        From 1.
    action : int
    belief : Belief
        Before the step.
    running : float
        Probability that the episode is still running before the step.
    looking : float
        Value of taking the action together with a look; NaN if the look may show a state that the schedule has no plan for.
    waiting : float
        Value of taking the action without a look: that of the plan, or, where the plan looks, of looking one step later, unless
        the state is known by then.
    looks : bool
        Whether the plan looks with this step.
    """

    step: int
    action: int
    belief: Belief
    running: float
    looking: float
    waiting: float
    looks: bool

    @property
    def measuring_value(self) -> float:
        """Value of looking with this step minus that of not looking; above 0: look. NaN where both lose without end."""
        return self.looking - self.waiting


@dataclass(frozen=True, eq=False)
class Explanation:
    """A plan with the values of looking and not looking at each step; has `print`, `plot` and `to_pandas`.

    Attributes
    ----------
    model : Model
    state : int or None
        The state that was seen before the plan; None for a start that is not shown.
    plan : BlindPlan
    value : float
        Discounted value of the plan and of all that follows.
    steps : tuple of ExplainedStep
        A plan without end is cut off at some point.
    """

    model: Model
    state: int | None
    plan: BlindPlan
    value: float
    steps: tuple[ExplainedStep, ...]

    @property
    def title(self) -> str:
        """The state and the plan in words."""
        known = "At the start" if self.state is None else f"After seeing {self.model.state_name(self.state)}"
        return f"{known}: {self.plan.describe(self.model)}"

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row per step (needs the extra `data`)."""
        pandas = import_extra("pandas", "Explanation.to_pandas", "data")
        rows = [
            {
                "action": self.model.action_name(step.action),
                "belief": belief_text(self.model, step.belief),
                "running": step.running,
                "looking": step.looking,
                "waiting": step.waiting,
                "measuring_value": step.measuring_value,
                "looks": step.looks,
            }
            for step in self.steps
        ]
        numbers = pandas.RangeIndex(1, len(rows) + 1, name="step")
        frame: pd.DataFrame = pandas.DataFrame(rows, index=numbers)
        return frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the measuring value along the plan, and save it if a path is given (needs the extra `plots`)."""
        from actmeasure.planning.plots import plot_explanation

        return plot_explanation(self, path)

    def __str__(self) -> str:
        head = ("step", "action", "belief before it", "running", "look now", "not now", "measuring value", "")
        rows = [
            (
                str(step.step),
                self.model.action_name(step.action),
                belief_text(self.model, step.belief),
                percent(step.running),
                short_number(step.looking),
                short_number(step.waiting),
                short_number(step.measuring_value, "+.4f"),
                "looks" if step.looks else "",
            )
            for step in self.steps
        ]
        lines = [
            self.title,
            LOSES if self.value == -math.inf else f"Worth {self.value:.6g} from here on.",
            "",
            *text_table(head, rows, ">< >>>> "),
            *self._notes(),
        ]
        return "\n".join(lines)

    def _notes(self) -> Iterator[str]:
        if self.plan.then == "repeat" and not self.steps[-1].belief.predict(self.model, self.steps[-1].action).is_over:
            yield "... and so on without end."
        if any(math.isnan(step.looking) or math.isnan(step.waiting) for step in self.steps):
            yield "?: a look may show a state that this schedule has no plan for."

    def __repr__(self) -> str:
        return f"Explanation({self.title}; {len(self.steps)} steps)"
