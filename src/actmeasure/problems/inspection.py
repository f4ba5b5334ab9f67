"""Inspection of a deteriorating unit with three measurements: visual, ultrasonic and opening."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.model import Measurement, Model
from actmeasure.settings import amount, probability

__all__ = ["inspection", "prices"]

CONDITIONS = ("new", "light", "moderate", "severe", "failed")
ACTIONS = ("nothing", "repair", "replace")
#: Condition that a successful repair leads to: light. A unit that is as good or better, or failed, is not changed by it.
REPAIRED = 1
#: Probability that the condition stays what it is in a period; otherwise it gets worse by one class.
STAY = (0.85, 0.80, 0.75, 0.70, 1.0)
#: Probability of detection of the visual inspection, by condition.
DETECTION = (0.02, 0.10, 0.40, 0.75, 0.95)
MEASUREMENTS = ("visual", "ultrasonic", "opening")


def inspection(
    measuring_cost: float | Sequence[float] = (0.5, 1.5, 4.0),
    repair: float = 10.0,
    replacement: float = 40.0,
    failure: float = 25.0,
    repair_success: float = 0.9,
    rating_error: float = 0.3,
    discount: float = 0.95,
) -> Model:
    """Inspection: a deteriorating unit with a cheap, a noisy and an exact measurement; an example of this library.

    A standby unit, such as a relief valve, is in one of five conditions: new, light, moderate, severe, failed. In a period it
    stays in its condition with probability 0.85, 0.80, 0.75, 0.70 and 1, and otherwise gets worse by one class. A failure is not
    noticed without a measurement: every period that begins with a failed unit costs 25, whatever is done. `repair` (10) leads
    from moderate or severe to light with probability 0.9 and otherwise changes nothing; a new or light unit deteriorates as
    without it, and a failed one stays failed. `replace` (40) leads to new.

    There are three measurements of the condition that was reached:

    - `visual` (0.5) finds damage, or not, with a probability of detection of 0.02, 0.10, 0.40, 0.75 and 0.95;
    - `ultrasonic` (1.5) gives a rating, which is right with probability 0.7 and otherwise off by one class, to either side with
      equal probability where there are two;
    - `opening` (4) shows the condition; the unit has to be taken out of service for it, so that it cannot be made with `replace`.

    Costs are negative rewards; the start is a new unit, and the horizon infinite. All numbers are assumptions, chosen such that
    good policies use all three measurements.

    Parameters
    ----------
    measuring_cost : three floats, or one
        Prices of visual, ultrasonic and opening; a single number is the price of each.
    repair, replacement, failure : float
        Prices of a repair and of a replacement, and the cost of a period with a failed unit.
    repair_success : float
        Probability that a repair of a moderate or severe unit leads to the condition light.
    rating_error : float
        Probability that the ultrasonic rating is off by one class.
    discount : float
        Below 1, as it never ends.
    """
    repair, replacement, failure = (
        amount(repair, "repair"),
        amount(replacement, "replacement"),
        amount(failure, "failure"),
    )
    success, error = probability(repair_success, "repair_success"), probability(rating_error, "rating_error")
    costs = prices(measuring_cost, MEASUREMENTS, "[0.5, 1.5, 4]")
    n_states = len(CONDITIONS)
    here = np.arange(n_states)
    ageing = np.diag(STAY)
    ageing[here[:-1], here[1:]] = 1 - np.diag(ageing)[:-1]
    P = np.zeros((n_states, len(ACTIONS), n_states))
    P[:, 0] = ageing
    P[: REPAIRED + 1, 1] = ageing[: REPAIRED + 1]
    P[here[REPAIRED + 1 :], 1, here[REPAIRED + 1 :]] = 1 - success
    P[REPAIRED + 1 :, 1, REPAIRED] = success
    P[-1, 1] = ageing[-1]  # a failed unit has to be replaced
    P[:, 2, 0] = 1.0
    R = np.zeros((n_states, len(ACTIONS)))
    R[:, 1], R[:, 2] = -repair, -replacement
    R[-1] -= failure
    visual, ultrasonic, opening = MEASUREMENTS
    return Model.from_arrays(
        P,
        R,
        measurements=[
            Measurement.detection(visual, costs[0], pod=DETECTION, outcomes=("nothing found", "damage found")),
            Measurement.noisy(ultrasonic, costs[1], probabilities=_ratings(n_states, error), outcomes=CONDITIONS),
            Measurement.exact(opening, costs[2], with_actions=("nothing", "repair")),
        ],
        discount=discount,
        initial=0,
        state_names=CONDITIONS,
        action_names=ACTIONS,
    )


def prices(measuring_cost: Any, names: Sequence[str], example: str) -> list[float]:
    """Return the prices of several measurements, from one for each or one for all; `example` is shown in the message."""
    if isinstance(measuring_cost, Sequence | np.ndarray) and not isinstance(measuring_cost, str):
        given = list(measuring_cost)
    else:
        given = [measuring_cost] * len(names)
    if len(given) != len(names):
        raise ModelError(
            f"measuring_cost is {quoted(measuring_cost)}, expected a price for all measurements, or {len(names)}, of "
            f"{', '.join(names)}, such as {example}"
        )
    return [amount(price, f"the price of {name}") for name, price in zip(names, given, strict=True)]


def _ratings(n_states: int, error: float) -> npt.NDArray[np.float64]:
    """Return the probability of each rating in each condition: right, or off by one class with probability `error`."""
    Z = np.eye(n_states) * (1 - error)
    for state in range(n_states):
        beside = [other for other in (state - 1, state + 1) if 0 <= other < n_states]
        Z[state, beside] = error / len(beside)
    return Z
