"""Transition probabilities as one sparse table with a row for every (state, action)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ModelError

__all__ = ["FloatArray", "IntArray", "Transitions", "normalised"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]

#: Largest accepted difference of a row's sum from 1, as single-precision input has; such a row is rescaled.
ACCEPTED_ERROR = 1e-6
#: A row of n numbers whose sum differs from 1 by at most max(n, 4) times this counts as exact, and is not rescaled.
ROUNDING_ERROR = 2.0**-52


@dataclass(frozen=True, eq=False)
class Transitions:
    """Compressed rows over (state, action); the row of `(s, a)` is number `s * n_actions + a`.

    Rows are sorted by successor, without duplicates or zeros. The rows of terminal states are empty.

    Attributes
    ----------
    offsets : int64 array, shape (n_states * n_actions + 1,)
        Row `k` occupies the entries `offsets[k]:offsets[k + 1]`.
    successors : int32 array, shape (n_entries,)
    probabilities : float64 array, shape (n_entries,)
    """

    n_states: int
    n_actions: int
    offsets: npt.NDArray[np.int64]
    successors: npt.NDArray[np.int32]
    probabilities: FloatArray

    @classmethod
    def from_dense(cls, probabilities: FloatArray, terminal: npt.NDArray[np.bool_]) -> Transitions:
        """Build a table from an array of shape (S, A, S)."""
        n_states, n_actions, _ = probabilities.shape
        rows = sparse.csr_array(probabilities.reshape(n_states * n_actions, n_states))
        return cls._from_rows(rows, n_actions, terminal)

    @classmethod
    def from_sparse(cls, matrices: Sequence[Any], terminal: npt.NDArray[np.bool_]) -> Transitions:
        """Build a table from A scipy sparse matrices of shape (S, S), one per action."""
        n_states, n_actions = matrices[0].shape[0], len(matrices)
        stacked = sparse.vstack([sparse.coo_array(m) for m in matrices], format="coo")
        action, state = np.divmod(stacked.coords[0].astype(np.int64), n_states)
        rows = sparse.csr_array(
            (stacked.data.astype(np.float64), (state * n_actions + action, stacked.coords[1])),
            shape=(n_states * n_actions, n_states),
        )
        return cls._from_rows(rows, n_actions, terminal)

    @classmethod
    def _from_rows(cls, rows: Any, n_actions: int, terminal: npt.NDArray[np.bool_]) -> Transitions:
        rows.sum_duplicates()
        n_states = rows.shape[1]
        keep = (rows.data != 0) & ~np.repeat(np.repeat(terminal, n_actions), np.diff(rows.indptr))
        offsets = np.concatenate([[0], np.cumsum(keep)])[rows.indptr]
        return cls.checked(n_states, n_actions, offsets, rows.indices[keep], rows.data[keep], terminal)

    @classmethod
    def from_candidates(
        cls, successors: IntArray, probabilities: FloatArray, terminal: npt.NDArray[np.bool_]
    ) -> Transitions:
        """Build a table from k possible successors for each (state, action), which may coincide or have probability 0.

        Parameters
        ----------
        successors, probabilities : arrays, shape (S, A, k)
        terminal : bool array, shape (S,)
        """
        n_states, n_actions, _ = successors.shape
        order = np.argsort(successors, axis=2, kind="stable")
        successors = np.take_along_axis(successors, order, axis=2).astype(np.int32, copy=False)
        probabilities = np.take_along_axis(probabilities, order, axis=2)
        del order
        keep = (probabilities > 0) & ~terminal[:, None, None]
        row_sizes = np.count_nonzero(keep, axis=2).ravel()
        flat_successors, flat_probabilities = successors[keep], probabilities[keep]
        del successors, probabilities, keep
        rows = sparse.csr_array(
            (flat_probabilities, flat_successors, np.concatenate([[0], np.cumsum(row_sizes)])),
            shape=(n_states * n_actions, n_states),
        )
        rows.sum_duplicates()
        return cls.checked(n_states, n_actions, rows.indptr, rows.indices, rows.data, terminal)

    @classmethod
    def checked(
        cls,
        n_states: int,
        n_actions: int,
        offsets: IntArray,
        successors: IntArray,
        probabilities: FloatArray,
        terminal: npt.NDArray[np.bool_],
    ) -> Transitions:
        """Build a table from compressed rows without zeros, empty where terminal; rows must be distributions."""
        _check_layout(n_states, n_actions, offsets, successors, probabilities)
        table = cls(
            n_states,
            n_actions,
            np.ascontiguousarray(offsets, dtype=np.int64),
            np.ascontiguousarray(successors, dtype=np.int32),
            np.ascontiguousarray(probabilities, dtype=np.float64),
        )
        table._check_entries()
        table = table._with_rows_of_sum_one(terminal)
        for array in (table.offsets, table.successors, table.probabilities):
            array.setflags(write=False)
        return table

    def _check_entries(self) -> None:
        bad = ~np.isfinite(self.probabilities) | (self.probabilities < 0) | (self.probabilities > 1 + ACCEPTED_ERROR)
        if bad.any():
            entry = int(np.argmax(bad))
            state, action = self.row_of_entry(entry)
            raise ModelError(
                f"P[state {state}, action {action}, state {self.successors[entry]}] is "
                f"{self.probabilities[entry]}, expected a probability between 0 and 1; correct this entry"
            )

    def _with_rows_of_sum_one(self, terminal: npt.NDArray[np.bool_]) -> Transitions:
        sums: FloatArray = self.stacked().sum(axis=1)
        error = np.abs(sums - 1.0)
        wrong = (error > ACCEPTED_ERROR) & ~np.repeat(terminal, self.n_actions)
        if wrong.any():
            state, action = divmod(int(np.argmax(wrong)), self.n_actions)
            total = float(sums[state * self.n_actions + action])
            difference = f"missing {1 - total:.6g}" if total < 1 else f"{total - 1:.6g} too much"
            remedy = (
                f"mark state {state} as terminal if the episode ends there, or give it a successor"
                if total == 0
                else "add the missing successor, or divide the row by its sum"
            )
            raise ModelError(
                f"P[state {state}, action {action}] sums to {total:.6g}, expected 1 ({difference}); {remedy}"
            )
        rescale = (error > ROUNDING_ERROR * np.maximum(4, np.diff(self.offsets))) & (sums > 0)
        if not rescale.any():
            return self
        factors = np.where(rescale, sums, 1.0)
        scaled = self.probabilities / np.repeat(factors, np.diff(self.offsets))
        return Transitions(self.n_states, self.n_actions, self.offsets, self.successors, scaled)

    def row_of_entry(self, entry: int) -> tuple[int, int]:
        """Return the (state, action) of an entry."""
        row = int(np.searchsorted(self.offsets, entry, side="right")) - 1
        return divmod(row, self.n_actions)

    def entry_rows(self) -> npt.NDArray[np.int64]:
        """Return the row number of every entry, shape (n_entries,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def row(self, state: int, action: int) -> tuple[npt.NDArray[np.int32], FloatArray]:
        """Return the successors of (state, action) and their probabilities, as views."""
        k = state * self.n_actions + action
        entries = slice(self.offsets[k], self.offsets[k + 1])
        return self.successors[entries], self.probabilities[entries]

    def stacked(self, values: FloatArray | None = None) -> sparse.csr_array[np.float64]:
        """Return the table as a sparse matrix, shape (S * A, S), of the probabilities or of other `values` per entry."""
        data = self.probabilities if values is None else values
        shape = (self.n_states * self.n_actions, self.n_states)
        return sparse.csr_array((data, self.successors, self.offsets), shape=shape)

    def matrix(self, action: int) -> sparse.csr_array[np.float64]:
        """Return the transition matrix of one action, shape (S, S); rows of terminal states are zero."""
        return self.stacked()[action :: self.n_actions]

    def dense(self, values: FloatArray | None = None) -> FloatArray:
        """Return the table as a dense array, shape (S, A, S), for small models."""
        return self.stacked(values).toarray().reshape(self.n_states, self.n_actions, self.n_states)


def normalised(weights: FloatArray) -> FloatArray:
    """Return weights divided by their sum, or unchanged if that is 1 up to rounding."""
    total = weights.sum()
    return weights if abs(total - 1.0) <= ROUNDING_ERROR * max(4, len(weights)) else weights / total


def _check_layout(
    n_states: int, n_actions: int, offsets: IntArray, successors: IntArray, probabilities: FloatArray
) -> None:
    """Raise a `ModelError` for arrays that are no compressed rows, as a damaged file may hold."""
    if n_states < 1 or n_actions < 1:
        raise ModelError(f"a model needs at least one state and one action, got {n_states} and {n_actions}")
    if offsets.ndim != 1 or successors.ndim != 1 or len(offsets) != n_states * n_actions + 1:
        raise ModelError(
            f"the transition table has {offsets.size - 1} rows, expected {n_states * n_actions} "
            f"(one for each of {n_states} states and {n_actions} actions)"
        )
    if successors.shape != probabilities.shape or offsets[0] != 0 or offsets[-1] != len(successors):
        raise ModelError("the transition table's rows, successors and probabilities do not fit together")
    # Compared pairwise: differences of damaged offsets could overflow.
    if np.any(offsets[1:] < offsets[:-1]):
        raise ModelError("the transition table's row offsets are not ascending")
    if successors.size and (successors.min() < 0 or successors.max() >= n_states):
        raise ModelError(f"the transition table names a successor outside 0..{n_states - 1}")
    within_row = np.ones(len(successors), dtype=bool)
    starts = offsets[:-1][np.diff(offsets) > 0]
    within_row[starts] = False
    if np.any((np.diff(successors) <= 0) & within_row[1:]):
        raise ModelError("the transition table's rows are not sorted by successor or name a successor twice")
