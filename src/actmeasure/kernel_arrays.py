"""Models and schedules as the plain arrays that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.episodes import Episodes
from actmeasure.kernels.blind import Dynamics
from actmeasure.kernels.schedule_chain import END, KNOWN, MEASURE, REPEAT, Plans
from actmeasure.kernels.simulate import Record, World
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["dynamics", "flat_plans", "record", "world"]

ENDINGS = {
    "measure": MEASURE,
    "known": KNOWN,
    "end": END,
    "repeat": REPEAT,
}


def dynamics(model: Model) -> Dynamics:
    """Return transitions, expected rewards and measuring costs; built once and kept with the model, which never changes."""
    found: Dynamics | None = vars(model).get("_dynamics")
    if found is None:
        table = model.transitions
        found = Dynamics(
            _read_only(table.offsets), _read_only(table.successors), _read_only(table.probabilities),
            _read_only(model.terminal), _read_only(model.rewards.ravel()),
            _read_only(np.ascontiguousarray(model.measuring_costs).ravel()), model.n_actions,
        )  # fmt: skip
        vars(model)["_dynamics"] = found  # as a cached property of the frozen class, which may not import kernels
    return found


def world(model: Model) -> World:
    """Return all arrays that are needed to simulate a model."""
    return World(
        dynamics(model), _read_only(np.zeros(0) if model.transition_rewards is None else model.transition_rewards),
        _read_only(model.initial_states), _read_only(model.initial_probabilities),
        np.array([0, len(model.initial_states)]), model.reveal_start,
    )  # fmt: skip


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of an array: kernels would be compiled once more for arrays that can be written to."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def record(episodes: Episodes) -> Record:
    """Return the arrays of `episodes`, for a kernel to fill in."""
    return Record(
        episodes.scalarized_return, episodes.reward, episodes.measurements, episodes.steps, episodes.terminated
    )


def flat_plans(schedule: Schedule, start: BlindPlan | None = None) -> tuple[Plans, int]:
    """Return the plans of a schedule as arrays, the one for the start last, and the number of that, -1 if there is none."""
    plans: Sequence[BlindPlan] = schedule.plans if start is None else (*schedule.plans, start)
    flat = Plans(
        offsets=np.concatenate([[0], np.cumsum([len(plan) for plan in plans])]).astype(np.int64),
        actions=np.array([action for plan in plans for action in plan.actions], dtype=np.int64),
        then=np.array([ENDINGS[plan.then] for plan in plans], dtype=np.int64),
        repeat=np.array([plan.repeat for plan in plans], dtype=np.int64),
        plan_of_state=schedule.plan_of_state,
    )
    return flat, -1 if start is None else len(schedule.plans)
