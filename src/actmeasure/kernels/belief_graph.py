"""The graph of beliefs that blind plans lead to, with bounds on the optimum at each belief.

A node is a belief. Each action leads from it to one other belief (its child), given that the episode is still running; a look
there shows which state it is. With r the expected reward of an action at the node, c the expected price of a look, m the
probability that the episode still runs after it and g the discount, the optimum V at a node is the best over actions of

    r + g m V(child)                not looking, and
    r - c + g m reveal(child)       looking,

where reveal(child) is the mean, over the child's belief, of V at the node in which the state is known. Bounds are kept for both V
and reveal. They only get tighter, so a bound that was computed earlier stays sound and is renewed only where it matters.

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

from actmeasure.kernels.dynamics import Dynamics, relative_error
from actmeasure.kernels.jit import inner, no_refcount

#: Beliefs whose probabilities differ relatively by less than this are one node.
SAME_NODE = 1e-13
#: Beliefs that are one node have hashes of probabilities rounded to multiples of this; others rarely do.
GRID = 1e-12
#: Relative difference below which two upper bounds are a tie.
BOUND_TIE = 1e-12
#: A weight below this is raised to it, before it loses digits: its state stays possible, so that a known state is known. That
#: changes a value by less than `RAISED`, as models have no values above 1e100. Without discount a plan may lose more than that
#: in a state; there the error counts as 1, which makes the margin larger than the value of showing the state.
LEAST_WEIGHT, RAISED = 1e-290, 1e-150
#: A margin above this is due to a child without a lower bound, and is computed again when it may have one.
NO_MARGIN = 1e200
NODES, ENTRIES, EXPANDED, STAMP = 0, 1, 2, 3
NONE = -1
NODE_OF_STATE, NODE_OF_BELIEF, LOWER_CHOICE, LOWER_VECTOR = range(4)


class Graph(NamedTuple):
    """The graph as flat arrays with spare capacity; `counts` says how much of them is in use."""

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
    largest_error: Any  # float64 (1,): of the weights of a child
    margin: Any  # float64 (capacity, A): what is added to upper bounds for that error
    scale: Any  # float64 (capacity,): mean of `ceiling` over the node's states
    exit_choice: Any  # int32 (capacity,): the choice that leaves a cycle that was solved, or -1
    lower_choice: Any  # int32 (capacity,): the choice behind the lower bound, or -1 for one of `Bounds.lower_vectors`
    parent: Any  # int32 (capacity,): the node from which this one was first reached, or -1
    parent_action: Any  # int32 (capacity,): the action that led here from there
    mixed_at: Any  # int64 (capacity,): number of expanded nodes when the node was last bounded by a mixture
    inner: Any  # int32 (capacity,): the node inside this one that bounds it (`kernels/convexity_bounds.py`), or -1
    inner_share: Any  # float64 (capacity,): its share
    mark: Any  # int64 (capacity,): stamp of the last walk that visited the node
    hashes: Any  # uint64 (capacity,)
    table: Any  # int32 (a power of two,): open addressing, -1 where free
    node_of_state: Any  # int32 (S,): the node in which a state is known, or -1


class Bounds(NamedTuple):
    """Bounds of every state, whether it has a node or not."""

    upper: Any  # float64 (S,): of the optimum once the state is known
    lower: Any  # float64 (S,)
    upper_vectors: Any  # float64 (S, 2 A): not looking (2 a) and looking (2 a + 1); any mean of them bounds a belief
    lower_vectors: Any  # float64 (S, k): values of simple plans from each state; the highest mean bounds a belief
    ceiling: Any  # float64 (S,): at least 0 and every upper bound of the state, now and later
    loss: Any  # float64 (1,): at least 0, and no reward is below minus this


class Scratch(NamedTuple):
    """Work arrays of the kernels."""

    states: Any  # int64 (S,)
    weights: Any  # float64 (S,)
    position: Any  # int64 (S,), -1 everywhere
    dense: Any  # float64 (S,), 0 everywhere
    path: Any  # int64 (longest path,)
    path_weights: Any  # float64 (longest path,)
    cycle_values: Any  # float64 (longest path,)
    cycle_rewards: Any  # float64 (longest path,)
    cycle_factors: Any  # float64 (longest path,)
    leaving: Any  # float64 (longest path,)
    free: Any  # bool (longest path,)
    used: Any  # bool (S,), False everywhere
    met: Any  # bool (S,), False everywhere
    difference: Any  # float64 (1,): relative difference of the last belief looked for to the node that was found


@inner
def is_short_of_nodes(graph: Graph) -> bool:
    """Return whether expanding a node may need more nodes than are free, with one reserved for each state to be known."""
    n_new = graph.child.shape[1] + graph.node_of_state.shape[0]
    return bool(graph.counts[NODES] + n_new >= graph.expanded.shape[0])


@inner
def is_short_of_entries(graph: Graph) -> bool:
    """Return whether expanding a node may need more entries than are free, with one reserved for each state to be known."""
    n_new = (graph.child.shape[1] + 1) * graph.node_of_state.shape[0]
    return bool(graph.counts[ENTRIES] + n_new >= graph.states.shape[0])


@inner
def has_room(graph: Graph) -> bool:
    """Return whether one more node can be expanded."""
    return not is_short_of_nodes(graph) and not is_short_of_entries(graph)


@no_refcount
def best_mean(graph: Graph, node: int, vectors: Any) -> tuple[float, int]:
    """Return the highest mean of a column of `vectors`, float64 (S, k), over a node's belief, and the column.

    Four columns are added up at a time: their sums do not wait for each other.
    """
    best, column = -np.inf, 0
    begin, end = graph.offsets[node], graph.offsets[node + 1]
    for k in range(0, vectors.shape[1], 4):
        last = vectors.shape[1] - 1
        k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
        mean, mean1, mean2, mean3 = 0.0, 0.0, 0.0, 0.0
        for entry in range(begin, end):
            probability, state = graph.probabilities[entry], graph.states[entry]
            mean += probability * vectors[state, k]
            mean1 += probability * vectors[state, k1]
            mean2 += probability * vectors[state, k2]
            mean3 += probability * vectors[state, k3]
        if mean > best:
            best, column = mean, k
        if mean1 > best:
            best, column = mean1, k1
        if mean2 > best:
            best, column = mean2, k2
        if mean3 > best:
            best, column = mean3, k3
    return best, column


@no_refcount
def _rounded_up(graph: Graph, node: int, mean: float) -> float:
    """Return an upper bound on the exact mean of states' upper bounds over a node's belief, from the computed mean.

    The computed mean of x_i with weights q_i is off by at most e sum_i q_i |x_i|, e = `relative_error` of the number of terms. As
    x_i <= C_i with C_i >= 0 (`ceiling`), sum_i q_i |x_i| <= 2 sum_i q_i C_i - mean <= 2 scale + |mean|.
    """
    count = graph.offsets[node + 1] - graph.offsets[node]
    if count == 1:  # there is nothing to add up
        return mean
    return mean + relative_error(count) * (2 * graph.scale[node] + abs(mean))  # type: ignore[no-any-return]


@no_refcount
def renew_reveal(graph: Graph, bounds: Bounds, node: int) -> None:
    """Tighten the bounds on `reveal`, the value of a node if its state is shown, from the present bounds of the states."""
    upper, lower = 0.0, 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        upper += graph.probabilities[entry] * bounds.upper[graph.states[entry]]
        lower += graph.probabilities[entry] * bounds.lower[graph.states[entry]]
    graph.reveal_upper[node] = min(graph.reveal_upper[node], _rounded_up(graph, node, upper))
    graph.reveal_lower[node] = max(graph.reveal_lower[node], lower)


@no_refcount
def renew_tip(graph: Graph, bounds: Bounds, node: int) -> None:
    """Tighten the upper bound of a tip, a node that has not been expanded.

    Both terms are sound: the best column mean of `upper_vectors` is the fast informed bound, and showing the state for free never
    makes a belief worse, so V <= reveal.
    """
    renew_reveal(graph, bounds, node)
    mean, _ = best_mean(graph, node, bounds.upper_vectors)
    graph.upper[node] = min(graph.upper[node], _rounded_up(graph, node, mean), graph.reveal_upper[node])


@no_refcount
def _hash_entry(state: int, probability: float) -> Any:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(probability / GRID + 0.5) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@no_refcount
def _difference(graph: Graph, node: int, scratch: Scratch) -> float:
    """Return the largest relative difference of a node's probabilities to those spread out in `scratch.dense`."""
    largest = 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        probability = graph.probabilities[entry]
        largest = max(largest, abs(scratch.dense[graph.states[entry]] - probability) / probability)
    return largest


