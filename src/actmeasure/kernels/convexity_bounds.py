"""Upper bounds at a belief from those at other beliefs, as the optimum V is convex and homogeneous: inner beliefs, and mixtures.

Searches that expand many nodes use them: blind moves to and fro lead to ever new beliefs that hardly differ, so that a bound at
one of them bounds the others as well.

Inner beliefs
-------------
Let b be the belief of a node, n that of another one, and f n_s <= b_s in every state s. Then b is f n and a rest, so that, with
U >= V the present upper bounds,

    V(b) <= sum_s (b_s - f n_s) U(s) + f U(n) = sum_s b_s U(s) - f (sum_s n_s U(s) - U(n)).

The largest f is the smallest b_s / n_s. Beliefs do not change, so f is kept, and the bound falls with U(n).

Candidates for n are expanded nodes with the same heaviest state as b, or with its second: `SLOTS` for each state, from
which the one that was of no use for the longest time is dropped.

Rounding: stored probabilities stand for themselves divided by their exact sum, which differs from 1 by at most
e = `relative_error` of their number. f is rounded down, so that b_s - f n_s >= 0 holds for stored probabilities. The two means,
the two sums that are not 1, and the few further operations are then off by at most 2 e (sum_s b_s |U(s)| + f sum_s n_s |U(s)| +
f |U(n)|), with e for the entries of both; this is added.

Mixtures
--------
Let the actions w_1 .. w_k lead from a node p, with the belief q, to the node n. Pushing a belief forward is linear, so what w
leads to from p is the mixture, with the weights q_s, of what it leads to from each known state s; and the optimum is convex, so
it is at most the mixture of the optima there. With M the probability that the episode runs on from p to n, and M_s from s to the
node n_s,

    M V(n) <= sum_s q_s M_s V(n_s).

The longer w is, the fewer of the ways to go on from n differ from those from n_s, and the tighter is the bound; but n_s has a
good bound only if the search has expanded it. If the path from s ends at a node t after the actions w_1 .. w_j, because t has
not been expanded, V(t) is at least what going on with w_j+1 .. w_k and then as from n is worth, so that M_s V(n_s) is replaced by

    M_s,j (V(t) + (k - j) loss) / discount^(k - j),

where no reward is below -loss. Searches need this where blind moves to and fro cost little and spread the belief: every sequence
of them is another belief, and its states, were they known, are worth much more.

Rounding: along each path from one stored belief to the next, weights have the relative error e of `kernels/belief_graph.py`, and
so has the probability to run on. The two sides above then differ by a factor of at most 1 + E in each state, E = 2 (sum of e from
p to n + the largest sum of e from an s to n_s) <= 4 k (the largest e of the graph) and second-order terms, and the best plan at n
has sum_i n_i |v_i| <= 2 scale(n) + max(0, -V(n)), which gives what is added. What raising the smallest weights changes is
less than `RAISED` here too, as M is not below `LEAST_MASS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.belief_graph import NODES, NONE, RAISED, Bounds, Graph, Scratch
from actmeasure.kernels.dynamics import EPSILON, relative_error
from actmeasure.kernels.jit import no_refcount

#: Candidates kept for each state; a belief is compared with those of its `HEAVIEST` states.
SLOTS, HEAVIEST = 16, 2
#: States beyond this number share their candidates with others.
MOST_ROWS = 4096
#: Inner beliefs with a smaller share f than this are not used.
LEAST_SHARE = 0.02
#: The most actions that are followed back from a node.
MOST_BACK = 32
#: Beliefs 1, 2, 4, 8 and 16 actions back are mixed, and any that has at most `FEW_STATES` states, which is quickly done.
FARTHEST, FEW_STATES = 16, 4
#: Paths on which the episode runs on with less probability than this, or errors add up to more than this, are not used.
LEAST_MASS, MOST_ERROR = 1e-30, 1e-3


class Index(NamedTuple):
    """Expanded nodes by their heaviest state."""

    slots: Any  # int32 (rows, SLOTS): nodes, -1 where free; the row of a state is its remainder
    used_at: Any  # int64 (rows, SLOTS): time of the last use
    clock: Any  # int64 (1,)


class Mixing(NamedTuple):
    """Work arrays of bounds by mixtures, and the index of those by inner beliefs."""

    actions_back: Any  # int64 (MOST_BACK,): the actions that led to a node, the last first
    loosest: Any  # int64 (1,): the node to whose gap the bound of the last tip is due, or -1
    index: Any  # Index


def make_mixing(n_states: int) -> Mixing:
    """Return work arrays with an empty index."""
    shape = (min(n_states, MOST_ROWS), SLOTS)
    index = Index(np.full(shape, -1, np.int32), np.zeros(shape, np.int64), np.zeros(1, np.int64))
    return Mixing(np.empty(MOST_BACK, np.int64), np.empty(1, np.int64), index)


@no_refcount
def _heaviest(graph: Graph, node: int, before: int) -> int:
    """Return the entry of a node with the largest probability after that of the entry `before`, or the largest if -1.

    Entries of equal probability come one after the other. Returns -1 after the last.
    """
    best = -1
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        probability = graph.probabilities[entry]
        if before >= 0:
            last = graph.probabilities[before]
            if probability > last or (probability == last and entry <= before):
                continue
        if best < 0 or probability > graph.probabilities[best]:
            best = entry
    return best


@no_refcount
def insert(graph: Graph, index: Index, node: int) -> None:
    """Make an expanded node a candidate, in place of the one that was used least recently."""
    if graph.known[node] >= 0:
        return
    row = graph.states[_heaviest(graph, node, -1)] % index.slots.shape[0]
    oldest = 0
    for k in range(1, index.slots.shape[1]):
        if index.used_at[row, k] < index.used_at[row, oldest]:
            oldest = k
    index.clock[0] += 1
    index.slots[row, oldest], index.used_at[row, oldest] = node, index.clock[0]


@no_refcount
def insert_all(graph: Graph, index: Index) -> None:
    """Make all expanded nodes candidates, as many as there is room for."""
    for node in range(graph.counts[NODES]):
        if graph.expanded[node]:
            insert(graph, index, node)


@no_refcount
def find_inner(graph: Graph, scratch: Scratch, index: Index, node: int) -> None:
    """Find the candidate that lowers the upper bound of a node most, and keep it with its share f."""
    dense = scratch.dense
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        dense[graph.states[entry]] = graph.probabilities[entry]
    best, best_share, best_row, best_k = 0.0, 0.0, -1, -1
    place = -1
    for _ in range(HEAVIEST):
        place = _heaviest(graph, node, place)
        if place < 0:
            break
        row = graph.states[place] % index.slots.shape[0]
        for k in range(index.slots.shape[1]):
            other = index.slots[row, k]
            if other < 0 or other == node:
                continue
            gain = graph.reveal_upper[other] - graph.upper[other]
            if gain <= best:  # as the share is at most 1
                continue
            least, share = max(LEAST_SHARE, best / gain), 1.0
            for entry in range(graph.offsets[other], graph.offsets[other + 1]):
                share = min(share, dense[graph.states[entry]] / graph.probabilities[entry])
                if share <= least:
                    break
            if share > least:
                best, best_share, best_row, best_k = share * gain, share, row, k
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        dense[graph.states[entry]] = 0.0
    if best_k >= 0:
        index.clock[0] += 1
        index.used_at[best_row, best_k] = index.clock[0]
        graph.inner[node], graph.inner_share[node] = index.slots[best_row, best_k], best_share * (1 - 4 * EPSILON)


@no_refcount
def lower_by_inner(graph: Graph, bounds: Bounds, node: int) -> None:
    """Lower the upper bound of a node by that of the node that `find_inner` found, if any."""
    inner = graph.inner[node]
    if inner < 0:
        return
    share, upper = graph.inner_share[node], graph.upper[inner]
    # The bound, but for rounding and where `reveal` is out of date: if it is of no use, it is not computed.
    if graph.reveal_upper[node] - share * (graph.reveal_upper[inner] - upper) >= graph.upper[node]:
        return
    mean, magnitude = _mean_upper(graph, bounds, node)
    part, part_magnitude = _mean_upper(graph, bounds, inner)
    terms = graph.offsets[node + 1] - graph.offsets[node] + graph.offsets[inner + 1] - graph.offsets[inner]
    rounding = 2 * relative_error(terms) * (magnitude + share * (part_magnitude + abs(upper)))
    graph.upper[node] = min(graph.upper[node], mean - share * (part - upper) + rounding)


@no_refcount
def _mean_upper(graph: Graph, bounds: Bounds, node: int) -> tuple[float, float]:
    """Return the mean over a node's belief of the upper bounds of its states, and that of their magnitudes."""
    mean, magnitude = 0.0, 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        term = graph.probabilities[entry] * bounds.upper[graph.states[entry]]
        mean += term
        magnitude += abs(term)
    return mean, magnitude


