"""A drone in a corridor with a corner, whose position can be measured."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import whole

__all__ = ["Corridor", "drone"]

ACCELERATIONS = (-2, -1, 0, 1, 2)
#: Wind: changes of an acceleration with their probabilities.
WIND = {-2: 0.02, -1: 0.14, 0: 0.68, 1: 0.14, 2: 0.02}
#: Rows of the goal at the far end of the corridor.
GOAL_ROWS = 3
#: Number of states whose transitions are computed at once, which bounds the memory.
STATES_AT_ONCE = 2_000

IntArray = npt.NDArray[np.int64]


class Corridor:
    """The legal combinations of cell and speed, numbered as states.

    States are numbered in the order of x, speed along x, y, speed along y. Then the outcomes of an action, in the order of their
    speeds, are in the order of their numbers. The last state, after all legal ones, is the crashed drone.

    Parameters
    ----------
    size : int
        Cells along each side of the field.
    width : int
        Of the corridor: cells with x and y both at least this are wall.
    top_speed : int
    """

    def __init__(self, size: int, width: int, top_speed: int) -> None:
        self.size, self.width, self.top_speed = size, width, top_speed
        speeds = 2 * top_speed + 1
        x, vx, y, vy = np.indices((size, speeds, size, speeds), dtype=np.int32)
        legal = (x < width) | (y < width)
        #: Position and speed of every legal state: x, y, vx, vy, each of shape (n,).
        self.x, self.y, self.vx, self.vy = x[legal], y[legal], vx[legal] - top_speed, vy[legal] - top_speed
        #: Number of each combination of x, vx, y, vy (speeds counted from 0), or that of the crashed drone.
        self.numbers = np.full(legal.shape, len(self.x), dtype=np.int32)
        self.numbers[legal] = np.arange(len(self.x))

    @property
    def crashed(self) -> int:
        """Number of the state of a crashed drone, the last one."""
        return len(self.x)

    @cached_property
    def is_goal(self) -> npt.NDArray[np.bool_]:
        """Mask of the states in the goal, shape (n + 1,)."""
        inside = (self.x > 0) & (self.x < self.width - 1) & (self.y >= self.size - GOAL_ROWS)
        return np.append(inside, False)

    def number(self, x: int, y: int, vx: int = 0, vy: int = 0) -> int:
        """Return the number of a state."""
        return int(self.numbers[x, vx + self.top_speed, y, vy + self.top_speed])

    def names(self) -> list[str]:
        """Return the names of all states."""
        columns = (column.tolist() for column in (self.x, self.y, self.vx, self.vy))
        return [f"({x}, {y}) at speed ({vx}, {vy})" for x, y, vx, vy in zip(*columns, strict=True)] + ["crashed"]


class _Axis(NamedTuple):
    """The transitions along one axis: for each speed (counted from 0) up to five later speeds, ascending."""

    later: IntArray  # (speeds, k): the speed afterwards, counted from 0
    moves: IntArray  # (speeds, k): cells that are flown meanwhile
    chances: FloatArray  # (speeds, accelerations, k)


def drone(
    size: int = 31, width: int = 6, top_speed: int = 5, measuring_cost: npt.ArrayLike = 0.01, discount: float = 0.95
) -> Model:
    """Fly a drone through a corridor with a corner in it, in gusts of wind; from the literature on active measuring.

    The state is a cell x, y, each 0 to 30, and a speed vx, vy, each -5 to 5; there is a wall where both x and y are at least
    6, which leaves 40,656 legal states. Each of the 25 actions accelerates by -2 to 2 along each axis. Wind adds 0 to each of
    the two with probability 0.68, -1 or 1 with 0.14 each, -2 or 2 with 0.02 each; the sum is clipped to -2 to 2, and the
    speed then to -5 to 5. Meanwhile the drone flies by the mean of the speeds before and after, rounded to whole cells. It
    begins at rest in (29, 2). Where 0 < x < 5 and y > 27 the episode ends and pays 1. Leaving the field or touching the wall
    ends it with nothing.

    The dynamics are re-derived from public versions, without their bugs. Assumptions: halves are rounded to even, so that
    left and right are alike; flights are straight lines between the centres of cells, and one that passes through the wall's
    corner touches it; the goal counts where a flight ends, not where it passes.

    Parameters
    ----------
    size : int
        Cells along each side of the field, at least 5.
    width : int
        Of the corridor, at least 3 and less than the size.
    top_speed : int
        Along each axis, at least 1.
    measuring_cost : float, or array of shape (S, 25)
    discount : float
    """
    size, top_speed = whole(size, "size", 5), whole(top_speed, "top_speed", 1)
    width = whole(width, "width", 3)
    if width >= size:
        raise ModelError(f"width is {width}, expected less than the size, {size}, or there is no wall; make it smaller")
    corridor = Corridor(size, width, top_speed)
    terminal = corridor.is_goal.copy()
    terminal[corridor.crashed] = True
    table = _table(corridor, terminal)
    paid = corridor.is_goal.astype(np.float64)
    return Model.assemble(
        table,
        rewards=np.asarray(table.stacked() @ paid).reshape(table.n_states, table.n_actions),
        transition_rewards=paid[table.successors],
        terminal=terminal,
        initial=corridor.number(size - 2, 2),
        measuring_cost=measuring_cost,
        discount=discount,
        state_names=corridor.names(),
        action_names=[f"({ax:+d}, {ay:+d})" for ax in ACCELERATIONS for ay in ACCELERATIONS],
    )


def _axis(top_speed: int) -> _Axis:
    speeds = np.arange(-top_speed, top_speed + 1)
    chances = np.zeros((len(speeds), len(ACCELERATIONS), len(speeds)))
    for column, acceleration in enumerate(ACCELERATIONS):
        for gust, chance in WIND.items():
            felt = np.clip(acceleration + gust, ACCELERATIONS[0], ACCELERATIONS[-1])
            later = np.clip(speeds + felt, -top_speed, top_speed)
            chances[np.arange(len(speeds)), column, later + top_speed] += chance
    count = min(len(ACCELERATIONS), len(speeds))
    first = np.clip(np.arange(len(speeds)) - ACCELERATIONS[-1], 0, len(speeds) - count)
    later = first[:, None] + np.arange(count)
    return _Axis(
        later=later,
        moves=np.rint((speeds[:, None] + speeds[later]) / 2).astype(np.int64),
        chances=np.take_along_axis(chances, later[:, None, :], axis=2),
    )


def _table(corridor: Corridor, terminal: npt.NDArray[np.bool_]) -> Transitions:
    """Return all transitions; entries of a row are in the order of the later speed along x, then along y, a crash last."""
    axis = _axis(corridor.top_speed)
    n_states, n_actions = len(terminal), len(ACCELERATIONS) ** 2
    sizes, successors, probabilities = [], [], []
    running = np.flatnonzero(~terminal)
    for piece in np.array_split(running, -(-len(running) // STATES_AT_ONCE)):
        reached = _reached(corridor, axis, piece)
        vx, vy = corridor.vx[piece] + corridor.top_speed, corridor.vy[piece] + corridor.top_speed
        chances = axis.chances[vx][:, :, None, :, None] * axis.chances[vy][:, None, :, None, :]
        chances = chances.reshape(len(piece), n_actions, -1)
        crashes = reached == corridor.crashed
        crashing = np.einsum("nak,nk->na", chances, crashes.astype(np.float64))[:, :, None]
        chances = np.concatenate([np.where(crashes[:, None, :], 0.0, chances), crashing], axis=2)
        reached = np.concatenate([reached, np.full((len(piece), 1), corridor.crashed, np.int32)], axis=1)
        possible = chances > 0
        sizes.append(np.count_nonzero(possible, axis=2))
        successors.append(np.broadcast_to(reached[:, None, :], possible.shape)[possible])
        probabilities.append(chances[possible])
    row_sizes = np.zeros((n_states, n_actions), dtype=np.int64)
    row_sizes[running] = np.concatenate(sizes)
    offsets = np.concatenate([[0], np.cumsum(row_sizes)])
    return Transitions.checked(
        n_states, n_actions, offsets, np.concatenate(successors), np.concatenate(probabilities), terminal
    )


def _reached(corridor: Corridor, axis: _Axis, states: IntArray) -> npt.NDArray[np.int32]:
    """Return the states that are reached with each pair of later speeds, shape (n, k * k), which are the same for all actions."""
    vx, vy = corridor.vx[states] + corridor.top_speed, corridor.vy[states] + corridor.top_speed
    x, y = corridor.x[states][:, None, None], corridor.y[states][:, None, None]
    to_x, to_y = x + axis.moves[vx][:, :, None], y + axis.moves[vy][:, None, :]
    inside = (to_x >= 0) & (to_x < corridor.size) & (to_y >= 0) & (to_y < corridor.size)
    last = corridor.size - 1
    numbers = corridor.numbers[
        np.clip(to_x, 0, last), axis.later[vx][:, :, None], np.clip(to_y, 0, last), axis.later[vy][:, None, :]
    ]
    flies = inside & ~_touches_corner(corridor.width, x, y, to_x, to_y)
    return np.where(flies, numbers, corridor.crashed).reshape(len(states), -1).astype(np.int32)


def _touches_corner(width: int, x: IntArray, y: IntArray, to_x: IntArray, to_y: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether flights from one arm of the corridor to the other pass through the wall at the corner."""

    def cuts(a: IntArray, b: IntArray, to_a: IntArray, to_b: IntArray) -> npt.NDArray[np.bool_]:
        # A flight leaves a >= width after (a - width) / (a - to_a) of its length; it is free if b < width by then.
        turns = (a >= width) & (to_a < width) & (b < width) & (to_b >= width)
        wall: npt.NDArray[np.bool_] = turns & ((b - width) * (a - to_a) + (a - width) * (to_b - b) >= 0)
        return wall

    return cuts(x, y, to_x, to_y) | cuts(y, x, to_y, to_x)
