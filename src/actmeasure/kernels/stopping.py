"""When to look along a blind path whose actions are given by a control: optimal stopping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.dynamics import Dynamics, Weights, expected, make_weights, push, total
from actmeasure.kernels.jit import no_refcount

#: Difference of values that counts as a tie, so that rounding does not decide between actions.
CONTROL_TIE = 1e-9
#: Difference of probabilities up to which two beliefs are the same.
SAME_BELIEF = 1e-12
#: A path is not followed further for a possible gain below this.
NEGLIGIBLE_GAIN = 1e-10
#: Discounted probability of still running below which the rest of an episode counts for nothing.
OVER = 1e-200
#: How a path ends: with a look, in a known state, with the end of the episode, or it goes on without end.
LOOK, KNOWN, END, ON = 0, 1, 2, 3
#: First capacity for the actions of all paths.
FIRST_CAPACITY = 4096


class Paths(NamedTuple):
    """The control, the values of known states, and the last path followed."""

    q_values: Any  # float64 (S, A): the control is greedy in their mean
    tie_values: Any  # float64 (S, A): what decides between equals
    known: Any  # float64 (S,): value of a state once it is known, of the plans so far
    ceiling: Any  # float64 (S,): upper bound on that value
    touched: Any  # bool (S,): set for every state that a look along a path could show
    actions: Any  # int64 (longest path,): the last path followed


class Buffers(NamedTuple):
    """Work arrays of the kernels."""

    weights: Weights
    following: Weights
    position: Any  # int64 (S,), -1 everywhere
    earlier: Any  # float64 (S,): a belief from earlier on the path, spread out; 0 elsewhere
    marked: Any  # int64 (S,): the states of that belief
    n_marked: Any  # int64 (1,): how many there are
    means: Any  # float64 (A,)
    ties: Any  # float64 (A,)


class Stop(NamedTuple):
    """A stop: the number of actions before it, how the path ends, its value, and the period of a path without end."""

    length: int
    ending: int
    value: float
    period: int


def make_buffers(n_states: int, n_actions: int) -> Buffers:
    """Return empty work arrays."""
    return Buffers(
        make_weights(n_states), make_weights(n_states), np.full(n_states, -1, np.int64), np.zeros(n_states),
        np.empty(n_states, np.int64), np.zeros(1, np.int64), np.zeros(n_actions), np.zeros(n_actions),
    )  # fmt: skip


@no_refcount
def control(paths: Paths, buffers: Buffers, count: int) -> int:
    """Return the action with the highest mean value over the belief in `buffers.weights`."""
    buffers.means[:] = 0.0
    buffers.ties[:] = 0.0
    for i in range(count):
        state, weight = buffers.weights.states[i], buffers.weights.values[i]
        for action in range(buffers.means.shape[0]):
            buffers.means[action] += weight * paths.q_values[state, action]
            buffers.ties[action] += weight * paths.tie_values[state, action]
    mass, best = total(buffers.weights, count), buffers.means[0]
    for action in range(1, buffers.means.shape[0]):
        best = max(best, buffers.means[action])
    chosen, best_tie = 0, -np.inf
    for action in range(buffers.means.shape[0]):
        is_equal = buffers.means[action] >= best - CONTROL_TIE * (mass + abs(best))
        if is_equal and buffers.ties[action] > best_tie + CONTROL_TIE * mass:
            chosen, best_tie = action, buffers.ties[action]
    return chosen


@no_refcount
def _mark(buffers: Buffers, count: int, mass: float) -> None:
    """Remember the belief in `buffers.weights`, and forget the one before."""
    for i in range(buffers.n_marked[0]):
        buffers.earlier[buffers.marked[i]] = 0.0
    for i in range(count):
        state = buffers.weights.states[i]
        buffers.marked[i] = state
        buffers.earlier[state] = buffers.weights.values[i] / mass
    buffers.n_marked[0] = count


@no_refcount
def _is_earlier(buffers: Buffers, count: int, mass: float) -> bool:
    """Return whether the belief in `buffers.weights` is the one that was remembered."""
    farthest = 0.0 if count == buffers.n_marked[0] else np.inf
    for i in range(count):
        farthest = max(farthest, abs(buffers.weights.values[i] / mass - buffers.earlier[buffers.weights.states[i]]))
    return bool(farthest <= SAME_BELIEF)


@no_refcount
def _step(model: Dynamics, action: int, buffers: Buffers, count: int) -> int:
    """Move `buffers.weights` one blind step; returns the new count."""
    count, _ = push(model, action, buffers.weights, count, buffers.following, buffers.position)
    for i in range(count):
        buffers.weights.states[i] = buffers.following.states[i]
        buffers.weights.values[i] = buffers.following.values[i]
    return count


@no_refcount
def _earns_nothing(model: Dynamics, actions: Any, buffers: Buffers, count: int) -> bool:
    """Return whether no reward, gain or loss, is possible along further actions, int64 (n,)."""
    for action in actions:
        for i in range(count):
            if model.rewards[buffers.weights.states[i] * model.n_actions + action] != 0:
                return False
        count = _step(model, action, buffers, count)
    return True


@no_refcount
def best_stop(model: Dynamics, discount: float, paths: Paths, buffers: Buffers, count: int) -> Stop:
    """Follow the control from the first `count` weights in `buffers`, which are changed, and find the best moment to look.

    Let w_t(s) be the probability of being in s after t blind actions a_0 .. a_(t-1) of the control, still running, and g the
    discount. Up to then the path earns E_t = sum over i < t, s of g^i w_i(s) R(s, a_i). A look together with action a_(t-1) stops
    the path with the value

        J_t = E_t - g^(t-1) sum_s w_(t-1)(s) c(s, a_(t-1)) + g^t sum_s w_t(s) v(s),

    v = `known`; where a single state is possible nothing is paid. The largest J_t is found as follows.

    *No later stop is better* if E_t + g^t sum_s w_t(s) C(s) <= best J so far, C = `ceiling`: whatever is done from step t on
    earns at most the optimum of the state it is in.

    *The path becomes periodic* when a belief returns after k steps (beliefs are compared with one remembered at steps 1, 2, 4,
    ..., which finds every period). With x the factor of discount and probability of still running of one period, E_inf the limit
    of E_t, and j periods,

        J_(t + j k) - E_inf = x^j (J_t - E_inf),

    so that, as j grows, J moves towards E_inf without turning: the best is a stop in the first period, or none at all, worth
    E_inf = E_m + (E_(m+k) - E_m) / (1 - x). Without discount and end x is 1; no period of a model pays, so that E_inf is E_m if
    no reward is possible on the way, and counts as minus infinity otherwise.

    Nothing is rounded in one direction: this chooses among plans, and those chosen are evaluated as a whole afterwards.
    """
    earned, factor = 0.0, 1.0
    best = Stop(0, ON, -np.inf, 1)
    mark_at, mark_step, mark_earned, mark_factor = 1, 0, 0.0, 0.0
    for step in range(paths.actions.shape[0]):
        action = control(paths, buffers, count)
        paths.actions[step] = action
        price = expected(model.costs, model.n_actions, action, buffers.weights, count)
        earned += factor * expected(model.rewards, model.n_actions, action, buffers.weights, count)
        count = _step(model, action, buffers, count)
        ahead, most = 0.0, 0.0
        for i in range(count):
            state, weight = buffers.weights.states[i], buffers.weights.values[i]
            paths.touched[state] = True
            ahead += weight * paths.known[state]
            most += weight * paths.ceiling[state]
        paid = 0.0 if count <= 1 else factor * price
        factor *= discount
        value = earned - paid + factor * ahead
        if step == 0 or value > best.value:
            best = Stop(step + 1, END if count == 0 else (KNOWN if count == 1 else LOOK), value, 0)
        # A known state has its own plan, whose value includes going on blind.
        if count <= 1 or earned + factor * most <= best.value + NEGLIGIBLE_GAIN:
            return best
        mass = total(buffers.weights, count)
        if factor * mass < OVER:
            return Stop(step + 1, ON, earned, 1) if earned > best.value else best
        if mark_step > 0 and _is_earlier(buffers, count, mass):
            ratio = factor * mass / mark_factor
            if ratio < 1:
                endless = mark_earned + (earned - mark_earned) / (1 - ratio)
            else:  # without discount and end: gains and losses that alternate without end have no sum
                cycle = paths.actions[mark_step : step + 1]
                endless = earned if _earns_nothing(model, cycle, buffers, count) else -np.inf
            return Stop(step + 1, ON, endless, step + 1 - mark_step) if endless > best.value else best
        if step + 1 == mark_at:
            _mark(buffers, count, mass)
            mark_at, mark_step = 2 * mark_at, step + 1
            mark_earned, mark_factor = earned, factor * mass
    # Without discount, what comes after the longest path is unknown; with discount it is negligible.
    return Stop(paths.actions.shape[0], ON, earned, 1) if earned > best.value and discount < 1 else best


def stops_from(
    model: Dynamics, discount: float, paths: Paths, buffers: Buffers, states: Any, out: Any, values: Any
) -> Any:
    """Find the best stop from each of `states`, int64 (n,), when it is known; returns the actions of all paths, end to end.

    `out`, int64 (n, 4), receives the length, ending, period and where the actions begin in the array that is returned; `values`,
    float64 (n,), the values of the stops.
    """
    actions, done, used = np.empty(FIRST_CAPACITY, np.int64), 0, 0
    while done < len(states):
        done = stops_that_fit(model, discount, paths, buffers, states, out, values, actions, done, used)
        used = 0 if done == 0 else int(out[done - 1, 0] + out[done - 1, 3])
        if done < len(states):
            actions = np.concatenate([actions, np.empty(len(actions), np.int64)])
    return actions[:used]


@no_refcount
def stops_that_fit(
    model: Dynamics, discount: float, paths: Paths, buffers: Buffers, states: Any, out: Any, values: Any,
    actions: Any, first: int, used: int,
) -> int:  # fmt: skip
    """Write the stops from states number `first` on, as for `stops_from`; returns the number of the first that does not fit."""
    for i in range(first, states.shape[0]):
        buffers.weights.states[0], buffers.weights.values[0] = states[i], 1.0
        stop = best_stop(model, discount, paths, buffers, 1)
        if used + stop.length > actions.shape[0]:
            return i
        for k in range(stop.length):
            actions[used + k] = paths.actions[k]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = stop.length, stop.ending, stop.period, used
        values[i] = stop.value
        used += stop.length
    return states.shape[0]  # type: ignore[no-any-return]
