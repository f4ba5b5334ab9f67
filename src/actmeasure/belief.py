"""Beliefs: sparse probability distributions over states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray, normalised
from actmeasure.settings import whole

__all__ = ["Belief"]


@dataclass(frozen=True, eq=False)
class Belief:
    """A sparse distribution over states: the probability of each state in its support.

    Attributes
    ----------
    states : int64 array, shape (n,)
        The support, ascending. Empty when the episode is surely over.
    probabilities : float64 array, shape (n,)
        Positive, summing to 1.
    """

    states: npt.NDArray[np.int64]
    probabilities: FloatArray

    @classmethod
    def at(cls, state: int) -> Belief:
        """Return the belief in which a state is known."""
        return cls(np.array([whole(state, "the state", 0, 2**31 - 1)], dtype=np.int64), np.ones(1))

    @classmethod
    def start(cls, model: Model) -> Belief:
        """Return the model's start distribution."""
        return cls(model.initial_states, model.initial_probabilities)

    @classmethod
    def from_distribution(cls, probabilities: npt.ArrayLike) -> Belief:
        """Return a belief with these probabilities, shape (S,), divided by their sum."""
        try:
            dense = np.asarray(probabilities, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"a belief is {quoted(probabilities)}, expected one probability for every state"
            ) from error
        if dense.ndim != 1 or not np.isfinite(dense).all() or (dense < 0).any() or dense.sum() <= 0:
            raise ModelError("a belief needs one probability of 0 or more for every state, not all of them 0")
        states = np.flatnonzero(dense)
        return cls(states, normalised(dense[states]))

    def predict(self, model: Model, action: int) -> Belief:
        """Return the belief after a blind action, given that the episode is still running; empty if it cannot be."""
        states, weights = self._pushed(model, action)
        likely = weights > 0  # products of tiny probabilities may underflow to 0
        states, weights = states[likely], weights[likely]
        return Belief(states, weights / weights.sum()) if states.size else Belief(states, weights)

    def running_probability(self, model: Model, action: int) -> float:
        """Return the probability that the episode is still running after `action`."""
        return float(self._pushed(model, action)[1].sum())

    def _pushed(self, model: Model, action: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """Return the non-terminal successors, ascending, and the probability of each."""
        table = model.transitions
        # A fast check of the usual case: planners predict very often.
        if type(action) is not int or not 0 <= action < table.n_actions:
            action = whole(action, "the action", 0, table.n_actions - 1)
        if self.states.size and not 0 <= self.states[0] <= self.states[-1] < table.n_states:
            raise ModelError(
                f"the belief has states from {self.states[0]} to {self.states[-1]}, expected states of the model, from 0 to "
                f"{table.n_states - 1}; use it with the model it was made for"
            )
        rows = self.states * table.n_actions + action
        first, sizes = table.offsets[rows], table.offsets[rows + 1] - table.offsets[rows]
        # All entries of the rows, in order: the first entry of each row, repeated, plus the position inside the row.
        inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(first, sizes) + inside
        weights = np.repeat(self.probabilities, sizes) * table.probabilities[entries]
        running = ~model.terminal[table.successors[entries]]
        states, group = np.unique(table.successors[entries][running], return_inverse=True)
        mass = np.bincount(group, weights=weights[running], minlength=len(states))
        return states.astype(np.int64), mass.astype(np.float64)

    @property
    def known(self) -> int | None:
        """The state, if it is known, else None."""
        return int(self.states[0]) if len(self.states) == 1 else None

    @property
    def is_over(self) -> bool:
        """Whether the support is empty: the episode has surely ended."""
        return len(self.states) == 0

    def expected(self, values: FloatArray) -> FloatArray:
        """Return the expectation of `values`, shape (S, ...), which has shape (...)."""
        given = np.asarray(values)
        self._check_room(0 if given.ndim == 0 else len(given), "values")
        return np.asarray(np.tensordot(self.probabilities, given[self.states], axes=1))

    def dense(self, n_states: int) -> FloatArray:
        """Return the probability of every state, shape (S,)."""
        full = np.zeros(whole(n_states, "n_states", 1))
        self._check_room(len(full), "probabilities")
        full[self.states] = self.probabilities
        return full

    def _check_room(self, size: int, what: str) -> None:
        if self.states.size and self.states[-1] >= size:
            raise ModelError(
                f"there are {size} {what}, but the belief has state {self.states[-1]}; one is needed for every state"
            )

    def is_close(self, other: Belief, tolerance: float = 1e-12) -> bool:
        """Return whether two beliefs have the same support, and probabilities that differ by at most `tolerance`."""
        return np.array_equal(self.states, other.states) and bool(
            np.all(np.abs(self.probabilities - other.probabilities) <= tolerance)
        )

    def __repr__(self) -> str:
        likeliest = np.argsort(-self.probabilities, kind="stable")[:6]
        parts = ", ".join(f"{self.states[i]}: {self.probabilities[i]:.4g}" for i in likeliest)
        return f"Belief({{{parts}{', ...' if len(self.states) > 6 else ''}}})"
