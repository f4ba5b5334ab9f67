"""Bounds by mixtures of what the same actions lead to from known states."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models

import actmeasure as am
from actmeasure.kernels.convexity_bounds import lower_by_mixture
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search

ROUNDING = 1e-9


def searched(model, nodes):
    """A search that was stopped when it had some number of nodes."""
    budget = Budget()
    search = Search(model, budget)
    budget.progress = lambda _: setattr(budget, "seconds", 0.0) if search.nodes >= nodes else None
    search.run(1e-9)
    return search


def mix_everywhere(search):
    """Bound every node by mixtures; returns those whose bound fell."""
    graph = search._graph
    before = graph.upper[: search.nodes].copy()
    for node in range(search.nodes):
        lower_by_mixture(graph, search.bounds, search._mixing, search.model.discount, node)
    return np.flatnonzero(graph.upper[: search.nodes] < before)


def belief(search, node):
    graph = search._graph
    entries = slice(graph.offsets[node], graph.offsets[node + 1])
    return np.bincount(graph.states[entries], graph.probabilities[entries], search.model.n_states)


@given(models(max_states=6, max_actions=3, discounts=(0.5, 0.9, 0.99)), st.integers(3, 60))
@examples(200)
def test_no_mixture_is_below_the_optimum(model, nodes):
    search = searched(model, nodes)
    for node in mix_everywhere(search)[-5:]:
        there = model.replace(initial=belief(search, node), reveal_start=False)
        assert search._graph.upper[node] >= am.solve(there, tolerance=1e-6, time_limit=2).lower - ROUNDING


def test_mixtures_lower_bounds_where_rewards_are_negative_too():
    lake = am.problems.frozen_lake(8, "slippery", discount=0.95)
    for rewards in (lake.rewards, lake.rewards - 0.05 * ~lake.terminal[:, None]):
        model = am.Model.from_arrays(
            [[lake.transitions.stacked()[[s * 4 + a]].toarray()[0] for a in range(4)] for s in range(64)], rewards,
            measuring_cost=0.05, discount=0.95, initial=lake.initial_distribution, terminal=lake.terminal,
        )  # fmt: skip
        search = searched(model, 2000)
        lowered = mix_everywhere(search)
        assert len(lowered) > 20
        for node in lowered[:: len(lowered) // 10]:
            there = model.replace(initial=belief(search, node), reveal_start=False)
            assert search._graph.upper[node] >= am.solve(there, tolerance=1e-4, time_limit=1).lower - ROUNDING


def test_a_lake_on_which_beliefs_spread_in_corridors_closes():
    search = Search(am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=122), Budget(work=500_000))
    assert search.run(1e-5) == "closed"
    assert search.nodes < 200_000  # without mixtures more than 400,000
