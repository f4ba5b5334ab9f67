"""Sewer mains: inspection, maintenance and replacement under deterioration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.model import Model
from actmeasure.settings import amount, probability

__all__ = ["sewer"]

#: Probability that the severity, 1 to 5, stays what it is in a step; otherwise it gets worse by one.
STAY = (0.955, 0.972, 0.979, 0.988, 1.0)
#: EUR for maintenance at each severity, and the fixed part of it.
MAINTENANCE, CALL_OUT = (0.0, 0.0, 500.0, 700.0, 900.0), 500.0
#: The state that maintenance of a worse one leads to: severity 2.
MENDED = 1
ACTIONS = ("nothing", "maintain", "replace")


def sewer(
    replacement: float = 24_560.0,
    failure: float = 100_000.0,
    failure_rate: float = 0.02,
    step_years: float = 0.5,
    measuring_cost: npt.ArrayLike = 300.0,
    discount: float = 0.985,
) -> Model:
    """A sewer main, to be inspected, maintained or replaced; after Jimenez-Roa's study of the mains of Breda.

    The state is the severity of the worst damage, 1 to 5. In a step it stays with probability 0.955, 0.972, 0.979, 0.988 and
    1, and otherwise gets worse by one (Jimenez-Roa and others, arXiv 2310.01888). `maintain` costs 500, 700 and 900 EUR at
    severity 3, 4 and 5, and 500 EUR in any case, and leads back to severity 2. `replace` leads to severity 1. A look is an
    inspection with a camera. All amounts are in EUR, so a value of -5,000 is a cost of 5,000 EUR.

    From Jimenez-Roa's thesis (chapter 7, also arXiv 2407.12894), where another chain is used with them: replacing 40 metres of
    200 millimetres costs 24,560 EUR, a failure 100,000 EUR, and a step is half a year.

    Assumptions, none of which is published with this chain, and all of which are settings: the length of a step; the price of an
    inspection; that mains fail at severity 5 only, at a rate of 0.02 a year, and are patched up so that the severity stays; the
    discount, about 3 % a year. Further: maintenance at severity 1 and 2 changes nothing, but is paid for; nothing deteriorates in
    the step of a replacement, or of maintenance that helps; the main begins as new. With no price on failure, doing nothing is
    best.

    Parameters
    ----------
    replacement, failure : float
        EUR for replacing the main, and for a failure.
    failure_rate : float
        Probability of a failure within a year at severity 5.
    step_years : float
        Years that a step takes. It settles how many failures there are in a step; the chain is given per step.
    measuring_cost : float, or array of shape (5, 3)
        EUR for an inspection.
    discount : float
        Per step; below 1, as it never ends.
    """
    replacement, failure = amount(replacement, "replacement"), amount(failure, "failure")
    yearly, years = probability(failure_rate, "failure_rate"), amount(step_years, "step_years", above_zero=True)
    n_states = len(STAY)
    here = np.arange(n_states)
    ageing = np.diag(STAY)
    ageing[here[:-1], here[1:]] = 1 - np.diag(ageing)[:-1]
    P = np.zeros((n_states, len(ACTIONS), n_states))
    P[:, 0] = ageing
    P[: MENDED + 1, 1] = ageing[: MENDED + 1]
    P[MENDED + 1 :, 1, MENDED] = 1.0
    P[:, 2, 0] = 1.0
    R = np.zeros((n_states, len(ACTIONS)))
    R[:, 1] = -(np.array(MAINTENANCE) + CALL_OUT)
    R[:, 2] = -replacement
    # A failure in a step comes before the effect of its action.
    R[-1] -= failure * (1 - (1 - yearly) ** years)
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=0,
        state_names=[f"severity {k + 1}" for k in range(n_states)], action_names=ACTIONS,
    )  # fmt: skip
