"""Mixtures of the general search: weights that interpolate, bounds that fall with those of their nodes, room for new ones."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.kernels import outcome_search
from actmeasure.planning.budget import Budget
from actmeasure.planning.outcome_search import OutcomeSearch

MODELS = {
    "one layer, few decisions": lambda: am.problems.rock_sample(4, 4),
    "one layer, many decisions": lambda: am.problems.component_line(2),
    "shared years": lambda: am.problems.simple_fatigue(10),
}


def searched(name: str, work: int = 2000) -> OutcomeSearch:
    search = OutcomeSearch(MODELS[name](), Budget(work=work))
    search.run(1e-12, 0.0)
    assert search.points.mix_number[: search.n_nodes].any()
    return search


def belief(search: OutcomeSearch, node: int) -> np.ndarray:
    points, dense = search.points, np.zeros(search.base.n_states)
    cells = slice(points.begin[node], points.begin[node + 1])
    dense[points.states[cells]] = points.probabilities[cells]
    return dense


def mixtures(search: OutcomeSearch, node: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return decision, nodes and weights of the mixtures of a node."""
    points, result = search.points, []
    first = points.mix_first[node]
    for mixture in range(first, first + points.mix_number[node]):
        cells = slice(points.mix_begin[mixture], points.mix_end[mixture])
        nodes = points.node_of_row[points.mix_row[cells]]
        result.append((int(points.mix_decision[mixture]), nodes.copy(), points.mix_weight[cells].copy()))
    return result


@pytest.mark.parametrize("name", MODELS)
def test_a_mixture_of_beliefs_is_below_the_belief(name):
    search = searched(name)
    for node in np.flatnonzero(search.points.mix_number[: search.n_nodes]).tolist():
        for _, nodes, weights in mixtures(search, node):
            assert (weights > 0).all()
            mixed = sum((w * belief(search, other) for other, w in zip(nodes, weights, strict=True)), 0.0)
            assert (mixed <= belief(search, node) * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", MODELS)
def test_replaced_mixtures_are_dropped_and_the_others_kept(name):
    search = searched(name)
    nodes = np.flatnonzero(search.points.mix_number[: search.n_nodes]).tolist()
    before = {node: mixtures(search, node) for node in nodes}
    search._drop_old_mixtures()
    counts = search.points.counts
    assert counts[outcome_search.MIXTURES] == sum(map(len, before.values()))
    for node in nodes:
        for one, two in zip(before[node], mixtures(search, node), strict=True):
            assert one[0] == two[0]
            np.testing.assert_array_equal(one[1], two[1])
            np.testing.assert_array_equal(one[2], two[2])


@pytest.mark.parametrize("name", MODELS)
def test_a_renewal_lowers_a_bound_to_that_of_its_mixtures(name):
    search = searched(name)
    points, rows, n = search.points, search.rows, search.rows.n_decisions
    layers = slice(rows.shift, len(rows.informed))
    leaves = np.flatnonzero((points.mix_number[: search.n_nodes] > 0) & (points.row[: search.n_nodes] < 0)).tolist()
    assert leaves
    linear = rows.informed.reshape(len(rows.informed), search.base.n_states, n)
    proved = {}
    for node in leaves[:200]:
        bounds = np.einsum("s,ysd->yd", belief(search, node), linear)[layers]  # of decisions without a mixture
        least = bounds.copy()
        for own, nodes, weights in mixtures(search, node):
            for decision in [own] if rows.shift else range(n):
                cells = points.row[nodes] * n + decision
                gain = (weights @ (points.linear[cells] - points.bound[cells]))[layers]
                least[:, decision] = np.minimum(least[:, decision], bounds[:, decision] - gain)
        proved[node] = least.max(axis=1)
    earlier = points.upper[: search.n_nodes].copy()
    outcome_search.renew(rows, points, search.work, search.n_nodes + int(points.counts[outcome_search.ROWS]), 10**9)
    assert (points.upper[: search.n_nodes] <= earlier).all()
    for node, bound in proved.items():
        assert (points.upper[node, layers] <= bound + 10 * rows.slack).all()
