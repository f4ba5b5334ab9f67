"""Beliefs that blind plans lead to, as a graph, with bounds on the optimum at each.

A node is a belief. Each action leads from it to one other belief, given that the episode is still running; looking there
reveals which state it is. So the optimum V at a node is the best over actions of

    reward + discount * running * V(child)                      not looking, and
    reward - cost + discount * running * reveal(child)          looking,

where reveal(child) is the mean over the child's states of V at the node in which that state is known. Bounds are kept for
both, and only ever get tighter, so old values stay sound and are renewed when they matter.

Upper bounds hold in floating point. Probabilities that are stored stand for themselves divided by their exact sum. An action
leads from a node to the belief b with probability m, and the child that stands for b has the belief q, b_i = q_i (1 + t_i) with
|t_i| <= e: e is made up of the rounding of the sums and, if the child was there already, of the relative difference to it. The
optimum is V(b) = max over plans of sum_i b_i v_i(plan). Let C_i >= 0 bound all v_i from above (`ceiling`) and
L <= V(q). The best plan for b has sum_i b_i |v_i| = 2 sum_i b_i max(v_i, 0) - V(b), so that

    V(b) <= V(q) + e (2 sum_i q_i C_i + max(0, -L)) (1 + 2 e),

and what is added to discount * m * V(q), with the rounding of m and of a back-up, is the `margin` of the action at the node.
Where nothing is rounded it is 0, which matters without discount. Means over a node's states are rounded upwards by the same
argument. Lower bounds guide the search; what a schedule earns is evaluated when it is returned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.blind import Dynamics, relative_error
from actmeasure.kernels.jit import inner, lean

#: Beliefs whose probabilities differ relatively by less than this are one node.
SAME = 1e-13
#: Beliefs that are one node have hashes of probabilities rounded to multiples of this; others rarely do.
GRID = 1e-12
#: Relative difference below which two upper bounds are a tie.
TIE = 1e-12
#: A weight below this is dropped before it loses digits; what it could be worth is less than `DROPPED`, as models have no larger
#: values than 1e100.
LEAST_WEIGHT, DROPPED = 1e-290, 1e-150
#: A margin above this is due to a child without a lower bound, and is computed again when it may have one.
NO_MARGIN = 1e200
NODES, ENTRIES, EXPANDED, STAMP = 0, 1, 2, 3
NONE = -1


class Graph(NamedTuple):
    """Flat arrays with room to spare; `counts` tells how much of them is in use."""

    counts: Any  # int64 (4,): nodes, entries, expanded nodes, last stamp
    offsets: Any  # int64 (capacity + 1,): node k has the entries offsets[k]:offsets[k + 1]
    states: Any  # int32 (entry capacity,)
    probabilities: Any  # float64 (entry capacity,)
    known: Any  # int32 (capacity,): the state, where there is only one
    upper: Any  # float64 (capacity,)
    lower: Any  # float64 (capacity,)
    reveal_upper: Any  # float64 (capacity,)
    reveal_lower: Any  # float64 (capacity,)
    expanded: Any  # bool (capacity,)
    child: Any  # int32 (capacity, A), -1 where the episode is surely over
    running: Any  # float64 (capacity, A)
    reward: Any  # float64 (capacity, A), rounded up
    cost: Any  # float64 (capacity, A), rounded down
    error: Any  # float64 (capacity, A): relative error of the child's weights and of a back-up, times discount and `running`
    margin: Any  # float64 (capacity, A): what is added to upper bounds for that error
    scale: Any  # float64 (capacity,): mean of `ceiling` over the node's states
    way_out: Any  # int32 (capacity,): the choice that leads out of a circle that was solved, or -1
    promise: Any  # int32 (capacity,): the choice behind the lower bound, or -1 for one of the first simple plans
    parent: Any  # int32 (capacity,): the node from which this one was first reached, or -1
    parent_action: Any  # int32 (capacity,): the action that led here from there
    mixed_at: Any  # int64 (capacity,): number of expanded nodes when the node was last bounded by a mixture
    mark: Any  # int64 (capacity,): stamp of the last walk that came by
    hashes: Any  # uint64 (capacity,)
    table: Any  # int32 (a power of two,): open addressing, -1 where free
    node_of_state: Any  # int32 (S,): the node in which a state is known, or -1


class Bounds(NamedTuple):
    """What is known about every state, whether it has a node or not."""

    upper: Any  # float64 (S,): of the optimum once the state is known
    lower: Any  # float64 (S,)
    upper_vectors: Any  # float64 (S, 2 A): not looking (2 a) and looking (2 a + 1); any mean of them bounds a belief
    lower_vectors: Any  # float64 (S, k): worth of simple plans from each state; the best mean bounds a belief
    ceiling: Any  # float64 (S,): at least 0 and every upper bound of the state, now and later
    loss: Any  # float64 (1,): at least 0, and no reward is below minus this


class Scratch(NamedTuple):
    """Room to work in."""

    states: Any  # int64 (S,)
    weights: Any  # float64 (S,)
    position: Any  # int64 (S,), -1 everywhere
    dense: Any  # float64 (S,), 0 everywhere
    path: Any  # int64 (longest path,)
    path_weights: Any  # float64 (longest path,)
    actions_back: Any  # int64 (longest path,): those that led to a node, the last first
    loosest: Any  # int64 (1,): the node to whose gap the bound of the last tip is due, or -1
    circle_values: Any  # float64 (longest path,)
    circle_rewards: Any  # float64 (longest path,)
    circle_factors: Any  # float64 (longest path,)
    leaving: Any  # float64 (longest path,)
    free: Any  # bool (longest path,)
    used: Any  # bool (S,), False everywhere
    met: Any  # bool (S,), False everywhere
    difference: Any  # float64 (1,): relative difference of the last belief looked for to the node that was found


@inner
def is_short_of_nodes(graph: Graph) -> bool:
    """Whether expanding one more node may need more nodes than there are, with one kept free for every state to be known."""
    n_new = graph.child.shape[1] + graph.node_of_state.shape[0]
    return bool(graph.counts[NODES] + n_new >= graph.expanded.shape[0])


@inner
def is_short_of_entries(graph: Graph) -> bool:
    """Likewise for the entries of nodes."""
    n_new = (graph.child.shape[1] + 1) * graph.node_of_state.shape[0]
    return bool(graph.counts[ENTRIES] + n_new >= graph.states.shape[0])


@inner
def has_room(graph: Graph) -> bool:
    """Whether one more node can be expanded."""
    return not is_short_of_nodes(graph) and not is_short_of_entries(graph)


@lean
def best_mean(graph: Graph, node: int, vectors: Any) -> tuple[float, int]:
    """Highest mean of a column of `vectors`, float64 (S, k), over a node's belief, and the column."""
    best, column = -np.inf, 0
    for k in range(vectors.shape[1]):
        mean = 0.0
        for entry in range(graph.offsets[node], graph.offsets[node + 1]):
            mean += graph.probabilities[entry] * vectors[graph.states[entry], k]
        if mean > best:
            best, column = mean, k
    return best, column


