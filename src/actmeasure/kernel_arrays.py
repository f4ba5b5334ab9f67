"""Models and schedules as the plain arrays that kernels take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from actmeasure.episodes import Episodes
from actmeasure.kernels import streams
from actmeasure.kernels.dynamics import Dynamics
from actmeasure.kernels.outcomes import EXACT, LAW, SHOWS_NOTHING, Outcomes
from actmeasure.kernels.schedule_chain import END, KNOWN, MEASURE, REPEAT, Plans
from actmeasure.kernels.simulate import MeasuredWorld, Record, Run, World
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule

__all__ = [
    "control_dynamics",
    "control_world",
    "dynamics",
    "flat_plans",
    "measured_world",
    "new_run",
    "outcome_tables",
    "record",
    "world",
]

T = TypeVar("T")

ENDINGS = {"measure": MEASURE, "known": KNOWN, "end": END, "repeat": REPEAT}


def dynamics(model: Model) -> Dynamics:
    """Return transitions, expected rewards and measuring costs of a model with exact looks; kept with the model.

    Kernels that take these assume that a measurement shows the state: other models are a `ModelError`.
    """
    model.require_exact_looks("this method", "solve the model, or let POMCP act on it")
    return _kept(model, "_dynamics", lambda: _dynamics(model, np.ascontiguousarray(model.measuring_costs).ravel()))


def control_dynamics(model: Model) -> Dynamics:
    """Return transitions and expected rewards of any model, without prices: for what does not depend on measurements."""
    return _kept(model, "_control_dynamics", lambda: _dynamics(model, np.zeros(model.n_states * model.n_actions)))


def _dynamics(model: Model, costs: npt.NDArray[np.float64]) -> Dynamics:
    table = model.transitions
    return Dynamics(
        _read_only(table.offsets), _read_only(table.successors), _read_only(table.probabilities),
        _read_only(model.terminal), _read_only(model.rewards.ravel()), _read_only(costs), model.n_actions,
    )  # fmt: skip


def _kept(model: Model, name: str, build: Callable[[], T]) -> T:
    """Return what `build` returns, built once and kept with the model, which never changes."""
    if name not in vars(model):
        vars(model)[name] = build()  # as a cached property of the frozen class, which may not import kernels
    kept: T = vars(model)[name]
    return kept


def outcome_tables(model: Model) -> Outcomes:
    """Return prices and laws of all measurements of a model, the passive one as number 0; kept with the model."""
    return _kept(model, "_outcome_tables", lambda: _outcome_tables(model))


def _outcome_tables(model: Model) -> Outcomes:
    shown = [model.shown_by(number) for number in range(1 + len(model.measurements))]
    kinds = [SHOWS_NOTHING if one is None else EXACT if one.law is None else LAW for one in shown]
    laws = [None if one is None else one.law for one in shown]
    prices = np.zeros((len(shown), model.n_states * model.n_actions))
    for number, measurement in enumerate(model.measurements, start=1):
        prices[number] = measurement.table(model.n_states, model.n_actions).ravel()
    first_row, n_rows, n_entries = np.zeros(len(shown), dtype=np.int64), 0, 0
    offsets, outcomes, chances = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int32)], [np.zeros(0)]
    for number, law in enumerate(laws):
        if law is not None:
            first_row[number] = n_rows
            offsets.append(law.offsets[1:] + n_entries)
            outcomes.append(law.outcomes)
            chances.append(law.probabilities)
            n_rows, n_entries = n_rows + law.n_rows, n_entries + len(law.outcomes)
    return Outcomes(
        kinds=_read_only(np.array(kinds, dtype=np.int64)),
        counts=_read_only(np.array([model.n_outcomes(number) for number in range(len(shown))], dtype=np.int64)),
        costs=_read_only(prices),
        allowed=_read_only(np.ascontiguousarray(model.allowed_decisions.T)),
        first_row=_read_only(first_row),
        by_action=_read_only(np.array([law is not None and law.by_action for law in laws])),
        offsets=_read_only(np.concatenate(offsets)),
        outcomes=_read_only(np.concatenate(outcomes)),
        probabilities=_read_only(np.concatenate(chances)),
        n_states=model.n_states,
    )


def world(model: Model) -> World:
    """Return all arrays that are needed to simulate a model with exact looks."""
    return _world(model, dynamics(model))


def control_world(model: Model) -> World:
    """Return all arrays that are needed to simulate the states and rewards of any model, without prices."""
    return _world(model, control_dynamics(model))


def _world(model: Model, arrays: Dynamics) -> World:
    return World(
        arrays, _read_only(np.zeros(0) if model.transition_rewards is None else model.transition_rewards),
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


def measured_world(model: Model) -> MeasuredWorld:
    """Return all arrays that are needed to simulate a model with any measurements."""
    return MeasuredWorld(control_world(model), outcome_tables(model))


def new_run(episodes: Episodes, seed: int, first_episode: int, max_steps: int, agent_stream: Any) -> Run:
    """Return the arrays for a kernel that simulates `episodes`, from number `first_episode` on, and fills them in."""
    return Run(
        record(episodes), streams.entropy_words(seed), first_episode, max_steps, np.zeros(3, np.int64), streams.make_stream(),
        agent_stream,
    )  # fmt: skip


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
