"""The bounds that a search begins with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure import markov
from actmeasure.kernels.belief_graph import Bounds
from actmeasure.kernels.blind import ROUNDING, relative_error
from actmeasure.kernels.value_iteration import action_values, informed_sweep
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Clock
from actmeasure.planning.value_iteration import mdp_values, repeat_values, row_values
from actmeasure.settings import LARGEST_RETURN
from actmeasure.world import dynamics

__all__ = ["first_bounds", "informed_bounds", "mean_bound", "start_bound"]

#: Sweeps of the informed bound stop when they change less than this; they are sound at any time.
INFORMED_PRECISION = 1e-8
MOST_SWEEPS = 5000
#: A price at which nobody looks: more than all rewards of a model can make up for, and in all not more than a model may have.
PROHIBITIVE = 10 * LARGEST_RETURN
#: Without discount, control is taken from this one, which prefers ending sooner.
ALMOST_ONE = 0.999


def informed_bounds(model: Model, clock: Clock, free_values: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Upper bounds on the optimum once a state is known, shape (S,), and per action with and without a look, (S, 2 A).

    The fast informed bound: as if the state before the last action were shown for free at every step. When the time is over
    it is as tight as it got by then.

    Parameters
    ----------
    model : Model
    clock : Clock
    free_values : float64 array, shape (S,), optional
        Upper bounds on the values when looking is free, where they are there already.
    """
    arrays = dynamics(model)
    values = mdp_values(model, clock) if free_values is None else free_values.copy()
    vectors = np.repeat(_action_bounds(model, values), 2, axis=1)
    vectors[:, 1::2] -= model.measuring_costs * (1 - 4 * ROUNDING)
    vectors[model.terminal] = 0.0
    ceiling, scratch = _ceiling(values, vectors), np.empty(2 * model.n_actions)
    for _ in range(MOST_SWEEPS):
        change = informed_sweep(arrays, model.discount, values, vectors, ceiling, scratch)
        if change < INFORMED_PRECISION or clock.is_over:
            break
    return values, vectors


def start_bound(model: Model, values: FloatArray, vectors: FloatArray) -> float:
    """The bound at the start from those of `informed_bounds`."""
    if model.start_is_known:
        return mean_bound(model.initial_probabilities, values[model.initial_states])
    by_choice = vectors[model.initial_states]
    return max(mean_bound(model.initial_probabilities, by_choice[:, k]) for k in range(by_choice.shape[1]))


def mean_bound(probabilities: FloatArray, values: FloatArray) -> float:
    """Return the mean of values, both of shape (n,), rounded upwards."""
    mean = float(probabilities @ values)
    if len(values) == 1:
        return mean
    return mean + float(relative_error(len(values)) * (probabilities @ np.abs(values)))


def _action_bounds(model: Model, values: FloatArray) -> FloatArray:
    """Return upper bounds per action from those of states, shape (S, A), rounded upwards as in `informed_sweep`."""
    actions = np.empty((model.n_states, model.n_actions))
    action_values(dynamics(model), model.discount, values, actions)
    table = model.transitions
    ceiling = np.where(model.terminal, 0.0, np.maximum(values, 0.0))
    size = np.abs(model.rewards).ravel() + 2 * model.discount * (table.stacked() @ ceiling) + np.abs(actions).ravel()
    errors = relative_error(np.diff(table.offsets)) * size
    return np.asarray(np.where(model.terminal[:, None], 0.0, actions + errors.reshape(actions.shape)))


def _ceiling(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return what bounds in each state are never above, at least 0, shape (S,)."""
    return np.asarray(np.maximum(0.0, np.maximum(values, vectors.max(axis=1))))


def first_bounds(model: Model, clock: Clock, may_look: bool = True) -> Bounds:
    """Bounds for every state; without `may_look`, for schedules that never look."""
    if not may_look:
        model = model.replace(measuring_cost=PROHIBITIVE)
    upper, upper_vectors = informed_bounds(model, clock)
    repeats = repeat_values(model, clock) if model.discount < 1 else _undiscounted_repeats(model)
    lower = repeats.max(axis=1)
    if may_look and not clock.is_over:
        lower = np.maximum(lower, _always(model, upper_vectors, clock))
    looks = np.empty((model.n_states, model.n_actions))
    action_values(dynamics(model), model.discount, lower, looks)
    looks -= model.measuring_costs
    looks[model.terminal] = 0.0
    lower_vectors = np.column_stack([looks, repeats])
    return Bounds(
        upper=upper,
        lower=np.minimum(lower, upper),
        upper_vectors=upper_vectors,
        lower_vectors=lower_vectors,
        ceiling=_ceiling(upper, upper_vectors),
        loss=np.maximum(0.0, -model.rewards.min(keepdims=True).ravel()),
    )


def _always(model: Model, vectors: FloatArray, clock: Clock) -> FloatArray:
    """Lower bounds on looking at every step, shape (S,), with a control that is good when one does.

    `vectors` are the bounds per action of `informed_bounds`; without discount, control is taken from those that hurry.
    """
    if model.discount == 1:
        _, vectors = informed_bounds(model.replace(discount=ALMOST_ONE), clock)
    rows = np.arange(model.n_states) * model.n_actions + vectors[:, 1::2].argmax(axis=1)
    if model.discount < 1:
        return row_values(model, rows, True, clock)
    return _undiscounted_rows(model, rows, model.rewards.ravel() - model.measuring_costs.ravel())


def _undiscounted_repeats(model: Model) -> FloatArray:
    first = np.arange(model.n_states) * model.n_actions
    rewards = model.rewards.ravel()
    return np.column_stack([_undiscounted_rows(model, first + a, rewards) for a in range(model.n_actions)])


def _undiscounted_rows(model: Model, rows: npt.NDArray[np.int64], rewards: FloatArray) -> FloatArray:
    """Worth of always taking the given row in each state, without discount, shape (S,); minus infinity where undefined."""
    running = np.flatnonzero(~model.terminal)
    taken = model.transitions.stacked()[rows[running]]
    moves = taken[:, running]
    leaks = np.asarray(taken[:, np.flatnonzero(model.terminal)].sum(axis=1)).ravel() > 0
    recurrent = markov.recurrence(moves, leaks, np.full(len(running), 1 / len(running)))
    values = np.zeros(model.n_states)
    try:
        values[running] = markov.undiscounted_values(moves, recurrent, rewards[rows[running]][:, None])[:, 0]
    except markov.RoundingError:  # no bound, then
        values[running] = -np.inf
    return np.where(np.isfinite(values), values, -np.inf)
