"""Exploration with a look at every step: by a reward for rare pairs (state, action), and by confidence bounds (EULER)."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import Counts, largest_value

#: Number of attempts of a pair whose state was never seen.
UNSEEN = -1.0
NO_GOAL = -1


class EulerConstants(NamedTuple):
    """The constants of EULER (Zanette and Brunskill, 2019): `log_term` stands for its ln(4 S A T / delta)."""

    horizon: int
    log_term: float


class EulerBounds(NamedTuple):
    """Confidence bounds on the probability to reach the goal from each step of the horizon on; step H is the end."""

    upper: Any  # float64 (H + 1, S + 1)
    lower: Any  # float64 (H + 1, S + 1)
    values: Any  # float64 (H, S * A): upper bounds of pairs


def make_bounds(horizon: int, n_states: int, n_actions: int) -> EulerBounds:
    """Return arrays for the bounds, all 0; those of the end of an episode, state S, stay 0."""
    shape = (horizon + 1, n_states + 1)
    return EulerBounds(np.zeros(shape), np.zeros(shape), np.zeros((horizon, n_states * n_actions)))


@no_refcount
def learn_counter(
    counts: Counts, values: Any, state: int, n_actions: int, learning_rate: float, discount: float
) -> None:
    """Update the values of all actions of a state towards 1 / N plus the discounted value of the successors; N counts from 1."""
    for action in range(n_actions):
        pair = state * n_actions + action
        measured = counts.measured[pair]
        target, entry = 0.0, counts.first[pair]
        while entry != 0:
            target += counts.times[entry] * largest_value(values, counts.successors[entry], n_actions)
            entry = counts.following[entry]
        target = 1.0 / (measured + 1) + discount * (target / max(measured, 1))
        values[pair] += learning_rate * (target - values[pair])


@no_refcount
def next_goal(counts: Counts, attempts: Any, visits: int) -> int:
    """Return the first pair that was measured, and attempted, fewer than `visits` times, or -1; counts the attempt.

    `attempts`, float64 (S * A,), is how often each pair was the goal; `UNSEEN` where the state was never seen.
    """
    for pair in range(attempts.shape[0]):
        if attempts[pair] != UNSEEN and attempts[pair] < visits and counts.measured[pair] < visits:
            attempts[pair] += 1.0
            return pair
    return NO_GOAL


@no_refcount
def plan_euler(counts: Counts, bounds: EulerBounds, goal: int, n_actions: int, constants: EulerConstants) -> None:
    """Compute bounds on the probability to reach a goal pair, by backward induction.

    The reward is 1 for the goal, after which nothing counts, and 0 elsewhere. Rewards are known, so that the algorithm's bonus
    for estimated rewards drops out.
    """
    horizon, n_states = constants.horizon, bounds.upper.shape[1] - 1
    for step in range(horizon - 1, -1, -1):
        for state in range(n_states):
            best, chosen = -1.0, 0
            for pair in range(state * n_actions, (state + 1) * n_actions):
                value = 1.0 if pair == goal else _bound(counts, bounds, pair, step, constants, True)
                value = min(value, float(horizon - step))
                bounds.values[step, pair] = value
                if value > best:
                    best, chosen = value, pair
            bounds.upper[step, state] = best
            low = 1.0 if chosen == goal else _bound(counts, bounds, chosen, step, constants, False)
            bounds.lower[step, state] = max(0.0, low)


@no_refcount
def _bound(
    counts: Counts, bounds: EulerBounds, pair: int, step: int, constants: EulerConstants, is_upper: bool
) -> float:
    """Return the upper or lower bound of a pair: the expected bound of the next step plus or minus the algorithm's bonus."""
    horizon, log_term = constants.horizon, constants.log_term
    measured = counts.measured[pair]
    if measured == 0:
        return float(horizon) if is_upper else 0.0
    mean, square, distance = 0.0, 0.0, 0.0
    entry = counts.first[pair]
    while entry != 0:
        probability, successor = counts.times[entry] / measured, counts.successors[entry]
        high, low = bounds.upper[step + 1, successor], bounds.lower[step + 1, successor]
        value = high if is_upper else low
        mean += probability * value
        square += probability * value**2
        distance += probability * (high - low) ** 2
        entry = counts.following[entry]
    variance = max(0.0, square - mean * mean)
    by_variance = sqrt(2.0 * variance * log_term / measured) + horizon * log_term / (3.0 * max(measured - 1, 1))
    b_v = sqrt(2.0 * log_term)
    correction = (4.0 * horizon * log_term / 3.0 + horizon * b_v) / measured + b_v * sqrt(distance / measured)
    bonus = by_variance + correction
    return mean + bonus if is_upper else mean - bonus  # type: ignore[no-any-return]
