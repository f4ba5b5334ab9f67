"""An upper bound at a belief from the one at another belief that is part of it.

Let b be the belief of a node, n that of another one, and f n_s <= b_s in every state s. Then b is f n and the rest, and the
optimum V is convex and homogeneous, so that with U >= V the present upper bounds

    V(b) <= sum_s (b_s - f n_s) U(s) + f U(n) = sum_s b_s U(s) - f (sum_s n_s U(s) - U(n)).

The largest f is the smallest b_s / n_s. Blind moves to and fro lead to ever new beliefs that hardly differ, and what was found
out below one of them bounds all others. Beliefs do not change, so f is kept, and the bound falls with U(n).

Candidates for n are expanded nodes with the same heaviest state as b, or with its second: `SLOTS` for each state, from
which the one that was of no use for the longest time is dropped.

Rounding: stored probabilities stand for themselves divided by their exact sum, which differs from 1 by at most
e = `relative_error` of their number. f is rounded down, so that b_s - f n_s >= 0 holds for stored probabilities. The two means,
the two sums that are not 1, and the few further operations are then off by at most 2 e (sum_s b_s |U(s)| + f sum_s n_s |U(s)| +
f |U(n)|), with e for the entries of both; this is added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.belief_graph import NODES, Bounds, Graph, Scratch
from actmeasure.kernels.dynamics import EPSILON, relative_error
from actmeasure.kernels.jit import no_refcount

#: Candidates kept for each state; a belief is compared with those of its `HEAVIEST` states.
SLOTS, HEAVIEST = 16, 2
#: States beyond this number share their candidates with others.
MOST_ROWS = 4096
#: A part with less weight than this is of no use.
LEAST_SHARE = 0.02


class Index(NamedTuple):
    """Expanded nodes by their heaviest state."""

    slots: Any  # int32 (rows, SLOTS): nodes, -1 where free; the row of a state is its remainder
    used_at: Any  # int64 (rows, SLOTS): time of the last use
    clock: Any  # int64 (1,)


def make_index(n_states: int) -> Index:
    """Return an empty index."""
    shape = (min(n_states, MOST_ROWS), SLOTS)
    return Index(np.full(shape, -1, np.int32), np.zeros(shape, np.int64), np.zeros(1, np.int64))


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
