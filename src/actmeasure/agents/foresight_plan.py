"""The plan that foresight follows: what it relies on, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.agents.schedule import guide_for
from actmeasure.belief import Belief
from actmeasure.errors import AgentError, ScheduleError
from actmeasure.kernels import follow_schedule
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.transitions import FloatArray
from actmeasure.world import ENDINGS, flat_plans

__all__ = ["TYPES", "FollowedPlan", "reliance"]

#: The arrays in which a plan is stored, and their types.
TYPES = {
    "plan_offsets": "<i8",
    "plan_actions": "<i8",
    "plan_endings": "<i8",
    "plan_repeats": "<i8",
    "plan_of_state": "<i4",
    "plan_start": "<i8",
    "known_after": "<i8",
}
#: Known states are followed up to this many times; rounds that never end are cut off.
MOST_VISITS = 1_000


@dataclass(frozen=True, eq=False)
class FollowedPlan:
    """A schedule for the learned model, and the arrays by which it is followed."""

    schedule: Schedule
    guide: follow_schedule.Guide

    @classmethod
    def none(cls, n_states: int) -> FollowedPlan:
        """No plan for any state, before there is one."""
        schedule = Schedule({}, n_states)
        plans, start = flat_plans(schedule)
        return cls(schedule, follow_schedule.Guide(plans, start, np.full(n_states + 1, -1, np.int64)))

    @classmethod
    def of(cls, schedule: Schedule, model: Model) -> FollowedPlan:
        """A schedule that was made for a model."""
        return cls(schedule, guide_for(schedule, model))

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        plans = self.guide.plans
        return {
            "plan_offsets": plans.offsets, "plan_actions": plans.actions, "plan_endings": plans.then,
            "plan_repeats": plans.repeat, "plan_of_state": plans.plan_of_state,
            "plan_start": np.array([self.guide.start_plan]), "known_after": self.guide.known_after,
        }  # fmt: skip

    @classmethod
    def restored(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_states: int, n_actions: int, hidden: bool
    ) -> FollowedPlan:
        """From the arrays, for so many states, and a start that may be hidden; an `AgentError` if they cannot be a plan."""
        try:
            plans, (start,) = _plans(arrays), arrays["plan_start"].tolist()
            if start not in (-1, len(plans) - 1):
                raise ValueError("the plan for the start is not the last")
            distinct, first = (tuple(plans), None) if start < 0 else (tuple(plans[:-1]), plans[-1])
            schedule = Schedule.from_distinct(distinct, arrays["plan_of_state"], first if hidden else None)
            flat, _ = flat_plans(schedule, first)
        except (ScheduleError, ValueError, KeyError) as error:
            raise AgentError(f"its plan is not one ({error}); the file is damaged") from error
        after = arrays["known_after"]
        fits = schedule.n_states == n_states and all(max(plan.actions) < n_actions for plan in plans)
        if not fits or after.shape != (n_states + 1,) or after.min() < -1 or after.max() >= n_states:
            raise AgentError("its plan does not fit its task; the file is damaged")
        return cls(schedule, follow_schedule.Guide(flat, start, after))


def _plans(arrays: Mapping[str, npt.NDArray[Any]]) -> list[BlindPlan]:
    names = {code: name for name, code in ENDINGS.items()}
    offsets, actions = arrays["plan_offsets"].tolist(), arrays["plan_actions"].tolist()
    endings = zip(arrays["plan_endings"].tolist(), arrays["plan_repeats"].tolist(), strict=True)
    if offsets[:1] != [0] or offsets[-1] != len(actions) or offsets != sorted(offsets):
        raise ValueError("its plans overlap")
    return [
        BlindPlan(tuple(actions[begin:end]), then=names[then], repeat=repeat)  # type: ignore[arg-type]
        for begin, end, (then, repeat) in zip(offsets[:-1], offsets[1:], endings, strict=True)
    ]


def reliance(model: Model, schedule: Schedule, least: float) -> FloatArray:
    """How often a schedule is expected to take each pair in an episode, shape (S * A,), where that is above about `least`."""
    expected = np.zeros(model.n_states * model.n_actions)
    start = Belief.start(model)
    waiting: dict[int, float] = {}
    if model.start_is_known:
        waiting = dict(zip(start.states.tolist(), start.probabilities.tolist(), strict=True))
    elif schedule.start is not None:
        _walk(model, schedule.start, start, 1.0, expected, waiting)
    for _ in range(MOST_VISITS):
        state = max(waiting, key=lambda known: waiting[known], default=-1)
        if state < 0 or waiting[state] < least:
            break
        chance, plan = waiting.pop(state), schedule.get(state)
        if plan is not None:
            _walk(model, plan, Belief.at(state), chance, expected, waiting)
    return expected


def _walk(
    model: Model, plan: BlindPlan, belief: Belief, chance: float, expected: FloatArray, waiting: dict[int, float]
) -> None:
    """Follow one plan, add what it takes to `expected`, and the states it comes to know to `waiting`."""
    for action in plan.actions:
        expected[belief.states * model.n_actions + action] += chance * belief.probabilities
        chance *= belief.running_probability(model, action)
        belief = belief.predict(model, action)
        if belief.is_over:
            return
    if plan.then in ("measure", "known"):
        for state, share in zip(belief.states.tolist(), belief.probabilities.tolist(), strict=True):
            waiting[state] = waiting.get(state, 0.0) + chance * share
