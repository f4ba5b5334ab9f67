"""What was learned of the dynamics: counts of measured transitions, kept only for those that were seen.

The successors of a pair (state, action) are a list: `first` gives its first entry, `following` the next one; 0 is the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.streams import random


class Counts(NamedTuple):
    """Measured transitions; a pair is state * n_actions + action, the end of an episode is the state n_states."""

    first: Any  # int64 (S * A,)
    measured: Any  # int64 (S * A,): number of measured transitions
    rewards: Any  # float64 (S * A,): their mean reward
    successors: Any  # int64 (room,)
    times: Any  # int64 (room,): how often each was seen
    following: Any  # int64 (room,)
    used: Any  # int64 (1,): entries in use; the first one never is


def make_counts(n_states: int, n_actions: int, room: int) -> Counts:
    """Nothing measured yet, and room for so many different transitions."""
    pairs = n_states * n_actions
    return Counts(
        np.zeros(pairs, np.int64), np.zeros(pairs, np.int64), np.zeros(pairs),
        np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64), np.ones(1, np.int64),
    )  # fmt: skip


def with_more_room(counts: Counts) -> Counts:
    """The same counts with twice the room."""
    lists = (counts.successors, counts.times, counts.following)
    successors, times, following = (np.concatenate([entries, np.zeros_like(entries)]) for entries in lists)
    return counts._replace(successors=successors, times=times, following=following)


@lean
def is_full(counts: Counts) -> bool:
    """Whether there is no room for another transition."""
    return counts.used[0] == counts.successors.shape[0]  # type: ignore[no-any-return]


@lean
def count(counts: Counts, pair: int, successor: int, reward: float) -> int:
    """Count a measured transition, for which there must be room; returns its entry."""
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


@lean
def any_of(count: int, stream: Any) -> int:
    """A whole number from 0 to count - 1, all equally likely."""
    return int(random(stream) * count)
