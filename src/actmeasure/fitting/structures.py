"""Which transitions an action may make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, unknown_name

__all__ = ["STRUCTURES", "allowed_transitions"]

BoolArray = npt.NDArray[np.bool_]

#: By name, which states `j` may follow state `i`; states are in order, the best first.
STRUCTURES = {
    "any": lambda i, j: (i >= 0) & (j >= 0),
    "deteriorate": lambda i, j: j >= i,
    "deteriorate-by-steps": lambda i, j: (j == i) | (j == i + 1),
    "improve": lambda i, j: j <= i,
    "improve-by-steps": lambda i, j: (j == i) | (j == i - 1),
}
MASK = "as given"
#: The key that stands for all actions that a mapping does not name.
OTHERS = "*"


def allowed_transitions(
    structure: Any, action_names: Sequence[str], n_states: int
) -> tuple[BoolArray, tuple[str, ...]]:
    """A mask of shape (A, S, S) and the name of each action's structure.

    `structure` is a name for all actions, a mask of shape (S, S) for all, or a mapping from actions to names or masks; actions
    that it does not name have that of "*", or else may do anything.
    """
    if isinstance(structure, Mapping):
        for action in structure:
            if action not in action_names and action != OTHERS:
                raise FitError(f"structure: {unknown_name('action', action, action_names)}")
        each = [structure.get(action, structure.get(OTHERS, "any")) for action in action_names]
    else:
        each = ["any" if structure is None else structure] * len(action_names)
    masks = [_mask(one, action, n_states) for one, action in zip(each, action_names, strict=True)]
    return np.array(masks), tuple(one if isinstance(one, str) else MASK for one in each)


def _mask(structure: Any, action: str, n_states: int) -> BoolArray:
    if isinstance(structure, str):
        if structure not in STRUCTURES:
            raise FitError(unknown_name(f"structure of action {action!r}", structure, STRUCTURES))
        i, j = np.indices((n_states, n_states))
        return np.asarray(STRUCTURES[structure](i, j))
    mask = np.asarray(structure)
    if mask.shape != (n_states, n_states) or mask.dtype != np.bool_:
        raise FitError(
            f"the structure of action {action!r} is an array of type {mask.dtype} and shape {mask.shape}, expected truth values "
            f"of shape ({n_states}, {n_states}): whether state j may follow state i; or one of: {', '.join(STRUCTURES)}"
        )
    closed = np.flatnonzero(~mask.any(axis=1))
    if closed.size:
        raise FitError(
            f"the structure of action {action!r} allows nothing from state {int(closed[0])}; allow a transition"
        )
    return mask
