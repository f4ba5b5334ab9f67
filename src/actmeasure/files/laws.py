"""Measurements of models as the arrays that files hold, and their checks before `Measurement.bound` takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import DEFAULT_NAME, Law
from actmeasure.model.transitions import FloatArray, IntArray

__all__ = ["file_version", "law_of_rows", "n_law_rows", "stored_law", "stored_measurement"]


def file_version(model: Model) -> int:
    """Return the version of the format in which a model is written.

    Version 1 has one exact measurement named "look" that can be made with every action, and no passive outcomes: its price is all
    there is to tell. Version 2 tells every measurement.
    """
    return 1 if model.is_exact_look_model and model.measurements[0].name == DEFAULT_NAME else 2


def n_law_rows(by_action: bool, n_states: int, n_actions: int) -> int:
    """Return the number of rows of a law: one for every state, or for every action and state."""
    return n_states * n_actions if by_action else n_states


def stored_law(
    n_outcomes: int, by_action: bool, offsets: IntArray, outcomes: IntArray, probabilities: FloatArray, place: str
) -> Law:
    """Return a law whose arrays are compressed rows; a `ModelError` says what is damaged.

    That rows are distributions over the outcomes is checked with the model.
    """
    size = len(outcomes)
    # Compared pairwise: differences of damaged offsets could overflow.
    if offsets[0] != 0 or offsets[-1] != size or np.any(offsets[1:] < offsets[:-1]):
        raise ModelError(f"{place}: the row offsets are not ascending from 0 to {size}; the file is damaged")
    if size and (outcomes.min() < 0 or outcomes.max() >= n_outcomes):
        raise ModelError(f"{place}: an outcome is not a number from 0 to {n_outcomes - 1}; the file is damaged")
    within_row = np.ones(size, dtype=bool)
    within_row[offsets[:-1][np.diff(offsets) > 0]] = False
    if np.any((np.diff(outcomes) <= 0) & within_row[1:]):
        raise ModelError(f"{place}: a row is not sorted by outcome or has an outcome twice; the file is damaged")
    if np.any(probabilities == 0):
        raise ModelError(f"{place}: a probability is 0, expected positive ones only; the file is damaged")
    return Law(
        n_outcomes,
        by_action,
        np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(outcomes, dtype=np.int32),
        np.ascontiguousarray(probabilities, dtype=np.float64),
    )


def law_of_rows(n_outcomes: int, by_action: bool, rows: list[dict[int, float]], place: str) -> Law:
    """Return the law with these rows, mappings from outcome to probability; probabilities of 0 are left out."""
    entries = [[(outcome, chance) for outcome, chance in sorted(row.items()) if chance != 0] for row in rows]
    offsets: npt.NDArray[Any] = np.concatenate([[0], np.cumsum([len(row) for row in entries])]).astype(np.int64)
    outcomes = np.array([outcome for row in entries for outcome, _ in row], dtype=np.int64)
    chances = np.array([chance for row in entries for _, chance in row], dtype=np.float64)
    return stored_law(n_outcomes, by_action, offsets, outcomes, chances, place)


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
