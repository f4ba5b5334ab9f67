"""prototype"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.belief_graph import NODES, NONE, Bounds, Graph, Scratch
from actmeasure.kernels.dynamics import relative_error
from actmeasure.kernels.jit import no_refcount

SLOTS = 64
TOPS = 3
PARTS = 2
LEAST_SHARE = 0.02


class Index(NamedTuple):
    slots: Any  # int32 (S, SLOTS)
    used_at: Any  # int64 (S, SLOTS)
    counts: Any  # int64 (4,): clock, queries, hits
    found: Any # int64 (4,)


@no_refcount
def largest(graph: Graph, node: int, below: float, not_state: int) -> int:
    best, place = -1.0, -1
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        p = graph.probabilities[entry]
        if p > best and (p < below or (p == below and graph.states[entry] > not_state)):
            best, place = p, entry
    return place


@no_refcount
def insert(graph: Graph, index: Index, node: int) -> None:
    if graph.known[node] >= 0:
        return
    place = largest(graph, node, np.inf, -1)
    state = graph.states[place]
    oldest, at = 0, index.used_at[state, 0]
    for k in range(1, index.slots.shape[1]):
        if index.used_at[state, k] < at:
            oldest, at = k, index.used_at[state, k]
    index.counts[0] += 1
    index.slots[state, oldest] = node
    index.used_at[state, oldest] = index.counts[0]


@no_refcount
def insert_all(graph: Graph, index: Index) -> None:
    for node in range(graph.counts[NODES]):
        if graph.expanded[node]:
            insert(graph, index, node)


@no_refcount
def find(graph: Graph, bounds: Bounds, scratch: Scratch, index: Index, node: int) -> None:
    """Find the parts of a node."""
    begin, end = graph.offsets[node], graph.offsets[node + 1]
    dense = scratch.dense
    for entry in range(begin, end):
        dense[graph.states[entry]] = graph.probabilities[entry]
    index.counts[1] += 1
    for part in range(PARTS):
        best, best_share, best_state, best_k = 0.0, 0.0, -1, -1
        below, not_state = np.inf, -1
        for _ in range(TOPS):
            place = largest(graph, node, below, not_state)
            if place < 0:
                break
            below, not_state = graph.probabilities[place], graph.states[place]
            state = graph.states[place]
            if dense[state] <= 0:
                continue
            for k in range(index.slots.shape[1]):
                other = index.slots[state, k]
                if other < 0 or other == node:
                    continue
                gain = graph.reveal_upper[other] - graph.upper[other]
                if gain <= best:
                    continue
                least = best / gain
                share = 1.0
                for entry in range(graph.offsets[other], graph.offsets[other + 1]):
                    ratio = dense[graph.states[entry]] / graph.probabilities[entry]
                    if ratio < share:
                        share = ratio
                        if share <= least:
                            break
                if share * gain > best:
                    best, best_share, best_state, best_k = share * gain, share, state, k
        if best_k < 0 or best_share < LEAST_SHARE:
            graph.part[node, part] = -1
            if part == 0:
                break
            continue
        other = index.slots[best_state, best_k]
        index.counts[0] += 1
        index.counts[2] += 1
        index.used_at[best_state, best_k] = index.counts[0]
        share = best_share * (1 - 1e-14)
        graph.part[node, part], graph.share[node, part] = other, share
        for entry in range(graph.offsets[other], graph.offsets[other + 1]):
            s = graph.states[entry]
            dense[s] = max(0.0, dense[s] - share * graph.probabilities[entry])
    for entry in range(begin, end):
        dense[graph.states[entry]] = 0.0


@no_refcount
def _mean(graph: Graph, bounds: Bounds, node: int) -> tuple[float, float]:
    mean, magnitude = 0.0, 0.0
    for entry in range(graph.offsets[node], graph.offsets[node + 1]):
        value = graph.probabilities[entry] * bounds.upper[graph.states[entry]]
        mean += value
        magnitude += abs(value)
    return mean, magnitude


@no_refcount
def lower_by_parts(graph: Graph, bounds: Bounds, node: int) -> None:
    if graph.part[node, 0] < 0:
        return
    total, magnitude = _mean(graph, bounds, node)
    terms = graph.offsets[node + 1] - graph.offsets[node]
    for part in range(PARTS):
        other = graph.part[node, part]
        if other < 0:
            break
        share = graph.share[node, part]
        mean, size = _mean(graph, bounds, other)
        total -= share * (mean - graph.upper[other])
        magnitude += share * (size + abs(graph.upper[other]))
        terms += graph.offsets[other + 1] - graph.offsets[other]
    graph.upper[node] = min(graph.upper[node], total + 2 * relative_error(terms) * magnitude)
