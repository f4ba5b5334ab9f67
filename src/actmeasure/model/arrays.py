"""Conversion of a user's arguments into the checked arrays of a `Model`; what does not fit is a `ModelError`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ModelError, first_repeated, quoted
from actmeasure.model.transitions import ACCEPTED_ERROR, FloatArray, Transitions, normalised

__all__ = ["initial_distribution", "names", "rewards", "sizes", "terminal_mask", "transitions"]


def _is_sparse_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(sparse.issparse(item) for item in value)


def _dense(value: Any, name: str, expected: str) -> FloatArray:
    if np.ma.is_masked(value):
        raise ModelError(f"{name} is a masked array with missing entries, expected {expected}; fill them in first")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # fractions, decimals
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} is not an array of numbers, expected {expected}") from error
    # Complex numbers would lose a part without a word, and text that happens to look like numbers is a mistake.
    if array.dtype.kind not in "biuf":
        raise ModelError(
            f"{name} is not an array of numbers but of type {array.dtype}, expected real numbers: {expected}"
        )
    return array.astype(np.float64, copy=False)


def _check_sparse_matrix(matrix: Any, name: str) -> None:
    """Raise a `ModelError` for a sparse array that is no matrix of real numbers."""
    if matrix.ndim != 2 or np.dtype(matrix.dtype).kind not in "biuf":
        raise ModelError(
            f"{name} is a sparse array of shape {matrix.shape} and type {matrix.dtype}, expected a matrix (S, S) of real numbers"
        )


def sizes(P: Any) -> tuple[int, int]:
    """Return the numbers of states and actions of a dense (S, A, S) array or a list of A sparse (S, S) matrices."""
    if sparse.issparse(P):
        raise ModelError(
            "P is one sparse matrix, expected a list with one (S, S) matrix per action; pass [P] for one action"
        )
    if _is_sparse_list(P):
        shape = P[0].shape
        for action, matrix in enumerate(P):
            _check_sparse_matrix(matrix, f"P[action {action}]")
            if matrix.shape != shape or shape[0] != shape[1]:
                raise ModelError(
                    f"P[action {action}] has shape {matrix.shape}, expected square matrices of one size ({shape[0]}, {shape[0]})"
                )
        n_states, n_actions = shape[0], len(P)
    else:
        shape = _dense(P, "P", "an array of shape (S, A, S) or A sparse matrices of shape (S, S)").shape
        if len(shape) != 3 or shape[0] != shape[2]:
            swapped = len(shape) == 3 and shape[1] == shape[2]
            remedy = "; it looks like (A, S, S): pass P.transpose(1, 0, 2)" if swapped else ""
            raise ModelError(f"P has shape {shape}, expected (S, A, S): states, actions, states{remedy}")
        n_states, n_actions = shape[0], shape[1]
    if n_states == 0 or n_actions == 0:
        raise ModelError(f"P has {n_states} states and {n_actions} actions, expected at least one of each")
    return n_states, n_actions


def terminal_mask(terminal: Any, n_states: int) -> npt.NDArray[np.bool_]:
    """Return a copy of the terminal mask, shape (S,); at least one state must not be terminal."""
    if terminal is None:
        return np.zeros(n_states, dtype=bool)
    mask = np.array(terminal)
    if mask.shape != (n_states,) or (mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all()):
        raise ModelError(
            f"terminal has shape {mask.shape} and type {mask.dtype}, expected {n_states} values True or False, one per state; "
            f"from the numbers of the states make them with np.isin(np.arange({n_states}), [...])"
        )
    mask = mask.astype(bool)
    if mask.all():
        raise ModelError("every state is terminal, so no episode can begin; leave at least one state non-terminal")
    return mask


def transitions(P: Any, n_states: int, n_actions: int, terminal: npt.NDArray[np.bool_]) -> Transitions:
    """Return the checked transition table of arrays that `sizes` accepted."""
    if _is_sparse_list(P):
        return Transitions.from_sparse(P, terminal)
    return Transitions.from_dense(_dense(P, "P", "an array of shape (S, A, S)"), terminal)


def rewards(R: Any, table: Transitions, terminal: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray | None]:
    """Return expected rewards, shape (S, A), and the reward of each table entry, or None where it is that of the action."""
    n_states, n_actions = table.n_states, table.n_actions
    if _is_sparse_list(R):
        return _successor_rewards(_entries_of_sparse(R, table, terminal), table)
    array = _dense(R, "R", f"shape ({n_states}, {n_actions}) or ({n_states}, {n_actions}, {n_states})")
    if array.shape not in ((n_states, n_actions), (n_states, n_actions, n_states)):
        raise ModelError(
            f"R has shape {array.shape}, expected ({n_states}, {n_actions}) or ({n_states}, {n_actions}, {n_states})"
            + _reward_remedy(array.shape, n_states, n_actions)
        )
    bad = ~np.isfinite(array)
    if bad.any():
        at = [int(i) for i in np.unravel_index(int(np.argmax(bad)), array.shape)]
        raise ModelError(f"R{at} is {array[tuple(at)]}, expected a finite number; correct this entry")
    _check_terminal_rewards(np.any(array.reshape(n_states, -1) != 0, axis=1), terminal)
    if array.ndim == 2:
        return array.copy(), None
    rows = table.entry_rows()
    return _successor_rewards(array[rows // n_actions, rows % n_actions, table.successors], table)


def _reward_remedy(shape: tuple[int, ...], n_states: int, n_actions: int) -> str:
    """Return what to do about rewards of a common other shape, for the message."""
    if shape == (n_states,):
        return "; for a reward per state pass np.repeat(R[:, None], A, axis=1)"
    if shape == (n_actions, n_states):
        return "; it looks like (A, S): pass R.T"
    if shape == (n_actions, n_states, n_states):
        return "; it looks like (A, S, S): pass R.transpose(1, 0, 2)"
    return ""


def _check_terminal_rewards(paying: npt.NDArray[np.bool_], terminal: npt.NDArray[np.bool_]) -> None:
    """Raise a `ModelError` if a terminal state has rewards; `paying` is the mask of states with rewards, shape (S,)."""
    paid = terminal & paying
    if paid.any():
        state = int(np.argmax(paid))
        raise ModelError(
            f"R[state {state}] is not 0, but state {state} is terminal, where no action is taken and nothing is earned; "
            "pay for entering it with R[s, a, s'] instead"
        )


def _entries_of_sparse(R: Sequence[Any], table: Transitions, terminal: npt.NDArray[np.bool_]) -> FloatArray:
    shape = (table.n_states, table.n_states)
    if len(R) != table.n_actions or any(matrix.shape != shape for matrix in R):
        raise ModelError(
            f"R is a list of {len(R)} sparse matrices, expected {table.n_actions} (one per action) of shape {shape}"
        )
    rows = table.entry_rows()
    values = np.zeros(len(rows))
    for action, matrix in enumerate(R):
        _check_sparse_matrix(matrix, f"R[action {action}]")
        compressed = sparse.csr_array(matrix, dtype=np.float64)
        bad = ~np.isfinite(compressed.data)
        if bad.any():
            entry = int(np.argmax(bad))
            state = int(np.searchsorted(compressed.indptr, entry, side="right")) - 1
            raise ModelError(
                f"R[state {state}, action {action}, state {compressed.indices[entry]}] is {compressed.data[entry]}, "
                "expected a finite number; correct this entry"
            )
        _check_terminal_rewards(abs(compressed).sum(axis=1) != 0, terminal)
        of_action = rows % table.n_actions == action
        values[of_action] = compressed[rows[of_action] // table.n_actions, table.successors[of_action]]
    return values


def _successor_rewards(per_entry: FloatArray, table: Transitions) -> tuple[FloatArray, FloatArray]:
    expected: FloatArray = table.stacked(table.probabilities * per_entry).sum(axis=1)
    return expected.reshape(table.n_states, table.n_actions), per_entry


def initial_distribution(initial: Any, terminal: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the states in which an episode may begin, ascending, and their probabilities."""
    n_states = len(terminal)
    value = _dense(initial, "initial", f"a state from 0 to {n_states - 1} or a distribution of shape ({n_states},)")
    if value.ndim == 0:
        state = float(value)
        if not state.is_integer() or not 0 <= state < n_states:
            raise ModelError(f"initial is state {initial}, expected a whole number from 0 to {n_states - 1}")
        states, probabilities = np.array([int(state)]), np.ones(1)
    else:
        states, probabilities = _checked_distribution(value, n_states)
    ended = states[terminal[states]]
    if ended.size:
        raise ModelError(f"initial gives state {ended[0]} a chance, but it is terminal; begin in a state that is not")
    for array in (states, probabilities):
        array.setflags(write=False)
    return states, probabilities


