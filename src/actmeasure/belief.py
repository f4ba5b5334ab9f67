"""Beliefs: sparse probability distributions over states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, PlanError, quoted, unknown_name
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray, normalised
from actmeasure.settings import whole

__all__ = ["Belief", "running_belief"]

#: What the probabilities of a belief may sum to, more or less than 1.
MOST_OFF = 1e-6


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

    def outcomes(self, model: Model, action: int, measurement: int | str = 0) -> FloatArray:
        """Return the probability of each outcome of a measurement made with an action, given that the episode still runs.

        Parameters
        ----------
        model : Model
        action : int
        measurement : int or str
            Number (0 is none: what is seen for free) or name of the measurement.

        Returns
        -------
        float64 array, shape (O,)
            All 0 if the episode is surely over after the action. Where nothing is seen, O is 1: the outcome *nothing*.

        Examples
        --------
        >>> import numpy as np
        >>> import actmeasure as am
        >>> P, R = np.array([[[0.9, 0.1]], [[0.0, 1.0]]]), np.zeros((2, 1))
        >>> visual = am.Measurement.detection("visual", cost=1.0, pod=[0.0, 0.5])
        >>> model = am.Model.from_arrays(P, R, measurements=[visual])
        >>> am.Belief.at(0).outcomes(model, 0, "visual")
        array([0.95, 0.05])
        >>> am.Belief.at(0).update(model, 0, "visual", "hit")
        Belief({1: 1})
        """
        _, shows = _measurement_with(model, measurement, action)
        after = self.predict(model, action)
        if shows is None:
            return np.zeros(1) if after.is_over else np.ones(1)
        if shows.law is None:
            chances = np.zeros(model.n_states)
            chances[after.states] = after.probabilities
            return chances
        rows = shows.law.of_action(action, model.n_states)[after.states]
        return np.asarray(rows.T @ after.probabilities, dtype=np.float64)

    def update(self, model: Model, action: int, measurement: int | str = 0, outcome: int | str | None = None) -> Belief:
        """Return the belief after an action and the outcome of the measurement made with it, by Bayes' rule.

        The belief before the action is moved one step, conditioned on "still running", then on the outcome.

        Parameters
        ----------
        model : Model
        action : int
        measurement : int or str
            Number (0 is none) or name of the measurement.
        outcome : int, str or None
            Number or name of the outcome within that measurement; None where nothing is seen. An outcome of probability 0 is a
            `ModelError`.
        """
        number, shows = _measurement_with(model, measurement, action)
        after = self.predict(model, action)
        if shows is None:
            if outcome is not None and (not isinstance(outcome, (int, np.integer)) or outcome is False or outcome != 0):
                raise ModelError(
                    f"the outcome is {quoted(outcome)}, but without a measurement nothing is seen; pass None"
                )
            return after
        seen = _outcome_number(model, number, outcome)
        if shows.law is None:
            weights = np.where(after.states == seen, after.probabilities, 0.0)
        else:
            rows = shows.law.of_action(action, model.n_states)[after.states]
            weights = after.probabilities * rows[:, [seen]].toarray().ravel()
        if not weights.sum() > 0:
            over = "the episode is surely over" if after.is_over else "it has probability 0"
            raise ModelError(
                f"the outcome '{model.outcome_name(number, seen)}' of {shows.name!r} is impossible after action "
                f"'{model.action_name(action)}' from {self!r}: {over}; check the outcome, or the belief it came from"
            )
        likely = weights > 0
        states, weights = after.states[likely], weights[likely]
        return Belief(states, weights / weights.sum())

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


def running_belief(model: Model, given: object) -> Belief:
    """Return what was given if it is a distribution over states in which episodes of the model still run; else a `PlanError`."""
    if isinstance(given, Belief):
        states, chances = np.asarray(given.states), np.asarray(given.probabilities)
        if (
            states.ndim == 1
            and states.shape == chances.shape
            and states.size
            and states.dtype.kind in "iu"
            and chances.dtype.kind == "f"
            and (np.diff(states) > 0).all()
            and 0 <= states[0] <= states[-1] < model.n_states
            and not model.terminal[states].any()
            and (chances >= 0).all()
            and abs(chances.sum() - 1) <= MOST_OFF
        ):
            return given
    raise PlanError(
        f"the belief is {quoted(given)}, expected a belief of a running episode of the model, with probabilities that "
        "sum to 1, such as Belief.at(0)"
    )


def _measurement_with(model: Model, measurement: int | str, action: int) -> tuple[int, Measurement | None]:
    """Return the number of a measurement and what shows its outcome; it must be allowed with the action."""
    number = model.measurement_number(measurement)
    action = whole(action, "the action", 0, model.n_actions - 1)
    if not model.allowed_decisions[action, number]:
        allowed = [model.action_name(other) for other in np.flatnonzero(model.allowed_decisions[:, number]).tolist()]
        raise ModelError(
            f"{model.measurements[number - 1].name!r} cannot be made with action {model.action_name(action)!r}, only with "
            f"{', '.join(allowed)}"
        )
    return number, model.shown_by(number)


def _outcome_number(model: Model, measurement: int, outcome: int | str | None) -> int:
    """Return the number of an outcome that is given by number or name."""
    shows = model.shown_by(measurement)
    name = "" if shows is None else shows.name
    count = model.n_outcomes(measurement)
    if isinstance(outcome, str):
        names = model.state_names if shows is not None and shows.law is None else getattr(shows, "outcomes", None)
        known = [str(number) for number in range(count)] if names is None else list(names)
        if outcome not in known:
            raise ModelError(f"{name!r}: {unknown_name('outcome', outcome, known[:50])}")
        return known.index(outcome)
    if outcome is None:
        raise ModelError(f"the outcome is None, but {name!r} always shows one; pass its number or name")
    return whole(outcome, f"the outcome of {name!r}", 0, count - 1, what="a name, or a whole number")
