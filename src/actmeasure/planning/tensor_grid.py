r"""An upper bound for systems of independent components: value iteration on a tensor product of component-belief grids.

*Beliefs are products.* Components of a system (`model.system`) start, evolve and are observed independently of each other, so
that every belief is b = b_1 x .. x b_N. Let V*(b_1, .., b_N) be the optimal value at it. V* is convex in the joint belief, and
the product is linear in each b_c while the others are held fixed: hence V* is convex in each b_c.

*Interpolation.* Component c has grid points g_c,1 .. g_c,K, the corners of its simplex among them, and a triangulation of these:
each b_c is the mean of grid points with weights w_c,j(b_c). If U bounds V* from above at all combinations of grid points,
applying convexity to one component after the other gives, at every product belief,

    V*(b) <= sum_j1 .. sum_jN  w_1,j1(b_1) .. w_N,jN(b_N)  U(j1, .., jN).                                            (1)

*Value iteration.* A choice u_c of a component (an action and perhaps a measurement) leads from the point g_c,i with probability
p_c(o) to the belief b_c,o. With (1) in the Bellman equation and the stochastic matrices

    M_c,u[i, j] = sum_o p_c(o) w_c,j(b_c,o)                                                                            (2)

the operator

    (T U)(i) = max_u  R(i, u) + g  sum_j M_1,u1[i1, j1] .. M_N,uN[iN, jN]  U(j)                                        (3)

maps upper bounds to upper bounds, and every sweep of it is sound. Sums are mode products: one component after the other, shared
by all choices of the components that follow. R is minus the penalty, which is multilinear in the b_c, minus a cost for each
component, minus the mobilisation. T is monotone and T(U + z) = T U + g z for constants z, so that for its fixed point U*

    U* <= T U + g / (1 - g) max_i ((T U)(i) - U(i)):

where every value falls in a sweep, all are lowered by that at once.

*Levels.* The first grid has only the corners, on which (3) is the MDP in which the state is always known; values begin at the
largest reward / (1 - g). Each following grid has all points of the one before, and begins with (1) of its bounds. New points are
beliefs that greedy policies on the present bounds come by in simulated episodes, where these matter: each round adds a point in
each of the simplices with the largest sum of discounted visits times the variance of the interpolation,
sum_j w_j |g_j|^2 - |b|^2. The triangulation is Delaunay's, which minimises that variance.

*Rounding.* Weights are computed for a belief that differs from the one wanted by a distance d in the l1 norm, which is measured.
As the value of each policy is linear in b_c with values in an interval of the length `span` = (largest - smallest reward, prices
included) / (1 - g), V* changes by at most d span / 2. Sums of products have a relative error of `relative_error` of their number
of terms. Both are added in each sweep (`error`) and to each bound, some 1e-13 of the size of the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import spatial

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.kernels import tensor_grid as kernel
from actmeasure.kernels.dynamics import EPSILON, relative_error
from actmeasure.kernels.tensor_grid import MOST_STATES, N_PARTS, Grid, Parts, Rows
from actmeasure.model import Model
from actmeasure.model.system import Factors
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget

__all__ = ["TensorGrid", "tensor_grid"]

#: Points of each component on the levels, by the number of components.
LEVELS = {1: (12, 60, 300), 2: (12, 60, 250), 3: (10, 30, 91), 4: (8, 14, 20, 28, 36)}
#: Estimated relative change of the start's bound that is still to come, at which a level ends: the last one, and those before.
LAST_CHANGE, CHANGE = 1e-5, 1e-3
#: Factor by which changes that are still to come may exceed those of a sweep.
ELSEWHERE = 30.0
#: Sweeps for which there has to be time before a level is begun.
LEAST_SWEEPS = 12
#: Most sweeps on a level.
MOST_SWEEPS = 5_000
#: Simulated steps before each level, the share of them with random choices, and the discounted weight at which episodes end.
STEPS, EXPLORE, LEAST_WEIGHT = 6_000, 0.2, 1e-3
#: Points that are added in a round, as a fraction of those there are.
ADDED = 0.1
#: Candidates for points of a component that are kept, those with the largest weight.
MOST_CANDIDATES = 4_000
#: Smallest determinant of the points of a simplex.
LEAST_VOLUME = 1e-10
#: Cells along each coordinate, by the number of coordinates, for finding the simplex of a belief.
RESOLUTION = {0: 1, 1: 256, 2: 48, 3: 14}
#: Beliefs that differ by less in each coordinate are one candidate, and smallest l1 distance of a candidate from all points.
SAME_BELIEF, LEAST_DISTANCE = 1e-6, 1e-4


@dataclass(frozen=True, eq=False)
class TensorGrid:
    """Upper bounds on the optimal value at all product beliefs of a system.

    Attributes
    ----------
    model : Model
    kernel : Grid
        Arrays for `kernels.tensor_grid.grid_bound`.
    start_bound : float
        Upper bound on the optimal value at the start.
    record : list of (points, start bound) pairs
        After each sweep: number of combinations of grid points, and the bound at the start.
    """

    model: Model
    kernel: Grid
    start_bound: float
    record: list[tuple[int, float]]

    def bound(self, belief: Belief) -> float:
        """Return an upper bound on the optimal value at a belief, which must be a product of component beliefs."""
        # Copies, as arrays of beliefs may be read-only, and the kernel would be compiled for both.
        return float(
            kernel.grid_bound(self.kernel, belief.states.copy(), belief.probabilities.copy(), 0, len(belief.states))
        )


def tensor_grid(model: Model, budget: Budget, levels: tuple[int, ...] | None = None, seed: int = 0) -> TensorGrid:
    """Return upper bounds at all product beliefs of a system, as tight as the budget allows; they are sound whenever it ends.

    Parameters
    ----------
    model : Model
        Of `actmeasure.system`, with its factors.
    budget : Budget
        Checked after each sweep. Where only the work is limited, or nothing, the result is the same on every machine.
    levels : tuple of int, optional
        Points of each component on the grids that follow the first; by default chosen by the number of components.
    seed : int
        Of the simulation that finds the points.
    """
    factors = model.origin
    if not isinstance(factors, Factors):
        raise PlanError(
            "a tensor grid needs the factors of a system of independent components, and this model has none; make it with "
            "actmeasure.system, and do not change it with replace"
        )
    return _Builder(model, factors, budget, seed).build(LEVELS[len(factors.components)] if levels is None else levels)


class _Builder:
    """The grid while it is refined.

    Attributes
    ----------
    points : list of float64 arrays, shape (K, S)
        Of each component, padded ones included; the corners come first.
    values : float64 array, shape (K_0, .., K_3)
    """

    def __init__(self, model: Model, factors: Factors, budget: Budget, seed: int) -> None:
        self.model, self.factors, self.budget = model, factors, budget
        self.parts = _padded(factors, model.discount)
        self.rng = np.random.default_rng(seed)
        sizes: list[int] = self.parts.n_states.tolist()
        self.digits = np.stack(np.unravel_index(np.arange(model.n_states), sizes)).astype(np.int64)
        self.penalty = factors.penalty.reshape(sizes)
        self.points = [np.eye(size) for size in sizes]
        prices = [measurement.table(model.n_states, model.n_actions) for measurement in model.measurements]
        smallest = model.rewards - np.max(prices, axis=0) if prices else model.rewards
        highest, lowest = float(model.rewards.max()), float(smallest.min())
        steps = (1 + 8 * EPSILON) / (1 - model.discount)
        self.span = (highest - lowest) * steps
        self.scale = max(abs(highest), abs(lowest)) * steps
        self.values = np.full(
            sizes, highest * steps if highest > 0 else highest / (1 - model.discount) * (1 - 8 * EPSILON)
        )
        self.record: list[tuple[int, float]] = []
        self.grid = self._grid(self.values)
        self.seconds_per_point = 0.0

    def build(self, levels: tuple[int, ...]) -> TensorGrid:
        """Refine the grid level by level until all are done or the budget is over."""
        self._iterate(CHANGE if levels else LAST_CHANGE)
        for level, size in enumerate(levels):
            affordable = self._affordable(size)
            if self.budget.is_over or affordable <= max(len(own) for own in self.points):
                break
            self._refine(affordable)
            self._iterate(LAST_CHANGE if level == len(levels) - 1 else CHANGE)
        return TensorGrid(self.model, self.grid, min(bound for _, bound in self.record), self.record)

    def _affordable(self, size: int) -> int:
        """Return the points of each component, at most `size`, with which the remaining time is enough for `LEAST_SWEEPS`."""
        n_parts = len(self.factors.components)
        needed = self.seconds_per_point * float(size) ** n_parts * LEAST_SWEEPS
        remaining = self.budget.remaining
        return size if needed <= remaining else int(size * max(0.0, remaining / needed) ** (1 / n_parts))

    def _start_bound(self) -> float:
        return float(kernel.marginal_bound(self.grid, self.parts.start))

    # Value iteration.

    def _iterate(self, enough: float) -> None:
        """Sweep until the estimated change that is still to come is below `enough` of the bound, or the budget is over."""
        rows, distance, terms = self._rows()
        penalty = _means(self.penalty, self.points)
        discount = self.model.discount
        largest_payment = self.scale * (1 - discount)
        error = discount * (0.5 * distance + 64 * EPSILON) * self.span
        error += float(relative_error(terms)) * (self.scale + 3 * largest_payment)
        out = np.empty_like(self.values)
        before, change_before = self._start_bound(), 0.0
        begun, first = self.budget.elapsed, len(self.record)
        for _ in range(MOST_SWEEPS):
            largest = kernel.sweep(rows, penalty, self.parts.mobilisation, discount, error, self.values, out)
            # All values fell: so does every fixed point, by at least this much more.
            shift = discount / (1 - discount) * (largest + error) * (1 - 1e-9)
            if shift < 0:
                out += shift + EPSILON * self.scale
                np.minimum(out, self.values, out=out)
            self.values, out = out, self.values
            self.grid = self.grid._replace(values=self.values.reshape(-1))
            bound = self._start_bound()
            self.record.append((self.values.size, bound))
            change = before - bound
            rate = min(max(change / change_before, 0.5), discount) if change_before > 0 else discount
            # Where a change has not reached the start yet, it shows elsewhere.
            elsewhere = float((out - self.values).max()) * discount / (1 - discount)
            is_still = elsewhere <= ELSEWHERE * enough * float(np.abs(self.values).max())
            if (is_still and change * rate / (1 - rate) <= enough * abs(bound)) or self.budget.is_over:
                break
            before, change_before = bound, change
        self.seconds_per_point = (self.budget.elapsed - begun) / (self.values.size * (len(self.record) - first))

    def _rows(self) -> tuple[Rows, float, int]:
        """Return the matrices (2), the largest distance of interpolated beliefs, and the number of terms of sums."""
        sizes, n_choices = self.grid.sizes, self.parts.n_choices
        offsets = np.zeros((N_PARTS, int(n_choices.max()), int(sizes.max()) + 1), np.int64)
        costs = np.zeros((N_PARTS, int(n_choices.max()), int(sizes.max())))
        columns, weights = [], []
        begin, total_distance, terms = 0, 0.0, 16
        for part in range(N_PARTS):
            largest, widest = 0.0, 0
            for choice in range(int(n_choices[part])):
                matrix = np.zeros((sizes[part], sizes[part]))
                largest = max(largest, kernel.successor_rows(self.grid, self.parts, part, choice, matrix))
                row, column = np.nonzero(matrix)
                counts = np.bincount(row, minlength=sizes[part])
                offsets[part, choice, 0] = begin
                offsets[part, choice, 1 : sizes[part] + 1] = begin + np.cumsum(counts)
                begin += len(row)
                columns.append(column)
                weights.append(matrix[row, column])
                widest = max(widest, int(counts.max()))
                n_states = self.parts.n_states[part]
                costs[part, choice, : sizes[part]] = self.points[part] @ self.parts.costs[part, choice, :n_states]
            total_distance += largest
            terms += widest + 4
        rows = Rows(offsets, np.concatenate(columns), np.concatenate(weights), costs, n_choices, sizes)
        return rows, total_distance, terms

    # Points.

    def _refine(self, size: int) -> None:
        """Add points until each component has `size`, and interpolate the bounds at them."""
        chosen = self._visited(STEPS)
        points = [
            _with_points(own, *candidates, size) if own.shape[1] > 1 else own
            for own, candidates in zip(self.points, chosen, strict=True)
        ]
        matrices, distance = [], 0.0
        vertices, weights = np.zeros(MOST_STATES, np.int64), np.zeros(MOST_STATES)
        padded = np.zeros(MOST_STATES)
        for part, (old, new) in enumerate(zip(self.points, points, strict=True)):
            matrix = np.zeros((len(new), len(old)))
            matrix[np.arange(len(old)), np.arange(len(old))] = 1.0
            largest = 0.0
            for row in range(len(old), len(new)):
                padded[: new.shape[1]] = new[row]
                largest = max(largest, kernel.locate(self.grid, part, padded, vertices, weights))
                matrix[row, vertices[: new.shape[1]]] = weights[: new.shape[1]]
            matrices.append(matrix)
            distance += largest
        error = (0.5 * distance + 64 * EPSILON) * self.span
        error += float(relative_error(sum(len(old) for old in self.points))) * self.scale
        self.values = np.ascontiguousarray(_means(self.values, matrices) + error)
        self.points = points
        self.grid = self._grid(self.values)

    def _visited(self, steps: int) -> list[tuple[FloatArray, FloatArray]]:
        """Return component beliefs that greedy policies come by, shape (n, S), and how often, shape (n,)."""
        length = max(1, min(math.ceil(math.log(LEAST_WEIGHT) / math.log(self.model.discount)), steps // 20))
        uniforms = self.rng.random((max(1, steps // length), length, 2 * N_PARTS + 1))
        room = uniforms.shape[0] * uniforms.shape[1] * int(self.parts.n_outcomes.max())
        beliefs, weights = np.zeros((N_PARTS, room, MOST_STATES)), np.zeros((N_PARTS, room))
        counts = np.zeros(N_PARTS, np.int64)
        kernel.simulate(self.grid, self.parts, uniforms, EXPLORE, beliefs, weights, counts)
        found: list[tuple[FloatArray, FloatArray]] = []
        for part in range(N_PARTS):
            n_states, count = int(self.parts.n_states[part]), int(counts[part])
            start = self.parts.start[part : part + 1, :n_states]
            seen = np.concatenate([start, beliefs[part, :count, :n_states]])
            often = np.concatenate([[float(len(uniforms))], weights[part, :count]])
            _, first, group = np.unique(np.round(seen / SAME_BELIEF), axis=0, return_index=True, return_inverse=True)
            total = np.bincount(group.ravel(), weights=often).astype(np.float64)
            kept = np.argsort(-total, kind="stable")[:MOST_CANDIDATES]
            found.append((seen[first[kept]], total[kept]))
        return found

    def _grid(self, values: FloatArray) -> Grid:
        """Return the kernel's arrays for the present points."""
        sizes = np.array([len(own) for own in self.points], np.int64)
        padded = np.zeros((N_PARTS, int(sizes.max()), MOST_STATES))
        vertices, inverses, offsets, listed = [], [], [np.zeros(1, np.int64)], []
        first_simplex, first_cell = np.zeros(N_PARTS, np.int64), np.zeros(N_PARTS, np.int64)
        n_simplices, n_cells, n_listed = 0, 0, 0
        for part, own in enumerate(self.points):
            n_states = own.shape[1]
            padded[part, : len(own), :n_states] = own
            simplices = _triangulation(own)
            first_simplex[part], first_cell[part] = n_simplices, n_cells
            corners = np.zeros((len(simplices), MOST_STATES), np.int64)
            corners[:, :n_states] = simplices
            inverse = np.zeros((len(simplices), MOST_STATES, MOST_STATES))
            inverse[:, :n_states, :n_states] = np.linalg.inv(own[simplices].transpose(0, 2, 1))
            counts, members = _cells(own[simplices][:, :, : n_states - 1])
            vertices.append(corners)
            inverses.append(inverse)
            offsets.append(n_listed + np.cumsum(counts))
            listed.append(n_simplices + members)
            n_simplices, n_cells, n_listed = (
                n_simplices + len(simplices),
                n_cells + len(counts),
                n_listed + len(members),
            )
        return Grid(
            values=values.reshape(-1), sizes=sizes, n_states=self.parts.n_states, digits=self.digits, points=padded,
            first_simplex=first_simplex, vertices=np.concatenate(vertices), inverses=np.concatenate(inverses),
            first_cell=first_cell, resolution=np.array([RESOLUTION[own.shape[1] - 1] for own in self.points], np.int64),
            cell_offsets=np.concatenate(offsets), cell_simplices=np.concatenate(listed), span=self.span, scale=self.scale,
            marginals=np.zeros((N_PARTS, MOST_STATES)), chosen=np.zeros((N_PARTS, MOST_STATES), np.int64),
            weights=np.zeros((N_PARTS, MOST_STATES)),
        )  # fmt: skip


