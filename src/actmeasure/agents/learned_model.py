"""A model from the transitions that an agent has measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.agents.base import Task
from actmeasure.belief import Belief
from actmeasure.kernels.learned_model import Counts
from actmeasure.model import Model
from actmeasure.transitions import FloatArray

__all__ = ["model_from_counts", "with_prior"]


def model_from_counts(counts: Counts, task: Task, start: Belief, ends: FloatArray | None = None) -> Model:
    """Measured frequencies and mean rewards, with a state added in which episodes end.

    An action that was never measured stays where it is, for the smallest reward seen, or 0 if all are positive; without
    discount, where staying for ever is not allowed, it ends the episode. How often an episode ends with a pair may be known
    better than from what was measured: `ends`, float64 (S * A,), nan where it is not.
    """
    n_states, n_actions = task.n_states, task.n_actions
    end, pairs = n_states, n_states * n_actions
    measured = counts.measured[:pairs].reshape(n_states, n_actions)
    rewards = counts.rewards[:pairs].reshape(n_states, n_actions)
    least = min(0.0, float(rewards.min()))
    terminal = np.zeros(n_states + 1, bool)
    terminal[end] = True
    return Model.from_arrays(
        _matrices(counts, measured, ends, unknown_ends=task.discount == 1),
        np.vstack([np.where(measured > 0, rewards, least), np.zeros(n_actions)]),
        measuring_cost=_with_end(task.measuring_cost),
        discount=task.discount,
        initial=start.dense(n_states + 1),
        terminal=terminal,
        reveal_start=task.reveal_start,
    )


def with_prior(counts: Counts, task: Task, start: Belief, prior: float) -> Model:
    """A model in which every transition, also to the end, has been counted `prior` times before, with a reward of 0."""
    n_states, n_actions = task.n_states, task.n_actions
    pairs = n_states * n_actions
    times = np.full((pairs, n_states + 1), prior)
    for pair, entries in _entries(counts, pairs):
        times[pair, counts.successors[entries]] += counts.times[entries]
    mass = times.sum(axis=1, keepdims=True)
    terminal = np.arange(n_states + 1) == n_states
    chances = np.zeros((n_states + 1, n_actions, n_states + 1))
    chances[:-1] = (times / mass).reshape(n_states, n_actions, n_states + 1)
    chances[-1, :, -1] = 1.0
    rewards = np.zeros((n_states + 1, n_actions))
    rewards[:-1] = (counts.rewards[:pairs] * counts.measured[:pairs] / mass[:, 0]).reshape(n_states, n_actions)
    return Model.from_arrays(
        chances,
        rewards,
        measuring_cost=_with_end(task.measuring_cost),
        discount=task.discount,
        initial=start.dense(n_states + 1),
        terminal=terminal,
        reveal_start=task.reveal_start,
    )


def _matrices(
    counts: Counts, measured: npt.NDArray[np.int64], ends: FloatArray | None, unknown_ends: bool
) -> list[sparse.csr_array]:
    n_states, n_actions = measured.shape
    found = list(_entries(counts, n_states * n_actions))
    pairs = np.concatenate([pair for pair, _ in found]) if found else np.zeros(0, np.int64)
    entries = np.concatenate([entry for _, entry in found]) if found else np.zeros(0, np.int64)
    chances = counts.times[entries] / counts.measured[pairs]
    successors = counts.successors[entries]
    if ends is not None:
        # Where the end was noticed, but never with a look, it has no entry yet.
        is_end = successors == n_states
        noticed = np.setdiff1d(np.flatnonzero((ends > 0) & (ends < 1) & (measured.ravel() > 0)), pairs[is_end])
        chances *= _corrections(pairs, is_end, chances, ends)
        pairs, chances = np.concatenate([pairs, noticed]), np.concatenate([chances, ends[noticed]])
        successors = np.concatenate([successors, np.full_like(noticed, n_states)])
    state, action = np.divmod(pairs, n_actions)
    matrices = []
    for number in range(n_actions):
        own, unknown = action == number, np.flatnonzero(measured[:, number] == 0)
        rows = np.concatenate([state[own], unknown, [n_states]])
        led_to = np.full_like(unknown, n_states) if unknown_ends else unknown
        columns = np.concatenate([successors[own], led_to, [n_states]])
        values = np.concatenate([chances[own], np.ones(len(unknown) + 1)])
        matrices.append(sparse.csr_array((values, (rows, columns)), shape=(n_states + 1, n_states + 1)))
    return matrices


def _entries(counts: Counts, count: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The first `count` pairs with their entries: the first of every list, then the second, and so on."""
    pairs = np.flatnonzero(counts.first[:count])
    entries = counts.first[pairs]
    while len(entries):
        yield pairs, entries
        entries = counts.following[entries]
        more = entries != 0
        pairs, entries = pairs[more], entries[more]


def _corrections(
    pairs: npt.NDArray[np.int64], is_end: npt.NDArray[np.bool_], chances: FloatArray, ends: FloatArray
) -> FloatArray:
    """Factors by which measured chances are to be multiplied, so that the end has the chance that is known for it."""
    measured = np.zeros(len(ends))
    measured[pairs[is_end]] = chances[is_end]
    # Where only the end was measured, there is nothing that could be scaled.
    known = np.isfinite(ends) & (measured < 1) & (ends > 0) & (ends < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(is_end, ends[pairs] / measured[pairs], (1 - ends[pairs]) / (1 - measured[pairs]))
    return np.where(known[pairs], factors, 1.0)


def _with_end(cost: float | FloatArray) -> float | FloatArray:
    return cost if np.ndim(cost) == 0 else np.vstack([cost, np.zeros(np.shape(cost)[1])])
