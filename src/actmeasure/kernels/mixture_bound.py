"""An upper bound at a belief from those at beliefs that the same actions lead to from known states.

Let the actions w_1 .. w_k lead from a node p, with the belief q, to the node n. Pushing a belief forward is linear, so what w
leads to from p is the mixture, with the weights q_s, of what it leads to from each known state s; and the optimum is convex, so
it is at most the mixture of the optima there. With M the probability that the episode runs on from p to n, and M_s from s to the
node n_s,

    M V(n) <= sum_s q_s M_s V(n_s).

The longer w is, the fewer of the ways to go on from n differ from those from n_s, and the tighter is the bound; but n_s has a
good bound only if the search came by. If it ends at a node t after the actions w_1 .. w_j, because t has not been expanded, V(t)
is at least what going on with w_j+1 .. w_k and then as from n is worth, so that M_s V(n_s) is replaced by

    M_s,j (V(t) + (k - j) loss) / discount^(k - j),

where no reward is below -loss. Searches need this where blind moves to and fro cost little and spread the belief: every sequence
of them is another belief, and its states, were they known, are worth much more.

Rounding: along each path from one stored belief to the next, weights have the relative error e of `kernels/belief_graph.py`, and
so has the probability to run on. The two sides above then differ by a factor of at most 1 + E in each state, E = 2 (sum of e from
p to n + the largest sum of e from an s to n_s) and second-order terms, and the best plan at n has sum_i n_i |v_i| <= 2 scale(n)
+ max(0, -V(n)), which gives what is added. Weights that were dropped there are worth less than `DROPPED` here too, as M is not
below `LEAST_MASS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.belief_graph import DROPPED, NONE, Bounds, Graph
from actmeasure.kernels.dynamics import relative_error
from actmeasure.kernels.jit import no_refcount

#: The most actions that are followed back from a node.
MOST_BACK = 32
#: Beliefs 1, 2, 4, 8 and 16 actions back are mixed, and any that has at most `FEW_STATES` states, which is quickly done.
FARTHEST, FEW_STATES = 16, 4
#: Paths on which the episode runs on with less probability than this, or errors add up to more than this, are left alone.
LEAST_MASS, MOST_ERROR = 1e-30, 1e-3


class Mixing(NamedTuple):
    """Work arrays of bounds by mixtures, and the index of those by inner beliefs."""

    actions_back: Any  # int64 (MOST_BACK,): the actions that led to a node, the last first
    loosest: Any  # int64 (1,): the node to whose gap the bound of the last tip is due, or -1
    index: Any  # Index of `kernels/inner_bound.py`


@no_refcount
def lower_by_mixture(graph: Graph, bounds: Bounds, mixing: Mixing, discount: float, node: int) -> int:
    """Lower the upper bound of a node by those below known states; the discount is above 0 and below 1.

    Returns the node whose gap contributes most to the bound found, whether that is below the one there was or not, or -1.
    """
    top, mass, path_error = node, 1.0, 0.0
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
        path_error += graph.error[top, action] / (discount * graph.running[top, action])
        size = graph.offsets[top + 1] - graph.offsets[top]
        if size <= FEW_STATES or (back < FARTHEST and back & (back + 1) == 0):
            bound, part = _mixture(graph, bounds, mixing, discount, node, top, back + 1, mass, path_error)
            if bound < least:
                least, loosest = bound, part
    graph.upper[node] = min(graph.upper[node], least)
    return loosest


@no_refcount
def _mixture(
    graph: Graph, bounds: Bounds, mixing: Mixing, discount: float, node: int, top: int, length: int, mass: float,
    path_error: float,
) -> tuple[float, int]:  # fmt: skip
    """Return the bound at `node` from the known states at `top`, `length` actions before, and the part with the largest gap."""
    total, magnitude, largest_error = 0.0, 0.0, 0.0
    loosest, largest_gap = NONE, 0.0
    for entry in range(graph.offsets[top], graph.offsets[top + 1]):
        at = graph.node_of_state[graph.states[entry]]
        if at < 0:
            return np.inf, NONE
        weight, error, left = graph.probabilities[entry], 0.0, length
        while left > 0 and at >= 0 and graph.expanded[at]:
            left -= 1
            action = mixing.actions_back[left]
            child = graph.child[at, action]
            if child >= 0:
                weight *= graph.running[at, action]
                error += graph.error[at, action] / (discount * graph.running[at, action])
            at = child
        if at < 0:  # the episode is over
            continue
        upper = graph.upper[at] + left * bounds.loss[0]
        for _ in range(left):
            weight /= discount
        total += weight * upper
        magnitude += weight * (abs(graph.upper[at]) + left * bounds.loss[0])
        largest_error = max(largest_error, error)
        gap = weight * (graph.upper[at] - graph.lower[at])
        if gap > largest_gap:
            loosest, largest_gap = at, gap
    rounding = relative_error(graph.offsets[top + 1] - graph.offsets[top] + 4 * length)
    difference = 2.02 * (path_error + largest_error) + rounding
    if difference > MOST_ERROR or graph.lower[node] == -np.inf:
        return np.inf, NONE
    added = difference * (2 * graph.scale[node] + max(0.0, -graph.lower[node])) + DROPPED
    return (total + rounding * magnitude) / mass + 1.01 * added, loosest
