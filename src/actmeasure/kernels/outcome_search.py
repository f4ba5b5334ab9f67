r"""Search where looks are imperfect, partial or several: a graph of beliefs between value vectors and interpolated bounds.

Write V for the optimal value of a belief b, extended to unnormalised b by V(c b) = c V(b). With b_{d,o} the unnormalised belief
after decision d and outcome o (mass that ends the episode is dropped) and g the discount,

    V(b) = max over d of Q(b, d) ,      Q(b, d) = r(b, d) + g * sum over o of V(b_{d,o}) .                              (1)

V is convex. A *node* is a normalised belief; beliefs that come up again are the same node. Where life is finite and the dynamics
are the same in every period, a node has bounds for every number of periods left (*layers*), so that all periods share it: V of
layer y is (1) with V of layer y - 1 on the right, and layer 0 is the value at the end. Otherwise there is one layer.

**Below**: *value vectors*. A vector a of a slice (see `decision_rows`) is the value of a plan in each state: a decision d, and
for each outcome o a vector a_o to go on with,

    a(s) = r(s, d) + g * sum over (o, t) of T(s, t) Z(o | t) a_o(t) .                                                    (2)

By induction a . b <= V(b) for every belief of the slice. At a node the vectors a_o are those that are best in its successors.
Vectors are rounded downwards; one that is nowhere above another is dropped.

**Above**: U(b) >= V(b), the smaller of (1) with U on the right, and of bounds that need no successors: linear bounds per decision
(`informed_sweep`), interpolation between nodes of bounds per decision (`interpolation`: Q is convex in b too), then the maximum
over decisions, and for independent components the bound of a grid. Only decisions whose bound is the highest are followed. With
F <= V(b) for all b (`Rows.floor`), bounds on Q are bounds on max(Q, F), which is convex as well and has the same maximum over d.

An interpolation is kept as a *mixture*: weights w_i of expanded nodes b_i with sum_i w_i b_i <= b, which do not depend on bounds.
When the bounds u_i(d) of the nodes fall, the bound of b falls with them,

    Q(b, d)  <=  c_d . b - sum_i w_i (c_d . b_i - u_i(d)) ,                     c_d the linear bound of the decision,       (3)

at the price of a sum instead of a linear programme. A *renewal* applies (3) to all nodes and then (1) to all that are expanded:
value iteration on the finite model that the nodes and mixtures make up. Each bound is a proof by itself, whatever the order in
which they are renewed and however old the weights are.

**Merging.** Two beliefs are one node if they have the same support and each probability agrees to a relative DELTA. If a is best
in b, then |a . (b - b')| <= DELTA sum_s b(s) |a(s)| <= DELTA (2 max(C, 0) - V(b)), where C bounds all values from above. This,
and what rounding does to beliefs and sums, is `Rows.slack`, which is added to every bound that is computed from others.

A *trial* follows from the start the decisions with the highest upper bound and the outcomes that contribute most to the gap,
until the gap is below a share of that at the start; on the way back both bounds are improved. A *sweep* improves the bounds of
all expanded nodes as a trial does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.decision_rows import Rows
from actmeasure.kernels.dynamics import EPSILON
from actmeasure.kernels.interpolation import Programme, solve_packing
from actmeasure.kernels.jit import compiled, no_refcount
from actmeasure.kernels.tensor_grid import Grid, grid_bound

__all__ = [
    "CHILDREN", "CHUNKS", "COLUMNS", "DELTA", "ENTRIES", "FULL", "NODES", "PLANS", "ROWS", "VALUES", "VECTORS", "WIDTH",
    "Points", "Vectors", "Work",
    "add_node", "chunk_vectors", "look_ahead", "rehash", "renew", "run_trials", "sweep",
]  # fmt: skip

#: Beliefs whose probabilities differ by less than this, relative, may be merged.
DELTA = 2.0**-39
#: Entries of `Points.counts`.
NODES, ENTRIES, ROWS, CHILDREN, MIXTURES, WEIGHTS = range(6)
#: Entries of `Vectors.counts`.
VECTORS, VALUES, PLANS, CHUNKS, COLUMNS = range(5)
#: Vectors of a chunk.
WIDTH = 8
#: Results of `run_trials` and `sweep`.
DONE, FULL = 0, 1
#: A trial ends where the gap is below this share of the gap at the start, divided by the discount for each step.
TRIAL_SHARE = 0.95
#: Most candidates of an interpolation.
MOST_CANDIDATES = 128
#: Vectors tried as a continuation after an outcome that is impossible in the node.
MOST_TRIED = 30
#: A vector is added if it improves a node by this share of the gap at the start, times 1 - discount, or times the least share of
#: a step: where the number of steps is limited, and otherwise, where a floor that is too high ends the search near discount 1.
LEAST_IMPROVEMENT, LEAST_STEP_OF_LIFE, LEAST_STEP = 0.02, 0.02, 1e-6
#: A node is bounded by interpolation again when the number of rows has grown by this share: a leaf, or an expanded node.
STALE_LEAF, STALE_ROW = 0.05, 0.2
#: In sweeps, children whose gap is below this share of the gap at the start are not bounded anew.
SWEEP_GAP = 0.1
#: Most children that are bounded by interpolation in one step.
MOST_TIGHTENED = 64


class Points(NamedTuple):
    """Nodes and their bounds; N nodes, Y layers, D decisions, R nodes that are expanded (*rows*)."""

    counts: Any  # int64 (6,)
    begin: Any  # int64 (N + 1,): the belief of a node
    states: Any  # int32 (n_entries,), ascending in a belief
    probabilities: Any  # float64 (n_entries,)
    slice_of: Any  # int32 (N,)
    mask: Any  # int64 (N,): states of the support modulo 63, as bits
    table: Any  # int32 (a power of 2,): hash table of nodes, -1 where free
    upper: Any  # float64 (N, Y)
    lower: Any  # float64 (N, Y)
    best: Any  # int32 (N, Y): the vector of `lower`
    checked: Any  # int32 (N, Y): the last vector that was compared
    interpolated: Any  # int64 (N,): number of rows when the node was bounded by interpolation
    visited: Any  # int64 (N,): the last layer in which a trial came by, -1 if none did
    row: Any  # int32 (N,): -1 until expanded
    last_row: Any  # int32 (X,): the latest row of a slice, -1 if there is none
    # Per row:
    node_of_row: Any  # int32 (R,)
    row_before: Any  # int32 (R,): the row before in the same slice, -1 if it is the first
    row_mask: Any  # int64 (R,): the mask of its node
    # Per row and decision:
    bound: Any  # float64 (R * D, Y): upper bounds of decisions
    linear: Any  # float64 (R * D, Y): those of `Rows.informed`
    reward: Any  # float64 (R * D,)
    child: Any  # int64 (R * D,): the first of the children, -1 while the decision is not followed
    child_node: Any  # int32 (n_children,): -1 where the outcome is impossible
    child_chance: Any  # float64 (n_children,)
    # The mixtures of rows that bound a node by interpolation; K mixtures, W weights:
    mix_first: Any  # int64 (N,)
    mix_number: Any  # int32 (N,): 0 where there is none
    mix_others: (
        Any  # float64 (N, Y): the largest linear bound of decisions without a mixture; only used with several layers
    )
    mix_decision: Any  # int32 (K,): the decision for which the weights were computed
    mix_linear: Any  # float64 (K, Y): the linear bound of the decision at the node
    mix_begin: Any  # int64 (K,)
    mix_end: Any  # int64 (K,)
    mix_row: Any  # int32 (W,)
    mix_weight: Any  # float64 (W,)


class Vectors(NamedTuple):
    """Value vectors; those of a slice and layer form a list, the latest first.

    Those that are not dominated are kept once more in *chunks* of `WIDTH` columns, by state, so that all vectors of a chunk are
    compared at a belief at once. The chunks of a slice and layer form a list, the latest first, with the vectors in their order.
    """

    counts: Any  # int64 (5,)
    begin: Any  # int64 (V,): of the values, one for each state of the slice
    values: Any  # float64
    slice_of: Any  # int32 (V,)
    layer: Any  # int32 (V,)
    decision: Any  # int32 (V,), -1 at the end of a finite life
    plan: Any  # int64 (V,): the first of the vectors to go on with, one per group
    plans: Any  # int32
    last: Any  # int32 (X, Y)
    before: Any  # int32 (V,)
    column: Any  # int64 (V,): chunk * WIDTH + column, -1 once it is dominated
    last_chunk: Any  # int32 (X, Y)
    spare_chunk: Any  # int32 (X, Y): the first of a list of chunks that are free
    n_columns: (
        Any  # int32 (X, Y): columns of all chunks that were used, with those of vectors that are dominated by now
    )
    n_alive: Any  # int32 (X, Y): vectors that are not dominated
    chunk_before: Any  # int32 (C,)
    chunk_begin: Any  # int64 (C,): of the values, WIDTH for each state of the slice
    chunk_vector: Any  # int32 (C * WIDTH,): -1 where a column is free, or its vector is dominated
    chunk_values: Any  # float64


class Work(NamedTuple):
    """Scratch memory."""

    mass: Any  # float64 (most slots of a decision,)
    states: Any  # int32 (most states of a slice,)
    probabilities: Any  # float64 (most states of a slice,)
    place: Any  # int32 (S,): -1 everywhere between calls
    slot_value: Any  # float64 (most slots,)
    vector: Any  # float64 (most states of a slice,)
    chosen: Any  # int32 (most groups of a decision,)
    path: Any  # int64 (longest trial, 2): node and layer
    bounds: Any  # float64 (D, Y)
    linear: Any  # float64 (D, Y)
    mixed: Any  # float64 (D,)
    order: Any  # bool (D,)
    totals: Any  # float64 (Y,)
    highest: Any  # float64 (Y,)
    matched: Any  # int32 (R,)
    ratio: Any  # float64 (R,)
    tally: Any  # int64 (some bins,)


# Beliefs


@no_refcount
def _hash(states: Any, probabilities: Any, first: int, size: int) -> int:
    code: Any = size
    for i in range(first, first + size):
        mantissa, exponent = math.frexp(probabilities[i])
        part = int(mantissa * 1099511627776.0 + 0.5) + exponent * 4294967311
        code = (code ^ (part + np.int64(states[i]) * 2654435761)) * 1099511628211
        code ^= code >> 29
    return int(code & 0x7FFFFFFFFFFFFFFF)


@no_refcount
def _is_same(points: Points, node: int, states: Any, probabilities: Any, size: int) -> bool:
    first = points.begin[node]
    if points.begin[node + 1] - first != size:
        return False
    for i in range(size):
        if points.states[first + i] != states[i]:
            return False
        one, two = points.probabilities[first + i], probabilities[i]
        if abs(one - two) > DELTA * min(one, two):
            return False
    return True


@no_refcount
def _find(points: Points, states: Any, probabilities: Any, size: int) -> tuple[int, int]:
    """Return the node of a belief, -1 if there is none, and its place in the hash table."""
    cells = points.table.shape[0] - 1
    place = _hash(states, probabilities, 0, size) & cells
    while points.table[place] >= 0:
        node = points.table[place]
        if _is_same(points, node, states, probabilities, size):
            return node, place
        place = (place + 1) & cells
    return -1, place


@compiled
def rehash(points: Points) -> None:
    """Enter all nodes into an empty hash table."""
    cells = points.table.shape[0] - 1
    for node in range(points.counts[NODES]):
        first = points.begin[node]
        place = _hash(points.states, points.probabilities, first, points.begin[node + 1] - first) & cells
        while points.table[place] >= 0:
            place = (place + 1) & cells
        points.table[place] = node


@no_refcount
def _node(rows: Rows, points: Points, grid: Grid | None, work: Work, size: int) -> int:
    """Return the node of the belief in `work.states` and `work.probabilities`, which is added if it is new."""
    found, place = _find(points, work.states, work.probabilities, size)
    if found >= 0:
        return found
    node = points.counts[NODES]
    first = points.begin[node]
    mask = 0
    for i in range(size):
        points.states[first + i] = work.states[i]
        points.probabilities[first + i] = work.probabilities[i]
        mask |= 1 << (work.states[i] % 63)
    points.begin[node + 1] = first + size
    points.counts[ENTRIES] = first + size
    points.counts[NODES] += 1
    points.table[place] = node
    points.slice_of[node] = rows.slice_of[work.states[0]]
    points.mask[node] = mask
    points.row[node] = -1
    points.interpolated[node] = -1
    points.visited[node] = -1
    points.mix_number[node] = 0
    for layer in range(points.upper.shape[1]):
        points.lower[node, layer] = -np.inf
        points.best[node, layer] = -1
        points.checked[node, layer] = -1
        points.upper[node, layer] = -np.inf
    _write_linear(rows, points, work, node)
    for decision in range(rows.n_decisions):
        for layer in range(points.upper.shape[1]):
            points.upper[node, layer] = max(points.upper[node, layer], work.linear[decision, layer] + rows.slack)
    if grid is not None:
        bound = grid_bound(grid, points.states, points.probabilities, first, size) + rows.slack
        points.upper[node, 0] = min(points.upper[node, 0], bound)
    return int(node)


@no_refcount
def _write_linear(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Write the linear bounds of all decisions to `work.linear`."""
    n, n_layers = rows.n_decisions, points.upper.shape[1]
    for decision in range(n):
        for layer in range(n_layers):
            work.linear[decision, layer] = 0.0
    for i in range(points.begin[node], points.begin[node + 1]):
        first, probability = points.states[i] * n, points.probabilities[i]
        for layer in range(n_layers):
            for decision in range(n):
                work.linear[decision, layer] += probability * rows.informed[layer, first + decision]


