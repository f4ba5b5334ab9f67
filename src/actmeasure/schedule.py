"""Schedules: for each known state a blind plan, a sequence of actions without looks and what follows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from actmeasure.decision import Decision
from actmeasure.errors import ScheduleError, counted, quoted, unknown_name
from actmeasure.model import Model
from actmeasure.settings import whole

if TYPE_CHECKING:
    from actmeasure.policy import SchedulePolicy
    from actmeasure.policy_graph import PolicyGraph

__all__ = ["BlindPlan", "Ending", "Schedule"]

#: How a plan ends: with a look, in a known state without one, with the episode, or never, repeating its last actions.
Ending = Literal["measure", "known", "end", "repeat"]


@dataclass(frozen=True)
class BlindPlan:
    """A sequence of actions without measurements, and how it ends.

    Attributes
    ----------
    actions : tuple of int
    then : "measure", "known", "end" or "repeat"
        `measure`: the last action is taken together with a measurement. `known`: the actions lead to one state only, so
        no measurement is needed. `end`: the episode is over by then. `repeat`: the last `repeat` actions are repeated forever.
    repeat : int
        Number of last actions that are repeated; 0 unless `then` is "repeat".

    Examples
    --------
    >>> BlindPlan((1, 1, 0), then="measure").decision(2)
    Decision(action=0, measurement=1)
    >>> BlindPlan((2, 0, 1), then="repeat", repeat=2).decision(5)
    Decision(action=0, measurement=0)
    """

    actions: tuple[int, ...]
    then: Ending = "measure"
    repeat: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", _checked_actions(self.actions))
        if self.then not in get_args(Ending):
            raise ScheduleError(unknown_name("end of a plan", self.then, get_args(Ending)))
        object.__setattr__(self, "repeat", whole(self.repeat, "repeat", error=ScheduleError))
        if self.then == "repeat" and not 1 <= self.repeat <= len(self.actions):
            raise ScheduleError(
                f"a repeating plan of {counted(len(self.actions), 'action')} has repeat={self.repeat}, "
                f"expected how many of its last actions repeat, from 1 to {len(self.actions)}"
            )
        if self.then != "repeat" and self.repeat != 0:
            raise ScheduleError(
                f"repeat={self.repeat} goes with then='repeat' only, got then={self.then!r}; leave it 0"
            )

    def __len__(self) -> int:
        return len(self.actions)

    def decision(self, step: int) -> Decision:
        """Return the decision `step` steps after the state was known."""
        if step < len(self.actions):
            return Decision(self.actions[step], self.then == "measure" and step == len(self.actions) - 1)
        if self.then != "repeat":
            raise ScheduleError(
                f"the plan has {counted(len(self.actions), 'action')} and is over, but step {step} was asked for"
            )
        tail = self.actions[-self.repeat :]
        return Decision(tail[(step - len(self.actions)) % self.repeat], False)

    def describe(self, model: Model, period: str | None = None) -> str:
        """Return the plan in words, with the model's names of actions.

        With the name of a `period`, such as "year", in the words of inspection planning: "4x wait, then look" is then "wait for 4
        years, then inspect".
        """
        runs = _runs([model.action_name(action) for action in self.actions])
        if period is not None:
            return self._describe_periods(runs, period)
        done = ", ".join(name if count == 1 else f"{count}x {name}" for name, count in runs)
        match self.then:
            case "measure":
                return f"{done}, then look"
            case "known":
                return f"{done}; the state is then known"
            case "end":
                return f"{done}; the episode is then over"
            case "repeat":
                return (
                    f"{done}; the last {self.repeat} repeated without end"
                    if self.repeat > 1
                    else f"{done}, repeated without end"
                )

    def _describe_periods(self, runs: list[tuple[str, int]], period: str) -> str:
        lasting = [name if count == 1 else f"{name} for {counted(count, period)}" for name, count in runs]
        match self.then:
            case "measure":
                later = f" 1 {period} later" if runs[-1][1] == 1 else ""
                return ", ".join([*lasting, f"then inspect{later}"])
            case "known":
                return f"{', '.join(lasting)}; the state is then known"
            case "end":
                return f"{', '.join(lasting)}; it is then over"
            case "repeat" if self.repeat == 1:
                return ", ".join([*lasting[:-1], f"{runs[-1][0]} without end"])
            case "repeat":
                return f"{', '.join(lasting)}; the last {counted(self.repeat, period)} repeated without end"


def _checked_actions(actions: Any) -> tuple[int, ...]:
    try:
        given = tuple(actions)
    except TypeError as error:
        raise ScheduleError(f"the actions of a plan are {quoted(actions)}, expected numbers such as (0, 1)") from error
    if isinstance(actions, (str, bytes)):
        raise ScheduleError(f"the actions of a plan are {quoted(actions)}, expected numbers such as (0, 1), not names")
    if not given:
        raise ScheduleError("a plan needs at least one action, got none; give it actions such as (0, 1)")
    if set(map(type, given)) == {int} and min(given) >= 0:
        return given
    return tuple(whole(action, f"action {step} of a plan", error=ScheduleError) for step, action in enumerate(given))


def _runs(names: list[str]) -> list[tuple[str, int]]:
    """Return runs of equal names with their lengths: `[a, a, a, b]` as `[(a, 3), (b, 1)]`."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return runs


