"""Frozen lakes: walk to the goal over ice with holes in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, unknown_name
from actmeasure.model import Model
from actmeasure.problems.lake_map import CharArray, lake_map
from actmeasure.transitions import FloatArray, Transitions

__all__ = ["ACTIONS", "VARIANTS", "frozen_lake", "lake_model"]

#: Gymnasium's order of actions, each with its move (rows, columns).
ACTIONS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
VARIANTS = ("deterministic", "slippery", "semi-slippery")


def frozen_lake(
    size: int | None = None,
    variant: str = "semi-slippery",
    measuring_cost: npt.ArrayLike = 0.05,
    discount: float = 0.95,
    map: Sequence[str] | None = None,
    seed: int | None = None,
) -> Model:
    """Walk to the goal over ice with holes in it; reaching the goal pays 1, and goal and holes end the episode.

    Parameters
    ----------
    size : int, optional
        Cells along each side, 4 by default. Sizes 4 and 8 are Gymnasium's maps unless a seed is given.
    variant : "deterministic", "slippery" or "semi-slippery"
        `deterministic` and `slippery` (each of the intended and the two perpendicular directions with 1/3) are Gymnasium's.
        `semi-slippery`: move one cell in the intended direction and, if that is no hole or goal, one more with
        probability 1/2.
    measuring_cost : float, or array of shape (S, 4)
    discount : float
    map : list or array of str, optional
        Rows of S (start), F (frozen), H (hole) and G (goal).
    seed : int, optional
        Draw a random map with 20 % holes, again until the goal can be reached.
    """
    return lake_model(lake_map(size, map, seed), variant, measuring_cost, discount)


def lake_model(cells: CharArray, variant: str, measuring_cost: npt.ArrayLike, discount: float) -> Model:
    """The model of a checked map, shape (rows, columns); states are cells, row by row."""
    if variant not in VARIANTS:
        raise ModelError(unknown_name("variant", variant, VARIANTS))
    terminal = np.isin(cells, ("H", "G")).ravel()
    successors, probabilities = _candidates(cells.shape, terminal, variant)
    table = Transitions.from_candidates(successors, probabilities, terminal)
    del successors, probabilities
    is_goal = (cells == "G").ravel().astype(np.float64)
    starts = (cells == "S").ravel()
    return Model.assemble(
        table,
        rewards=(table.stacked() @ is_goal).reshape(table.n_states, table.n_actions),
        transition_rewards=is_goal[table.successors],
        terminal=terminal,
        initial=starts / starts.sum(),
        measuring_cost=measuring_cost,
        discount=discount,
        action_names=tuple(ACTIONS),
    )


def _candidates(
    shape: tuple[int, ...], terminal: npt.NDArray[np.bool_], variant: str
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Possible successors of every cell and action and their probabilities, each of shape (S, 4, k)."""
    n_states, n_actions = shape[0] * shape[1], len(ACTIONS)
    step = np.empty((n_states, n_actions), dtype=np.int32)
    rows, columns = np.divmod(np.arange(n_states, dtype=np.int32), np.int32(shape[1]))
    for action, (down, right) in enumerate(ACTIONS.values()):
        step[:, action] = np.clip(rows + down, 0, shape[0] - 1) * shape[1] + np.clip(columns + right, 0, shape[1] - 1)
    if variant == "deterministic":
        return step[:, :, None], np.ones((n_states, n_actions, 1))
    if variant == "slippery":
        sideways = [np.roll(step, shift, axis=1) for shift in (1, 0, -1)]
        return np.stack(sideways, axis=2), np.full((n_states, n_actions, 3), 1 / 3)
    two = np.empty_like(step)
    for action in range(n_actions):
        two[:, action] = step[step[:, action], action]
    stops = terminal[step]
    return np.stack([step, two], axis=2), np.stack([np.where(stops, 1.0, 0.5), np.where(stops, 0.0, 0.5)], axis=2)
