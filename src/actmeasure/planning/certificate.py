"""Certificates: the numbers that prove the bounds of a solution, for a program that checks them without the search.

`actmeasure.check_certificate` states the inequalities and verifies them. Here they are made of an `OutcomeSearch`:
its value vectors, as far as they are reached from the best ones at the start, and its beliefs, as far as the bound at
the start depends on them. Where an inequality fails by rounding, or because bounds of the search came from programmes
that were not stored, bounds are moved outwards until it holds: so the bounds of a certificate can be a little wider
than those of the solution.

For one exact measurement, and for methods that are no search, the general search runs first and its bounds are
certified.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure import check_certificate as checker
from actmeasure.errors import NotCoveredError, PlanError, quoted
from actmeasure.file_access import explain, path_of, replacing
from actmeasure.kernels.interpolation import make_programme, solve_packing
from actmeasure.model import Model
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.system import Factors
from actmeasure.planning.budget import Budget
from actmeasure.planning.outcome_search import RELATIVE_TOLERANCE, OutcomeSearch
from actmeasure.planning.solution import Solution

__all__ = ["Certificate", "certificate", "check_covered"]

Array = npt.NDArray[Any]

#: Smallest gap that the general search aims at, where the solution has no search of its own.
TOLERANCE = 1e-6
#: Largest number of weights, and of linear bounds after outcomes, of a certificate.
MOST_WEIGHTS = 20_000_000
#: Rounds in which bounds are moved outwards.
MOST_ROUNDS = 5_000
#: Without further rounds, all bounds are moved by one number if it is at most this share of the largest bound.
SHIFT = 1e-10
#: Points whose weight could be at most this are left out of a linear programme, and the largest number of
#: points in one.
LEAST_WEIGHT, MOST_POINTS = 1e-6, 200
#: Points that lie in a state in which the belief has a smaller probability are left out as well: there would be no
#: room for the rounding of the check.
LEAST_ROOM = 1e-300


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the optimum of a model with the numbers that prove them.

    Attributes
    ----------
    model : Model
    lower, upper : float
        What the stored vectors and beliefs prove: `solution.lower` and `solution.upper`, or a little less close.
    n_vectors, n_beliefs : int
    """

    model: Model
    about: dict[str, Any]
    arrays: dict[str, Array]

    @property
    def lower(self) -> float:
        """Lower bound on the optimum."""
        return float(self.about["lower"])

    @property
    def upper(self) -> float:
        """Upper bound on the optimum."""
        return float(self.about["upper"])

    @property
    def n_vectors(self) -> int:
        """Number of value vectors."""
        return len(self.arrays["vector_decisions"])

    @property
    def n_beliefs(self) -> int:
        """Number of beliefs."""
        return len(self.arrays["belief_offsets"]) - 1

    def __repr__(self) -> str:
        return f"Certificate(lower={self.lower!r}, upper={self.upper!r}, {self.n_vectors:,} vectors, {self.n_beliefs:,} beliefs)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as `.npz`, for `python -m actmeasure.check_certificate model.json certificate.npz`."""
        from actmeasure.files.archive import write_arrays

        path = path_of(path, ".npz", PlanError)
        try:
            with replacing(path) as file:
                write_arrays(file, self.about, self.arrays, checker.TYPES)
        except OSError as error:
            raise PlanError(str(explain(error, path, "write"))) from error


def check_covered(model: Model) -> None:
    """Raise a `NotCoveredError` if the bounds of a model's search cannot be certified yet."""
    what = ""
    if isinstance(model.origin, Factors):
        what = "the grid of a system of components"
    elif isinstance(model.origin, Lifetime) and model.origin.is_stationary:
        what = "bounds that the years of a life share"
    if what:
        raise NotCoveredError(
            f"a certificate is not covered yet for {what}; solve the model as a flat one, "
            f"am.solve(model.replace()), and certify that"
        )
    try:
        checker.Problem(_contents(model)).check_covered()
    except checker.UncoveredError as error:
        raise NotCoveredError(str(error)) from error


