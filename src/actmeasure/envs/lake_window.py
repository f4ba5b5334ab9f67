"""Which part of a lake is shown, and with what in it: what text and picture have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actmeasure.envs.story import Story
from actmeasure.problems.lake_map import CharArray
from actmeasure.transitions import FloatArray

__all__ = ["LakeWindow", "percent"]


@dataclass(frozen=True)
class LakeWindow:
    """The cells around the place where you are, at most `limit` in either direction.

    Attributes
    ----------
    cells : str array, shape (rows, columns)
    belief : float64 array, shape (rows, columns)
        Probability of being in each cell, 0 everywhere when the episode is over.
    you : (row, column)
        Where you are, inside the window.
    looked : (row, column) or None
        Where you looked last, if that is inside the window.
    corner : (row, column)
        The window's first cell in the lake.
    lake : (rows, columns)
        Size of the whole lake.
    """

    cells: CharArray
    belief: FloatArray
    you: tuple[int, int]
    looked: tuple[int, int] | None
    corner: tuple[int, int]
    lake: tuple[int, int]

    @classmethod
    def around(cls, cells: CharArray, story: Story, limit: int) -> LakeWindow:
        """The window that the story's state is in the middle of, as far as the lake allows."""
        n_rows, n_columns = cells.shape
        row, column = divmod(story.state, n_columns)
        top, rows = _span(row, n_rows, limit)
        left, columns = _span(column, n_columns, limit)
        belief = np.zeros((rows, columns))
        at_row, at_column = np.divmod(story.belief.states, n_columns)
        inside = (at_row >= top) & (at_row < top + rows) & (at_column >= left) & (at_column < left + columns)
        belief[at_row[inside] - top, at_column[inside] - left] = story.belief.probabilities[inside]
        looked = None
        if story.last_look is not None:
            look_row, look_column = divmod(story.last_look[1], n_columns)
            if top <= look_row < top + rows and left <= look_column < left + columns:
                looked = (look_row - top, look_column - left)
        return cls(
            cells=cells[top : top + rows, left : left + columns],
            belief=belief,
            you=(row - top, column - left),
            looked=looked,
            corner=(top, left),
            lake=(n_rows, n_columns),
        )

    @property
    def excerpt(self) -> str | None:
        """Which rows and columns are shown, unless all of them are."""
        if self.cells.shape == self.lake:
            return None
        (top, left), (rows, columns) = self.corner, self.cells.shape
        return f"rows {top}-{top + rows - 1}, columns {left}-{left + columns - 1}"


def _span(position: int, size: int, limit: int) -> tuple[int, int]:
    """First index and number of those shown around a position."""
    shown = min(size, limit)
    return min(max(position - shown // 2, 0), size - shown), shown


def percent(probability: float) -> str:
    """A probability in at most three characters; empty for 0."""
    if probability == 0:
        return ""
    return "<1" if probability < 0.005 else f"{100 * probability:.0f}"
