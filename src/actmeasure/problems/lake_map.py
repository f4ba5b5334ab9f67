"""Maps of frozen lakes: given, Gymnasium's, or random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from actmeasure.errors import ModelError, quoted
from actmeasure.settings import whole

__all__ = ["HOLE_SHARE", "lake_map"]

#: Share of holes in a random map.
HOLE_SHARE = 0.2

CharArray = npt.NDArray[np.str_]


def lake_map(size: int | None, given: Sequence[str] | None, seed: int | None) -> CharArray:
    """The cells of a lake, shape (rows, columns): S start, F frozen, H hole, G goal."""
    if given is not None:
        if size is not None or seed is not None:
            raise ModelError("give either a map, or a size (with a seed for a random map), not both")
        return _checked(given)
    size = 4 if size is None else whole(size, "size", 2, what="a whole number of cells")
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
    # Text is a sequence too, but then each of its letters would be a row.
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
    """Draw maps with 20 % holes until the goal can be reached from the start."""
    generator = np.random.default_rng(seed)
    while True:
        holes = generator.random((size, size)) < HOLE_SHARE
        holes[0, 0] = holes[-1, -1] = False
        regions, _ = ndimage.label(~holes)
        if regions[0, 0] == regions[-1, -1]:
            break
    cells = np.where(holes, "H", "F")
    cells[0, 0], cells[-1, -1] = "S", "G"
    return cells