@lean
def _rounded_up(graph: Graph, node: int, mean: float) -> float:
    """Return an upper bound on the exact mean over a node's states of upper bounds, from the computed one."""
    count = graph.offsets[node + 1] - graph.offsets[node]
    if count == 1:  # there is nothing to add up
        return mean
    return mean + relative_error(count) * (2 * graph.scale[node] + abs(mean))  # type: ignore[no-any-return]


@lean
def renew_reveal(graph: Graph, bounds: Bounds, node: int) -> None:
    """Renew the bounds on what seeing the state at a node is worth."""
    upper, lower = 0.0, 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        upper += graph.probabilities[entry] * bounds.upper[graph.states[entry]]
        lower += graph.probabilities[entry] * bounds.lower[graph.states[entry]]
    graph.reveal_upper[node] = min(graph.reveal_upper[node], _rounded_up(graph, node, upper))
    graph.reveal_lower[node] = max(graph.reveal_lower[node], lower)


@lean
def renew_tip(graph: Graph, bounds: Bounds, node: int) -> None:
    """Renew the upper bound of a node that has not been expanded."""
    renew_reveal(graph, bounds, node)
    mean, _ = best_mean(graph, node, bounds.upper_vectors)
    graph.upper[node] = min(graph.upper[node], _rounded_up(graph, node, mean), graph.reveal_upper[node])


@lean
def _hash_entry(state: int, probability: float) -> Any:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(probability / GRID + 0.5) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@lean
def _difference(graph: Graph, node: int, scratch: Scratch) -> float:
    """Return the largest relative difference of a node's probabilities to those spread out in `scratch.dense`."""
    largest = 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        probability = graph.probabilities[entry]
        largest = max(largest, abs(scratch.dense[graph.states[entry]] - probability) / probability)
    return largest


@lean
def find_or_add(graph: Graph, bounds: Bounds, scratch: Scratch, count: int) -> int:
    """Return the node of the belief in the first `count` places of `scratch`, made if there is none yet.

    The relative difference to it is written to `scratch.difference`.
    """
    scratch.difference[0] = 0.0
    if count == 1 and graph.node_of_state[scratch.states[0]] >= 0:
        return graph.node_of_state[scratch.states[0]]  # type: ignore[no-any-return]
    code = np.uint64(0)
    for i in range(count):
        code += _hash_entry(scratch.states[i], scratch.weights[i])
        scratch.dense[scratch.states[i]] = scratch.weights[i]
    mask = np.uint64(graph.table.shape[0] - 1)
    slot = code & mask
    found = NONE
    while graph.table[slot] >= 0 and found < 0:
        node = graph.table[slot]
        same_size = graph.offsets[node + 1] - graph.offsets[node] == count
        if graph.hashes[node] == code and same_size:
            difference = _difference(graph, node, scratch)
            if difference <= SAME:
                found, scratch.difference[0] = node, difference
        slot = (slot + np.uint64(1)) & mask
    for i in range(count):
        scratch.dense[scratch.states[i]] = 0.0
    return found if found >= 0 else _add(graph, bounds, scratch, count, code, slot)


