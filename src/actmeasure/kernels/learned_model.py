"""Counts of measured transitions, with an entry only for those that occurred; and choices from tables of values.

The entries of a pair (state, action) are a linked list: `first` gives its first entry, `following` the next one; 0 is the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.streams import any_of

#: Number of entries for which there is capacity at first.
INITIAL_CAPACITY = 1 << 10


class Counts(NamedTuple):
    """Measured transitions; the pair of a state and an action is state * A + action, the end of an episode is the state S."""

    first: Any  # int64 (S * A,): first entry of each pair, 0 if it has none
    measured: Any  # int64 (S * A,): number of measured transitions
    rewards: Any  # float64 (S * A,): mean reward of these transitions
    successors: Any  # int64 (capacity,): the state that an entry leads to
    times: Any  # int64 (capacity,): how often it occurred
    following: Any  # int64 (capacity,): next entry of the same pair, 0 if there is none
    used: Any  # int64 (1,): number of entries in use, counting entry 0, which belongs to no pair


def make_counts(n_states: int, n_actions: int, capacity: int = INITIAL_CAPACITY) -> Counts:
    """Return counts of 0, with a capacity of that many entries."""
    pairs = n_states * n_actions
    return Counts(
        np.zeros(pairs, np.int64), np.zeros(pairs, np.int64), np.zeros(pairs),
        np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.ones(1, np.int64),
    )  # fmt: skip


def with_doubled_capacity(counts: Counts) -> Counts:
    """Return the same counts with twice the capacity."""
    lists = (counts.successors, counts.times, counts.following)
    successors, times, following = (np.concatenate([entries, np.zeros_like(entries)]) for entries in lists)
    return counts._replace(successors=successors, times=times, following=following)


@no_refcount
def is_full(counts: Counts) -> bool:
    """Return whether there is no capacity for another transition."""
    return counts.used[0] == counts.successors.shape[0]  # type: ignore[no-any-return]


@no_refcount
def count(counts: Counts, pair: int, successor: int, reward: float) -> int:
    """Count a measured transition, for which there must be capacity; return its entry."""
    counts.measured[pair] += 1
    counts.rewards[pair] += (reward - counts.rewards[pair]) / counts.measured[pair]
    entry = counts.first[pair]
    while entry != 0 and counts.successors[entry] != successor:
        entry = counts.following[entry]
    if entry == 0:
        entry = counts.used[0]
        counts.used[0] += 1
        counts.successors[entry] = successor
        counts.following[entry] = counts.first[pair]
        counts.first[pair] = entry
    counts.times[entry] += 1
    return entry  # type: ignore[no-any-return]


@no_refcount
def greedy_action(values: Any, state: int, n_actions: int, stream: Any) -> int:
    """Return the action of the largest value in a state, ties broken at random; `values` is float64 (S * A,)."""
    first = state * n_actions
    best, ties = values[first], 1
    for action in range(1, n_actions):
        value = values[first + action]
        if value > best:
            best, ties = value, 1
        elif value == best:
            ties += 1
    skip = any_of(ties, stream) if ties > 1 else 0
    for action in range(n_actions):
        if values[first + action] == best:
            if skip == 0:
                return action
            skip -= 1
    return 0


@no_refcount
def largest_value(values: Any, state: int, n_actions: int) -> float:
    """Return the largest value of a state's actions; 0 for the end of an episode, which is behind the last state."""
    first = state * n_actions
    if first >= values.shape[0]:
        return 0.0
    largest = values[first]
    for pair in range(first + 1, first + n_actions):
        largest = max(largest, values[pair])
    return largest  # type: ignore[no-any-return]