@no_refcount
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
    same = NONE
    while graph.table[slot] >= 0 and same < 0:
        node = graph.table[slot]
        same_size = graph.offsets[node + 1] - graph.offsets[node] == count
        if graph.hashes[node] == code and same_size:
            difference = _difference(graph, node, scratch)
            if difference <= SAME_NODE:
                same, scratch.difference[0] = node, difference
        slot = (slot + np.uint64(1)) & mask
    for i in range(count):
        scratch.dense[scratch.states[i]] = 0.0
    return same if same >= 0 else _add(graph, bounds, scratch, count, code, slot)


@no_refcount
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
    graph.exit_choice[node], graph.lower_choice[node] = NONE, NONE
    graph.parent[node], graph.mixed_at[node] = NONE, 0
    graph.inner[node] = NONE
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


@no_refcount
def fill_table(graph: Graph) -> None:
    """Insert every node into an empty hash table."""
    mask = np.uint64(graph.table.shape[0] - 1)
    for node in range(graph.counts[NODES]):
        slot = graph.hashes[node] & mask
        while graph.table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        graph.table[slot] = node


@no_refcount
def node_of(graph: Graph, bounds: Bounds, scratch: Scratch, state: int) -> int:
    """Return the node in which a state is known, which is added if there is none."""
    scratch.states[0] = state
    scratch.weights[0] = 1.0
    return find_or_add(graph, bounds, scratch, 1)