def certificate(solution: Solution, *, time_limit: float | None = 60.0) -> Certificate:
    """Return the numbers that prove bounds on the optimum, for a program that checks them without the search.

    Parameters
    ----------
    solution : Solution
        Of a flat model: systems of components and lives with shared years are not covered yet; `model.replace()` makes them flat.
    time_limit : float, optional
        Seconds for the general search where the solution has none of its own: where looks are exact, or the method is no search.

    Examples
    --------
    >>> import actmeasure as am
    >>> solution = am.solve(am.problems.tiger())
    >>> proof = am.certificate(solution)
    >>> proof.lower <= solution.lower + 1e-9 and proof.upper >= solution.upper - 1e-9
    True
    """
    if not isinstance(solution, Solution):
        raise PlanError(f"certificate needs a Solution, and was given {quoted(solution)}; call am.solve(model) first")
    model = solution.model
    check_covered(model)
    search = solution.search
    if search is None:
        search = OutcomeSearch(model, Budget(time_limit))
        # Methods that are no search may leave a gap far wider than a short search.
        is_close = solution.gap <= RELATIVE_TOLERANCE * abs(solution.upper)
        search.run(max(solution.gap, TOLERANCE) if is_close else TOLERANCE, 0.0 if is_close else RELATIVE_TOLERANCE)
    problem = checker.Problem(_contents(model))
    with np.errstate(over="ignore", invalid="ignore"):
        arrays = _lower_arrays(problem, search) | _upper_arrays(problem, search)
        lower = checker.lower_bound(problem, arrays)
        upper = checker.start_upper(problem, arrays, checker.gains(problem, arrays))
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise PlanError(
            f"the bounds {lower} and {upper} are not finite, so that there is nothing to certify; search longer"
        )
    data = {name: np.ascontiguousarray(arrays[name], dtype=kind) for name, kind in checker.TYPES.items()}
    about: dict[str, Any] = {
        "format": checker.FORMAT,
        "version": checker.VERSION,
        "model": problem.hash(),
        "lower": float(lower),
        "upper": float(upper),
    }
    about["digest"] = checker.digest(about, data)
    return Certificate(model, about, data)


def _contents(model: Model) -> checker.Contents:
    """Return the numbers of a model, as the checker reads them from its file."""
    table, order = model.transitions, np.argsort(model.initial_states, kind="stable")
    rewards = model.transition_rewards
    if rewards is None:
        rewards = np.repeat(model.rewards.ravel(), np.diff(table.offsets))

    def law(shows: Any) -> checker.Law | None:
        if shows.law is None:
            return None
        return checker.Law(
            shows.law.by_action, shows.law.offsets, shows.law.outcomes.astype(np.int64), shows.law.probabilities
        )

    looks = []
    for number, look in enumerate(model.measurements, start=1):
        prices = np.array(look.table(model.n_states, model.n_actions))
        prices[model.terminal] = 0.0
        looks.append(checker.Look(prices, model.allowed_decisions[:, number], law(look)))
    return checker.Contents(
        model.discount,
        model.terminal,
        model.initial_states[order].astype(np.int64),
        model.initial_probabilities[order],
        model.start_is_known,
        table.offsets,
        table.successors.astype(np.int64),
        table.probabilities,
        rewards,
        model.transition_rewards is not None,
        tuple(looks),
        False if model.passive is None else law(model.passive),
    )


def _settled(values: Array, need: Any, discount: float, sign: float) -> Array:
    """Return values moved outwards (up for sign 1, down for -1) until need(values) is not beyond any of them."""
    values = values.copy()
    push = 1.0
    for _ in range(MOST_ROUNDS):
        wanted = need(values)
        excess = float((sign * (wanted - values)).max(initial=0.0))
        if not excess > 0:
            return values
        scale = float(np.abs(values).max())
        # If all bounds move by x, what they need moves by at most x times the discount.
        shift = push * (excess + 64 * checker.UNIT * scale) / max(1.0 - discount, 1e-12)
        if discount < 1 and shift <= SHIFT * scale + 1e-290:
            values += sign * shift
            push *= 2.0
        else:
            values = sign * np.maximum(sign * values, sign * wanted)
    raise PlanError("the inequalities of a certificate could not be settled; search longer, or to a smaller tolerance")


# The lower bound


