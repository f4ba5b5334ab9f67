"""Search in the graph of beliefs: expand tips below the choices with the highest upper bounds.

A *tip* is a node that has not been expanded; its upper bound rests on those of the states that are possible there.

Python calls `frontier`, `solve_cycle` and `expand_below`. They are compiled when they are first called: `solve_cycle` where there
is a cycle, and bounds by mixtures and by inner beliefs where `mixing` is not None, as Numba leaves out branches that need it
otherwise. `raise_lower_bounds` is for long searches too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.kernels.belief_graph import (
    BOUND_TIE,
    EXPANDED,
    NODES,
    NONE,
    STAMP,
    Bounds,
    Graph,
    Scratch,
    back_up,
    best_mean,
    choice_upper,
    expand,
    has_room,
    node_of,
    renew_tip,
)
from actmeasure.kernels.convexity_bounds import Mixing, find_inner, insert, lower_by_inner, lower_by_mixture
from actmeasure.kernels.dynamics import EPSILON, Dynamics
from actmeasure.kernels.jit import no_refcount

#: A node whose bound fell by this fraction of its gap when renewed is left: another choice may have a higher bound now.
WORTH_TURNING_BACK = 0.01
#: Likewise where bounds by mixtures and inner beliefs are in use.
WORTH_TURNING_BACK_MIXED = 0.001
FULL = -1
#: Entries of the array `progress` of `frontier`.
N_OWN, COUNT, N_MET, FOLLOWED, FIRST_STAMP, CYCLE_BEGIN, CYCLE_END = range(7)
#: An expanded node is bounded by mixtures again, and its inner belief chosen, when the number of expanded nodes has grown by this
#: factor.
GROWN = 1.1
#: Number of further tips expanded after each tip, below the node to whose gap the bound of the tip before is mostly due.
MOST_PARTS = 2


@no_refcount
def _new_stamp(graph: Graph) -> int:
    graph.counts[STAMP] += 1
    return graph.counts[STAMP]  # type: ignore[no-any-return]


@no_refcount
def descend(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, mixing: Mixing | None, discount: float, top: int,
    threshold: float,
) -> bool:  # fmt: skip
    """Follow the blind choices with the highest upper bounds from a node and expand the first tip; returns whether it did.

    A tip is expanded if its gap, times the discount and the probability of getting there, is above `threshold`.
    """
    stamp = _new_stamp(graph)
    share = WORTH_TURNING_BACK
    if mixing is not None:
        share = WORTH_TURNING_BACK_MIXED
        mixing.loosest[0] = NONE
    path, weights = scratch.path, scratch.path_weights
    node, length, weight = top, 0, 1.0
    is_at_leaf = False
    while length < path.shape[0]:
        if graph.expanded[node]:
            if graph.mark[node] == stamp:
                break
            graph.mark[node] = stamp
            path[length], weights[length] = node, weight
            length += 1
            choice = back_up(graph, bounds, discount, node)
            if mixing is not None:
                before = graph.upper[node]
                if graph.counts[EXPANDED] > GROWN * graph.mixed_at[node]:
                    graph.mixed_at[node] = graph.counts[EXPANDED]
                    lower_by_mixture(graph, bounds, mixing, discount, node)
                    find_inner(graph, scratch, mixing.index, node)
                lower_by_inner(graph, bounds, node)
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
        if mixing is not None:
            mixing.loosest[0] = lower_by_mixture(graph, bounds, mixing, discount, node)
            find_inner(graph, scratch, mixing.index, node)
            lower_by_inner(graph, bounds, node)
        if _fell(graph, node, before, share) and length > 0:
            length -= 1
            node = path[length]
            graph.mark[node] = 0
            weight = weights[length]
            continue
        if (graph.upper[node] - graph.lower[node]) * weight > threshold:
            expand(graph, model, bounds, scratch, discount, node)
            back_up(graph, bounds, discount, node)
            if mixing is not None:
                insert(graph, mixing.index, node)
            is_at_leaf = True
        break
    for i in range(length - 1, -1, -1):
        back_up(graph, bounds, discount, path[i])
    return is_at_leaf


@no_refcount
def _fell(graph: Graph, node: int, before: float, share: float) -> bool:
    """Return whether the upper bound of a node fell by more than a share of its gap, so that another node may be better now."""
    return bool(before - graph.upper[node] > share * max(before - graph.lower[node], BOUND_TIE))


@no_refcount
def _expand_tips(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, mixing: Mixing | None, discount: float, node: int,
    times: int, threshold: float,
) -> int:  # fmt: skip
    """Expand up to `times` tips below a node; returns how many. It also ends when the graph is full."""
    expanded = 0
    while expanded < times and has_room(graph):
        if not descend(graph, model, bounds, scratch, mixing, discount, node, threshold):
            break
        expanded += 1
        if mixing is not None:
            for _ in range(MOST_PARTS):
                part = mixing.loosest[0]
                if part < 0 or graph.known[part] >= 0 or not has_room(graph):
                    break
                if not descend(graph, model, bounds, scratch, mixing, discount, part, threshold):
                    break
    return expanded


@no_refcount
def raise_lower_bounds(graph: Graph, bounds: Bounds, discount: float, sweeps: int) -> None:
    """Raise the lower bounds of all nodes to the best mean of `Bounds.lower_vectors`, then back up all expanded nodes.

    Nodes are backed up `sweeps` times, the last added first.
    """
    for node in range(graph.counts[NODES]):
        lower, _ = best_mean(graph, node, bounds.lower_vectors)
        if lower > graph.lower[node]:
            graph.lower[node] = lower
            if graph.known[node] >= 0:
                bounds.lower[graph.known[node]] = lower
    for _ in range(sweeps):
        for node in range(graph.counts[NODES] - 1, -1, -1):
            if graph.expanded[node]:
                back_up(graph, bounds, discount, node)


@no_refcount
def _below_nodes(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, mixing: Mixing | None, discount: float, nodes: Any,
    times: int, threshold: float,
) -> int:  # fmt: skip
    """Expand up to `times` tips below each of `nodes`, last first. Returns how many, or FULL when the graph is full."""
    expanded = 0
    for i in range(nodes.shape[0] - 1, -1, -1):
        expanded += _expand_tips(graph, model, bounds, scratch, mixing, discount, nodes[i], times, threshold)
        if not has_room(graph):
            return FULL
    return expanded


@no_refcount
def _below_states(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, mixing: Mixing | None, discount: float, states: Any,
    times: int, threshold: float,
) -> int:  # fmt: skip
    """Expand tips below every action of each of `states` when it is known: its bounds enter those of all beliefs that have it.

    Returns how many tips were expanded, or FULL when the graph is full.
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
                expanded += _expand_tips(graph, model, bounds, scratch, mixing, discount, child, times, threshold)
        back_up(graph, bounds, discount, node)
    return expanded


