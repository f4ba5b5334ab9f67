"""RockSample: a rover that checks rocks from a distance and samples the good ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ModelError, quoted
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import amount, whole

__all__ = ["LAYOUTS", "rock_sample"]

Cell = tuple[int, int]

#: Published positions (x, y) of the rocks, by size of the grid and number of rocks.
LAYOUTS: dict[Cell, tuple[Cell, ...]] = {
    (4, 4): ((3, 1), (2, 1), (1, 3), (1, 0)),
    (5, 5): ((2, 4), (0, 4), (3, 3), (2, 2), (4, 1)),
    (5, 7): ((1, 0), (2, 1), (1, 2), (2, 2), (4, 2), (0, 3), (3, 4)),
    (7, 8): ((2, 0), (0, 1), (3, 1), (6, 3), (2, 4), (3, 4), (5, 5), (1, 6)),
    (11, 11): ((0, 3), (0, 7), (1, 8), (2, 4), (3, 3), (3, 8), (4, 3), (5, 8), (6, 1), (9, 3), (9, 9)),
}
#: Moves, as changes of x and y.
MOVES = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
OUTCOMES = ("nothing", "good", "bad")
#: Reward of a good rock and of leaving the grid, and loss by a bad rock.
PRIZE = 10.0
#: Most states of a model that is made.
MOST_STATES = 1_000_000


def rock_sample(
    size: int = 4,
    rocks: int = 4,
    positions: Sequence[Sequence[int]] | None = None,
    start: Sequence[int] | None = None,
    half_efficiency: float = 20.0,
    measuring_cost: float = 0.0,
    discount: float = 0.95,
    seed: int | None = None,
) -> Model:
    """RockSample(n, k): a rover checks rocks from a distance and samples the good ones; after Smith and Simmons (2004).

    The rover knows its cell in a grid of n x n and those of k rocks, each of which is good with probability 1/2. It moves one
    cell north, south, east or west; a move against the edge changes nothing, but one to the east from the last column leaves the
    grid, pays 10 and ends the episode. `sample` pays 10 for a good rock, which turns bad, and costs 10 for a bad one; without a
    rock in the cell nothing happens. `check 1` to `check k` report a rock's quality, which is right with probability
    (1 + 2^(-d / d0)) / 2 at a distance of d, where d0 = 20. Checks cost nothing but time. There are n^2 2^k states, and one for
    the end: 257 for (4, 4), 801 for (5, 5) and 12,545 for (7, 8).

    This is a plain POMDP, as it is published: checks are actions, and what they report is seen without a measurement
    (`model.passive`; "nothing" after other actions). Rewards do not tell anything. The rover's cell is a known part of the state.

    For (4, 4), (5, 5), (5, 7), (7, 8) and (11, 11) the rocks are where they are in published comparisons, unless a seed is given;
    otherwise they are drawn. Assumptions: moves against the edge and samples without a rock change nothing (versions that punish
    them have the same optimum); d0 = 20 for all sizes, where some files of the smaller ones have less.

    Parameters
    ----------
    size : int
        Cells in a row and in a column, n.
    rocks : int
        Number of rocks, k.
    positions : sequence of (x, y), optional
        Cells of the rocks, counted from 0 in the south-west.
    start : (x, y), optional
        Where the rover begins: the middle of the first column, (0, n // 2), by default.
    half_efficiency : float
        The distance d0 at which a check is half as much better than a guess as at the rock.
    measuring_cost : float
        Price of a check.
    discount : float
        Below 1.
    seed : int, optional
        Draws positions of rocks; by default that is done only where no positions are published, with seed 0.

    Examples
    --------
    >>> import actmeasure as am
    >>> am.problems.rock_sample(7, 8)
    Model(12,545 states, 13 actions, no measurements, passive report, discount=0.95, 1 terminal)
    """
    size, rocks = whole(size, "size", 1), whole(rocks, "rocks", 1, 30)
    n_states = size * size * 2**rocks + 1
    if n_states > MOST_STATES:
        raise ModelError(
            f"RockSample({size}, {rocks}) has {n_states:,} states, expected at most {MOST_STATES:,}; use fewer rocks"
        )
    scale, price = amount(half_efficiency, "half_efficiency", above_zero=True), amount(measuring_cost, "measuring_cost")
    cells = _rock_cells(size, rocks, positions, seed)
    x0, y0 = _cells([(0, size // 2) if start is None else start], size, "start")[0]
    # State (y * n + x) * 2^k + bits, in which bit i tells that rock i is good; the last state is the end.
    cell, bits = np.divmod(np.arange(n_states - 1), 2**rocks)
    y, x = np.divmod(cell, size)
    successors, rewards = [], []
    for dx, dy in MOVES.values():
        there = np.clip(y + dy, 0, size - 1) * size + np.clip(x + dx, 0, size - 1)
        leaves = x + dx >= size
        successors.append(np.where(leaves, n_states - 1, there * 2**rocks + bits))
        rewards.append(np.where(leaves, PRIZE, 0.0))
    rock_here = np.full(size * size, -1)
    rock_here[[row * size + column for column, row in cells]] = np.arange(rocks)
    mask = np.where(rock_here >= 0, 1 << np.maximum(rock_here, 0), 0)[cell]
    successors.append(cell * 2**rocks + (bits & ~mask))
    rewards.append(np.where(mask == 0, 0.0, np.where(bits & mask, PRIZE, -PRIZE)))
    unseen = np.column_stack([np.ones(n_states - 1), np.zeros((n_states - 1, 2))])
    laws = [unseen] * len(successors)
    for rock, (column, row) in enumerate(cells):
        right = (1 + 2.0 ** (-np.hypot(x - column, y - row) / scale)) / 2
        good = np.where(bits >> rock & 1, right, 1 - right)
        laws.append(np.column_stack([np.zeros(n_states - 1), good, 1 - good]))
        successors.append(np.arange(n_states - 1))
        rewards.append(np.full(n_states - 1, -price))
    initial = np.zeros(n_states)
    first = (y0 * size + x0) * 2**rocks
    initial[first : first + 2**rocks] = 0.5**rocks
    return Model.from_arrays(
        [_to(there, n_states) for there in successors],
        np.vstack([np.column_stack(rewards), np.zeros(len(rewards))]),
        passive=Measurement.noisy("report", probabilities=[_with_end(law) for law in laws], outcomes=OUTCOMES),
        discount=discount,
        initial=initial,
        terminal=np.arange(n_states) == n_states - 1,
        state_names=_names(size, rocks),
        action_names=[*MOVES, "sample", *(f"check {rock + 1}" for rock in range(rocks))],
    )


def _rock_cells(size: int, rocks: int, positions: Any, seed: int | None) -> list[Cell]:
    """Return the cells of the rocks: those given, published, or drawn."""
    if positions is not None:
        cells = _cells(positions, size, "positions")
        if len(set(cells)) != len(cells) or len(cells) != rocks:
            raise ModelError(f"positions are {quoted(positions)}, expected {rocks} different cells, one for each rock")
        return cells
    if seed is None and (size, rocks) in LAYOUTS:
        return list(LAYOUTS[size, rocks])
    if rocks > size * size:
        raise ModelError(f"rocks is {rocks}, expected at most {size * size}, as there is one rock in a cell")
    rng = np.random.default_rng(0 if seed is None else whole(seed, "seed"))
    drawn = rng.choice(size * size, rocks, replace=False)
    return [(int(cell % size), int(cell // size)) for cell in drawn]


def _cells(given: Any, size: int, name: str) -> list[Cell]:
    """Return cells as pairs of whole numbers within the grid."""
    cells = []
    for cell in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
        pair = list(cell) if isinstance(cell, Sequence | np.ndarray) and not isinstance(cell, str) else []
        if len(pair) != 2:
            raise ModelError(f"{name}: {quoted(cell)} is no cell, expected its column and row, such as (0, 2)")
        column, row = (whole(value, f"{name}: {axis}", 0, size - 1) for value, axis in zip(pair, "xy", strict=True))
        cells.append((column, row))
    return cells


def _to(successors: npt.NDArray[np.int64], n_states: int) -> sparse.csr_array[np.float64]:
    """Return the matrix of a deterministic action, from the successor of each state but the last, which is terminal."""
    offsets = np.minimum(np.arange(n_states + 1), n_states - 1)
    return sparse.csr_array((np.ones(n_states - 1), successors, offsets), shape=(n_states, n_states))


def _with_end(law: FloatArray) -> sparse.csr_array[np.float64]:
    """Return probabilities of outcomes as a sparse matrix with a row for the end."""
    return sparse.csr_array(np.vstack([law, np.eye(1, law.shape[1])]))


def _names(size: int, rocks: int) -> list[str]:
    good = []
    for bits in range(2**rocks):
        numbers = [str(rock + 1) for rock in range(rocks) if bits >> rock & 1]
        good.append(f"good {' '.join(numbers)}" if numbers else "none good")
    return [*(f"x {x}, y {y}: {which}" for y, x, which in product(range(size), range(size), good)), "left the grid"]
