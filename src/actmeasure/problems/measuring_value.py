"""The paper's measuring value problem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.model import Model
from actmeasure.settings import probability

__all__ = ["measuring_value"]


def measuring_value(p: float = 0.8, measuring_cost: npt.ArrayLike = 0.1, discount: float = 0.95) -> Model:
    """The paper's measuring value problem: a gamble whose outcome can be measured before it is acted on.

    From `s0`, `a1` leads to `s+` with probability `p`, otherwise to `s-`. There `a1` ends the episode and pays 1 in `s+`,
    0 in `s-`; `a0` always goes back to `s0`. At discount 1 the optimum is max(p, 1 - c / p).

    Parameters
    ----------
    p : float
        Probability of `s+`.
    measuring_cost : float, or array of shape (4, 2)
    discount : float
    """
    p = probability(p, "p")
    P = np.zeros((4, 2, 4))
    P[:3, 0, 0] = 1.0
    P[0, 1, 1], P[0, 1, 2] = p, 1 - p
    P[1:3, 1, 3] = 1.0
    R = np.zeros((4, 2))
    R[1, 1] = 1.0
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=0, terminal=[False, False, False, True],
        state_names=("s0", "s+", "s-", "end"), action_names=("a0", "a1"),
    )  # fmt: skip
