"""Where to look next in the graph of beliefs: below the choices that still look best."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.kernels.belief_graph import (
    EXPANDED,
    NONE,
    STAMP,
    TIE,
    Bounds,
    Graph,
    Scratch,
    back_up,
    choice_upper,
    expand,
    has_room,
    node_of,
    renew_tip,
)
from actmeasure.kernels.blind import ROUNDING, Dynamics
from actmeasure.kernels.jit import lean
from actmeasure.kernels.mixture_bound import lower_by_mixture

#: A node whose bound fell by this share of its gap when renewed is left alone: something else may look better now.
WORTH_TURNING_BACK = 0.01
#: Likewise where bounds by mixtures are in use.
WORTH_TURNING_BACK_MIXED = 0.001
FULL = -1
#: Searches that expand more nodes than this bound beliefs by mixtures, which most searches close without.
MANY_EXPANDED = 32768
#: An expanded node is bounded by mixtures again when the number of expanded nodes has grown by this factor.
GROWN = 1.1
#: After a tip, so many are expanded one after the other below the node to whose gap the bound of the one before is due.
MOST_PARTS = 2


@lean
def _new_stamp(graph: Graph) -> int:
    graph.counts[STAMP] += 1
    return graph.counts[STAMP]  # type: ignore[no-any-return]


@lean
def descend(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, top: int, threshold: float
) -> bool:
    """Follow the best-looking blind choices from a node and expand the first tip; returns whether there was one.

    A tip whose weighted gap is below `threshold` is not worth it.
    """
    stamp = _new_stamp(graph)
    mixes = graph.counts[EXPANDED] > MANY_EXPANDED and 0 < discount < 1
    share = WORTH_TURNING_BACK_MIXED if mixes else WORTH_TURNING_BACK
    scratch.loosest[0] = NONE
    path, weights = scratch.path, scratch.path_weights
    node, length, weight = top, 0, 1.0
    found = False
    while length < path.shape[0]:
        if graph.expanded[node]:
            if graph.mark[node] == stamp:
                break
            graph.mark[node] = stamp
            path[length], weights[length] = node, weight
            length += 1
            choice = back_up(graph, bounds, discount, node)
            if mixes and graph.counts[EXPANDED] > GROWN * graph.mixed_at[node]:
                graph.mixed_at[node] = graph.counts[EXPANDED]
                before = graph.upper[node]
                lower_by_mixture(graph, bounds, scratch, discount, node)
                if _fell(graph, node, before, share) and length > 1:
                    graph.mark[node] = 0
                    length -= 2
                    node, weight = path[length], weights[length]
                    graph.mark[node] = 0
                    continue
            child = graph.child[node, choice // 2]
            if choice % 2 == 1 or child < 0 or graph.known[child] >= 0:
                break
            weight *= discount * graph.running[node, choice // 2]
            node = child
            continue
        before = graph.upper[node]
        renew_tip(graph, bounds, node)
        if mixes:
            scratch.loosest[0] = lower_by_mixture(graph, bounds, scratch, discount, node)
        if _fell(graph, node, before, share) and length > 0:
            length -= 1
            node = path[length]
            graph.mark[node] = 0
            weight = weights[length]
            continue
        if (graph.upper[node] - graph.lower[node]) * weight > threshold:
            expand(graph, model, bounds, scratch, discount, node)
            back_up(graph, bounds, discount, node)
            found = True
        break
    for i in range(length - 1, -1, -1):
        back_up(graph, bounds, discount, path[i])
    return found


@lean
def _fell(graph: Graph, node: int, before: float, share: float) -> bool:
    """Whether the upper bound of a node fell by more than a share of its gap, so that something else may look better now."""
    return bool(before - graph.upper[node] > share * max(before - graph.lower[node], TIE))


@lean
def _dig_below(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, node: int, times: int,
    threshold: float,
) -> int:  # fmt: skip
    """Expand up to `times` tips below a node; returns how many. It also ends when space runs out."""
    expanded = 0
    while expanded < times and has_room(graph):
        if not descend(graph, model, bounds, scratch, discount, node, threshold):
            break
        expanded += 1
        for _ in range(MOST_PARTS):
            part = scratch.loosest[0]
            if part < 0 or graph.known[part] >= 0 or not has_room(graph):
                break
            if not descend(graph, model, bounds, scratch, discount, part, threshold):
                break
    return expanded


@lean
def dig(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, nodes: Any, times: int,
    threshold: float,
) -> int:  # fmt: skip
    """Expand up to `times` tips below each of `nodes`, last first. Returns how many, or FULL when space ran out."""
    expanded = 0
    for i in range(nodes.shape[0] - 1, -1, -1):
        expanded += _dig_below(graph, model, bounds, scratch, discount, nodes[i], times, threshold)
        if not has_room(graph):
            return FULL
    return expanded


@lean
def tighten(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, states: Any, times: int,
    threshold: float,
) -> int:  # fmt: skip
    """Dig below every action of each state that is or might be known, because these bound all beliefs that have it.

    Returns how many tips were expanded, or FULL when space ran out.
    """
    expanded = 0
    for i in range(states.shape[0]):
        if not has_room(graph):
            return FULL
        node = node_of(graph, bounds, scratch, states[i])
        if not graph.expanded[node]:
            expand(graph, model, bounds, scratch, discount, node)
        back_up(graph, bounds, discount, node)
        for action in range(graph.child.shape[1]):
            child = graph.child[node, action]
            if child >= 0 and graph.known[child] < 0:
                expanded += _dig_below(graph, model, bounds, scratch, discount, child, times, threshold)
        back_up(graph, bounds, discount, node)
    return expanded


@lean
def expand_below(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, discount: float, where: Any, of_states: bool,
    times: int, threshold: float,
) -> int:  # fmt: skip
    """`tighten` the states in `where`, or `dig` below the nodes in it: one entry, so that what both need is compiled once."""
    if of_states:
        return tighten(graph, model, bounds, scratch, discount, where, times, threshold)
    return dig(graph, model, bounds, scratch, discount, where, times, threshold)


@lean
def frontier(
    graph: Graph, bounds: Bounds, scratch: Scratch, discount: float, starts: Any, threshold: float, out: Any, met: Any,
    tips: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Find the nodes at which the best-looking schedule plans anew: the starts, and every state it comes to know.

    Where the schedule comes to a tip, its value is a promise about the states that are possible there, so these are followed next
    as if they were shown, up to where rewards are earned: the promise can be no better founded than theirs.

    Only states whose gap is above `threshold` are followed. All are written to `out`, int64 (S + number of starts,), first those
    of the schedule itself; returns the number of these, the number of all, and the number of states with such a gap that are
    possible on the way, which are written to `met`, int64 (S,). `tips`, int64 like `out`, is room to work in. Where blind choices
    lead round in a circle, its bounds are solved for, which backing up would take for ever to do.
    """
    first_stamp = _new_stamp(graph)
    for k in range(starts.shape[0]):
        out[k] = starts[k]
        if graph.known[starts[k]] >= 0:
            scratch.used[graph.known[starts[k]]] = True
    count, i, n_met, n_own = starts.shape[0], 0, 0, 0
    while i < count or n_own == 0:
        if i == count:
            n_own = count
            for k in range(n_own):
                if tips[k] >= 0:
                    count = _add_states(graph, bounds, scratch, tips[k], threshold, out, count)
            continue
        node, length, tips[i] = out[i], 0, NONE
        stamp = _new_stamp(graph)
        while graph.expanded[node] and graph.mark[node] < first_stamp and length < scratch.path.shape[0]:
            graph.mark[node] = stamp
            scratch.path[length] = node
            length += 1
            n_met = _meet(graph, bounds, scratch, node, threshold, met, n_met)
            choice = back_up(graph, bounds, discount, node)
            child = graph.child[node, choice // 2]
            if child < 0:
                break
            if choice % 2 == 1 or graph.known[child] >= 0:
                count = _add_states(graph, bounds, scratch, child, threshold, out, count)
            if choice % 2 == 1:
                break
            node = child
            if graph.expanded[node] and graph.mark[node] == stamp:
                begin = 0
                while scratch.path[begin] != node:
                    begin += 1
                _solve_circle(graph, bounds, scratch, discount, scratch.path[begin:length], _new_stamp(graph))
                break
        if not graph.expanded[node]:
            if n_own == 0:
                tips[i] = node
            else:
                count = _add_states(graph, bounds, scratch, node, threshold, out, count)
        i += 1
    for k in range(count):
        if graph.known[out[k]] >= 0:
            scratch.used[graph.known[out[k]]] = False
    for k in range(n_met):
        scratch.met[met[k]] = False
    return n_own, count, n_met


@lean
def _meet(graph: Graph, bounds: Bounds, scratch: Scratch, node: int, threshold: float, met: Any, n_met: int) -> int:
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        state = graph.states[entry]
        if not scratch.met[state] and bounds.upper[state] - bounds.lower[state] > threshold:
            scratch.met[state] = True
            met[n_met] = state
            n_met += 1
    return n_met


@lean
def _add_states(
    graph: Graph, bounds: Bounds, scratch: Scratch, node: int, threshold: float, out: Any, count: int
) -> int:
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        state = graph.states[entry]
        if not scratch.used[state] and bounds.upper[state] - bounds.lower[state] > threshold:
            scratch.used[state] = True
            out[count] = node_of(graph, bounds, scratch, state)
            count += 1
    return count


@lean
def _solve_circle(graph: Graph, bounds: Bounds, scratch: Scratch, discount: float, circle: Any, stamp: int) -> None:
    """Lower the bounds of nodes that hold each other up: the best is to go round for ever, or to leave somewhere."""
    size = circle.shape[0]
    for i in range(size):
        graph.mark[circle[i]] = stamp
        graph.counts[STAMP] = stamp
    values, leaving = scratch.circle_values, scratch.leaving
    _round_for_ever(graph, scratch, discount, circle)
    _promise_round(graph, bounds, circle, values)
    if discount == 1:
        _allow_free_rounds(graph, scratch, circle, stamp)
    for i in range(size):
        leaving[i] = -np.inf
        for choice in range(2 * graph.child.shape[1]):
            child = graph.child[circle[i], choice // 2]
            if choice % 2 == 1 or child < 0 or graph.mark[child] != stamp:
                leaving[i] = max(leaving[i], choice_upper(graph, discount, circle[i], choice))
    change = np.inf
    for _ in range(size + 2):
        change = 0.0
        for i in range(size - 1, -1, -1):
            best = max(values[i], leaving[i])
            for action in range(graph.child.shape[1]):
                child = graph.child[circle[i], action]
                if child >= 0 and graph.mark[child] == stamp:
                    inside = values[_index(circle, child)]
                    reward = graph.reward[circle[i], action] + graph.margin[circle[i], action]
                    best = max(best, reward + discount * graph.running[circle[i], action] * inside)
            change = max(change, best - values[i])
            values[i] = best
    if change > 0 and discount == 1:
        return  # not settled, so not sound
    slack = change / (1 - discount) * (1 + TIE) if change > 0 else 0.0
    for i in range(size):
        node = circle[i]
        for choice in range(2 * graph.child.shape[1]):
            if leaving[i] >= values[i] and choice_upper(graph, discount, node, choice) == leaving[i]:
                graph.way_out[node] = choice
        rounding = ROUNDING * abs(values[i]) if change > 0 else 0.0
        graph.upper[node] = min(graph.upper[node], values[i] + (slack + rounding))
        if graph.known[node] >= 0:
            bounds.upper[graph.known[node]] = graph.upper[node]


@lean
def _allow_free_rounds(graph: Graph, scratch: Scratch, circle: Any, stamp: int) -> None:
    """Without discount: raise to 0 what a node is worth from which one can go on for ever inside the circle without loss.

    The circle as a whole may lose while a shortcut in it does not. Nodes that only have lossy or leaving choices are struck out
    until none is left to strike out.
    """
    size = circle.shape[0]
    free = scratch.free
    for i in range(size):
        free[i] = True
    changed = True
    while changed:
        changed = False
        for i in range(size):
            if free[i] and not _has_free_choice(graph, circle, free, i, stamp):
                free[i] = False
                changed = True
    for i in range(size):
        if free[i]:
            scratch.circle_values[i] = max(scratch.circle_values[i], 0.0)


@lean
def _has_free_choice(graph: Graph, circle: Any, free: Any, i: int, stamp: int) -> bool:
    node = circle[i]
    for action in range(graph.child.shape[1]):
        child = graph.child[node, action]
        stays = child >= 0 and graph.mark[child] == stamp
        if stays and graph.reward[node, action] > -TIE and free[_index(circle, child)]:
            return True
    return False


@lean
def _index(nodes: Any, node: int) -> int:
    for i in range(nodes.shape[0]):
        if nodes[i] == node:
            return i
    return NONE


@lean
def _action_to(graph: Graph, node: int, child: int) -> int:
    """The action that leads from a node to one of its children, and pays most on the way."""
    best = NONE
    for action in range(graph.child.shape[1]):
        if graph.child[node, action] == child and (best < 0 or graph.reward[node, action] > graph.reward[node, best]):
            best = action
    return best


@lean
def _promise_round(graph: Graph, bounds: Bounds, circle: Any, values: Any) -> None:
    """Going round for ever is a plan too: raise the lower bounds to what it is worth."""
    for i in range(circle.shape[0]):
        node = circle[i]
        if values[i] > graph.lower[node]:
            graph.lower[node] = values[i]
            graph.promise[node] = 2 * _action_to(graph, node, circle[(i + 1) % circle.shape[0]])
            if graph.known[node] >= 0:
                bounds.lower[graph.known[node]] = values[i]


@lean
def _round_for_ever(graph: Graph, scratch: Scratch, discount: float, circle: Any) -> None:
    """Write the worth of going round a circle for ever, from each of its nodes, to `scratch.circle_values`."""
    size = circle.shape[0]
    total, factor, pays = 0.0, 1.0, False
    rewards, factors, values = scratch.circle_rewards, scratch.circle_factors, scratch.circle_values
    for i in range(size):
        action = _action_to(graph, circle[i], circle[(i + 1) % size])
        rewards[i] = graph.reward[circle[i], action]
        factors[i] = discount * graph.running[circle[i], action]
        total += factor * rewards[i]
        pays = pays or rewards[i] != 0
        factor *= factors[i]
    if factor < 1:
        values[0] = total / (1 - factor)
    else:  # only without discount and end; gains and losses that alternate for ever have no sum
        values[0] = -np.inf if pays else 0.0
    for i in range(size - 1, 0, -1):
        values[i] = rewards[i] + factors[i] * values[(i + 1) % size]
