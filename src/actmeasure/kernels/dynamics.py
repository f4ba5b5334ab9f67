"""A model as arrays: the move of sparse weight vectors by one blind step, and value iteration.

Value iteration is for a state that is always known (`sweeps`), and for the fast informed bound (`informed_sweep`).
"""

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
def expected_size(table: Any, n_actions: int, action: int, source: Weights, count: int) -> float:
    """Return the weighted sum of the sizes of a table's entries, as `expected`: what its rounding is relative to."""
    total = 0.0
    for i in range(count):
        total += source.values[i] * abs(table[source.states[i] * n_actions + action])
    return total


@no_refcount
def total(source: Weights, count: int) -> float:
    """Return the sum of the first `count` weights."""
    mass = 0.0
    for i in range(count):
        mass += source.values[i]
    return mass


@no_refcount
def sweep(model: Dynamics, discount: float, rows: Any, looking: bool, values: Any, backwards: bool) -> float:
    """Make one Gauss-Seidel sweep of value iteration over `values`, float64 (S,), in place; returns the largest change.

    With `rows`, int64 (S,), that row is taken in each state; if it is empty, the best one. If `looking`, a look is paid for at
    every step.
    """
    n_states = model.terminal.shape[0]
    largest = 0.0
    for k in range(n_states):
        state = n_states - 1 - k if backwards else k
        if model.terminal[state]:
            continue
        first, count = state * model.n_actions, model.n_actions
        if rows.shape[0] > 0:
            first, count = rows[state], 1
        best = -np.inf
        for row in range(first, first + count):
            value = one_step(model, discount, values, row)
            if looking:
                value -= model.costs[row]
            best = max(best, value)
        largest = max(largest, abs(best - values[state]))
        values[state] = best
    return largest


@no_refcount
def one_step(model: Dynamics, discount: float, values: Any, row: int) -> float:
    """Return the reward of a row plus the discounted mean value of its successors; terminal states have the value 0."""
    total = 0.0
    for entry in range(model.offsets[row], model.offsets[row + 1]):
        total += model.probabilities[entry] * values[model.successors[entry]]
    return model.rewards[row] + discount * total  # type: ignore[no-any-return]


@no_refcount
def action_values(model: Dynamics, discount: float, values: Any, out: Any) -> None:
    """Write action values to `out`, float64 (S, A), from state values; 0 in terminal states."""
    for state in range(model.terminal.shape[0]):
        for action in range(model.n_actions):
            row = state * model.n_actions + action
            out[state, action] = 0.0 if model.terminal[state] else one_step(model, discount, values, row)


@no_refcount
def sweeps(model: Dynamics, discount: float, rows: Any, looking: bool, values: Any, enough: float, most: int) -> float:
    """Make up to `most` sweeps, until the largest change is at most `enough`; returns the last largest change."""
    change = np.inf
    for k in range(most):
        change = sweep(model, discount, rows, looking, values, k % 2 == 1)
        if change <= enough:
            break
    return change


@no_refcount
def informed_sweep(model: Dynamics, discount: float, values: Any, vectors: Any, ceiling: Any, scratch: Any) -> float:
    """Make one sweep of the fast informed bound over all states, in place; returns the largest change.

    The bound gives the state before the last action for free. With u(s) an upper bound once s is known (`values`) and Q(s, k) one
    for each choice k (`vectors`), a look with action a in s is worth at most R - c + g sum_t p_t u(t), and no look at most

        R + g min(sum_t p_t u(t), max_k sum_t p_t Q(t, k)):

    the first term as if the next state were shown too, the second because one choice has to do for all next states. If u and Q
    are upper bounds, so are these, and max_k sum_s b_s Q(s, k) bounds every belief b. Bounds are never raised, so they are sound
    after every sweep.

    They are rounded upwards: a mean over p of numbers x_i <= C_i, C_i >= 0, has sum_i p_i |x_i| <= 2 sum_i p_i C_i + |mean|, and
    an error of at most `relative_error` times that.

    Parameters
    ----------
    values : float64 array, shape (S,)
        Bounds once a state is known.
    vectors : float64 array, shape (S, 2 A)
        Bounds of an action without (column 2 a) and with a look (2 a + 1).
    ceiling : float64 array, shape (S,)
        At least 0 and the bounds of each state, now and later.
    scratch : float64 array, shape (2 A,)
    """
    largest = 0.0
    for state in range(model.terminal.shape[0]):
        if model.terminal[state]:
            continue
        best = -np.inf
        for action in range(model.n_actions):
            row = state * model.n_actions + action
            scratch[:] = 0.0
            seen, scale = 0.0, 0.0
            for entry in range(model.offsets[row], model.offsets[row + 1]):
                successor, probability = model.successors[entry], model.probabilities[entry]
                if not model.terminal[successor]:
                    seen += probability * values[successor]
                    scale += probability * ceiling[successor]
                    for k in range(scratch.shape[0]):
                        scratch[k] += probability * vectors[successor, k]
            best_unseen = scratch[0]
            for k in range(1, scratch.shape[0]):
                best_unseen = max(best_unseen, scratch[k])
            error = relative_error(model.offsets[row + 1] - model.offsets[row])
            scale = abs(model.rewards[row]) + 2 * discount * scale
            ahead = discount * min(seen, best_unseen)
            unseen = model.rewards[row] + ahead + error * (scale + abs(ahead))
            cost = model.costs[row] * (1 - 4 * EPSILON)
            looking = model.rewards[row] - cost + discount * seen + error * (scale + abs(discount * seen))
            largest = max(largest, vectors[state, 2 * action] - unseen)
            vectors[state, 2 * action] = min(vectors[state, 2 * action], unseen)
            vectors[state, 2 * action + 1] = min(vectors[state, 2 * action + 1], looking)
            best = max(best, vectors[state, 2 * action], vectors[state, 2 * action + 1])
        values[state] = min(values[state], best)
    return largest
