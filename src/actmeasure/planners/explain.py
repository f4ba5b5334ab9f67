"""Why a plan looks when it does: the worth of looking now against later, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.errors import MissingExtraError, PlanError, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

    from actmeasure.planners.solution import Solution

__all__ = ["ExplainedStep", "Explanation", "explain", "text_table"]

#: A plan that goes on for ever is explained for so many steps, or for its own length if that is more.
STEPS_SHOWN = 10
#: So many of the likeliest states of a belief are named.
STATES_NAMED = 3
#: So many of the states that have plans are named when another one is asked for.
PLANNED_NAMED = 10


@dataclass(frozen=True)
class ExplainedStep:
    """One step of a plan; everything is given that the episode is still running.

    Attributes
    ----------
    step : int
        From 1.
    action : int
    belief : Belief
        What is known before the step.
    running : float
        Probability that the episode has come this far.
    looking : float
        Value of taking the action together with a look, as far as is known what can be achieved from the states it may show;
        NaN if it may show one that the schedule has no plan for.
    waiting : float
        Value of taking the action without a look: that of the plan, or, where the plan looks, of one more blind action and a
        look with it, if there is anything to see by then.
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
        """What a look with this step is worth beyond its price; above 0: look."""
        return self.looking - self.waiting


@dataclass(frozen=True, eq=False)
class Explanation:
    """A plan with the worth of looking at each of its steps: `print` it, `plot` it, or take it `to_pandas`.

    Attributes
    ----------
    model : Model
    state : int or None
        The state that was seen before the plan; None for a start that is not shown.
    plan : BlindPlan
    value : float
        What the plan and all that follows is worth, discounted, from here on.
    steps : tuple of ExplainedStep
        Those of a plan that goes on for ever are cut off at some point.
    """

    model: Model
    state: int | None
    plan: BlindPlan
    value: float
    steps: tuple[ExplainedStep, ...]

    @property
    def title(self) -> str:
        """Which plan this is, and what it does."""
        known = "At the start" if self.state is None else f"After seeing {self.model.state_name(self.state)}"
        return f"{known}: {self.plan.describe(self.model)}"

    def to_pandas(self) -> pd.DataFrame:
        """A table with a row per step (needs the extra `data`)."""
        pandas = _pandas("Explanation.to_pandas")
        rows = [
            {
                "action": self.model.action_name(step.action),
                "belief": _belief_text(self.model, step.belief),
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
        from actmeasure.planners import pictures

        return pictures.plot_explanation(self, path)

    def __str__(self) -> str:
        head = ("step", "action", "belief before it", "running", "look now", "not now", "measuring value", "")
        rows = [
            (
                str(step.step),
                self.model.action_name(step.action),
                _belief_text(self.model, step.belief),
                percent(step.running),
                _number(step.looking),
                _number(step.waiting),
                _number(step.measuring_value, "+.4f"),
                "looks" if step.looks else "",
            )
            for step in self.steps
        ]
        lines = [
            self.title,
            f"Worth {self.value:.6g} from here on.",
            "",
            *text_table(head, rows, ">< >>>> "),
            *self._notes(),
        ]
        return "\n".join(lines)

    def _notes(self) -> Iterator[str]:
        if self.plan.then == "repeat" and not _is_over_after(self.model, self.steps[-1]):
            yield "... and so on for ever."
        if any(np.isnan(step.measuring_value) for step in self.steps):
            yield "?: a look may show a state that this schedule has no plan for."

    def __repr__(self) -> str:
        return f"Explanation({self.title}; {len(self.steps)} steps)"


def explain(solution: Solution, state: int | str | None = None) -> Explanation:
    """Follow the plan for a known state (None: the start) and weigh a look at each of its steps."""
    model = solution.model
    known = _asked_state(solution, state)
    plan, belief = _plan_and_belief(solution, known)
    beliefs, actions, chances = _follow(model, plan, belief)
    values = _Values(model, np.where(np.isfinite(solution.values), solution.values, np.nan))
    ahead, looking = _weigh(values, plan, beliefs, actions)
    steps = []
    for number, (action, before) in enumerate(zip(actions, beliefs[:-1], strict=True)):
        looks = plan.decision(number).measure
        waiting = values.one_later(before, action) if looks else ahead[number]
        running = float(np.prod(chances[:number]))
        steps.append(ExplainedStep(number + 1, action, before, running, looking[number], waiting, looks))
    return Explanation(model, known, plan, float(ahead[0]), tuple(steps))


def _asked_state(solution: Solution, state: int | str | None) -> int | None:
    """The state whose plan is meant; None for a start that is not shown."""
    model = solution.model
    if isinstance(state, str):
        names = model.state_names or ()
        if state not in names:
            raise PlanError(unknown_name("state", state, names) if names else _no_names(state))
        return names.index(state)
    if state is not None:
        try:
            return index(state)
        except TypeError:
            raise PlanError(
                f"the state is {state!r:.60}, expected its number, its name, or None for the start"
            ) from None
    if not model.start_is_known:
        return None
    if len(model.initial_states) > 1:
        raise PlanError(
            f"an episode may begin in {len(model.initial_states)} states and shows which; say which one to explain: "
            f"{_some_states(model, model.initial_states.tolist())}"
        )
    return int(model.initial_states[0])


def _no_names(state: str) -> str:
    return f"the states of this model have no names, got {state!r:.60}; give the state's number"


def _plan_and_belief(solution: Solution, state: int | None) -> tuple[BlindPlan, Belief]:
    model, schedule = solution.model, solution.schedule
    if state is None and schedule.start is not None:
        return schedule.start, Belief.start(model)
    if state is None or state not in schedule:
        named = _state_text(model, state)
        raise PlanError(
            f"the schedule has no plan for {named}, which it never comes to know; it has plans for "
            f"{_some_states(model, list(schedule))}"
        )
    return schedule[state], Belief.at(state)


def _state_text(model: Model, state: int | None) -> str:
    if state is None:
        return "the start"
    return model.describe_state(state) if 0 <= state < model.n_states else f"state {state}"


def _some_states(model: Model, states: Sequence[int]) -> str:
    names = ", ".join(model.describe_state(state) for state in states[:PLANNED_NAMED])
    return names + (f" and {len(states) - PLANNED_NAMED} more" if len(states) > PLANNED_NAMED else "")


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


@dataclass(frozen=True, eq=False)
class _Values:
    """Values of decisions at a belief, from what is achieved once a state is known, shape (S,); NaN where unknown."""

    model: Model
    known: FloatArray

    def looking(self, belief: Belief, action: int, otherwise: FloatArray | None = None) -> float:
        """An action together with a look, after which one may also go on with what is worth `otherwise`, shape (S,)."""
        price = float(belief.expected(self.model.measuring_costs[:, action]))
        known = self.known if otherwise is None else np.maximum(self.known, otherwise)
        return self.shown(belief, action, known) - price

    def shown(self, belief: Belief, action: int, known: FloatArray) -> float:
        """An action after which the state is shown for free, and then worth `known`, shape (S,)."""
        after = belief.predict(self.model, action)
        return self.step(belief, action, 0.0 if after.is_over else float(after.expected(known)))

    def one_later(self, belief: Belief, action: int) -> float:
        """An action without a look, then the best action with one, unless there is nothing to see by then."""
        after = belief.predict(self.model, action)
        if after.is_over:
            return self.step(belief, action, 0.0)
        options = [self._look_if_needed(after, then) for then in range(self.model.n_actions)]
        known = [option for option in options if not np.isnan(option)]
        return self.step(belief, action, max(known, default=np.nan))

    def step(self, belief: Belief, action: int, ahead: float) -> float:
        """An action after which the rest is worth `ahead`, if the episode still runs."""
        reward = float(belief.expected(self.model.rewards[:, action]))
        chance = belief.running_probability(self.model, action)
        return reward + (self.model.discount * chance * ahead if chance > 0 else 0.0)

    def _look_if_needed(self, belief: Belief, action: int) -> float:
        after = belief.predict(self.model, action)
        nothing_to_see = after.is_over or after.known is not None
        return self.shown(belief, action, self.known) if nothing_to_see else self.looking(belief, action)


def _weigh(
    values: _Values, plan: BlindPlan, beliefs: list[Belief], actions: list[int]
) -> tuple[list[float], list[float]]:
    """What the plan is worth from each of its steps on, and what it is worth to look with that step.

    Whoever looks may ignore what is seen and go on with the plan, so no state is worth less than that.
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
    """Worth of an action in each state of a belief if the state after it is worth `rest`, both of shape (S,)."""
    rows = model.transitions.stacked()[belief.states * model.n_actions + action]
    worth = np.where(model.terminal, 0.0, np.nan)
    worth[belief.states] = model.rewards[belief.states, action] + model.discount * (rows @ rest)
    return worth


def _tail_values(model: Model, plan: BlindPlan, belief: Belief, step: int) -> FloatArray:
    """What a repeating plan is worth from a later step on in each state of the belief, shape (S,)."""
    actions = tuple(plan.decision(step + later).action for later in range(plan.repeat))
    tail = BlindPlan(actions, then="repeat", repeat=plan.repeat)
    there = model.replace(initial=belief.dense(model.n_states), reveal_start=True)
    worth = evaluate(there, Schedule(dict.fromkeys(belief.states.tolist(), tail), model.n_states)).values
    return np.where(model.terminal, 0.0, worth)


def _is_over_after(model: Model, step: ExplainedStep) -> bool:
    return step.belief.predict(model, step.action).is_over


def _belief_text(model: Model, belief: Belief) -> str:
    """The likeliest states with their percentages."""
    likeliest = np.argsort(-belief.probabilities, kind="stable")[:STATES_NAMED]
    named = [f"{model.state_name(int(belief.states[i]))}: {percent(belief.probabilities[i])}" for i in likeliest]
    rest = len(belief.states) - len(named)
    return ", ".join(named) + (f", {rest} more" if rest else "")


def percent(probability: float) -> str:
    """A probability as whole percent, in which nothing possible is 0 % and nothing doubtful 100 %."""
    if 0 < probability < 0.005:
        return "<1 %"
    if 0.995 <= probability < 1 - 1e-12:
        return ">99 %"
    return f"{100 * probability:.0f} %"


def _number(value: float, form: str = ".4f") -> str:
    return "?" if np.isnan(value) else f"{round(value, 12) + 0.0:{form}}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], alignment: str) -> list[str]:
    """Lines of a plain table; `alignment` has < or > for every column (a space counts as <)."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    sides = alignment.replace(" ", "<")
    lines = [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
    return [lines[0], "  ".join("-" * width for width in widths).rstrip(), *lines[1:]]


def _pandas(feature: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error
    return pandas


def solution_rows(solution: Solution, most: int | None = None) -> list[dict[str, Any]]:
    """A row for every plan of a solution, that of a hidden start first."""
    model, schedule = solution.model, solution.schedule
    rows = []
    if schedule.start is not None and not model.start_is_known:
        rows.append(_plan_row(model, None, schedule.start, solution.value))
    for number, (state, plan) in enumerate(schedule.items()):
        if most is not None and number >= most:
            break
        rows.append(_plan_row(model, state, plan, float(solution.values[state])))
    return rows


def _plan_row(model: Model, state: int | None, plan: BlindPlan, value: float) -> dict[str, Any]:
    return {
        "number": -1 if state is None else state,
        "state": "(start)" if state is None else model.state_name(state),
        "plan": plan.describe(model),
        "steps": len(plan),
        "ending": plan.then,
        "value": value,
    }


def solution_frame(solution: Solution) -> pd.DataFrame:
    """A table with a row per plan."""
    pandas = _pandas("Solution.to_pandas")
    columns = ["number", "state", "plan", "steps", "ending", "value"]
    frame: pd.DataFrame = pandas.DataFrame(solution_rows(solution), columns=columns).set_index("number")
    return frame


def solution_text(solution: Solution, plans: int) -> str:
    """What a solution is worth, how sure that is, and its first plans in words."""
    facts = list(_facts(solution))
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {text}" for name, text in facts]
    rows = solution_rows(solution, plans) if plans > 0 else []
    if rows:
        cells = [(row["state"], row["plan"], f"{row['value']:.4f}") for row in rows]
        lines += ["", *text_table(("after seeing", "do", "value"), cells, "<<>")]
        more = len(solution.schedule) - len([row for row in rows if row["number"] >= 0])
        lines += [f"... and {more} more plans"] if more else []
    return "\n".join(lines)


def _facts(solution: Solution) -> Iterator[tuple[str, str]]:
    result = solution.evaluation
    yield "method", f"{solution.method} ({solution.seconds:.2g} s)"
    yield "value", f"{solution.value:.6g}  (exact, discounted)"
    if solution.claimed is not None:
        yield "claimed", f"{solution.claimed:.6g}  (what the method says its schedule is worth)"
    yield "optimum", f"{solution.lower:.6g} to {solution.upper:.6g}  (gap {solution.gap:.2g})"
    if solution.method_upper is not None:
        best = max(solution.method_upper, solution.value)
        yield f"best {solution.method!r}", f"{solution.value:.6g} to {best:.6g}  (gap {best - solution.value:.2g})"
    if np.isfinite(result.measurements):
        yield "looks", f"{result.measurements:.4g} per episode  ({result.discounted_measurements:.4g} discounted)"
    else:
        yield "looks", f"{result.average_measurements:.4g} per step  ({result.discounted_measurements:.4g} discounted)"
    yield "episode", _episode(result.steps, result.ending_probability)


def _episode(steps: float, ending: float) -> str:
    if np.isfinite(steps):
        return f"{steps:.4g} steps"
    return "never ends" if ending == 0 else f"ends with probability {ending:.4g}"
