"""Sums and averages over a Markov chain that may end: sparse linear solves, no simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph, linalg

from actmeasure.errors import ScheduleError
from actmeasure.model.transitions import FloatArray

__all__ = [
    "Recurrence", "RoundingError", "discounted_sums", "discounted_visits", "errors_of_undiscounted", "recurrence",
    "sums_by_doubling", "undiscounted_values",
]  # fmt: skip

IntArray = npt.NDArray[np.int64]

#: Size of a linear system from which on it is first tried iteratively, by sweeps; smaller ones are factored.
LARGE = 5_000
#: Relative residual at which sweeps stop, largest number of sweeps, and number after which their convergence rate is judged.
LEFT_OVER, MOST_SWEEPS, FIRST_SWEEPS = 1e-14, 1_000, 60
#: With `krylov`, large systems are first tried by BiCGSTAB: steps of a round, relative residual of a round, number of rounds.
KRYLOV_STEPS, KRYLOV_RESIDUAL, KRYLOV_ROUNDS = 300, 1e-9, 6
#: Sweeps that are made before it.
KRYLOV_SWEEPS = 100
#: Size and average number of entries in a row up to which a system is factored all the same: its factors stay small.
FACTORED_SIZE, FACTORED_ENTRIES = 20_000, 5

#: Largest accepted relative error of sums over many steps.
LOST = 1e-6

#: Chains of at most `MOST_DENSE` nodes are solved by elimination without subtractions, if moves or ends are rarer than `RARE`, or
#: some node is left only after `MANY` moves on average.
RARE, MOST_DENSE, MANY = 1e-6, 300, 1_000

#: Relative error of one move, and relative error of a sum from which on it counts as unknown (NaN).
MOVE_ERROR, UNCERTAIN = 2.0**-50, 0.01


LOST_CHANCE = (
    "part of the problem is left with a chance so small that it is lost in rounding, and sums over all time cannot be computed; "
    "give a horizon, or a discount below 1"
)


class RoundingError(ScheduleError):
    """A probability or sum is lost in rounding."""


@dataclass(frozen=True, eq=False)
class Recurrence:
    """The closed classes of a Markov chain: sets of nodes that are never left.

    Attributes
    ----------
    class_of_node : int64 array, shape (n_nodes,)
        The number of the closed class of each node, or -1 for a transient node.
    probability : float64 array, shape (n_classes,)
        Probability, from the start, of ending up in each class; NaN where that is lost in rounding.
    visits : list of float64 arrays
        For each class the stationary distribution of its nodes, in ascending order of nodes; NaN likewise.
    ending : float64 array, shape (n_nodes,)
        Probability that the chain ends after a node.
    """

    class_of_node: IntArray
    probability: FloatArray
    visits: list[FloatArray]
    ending: FloatArray

    def members(self, number: int) -> IntArray:
        """Return the nodes of a closed class, ascending."""
        return np.flatnonzero(self.class_of_node == number)


def discounted_sums(
    moves: sparse.csr_array[np.float64], factors: FloatArray, rewards: FloatArray, krylov: bool = False
) -> FloatArray:
    """Solve v = rewards + diag(factors) moves v, shape (n_nodes, k); `krylov` as in `recurrence`."""
    decayed = sparse.diags_array(factors) @ moves
    return _solve(sparse.eye_array(moves.shape[0]) - decayed, rewards, krylov)


def discounted_visits(
    moves: sparse.csr_array[np.float64], discount: float, start: FloatArray, krylov: bool = False
) -> FloatArray:
    """Return the discounted number of visits to each node, shape (n_nodes,): x = start + discount moves^T x."""
    return _solve(sparse.eye_array(moves.shape[0]) - discount * moves.T, start, krylov)


def sums_by_doubling(
    moves: sparse.csr_array[np.float64],
    ends: npt.NDArray[np.bool_],
    rewards: FloatArray,
    start: FloatArray,
    horizon: int,
) -> FloatArray:
    """Return expected sums of rewards over `horizon` moves from the start, shape (k,), by about log2(horizon) matrix products.

    With M(n) the n-th power of the chain and S(n) the sums over n moves from each node, M(2n) = M(n) M(n) and S(2n) = S(n) +
    M(n) S(n). What has ended is one more node, and rows are scaled to sum to 1 after every product: no probability is lost or
    gained in rounding, however many moves there are.

    Parameters
    ----------
    moves : sparse array, shape (n_nodes, n_nodes)
        Probabilities of the next node; what is missing from 1 has ended, or is lost in rounding where nothing ends.
    ends : bool array, shape (n_nodes,)
        Whether the episode may end after the node.
    rewards : float64 array, shape (n_nodes, k)
    start : float64 array, shape (n_nodes,)
    horizon : int
    """
    n_nodes = moves.shape[0]
    power = np.zeros((n_nodes + 1, n_nodes + 1))
    power[:-1, :-1] = moves.toarray()
    ending = np.where(ends, np.maximum(1 - power[:-1].sum(axis=1), 0.0), 0.0)
    power[:-1, -1] = ending
    power[-1, -1] = 1.0
    least = ending[ends].min(initial=1.0)
    if np.finfo(float).eps * min(horizon, 1 / max(least, 1e-300)) > LOST:
        raise RoundingError(
            f"within {horizon:,} steps the episode may end with a chance of {least:.2g} in a step, which is known to few digits "
            "only; give a shorter horizon, or None for all time"
        )
    sums = np.vstack([rewards, np.zeros((1, rewards.shape[1]))])
    where = np.append(start, 0.0)
    totals = np.zeros(rewards.shape[1])
    while True:
        power /= power.sum(axis=1, keepdims=True)
        horizon, odd = divmod(horizon, 2)
        if odd:
            totals += where @ sums
            where = where @ power
        if not horizon:
            return totals
        sums += power @ sums
        power = power @ power


def undiscounted_values(
    chain: sparse.csr_array[np.float64], recurrent: Recurrence, rewards: FloatArray, krylov: bool = False
) -> FloatArray:
    """Return the expected undiscounted sums of rewards from each node, shape (n_nodes, k); `krylov` as in `recurrence`.

    Infinite from where a closed class with an average other than 0 can be reached; NaN where its average is 0 but its rewards
    are not, or where the probability of an end is lost in rounding.
    """
    transient = np.flatnonzero(recurrent.class_of_node < 0)
    values = np.zeros_like(rewards)
    for number, visits in enumerate(recurrent.visits):
        members = recurrent.members(number)
        values[members] = _endless(visits @ rewards[members], np.abs(rewards[members]).max(axis=0))
    if transient.size:
        rows, ending = chain[transient], recurrent.ending[transient]
        if _loses_digits(chain, recurrent.ending, transient):
            values[transient] = _sums_by_elimination(rows.toarray(), transient, ending, rewards[transient])
            uncertain = ~np.isfinite(values[transient]).all(axis=1)
        else:
            right = np.column_stack([rewards[transient], np.ones(len(transient))])
            solved = _solve(_leaving(rows, transient, ending), right, krylov)
            values[transient] = solved[:, :-1]
            # The last column is the expected number of moves, each of which adds a rounding error.
            uncertain = ~(np.abs(solved[:, -1]) * MOVE_ERROR < UNCERTAIN)
        values[np.ix_(transient, np.flatnonzero(values[transient[uncertain]].any(axis=0)))] = np.nan
        endless = ~np.isfinite(values) | (values != 0)
        endless[transient] = False
        for k in np.flatnonzero(endless.any(axis=0)):
            values[transient, k] += _reached(chain, recurrent, transient, values[:, k], endless[:, k])
    return values


def errors_of_undiscounted(
    chain: sparse.csr_array[np.float64],
    recurrent: Recurrence,
    errors: FloatArray,
    magnitudes: FloatArray,
    relative: float,
    krylov: bool = False,
) -> FloatArray:
    """Return bounds on the errors of `undiscounted_values`, shape (n_nodes,); infinite where there is none.

    An error in the equation of a node counts at each visit to it. In small chains these are summed by elimination, which only
    adds, multiplies and divides positive numbers: each of its n steps is an exact one on weights that are off by some n + 4
    roundings, and a sum over visits is a quotient of sums of products of at most n weights (the Markov chain tree theorem), in
    which relative errors of weights count at most 2 n times. Where values are found by elimination, that bounds their error, too.

    Parameters
    ----------
    chain, recurrent, krylov
        As for `undiscounted_values`.
    errors, magnitudes : float64 arrays, shape (n_nodes,)
        Error of the equation of each node, and sizes of its rewards.
    relative : float
        Relative error of the moves and of the rewards.
    """
    transient = np.flatnonzero(recurrent.class_of_node < 0)
    n_nodes = len(transient)
    if 0 < chain.shape[0] <= MOST_DENSE and n_nodes:
        rows = chain[transient].toarray()
        both = np.column_stack([errors, magnitudes])[transient]
        summed = np.zeros((len(errors), 2))
        try:
            summed[transient] = 1.01 * _sums_by_elimination(rows, transient, recurrent.ending[transient], both)
        except RoundingError:
            summed[transient] = np.inf
        bounds = summed[:, 0]
        if _loses_digits(chain, recurrent.ending, transient):  # the values are found by elimination as well
            share = (2 * n_nodes + 1) * relative + 2 * n_nodes**2 * (n_nodes + 4) * np.finfo(float).eps
            bounds = np.fmin(bounds, share * summed[:, 1])
    else:  # a sum b proves itself if b >= errors + moves b
        spread = errors + 1e-6 * errors.max(initial=0.0)
        bounds = 2 * undiscounted_values(chain, recurrent, spread[:, None], krylov)[:, 0]
        with np.errstate(invalid="ignore"):
            is_proved = (bounds >= 0) & (bounds * (1 - 1e-15) >= errors + (chain @ bounds) * (1 + 1e-12))
        bounds[transient[~is_proved[transient]]] = np.inf
    endless = (recurrent.class_of_node >= 0) & (errors > 0)
    if endless.any():
        bounds[_ancestors(chain, endless)] = np.inf
    return np.where(np.isnan(bounds), np.inf, bounds)


def _leaving(rows: sparse.csr_array[np.float64], nodes: IntArray, ending: FloatArray) -> sparse.csr_array[np.float64]:
    """Return the identity minus the moves among some nodes, from their rows of the chain, shape (n, n_nodes).

    The diagonal is the probability of leaving a node, computed as a sum where ends are rare: 1 minus the probability of staying
    loses all digits where that is nearly 1.
    """
    moves = rows.tocoo()
    own = moves.coords[1] == nodes[moves.coords[0]]
    away = np.bincount(moves.coords[0][~own], weights=moves.data[~own], minlength=len(nodes))
    stays = np.bincount(moves.coords[0][own], weights=moves.data[own], minlength=len(nodes))
    ends = np.where(ending < RARE, ending, np.maximum(1 - away - stays, 0.0))
    among = -rows[:, nodes]
    return sparse.csr_array(among - sparse.diags_array(among.diagonal()) + sparse.diags_array(away + ends))


def _endless(average: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the sum over infinitely many steps of rewards with an average.

    Infinite, 0 if all are 0, NaN if they cancel out or the average is unknown.
    """
    cancels = ~(np.abs(average) > 1e-12 * scale)  # or it is unknown
    return np.where(scale == 0, 0.0, np.where(cancels, np.nan, np.copysign(np.inf, average)))