@lean
def _add(graph: Graph, bounds: Bounds, scratch: Scratch, count: int, code: Any, slot: Any) -> int:
    node = graph.counts[NODES]
    begin = graph.offsets[node]
    for i in range(count):
        graph.states[begin + i] = scratch.states[i]
        graph.probabilities[begin + i] = scratch.weights[i]
    graph.offsets[node + 1] = begin + count
    graph.table[slot] = node
    graph.hashes[node] = code
    graph.counts[NODES] += 1
    graph.counts[ENTRIES] = begin + count
    graph.known[node] = NONE
    graph.expanded[node] = False
    graph.way_out[node], graph.promise[node] = NONE, NONE
    graph.parent[node], graph.mixed_at[node] = NONE, 0
    graph.mark[node] = 0
    graph.upper[node], graph.reveal_upper[node] = np.inf, np.inf
    graph.lower[node], graph.reveal_lower[node] = -np.inf, -np.inf
    scale = 0.0
    for i in range(count):
        scale += scratch.weights[i] * bounds.ceiling[scratch.states[i]]
    graph.scale[node] = scale
    renew_tip(graph, bounds, node)
    graph.lower[node] = best_mean(graph, node, bounds.lower_vectors)[0]
    if count == 1:
        state = scratch.states[0]
        graph.known[node] = state
        graph.node_of_state[state] = node
        graph.lower[node] = max(graph.lower[node], bounds.lower[state])
        bounds.upper[state], bounds.lower[state] = graph.upper[node], graph.lower[node]
    return node  # type: ignore[no-any-return]


@lean
def fill_table(graph: Graph) -> None:
    """Enter every node into an empty hash table."""
    mask = np.uint64(graph.table.shape[0] - 1)
    for node in range(graph.counts[NODES]):
        slot = graph.hashes[node] & mask
        while graph.table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        graph.table[slot] = node


@lean
def node_of(graph: Graph, bounds: Bounds, scratch: Scratch, state: int) -> int:
    """The node in which a state is known."""
    scratch.states[0] = state
    scratch.weights[0] = 1.0
    return find_or_add(graph, bounds, scratch, 1)


@lean
def expand(graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, node: int) -> None:
    """Follow every action from a node."""
    n_entries = graph.offsets[node + 1] - graph.offsets[node]
    for action in range(model.n_actions):
        size, terms, reward, magnitude, cost, mass = 0, 0, 0.0, 0.0, 0.0, 0.0
        exact, ends = True, False  # whether no product or sum is rounded, and whether the episode may end
        dropped = 0.0
        for entry in range(graph.offsets[node], graph.offsets[node + 1]):
            row = graph.states[entry] * model.n_actions + action
            weight = graph.probabilities[entry]
            reward += weight * model.rewards[row]
            magnitude += weight * abs(model.rewards[row])
            cost += weight * model.costs[row]
            for k in range(model.offsets[row], model.offsets[row + 1]):
                successor, probability = model.successors[k], model.probabilities[k]
                if model.terminal[successor]:
                    ends = True
                    continue
                arriving = weight * probability
                if arriving < LEAST_WEIGHT:
                    ends, dropped = True, DROPPED
                    continue
                exact = exact and (weight == 1.0 or probability == 1.0)
                mass += arriving
                terms += 1
                place = scratch.position[successor]
                if place < 0:
                    scratch.position[successor] = size
                    scratch.states[size] = successor
                    scratch.weights[size] = arriving
                    size += 1
                else:
                    scratch.weights[place] += arriving
                    exact = False
        for i in range(size):
            scratch.position[scratch.states[i]] = -1
            if ends or not exact:
                scratch.weights[i] /= mass
        if n_entries > 1 or size > 0:  # otherwise nothing is added up
            reward += relative_error(n_entries) * magnitude
        graph.reward[node, action] = reward + dropped
        graph.cost[node, action] = cost * (1 - relative_error(n_entries))
        graph.running[node, action] = mass if ends else 1.0
        n_before = graph.counts[NODES]
        child = find_or_add(graph, bounds, scratch, size) if size > 0 else NONE
        graph.child[node, action] = child
        if child >= n_before:
            graph.parent[child], graph.parent_action[child] = node, action
        error = scratch.difference[0] if child >= 0 else 0.0
        if size > 1 and (ends or not exact):
            error += 2 * relative_error(terms)
        if ends:
            error += relative_error(terms)
        if discount < 1 or ends or magnitude > 0:
            error += relative_error(0)
        graph.error[node, action] = error * discount * graph.running[node, action]
        graph.margin[node, action] = _margin(graph, node, action)
    graph.expanded[node] = True
    graph.counts[EXPANDED] += 1