def _padded(factors: Factors, discount: float) -> Parts:
    """Return the factors as arrays of `N_PARTS` components; those that are missing come first and do nothing."""
    missing = N_PARTS - len(factors.components)
    most_choices = max(len(options) for options in factors.choices)
    most_outcomes = max(law.shape[1] for laws in factors.laws for law in laws)
    n_states, n_choices = np.ones(N_PARTS, np.int64), np.ones(N_PARTS, np.int64)
    n_outcomes = np.ones((N_PARTS, most_choices), np.int64)
    transitions = np.zeros((N_PARTS, most_choices, MOST_STATES, MOST_STATES))
    laws = np.zeros((N_PARTS, most_choices, MOST_STATES, most_outcomes))
    costs, start = np.zeros((N_PARTS, most_choices, MOST_STATES)), np.zeros((N_PARTS, MOST_STATES))
    transitions[:missing, 0, 0, 0] = laws[:missing, 0, 0, 0] = start[:missing, 0] = 1.0
    for c in range(len(factors.components)):
        part, size, choices = missing + c, len(factors.start[c]), len(factors.choices[c])
        n_states[part], n_choices[part] = size, choices
        transitions[part, :choices, :size, :size] = factors.transitions[c]
        costs[part, :choices, :size] = factors.costs[c]
        start[part, :size] = factors.start[c]
        for u, law in enumerate(factors.laws[c]):
            n_outcomes[part, u] = law.shape[1]
            laws[part, u, :size, : law.shape[1]] = law
    return Parts(
        n_states, n_choices, n_outcomes, transitions, laws, costs, start, float(factors.mobilisation), float(discount)
    )


