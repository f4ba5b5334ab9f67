"""The N-chain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.model import Model
from actmeasure.settings import whole

__all__ = ["chain"]

STEP, PRIZE = -0.01, 1.0


def chain(n: int = 10, measuring_cost: npt.ArrayLike = 0.05, discount: float = 0.95) -> Model:
    """The N-chain: walk to the end of a chain, where a wrong step leads back to its beginning; in the literature n is 10 to 50.

    In the states 0 to n - 1, `forward` goes to the next one, and ends the episode with a prize of 1 in the last; `back` goes
    to state 0. Every step costs 0.01. All transitions are deterministic, so that a look is never worth anything: going
    forward n times is best, and earns g^(n-1) - 0.01 (1 + g + ... + g^(n-1)) at discount g, which is 1 - n / 100 at discount
    1. For a learner it is hard, as acting at random goes back every other step.

    Assumption: the last step costs 0.01 as well, on top of the prize.

    Parameters
    ----------
    n : int
        Length, at least 1.
    measuring_cost : float, or array of shape (n + 1, 2)
    discount : float
    """
    n = whole(n, "n", 1)
    P = np.zeros((n + 1, 2, n + 1))
    P[np.arange(n), 0, np.arange(n) + 1] = 1.0
    P[:n, 1, 0] = 1.0
    R = np.zeros((n + 1, 2))
    R[:n] = STEP
    R[n - 1, 0] += PRIZE
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=0, terminal=np.arange(n + 1) == n,
        state_names=(*map(str, range(n)), "end"), action_names=("forward", "back"),
    )  # fmt: skip
