"""Machine maintenance: when to inspect and when to repair a machine that wears out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.model import Model

__all__ = ["maintenance"]

#: States in the order of wear, from the longest repair to the breakdown.
STATES = ("R2", "R1", *(f"W{wear}" for wear in range(8)), "B")
WEAR = 0.5
#: Probabilities that a repair fails, and that it is a short or a long one.
FAILS, SHORT, LONG = 0.3, 0.6, 0.1


def maintenance(measuring_cost: npt.ArrayLike = 0.01, discount: float = 0.95) -> Model:
    """Machine maintenance: repair a machine before it breaks down; after the problem of Delage and Mannor (2010).

    The states stand in a line: in repair `R2`, `R1`, working `W0` to `W7`, broken `B`. `work` goes on to the next state
    with probability 1/2 and otherwise changes nothing. `repair` leads to `R1` with 0.6 and to `R2` with 0.1; with 0.3 it fails
    and the next state comes. A step in `R1` costs 0.1, in `R2` 0.5, and in `B` 1. The horizon is infinite.
    The certified optimum at c = 0.01 is -0.4006 at discount 0.95, with a look at every fourth step.

    Assumptions: the state after `R1` is `W0`, and after `B` comes `B`; in repair both actions can be taken, like anywhere else;
    what a step costs depends on the state that it begins in; the machine begins as new, in `W0`.

    Parameters
    ----------
    measuring_cost : float, or array of shape (11, 2)
    discount : float
        Below 1, as the horizon is infinite.
    """
    n_states = len(STATES)
    here, following = np.arange(n_states), np.minimum(np.arange(n_states) + 1, n_states - 1)
    P = np.zeros((n_states, 2, n_states))
    P[here, 0, here] += 1 - WEAR
    P[here, 0, following] += WEAR
    P[here, 1, following] += FAILS
    P[:, 1, STATES.index("R1")] += SHORT
    P[:, 1, STATES.index("R2")] += LONG
    R = np.zeros((n_states, 2))
    for state, cost in (("R1", 0.1), ("R2", 0.5), ("B", 1.0)):
        R[STATES.index(state)] = -cost
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=STATES.index("W0"),
        state_names=STATES, action_names=("work", "repair"),
    )  # fmt: skip