def _means(tensor: FloatArray, matrices: list[FloatArray]) -> FloatArray:
    """Return the product of a tensor with a matrix along each of its axes."""
    for axis, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(tensor)


def _triangulation(points: FloatArray) -> npt.NDArray[np.int64]:
    """Return the Delaunay triangulation of beliefs: the points of each simplex, shape (n, S); flat ones are left out."""
    n_states = points.shape[1]
    if n_states == 1:
        return np.zeros((1, 1), np.int64)
    if n_states == 2:
        order = np.argsort(points[:, 0], kind="stable")
        return np.stack([order[:-1], order[1:]], axis=1)
    if len(points) == n_states:
        return np.arange(n_states)[None, :]
    simplices = spatial.Delaunay(points[:, : n_states - 1]).simplices.astype(np.int64)
    volumes = np.abs(np.linalg.det(points[simplices]))
    return np.asarray(simplices[volumes > LEAST_VOLUME])


def _cells(corners: FloatArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how many simplices may intersect each cell, and their numbers, cell by cell.

    Parameters
    ----------
    corners : float64 array, shape (n_simplices, S, S - 1)
    """
    n_axes = corners.shape[2]
    resolution = RESOLUTION[n_axes]
    low = np.clip(np.floor((corners.min(axis=1) - 1e-9) * resolution), 0, resolution - 1).astype(int)
    high = np.clip(np.floor((corners.max(axis=1) + 1e-9) * resolution), 0, resolution - 1).astype(int)
    numbers = np.arange(resolution**n_axes).reshape((resolution,) * n_axes)
    touched = [
        numbers[tuple(slice(a, b + 1) for a, b in zip(low[k], high[k], strict=True))].ravel()
        for k in range(len(corners))
    ]
    cell = np.concatenate(touched)
    simplex = np.repeat(np.arange(len(corners)), [len(one) for one in touched])
    order = np.lexsort((simplex, cell))
    return np.bincount(cell, minlength=numbers.size), simplex[order]


def _with_points(points: FloatArray, candidates: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    """Return grid points with candidates added, at most `size` in all, where visits times variance of interpolation are largest.

    Parameters
    ----------
    points : float64 array, shape (K, S)
    candidates : float64 array, shape (n, S)
    weights : float64 array, shape (n,)
    """
    while len(points) < size:
        simplices = _triangulation(points)
        where, variance = _variances(points, simplices, candidates)
        scores = weights * variance
        # A point that is almost there already would add nothing but flat simplices.
        scores[np.abs(candidates[:, None, :] - points).sum(axis=2).min(axis=1) < LEAST_DISTANCE] = 0.0
        by_simplex = np.bincount(where, weights=scores, minlength=len(simplices))
        count = min(max(1, int(ADDED * len(points))), size - len(points))
        added: list[FloatArray] = []
        for simplex in np.argsort(-by_simplex, kind="stable")[:count].tolist():
            inside = np.flatnonzero((where == simplex) & (scores > 0))
            if len(inside):
                found = candidates[inside[np.argmax(scores[inside])]]
                if all(np.abs(found - other).sum() >= LEAST_DISTANCE for other in added):
                    added.append(found)
        if not added:
            break
        points = np.concatenate([points, added])
    return points


def _variances(
    points: FloatArray, simplices: npt.NDArray[np.int64], beliefs: FloatArray
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the simplex of each belief, shape (n,), and the variance of its interpolation from there."""
    inverses = np.linalg.inv(points[simplices].transpose(0, 2, 1))
    coordinates: Any = np.einsum("mks,ns->nmk", inverses, beliefs)
    where = coordinates.min(axis=2).argmax(axis=1)
    own = np.clip(coordinates[np.arange(len(beliefs)), where], 0.0, None)
    squares = (points**2).sum(axis=1)[simplices[where]]
    return where, np.maximum(0.0, (own * squares).sum(axis=1) - (beliefs**2).sum(axis=1))
