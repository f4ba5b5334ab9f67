"""Pushing the probability of being somewhere forward in time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import compiled


class Nodes(NamedTuple):
    """A Markov chain over nodes that last some steps each; what a node gives has k columns."""

    durations: Any  # int64 (n_nodes,)
    totals: Any  # float64 (n_nodes, k): what a whole node gives
    step_offsets: Any  # int64 (n_nodes + 1,)
    so_far: Any  # float64 (n_steps + 1, k): what the steps give without the end of their node, summed over all steps
    move_offsets: Any  # int64 (n_nodes + 1,)
    targets: Any  # int (n_moves,)
    weights: Any  # float64 (n_moves,)


@compiled
def push_forward(nodes: Nodes, start: Any, horizon: int) -> Any:
    """What the first `horizon` steps give from the start, float64 (n_nodes,); float64 (k,)."""
    n_nodes, k = nodes.totals.shape
    longest = min(nodes.durations.max(), horizon)
    arrivals = np.zeros((longest + 1, n_nodes))  # a ring over the next `longest` moments
    arrivals[0] = start
    sums = np.zeros(k)
    time, latest = 0, 0
    while time < horizon and time <= latest:  # after the latest arrival nothing is left to push
        now = arrivals[time % (longest + 1)]
        left = horizon - time
        for node in range(n_nodes):
            weight = now[node]
            if weight == 0.0:
                continue
            now[node] = 0.0
            duration = nodes.durations[node]
            if duration > left:
                first = nodes.step_offsets[node]
                sums += weight * (nodes.so_far[first + left] - nodes.so_far[first])
                continue
            sums += weight * nodes.totals[node]
            if duration == left or nodes.move_offsets[node] == nodes.move_offsets[node + 1]:
                continue
            latest = max(latest, time + duration)
            later = arrivals[(time + duration) % (longest + 1)]
            for move in range(nodes.move_offsets[node], nodes.move_offsets[node + 1]):
                later[nodes.targets[move]] += weight * nodes.weights[move]
        time += 1
    return sums
