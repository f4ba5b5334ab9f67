"""The snake maze: rows that are joined at alternate ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.model import Model
from actmeasure.settings import whole

__all__ = ["snake_maze", "state_number"]

STEP, PRIZE = -0.005, 1.0
#: Lengths of moves with their probabilities.
CAREFUL, RISKY = {1: 0.6, 2: 0.4}, {0: 0.5, 3: 0.5}
ACTIONS = ("left", "right", "risky left", "risky right", "down")


def state_number(x: int, y: int, width: int = 10) -> int:
    """Return the number of a cell, from its column from the left and its row from the top, counted from 0."""
    return y * width + x


def snake_maze(
    width: int = 10, height: int = 10, measuring_cost: npt.ArrayLike = 0.001, discount: float = 0.99
) -> Model:
    """The snake maze: walk down rows that are joined at alternate ends; from the literature on active measuring.

    `left` and `right` move 1 cell with probability 0.6, or 2; `risky left` and `risky right` move 0 or 3 cells with 1/2 each.
    Walls stop a move. `down` goes to the next row, but only at the right end of the rows 0, 2, 4 and so on, and at the left
    end of the others; elsewhere nothing happens. Every step costs 0.005. It begins at the top left; the far end of the last
    row pays 1 and ends the episode: with 10 rows that is x = 0, y = 9.

    Most of a row can be walked blindly, as the wall at its end stops every move. So a look pays near the ends, where a step too
    many is wasted.

    The dynamics are re-derived from public versions. Assumptions: the last step costs 0.005 as well, on top of the prize; the
    discount, as at 0.95 the prize is too far away to be worth the walk.

    Parameters
    ----------
    width : int
        Cells in a row, at least 2.
    height : int
        Rows, at least 1.
    measuring_cost : float, or array of shape (width * height, 5)
    discount : float
    """
    width, height = whole(width, "width", 2), whole(height, "height", 1)
    n_states = width * height
    here = np.arange(n_states)
    y, x = np.divmod(here, width)
    P = np.zeros((n_states, len(ACTIONS), n_states))
    for action, (sign, moves) in enumerate([(-1, CAREFUL), (1, CAREFUL), (-1, RISKY), (1, RISKY)]):
        for cells, chance in moves.items():
            P[here, action, y * width + np.clip(x + sign * cells, 0, width - 1)] += chance
    ends = x == np.where(y % 2 == 0, width - 1, 0)
    goal = np.flatnonzero(ends & (y == height - 1))[0]
    P[here, ACTIONS.index("down"), np.where(ends & (here != goal), np.minimum(here + width, n_states - 1), here)] = 1.0
    terminal = here == goal
    R = np.zeros((n_states, len(ACTIONS), n_states))
    R[~terminal] = STEP
    R[~terminal, :, goal] += PRIZE
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=state_number(0, 0), terminal=terminal,
        state_names=[f"x {column}, y {row}" for row in range(height) for column in range(width)], action_names=ACTIONS,
    )  # fmt: skip