@no_refcount
def expand_below(
    graph: Graph, model: Dynamics, bounds: Bounds, scratch: Scratch, mixing: Mixing | None, discount: float, where: Any,
    of_states: bool, times: int, threshold: float,
) -> int:  # fmt: skip
    """Expand tips below states or nodes, those in `where`; one entry, so that both are compiled once.

    Returns how many tips were expanded, or FULL when the graph is full.
    """
    if of_states:
        return _below_states(graph, model, bounds, scratch, mixing, discount, where, times, threshold)
    return _below_nodes(graph, model, bounds, scratch, mixing, discount, where, times, threshold)


@no_refcount
def frontier(
    graph: Graph, bounds: Bounds, scratch: Scratch, discount: float, starts: Any, threshold: float, out: Any, met: Any,
    tips: Any, progress: Any,
) -> bool:  # fmt: skip
    """Find the nodes at which the schedule with the highest upper bounds plans: the starts, and every state it comes to know.

    Where the schedule reaches a tip, the tip's upper bound rests on those of the states that are possible there. These are
    followed next, as if they were shown.

    Only states whose gap is above `threshold` are followed. Where blind choices lead round in a cycle, this returns for
    `solve_cycle` to be called, and goes on when it is called again.

    Parameters
    ----------
    starts : int64 array
        Nodes at which an episode may begin.
    out : int64 array, shape (S + number of starts,)
        Receives the nodes found, first those of the schedule itself.
    met : int64 array, shape (S,)
        Receives the states with a gap above the threshold that are possible on the way.
    tips : int64 array, shape of `out`
        Work array.
    progress : int64 array, shape (7,)
        How far it is: number of the schedule's own nodes in `out`, of all nodes in `out`, of states in `met`, of nodes of `out`
        that have been followed, the first stamp (0 to begin), and where a cycle begins and ends in `scratch.path`.

    Returns
    -------
    bool
        Whether there is a cycle to solve; if not, `out` and `met` are complete.
    """
    if progress[FIRST_STAMP] == 0:
        progress[FIRST_STAMP] = _new_stamp(graph)
        progress[N_OWN], progress[COUNT], progress[N_MET], progress[FOLLOWED] = 0, starts.shape[0], 0, 0
        for k in range(starts.shape[0]):
            out[k] = starts[k]
            if graph.known[starts[k]] >= 0:
                scratch.used[graph.known[starts[k]]] = True
    n_own, count, n_met, i = progress[N_OWN], progress[COUNT], progress[N_MET], progress[FOLLOWED]
    first_stamp = progress[FIRST_STAMP]
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
                progress[N_OWN], progress[COUNT], progress[N_MET], progress[FOLLOWED] = n_own, count, n_met, i + 1
                progress[CYCLE_BEGIN], progress[CYCLE_END] = begin, length
                return True
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
    progress[N_OWN], progress[COUNT], progress[N_MET], progress[FIRST_STAMP] = n_own, count, n_met, 0
    return False


