"""Frozen lakes: grids of ice with holes and a goal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from actmeasure.errors import ModelError, quoted, unknown_name
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import whole

__all__ = ["ACTIONS", "HOLE_PROBABILITY", "VARIANTS", "frozen_lake", "lake_map", "lake_model"]

CharArray = npt.NDArray[np.str_]

#: Probability that a cell of a random map is a hole.
HOLE_PROBABILITY = 0.2
#: Gymnasium's order of actions, each with its move (rows, columns).
ACTIONS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
#: Largest number of cells along a side: nine million states take some 5 GiB.
LARGEST_SIZE = 3000
VARIANTS = ("deterministic", "slippery", "semi-slippery")


def frozen_lake(
    size: int | None = None,
    variant: str = "semi-slippery",
    measuring_cost: npt.ArrayLike = 0.05,
    discount: float = 0.95,
    map: Sequence[str] | None = None,
    seed: int | None = None,
) -> Model:
    """A frozen lake: walk over ice with holes to a goal, which pays 1; goal and holes end the episode.

    Parameters
    ----------
    size : int, optional
        Cells along each side, 4 by default, up to 3,000. Sizes 4 and 8 are Gymnasium's maps unless a seed is given.
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
    """Return the model of a checked map, shape (rows, columns); states are cells, row by row."""
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
    """Return the possible successors of every cell and action and their probabilities, each of shape (S, 4, k)."""
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


def lake_map(size: int | None, given: Sequence[str] | None, seed: int | None) -> CharArray:
    """Return the cells of a given, standard or random map, shape (rows, columns): S start, F frozen, H hole, G goal."""
    if given is not None:
        if size is not None or seed is not None:
            raise ModelError("give either a map, or a size (with a seed for a random map), not both")
        return _checked(given)
    size = 4 if size is None else whole(size, "size", 2, LARGEST_SIZE, what="a whole number of cells")
    if seed is not None:
        return _random(size, whole(seed, "seed"))
    from gymnasium.envs.toy_text.frozen_lake import MAPS

    name = f"{size}x{size}"
    if name not in MAPS:
        raise ModelError(
            f"there is no standard {name} map (only {', '.join(MAPS)}); pass seed=0 for a random one, or map=[...]"
        )
    return _checked(MAPS[name])


def _checked(rows: Sequence[str]) -> CharArray:
    if isinstance(rows, np.ndarray) and rows.ndim == 2:  # one letter to a cell
        rows = ["".join(map(str, row)) for row in rows]
    # A string is a sequence, too, in which each letter would be a row.
    given = tuple(rows) if isinstance(rows, (Sequence, np.ndarray)) and not isinstance(rows, str) else ()
    if not given or not all(isinstance(row, str) and row for row in given):
        raise ModelError(f"map is {quoted(rows)}, expected a list of strings such as ['SF', 'HG']")
    if len({len(row) for row in given}) > 1:
        raise ModelError(f"the map's rows have lengths {[len(row) for row in given]}, expected all of them the same")
    cells = np.array([list(row) for row in given])
    wrong = ~np.isin(cells, list("SFHG"))
    if wrong.any():
        row, column = np.unravel_index(int(np.argmax(wrong)), cells.shape)
        raise ModelError(
            f"the map has {str(cells[row, column])!r} in row {row}, column {column}, expected S start, F frozen, H hole or G goal"
        )
    for letter, what in (("S", "start"), ("G", "goal")):
        if letter not in cells:
            raise ModelError(f"the map has no {what}; mark at least one cell with {letter}")
    return cells


def _random(size: int, seed: int) -> CharArray:
    """Return a random map: drawn again until the goal can be reached from the start."""
    generator = np.random.default_rng(seed)
    while True:
        holes = generator.random((size, size)) < HOLE_PROBABILITY
        holes[0, 0] = holes[-1, -1] = False
        regions, _ = ndimage.label(~holes)
        if regions[0, 0] == regions[-1, -1]:
            break
    cells = np.where(holes, "H", "F")
    cells[0, 0], cells[-1, -1] = "S", "G"
    return cells