@no_refcount
def expand(graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, node: int) -> None:
    """Add the children of a node: rewards, prices, running probabilities, and the margins of their upper bounds.

    Rewards are rounded up and prices down. `exact` and `ends` find the cases in which nothing is rounded (one successor, or a
    known state that surely runs on): there the margin is 0.
    """
    n_entries = graph.offsets[node + 1] - graph.offsets[node]
    for action in range(model.n_actions):
        size, terms, reward, magnitude, cost, mass = 0, 0, 0.0, 0.0, 0.0, 0.0
        exact, ends = True, False  # whether no product or sum is rounded, and whether the episode may end
        raised = 0.0
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
                    arriving, raised, exact = LEAST_WEIGHT, RAISED, False
                exact = exact and (weight == 1.0 or probability == 1.0)
                mass += arriving
                terms += 1
                position = scratch.position[successor]
                if position < 0:
                    scratch.position[successor] = size
                    scratch.states[size] = successor
                    scratch.weights[size] = arriving
                    size += 1
                else:
                    scratch.weights[position] += arriving
                    exact = False
        for i in range(size):
            scratch.position[scratch.states[i]] = -1
            if ends or not exact:
                scratch.weights[i] /= mass
        if n_entries > 1 or size > 0:  # otherwise nothing is added up
            reward += relative_error(n_entries) * magnitude
        graph.reward[node, action] = reward + raised
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
        if raised > 0 and discount == 1:
            error = 1.0
        graph.largest_error[0] = max(graph.largest_error[0], error)
        graph.error[node, action] = error * discount * graph.running[node, action]
        graph.margin[node, action] = _margin(graph, node, action)
    graph.expanded[node] = True
    graph.counts[EXPANDED] += 1


@no_refcount
def _margin(graph: Graph, node: int, action: int) -> float:
    """Return what is added to an action's upper bound for rounding: e (2 scale(child) + max(0, -L)), see the module."""
    error, child = graph.error[node, action], graph.child[node, action]
    if child < 0 or error == 0:
        return 0.0
    return 1.01 * error * (2 * graph.scale[child] + max(0.0, -graph.lower[child]))  # type: ignore[no-any-return]


@no_refcount
def choice_upper(graph: Graph, discount: float, node: int, choice: int) -> float:
    """Return the upper bound of a choice at an expanded node: action `choice // 2`, looking if `choice` is odd."""
    action = choice // 2
    value = graph.reward[node, action] + graph.margin[node, action]
    if choice % 2 == 1:
        value -= graph.cost[node, action]
    child = graph.child[node, action]
    if child >= 0:
        ahead = graph.reveal_upper[child] if choice % 2 == 1 else graph.upper[child]
        value += discount * graph.running[node, action] * ahead
    return value  # type: ignore[no-any-return]


