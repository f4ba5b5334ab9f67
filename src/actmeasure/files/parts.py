"""`Parts`: the contents of a model file as arrays, with laws of measurements, and the last checks before it becomes a `Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import DEFAULT_NAME, Law
from actmeasure.model.transitions import FloatArray, IntArray, Transitions

__all__ = ["Parts", "file_version", "law_of_rows", "n_law_rows", "stored_law", "stored_measurement"]

#: Largest accepted difference, relative to the size, between a stated expected reward and the mean over successors.
REWARD_ERROR = 1e-9


def file_version(model: Model) -> int:
    """Return the version of the format in which a model is written.

    Version 1 has one exact measurement named "look" that can be made with every action, and no passive outcomes: its price is all
    there is to tell. Version 2 tells every measurement.
    """
    return 1 if model.is_exact_look_model and model.measurements[0].name == DEFAULT_NAME else 2


@dataclass
class Parts:
    """The contents of a file as arrays, to be checked before they become a model.

    Attributes
    ----------
    offsets, successors, probabilities : arrays as in `Transitions`
    rewards : float64 array, shape (S, A), or None to compute them from `transition_rewards`
    transition_rewards : float64 array, shape (n_entries,), or None
    terminal : bool array, shape (S,)
    initial : float64 array, shape (S,)
    measuring_cost : float, or float64 array of shape (S, A)
        Price of the only measurement; None where `measurements` or `passive` are given.
    reveal_start : bool, or None for the default of models
    measurements : sequence of Measurement, optional
    passive : Measurement, optional
    stated_rewards : mapping from row number to reward
        Expected rewards that a file states besides the rewards of successors, because the two differ by rounding.
    """

    n_states: int
    n_actions: int
    offsets: IntArray
    successors: IntArray
    probabilities: FloatArray
    rewards: FloatArray | None
    transition_rewards: FloatArray | None
    terminal: npt.NDArray[np.bool_]
    initial: FloatArray
    measuring_cost: float | FloatArray | None
    discount: float
    reveal_start: bool | None
    state_names: Sequence[str] | None
    action_names: Sequence[str] | None
    measurements: Sequence[Measurement] | None = None
    passive: Measurement | None = None
    stated_rewards: Mapping[int, float] = field(default_factory=dict)

    def model(self) -> Model:
        """Check every part and how they fit together, and return the model; a `ModelError` names the first problem."""
        self._check_rows()
        self._check_finite()
        table = Transitions.checked(
            self.n_states, self.n_actions, self.offsets, self.successors, self.probabilities, self.terminal
        )
        return Model.assemble(
            table, self._checked_rewards(table), self.transition_rewards, self.terminal, self.initial,
            self.measuring_cost, self.discount, self.reveal_start, self.state_names, self.action_names,
            self.measurements, self.passive,
        )  # fmt: skip

    def _check_rows(self) -> None:
        """Check what `Transitions.checked` assumes: offsets in range, no zeros, empty rows for terminal states."""
        if self.terminal.all():
            raise ModelError("every state is terminal, so no episode can begin; leave at least one state non-terminal")
        if self.offsets.size and (self.offsets.min() < 0 or self.offsets.max() > len(self.successors)):
            raise ModelError("the transition table's row offsets are out of range; the file is damaged")
        if np.any(self.probabilities == 0):
            raise ModelError(
                "the transition table holds a probability of 0, expected positive ones only; the file is damaged"
            )
        filled = self.terminal & (np.diff(self.offsets).reshape(self.n_states, self.n_actions) != 0).any(axis=1)
        if filled.any():
            state = int(np.argmax(filled))
            raise ModelError(f"state {state} is terminal, but has transitions; remove them, or its terminal mark")

    def _check_finite(self) -> None:
        """Refuse rewards that are NaN or infinite."""
        for name, array in (("a reward", self.rewards), ("the reward of a transition", self.transition_rewards)):
            if array is not None and not np.isfinite(array).all():
                value = float(array[~np.isfinite(array)][0])
                raise ModelError(f"{name} is {value}, expected a finite number; correct it")

    def _checked_rewards(self, table: Transitions) -> FloatArray:
        """Return the expected rewards, shape (S, A), consistent with the rewards of successors where there are any."""
        shape = (self.n_states, self.n_actions)
        if self.transition_rewards is None:
            if self.rewards is None:
                raise ModelError("there are no rewards; add them")
            rewards = self.rewards
        else:
            paid = table.probabilities * self.transition_rewards
            expected: FloatArray = table.stacked(paid).sum(axis=1).reshape(shape)
            rewards = expected.copy() if self.rewards is None else self.rewards
            for row, value in self.stated_rewards.items():
                rewards[divmod(row, self.n_actions)] = value
            allowed = REWARD_ERROR * table.stacked(np.abs(paid)).sum(axis=1).reshape(shape)
            with np.errstate(over="ignore", invalid="ignore"):
                wrong = ~np.isfinite(expected) | (np.abs(rewards - expected) > allowed)
            if wrong.any():
                state, action = divmod(int(np.argmax(wrong)), self.n_actions)
                raise ModelError(
                    f"the expected reward of state {state}, action {action} is {float(rewards[state, action])!r}, but "
                    f"the rewards of its successors give {float(expected[state, action])!r}; the file is damaged"
                )
        paying = self.terminal & (rewards != 0).any(axis=1)
        if paying.any():
            raise ModelError(f"state {int(np.argmax(paying))} is terminal, but has a reward; set it to 0")
        return rewards


def n_law_rows(by_action: bool, n_states: int, n_actions: int) -> int:
    """Return the number of rows of a law: one for every state, or for every action and state."""
    return n_states * n_actions if by_action else n_states


def stored_law(
    n_outcomes: int, by_action: bool, offsets: IntArray, outcomes: IntArray, probabilities: FloatArray, location: str
) -> Law:
    """Return a law whose arrays are compressed rows; a `ModelError` says what is damaged.

    That rows are distributions over the outcomes is checked with the model.
    """
    size = len(outcomes)
    # Compared pairwise: differences of damaged offsets could overflow.
    if offsets[0] != 0 or offsets[-1] != size or np.any(offsets[1:] < offsets[:-1]):
        raise ModelError(f"{location}: the row offsets are not ascending from 0 to {size}; the file is damaged")
    if size and (outcomes.min() < 0 or outcomes.max() >= n_outcomes):
        raise ModelError(f"{location}: an outcome is not a number from 0 to {n_outcomes - 1}; the file is damaged")
    within_row = np.ones(size, dtype=bool)
    within_row[offsets[:-1][np.diff(offsets) > 0]] = False
    if np.any((np.diff(outcomes) <= 0) & within_row[1:]):
        raise ModelError(f"{location}: a row is not sorted by outcome or has an outcome twice; the file is damaged")
    if np.any(probabilities == 0):
        raise ModelError(f"{location}: a probability is 0, expected positive ones only; the file is damaged")
    return Law(
        n_outcomes,
        by_action,
        np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(outcomes, dtype=np.int32),
        np.ascontiguousarray(probabilities, dtype=np.float64),
    )


def law_of_rows(n_outcomes: int, by_action: bool, rows: list[dict[int, float]], location: str) -> Law:
    """Return the law with these rows, mappings from outcome to probability; probabilities of 0 are left out."""
    entries = [[(outcome, chance) for outcome, chance in sorted(row.items()) if chance != 0] for row in rows]
    offsets: npt.NDArray[Any] = np.concatenate([[0], np.cumsum([len(row) for row in entries])]).astype(np.int64)
    outcomes = np.array([outcome for row in entries for outcome, _ in row], dtype=np.int64)
    chances = np.array([chance for row in entries for _, chance in row], dtype=np.float64)
    return stored_law(n_outcomes, by_action, offsets, outcomes, chances, location)


def stored_measurement(
    name: str,
    cost: float | FloatArray,
    outcomes: tuple[str, ...] | None,
    with_actions: tuple[int, ...] | None,
    law: Law | None,
) -> Measurement:
    """Return a measurement of a file, not yet checked against its model; a `ModelError` if its name or outcomes are not sound."""
    plain = Measurement.exact(name, cost, with_actions=with_actions)
    if law is None:
        return plain
    if outcomes is not None:
        if len(set(outcomes)) != len(outcomes):
            number_of = {outcome: number for number, outcome in enumerate(outcomes)}
            twice = next(outcome for number, outcome in enumerate(outcomes) if number_of[outcome] != number)
            raise ModelError(f"the outcome {twice!r} is there more than once; give every outcome a name of its own")
        if len(outcomes) != law.n_outcomes:
            raise ModelError(f"there are {len(outcomes)} names of outcomes, but {law.n_outcomes} outcomes")
    return Measurement(plain.name, plain.cost, outcomes, plain.with_actions, law)
