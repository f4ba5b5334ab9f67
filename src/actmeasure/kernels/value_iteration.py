"""Value iteration for a state that is always known, and for the fast informed bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.kernels.dynamics import EPSILON, Dynamics, relative_error
from actmeasure.kernels.jit import no_refcount


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