@compiled
def add_node(rows: Rows, points: Points, grid: Grid | None, work: Work, states: Any, probabilities: Any) -> int:
    """Return the node of a belief."""
    size = states.shape[0]
    for i in range(size):
        work.states[i] = states[i]
        work.probabilities[i] = probabilities[i]
    return int(_node(rows, points, grid, work, size))


@no_refcount
def _push(rows: Rows, points: Points, work: Work, node: int, decision: int) -> None:
    """Write the unnormalised beliefs after a decision to `work.mass`, by slot."""
    n = rows.n_decisions
    index = points.slice_of[node] * n + decision
    origin = rows.group_slots[rows.groups[index]]
    for i in range(rows.group_slots[rows.groups[index + 1]] - origin):
        work.mass[i] = 0.0
    for i in range(points.begin[node], points.begin[node + 1]):
        row, weight = points.states[i] * n + decision, points.probabilities[i]
        for entry in range(rows.offsets[row], rows.offsets[row + 1]):
            work.mass[rows.slots[entry] - origin] += weight * rows.probabilities[entry]


@no_refcount
def _take(rows: Rows, work: Work, origin: int, group: int) -> tuple[int, float]:
    """Write the normalised belief after the outcome of a group to `work.states`; returns its size and the probability."""
    size, total = 0, 0.0
    for slot in range(rows.group_slots[group], rows.group_slots[group + 1]):
        mass = work.mass[slot - origin]
        if mass > 0.0:
            work.states[size] = rows.slot_state[slot]
            work.probabilities[size] = mass
            total += mass
            size += 1
    for i in range(size):
        work.probabilities[i] /= total
        if work.probabilities[i] == 0.0:  # of subnormal masses
            work.probabilities[i] = 5e-324
    return size, total