def _lower_arrays(problem: checker.Problem, search: OutcomeSearch) -> dict[str, Array]:
    """Return the vectors that are reached from the best ones at the start."""
    rows, vectors, n = search.rows, search.vectors, search.rows.n_decisions
    number: dict[int, int] = {}
    order: list[int] = []
    plans: list[Array] = []
    outcomes: list[Array] = []

    def number_of(vector: int) -> int:
        if vector not in number:
            number[vector] = len(order)
            order.append(vector)
        return number[vector]

    starts = [number_of(int(vector)) for vector in search.points.best[search.starts, 0]]
    while len(plans) < len(order):
        vector = order[len(plans)]
        index = int(vectors.slice_of[vector]) * n + int(vectors.decision[vector])
        first, last = int(rows.groups[index]), int(rows.groups[index + 1])
        following = vectors.plans[int(vectors.plan[vector]) : int(vectors.plan[vector]) + last - first]
        plans.append(np.array([number_of(int(one)) for one in following], dtype=np.int64))
        outcomes.append(search.made.outcomes[first:last])
    slices = vectors.slice_of[order]
    begin, sizes = rows.slice_offsets[slices], rows.slice_offsets[slices + 1] - rows.slice_offsets[slices]
    if int(sizes.sum()) > MOST_WEIGHTS:
        raise PlanError(
            f"the certificate would have {int(sizes.sum()):,} values of vectors, more than "
            f"{MOST_WEIGHTS:,}; use a smaller model"
        )
    arrays: dict[str, Array] = {
        "vector_offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "vector_states": np.concatenate(
            [rows.slice_states[b : b + size] for b, size in zip(begin, sizes, strict=True)]
        ),
        "vector_decisions": vectors.decision[order].astype(np.int64),
        "plan_offsets": np.concatenate([[0], np.cumsum([len(plan) for plan in plans])]),
        "plan_outcomes": np.concatenate(outcomes),
        "plan_vectors": np.concatenate(plans),
        "start_vectors": np.array(starts),
    }
    values = np.concatenate(
        [vectors.values[int(b) : int(b) + size] for b, size in zip(vectors.begin[order], sizes, strict=True)]
    )
    arrays["vector_values"] = _settled(
        values, lambda now: checker.lower_backup(problem, arrays | {"vector_values": now}), problem.discount, -1.0
    )
    return arrays


# The upper bound


def _upper_arrays(problem: checker.Problem, search: OutcomeSearch) -> dict[str, Array]:
    """Return the linear bounds, and beliefs with what bounds them, as far as the bound at the start depends on them."""
    n = search.rows.n_decisions
    linear = np.array(search.rows.informed[0].reshape(-1, n))
    linear[problem.contents.terminal] = 0.0
    running = ~problem.contents.terminal

    def need_linear(now: Array) -> Array:
        whole = np.zeros_like(linear)
        whole[running] = now
        return np.asarray(checker.linear_backup(problem, whole)[running])

    linear[running] = _settled(linear[running], need_linear, problem.discount, 1.0)
    chosen = _Selection(search, linear)
    arrays = chosen.arrays() | {"linear": linear}
    offsets, states, values = arrays["belief_offsets"], arrays["belief_states"], arrays["belief_values"]

    def belief(k: int) -> tuple[Array, Array]:
        return states[offsets[k] : offsets[k + 1]], values[offsets[k] : offsets[k + 1]]

    rewards, bounds, shares, compared, counts = [], [], [], [], []
    for pair, (k, decision) in enumerate(
        zip(arrays["pair_beliefs"].tolist(), arrays["pair_decisions"].tolist(), strict=True)
    ):
        after = checker.children(problem, linear, *belief(k), decision)
        own = slice(int(arrays["child_offsets"][pair]), int(arrays["child_offsets"][pair + 1]))
        named = dict(zip(arrays["child_outcomes"][own].tolist(), arrays["child_beliefs"][own].tolist(), strict=True))
        others = [named.get(outcome, -1) for outcome in after.outcomes.tolist()]
        rewards.append(after.reward)
        bounds.append(after.linear)
        shares += [checker.share(after, i, *belief(j)) if j >= 0 else 0.0 for i, j in enumerate(others)]
        compared += others
        counts.append(len(others))
    if not rewards:
        return arrays
    table, parts, of = np.concatenate(bounds), np.array(shares), np.array(compared, dtype=np.int64)
    ends = np.cumsum(counts)

    def need(now: Array) -> Array:
        gained = checker.gains(problem, arrays | {"pair_bounds": now})
        return np.array(
            [
                checker.pair_backup(
                    problem,
                    reward,
                    table[stop - count : stop],
                    parts[stop - count : stop],
                    gained[of[stop - count : stop]],
                )
                for reward, count, stop in zip(rewards, counts, ends.tolist(), strict=True)
            ]
        )

    arrays["pair_bounds"] = _settled(arrays["pair_bounds"], need, problem.discount, 1.0)
    return arrays


