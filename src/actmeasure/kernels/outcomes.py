"""The law of outcomes as flat arrays: what is seen after each action and measurement in the state that was reached.

Measurement 0 is none, with the passive outcome if the model has one; measurements 1 to k are those of the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.kernels.jit import inner
from actmeasure.kernels.streams import pick

__all__ = ["EXACT", "LAW", "NONE_SEEN", "SHOWS_NOTHING", "Outcomes", "draw_outcome", "law_row", "outcome_probability"]

#: What a measurement shows: nothing, the state itself, or an outcome by its law.
SHOWS_NOTHING, EXACT, LAW = 0, 1, 2
#: Outcome where nothing is seen.
NONE_SEEN = -1


class Outcomes(NamedTuple):
    """Prices and laws of all measurements of a model.

    Attributes
    ----------
    kinds : int64 array, shape (1 + k,)
        `SHOWS_NOTHING`, `EXACT` or `LAW`.
    counts : int64 array, shape (1 + k,)
        Number of outcomes; 0 for `SHOWS_NOTHING`, S for `EXACT`.
    costs : float64 array, shape (1 + k, S * A)
        Price of each measurement with action `a` in state `s`, at `s * A + a`; 0 for none.
    allowed : bool array, shape (1 + k, A)
    first_row : int64 array, shape (1 + k,)
        Row of state 0 (and action 0) in the arrays below, for laws.
    by_action : bool array, shape (1 + k,)
        Whether the row of action `a` and state `t` is `first_row + a * S + t`, otherwise `first_row + t`.
    offsets, outcomes, probabilities : arrays
        Compressed rows: the outcomes of positive probability, ascending.
    n_states : int
    """

    kinds: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    costs: npt.NDArray[np.float64]
    allowed: npt.NDArray[np.bool_]
    first_row: npt.NDArray[np.int64]
    by_action: npt.NDArray[np.bool_]
    offsets: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.int32]
    probabilities: npt.NDArray[np.float64]
    n_states: int


@inner
def law_row(laws: Outcomes, measurement: int, action: int, state: int) -> int:
    """Return the row of the law of a measurement for the action and the state that was reached."""
    first = int(laws.first_row[measurement]) + state
    return first + action * laws.n_states if laws.by_action[measurement] else first


@inner
def outcome_probability(laws: Outcomes, measurement: int, action: int, state: int, outcome: int) -> float:
    """Return the probability of an outcome in the state that was reached; of -1, nothing seen, where nothing is shown."""
    if laws.kinds[measurement] == SHOWS_NOTHING:
        return 1.0 if outcome == NONE_SEEN else 0.0
    if laws.kinds[measurement] == EXACT:
        return 1.0 if outcome == state else 0.0
    row = law_row(laws, measurement, action, state)
    low, high = laws.offsets[row], laws.offsets[row + 1]
    while low < high:
        middle = (low + high) // 2
        if laws.outcomes[middle] < outcome:
            low = middle + 1
        else:
            high = middle
    if low < laws.offsets[row + 1] and laws.outcomes[low] == outcome:
        return float(laws.probabilities[low])
    return 0.0


@inner
def draw_outcome(laws: Outcomes, measurement: int, action: int, state: int, uniform: float) -> int:
    """Return the outcome for a random number in [0, 1), which only a law needs, by inversion; -1 where nothing is seen.

    The state must not be terminal where the measurement has a law: rows of terminal states are empty.
    """
    if laws.kinds[measurement] == SHOWS_NOTHING:
        return NONE_SEEN
    if laws.kinds[measurement] == EXACT:
        return state
    row = law_row(laws, measurement, action, state)
    return int(laws.outcomes[pick(laws.offsets, laws.probabilities, row, uniform)])