# Bounds above


@no_refcount
def _expand(rows: Rows, points: Points, grid: Grid | None, work: Work, node: int, eager: bool) -> None:
    """Give a node its row: bounds of all decisions, which are followed at once if `eager`, otherwise when they are the best."""
    n, row = rows.n_decisions, points.counts[ROWS]
    points.counts[ROWS] += 1
    points.row[node] = row
    points.node_of_row[row] = node
    points.row_before[row] = points.last_row[points.slice_of[node]]
    points.last_row[points.slice_of[node]] = row
    points.row_mask[row] = points.mask[node]
    _write_linear(rows, points, work, node)
    for decision in range(n):
        cell = row * n + decision
        points.child[cell] = -1
        points.reward[cell] = 0.0
        for layer in range(points.upper.shape[1]):
            points.linear[cell, layer] = work.linear[decision, layer]
            points.bound[cell, layer] = points.linear[cell, layer] + rows.slack
    for i in range(points.begin[node], points.begin[node + 1]):
        for decision in range(n):
            points.reward[row * n + decision] += points.probabilities[i] * rows.rewards[points.states[i] * n + decision]
    for decision in range(n):
        if eager:
            _follow(rows, points, grid, work, node, decision)
        elif grid is not None:
            _probe(rows, points, grid, work, node, decision)
    if not eager:  # so that decisions that cannot be the best are not followed
        _renew_mixed(rows, points, work, node)
    _renew_upper(rows, points, node)


@no_refcount
def _probe(rows: Rows, points: Points, grid: Grid, work: Work, node: int, decision: int) -> None:
    """Lower the bound of a decision by the grid's bounds of the beliefs after it, without adding these as nodes."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    _push(rows, points, work, node, decision)
    origin, total = rows.group_slots[rows.groups[index]], 0.0
    for group in range(rows.groups[index], rows.groups[index + 1]):
        size, chance = _take(rows, work, origin, group)
        if size > 0:
            total += chance * grid_bound(grid, work.states, work.probabilities, 0, size)
    bound = max(points.reward[cell] + rows.discount * total, rows.floor) + 2.0 * rows.slack
    points.bound[cell, 0] = min(points.bound[cell, 0], bound)


@no_refcount
def _follow(rows: Rows, points: Points, grid: Grid | None, work: Work, node: int, decision: int) -> None:
    """Add the beliefs after a decision as nodes and lower its bound by theirs."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    _push(rows, points, work, node, decision)
    origin = rows.group_slots[rows.groups[index]]
    first = points.counts[CHILDREN]
    points.child[cell] = first
    points.counts[CHILDREN] += rows.groups[index + 1] - rows.groups[index]
    for group in range(rows.groups[index], rows.groups[index + 1]):
        size, chance = _take(rows, work, origin, group)
        child = first + group - rows.groups[index]
        points.child_chance[child] = chance
        points.child_node[child] = _node(rows, points, grid, work, size) if size > 0 else -1
    _renew_bound(rows, points, work, node, decision)