@no_refcount
def _meet(graph: Graph, bounds: Bounds, scratch: Scratch, node: int, threshold: float, met: Any, n_met: int) -> int:
    """Append the states of a node with a gap above the threshold to `met`, unless they are in it; returns the new length."""
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        state = graph.states[entry]
        if not scratch.met[state] and bounds.upper[state] - bounds.lower[state] > threshold:
            scratch.met[state] = True
            met[n_met] = state
            n_met += 1
    return n_met


@no_refcount
def _add_states(
    graph: Graph, bounds: Bounds, scratch: Scratch, node: int, threshold: float, out: Any, count: int
) -> int:
    """Append the nodes of a node's states with a gap above the threshold to `out`, each once; returns the new length."""
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        state = graph.states[entry]
        if not scratch.used[state] and bounds.upper[state] - bounds.lower[state] > threshold:
            scratch.used[state] = True
            out[count] = node_of(graph, bounds, scratch, state)
            count += 1
    return count


@no_refcount
def solve_cycle(graph: Graph, bounds: Bounds, scratch: Scratch, discount: float, cycle: Any) -> None:
    """Lower the upper bounds of nodes n_0 .. n_(k-1) that blind actions lead round in a cycle, each back to the first.

    Backing up one node after the other lowers such bounds by the factor g a round at best, as each rests on the next; without
    discount not at all. Here all are solved for together.

    Let B_i be the largest upper bound of a choice that leaves the cycle at n_i (a look, an end, or a blind action to another
    node), and let action a lead from n_i to n_j inside it with reward r_ia (rounded up, with its margin) and factor
    f_ia = g m_ia. Then the optimum V satisfies V <= T V in every node of the cycle, for

        (T v)_i = max(B_i, max over a inside of r_ia + f_ia v_j).

    *With discount*, T is monotone and a contraction, so every v with T v <= v has V <= v. The sweeps raise v from the value of
    going round without end by v_i <- max(v_i, (T v)_i), in place, until nothing changes: then T v <= v. If the last sweep still
    raised some v_i by at most d > 0, then T v <= v + g d, which proves v + d / (1 - g); this is rounded up.

    *Without discount*, T v <= v bounds every policy if also v_i >= 0 wherever one can stay inside without end and without loss
    (see `_allow_free_cycles`). A policy that leaves at some step earns at most v_i by induction. One that stays follows a fixed
    sequence of nodes; the expected rewards of its first t steps are at most v_i - M_t v(node after t steps), M_t the probability
    of still running. If M_t falls to 0, the limit is at most v_i. Otherwise all factors are 1 from some step on, no cycle of
    the model pays, and so the rewards are 0 from some step on (the last term is then at most 0), or the sum has no finite limit
    and counts as minus infinity. If the sweeps have not come to rest, nothing is proved and the bounds stay.

    Upper bounds of nodes with `known` states are copied to `bounds`. `exit_choice` keeps the leaving choice where that is best,
    as ties would otherwise send the search round the cycle again.
    """
    size, stamp = cycle.shape[0], _new_stamp(graph)
    for i in range(size):
        graph.mark[cycle[i]] = stamp
    values, leaving = scratch.cycle_values, scratch.leaving
    _cycle_values(graph, scratch, discount, cycle)
    _raise_lower_bounds(graph, bounds, cycle, values)
    if discount == 1:
        _allow_free_cycles(graph, scratch, cycle, stamp)
    for i in range(size):
        leaving[i] = -np.inf
        for choice in range(2 * graph.child.shape[1]):
            child = graph.child[cycle[i], choice // 2]
            if choice % 2 == 1 or child < 0 or graph.mark[child] != stamp:
                leaving[i] = max(leaving[i], choice_upper(graph, discount, cycle[i], choice))
    change = np.inf
    for _ in range(size + 2):
        change = 0.0
        for i in range(size - 1, -1, -1):
            best = max(values[i], leaving[i])
            for action in range(graph.child.shape[1]):
                child = graph.child[cycle[i], action]
                if child >= 0 and graph.mark[child] == stamp:
                    inside = values[_index(cycle, child)]
                    reward = graph.reward[cycle[i], action] + graph.margin[cycle[i], action]
                    best = max(best, reward + discount * graph.running[cycle[i], action] * inside)
            change = max(change, best - values[i])
            values[i] = best
    if change > 0 and discount == 1:
        return  # nothing is proved
    slack = change / (1 - discount) * (1 + BOUND_TIE) if change > 0 else 0.0
    for i in range(size):
        node = cycle[i]
        for choice in range(2 * graph.child.shape[1]):
            if leaving[i] >= values[i] and choice_upper(graph, discount, node, choice) == leaving[i]:
                graph.exit_choice[node] = choice
        rounding = EPSILON * abs(values[i]) if change > 0 else 0.0
        graph.upper[node] = min(graph.upper[node], values[i] + (slack + rounding))
        if graph.known[node] >= 0:
            bounds.upper[graph.known[node]] = graph.upper[node]


@no_refcount
def _allow_free_cycles(graph: Graph, scratch: Scratch, cycle: Any, stamp: int) -> None:
    """Without discount: raise to 0 the values of nodes from which one can stay inside the cycle without end and without loss.

    The cycle as a whole may lose while a shorter one inside it does not. These nodes are the largest set in which each has a
    blind action without loss to another one of the set: nodes without one are removed until none is left to remove. A set that is
    too large only makes the upper bounds larger, so rewards down to -BOUND_TIE count as no loss.
    """
    size = cycle.shape[0]
    free = scratch.free
    for i in range(size):
        free[i] = True
    changed = True
    while changed:
        changed = False
        for i in range(size):
            if free[i] and not _has_free_choice(graph, cycle, free, i, stamp):
                free[i] = False
                changed = True
    for i in range(size):
        if free[i]:
            scratch.cycle_values[i] = max(scratch.cycle_values[i], 0.0)


@no_refcount
def _has_free_choice(graph: Graph, cycle: Any, free: Any, i: int, stamp: int) -> bool:
    node = cycle[i]
    for action in range(graph.child.shape[1]):
        child = graph.child[node, action]
        stays = child >= 0 and graph.mark[child] == stamp
        if stays and graph.reward[node, action] > -BOUND_TIE and free[_index(cycle, child)]:
            return True
    return False


@no_refcount
def _index(nodes: Any, node: int) -> int:
    for i in range(nodes.shape[0]):
        if nodes[i] == node:
            return i
    return NONE


@no_refcount
def _action_to(graph: Graph, node: int, child: int) -> int:
    """Return the action with the highest reward among those that lead from a node to one of its children."""
    best = NONE
    for action in range(graph.child.shape[1]):
        if graph.child[node, action] == child and (best < 0 or graph.reward[node, action] > graph.reward[node, best]):
            best = action
    return best


@no_refcount
def _raise_lower_bounds(graph: Graph, bounds: Bounds, cycle: Any, values: Any) -> None:
    """Raise the lower bounds of a cycle's nodes to the values of going round it without end, which is a plan."""
    for i in range(cycle.shape[0]):
        node = cycle[i]
        if values[i] > graph.lower[node]:
            graph.lower[node] = values[i]
            graph.lower_choice[node] = 2 * _action_to(graph, node, cycle[(i + 1) % cycle.shape[0]])
            if graph.known[node] >= 0:
                bounds.lower[graph.known[node]] = values[i]


@no_refcount
def _cycle_values(graph: Graph, scratch: Scratch, discount: float, cycle: Any) -> None:
    """Write the values of going round a cycle without end, from each of its nodes, to `scratch.cycle_values`.

    With rewards r_i and factors f_i on the way from n_i to n_(i+1), one round from n_0 earns R = sum_i (f_0 .. f_(i-1)) r_i and
    ends with the factor F = f_0 .. f_(k-1), so w_0 = R / (1 - F), and w_i = r_i + f_i w_(i+1). These are not rounded in one
    direction: `solve_cycle` starts from them and proves its result.
    """
    size = cycle.shape[0]
    total, factor, pays = 0.0, 1.0, False
    rewards, factors, values = scratch.cycle_rewards, scratch.cycle_factors, scratch.cycle_values
    for i in range(size):
        action = _action_to(graph, cycle[i], cycle[(i + 1) % size])
        rewards[i] = graph.reward[cycle[i], action]
        factors[i] = discount * graph.running[cycle[i], action]
        total += factor * rewards[i]
        pays = pays or rewards[i] != 0
        factor *= factors[i]
    if factor < 1:
        values[0] = total / (1 - factor)
    else:  # only without discount and end; gains and losses that alternate without end have no sum
        values[0] = -np.inf if pays else 0.0
    for i in range(size - 1, 0, -1):
        values[i] = rewards[i] + factors[i] * values[(i + 1) % size]