@no_refcount
def lower_by_mixture(graph: Graph, bounds: Bounds, mixing: Mixing, discount: float, node: int) -> int:
    """Lower the upper bound of a node by those below known states; the discount is above 0 and below 1.

    Returns the node whose gap contributes most to the bound found, whether that is below the one there was or not, or -1.
    """
    top, mass = node, 1.0
    least, loosest = np.inf, NONE
    for back in range(MOST_BACK):
        parent, action = graph.parent[top], graph.parent_action[top]
        if parent < 0 or graph.known[parent] >= 0:
            break
        top = parent
        mixing.actions_back[back] = action
        mass *= graph.running[top, action]
        if mass < LEAST_MASS:
            break
        size = graph.offsets[top + 1] - graph.offsets[top]
        if size <= FEW_STATES or (back < FARTHEST and back & (back + 1) == 0):
            bound, part = _mixture(graph, bounds, mixing, discount, node, top, back + 1, mass)
            if bound < least:
                least, loosest = bound, part
    graph.upper[node] = min(graph.upper[node], least)
    return loosest


@no_refcount
def _mixture(
    graph: Graph, bounds: Bounds, mixing: Mixing, discount: float, node: int, top: int, length: int, mass: float
) -> tuple[float, int]:
    """Return the bound at `node` from the known states at `top`, `length` actions before, and the part with the largest gap."""
    total, magnitude = 0.0, 0.0
    loosest, largest_gap = NONE, 0.0
    for entry in range(graph.offsets[top], graph.offsets[top + 1]):
        at = graph.node_of_state[graph.states[entry]]
        if at < 0:
            return np.inf, NONE
        weight, left = graph.probabilities[entry], length
        while left > 0 and at >= 0 and graph.expanded[at]:
            left -= 1
            action = mixing.actions_back[left]
            child = graph.child[at, action]
            if child >= 0:
                weight *= graph.running[at, action]
            at = child
        if at < 0:  # the episode is over
            continue
        upper = graph.upper[at] + left * bounds.loss[0]
        for _ in range(left):
            weight /= discount
        total += weight * upper
        magnitude += weight * (abs(graph.upper[at]) + left * bounds.loss[0])
        gap = weight * (graph.upper[at] - graph.lower[at])
        if gap > largest_gap:
            loosest, largest_gap = at, gap
    rounding = relative_error(graph.offsets[top + 1] - graph.offsets[top] + 4 * length)
    difference = 4.04 * length * graph.largest_error[0] + rounding
    if difference > MOST_ERROR or graph.lower[node] == -np.inf:
        return np.inf, NONE
    added = difference * (2 * graph.scale[node] + max(0.0, -graph.lower[node])) + RAISED
    return (total + rounding * magnitude) / mass + 1.01 * added, loosest