class Schedule(Mapping[int, BlindPlan]):
    """One blind plan for every state that may become known, and one for a start that is not shown.

    A read-only mapping from state to `BlindPlan`. Equal plans are stored once, so that a schedule for a million states
    is an array of a million small numbers. To act by it step by step, call `policy(model)`, which returns a `Policy`.

    Parameters
    ----------
    plans : mapping from state to BlindPlan
    n_states : int
    start : BlindPlan, optional
        The plan for the start, where the first state is not known.
    """

    def __init__(self, plans: Mapping[int, BlindPlan], n_states: int, start: BlindPlan | None = None) -> None:
        if not isinstance(plans, Mapping):
            raise ScheduleError(f"the plans are {quoted(plans)}, expected a mapping such as {{0: BlindPlan((1,))}}")
        size = whole(n_states, "n_states", 1, error=ScheduleError)
        distinct: dict[BlindPlan, int] = {}
        plan_of_state = np.full(size, -1, dtype=np.int32)
        for key, plan in plans.items():
            state = whole(key, "the state of a plan", 0, size - 1, ScheduleError)
            if not isinstance(plan, BlindPlan):
                raise ScheduleError(f"the plan for state {state} is {quoted(plan)}, expected a BlindPlan")
            plan_of_state[state] = distinct.setdefault(plan, len(distinct))
        self._fill(tuple(distinct), plan_of_state, start)

    @classmethod
    def from_distinct(
        cls, plans: tuple[BlindPlan, ...], plan_of_state: npt.NDArray[np.integer], start: BlindPlan | None = None
    ) -> Schedule:
        """Build a schedule from distinct plans and the number of the plan of every state, or -1, shape (S,)."""
        given = tuple(plans)
        for number, plan in enumerate(given):
            if not isinstance(plan, BlindPlan):
                raise ScheduleError(f"plan {number} is {quoted(plan)}, expected a BlindPlan")
        numbers = _checked_numbers(plan_of_state, "plan_of_state", "the number of a plan", len(given) - 1)
        schedule = cls.__new__(cls)
        schedule._fill(given, numbers.astype(np.int32), start)
        return schedule

    @classmethod
    def always_measure(cls, actions: npt.ArrayLike, start: int | None = None) -> Schedule:
        """Build the schedule that takes `actions[state]`, shape (S,), and looks at every step; -1 for states without a plan.

        `start` is the action at a start that is not shown.
        """
        chosen = _checked_numbers(actions, "actions", "an action")
        used, number = np.unique(chosen[chosen >= 0], return_inverse=True)
        plan_of_state = np.full(len(chosen), -1)
        plan_of_state[chosen >= 0] = number
        plans = tuple(BlindPlan((int(action),), then="measure") for action in used)
        return cls.from_distinct(plans, plan_of_state, None if start is None else BlindPlan((start,), then="measure"))

    def _fill(
        self, plans: tuple[BlindPlan, ...], plan_of_state: npt.NDArray[np.int32], start: BlindPlan | None
    ) -> None:
        if start is not None and not isinstance(start, BlindPlan):
            raise ScheduleError(f"the plan for the start is {quoted(start)}, expected a BlindPlan")
        plan_of_state.setflags(write=False)
        #: The distinct plans.
        self.plans = plans
        #: For every state the number of its plan in `plans`, or -1; shape (S,).
        self.plan_of_state = plan_of_state
        #: The plan for a start that is not shown, or None.
        self.start = start

    @property
    def n_states(self) -> int:
        """Number of states of the model that the schedule is for."""
        return len(self.plan_of_state)

    def __getitem__(self, state: int) -> BlindPlan:
        try:
            position = index(state)
        except TypeError:
            raise KeyError(state) from None
        number = int(self.plan_of_state[position]) if 0 <= position < self.n_states else -1
        if number < 0:
            raise KeyError(state)
        return self.plans[number]

    def __iter__(self) -> Iterator[int]:
        return (int(state) for state in np.flatnonzero(self.plan_of_state >= 0))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.plan_of_state >= 0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.start == other.start and self.n_states == other.n_states and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def check_fits(self, model: Model) -> None:
        """Raise a `ScheduleError` unless the schedule has the model's number of states and only its actions."""
        if self.n_states != model.n_states:
            raise ScheduleError(
                f"the schedule is for {self.n_states} states, the model has {model.n_states}; use the model it was made for"
            )
        for plan in (*self.plans, *([self.start] if self.start else [])):
            if max(plan.actions) >= model.n_actions:
                raise ScheduleError(
                    f"a plan has the action {max(plan.actions)}, expected actions from 0 to {model.n_actions - 1}"
                )

    def start_plan(self, model: Model) -> BlindPlan | None:
        """Return the plan for a start that is not shown; None if the start is one state only, which has a plan."""
        known = int(model.initial_states[0]) if len(model.initial_states) == 1 else None
        return None if known in self else self.start

    def policy(self, model: Model) -> SchedulePolicy:
        """Return the policy that follows this schedule on the model it was made for."""
        from actmeasure.policy import SchedulePolicy

        return SchedulePolicy(self, model)

    def policy_graph(self, model: Model) -> PolicyGraph:
        """Return the schedule as a policy graph on the model it was made for; `evaluate` finds the same figures for both.

        There is a node for every step of every plan, and a look leads to the first node of the plan of the state that it showed.
        Where the first state is shown, the graph has a start node for every state; `graph.simplified(model)` keeps what the
        model's own start needs.

        Examples
        --------
        >>> import actmeasure as am
        >>> model = am.problems.measuring_value(measuring_cost=0.05)
        >>> schedule = am.solve(model).schedule
        >>> graph = schedule.policy_graph(model)
        >>> print(graph.simplified(model).describe(model))
        1. a1, with look. If 's+': go to 2. If 's-': go to 3.
        2. a1. Then it is over.
        3. a0. Then go to 1.
        >>> am.evaluate(model, graph).discounted_return == am.evaluate(model, schedule).discounted_return
        True
        """
        from actmeasure.policy_graph import from_schedule

        return from_schedule(self, model)

    def describe(self, model: Model, period: str | None = None) -> str:
        """Return the schedule in words, a line for every state that has a plan; `period` as in `BlindPlan.describe`."""
        lines = [f"at the start: {self.start.describe(model, period)}"] if self.start else []
        lines += [
            f"after seeing {model.state_name(state)}: {plan.describe(model, period)}" for state, plan in self.items()
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        start = ", a plan for the start" if self.start else ""
        return f"Schedule({len(self)} of {self.n_states} states, {counted(len(self.plans), 'distinct plan')}{start})"


def _checked_numbers(values: Any, name: str, what: str, most: int | None = None) -> npt.NDArray[np.int64]:
    """Return one whole number for every state, from -1 to `most`, shape (S,), or raise a `ScheduleError`."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ScheduleError(
            f"{name} is {quoted(values)}, expected one whole number for every state: {what}, or -1 where there is none"
        )
    bad = (array < -1) | (array > (np.iinfo(np.int32).max if most is None else most))
    if bad.any():
        state = int(np.argmax(bad))
        span = "" if most is None or most < 0 else f" from 0 to {most}"
        raise ScheduleError(f"{name}[{state}] is {array[state]}, expected {what}{span}, or -1 where there is none")
    return array.astype(np.int64)