def _checked_distribution(value: FloatArray, n_states: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    if value.shape != (n_states,):
        raise ModelError(f"initial has shape {value.shape}, expected a state or a distribution of shape ({n_states},)")
    bad = ~np.isfinite(value) | (value < 0)
    if bad.any():
        state = int(np.argmax(bad))
        raise ModelError(f"initial[state {state}] is {value[state]}, expected a probability; correct this entry")
    if abs(value.sum() - 1) > ACCEPTED_ERROR:
        raise ModelError(f"initial sums to {value.sum():.6g}, expected 1; divide it by its sum")
    states = np.flatnonzero(value)
    return states, normalised(value[states])


def names(values: Sequence[str] | None, count: int, kind: str) -> tuple[str, ...] | None:
    """Return names as a tuple of distinct strings, or None."""
    if values is None:
        return None
    given = () if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if not given or not all(isinstance(value, str) for value in given):
        raise ModelError(f"{kind}_names must be a list of {count} strings, got {quoted(values)}")
    checked = tuple(str(value) for value in given)
    if len(checked) != count:
        raise ModelError(f"{kind}_names has {len(checked)} names, expected {count} (one per {kind})")
    twice = first_repeated(checked)
    if twice is not None:
        raise ModelError(f"{kind}_names has {twice!r} more than once; give every {kind} a name of its own")
    return checked