def _reached(
    chain: sparse.csr_array[np.float64],
    recurrent: Recurrence,
    transient: IntArray,
    values: FloatArray,
    endless: npt.NDArray[np.bool_],
) -> FloatArray:
    """Return what the infinite or undefined sums that each transient node can reach add to its own: 0, +-infinity, or NaN."""
    added = np.zeros(len(transient))
    for value in (np.inf, -np.inf, np.nan):
        same = endless & (np.isnan(values) if np.isnan(value) else values == value)
        if same.any():
            can_reach = _ancestors(chain, same)[transient]
            with np.errstate(invalid="ignore"):
                added[can_reach] += value
    return added


def _ancestors(chain: sparse.csr_array[np.float64], goal: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask of the nodes from which a goal node can be reached, goal nodes included."""
    distances = csgraph.dijkstra(chain.T.tocsr(), indices=np.flatnonzero(goal), unweighted=True, min_only=True)
    return np.isfinite(distances)


def recurrence(
    chain: sparse.csr_array[np.float64], ending: FloatArray, start: FloatArray, krylov: bool = False
) -> Recurrence:
    """Return the closed classes of a chain that ends after its nodes with the probabilities `ending`, shape (n_nodes,).

    With `krylov`, large systems are solved by BiCGSTAB where it converges, to the same residual as otherwise.
    """
    n_components, component = csgraph.connected_components(chain, directed=True, connection="strong")
    closed = np.ones(n_components, dtype=bool)
    closed[component[ending > 0]] = False
    edges = chain.tocoo()
    leaving = component[edges.coords[0]] != component[edges.coords[1]]
    closed[component[edges.coords[0][leaving]]] = False
    number = np.where(closed, np.cumsum(closed) - 1, -1)
    class_of_node = number[component]
    n_classes = int(closed.sum())
    try:
        probability = _reaching(chain, ending, class_of_node, start, krylov)
    except RoundingError:
        probability = np.full(n_classes, np.nan)
    classes = [np.flatnonzero(class_of_node == k) for k in range(n_classes)]
    visits = []
    for nodes in classes:
        try:
            visits.append(_stationary(chain[nodes][:, nodes], krylov))
        except RoundingError:
            visits.append(np.full(len(nodes), np.nan))
    return Recurrence(class_of_node, probability, visits, ending)


def _reaching(
    chain: sparse.csr_array[np.float64], ending: FloatArray, class_of_node: IntArray, start: FloatArray, krylov: bool
) -> FloatArray:
    """Return the probability of getting from the start to each closed class, shape (n_classes,)."""
    transient, n_classes = class_of_node < 0, int(class_of_node.max()) + 1
    mass = np.where(transient, 0.0, start)
    later = np.zeros(n_classes)
    if transient.any() and n_classes:
        if _loses_digits(chain, ending, np.flatnonzero(transient)):
            later = _reaching_by_elimination(chain, ending, class_of_node, start)
        else:
            mass += _expected_visits(chain, transient, start, krylov) @ chain[transient]
    return np.bincount(class_of_node[~transient], weights=mass[~transient], minlength=n_classes) + later


def _loses_digits(chain: sparse.csr_array[np.float64], ending: FloatArray, nodes: IntArray) -> bool:
    """Return whether, in a small chain, moves or ends are rare or moves many, so that a linear solve over nodes may lose digits.

    Small entries of the solution are lost beside large ones where rare moves lead to these. All of it loses digits where nodes
    are left after many moves only: a solve loses about as many digits as the largest expected number t of moves among the nodes
    has, where A t = 1 and A is the identity minus the moves. The computed number s is the solution of (A + E) s = 1 with |E| of
    the size of rounding, so that t - s = A^-1 E s, and max t <= max s + max t max |E s|, as A^-1 is nowhere negative: where s is
    small, t is.
    """
    if not (0 < chain.shape[0] <= MOST_DENSE and nodes.size):
        return False
    if min(chain.data.min(initial=1.0), ending[ending > 0].min(initial=1.0)) < RARE:
        return True
    try:
        moves = _solve(sparse.eye_array(len(nodes)) - chain[nodes][:, nodes], np.ones(len(nodes)))
    except RoundingError:
        return True
    return not (np.abs(moves) < MANY).all()


def _eliminate(weights: FloatArray, first: int, last: int, rewards: FloatArray | None = None) -> FloatArray:
    """Eliminate the nodes `first` <= k < `last` of a chain with the moves `weights`, shape (n, m), the last first; in place.

    Moves to an eliminated node become moves to where it leads, and what is earned there is earned before. This is the method of
    Grassmann, Taksar and Heyman: nothing is subtracted, as a node is left with the sum of its moves to others, so that no digits
    are lost however rare some moves are. Columns from `last` on are places that are not left any more.

    Returns the probability with which each node is left, when those after it are eliminated, shape (n,). Row k of `weights` then
    holds its moves to the nodes before it, and column k their moves to it, divided by that probability.
    """
    leaving = np.zeros(len(weights))
    for k in range(last - 1, first - 1, -1):
        others = np.r_[0:k, last : weights.shape[1]]
        leaving[k] = weights[k, others].sum()
        if not leaving[k] > 0:
            raise RoundingError(LOST_CHANCE)
        weights[:k, k] /= leaving[k]
        weights[:k, others] += np.outer(weights[:k, k], weights[k, others])
        if rewards is not None:
            rewards[:k] += np.outer(weights[:k, k], rewards[k])
    return leaving


def _reaching_by_elimination(
    chain: sparse.csr_array[np.float64], ending: FloatArray, class_of_node: IntArray, start: FloatArray
) -> FloatArray:
    """Return the probability of getting from a transient start to each closed class, shape (n_classes,).

    Nodes are the start (0) and the transient ones; behind them there is a column for each class, and one for the end.
    """
    nodes = np.flatnonzero(class_of_node < 0)
    n_classes, n_left = int(class_of_node.max()) + 1, len(nodes) + 1
    weights = np.zeros((n_left, n_left + n_classes + 1))
    weights[0, 1:n_left] = start[nodes]
    rows = chain[nodes].toarray()
    weights[1:, 1:n_left] = rows[:, nodes]
    for number in range(n_classes):
        weights[1:, n_left + number] = rows[:, class_of_node == number].sum(axis=1)
    weights[1:, -1] = ending[nodes]
    _eliminate(weights, 1, n_left)
    reached = weights[0, n_left:]
    return np.asarray(reached[:-1] * (start[nodes].sum() / max(reached.sum(), np.finfo(float).tiny)))


def _sums_by_elimination(rows: FloatArray, nodes: IntArray, ending: FloatArray, rewards: FloatArray) -> FloatArray:
    """Return undiscounted sums of rewards from some nodes until others are reached, shape (n, k), from the nodes' rows."""
    size = len(nodes)
    others = np.setdiff1d(np.arange(rows.shape[1]), nodes)
    weights = np.column_stack([rows[:, nodes], rows[:, others].sum(axis=1) + ending])
    values = rewards.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        leaving = _eliminate(weights, 0, size, values)
        for k in range(size):
            values[k] = (values[k] + weights[k, :k] @ values[:k]) / leaving[k]
    return values


def _expected_visits(
    chain: sparse.csr_array[np.float64], transient: npt.NDArray[np.bool_], start: FloatArray, krylov: bool
) -> FloatArray:
    """Return the expected number of visits to each transient node, shape (n_transient,)."""
    nodes = np.flatnonzero(transient)
    among = chain[nodes][:, nodes]
    return _solve(sparse.eye_array(len(nodes)) - among.T, start[nodes], krylov)


def _stationary(chain: sparse.csr_array[np.float64], krylov: bool = False) -> FloatArray:
    """Return the stationary distribution of an irreducible chain, by fixing the first weight and solving for the others."""
    size = chain.shape[0]
    if krylov and size >= LARGE:
        distribution = _stationary_by_krylov(chain)
        if distribution is not None:
            return distribution
    weights = np.ones(size)
    if _loses_digits(chain, np.zeros(size), np.arange(1, size)):
        moves = chain.toarray()
        _eliminate(moves, 1, size)
        for k in range(1, size):
            weights[k] = weights[:k] @ moves[:k, k]
    elif size > 1:
        rest = sparse.eye_array(size - 1) - chain[1:, 1:].T
        weights[1:] = _solve(rest, chain[:1, 1:].toarray().ravel())
    return np.asarray(weights / weights.sum())


def _stationary_by_krylov(chain: sparse.csr_array[np.float64]) -> FloatArray | None:
    """Return the stationary distribution as the solution of (I - chain^T + u 1^T) x = u, or None where that takes too long.

    Columns of the chain sum to 1, so that 1^T x = 1 and x = chain^T x follow for every distribution u. A random one is used: the
    method breaks down where u is special for the chain.
    """
    size = chain.shape[0]
    backward = sparse.csr_array(chain.T)
    u = np.random.default_rng(0).random(size)
    u /= u.sum()
    solution = _solve_by_krylov(lambda x: x - backward @ x + u * x.sum(), u)
    if solution is None:
        return None
    weights = np.maximum(solution, 0.0)
    return np.asarray(weights / weights.sum())


def _solve_by_krylov(apply: Callable[[FloatArray], FloatArray], right: FloatArray) -> FloatArray | None:
    """Return the solution up to rounding of a system with a right-hand side of shape (n,) by BiCGSTAB with iterative refinement.

    None if it does not converge.
    """
    operator = linalg.LinearOperator((len(right), len(right)), matvec=apply, dtype=np.float64)
    solution = np.zeros_like(right)
    if not right.any():
        return solution
    left = right
    for _ in range(KRYLOV_ROUNDS):
        scale = np.linalg.norm(left)  # the method takes small numbers for a breakdown
        with np.errstate(all="ignore"):  # a breakdown is noticed by what is left
            correction, _ = linalg.bicgstab(
                operator, left / scale, rtol=KRYLOV_RESIDUAL, atol=0.0, maxiter=KRYLOV_STEPS
            )
        solution = solution + scale * correction
        left = right - apply(solution)
        size = np.abs(left).max()
        if size <= LEFT_OVER * (np.abs(right).max() + np.abs(solution).max()):
            return solution
        if not np.linalg.norm(left) < 0.5 * scale:
            return None
    return None


def _solve(matrix: Any, right: FloatArray, krylov: bool = False) -> FloatArray:
    """Return the solution of a linear system with a right-hand side of shape (n,) or (n, k)."""
    is_factored = matrix.shape[0] <= FACTORED_SIZE and matrix.nnz <= FACTORED_ENTRIES * matrix.shape[0]
    if krylov and matrix.shape[0] >= LARGE:
        rows = sparse.csr_array(matrix)
        solution = _solve_by_sweeps(rows, right, KRYLOV_SWEEPS)  # few are enough where episodes end soon
        if solution is not None:
            return solution
        if not is_factored:
            columns = right.reshape(len(right), -1)
            solved = [_solve_by_krylov(lambda x: rows @ x, np.ascontiguousarray(column)) for column in columns.T]
            if all(one is not None for one in solved):
                return np.column_stack(solved).reshape(right.shape)  # type: ignore[arg-type]
    if matrix.shape[0] >= LARGE and not (krylov and is_factored):
        solution = _solve_by_sweeps(sparse.csr_array(matrix), right)
        if solution is not None:
            return solution
    try:
        return np.asarray(linalg.splu(sparse.csc_array(matrix)).solve(np.ascontiguousarray(right)))
    except RuntimeError as error:  # "exactly singular"
        raise RoundingError(LOST_CHANCE) from error


def _solve_by_sweeps(
    matrix: sparse.csr_array[np.float64], right: FloatArray, most: int = MOST_SWEEPS
) -> FloatArray | None:
    """Return the solution up to rounding by iterative refinement (sweeps), or None if that takes more than `most` of them.

    The factors of a large system fill up where states are densely connected, which can take minutes. Such chains also forget
    quickly where they began, and a sweep is one product with the matrix.
    """
    solution = np.zeros_like(right)
    before = np.inf
    for sweep in range(most):
        left = right - matrix @ solution
        size, enough = np.abs(left).max(), LEFT_OVER * (np.abs(right).max() + np.abs(solution).max())
        if size <= enough:
            return solution
        if sweep == FIRST_SWEEPS // 2:
            before = size
        if sweep == FIRST_SWEEPS:
            shrinks = np.log(before / size) / (sweep - sweep // 2)  # each sweep, as a logarithm
            if shrinks * (most - sweep) < np.log(size / enough):
                return None
        solution += left
    return None