class _Selection:
    """The nodes of a search that its bound at the start depends on, with their pairs and mixtures."""

    def __init__(self, search: OutcomeSearch, linear: Array) -> None:
        self.search, self.linear = search, linear
        self.n = search.rows.n_decisions
        self.number: dict[int, int] = {}
        self.order: list[int] = []
        #: Bounds of pairs (node, decision), and nodes after each outcome.
        self.pairs: dict[tuple[int, int], float] = {}
        self.mixtures: dict[tuple[int, int], tuple[list[int], Array]] = {}
        self.points: dict[int, _ExpandedNodes] = {}
        self.n_weights = 0
        for start in search.starts.tolist():
            self._need(start)
        done = 0
        while done < len(self.order):
            self._bound(self.order[done])
            done += 1

    def _need(self, node: int) -> None:
        if node not in self.number:
            self.number[node] = len(self.order)
            self.order.append(node)

    def _belief(self, node: int) -> tuple[Array, Array]:
        points = self.search.points
        own = slice(int(points.begin[node]), int(points.begin[node + 1]))
        return points.states[own].astype(np.int64), points.probabilities[own]

    def _bound(self, node: int) -> None:
        """Add what bounds the decisions of a node: nothing, a pair of its own, or a mixture of others."""
        points = self.search.points
        states, chances = self._belief(node)
        row, linear = int(points.row[node]), chances @ self.linear[states]
        cells = slice(row * self.n, (row + 1) * self.n)
        followed = points.child[cells] >= 0 if row >= 0 else np.zeros(self.n, dtype=bool)
        bounds = np.where(followed, np.minimum(linear, points.bound[cells, 0]), linear) if row >= 0 else linear.copy()
        done = np.zeros(self.n, dtype=bool)
        # The decision with the highest bound is bounded next; once that one has been, the others do not matter.
        while not done[decision := int(np.argmax(bounds))]:
            done[decision] = True
            if followed[decision]:
                self._add_pair(node, decision)
            bounds[decision] -= self._add_mixture(node, decision, states, chances, linear[decision] - bounds[decision])
        for other in np.flatnonzero(followed & ~done & (linear > bounds.max())).tolist():
            self._add_pair(node, other)

    def _add_pair(self, node: int, decision: int) -> None:
        if (node, decision) in self.pairs:
            return
        points = self.search.points
        cell = int(points.row[node]) * self.n + decision
        self._need(node)
        self.pairs[node, decision] = float(points.bound[cell, 0])
        for child in self._children(node, decision).tolist():
            if child >= 0:
                self._need(child)

    def _groups(self, node: int, decision: int) -> tuple[int, int]:
        index = int(self.search.points.slice_of[node]) * self.n + decision
        return int(self.search.rows.groups[index]), int(self.search.rows.groups[index + 1])

    def _children(self, node: int, decision: int) -> Array:
        points, (first, last) = self.search.points, self._groups(node, decision)
        begin = int(points.child[int(points.row[node]) * self.n + decision])
        return np.asarray(points.child_node[begin : begin + last - first])

    def _add_mixture(self, node: int, decision: int, states: Array, chances: Array, own: float) -> float:
        """Bound a decision of a node by the programme over its pairs; returns by how much it gains more than `own`."""
        in_slice = int(self.search.points.slice_of[node])
        if in_slice not in self.points:
            self.points[in_slice] = _ExpandedNodes.of(self.search, in_slice, self.linear)
        mixed = self.points[in_slice].mixture(decision, states, chances)
        if mixed is None:
            return 0.0
        nodes, weights, gain = mixed
        if gain <= own + 1e-9 * abs(own):
            return 0.0
        self.n_weights += len(nodes)
        if self.n_weights > MOST_WEIGHTS:
            raise PlanError(
                f"the certificate would have more than {MOST_WEIGHTS:,} weights; search to a larger "
                f"tolerance, or a smaller model"
            )
        self.mixtures[node, decision] = (nodes, weights)
        for other in nodes:
            self._add_pair(other, decision)
        return gain - own

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of beliefs, pairs, what follows them, and mixtures; pairs in order of belief and decision."""
        beliefs = [self._belief(node) for node in self.order]
        pairs = sorted(self.pairs, key=lambda pair: (self.number[pair[0]], pair[1]))
        position_of = {pair: position for position, pair in enumerate(pairs)}
        outcomes, following, counts = [], [], []
        for node, decision in pairs:
            first, last = self._groups(node, decision)
            children = self._children(node, decision)
            possible = children >= 0
            outcomes.append(self.search.made.outcomes[first:last][possible])
            following += [self.number[child] for child in children[possible].tolist()]
            counts.append(int(possible.sum()))
        mixtures = list(self.mixtures.items())
        empty = [np.zeros(0, np.int64)]
        return {
            "belief_offsets": np.concatenate([[0], np.cumsum([len(states) for states, _ in beliefs])]),
            "belief_states": np.concatenate([states for states, _ in beliefs]),
            "belief_values": np.concatenate([chances for _, chances in beliefs]),
            "pair_beliefs": np.array([self.number[node] for node, _ in pairs], dtype=np.int64),
            "pair_decisions": np.array([decision for _, decision in pairs], dtype=np.int64),
            "pair_bounds": np.array([self.pairs[pair] for pair in pairs], dtype=np.float64),
            "child_offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            "child_outcomes": np.concatenate(outcomes + empty),
            "child_beliefs": np.array(following, dtype=np.int64),
            "mixture_beliefs": np.array([self.number[node] for (node, _), _ in mixtures], dtype=np.int64),
            "mixture_decisions": np.array([decision for (_, decision), _ in mixtures], dtype=np.int64),
            "mixture_offsets": np.concatenate([[0], np.cumsum([len(nodes) for _, (nodes, _) in mixtures])]).astype(
                np.int64
            ),
            "mixture_pairs": np.array(
                [position_of[node, d] for (_, d), (nodes, _) in mixtures for node in nodes], dtype=np.int64
            ),
            "mixture_weights": np.concatenate([np.zeros(0), *(weights for _, (_, weights) in mixtures)]),
            "start_beliefs": np.array([self.number[node] for node in self.search.starts.tolist()], dtype=np.int64),
        }


@dataclass(frozen=True, eq=False)
class _ExpandedNodes:
    """The expanded nodes of a slice: beliefs by position in the slice (N, m), gains of decisions that are followed (N, D)."""

    nodes: Array
    position: Array
    beliefs: Array
    gains: Array

    @classmethod
    def of(cls, search: OutcomeSearch, in_slice: int, linear: Array) -> _ExpandedNodes:
        """Return the points of a slice."""
        points, rows, n = search.points, search.rows, search.rows.n_decisions
        nodes = []
        row = int(points.last_row[in_slice])
        while row >= 0:
            nodes.append(int(points.node_of_row[row]))
            row = int(points.row_before[row])
        size = int(rows.slice_offsets[in_slice + 1] - rows.slice_offsets[in_slice])
        if len(nodes) * size > 10 * MOST_WEIGHTS:
            raise PlanError(
                f"the certificate needs programmes over {len(nodes):,} beliefs of {size:,} states, too "
                f"many; use a smaller model"
            )
        beliefs = np.zeros((len(nodes), size))
        gains = np.zeros((len(nodes), n))
        for i, one in enumerate(nodes):
            own = slice(int(points.begin[one]), int(points.begin[one + 1]))
            beliefs[i, rows.position[points.states[own]]] = points.probabilities[own]
            cells = slice(int(points.row[one]) * n, (int(points.row[one]) + 1) * n)
            above = points.probabilities[own] @ linear[points.states[own]] - points.bound[cells, 0]
            gains[i] = np.where(points.child[cells] >= 0, np.maximum(above, 0.0), 0.0)
        return cls(np.array(nodes), rows.position, beliefs, gains)

    def mixture(self, decision: int, states: Array, chances: Array) -> tuple[list[int], Array, float] | None:
        """Return nodes and feasible weights with the largest gain, and this; None if there is none."""
        room = np.zeros(self.beliefs.shape[1])
        room[self.position[states]] = np.where(chances < LEAST_ROOM, 0.0, chances)
        useful = np.flatnonzero(self.gains[:, decision] > 0)
        if not len(useful):
            return None
        beliefs = self.beliefs[useful]
        # The largest weight a point can have alone. Scaled by it, all numbers of the programme are between 0 and 1.
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(beliefs > 0, room / beliefs, np.inf).min(axis=1)
        close = np.flatnonzero(most > LEAST_WEIGHT)
        if len(close) > MOST_POINTS:
            close = close[np.argsort(-most[close] * self.gains[useful[close], decision], kind="stable")[:MOST_POINTS]]
        if not len(close):
            return None
        useful, most, inside = useful[close], most[close], room > 0
        columns = (beliefs[close][:, inside] / room[inside] * most[:, None]).T
        worth = self.gains[useful, decision] * most
        m, n = columns.shape
        lp = make_programme(m, n, m * n)
        lp.offsets[:] = np.arange(0, m * n + 1, m)
        lp.places[:] = np.tile(np.arange(m), n)
        lp.values[:] = columns.T.ravel()
        lp.gains[:] = worth / worth.max()
        solve_packing(lp, np.ones(m), 0, m, n)
        weights = np.maximum(lp.weights, 0.0)
        weights[weights < 1e-12] = 0.0
        used = np.flatnonzero(weights)
        if not len(used):
            return None
        # Whatever rounding did, scaling makes the weights feasible, with room for the rounding of the check.
        scale = max(1.0, float((columns @ weights).max())) * (1.0 + 16 * (len(used) + 64) * checker.UNIT)
        final = weights[used] * most[used] / scale
        return self.nodes[useful[used]].tolist(), final, float(final @ self.gains[useful[used], decision])