@no_refcount
def _renew_bound(rows: Rows, points: Points, work: Work, node: int, decision: int) -> None:
    """Lower the bounds of a decision that is followed by those of its children, in all layers."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    first, last = points.child[cell], points.child[cell] + rows.groups[index + 1] - rows.groups[index]
    n_layers = points.upper.shape[1]
    for layer in range(rows.shift, n_layers):
        work.totals[layer] = 0.0
    for child in range(first, last):
        follower = points.child_node[child]
        if follower >= 0:
            chance = points.child_chance[child]
            for layer in range(rows.shift, n_layers):
                work.totals[layer] += chance * points.upper[follower, layer - rows.shift]
    for layer in range(rows.shift, n_layers):
        value = max(points.reward[cell] + rows.discount * work.totals[layer], rows.floor) + rows.slack
        points.bound[cell, layer] = min(points.bound[cell, layer], value)


@no_refcount
def _renew_upper(rows: Rows, points: Points, node: int) -> None:
    """Lower the bounds of an expanded node to the highest of its decisions, in all layers."""
    first = points.row[node] * rows.n_decisions
    for layer in range(rows.shift, points.upper.shape[1]):
        best = points.bound[first, layer]
        for decision in range(1, rows.n_decisions):
            best = max(best, points.bound[first + decision, layer])
        points.upper[node, layer] = min(points.upper[node, layer], best)


@no_refcount
def _highest(rows: Rows, points: Points, node: int, layer: int) -> int:
    """Return the decision with the highest bound; among equal ones, one that is followed."""
    first, best = points.row[node] * rows.n_decisions, 0
    for decision in range(1, rows.n_decisions):
        one, two = points.bound[first + decision, layer], points.bound[first + best, layer]
        if one > two or (one == two and points.child[first + decision] >= 0 and points.child[first + best] < 0):
            best = decision
    return best


@no_refcount
def _interpolate(rows: Rows, points: Points, lp: Programme, work: Work, node: int, layer: int) -> None:
    """Lower the bounds of a node by interpolation between the rows of its slice, with weights that are good in one layer.

    The decision with the highest bound is bounded by a linear programme, until it is one that has been: other decisions cannot
    matter. Weights are feasible for every decision, in every layer. With one layer, they bound all decisions, so that most need
    no programme; with several, only the one they were computed for, as what is not in the way in one layer may be so in others.
    If the node is expanded, the bounds of its decisions fall as well.
    """
    n, n_layers = rows.n_decisions, points.upper.shape[1]
    first, size = points.begin[node], points.begin[node + 1] - points.begin[node]
    points.interpolated[node] = points.counts[ROWS]
    for i in range(size):
        work.place[points.states[first + i]] = i
    count = _candidates(points, lp, work, node)
    if count > 0:
        mixture, entry = points.counts[MIXTURES], points.counts[WEIGHTS]
        points.mix_first[node], points.mix_number[node] = mixture, 0
        _begin_bounds(rows, points, work, node)
        for decision in range(n):
            work.order[decision] = False
        while True:
            best = 0
            for decision in range(1, n):
                if work.bounds[decision, layer] > work.bounds[best, layer]:
                    best = decision
            if work.order[best]:
                break
            work.order[best] = True
            for i in range(count):
                cell = points.row[lp.points[i]] * n + best
                lp.gains[i] = points.linear[cell, layer] - points.bound[cell, layer]
            solve_packing(lp, points.probabilities, first, size, count)
            points.mix_decision[mixture], points.mix_begin[mixture] = best, entry
            for y in range(n_layers):
                points.mix_linear[mixture, y] = work.linear[best, y]
            for i in range(count):
                if lp.weights[i] > 0.0:
                    points.mix_row[entry], points.mix_weight[entry] = points.row[lp.points[i]], lp.weights[i]
                    entry += 1
            points.mix_end[mixture] = entry
            _mix(rows, points, work, mixture)
            mixture += 1
            points.counts[MIXTURES], points.counts[WEIGHTS] = mixture, entry
            points.mix_number[node] += 1
        for y in range(rows.shift, n_layers):
            points.mix_others[node, y] = -np.inf
            for decision in range(n):
                if not work.order[decision]:
                    points.mix_others[node, y] = max(points.mix_others[node, y], work.bounds[decision, y])
        _end_bounds(rows, points, work, node)
    for i in range(size):
        work.place[points.states[first + i]] = -1


@no_refcount
def _begin_bounds(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Write the linear bounds of all decisions to `work.linear`, and the bounds that they have to `work.bounds`."""
    n, row = rows.n_decisions, points.row[node]
    if row < 0:
        _write_linear(rows, points, work, node)
    for decision in range(n):
        for y in range(rows.shift, points.upper.shape[1]):
            if row >= 0:
                work.linear[decision, y] = points.linear[row * n + decision, y]
                work.bounds[decision, y] = points.bound[row * n + decision, y]
            else:
                work.bounds[decision, y] = work.linear[decision, y] + rows.slack


