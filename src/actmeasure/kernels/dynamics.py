"""A model as arrays, sparse weight vectors over states, and their move by one blind step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import inner, no_refcount

#: Machine epsilon, twice the unit roundoff u = 2^-53 (the largest relative error of one floating-point operation).
EPSILON = 2.0**-52
#: Least probability of an end that is possible: products of probabilities may be rounded to 0.
TINY = 2.0**-1022


@inner
def relative_error(terms: Any) -> Any:
    """Return a bound on the relative error of a mean of `terms` numbers of one sign, with probabilities that are off by rounding.

    With u the unit roundoff, sum_i p_i x_i of n terms is computed with a relative error of at most n u / (1 - n u). Probabilities
    that do not sum to 1 exactly contribute as much as `Transitions` leaves uncorrected. The bound is 4 n u + 32 u, which covers
    both and a dozen more operations. Numbers of both signs have this error relative to sum_i p_i |x_i|.
    """
    return EPSILON * (2 * terms + 16)


class Dynamics(NamedTuple):
    """A model as plain arrays; the row of (s, a) is number `s * n_actions + a`."""

    offsets: Any  # int64 (S * A + 1,)
    successors: Any  # int32 (n_entries,)
    probabilities: Any  # float64 (n_entries,)
    terminal: Any  # bool (S,)
    rewards: Any  # float64 (S * A,)
    costs: Any  # float64 (S * A,)
    n_actions: int


class Weights(NamedTuple):
    """A sparse vector with capacity for every state."""

    states: Any  # int64 (S,)
    values: Any  # float64 (S,)


def make_weights(n_states: int) -> Weights:
    """Return an empty sparse vector with capacity for every state."""
    return Weights(np.empty(n_states, np.int64), np.empty(n_states, np.float64))


@no_refcount
def push(
    model: Dynamics, action: int, source: Weights, count: int, target: Weights, position: Any
) -> tuple[int, float]:
    """Write the first `count` weights of `source`, moved by `action`, to `target`; mass that ends the episode is dropped.

    `position`, int64 (S,), holds -1 everywhere before and after. Returns the new count and the mass that was dropped,
    which is above 0 wherever an end is possible.
    """
    size = 0
    ended = 0.0
    for i in range(count):
        row = source.states[i] * model.n_actions + action
        weight = source.values[i]
        for entry in range(model.offsets[row], model.offsets[row + 1]):
            successor = model.successors[entry]
            if model.terminal[successor]:
                ended = max(ended + weight * model.probabilities[entry], TINY)
                continue
            k = position[successor]
            if k < 0:
                position[successor] = size
                target.states[size] = successor
                target.values[size] = weight * model.probabilities[entry]
                size += 1
            else:
                target.values[k] += weight * model.probabilities[entry]
    for i in range(size):
        position[target.states[i]] = -1
    return size, ended


@no_refcount
def expected(table: Any, n_actions: int, action: int, source: Weights, count: int) -> float:
    """Return the weighted sum of a table over (state, action), float64 (S * A,), for one action."""
    total = 0.0
    for i in range(count):
        total += source.values[i] * table[source.states[i] * n_actions + action]
    return total


@no_refcount
def total(source: Weights, count: int) -> float:
    """Return the sum of the first `count` weights."""
    mass = 0.0
    for i in range(count):
        mass += source.values[i]
    return mass