@no_refcount
def back_up(graph: Graph, bounds: Bounds, discount: float, node: int) -> int:
    """Tighten the bounds of an expanded node n from its children; returns the choice with the highest upper bound.

    Choices are numbered as in `choice_upper`. The new upper bound is the largest, over actions a, of

        blind(a) = r_a + margin_a + g m_a U(child_a),
        look(a)  = r_a + margin_a - c_a + g m_a R(child_a),

    where U >= V and R >= reveal are the present upper bounds of the child, r_a is rounded up, c_a down, and margin_a covers the
    rounding of the child's belief, of m_a and of this sum (see the module). So each is at least the exact value of its choice,
    and their maximum is at least V(n); the smaller of two upper bounds is one, hence the minimum with the old one. Where the best
    choice is a look whose R may be out of date, R is renewed first and the maximum taken again, at most once for each child.

    The lower bound is the same with the lower bounds of the child and without margin. It is not rounded downwards, as it only
    guides the search: what a schedule earns is evaluated before it is returned. It is replaced only by a strictly better one, so
    that following the stored choices cannot lead round in a cycle without discount.

    This is the innermost loop, so it is one function without calls.
    """
    while True:
        best, upper, lower_choice, lower = 0, -np.inf, 0, -np.inf
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
                lower_choice, lower = 2 * action, blind_lower
            if look_lower > lower:
                lower_choice, lower = 2 * action + 1, look_lower
        out = graph.exit_choice[node]
        if out >= 0 and choice_upper(graph, discount, node, out) >= upper - BOUND_TIE * (1 + abs(upper)):
            best = out
        child = graph.child[node, best // 2]
        if best % 2 == 0 or child < 0:
            break
        # The bound of a look may be out of date; it is renewed where it decides.
        before_upper, before_lower = graph.reveal_upper[child], graph.reveal_lower[child]
        renew_reveal(graph, bounds, child)
        if graph.reveal_upper[child] >= before_upper and graph.reveal_lower[child] <= before_lower:
            break
    graph.upper[node] = min(graph.upper[node], upper)
    if lower > graph.lower[node]:
        graph.lower[node], graph.lower_choice[node] = lower, lower_choice
    state = graph.known[node]
    if state >= 0:
        bounds.upper[state], bounds.lower[state] = graph.upper[node], graph.lower[node]
        for choice in range(2 * graph.child.shape[1]):
            bound = choice_upper(graph, discount, node, choice)
            bounds.upper_vectors[state, choice] = min(bounds.upper_vectors[state, choice], bound)
    return best


@no_refcount
def best_lower_choice(graph: Graph, bounds: Bounds, discount: float, node: int) -> tuple[float, int]:
    """Return the highest lower bound of a choice at an expanded node, and the choice."""
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
    return value, best


@no_refcount
def query(graph: Graph, bounds: Bounds, scratch: Scratch, discount: float, what: int, number: int) -> tuple[float, int]:
    """Return the answer to one of several questions about a node: one kernel, so that the functions it calls are compiled once.

    Parameters
    ----------
    what : int
        `NODE_OF_STATE`: the node of the state `number`. `NODE_OF_BELIEF`: the node of the belief in the first `number` places
        of `scratch`. `LOWER_CHOICE`: the choice with the highest lower bound at the expanded node `number`. `LOWER_VECTOR`: the
        highest mean of `Bounds.lower_vectors` at the node `number`, and its column.

    Returns
    -------
    mean, answer : float, int
        The mean is the bound of the choice for `LOWER_CHOICE`, and 0 for nodes.
    """
    if what == NODE_OF_STATE:
        return 0.0, node_of(graph, bounds, scratch, number)
    if what == NODE_OF_BELIEF:
        return 0.0, find_or_add(graph, bounds, scratch, number)
    if what == LOWER_CHOICE:
        return best_lower_choice(graph, bounds, discount, number)
    return best_mean(graph, number, bounds.lower_vectors)
