r"""Upper bounds of a belief by interpolation between beliefs whose bounds are known: a packing linear programme.

Let c be a linear bound on a convex function V over beliefs (V(b) <= c . b) and u_i >= V(b_i) bounds at points b_i. For weights
w_i >= 0 with sum_i w_i b_i <= b in every state, V is convex and homogeneous, so that

    V(b)  <=  sum_i w_i u_i + c . (b - sum_i w_i b_i)  =  c . b - sum_i w_i g_i ,        g_i = c . b_i - u_i .

The best weights solve max g . w subject to B w <= b. The simplex method starts from the slack basis and stops after a number of
pivots: any feasible weights are valid, so that optimality is never needed, and what rounding did to feasibility is undone by
scaling the weights at the end. Only points whose support lies in that of b can have a positive weight.

The inverse of the basis is a product of matrices that differ from the identity in the column of the row that left. So only the
columns of rows whose slack has left differ from those of the identity, at most one for each pivot, and only these are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.dynamics import EPSILON
from actmeasure.kernels.jit import no_refcount

__all__ = ["MOST_PIVOTS", "Programme", "make_programme", "solve_packing"]

#: Largest number of pivots of the simplex method.
MOST_PIVOTS = 40
#: A point enters the basis if it gains more than this share of the bound per unit of weight.
LEAST_GAIN = 1e-9
#: Smallest pivot.
LEAST_PIVOT = 1e-11


class Programme(NamedTuple):
    """Candidates b_i as sparse columns over the support of b, and scratch memory for the simplex method; m states, n points."""

    offsets: Any  # int64 (n + 1,)
    places: Any  # int32 (n_entries,): position of a state in the support of b
    values: Any  # float64 (n_entries,)
    gains: Any  # float64 (n,)
    points: Any  # int64 (n,): numbers of the candidates, for the caller
    weights: Any  # float64 (n,): the result
    basis: Any  # int64 (m,): the candidate of each row, -1 for a slack
    left: Any  # int64 (most pivots,): the rows whose slack has left the basis
    column_of: Any  # int64 (m,): the number of a row in `left`, -1 if its slack has not left
    inverse: Any  # float64 (most pivots, m): the columns of these rows of the inverse of the basis
    right: Any  # float64 (m,)
    duals: Any  # float64 (m,)
    column: Any  # float64 (m,)


def make_programme(most_states: int, most_points: int, most_entries: int) -> Programme:
    """Return a programme with room for these numbers of states, points and entries."""
    m, n = most_states, most_points
    return Programme(
        np.zeros(n + 1, np.int64), np.zeros(most_entries, np.int32), np.zeros(most_entries), np.zeros(n), np.zeros(n, np.int64),
        np.zeros(n), np.zeros(m, np.int64), np.zeros(MOST_PIVOTS, np.int64), np.zeros(m, np.int64),
        np.zeros((MOST_PIVOTS, m)), np.zeros(m), np.zeros(m), np.zeros(m),
    )  # fmt: skip


@no_refcount
def solve_packing(lp: Programme, belief: Any, first: int, m: int, n: int) -> float:
    """Write weights that nearly maximise the gain to `lp.weights`; returns the gain.

    Parameters
    ----------
    lp : Programme
        With `n` candidates.
    belief : float64 array
        The probabilities of b are `belief[first : first + m]`.
    first, m, n : int
    """
    for i in range(n):
        lp.weights[i] = 0.0
    for i in range(m):
        lp.basis[i] = -1
        lp.right[i] = belief[first + i]
        lp.duals[i] = 0.0
        lp.column_of[i] = -1
    n_left = 0
    for _ in range(min(MOST_PIVOTS, 4 * m)):
        entering, best = -1, 0.0
        for i in range(n):
            reduced = lp.gains[i]
            least = LEAST_GAIN * reduced
            for k in range(lp.offsets[i], lp.offsets[i + 1]):
                reduced -= lp.duals[lp.places[k]] * lp.values[k]
            if reduced > best and reduced > least:
                entering, best = i, reduced
        if entering < 0:
            break
        for i in range(m):
            lp.column[i] = 0.0
        for k in range(lp.offsets[entering], lp.offsets[entering + 1]):
            place, value = lp.places[k], lp.values[k]
            number = lp.column_of[place]
            if number < 0:
                lp.column[place] += value
            else:
                for i in range(m):
                    lp.column[i] += lp.inverse[number, i] * value
        leaving, ratio = -1, np.inf
        for i in range(m):
            if lp.column[i] > LEAST_PIVOT and lp.right[i] < ratio * lp.column[i]:
                leaving, ratio = i, lp.right[i] / lp.column[i]
        if leaving < 0:
            break
        if lp.column_of[leaving] < 0:
            lp.column_of[leaving] = n_left
            lp.left[n_left] = leaving
            for i in range(m):
                lp.inverse[n_left, i] = 1.0 if i == leaving else 0.0
            n_left += 1
        pivot = lp.column[leaving]
        for number in range(n_left):
            factor = lp.inverse[number, leaving] / pivot
            if factor != 0.0:
                for i in range(m):
                    lp.inverse[number, i] -= lp.column[i] * factor
                lp.inverse[number, leaving] = factor
                lp.duals[lp.left[number]] += best * factor
        for i in range(m):
            lp.right[i] = max(0.0, lp.right[i] - lp.column[i] * ratio)
        lp.right[leaving] = ratio
        lp.basis[leaving] = entering
    for i in range(m):
        if lp.basis[i] >= 0:
            lp.weights[lp.basis[i]] = lp.right[i]
    return _scaled(lp, belief, first, m, n)


@no_refcount
def _scaled(lp: Programme, belief: Any, first: int, m: int, n: int) -> float:
    """Scale the weights so that they are feasible whatever rounding did; returns the gain."""
    for i in range(m):
        lp.right[i] = 0.0
    for i in range(n):
        if lp.weights[i] > 0.0:
            for k in range(lp.offsets[i], lp.offsets[i + 1]):
                lp.right[lp.places[k]] += lp.weights[i] * lp.values[k]
    scale = 1.0
    for i in range(m):
        if lp.right[i] > 0.0:
            scale = min(scale, belief[first + i] / lp.right[i])
    scale *= 1.0 - EPSILON * (m + 8)
    gain = 0.0
    for i in range(n):
        lp.weights[i] *= scale
        gain += lp.weights[i] * lp.gains[i]
    return gain
