"""Bounds of long searches by beliefs inside others, and plans that known states share with beliefs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models
from test_mixture_bound import ROUNDING, belief, searched

import actmeasure as am
from actmeasure.kernels.convexity_bounds import find_inner, insert_all, lower_by_inner
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search


def bound_everywhere(search):
    """Bound every node by one inside it; returns those whose bound fell, and the bounds as they were before each did."""
    graph, index = search._graph, search._mixing.index
    insert_all(graph, index)
    lowered, earlier = [], []
    for node in range(search.nodes):
        find_inner(graph, search._scratch, index, node)
        before = graph.upper[: search.nodes].copy()
        lower_by_inner(graph, search.bounds, node)
        if graph.upper[node] < before[node]:
            lowered.append(node)
            earlier.append(before)
    return lowered, earlier


@given(models(max_states=6, max_actions=3, discounts=(0.5, 0.9, 0.99)), st.integers(3, 60))
@examples(60)
def test_no_bound_by_an_inner_belief_is_below_the_optimum(model, nodes):
    search = searched(model, nodes)
    for node in bound_everywhere(search)[0][-5:]:
        there = model.replace(initial=belief(search, node), reveal_start=False)
        assert search._graph.upper[node] >= am.solve(there, tolerance=1e-6, time_limit=2).lower - ROUNDING


def exact(values):
    return [Fraction(float(value)) for value in values]


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_rounding_is_upwards(loss):
    """In rational numbers the inner belief is a part of the belief, and the bound is not below its formula."""
    lake = am.problems.frozen_lake(8, "slippery", discount=0.95)
    model = am.Model.from_arrays(
        [[lake.transitions.stacked()[[s * 4 + a]].toarray()[0] for a in range(4)] for s in range(64)],
        lake.rewards - loss * ~lake.terminal[:, None],
        measuring_cost=0.05, discount=0.95, initial=lake.initial_distribution, terminal=lake.terminal,
    )  # fmt: skip
    search = searched(model, 1500)
    lowered, earlier = bound_everywhere(search)
    assert len(lowered) > 20
    graph, upper = search._graph, exact(search.bounds.upper)
    for node, before in zip(lowered, earlier, strict=True):
        inner, share = int(graph.inner[node]), Fraction(float(graph.inner_share[node]))
        whole, part = exact(belief(search, node)), exact(belief(search, inner))
        rest = [b - share * n for b, n in zip(whole, part, strict=True)]
        assert min(rest) >= 0
        total = sum(r * u for r, u in zip(rest, upper, strict=True)) + share * sum(part) * Fraction(
            float(before[inner])
        )
        assert Fraction(float(graph.upper[node])) >= total / sum(whole)


@given(models(max_states=6, max_actions=3, discounts=(0.5, 0.9, 0.99)))
@examples(100)
def test_schedules_earn_what_shared_plans_promise(model):
    search = Search(model, Budget(work=3000))
    search.mixes_above = 0
    search.run(1e-6)
    earned = am.evaluate(model, search.schedule()).discounted_return
    assert earned >= search.lower - ROUNDING
    assert earned <= search.upper + ROUNDING


def lake(seed):
    return am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=seed)


def test_a_lake_on_which_blind_moves_to_and_fro_cost_little_closes():
    search = Search(lake(350), Budget(work=150_000))
    assert search.run(1e-5) == "closed"  # without bounds by inner beliefs it takes more than 800,000 beliefs


def test_plans_of_known_states_are_good_where_the_state_is_not_known():
    """From the start, going down and then as if in the third row earns .011: other rows fall into holes before the look."""
    model = lake(236)
    search = Search(model, Budget(work=190_000))
    search.run(1e-5)
    assert search.lower > 0.011  # without shared plans 0, after a million beliefs too
    assert search._plans
    assert am.evaluate(model, search.schedule()).discounted_return >= search.lower - ROUNDING
    assert np.isfinite(search.upper)
