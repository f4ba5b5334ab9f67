"""Pushing the probability of being somewhere forward in time."""

from __future__ import annotations

from typing import Any, NamedTuple

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
def push_forward(
    nodes: Nodes, arrivals: Any, sums: Any, begin: int, latest: int, horizon: int, pause: int
) -> tuple[int, int]:
    """Add to `sums` what the steps from `begin` up to `pause` give; return the time reached and the latest arrival.

    Nodes that reach beyond the `horizon` give their steps up to it.

    Parameters
    ----------
    arrivals : float64 (longest + 1, n_nodes)
        A ring over the next moments: the probability of arriving in each node at a moment, modulo its size. `longest` is the
        longest duration, or the horizon if that is shorter.
    sums : float64 (k,)
    begin, latest : int
        The moment to go on from, and the latest one at which anything arrives. After that one nothing is left to push.
    """
    n_nodes, _ = nodes.totals.shape
    size = arrivals.shape[0]
    time = begin
    while time < pause and time <= latest:
        now = arrivals[time % size]
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
            later = arrivals[(time + duration) % size]
            for move in range(nodes.move_offsets[node], nodes.move_offsets[node + 1]):
                later[nodes.targets[move]] += weight * nodes.weights[move]
        time += 1
    return time, latest