@no_refcount
def _end_bounds(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Lower the bounds of a node, and of its decisions if it is expanded, to those in `work.bounds`."""
    n, row = rows.n_decisions, points.row[node]
    for y in range(rows.shift, points.upper.shape[1]):
        highest = -np.inf
        for decision in range(n):
            highest = max(highest, work.bounds[decision, y])
            if row >= 0:
                points.bound[row * n + decision, y] = work.bounds[decision, y]
        points.upper[node, y] = min(points.upper[node, y], highest)


@no_refcount
def _mix(rows: Rows, points: Points, work: Work, mixture: int) -> None:
    """Lower `work.bounds` by a mixture with the present bounds of its rows; with several layers, only those of its decision."""
    n, n_layers, decision = rows.n_decisions, points.upper.shape[1], points.mix_decision[mixture]
    if rows.shift == 1:
        _mix_own(rows, points, work, mixture)
        for y in range(rows.shift, n_layers):
            work.bounds[decision, y] = min(work.bounds[decision, y], work.totals[y])
        return
    for d in range(n):
        work.mixed[d] = work.linear[d, 0] + rows.slack
    for entry in range(points.mix_begin[mixture], points.mix_end[mixture]):
        first, weight = points.mix_row[entry] * n, points.mix_weight[entry]
        for d in range(n):
            work.mixed[d] -= weight * (points.linear[first + d, 0] - points.bound[first + d, 0])
    for d in range(n):
        work.bounds[d, 0] = min(work.bounds[d, 0], work.mixed[d])


@no_refcount
def _mix_own(rows: Rows, points: Points, work: Work, mixture: int) -> None:
    """Write the bounds of a mixture for its decision, with the present bounds of its rows, to `work.totals`, in all layers."""
    decision, n_layers = points.mix_decision[mixture], points.upper.shape[1]
    for y in range(rows.shift, n_layers):
        work.totals[y] = points.mix_linear[mixture, y] + rows.slack
    for entry in range(points.mix_begin[mixture], points.mix_end[mixture]):
        cell, weight = points.mix_row[entry] * rows.n_decisions + decision, points.mix_weight[entry]
        for y in range(rows.shift, n_layers):
            work.totals[y] -= weight * (points.linear[cell, y] - points.bound[cell, y])


@no_refcount
def _renew_mixed(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Lower the bounds of a node by its mixtures with the present bounds of their rows."""
    first, number = points.mix_first[node], points.mix_number[node]
    if number == 0:
        return
    if rows.shift == 1:
        _renew_layers(rows, points, work, node)
        return
    _begin_bounds(rows, points, work, node)
    for mixture in range(first, first + number):
        _mix(rows, points, work, mixture)
    _end_bounds(rows, points, work, node)
    if points.row[node] < 0:
        best = 0
        for decision in range(1, rows.n_decisions):
            if work.bounds[decision, 0] > work.bounds[best, 0]:
                best = decision
        for mixture in range(first, first + number):
            if points.mix_decision[mixture] == best:
                return
        points.interpolated[node] = -1  # a decision without weights of its own is in the way


@no_refcount
def _renew_layers(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Lower the bounds of a node with several layers by its mixtures, each for its own decision."""
    n_layers, row = points.upper.shape[1], points.row[node]
    for y in range(rows.shift, n_layers):
        work.highest[y] = points.mix_others[node, y]
    for mixture in range(points.mix_first[node], points.mix_first[node] + points.mix_number[node]):
        _mix_own(rows, points, work, mixture)
        cell = row * rows.n_decisions + points.mix_decision[mixture]
        for y in range(rows.shift, n_layers):
            work.highest[y] = max(work.highest[y], work.totals[y])
            if row >= 0:
                points.bound[cell, y] = min(points.bound[cell, y], work.totals[y])
    if row < 0:
        for y in range(rows.shift, n_layers):
            points.upper[node, y] = min(points.upper[node, y], work.highest[y])


@no_refcount
def _candidates(points: Points, lp: Programme, work: Work, node: int) -> int:
    """Write the rows of the slice that are closest to a node to a programme; returns how many.

    How close is the largest weight that a point can have alone: the smallest ratio of probabilities, 0 if its support does not
    lie in that of the node. Points with one state are always taken.
    """
    for i in range(work.tally.shape[0]):
        work.tally[i] = 0
    bins, first = work.tally.shape[0] - 1, points.begin[node]
    row, mask, n_matched = points.last_row[points.slice_of[node]], ~points.mask[node], 0
    while row >= 0:
        if (points.row_mask[row] & mask) == 0 and row != points.row[node]:
            other, ratio = points.node_of_row[row], 1.0
            for i in range(points.begin[other], points.begin[other + 1]):
                place = work.place[points.states[i]]
                if place < 0:
                    ratio = 0.0
                    break
                ratio = min(ratio, points.probabilities[first + place] / points.probabilities[i])
            if ratio > 0.0:
                if points.begin[other + 1] - points.begin[other] == 1:
                    ratio = 1.0
                work.matched[n_matched], work.ratio[n_matched] = other, ratio
                work.tally[int(ratio * bins)] += 1
                n_matched += 1
        row = points.row_before[row]
    least, taken = bins, work.tally[bins]
    while least > 0 and taken + work.tally[least - 1] <= lp.points.shape[0]:
        least -= 1
        taken += work.tally[least]
    count, entry = 0, 0
    for i in range(n_matched):
        other = work.matched[i]
        size = points.begin[other + 1] - points.begin[other]
        if count == lp.points.shape[0]:
            break
        if int(work.ratio[i] * bins) >= least and entry + size <= lp.places.shape[0]:
            for k in range(points.begin[other], points.begin[other + 1]):
                lp.places[entry] = work.place[points.states[k]]
                lp.values[entry] = points.probabilities[k]
                entry += 1
            lp.points[count] = other
            count += 1
            lp.offsets[count] = entry
    return count


# Bounds below


@no_refcount
def _renew_lower(rows: Rows, points: Points, vectors: Vectors, node: int, layer: int) -> None:
    """Raise the lower bound of a node to the best of the vectors that are new since it was last asked."""
    in_slice, checked = points.slice_of[node], points.checked[node, layer]
    newest = vectors.last[in_slice, layer]
    if newest <= checked:
        return
    chunk = vectors.last_chunk[in_slice, layer]
    while chunk >= 0:
        latest = -1
        for column in range(chunk * WIDTH, (chunk + 1) * WIDTH):
            latest = max(latest, vectors.chunk_vector[column])
        if 0 <= latest <= checked:
            break
        if latest >= 0:
            _compare_chunk(rows, points, vectors, node, layer, chunk)
        chunk = vectors.chunk_before[chunk]
    points.checked[node, layer] = newest


@no_refcount
def _compare_chunk(rows: Rows, points: Points, vectors: Vectors, node: int, layer: int, chunk: int) -> None:
    """Raise the lower bound of a node to the best of the vectors of a chunk that it has not been compared with."""
    v0, v1, v2, v3, v4, v5, v6, v7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    begin = vectors.chunk_begin[chunk]
    for i in range(points.begin[node], points.begin[node + 1]):
        place, probability = begin + WIDTH * rows.position[points.states[i]], points.probabilities[i]
        v0 += probability * vectors.chunk_values[place]
        v1 += probability * vectors.chunk_values[place + 1]
        v2 += probability * vectors.chunk_values[place + 2]
        v3 += probability * vectors.chunk_values[place + 3]
        v4 += probability * vectors.chunk_values[place + 4]
        v5 += probability * vectors.chunk_values[place + 5]
        v6 += probability * vectors.chunk_values[place + 6]
        v7 += probability * vectors.chunk_values[place + 7]
    first = chunk * WIDTH
    _raise(points, node, layer, vectors.chunk_vector[first + 7], v7)
    _raise(points, node, layer, vectors.chunk_vector[first + 6], v6)
    _raise(points, node, layer, vectors.chunk_vector[first + 5], v5)
    _raise(points, node, layer, vectors.chunk_vector[first + 4], v4)
    _raise(points, node, layer, vectors.chunk_vector[first + 3], v3)
    _raise(points, node, layer, vectors.chunk_vector[first + 2], v2)
    _raise(points, node, layer, vectors.chunk_vector[first + 1], v1)
    _raise(points, node, layer, vectors.chunk_vector[first], v0)


@no_refcount
def _raise(points: Points, node: int, layer: int, vector: int, value: float) -> None:
    """Raise the lower bound of a node to the value of a vector, if it has not been compared with it."""
    if vector > points.checked[node, layer] and (value > points.lower[node, layer] or points.best[node, layer] < 0):
        points.lower[node, layer] = value
        points.best[node, layer] = vector


@no_refcount
def _decision_lower(rows: Rows, points: Points, vectors: Vectors, node: int, decision: int, layer: int) -> float:
    """Return the lower bound of a decision that is followed: that of its children."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    total = 0.0
    for i in range(rows.groups[index + 1] - rows.groups[index]):
        follower = points.child_node[points.child[cell] + i]
        if follower >= 0:
            _renew_lower(rows, points, vectors, follower, layer - rows.shift)
            total += points.child_chance[points.child[cell] + i] * points.lower[follower, layer - rows.shift]
    return float(points.reward[cell] + rows.discount * total)


@no_refcount
def _back_up_lower(
    rows: Rows, points: Points, vectors: Vectors, work: Work, node: int, layer: int, least: float
) -> None:
    """Add a vector, if one by (2) raises the lower bound of a node by more than `least`."""
    _renew_lower(rows, points, vectors, node, layer)
    first, best, value = points.row[node] * rows.n_decisions, -1, points.lower[node, layer] + least
    for decision in range(rows.n_decisions):
        if points.child[first + decision] >= 0 and points.bound[first + decision, layer] > value:
            found = _decision_lower(rows, points, vectors, node, decision, layer)
            if found > value:
                best, value = decision, found
    if best < 0:
        return
    index, cell = points.slice_of[node] * rows.n_decisions + best, first + best
    for i in range(rows.groups[index + 1] - rows.groups[index]):
        follower = points.child_node[points.child[cell] + i]
        if follower >= 0:
            work.chosen[i] = points.best[follower, layer - rows.shift]
        else:
            work.chosen[i] = _continuation(rows, vectors, rows.groups[index] + i, layer - rows.shift)
        if work.chosen[i] < 0:
            return
    _new_vector(rows, vectors, work, points.slice_of[node], layer, best)
    _renew_lower(rows, points, vectors, node, layer)


@no_refcount
def _continuation(rows: Rows, vectors: Vectors, group: int, layer: int) -> int:
    """Return a vector for an outcome that is impossible in the node: the one with the largest sum over the states it may show."""
    best, highest, tried = -1, -np.inf, 0
    vector = vectors.last[rows.group_slice[group], layer]
    while vector >= 0 and tried < MOST_TRIED:
        total = 0.0
        for slot in range(rows.group_slots[group], rows.group_slots[group + 1]):
            total += vectors.values[vectors.begin[vector] + rows.position[rows.slot_state[slot]]]
        if total > highest or best < 0:
            best, highest = vector, total
        tried += 1
        vector = vectors.before[vector]
    return best


@no_refcount
def _new_vector(rows: Rows, vectors: Vectors, work: Work, in_slice: int, layer: int, decision: int) -> None:
    """Add the vector of a decision and the continuations in `work.chosen`, rounded downwards, unless one is above it."""
    n = rows.n_decisions
    index = in_slice * n + decision
    first_group, origin = rows.groups[index], rows.group_slots[rows.groups[index]]
    for group in range(first_group, rows.groups[index + 1]):
        begin = vectors.begin[work.chosen[group - first_group]]
        for slot in range(rows.group_slots[group], rows.group_slots[group + 1]):
            work.slot_value[slot - origin] = vectors.values[begin + rows.position[rows.slot_state[slot]]]
    size = rows.slice_offsets[in_slice + 1] - rows.slice_offsets[in_slice]
    for i in range(size):
        row = _slice_state(rows, in_slice, i) * n + decision
        total, absolute = 0.0, 0.0
        for entry in range(rows.offsets[row], rows.offsets[row + 1]):
            term = rows.probabilities[entry] * work.slot_value[rows.slots[entry] - origin]
            total += term
            absolute += abs(term)
        rounding = EPSILON * (rows.offsets[row + 1] - rows.offsets[row] + 8) * (absolute + abs(rows.rewards[row]))
        work.vector[i] = rows.rewards[row] + rows.discount * total - rounding
    _store_vector(vectors, work, in_slice, layer, decision, size, rows.groups[index + 1] - first_group)


@no_refcount
def _slice_state(rows: Rows, in_slice: int, position: int) -> int:
    return int(rows.slice_states[rows.slice_offsets[in_slice] + position])


@no_refcount
def _store_vector(
    vectors: Vectors, work: Work, in_slice: int, layer: int, decision: int, size: int, n_plans: int
) -> None:
    """Add `work.vector`, with `work.chosen` to go on with, unless a vector is nowhere below it; drop those nowhere above it."""
    vector, after = vectors.last[in_slice, layer], -1
    while vector >= 0:
        begin, above, below = vectors.begin[vector], True, True
        for i in range(size):
            other = vectors.values[begin + i]
            above = above and other >= work.vector[i]
            below = below and other <= work.vector[i]
            if not above and not below:
                break
        if above:
            return
        if below:
            if after < 0:
                vectors.last[in_slice, layer] = vectors.before[vector]
            else:
                vectors.before[after] = vectors.before[vector]
            vectors.chunk_vector[vectors.column[vector]] = -1
            vectors.column[vector] = -1
            vectors.n_alive[in_slice, layer] -= 1
        else:
            after = vector
        vector = vectors.before[vector]
    new = vectors.counts[VECTORS]
    vectors.counts[VECTORS] += 1
    vectors.begin[new] = vectors.counts[VALUES]
    for i in range(size):
        vectors.values[vectors.begin[new] + i] = work.vector[i]
    vectors.counts[VALUES] += size
    vectors.slice_of[new], vectors.layer[new], vectors.decision[new] = in_slice, layer, decision
    vectors.plan[new] = vectors.counts[PLANS]
    for i in range(n_plans):
        vectors.plans[vectors.plan[new] + i] = work.chosen[i]
    vectors.counts[PLANS] += n_plans
    vectors.before[new] = vectors.last[in_slice, layer]
    vectors.last[in_slice, layer] = new
    if vectors.n_columns[in_slice, layer] >= 2 * vectors.n_alive[in_slice, layer] + WIDTH:
        _chunk_again(vectors, in_slice, layer, size)
    else:
        _add_column(vectors, new, size)


@no_refcount
def _add_column(vectors: Vectors, vector: int, size: int) -> None:
    """Add a vector to the chunks of its slice and layer; there is room for a chunk."""
    in_slice, layer = vectors.slice_of[vector], vectors.layer[vector]
    column = vectors.n_columns[in_slice, layer] % WIDTH
    if column == 0:
        chunk = vectors.spare_chunk[in_slice, layer]
        if chunk >= 0:
            vectors.spare_chunk[in_slice, layer] = vectors.chunk_before[chunk]
        else:
            chunk = vectors.counts[CHUNKS]
            vectors.counts[CHUNKS] += 1
            vectors.chunk_begin[chunk] = vectors.counts[COLUMNS]
            vectors.counts[COLUMNS] += WIDTH * size
        for i in range(WIDTH):
            vectors.chunk_vector[chunk * WIDTH + i] = -1
        vectors.chunk_before[chunk] = vectors.last_chunk[in_slice, layer]
        vectors.last_chunk[in_slice, layer] = chunk
    chunk = vectors.last_chunk[in_slice, layer]
    begin, values = vectors.chunk_begin[chunk] + column, vectors.begin[vector]
    for i in range(size):
        vectors.chunk_values[begin + WIDTH * i] = vectors.values[values + i]
    vectors.column[vector] = chunk * WIDTH + column
    vectors.chunk_vector[chunk * WIDTH + column] = vector
    vectors.n_columns[in_slice, layer] += 1
    vectors.n_alive[in_slice, layer] += 1


@no_refcount
def _chunk_again(vectors: Vectors, in_slice: int, layer: int, size: int) -> None:
    """Write the vectors of a slice and layer to its chunks anew, without those that are dominated; the latest is a new one."""
    while vectors.last_chunk[in_slice, layer] >= 0:
        chunk = vectors.last_chunk[in_slice, layer]
        vectors.last_chunk[in_slice, layer] = vectors.chunk_before[chunk]
        vectors.chunk_before[chunk] = vectors.spare_chunk[in_slice, layer]
        vectors.spare_chunk[in_slice, layer] = chunk
    vectors.n_columns[in_slice, layer] = 0
    vectors.n_alive[in_slice, layer] = 0
    # The list has the latest first, chunks the earliest: the list is turned round, and back while it is written.
    following, vector = -1, vectors.last[in_slice, layer]
    while vector >= 0:
        before = vectors.before[vector]
        vectors.before[vector] = following
        following, vector = vector, before
    before, vector = -1, following
    while vector >= 0:
        following = vectors.before[vector]
        vectors.before[vector] = before
        _add_column(vectors, vector, size)
        before, vector = vector, following


@compiled
def chunk_vectors(rows: Rows, vectors: Vectors) -> None:
    """Write all vectors to chunks; there are none before."""
    for in_slice in range(vectors.last.shape[0]):
        for layer in range(vectors.last.shape[1]):
            size = rows.slice_offsets[in_slice + 1] - rows.slice_offsets[in_slice]
            _chunk_again(vectors, in_slice, layer, size)


# The search


@no_refcount
def _gap(points: Points, node: int, layer: int) -> float:
    return float(points.upper[node, layer] - points.lower[node, layer])


@no_refcount
def _has_room(rows: Rows, points: Points, vectors: Vectors, work: Work, eager: bool) -> bool:
    """Return whether a node can be expanded and a vector added."""
    followed = rows.n_decisions if eager else 2
    groups, slots = followed * work.chosen.shape[0], followed * work.mass.shape[0]
    return bool(
        points.counts[NODES] + groups < points.slice_of.shape[0]
        and points.counts[ENTRIES] + slots < points.states.shape[0]
        and points.counts[ROWS] + 1 < points.node_of_row.shape[0]
        and points.counts[CHILDREN] + groups < points.child_node.shape[0]
        and points.counts[MIXTURES] + rows.n_decisions < points.mix_decision.shape[0]
        and points.counts[WEIGHTS] + rows.n_decisions * work.vector.shape[0] < points.mix_row.shape[0]
        and vectors.counts[VECTORS] + 1 < vectors.begin.shape[0]
        and vectors.counts[VALUES] + work.vector.shape[0] < vectors.values.shape[0]
        and vectors.counts[PLANS] + work.chosen.shape[0] < vectors.plans.shape[0]
        and vectors.counts[CHUNKS] + 1 < vectors.chunk_begin.shape[0]
        and vectors.counts[COLUMNS] + WIDTH * work.vector.shape[0] < vectors.chunk_values.shape[0]
    )


@no_refcount
def _best_child(
    rows: Rows, points: Points, vectors: Vectors, node: int, decision: int, layer: int, least: float
) -> int:
    """Return the child that contributes most to the gap beyond `least`, -1 if none does."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    best, highest = -1, 0.0
    for i in range(rows.groups[index + 1] - rows.groups[index]):
        follower = points.child_node[points.child[cell] + i]
        if follower >= 0:
            _renew_lower(rows, points, vectors, follower, layer - rows.shift)
            excess = points.child_chance[points.child[cell] + i] * (_gap(points, follower, layer - rows.shift) - least)
            if excess > highest:
                best, highest = follower, excess
    return best


@no_refcount
def _is_stale(points: Points, node: int) -> bool:
    """Return whether a node is to be bounded by interpolation anew, because many rows were added since it was."""
    share = STALE_LEAF if points.row[node] < 0 else STALE_ROW
    return bool(points.interpolated[node] < 0 or points.counts[ROWS] > points.interpolated[node] * (1.0 + share) + 1)


@no_refcount
def _step(
    rows: Rows, points: Points, vectors: Vectors, lp: Programme, grid: Grid | None, work: Work, node: int, layer: int,
    least: float, eager: bool, interpolates: bool,
) -> int:  # fmt: skip
    """Renew the upper bounds of a node and return the child to follow, -1 if there is none.

    The decision with the highest bound is followed and its bound renewed until it is still the highest; the child that counts
    most is bounded by interpolation, and the choice made again, until the child's bound no longer falls.
    """
    if points.row[node] < 0:
        _expand(rows, points, grid, work, node, eager)
    for _ in range(MOST_TIGHTENED):
        decision = _highest(rows, points, node, layer)
        cell = points.row[node] * rows.n_decisions + decision
        while True:
            if points.child[cell] < 0:
                if not _has_room(rows, points, vectors, work, False):
                    return -1
                _follow(rows, points, grid, work, node, decision)
            else:
                _renew_bound(rows, points, work, node, decision)
            following = _highest(rows, points, node, layer)
            if following == decision:
                break
            decision = following
            cell = points.row[node] * rows.n_decisions + decision
        _renew_upper(rows, points, node)
        if layer - rows.shift < 0 or (rows.shift == 1 and layer == 1):
            return -1
        if not interpolates:
            break
        child = _loosest(rows, points, vectors, node, decision, layer)
        if child < 0 or not _has_room(rows, points, vectors, work, False):
            break
        _interpolate(rows, points, lp, work, child, layer - rows.shift)
    return _best_child(rows, points, vectors, node, decision, layer, least)


@no_refcount
def _loosest(rows: Rows, points: Points, vectors: Vectors, node: int, decision: int, layer: int) -> int:
    """Return the child that contributes most to the gap among those to be interpolated anew, -1 if there is none."""
    index, cell = points.slice_of[node] * rows.n_decisions + decision, points.row[node] * rows.n_decisions + decision
    best, highest = -1, 0.0
    for i in range(rows.groups[index + 1] - rows.groups[index]):
        follower = points.child_node[points.child[cell] + i]
        if follower >= 0 and _is_stale(points, follower):
            _renew_lower(rows, points, vectors, follower, layer - rows.shift)
            share = points.child_chance[points.child[cell] + i] * _gap(points, follower, layer - rows.shift)
            if share > highest:
                best, highest = follower, share
    return best


@no_refcount
def _trial(
    rows: Rows, points: Points, vectors: Vectors, lp: Programme, grid: Grid | None, work: Work, start: int, layer: int,
    gap: float, eager: bool, interpolates: bool,
) -> bool:  # fmt: skip
    """Follow the gap from a start and improve the bounds on the way back; returns False if there was no room."""
    length, least, node = 0, TRIAL_SHARE * gap, start
    has_room = True
    while length < work.path.shape[0] and node >= 0:
        if not _has_room(rows, points, vectors, work, eager):
            has_room = False
            break
        work.path[length, 0], work.path[length, 1] = node, layer
        points.visited[node] = layer
        length += 1
        least /= rows.discount
        node = _step(rows, points, vectors, lp, grid, work, node, layer, least, eager, interpolates)
        layer -= rows.shift
    improvement = _least_improvement(rows, gap)
    for i in range(length - 1, -1, -1):
        node, layer = work.path[i, 0], work.path[i, 1]
        _renew_followed(rows, points, work, node)
        if not _has_room(rows, points, vectors, work, False):
            return False
        _back_up_lower(rows, points, vectors, work, node, layer, improvement)
    return has_room


@no_refcount
def _least_improvement(rows: Rows, gap: float) -> float:
    """Return by how much a vector has to improve a node to be added, given the gap at the start."""
    return LEAST_IMPROVEMENT * gap * max(1.0 - rows.discount, LEAST_STEP_OF_LIFE if rows.shift == 1 else LEAST_STEP)


@no_refcount
def _renew_followed(rows: Rows, points: Points, work: Work, node: int) -> None:
    """Lower the bounds of an expanded node by those of all children of decisions that are followed."""
    for decision in range(rows.n_decisions):
        if points.child[points.row[node] * rows.n_decisions + decision] >= 0:
            _renew_bound(rows, points, work, node, decision)
    _renew_upper(rows, points, node)


@compiled
def run_trials(
    rows: Rows, points: Points, vectors: Vectors, lp: Programme, grid: Grid | None, work: Work, starts: Any, weights: Any,
    layer: int, times: int, tolerance: float, eager: bool, interpolates: bool,
) -> int:  # fmt: skip
    """Run trials until the gap at the start is at most `tolerance`; returns `FULL` if there was no room, otherwise `DONE`."""
    for _ in range(times):
        gap, best, highest = 0.0, -1, 0.0
        for i in range(starts.shape[0]):
            _renew_lower(rows, points, vectors, starts[i], layer)
            own = weights[i] * _gap(points, starts[i], layer)
            gap += own
            if own > highest or best < 0:
                best, highest = i, own
        if gap <= tolerance:
            break
        own_gap = _gap(points, starts[best], layer)
        if not _trial(rows, points, vectors, lp, grid, work, starts[best], layer, own_gap, eager, interpolates):
            return FULL
    return DONE


@compiled
def sweep(
    rows: Rows, points: Points, vectors: Vectors, lp: Programme, grid: Grid | None, work: Work, first: int, times: int,
    gap: float, interpolates: bool,
) -> int:  # fmt: skip
    """Improve the bounds of `times` rows downwards from row `first`; returns the row to go on with, -1 at the end, -2 if full.

    The highest decisions are followed and their children bounded by interpolation, as in a trial, in the layer of the last one.
    """
    improvement = _least_improvement(rows, gap)
    row = first
    while row >= 0 and times > 0:
        node = points.node_of_row[row]
        _renew_followed(rows, points, work, node)
        layer = points.visited[node]
        if layer >= 0 and _gap(points, node, layer) > improvement:
            if not _has_room(rows, points, vectors, work, False):
                return -2
            _step(rows, points, vectors, lp, grid, work, node, layer, SWEEP_GAP * gap, False, interpolates)
            if not _has_room(rows, points, vectors, work, False):
                return -2
            _back_up_lower(rows, points, vectors, work, node, layer, improvement)
        row -= 1
        times -= 1
    return row


@compiled
def renew(rows: Rows, points: Points, work: Work, place: int, times: int) -> int:
    """Lower bounds by those of other nodes, without following or interpolating anything anew; returns the place to go on with.

    A renewal goes over all nodes, by their mixtures, and then over all rows, by their children: places count both, from
    `n_nodes + n_rows` down to 0, where it is done.
    """
    n_rows = points.counts[ROWS]
    while place > 0 and times > 0:
        place -= 1
        times -= 1
        if place >= n_rows:
            _renew_mixed(rows, points, work, place - n_rows)
        else:
            _renew_followed(rows, points, work, points.node_of_row[place])
    return place


@compiled
def look_ahead(
    rows: Rows, vectors: Vectors, work: Work, states: Any, probabilities: Any, layer: int, result: Any
) -> None:
    """Write lower bounds of all decisions in a belief of one slice to `result`, float64 (D,): one step, then the best vector."""
    n = rows.n_decisions
    in_slice = rows.slice_of[states[0]]
    for decision in range(n):
        index, reward = in_slice * n + decision, 0.0
        origin = rows.group_slots[rows.groups[index]]
        for i in range(rows.group_slots[rows.groups[index + 1]] - origin):
            work.mass[i] = 0.0
        for i in range(states.shape[0]):
            row = states[i] * n + decision
            reward += probabilities[i] * rows.rewards[row]
            for entry in range(rows.offsets[row], rows.offsets[row + 1]):
                work.mass[rows.slots[entry] - origin] += probabilities[i] * rows.probabilities[entry]
        total = 0.0
        for group in range(rows.groups[index], rows.groups[index + 1]):
            best = -np.inf
            vector = vectors.last[rows.group_slice[group], layer - rows.shift]
            while vector >= 0:
                value = 0.0
                for slot in range(rows.group_slots[group], rows.group_slots[group + 1]):
                    if work.mass[slot - origin] > 0.0:
                        place = vectors.begin[vector] + rows.position[rows.slot_state[slot]]
                        value += work.mass[slot - origin] * vectors.values[place]
                best = max(best, value)
                vector = vectors.before[vector]
            total += best
        result[decision] = reward + rows.discount * total
