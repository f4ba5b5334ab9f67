"""Sweeps of value iteration on a tensor product of component beliefs, and the bound that they give at any product belief.

See `planning/tensor_grid.py` for the mathematics. There are always `N_PARTS` components here: those that a system lacks come
first and have one state, one choice and one point. Component c has K_c grid points, of which the first are the corners of its
simplex.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.dynamics import EPSILON
from actmeasure.kernels.jit import compiled, no_refcount

__all__ = [
    "MOST_STATES",
    "N_PARTS",
    "Grid",
    "Parts",
    "Rows",
    "grid_bound",
    "locate",
    "simulate",
    "successor_rows",
    "sweep",
]

#: Number of components of the arrays, and most states of each.
N_PARTS, MOST_STATES = 4, 4
#: A point is inside a simplex if no barycentric coordinate is below this; the error is accounted for.
INSIDE = -1e-14
#: Where all barycentric coordinates that were found have one below this, the corners are used instead.
OUTSIDE = -1e-9


class Grid(NamedTuple):
    """Component grids with their triangulations, and upper bounds at all combinations of grid points.

    Simplices and cells of component c are numbered from `first_simplex[c]` and `first_cell[c]`. A cell is a cube of beliefs in
    the coordinates of all states but the last, `resolution[c]` along each; it lists the simplices that may intersect it.
    """

    values: Any  # float64 (K_0 * K_1 * K_2 * K_3,), the last component changing fastest
    sizes: Any  # int64 (N_PARTS,): K_c
    n_states: Any  # int64 (N_PARTS,)
    digits: Any  # int64 (N_PARTS, S): the state of each component in each joint state
    points: Any  # float64 (N_PARTS, largest K, MOST_STATES)
    first_simplex: Any  # int64 (N_PARTS,)
    vertices: Any  # int64 (n_simplices, MOST_STATES): numbers of points
    inverses: Any  # float64 (n_simplices, MOST_STATES, MOST_STATES): barycentric coordinates are this times the belief
    first_cell: Any  # int64 (N_PARTS,)
    resolution: Any  # int64 (N_PARTS,)
    cell_offsets: Any  # int64 (n_cells + 1,)
    cell_simplices: Any  # int64 (n_listed,)
    span: float  # at least the difference between any two values of one policy
    scale: float  # at least the absolute value of every entry of `values`
    # Scratch memory, each (N_PARTS, MOST_STATES):
    marginals: Any  # float64
    chosen: Any  # int64: grid points
    weights: Any  # float64


class Parts(NamedTuple):
    """The factors of a system as padded arrays."""

    n_states: Any  # int64 (N_PARTS,)
    n_choices: Any  # int64 (N_PARTS,)
    n_outcomes: Any  # int64 (N_PARTS, most choices)
    transitions: Any  # float64 (N_PARTS, most choices, MOST_STATES, MOST_STATES)
    laws: Any  # float64 (N_PARTS, most choices, MOST_STATES, most outcomes)
    costs: Any  # float64 (N_PARTS, most choices, MOST_STATES)
    start: Any  # float64 (N_PARTS, MOST_STATES)
    mobilisation: float
    discount: float


class Rows(NamedTuple):
    """For each component and choice the matrix of interpolated successors, as compressed rows over grid points."""

    offsets: Any  # int64 (N_PARTS, most choices, largest K + 1)
    columns: Any  # int64 (n_entries,)
    weights: Any  # float64 (n_entries,)
    costs: Any  # float64 (N_PARTS, most choices, largest K): expected cost of the choice at the grid point
    n_choices: Any  # int64 (N_PARTS,)
    sizes: Any  # int64 (N_PARTS,)


@no_refcount
def locate(grid: Grid, part: int, belief: Any, vertices: Any, weights: Any) -> float:
    """Write grid points and weights whose mean is a component's belief; returns the l1 distance of that mean from it.

    Weights are 0 or more and sum to 1 up to rounding.

    Parameters
    ----------
    belief : float64 array, shape (MOST_STATES,)
    vertices, weights : int64 and float64 arrays, shape (MOST_STATES,)
        To be written; as many entries as the component has states.
    """
    n_states = grid.n_states[part]
    if n_states == 1:
        vertices[0], weights[0] = 0, 1.0
        return 0.0
    resolution = grid.resolution[part]
    cell = 0
    for s in range(n_states - 1):
        cell = cell * resolution + min(resolution - 1, max(0, int(belief[s] * resolution)))
    cell += grid.first_cell[part]
    best, least = -1, OUTSIDE
    for entry in range(grid.cell_offsets[cell], grid.cell_offsets[cell + 1]):
        simplex = grid.cell_simplices[entry]
        smallest = 1.0
        for k in range(n_states):
            coordinate = 0.0
            for s in range(n_states):
                coordinate += grid.inverses[simplex, k, s] * belief[s]
            smallest = min(smallest, coordinate)
            if smallest <= least:
                break
        if smallest > least:
            best, least = simplex, smallest
            if least >= INSIDE:
                break
    if best < 0:
        for s in range(n_states):
            vertices[s], weights[s] = s, belief[s]
        return 0.0
    total = 0.0
    for k in range(n_states):
        coordinate = 0.0
        for s in range(n_states):
            coordinate += grid.inverses[best, k, s] * belief[s]
        vertices[k], weights[k] = grid.vertices[best, k], max(0.0, coordinate)
        total += weights[k]
    for k in range(n_states):
        weights[k] /= total
    distance = 0.0
    for s in range(n_states):
        mean = 0.0
        for k in range(n_states):
            mean += weights[k] * grid.points[part, vertices[k], s]
        distance += abs(mean - belief[s])
    return distance


@no_refcount
def grid_bound(grid: Grid, states: Any, probabilities: Any, first: int, size: int) -> float:
    """Return an upper bound on the optimal value at a joint belief that is a product of component beliefs.

    The belief has joint states and their probabilities, which sum to 1, in `size` entries of the arrays from `first` on.
    """
    marginals = grid.marginals
    for part in range(N_PARTS):
        for state in range(MOST_STATES):
            marginals[part, state] = 0.0
    for k in range(first, first + size):
        joint, probability = states[k], probabilities[k]
        for part in range(N_PARTS):
            marginals[part, grid.digits[part, joint]] += probability
    return marginal_bound(grid, marginals)


@no_refcount
def marginal_bound(grid: Grid, marginals: Any) -> float:
    """Return an upper bound on the optimal value at the product of component beliefs, float64 (N_PARTS, MOST_STATES)."""
    vertices, weights = grid.chosen, grid.weights
    distance = 0.0
    for part in range(N_PARTS):
        distance += locate(grid, part, marginals[part], vertices[part], weights[part])
    total = 0.0
    k1, k2, k3 = grid.sizes[1], grid.sizes[2], grid.sizes[3]
    for a in range(grid.n_states[0]):
        weight_0 = weights[0, a]
        if weight_0 == 0.0:
            continue
        for b in range(grid.n_states[1]):
            weight_1 = weight_0 * weights[1, b]
            if weight_1 == 0.0:
                continue
            first = (vertices[0, a] * k1 + vertices[1, b]) * k2
            for c in range(grid.n_states[2]):
                weight_2 = weight_1 * weights[2, c]
                if weight_2 == 0.0:
                    continue
                row = (first + vertices[2, c]) * k3
                inner_total = 0.0
                for d in range(grid.n_states[3]):
                    inner_total += weights[3, d] * grid.values[row + vertices[3, d]]
                total += weight_2 * inner_total
    return total + (0.5 * distance + 256 * EPSILON) * grid.span + 256 * EPSILON * grid.scale


@no_refcount
def successors(parts: Parts, part: int, choice: int, belief: Any, chances: Any, after: Any) -> int:
    """Write the probability of each outcome of a choice and the belief of the component after it; returns their number.

    Beliefs after outcomes of probability 0 are not written.

    Parameters
    ----------
    belief : float64 array, shape (MOST_STATES,)
    chances : float64 array, shape (most outcomes,)
    after : float64 array, shape (most outcomes, MOST_STATES)
    """
    n_states, n_outcomes = parts.n_states[part], parts.n_outcomes[part, choice]
    for outcome in range(n_outcomes):
        chances[outcome] = 0.0
    for t in range(n_states):
        moved = 0.0
        for s in range(n_states):
            moved += belief[s] * parts.transitions[part, choice, s, t]
        for outcome in range(n_outcomes):
            weight = moved * parts.laws[part, choice, t, outcome]
            after[outcome, t] = weight
            chances[outcome] += weight
    for outcome in range(n_outcomes):
        if chances[outcome] > 0.0:
            for t in range(n_states):
                after[outcome, t] /= chances[outcome]
    return int(n_outcomes)


@compiled
def successor_rows(grid: Grid, parts: Parts, part: int, choice: int, matrix: Any) -> float:
    """Write the mean interpolation weights of a choice's successors, float64 (K, K); returns the largest mean distance.

    Entry (i, j) is the sum over outcomes of their probability at point i times the weight of point j in the interpolation of the
    belief after it. The distance is that of `locate`.
    """
    most_outcomes = parts.laws.shape[3]
    chances, after = np.empty(most_outcomes), np.empty((most_outcomes, MOST_STATES))
    vertices, weights = np.empty(MOST_STATES, np.int64), np.empty(MOST_STATES)
    largest = 0.0
    for point in range(grid.sizes[part]):
        distance = 0.0
        n_outcomes = successors(parts, part, choice, grid.points[part, point], chances, after)
        for outcome in range(n_outcomes):
            if chances[outcome] > 0.0:
                distance += chances[outcome] * locate(grid, part, after[outcome], vertices, weights)
                for k in range(grid.n_states[part]):
                    matrix[point, vertices[k]] += chances[outcome] * weights[k]
        largest = max(largest, distance)
    return largest


@compiled
def combine(rows: Rows, part: int, choice: int, point: int, source: Any, target: Any) -> None:
    """Write the weighted sum of rows of `source`, float64 (K, n), by a row of the matrix of a choice, to `target`, (n,)."""
    size = target.shape[0]
    begin, end = rows.offsets[part, choice, point], rows.offsets[part, choice, point + 1]
    first = source[rows.columns[begin]]
    weight = rows.weights[begin]
    for k in range(size):
        target[k] = weight * first[k]
    entry = begin + 1
    while entry + 1 < end:
        one, two = source[rows.columns[entry]], source[rows.columns[entry + 1]]
        weight_one, weight_two = rows.weights[entry], rows.weights[entry + 1]
        for k in range(size):
            target[k] += weight_one * one[k] + weight_two * two[k]
        entry += 2
    if entry < end:
        one, weight_one = source[rows.columns[entry]], rows.weights[entry]
        for k in range(size):
            target[k] += weight_one * one[k]


@compiled
def sweep(rows: Rows, penalty: Any, mobilisation: float, discount: float, error: float, values: Any, out: Any) -> float:
    """Make one sweep of value iteration over all grid points; returns the largest change, which is 0 or less.

    The value of joint choices at a point is minus its costs, plus the discount times the sum over points of the product of one
    matrix per component. Products are formed component by component, and shared by all choices of the components that follow.

    Parameters
    ----------
    penalty : float64 array, shape (K_0, K_1, K_2, K_3)
        Expected penalty.
    error : float
        Added to each value: at least what rounding and inexact interpolation may take from it.
    values, out : float64 arrays, shape (K_0, K_1, K_2, K_3)
        Upper bounds before the sweep and, not above them, after it.
    """
    k0, k1, k2, k3 = rows.sizes[0], rows.sizes[1], rows.sizes[2], rows.sizes[3]
    n0, n1, n2, n3 = rows.n_choices[0], rows.n_choices[1], rows.n_choices[2], rows.n_choices[3]
    flat = values.reshape(k0, k1 * k2 * k3)
    slabs = np.empty((n0, k1 * k2 * k3))
    block, matrix, turned = np.empty(k2 * k3), np.empty(k3), np.empty((k3, k2))
    best, line = np.empty((k3, k2)), np.empty(k2)
    largest = -np.inf
    for i0 in range(k0):
        for u0 in range(n0):
            combine(rows, 0, u0, i0, flat, slabs[u0])
        for i1 in range(k1):
            best[:] = -np.inf
            for u0 in range(n0):
                slab = slabs[u0].reshape(k1, k2 * k3)
                for u1 in range(n1):
                    combine(rows, 1, u1, i1, slab, block)
                    plane = block.reshape(k2, k3)
                    cost_01 = rows.costs[0, u0, i0] + rows.costs[1, u1, i1]
                    for u2 in range(n2):
                        for i2 in range(k2):
                            combine(rows, 2, u2, i2, plane, matrix)
                            # The cost of this choice is carried along: weights of the last component sum to 1.
                            cost = rows.costs[2, u2, i2]
                            for i3 in range(k3):
                                turned[i3, i2] = discount * matrix[i3] - cost
                        for u3 in range(n3):
                            fee = 0.0 if u0 + u1 + u2 + u3 == 0 else mobilisation
                            for i3 in range(k3):
                                combine(rows, 3, u3, i3, turned, line)
                                paid = cost_01 + rows.costs[3, u3, i3] + fee
                                row = best[i3]
                                for i2 in range(k2):
                                    found = line[i2] - paid
                                    row[i2] = found if found > row[i2] else row[i2]
            for i2 in range(k2):
                for i3 in range(k3):
                    found = best[i3, i2] - penalty[i0, i1, i2, i3] + error
                    before = values[i0, i1, i2, i3]
                    largest = max(largest, found - before)
                    out[i0, i1, i2, i3] = min(found, before)
    return largest


@compiled
def simulate(grid: Grid, parts: Parts, uniforms: Any, explore: float, beliefs: Any, weights: Any, counts: Any) -> None:
    """Simulate episodes that act greedily on the bounds of a grid, and record the component beliefs that they lead to.

    Parameters
    ----------
    uniforms : float64 array, shape (n_episodes, n_steps, 2 * N_PARTS + 1)
        Random numbers in [0, 1).
    explore : float
        Probability of a random choice of every component.
    beliefs : float64 array, shape (N_PARTS, n, MOST_STATES)
        Written: beliefs after each outcome of the choices made; recording ends where there is no room.
    weights : float64 array, shape (N_PARTS, n)
        Written: discount to the power of the step, times the probability of the outcome.
    counts : int64 array, shape (N_PARTS,)
        Written: number of beliefs recorded.
    """
    most_choices, most_outcomes = parts.laws.shape[1], parts.laws.shape[3]
    now, chosen = np.zeros((N_PARTS, MOST_STATES)), np.zeros(N_PARTS, np.int64)
    chances = np.zeros((N_PARTS, most_choices, most_outcomes))
    after = np.zeros((N_PARTS, most_choices, most_outcomes, MOST_STATES))
    widest = 0
    for part in range(N_PARTS):
        widest = max(widest, grid.sizes[part])
    # Interpolation of what each choice leads to: distinct points, their weights, and where each point is among them.
    most = min(widest, most_outcomes * MOST_STATES)
    n_ahead = np.zeros((N_PARTS, most_choices), np.int64)
    ahead = np.zeros((N_PARTS, most_choices, most), np.int64)
    share = np.zeros((N_PARTS, most_choices, most))
    place = np.full(widest, -1)
    paid = np.zeros((N_PARTS, most_choices))
    vertices, parted = np.zeros(MOST_STATES, np.int64), np.zeros(MOST_STATES)
    counts[:] = 0
    k1, k2, k3 = grid.sizes[1], grid.sizes[2], grid.sizes[3]
    for episode in range(uniforms.shape[0]):
        now[:] = parts.start
        factor = 1.0
        for step in range(uniforms.shape[1]):
            for part in range(N_PARTS):
                for choice in range(parts.n_choices[part]):
                    n_outcomes = successors(parts, part, choice, now[part], chances[part, choice], after[part, choice])
                    size = 0
                    for outcome in range(n_outcomes):
                        chance = chances[part, choice, outcome]
                        if chance > 0.0:
                            locate(grid, part, after[part, choice, outcome], vertices, parted)
                            for k in range(grid.n_states[part]):
                                if parted[k] > 0.0:
                                    at = place[vertices[k]]
                                    if at < 0:
                                        at = size
                                        place[vertices[k]] = at
                                        ahead[part, choice, at] = vertices[k]
                                        share[part, choice, at] = 0.0
                                        size += 1
                                    share[part, choice, at] += chance * parted[k]
                    n_ahead[part, choice] = size
                    for k in range(size):
                        place[ahead[part, choice, k]] = -1
                    cost = 0.0
                    for s in range(parts.n_states[part]):
                        cost += now[part, s] * parts.costs[part, choice, s]
                    paid[part, choice] = cost
            if uniforms[episode, step, 2 * N_PARTS] < explore:
                for part in range(N_PARTS):
                    chosen[part] = int(uniforms[episode, step, N_PARTS + part] * parts.n_choices[part])
            else:
                best = -np.inf
                for u0 in range(parts.n_choices[0]):
                    for u1 in range(parts.n_choices[1]):
                        for u2 in range(parts.n_choices[2]):
                            for u3 in range(parts.n_choices[3]):
                                total = 0.0
                                for a in range(n_ahead[0, u0]):
                                    for b in range(n_ahead[1, u1]):
                                        weight_1 = share[0, u0, a] * share[1, u1, b]
                                        first = (ahead[0, u0, a] * k1 + ahead[1, u1, b]) * k2
                                        for c in range(n_ahead[2, u2]):
                                            row = (first + ahead[2, u2, c]) * k3
                                            mean = 0.0
                                            for d in range(n_ahead[3, u3]):
                                                mean += share[3, u3, d] * grid.values[row + ahead[3, u3, d]]
                                            total += weight_1 * share[2, u2, c] * mean
                                fee = 0.0 if u0 + u1 + u2 + u3 == 0 else parts.mobilisation
                                cost = paid[0, u0] + paid[1, u1] + paid[2, u2] + paid[3, u3] + fee
                                if parts.discount * total - cost > best:
                                    best = parts.discount * total - cost
                                    chosen[0], chosen[1], chosen[2], chosen[3] = u0, u1, u2, u3
            for part in range(N_PARTS):
                choice = chosen[part]
                left, taken = uniforms[episode, step, part], -1
                for outcome in range(parts.n_outcomes[part, choice]):
                    chance = chances[part, choice, outcome]
                    if chance > 0.0:
                        if counts[part] < beliefs.shape[1]:
                            beliefs[part, counts[part]] = after[part, choice, outcome]
                            weights[part, counts[part]] = factor * chance
                            counts[part] += 1
                        if taken < 0 or left >= 0.0:
                            taken = outcome
                        left -= chance
                for s in range(parts.n_states[part]):
                    now[part, s] = after[part, choice, taken, s]
            factor *= parts.discount
