"""Counts of transitions as arrays to be stored, and back, with nothing taken on trust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import AgentError
from actmeasure.kernels.learned_model import Counts, make_counts
from actmeasure.settings import LARGEST_RETURN

__all__ = ["TYPES", "are_most_frequent", "check_shapes", "counts_from", "stored"]

#: The arrays and their types.
TYPES = {
    "first": "<i8",
    "measured": "<i8",
    "rewards": "<f8",
    "successors": "<i8",
    "times": "<i8",
    "following": "<i8",
}
LISTS = ("successors", "times", "following")
#: More than this can have been measured by nobody; sums of as many as fit into memory are still exact.
MOST = 1 << 40
#: Largest sum of rewards, or value, that an agent can have.
LARGEST_SUM = MOST * LARGEST_RETURN


def stored(counts: Counts) -> dict[str, npt.NDArray[Any]]:
    """The arrays, without the room that is not used."""
    used = int(counts.used[0])
    return {name: getattr(counts, name)[: used if name in LISTS else None] for name in TYPES}


def counts_from(arrays: Mapping[str, npt.NDArray[Any]], n_states: int, n_actions: int, end: int, room: int) -> Counts:
    """The counts, with room for at least that many transitions; an `AgentError` if the arrays cannot be counts.

    `end` is the number of the last state that a transition may lead to.
    """
    pairs, used = n_states * n_actions, arrays["successors"].size
    check_shapes(arrays, dict.fromkeys(TYPES, (pairs,)) | dict.fromkeys(LISTS, (used,)))
    _check_lists(arrays, end)
    while room <= used:
        room *= 2
    counts = make_counts(n_states, n_actions, room)
    for name, values in stored(counts._replace(used=np.array([used]))).items():
        values[:] = arrays[name]
    counts.used[0] = used
    return counts


def check_shapes(
    arrays: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]], largest: float = LARGEST_SUM
) -> None:
    """Raise an `AgentError` for the first array of another shape, or with numbers above `largest` in size, or NaN."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise AgentError(f"{name!r} has shape {arrays[name].shape}, expected {shape}; the file is damaged")
        if not (np.abs(arrays[name]) <= largest).all():  # nor may it be NaN
            raise AgentError(f"{name!r} holds numbers above {largest:g} in size or NaN; the file is damaged")


def _check_lists(arrays: Mapping[str, npt.NDArray[Any]], end: int) -> None:
    """Every entry but the first must be in exactly one list, and the lists must hold as much as was measured."""
    first, following, used = arrays["first"], arrays["following"], arrays["successors"].size
    later = np.arange(used)
    sound = (
        used > 0
        and first.min() >= 0
        and first.max() < used
        and following.min() >= 0
        and not (following[1:] >= later[1:]).any()  # an entry leads to an older one, so that no list is a circle
        and following[0] == 0
        and np.bincount(np.concatenate([first, following]), minlength=used)[1:].tolist() == [1] * (used - 1)
        and arrays["successors"].min() >= 0
        and arrays["successors"].max() <= end
        and arrays["times"][0] == 0
        and not (arrays["times"][1:] < 1).any()
        and arrays["times"].max() <= MOST
        and _measured(arrays).tolist() == arrays["measured"].tolist()
    )
    if not sound:
        raise AgentError("its counts of transitions contradict each other; the file is damaged")


def _measured(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """How often each pair was measured, by its list."""
    total = np.zeros_like(arrays["first"])
    np.add.at(total, _owners(arrays)[1:], arrays["times"][1:])
    return total


def _owners(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """The pair in whose list each entry is; -1 for the first entry, which is in none."""
    owners = np.full(arrays["successors"].size, -1)
    pairs = np.flatnonzero(arrays["first"])
    entries = arrays["first"][pairs]
    while len(entries):
        owners[entries] = pairs
        entries = arrays["following"][entries]
        pairs, entries = pairs[entries != 0], entries[entries != 0]
    return owners


def are_most_frequent(arrays: Mapping[str, npt.NDArray[Any]], chosen: npt.NDArray[np.int64]) -> bool:
    """Whether each pair's chosen entry is one of those seen most often in its list, and 0 if that is empty."""
    owners, times = _owners(arrays), arrays["times"]
    most = np.zeros_like(chosen)
    np.maximum.at(most, owners[1:], times[1:])
    if (chosen < 0).any() or (chosen >= owners.size).any():
        return False
    seen = most > 0
    own = owners[chosen] == np.where(seen, np.arange(chosen.size), -1)
    return bool((own & (~seen | (times[chosen] == most))).all())
