"""The fast format: a zip archive of NumPy arrays, exact to the last bit, without pickle.

`numpy.load` reads these files too. Their contents go through the same checks as a model built from arrays.
"""

from __future__ import annotations

import math
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.archive import Arrays, Shapes, read_arrays, write_arrays
from actmeasure.files.checks import FORMAT, VERSION, Count, Number, Parts, Strict, converted
from actmeasure.model import Model

__all__ = ["read", "write"]

#: Members of the archive besides `about` and their types; `measuring_cost` has shape () or (S, A).
MEMBERS = {
    "offsets": "<i8",
    "successors": "<i4",
    "probabilities": "<f8",
    "rewards": "<f8",
    "transition_rewards": "<f8",
    "terminal": "|b1",
    "initial_states": "<i8",
    "initial_probabilities": "<f8",
    "measuring_cost": "<f8",
}
OPTIONAL = ("transition_rewards",)


class _About(Strict):
    """The shape of the member `about`: what arrays cannot hold."""

    format: str
    version: Count
    discount: Number
    reveal_start: bool
    state_names: list[str] | None
    action_names: list[str] | None


def write(model: Model, file: BinaryIO) -> None:
    """Write the model into an open file."""
    table = model.transitions
    about = {
        "format": FORMAT, "version": VERSION, "discount": model.discount, "reveal_start": model.reveal_start,
        "state_names": model.state_names, "action_names": model.action_names,
    }  # fmt: skip
    arrays: dict[str, npt.ArrayLike | None] = {
        "offsets": table.offsets,
        "successors": table.successors,
        "probabilities": table.probabilities,
        "rewards": model.rewards,
        "transition_rewards": model.transition_rewards,
        "terminal": model.terminal,
        "initial_states": model.initial_states,
        "initial_probabilities": model.initial_probabilities,
        "measuring_cost": model.measuring_cost,
    }
    write_arrays(file, about, arrays, MEMBERS)


def read(contents: bytes) -> Model:
    """Return the model in the bytes of an `.npz` file; a `ModelError` tells what is damaged."""
    about, arrays = read_arrays(contents, FORMAT, MEMBERS, _check_shapes, _check_about, OPTIONAL)
    return _parts(converted(about, _About, "'about'"), arrays).model()


def _parts(about: _About, arrays: Arrays) -> Parts:
    """Return the contents of the archive, whose shapes are already known to fit."""
    n_states, n_actions = arrays["rewards"].shape
    costs = arrays["measuring_cost"]
    return Parts(
        n_states=n_states,
        n_actions=n_actions,
        offsets=arrays["offsets"],
        successors=arrays["successors"],
        probabilities=arrays["probabilities"],
        rewards=arrays["rewards"],
        transition_rewards=arrays.get("transition_rewards"),
        terminal=arrays["terminal"],
        initial=_start(arrays["initial_states"], arrays["initial_probabilities"], n_states),
        measuring_cost=costs if costs.ndim else float(costs),
        discount=about.discount,
        reveal_start=about.reveal_start,
        state_names=about.state_names,
        action_names=about.action_names,
    )


def _check_about(about: dict[str, Any], shapes: Shapes) -> None:
    """Raise a `ModelError` if the member `about` has another shape than `_About`."""
    converted(about, _About, "'about'")


def _check_shapes(shapes: Shapes) -> int:
    """Return the largest possible number of names; a `ModelError` if the shapes of the arrays do not make a model."""
    if len(shapes["rewards"]) != 2:
        raise ModelError(f"'rewards' has shape {shapes['rewards']}, expected (states, actions); the file is damaged")
    n_states, n_actions = shapes["rewards"]
    n_entries, starts = math.prod(shapes["successors"]), math.prod(shapes["initial_states"])
    expected: Shapes = {
        "offsets": (n_states * n_actions + 1,), "successors": (n_entries,), "probabilities": (n_entries,),
        "transition_rewards": (n_entries,), "terminal": (n_states,), "initial_states": (starts,),
        "initial_probabilities": (starts,), "measuring_cost": (n_states, n_actions) if shapes["measuring_cost"] else (),
    }  # fmt: skip
    for name, shape in expected.items():
        if name in shapes and shapes[name] != shape:
            raise ModelError(f"{name!r} has shape {shapes[name]}, expected {shape}; the file is damaged")
    if n_entries > n_states * n_actions * n_states or starts > n_states:
        raise ModelError(
            f"it has {n_entries:,} transitions and {starts:,} initial states, more than there can be with {n_states:,} states "
            f"and {n_actions:,} actions; the file is damaged"
        )
    return n_states + n_actions


def _start(
    states: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64], n_states: int
) -> npt.NDArray[np.float64]:
    """Return the initial distribution, shape (S,)."""
    if not states.size or states.min() < 0 or states.max() >= n_states or np.any(states[1:] <= states[:-1]):
        raise ModelError(f"the initial states are not ascending numbers from 0 to {n_states - 1}; the file is damaged")
    if np.any(probabilities == 0):
        raise ModelError("an initial state has probability 0, expected a positive one; the file is damaged")
    initial = np.zeros(n_states)
    initial[states] = probabilities
    return initial
