"""When to look along a blind path whose actions are settled: optimal stopping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.blind import Dynamics, Weights, expected, make_weights, push, total
from actmeasure.kernels.jit import compiled

#: Values this close are equal, so that rounding does not decide between actions.
TIE = 1e-9
#: Beliefs with probabilities this close are the same.
SAME = 1e-12
#: What a path could still gain is not worth following it for below this.
NEGLIGIBLE = 1e-10
#: How a path ends: with a look, in a known state, with the end of the episode, or it goes on for ever without one.
LOOK, KNOWN, END, ON = 0, 1, 2, 3


class Paths(NamedTuple):
    """What is needed to follow the control's paths."""

    q_values: Any  # float64 (S, A): the control is greedy in their mean
    tie_values: Any  # float64 (S, A): what decides between equals
    known: Any  # float64 (S,): what a state is worth once it is known
    ceiling: Any  # float64 (S,): the most that it can be worth
    touched: Any  # bool (S,): set for every state that a look along a path could show
    actions: Any  # int64 (longest path,): the last path followed


class Room(NamedTuple):
    """Room to work in."""

    weights: Weights
    following: Weights
    position: Any  # int64 (S,), -1 everywhere
    earlier: Any  # float64 (S,): a belief from earlier on the path, spread out
    means: Any  # float64 (A,)
    ties: Any  # float64 (A,)


class Stop(NamedTuple):
    """Where to stop: after `length` actions, how, what that is worth, and the period of a path that goes on for ever."""

    length: int
    ending: int
    value: float
    period: int


@compiled
def make_room(n_states: int, n_actions: int) -> Room:
    """Room to work in."""
    return Room(
        make_weights(n_states), make_weights(n_states), np.full(n_states, -1, np.int64), np.zeros(n_states),
        np.zeros(n_actions), np.zeros(n_actions),
    )  # fmt: skip


@compiled
def control(paths: Paths, room: Room, count: int) -> int:
    """The action with the highest mean value over the belief in `room.weights`."""
    room.means[:] = 0.0
    room.ties[:] = 0.0
    for i in range(count):
        state, weight = room.weights.states[i], room.weights.values[i]
        for action in range(room.means.shape[0]):
            room.means[action] += weight * paths.q_values[state, action]
            room.ties[action] += weight * paths.tie_values[state, action]
    mass, best = total(room.weights, count), room.means.max()
    chosen, best_tie = 0, -np.inf
    for action in range(room.means.shape[0]):
        is_equal = room.means[action] >= best - TIE * (mass + abs(best))
        if is_equal and room.ties[action] > best_tie + TIE * mass:
            chosen, best_tie = action, room.ties[action]
    return chosen


@compiled
def _is_earlier(room: Room, count: int, earlier_count: int, mass: float) -> bool:
    """Whether the belief is the one from earlier."""
    farthest = 0.0 if count == earlier_count else np.inf
    for i in range(count):
        farthest = max(farthest, abs(room.weights.values[i] / mass - room.earlier[room.weights.states[i]]))
    return bool(farthest <= SAME)


@compiled
def best_stop(model: Dynamics, discount: float, paths: Paths, room: Room, count: int) -> Stop:
    """Follow the control from the first `count` weights in `room`, which are changed, and find the best moment to look."""
    earned, factor = 0.0, 1.0
    best = Stop(0, ON, -np.inf, 1)
    mark_at, mark_step, mark_count, mark_earned, mark_factor = 1, 0, 0, 0.0, 0.0
    for step in range(paths.actions.shape[0]):
        action = control(paths, room, count)
        paths.actions[step] = action
        price = expected(model.costs, model.n_actions, action, room.weights, count)
        earned += factor * expected(model.rewards, model.n_actions, action, room.weights, count)
        count, _ = push(model, action, room.weights, count, room.following, room.position)
        room.weights.states[:count] = room.following.states[:count]
        room.weights.values[:count] = room.following.values[:count]
        ahead, most = 0.0, 0.0
        for i in range(count):
            state, weight = room.weights.states[i], room.weights.values[i]
            paths.touched[state] = True
            ahead += weight * paths.known[state]
            most += weight * paths.ceiling[state]
        paid = 0.0 if count <= 1 else factor * price
        factor *= discount
        value = earned - paid + factor * ahead
        if step == 0 or value > best.value:
            best = Stop(step + 1, END if count == 0 else (KNOWN if count == 1 else LOOK), value, 0)
        # A known state plans anew; what it is worth already includes going on blind.
        if count <= 1 or earned + factor * most <= best.value + NEGLIGIBLE:
            return best
        mass = total(room.weights, count)
        if mark_count > 0 and _is_earlier(room, count, mark_count, mass):
            # The path goes round for ever; each further round changes what a look is worth in the same direction.
            ratio = factor * mass / mark_factor
            if ratio < 1:
                for_ever = mark_earned + (earned - mark_earned) / (1 - ratio)
            else:
                for_ever = earned if earned > mark_earned - SAME else -np.inf
            return Stop(step + 1, ON, for_ever, step + 1 - mark_step) if for_ever > best.value else best
        if step + 1 == mark_at:
            for i in range(count):
                room.earlier[room.weights.states[i]] = room.weights.values[i] / mass
            mark_at, mark_step, mark_count = 2 * mark_at, step + 1, count
            mark_earned, mark_factor = earned, factor * mass
    # Without discount, what comes after so long a path is unknown; with it, it is worth nothing.
    return Stop(paths.actions.shape[0], ON, earned, 1) if earned > best.value and discount < 1 else best


@compiled
def stops_from(model: Dynamics, discount: float, paths: Paths, room: Room, states: Any, out: Any, values: Any) -> Any:
    """The best stop from each of `states`, when known, int64 (n,).

    `out`, int64 (n, 4), gets the length, ending, period and where the actions begin in the array that is returned; `values`,
    float64 (n,), what the stop is worth.
    """
    actions, used = np.empty(4096, np.int64), 0
    for i in range(states.shape[0]):
        room.weights.states[0], room.weights.values[0] = states[i], 1.0
        stop = best_stop(model, discount, paths, room, 1)
        if used + stop.length > actions.shape[0]:
            larger = np.empty(2 * (used + stop.length), np.int64)
            larger[:used] = actions[:used]
            actions = larger
        actions[used : used + stop.length] = paths.actions[: stop.length]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = stop.length, stop.ending, stop.period, used
        values[i] = stop.value
        used += stop.length
    return actions[:used]