@lean
def _margin(graph: Graph, node: int, action: int) -> float:
    """Return what an action's upper bound exceeds that of its child by, because the child only nearly is what it leads to."""
    error, child = graph.error[node, action], graph.child[node, action]
    if child < 0 or error == 0:
        return 0.0
    return 1.01 * error * (2 * graph.scale[child] + max(0.0, -graph.lower[child]))  # type: ignore[no-any-return]


@lean
def choice_upper(graph: Graph, discount: float, node: int, choice: int) -> float:
    """Upper bound of a choice at an expanded node: action `choice // 2`, looking if `choice` is odd."""
    action = choice // 2
    value = graph.reward[node, action] + graph.margin[node, action]
    if choice % 2 == 1:
        value -= graph.cost[node, action]
    child = graph.child[node, action]
    if child >= 0:
        ahead = graph.reveal_upper[child] if choice % 2 == 1 else graph.upper[child]
        value += discount * graph.running[node, action] * ahead
    return value  # type: ignore[no-any-return]


@lean
def back_up(graph: Graph, bounds: Bounds, discount: float, node: int) -> int:
    """Tighten the bounds of an expanded node from its children; returns the choice with the highest upper bound.

    Choices are numbered as in `choice_upper`. This is the innermost loop, so it is one piece, without calls.
    """
    while True:
        best, upper, safest, lower = 0, -np.inf, 0, -np.inf
        for action in range(graph.child.shape[1]):
            child = graph.child[node, action]
            if graph.margin[node, action] > NO_MARGIN:
                graph.margin[node, action] = _margin(graph, node, action)
            blind_lower = graph.reward[node, action]
            blind_upper = blind_lower + graph.margin[node, action]
            look_lower = blind_lower - graph.cost[node, action]
            look_upper = blind_upper - graph.cost[node, action]
            if child >= 0:
                factor = discount * graph.running[node, action]
                blind_upper += factor * graph.upper[child]
                blind_lower += factor * graph.lower[child]
                look_upper += factor * graph.reveal_upper[child]
                look_lower += factor * graph.reveal_lower[child]
            if blind_upper > upper:
                best, upper = 2 * action, blind_upper
            if look_upper > upper:
                best, upper = 2 * action + 1, look_upper
            if blind_lower > lower:
                safest, lower = 2 * action, blind_lower
            if look_lower > lower:
                safest, lower = 2 * action + 1, look_lower
        out = graph.way_out[node]
        if out >= 0 and choice_upper(graph, discount, node, out) >= upper - TIE * (1 + abs(upper)):
            best = out
        child = graph.child[node, best // 2]
        if best % 2 == 0 or child < 0:
            break
        # What a look is worth may be out of date; make sure of it where it decides.
        before_upper, before_lower = graph.reveal_upper[child], graph.reveal_lower[child]
        renew_reveal(graph, bounds, child)
        if graph.reveal_upper[child] >= before_upper and graph.reveal_lower[child] <= before_lower:
            break
    graph.upper[node] = min(graph.upper[node], upper)
    if lower > graph.lower[node]:
        # Only a choice that improves on what was promised before: following these cannot lead round in a circle.
        graph.lower[node], graph.promise[node] = lower, safest
    state = graph.known[node]
    if state >= 0:
        bounds.upper[state], bounds.lower[state] = graph.upper[node], graph.lower[node]
        for choice in range(2 * graph.child.shape[1]):
            bound = choice_upper(graph, discount, node, choice)
            bounds.upper_vectors[state, choice] = min(bounds.upper_vectors[state, choice], bound)
    return best


@lean
def best_lower_choice(graph: Graph, bounds: Bounds, discount: float, node: int) -> int:
    """The choice that guarantees most at an expanded node."""
    best, value = 0, -np.inf
    for action in range(graph.child.shape[1]):
        child = graph.child[node, action]
        blind = graph.reward[node, action]
        looking = blind - graph.cost[node, action]
        if child >= 0:
            renew_reveal(graph, bounds, child)
            factor = discount * graph.running[node, action]
            blind += factor * graph.lower[child]
            looking += factor * graph.reveal_lower[child]
        if blind > value:
            best, value = 2 * action, blind
        if looking > value:
            best, value = 2 * action + 1, looking
    return best
