"""The paper's measuring value problem, and the small examples of its text and figures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.model import Model
from actmeasure.settings import probability, real, whole

__all__ = ["measuring_value", "most_likely_successor", "tight_bound", "two_state_belief"]


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


def most_likely_successor(
    successors: int = 10,
    epsilon: float = 0.01,
    penalty: float = 1.0,
    measuring_cost: npt.ArrayLike = 0.05,
    discount: float = 0.95,
) -> Model:
    """An example in which assuming the most likely successor is arbitrarily wrong.

    In `s0`, `gamble` leads to one of N states. `s1`, which pays 1, is the likeliest, but only with probability
    1/N + epsilon; each of the others costs `penalty`. `decline` ends the episode with nothing. An agent that assumes
    `s1` gambles, and loses more the larger the penalty is.

    Parameters
    ----------
    successors : int
        N, at least 2.
    epsilon : float
        Probability of `s1` minus 1/N.
    penalty : float
        Cost of the other successors.
    measuring_cost : float, or array of shape (N + 2, 2)
    discount : float
    """
    successors = whole(successors, "successors", 2)
    epsilon, penalty = real(epsilon, "epsilon"), real(penalty, "penalty")
    likeliest = 1 / successors + epsilon
    if not 0 < epsilon <= 1 - 1 / successors:
        raise ModelError(f"epsilon is {epsilon!r}, expected a number above 0 and at most 1 - 1/successors")
    n_states, end = successors + 2, successors + 1
    P = np.zeros((n_states, 2, n_states))
    P[0, 0, 1] = likeliest
    P[0, 0, 2:end] = (1 - likeliest) / (successors - 1)
    P[0, 1, end] = 1.0
    P[1:end, :, end] = 1.0
    R = np.zeros((n_states, 2))
    R[1], R[2:end] = 1.0, -penalty
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, terminal=np.arange(n_states) == end,
        state_names=("s0", *(f"s{k}" for k in range(1, end)), "end"), action_names=("gamble", "decline"),
    )  # fmt: skip


def two_state_belief(p: float = 0.8, measuring_cost: npt.ArrayLike = 0.1, discount: float = 1.0) -> Model:
    """The belief of the paper's measuring-value figure: two states, each with its own best action.

    A first step, whichever action it is, leads to `s0` with probability `p` or to `s1`. Then `a0` pays 1 in `s0`, `a1`
    pays 1 in `s1`, and the episode is over. Looking with the first step is worth 1 - p - c at discount 1.

    Parameters
    ----------
    p : float
        Probability of `s0`.
    measuring_cost : float, or array of shape (4, 2)
    discount : float
    """
    p = probability(p, "p")
    P = np.zeros((4, 2, 4))
    P[0, :, 1], P[0, :, 2] = p, 1 - p
    P[1:3, :, 3] = 1.0
    R = np.zeros((4, 2))
    R[1, 0] = R[2, 1] = 1.0
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, terminal=[False, False, False, True],
        state_names=("begin", "s0", "s1", "end"), action_names=("a0", "a1"),
    )  # fmt: skip


def tight_bound(epsilon: float = 0.001, measuring_cost: npt.ArrayLike = 0.1, discount: float = 0.95) -> Model:
    """An example in which the loss of act-then-measure reaches its bound, in the limit of a small epsilon.

    From `s0`, action `a` leads to `s_safe`, which pays 1 - epsilon at every step whatever one does. Action `b` leads to `s_a` or
    `s_b`, and so does every later step, with probability 1/2 each; in `s_a` only `a` pays 1, in `s_b` only `b`.

    Parameters
    ----------
    epsilon : float
        By how much a step in the safe state pays less.
    measuring_cost : float, or array of shape (4, 2)
    discount : float
    """
    epsilon = real(epsilon, "epsilon", expected="a number from 0 to 1")
    if not 0 <= epsilon <= 1:
        raise ModelError(f"epsilon is {epsilon!r}, expected a number from 0 to 1")
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = 1.0
    P[1, :, 1] = 1.0
    P[0, 1, 2:] = 0.5
    P[2:, :, 2:] = 0.5
    R = np.zeros((4, 2))
    R[1] = 1 - epsilon
    R[2, 0] = R[3, 1] = 1.0
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount,
        state_names=("s0", "s_safe", "s_a", "s_b"), action_names=("a", "b"),
    )  # fmt: skip
