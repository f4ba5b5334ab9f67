"""The tables of a `.pomdp` file as compressed rows over (action, state), checked to be distributions, with expected rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.pomdp_reader import ENTRY_ERROR, ROW_ERROR, Pomdp, ProbabilityTable
from actmeasure.model.transitions import ROUNDING_ERROR, FloatArray

__all__ = ["Rows", "Tables", "tables_of"]

IndexArray = npt.NDArray[np.int64]

#: Largest number of rewards by observation that are averaged at once.
CHUNK = 2_000_000


@dataclass(frozen=True)
class Rows:
    """Compressed rows: that of action `a` and state `s` is number `a * S + s`; columns ascend, values are not 0."""

    offsets: IndexArray
    columns: IndexArray
    values: FloatArray

    def sizes(self) -> IndexArray:
        """Return the number of entries of every row."""
        return np.diff(self.offsets)

    def row_of_entry(self) -> IndexArray:
        """Return the row of every entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes())

    def part(self, first: int, last: int) -> Rows:
        """Return the rows from `first` to before `last`."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return Rows(self.offsets[first : last + 1] - begin, self.columns[begin:end], self.values[begin:end])


@dataclass(frozen=True)
class Tables:
    """What a file says, as arrays.

    Attributes
    ----------
    moves : Rows
        Transition probabilities; columns are successors.
    shown : Rows
        Probabilities of observations; row `a * S + t` is for state `t` reached by action `a`.
    rewards : float64 array, one for each entry of `moves`
        Rewards that depend on the observation are expectations over it, given action and successor.
    """

    moves: Rows
    shown: Rows
    rewards: FloatArray

    def rewards_of(self, first: int, last: int) -> FloatArray:
        """Return the rewards of the entries of `moves` in the rows from `first` to before `last`."""
        return self.rewards[int(self.moves.offsets[first]) : int(self.moves.offsets[last])]


def tables_of(pomdp: Pomdp) -> Tables:
    """Return the tables of a file; a `ModelError` names a row that is not a distribution."""
    shown = _distributions(pomdp, pomdp.shown, "observation")
    moves = _distributions(pomdp, pomdp.transitions, "transition")
    return Tables(moves, shown, _expected_rewards(pomdp, moves, shown))


def _distributions(pomdp: Pomdp, table: ProbabilityTable, what: str) -> Rows:
    """Return the rows of a table, divided by their sums where these differ from 1 by more than rounding."""
    n_states = pomdp.states.count
    n_rows = pomdp.actions.count * n_states
    sizes = np.zeros(n_rows, dtype=np.int64)
    numbers = sorted(table.rows)
    sizes[numbers] = [len(table.rows[number]) for number in numbers]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(np.arange(n_rows), sizes)
    columns = np.array([column for number in numbers for column in table.rows[number]], dtype=np.int64)
    values = np.array([value for number in numbers for value in table.rows[number].values()], dtype=np.float64)
    order = np.lexsort((columns, rows))
    columns, values = columns[order], values[order]
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    error = np.abs(sums - 1)
    wrong = error > np.maximum(ROW_ERROR, ENTRY_ERROR * sizes)
    if wrong.any():
        action, state = divmod(int(np.argmax(wrong)), n_states)
        raise ModelError(
            f"the {what} probabilities of action {pomdp.actions[action]!r} in state {pomdp.states[state]!r} sum to "
            f"{sums[action * n_states + state]:.6g}, expected 1; complete them"
        )
    rescaled = error > ROUNDING_ERROR * np.maximum(4, sizes)
    return Rows(offsets, columns, values / np.where(rescaled, sums, 1.0)[rows] if rescaled.any() else values)


def _expected_rewards(pomdp: Pomdp, moves: Rows, shown: Rows) -> FloatArray:
    """Return the reward of every entry of `moves`: the mean over observations where it depends on them."""
    n_states = pomdp.states.count
    actions, states = np.divmod(moves.row_of_entry(), n_states)
    successors = moves.columns
    if not pomdp.rewards.by_observation:
        return pomdp.rewards_at(actions, states, successors, np.zeros_like(successors))
    found = np.empty(len(successors))
    rows = actions * n_states + successors
    ends = np.cumsum(shown.sizes()[rows])
    first = 0
    while first < len(rows):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        some = slice(first, last)
        sizes = shown.sizes()[rows[some]]
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        entry = np.repeat(np.arange(first, last), sizes)
        at = shown.offsets[rows[entry]] + np.arange(len(entry)) - np.repeat(begins, sizes)
        paid = pomdp.rewards_at(actions[entry], states[entry], successors[entry], shown.columns[at])
        least, most = np.minimum.reduceat(paid, begins), np.maximum.reduceat(paid, begins)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is refused later
            mean = np.add.reduceat(shown.values[at] * paid, begins)
        found[some] = np.where(least == most, least, mean)  # where they are equal, without rounding
        first = last
    return found
