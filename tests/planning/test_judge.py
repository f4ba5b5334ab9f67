"""The fast search for the optimum against a slow, obvious one, on hundreds of small random models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import Judge, best_of_all_schedules
from strategies import examples, models

import actmeasure as am
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search

ROUNDING = 1e-9
SMALL = models(max_states=3, max_actions=2, discounts=(0.3, 0.5, 0.6, 0.7))


def stopped_after(rounds):
    """Return a budget that is over when bounds have been noted `rounds` times."""
    budget = Budget()

    def listen(progress):
        if len(budget.record) >= rounds:
            budget.seconds = 0.0

    budget.progress = listen
    return budget


def acyclic_model(rng):
    """At discount 1: states only lead to later ones, the last is the end, so that plans are finite."""
    n_states, n_actions = int(rng.integers(3, 6)), 2
    P = np.zeros((n_states, n_actions, n_states))
    for state in range(n_states - 1):
        for action in range(n_actions):
            later = rng.dirichlet(np.ones(n_states - 1 - state)) * (rng.random(n_states - 1 - state) > 0.4)
            later[-1] += later.sum() == 0
            P[state, action, state + 1 :] = later / later.sum()
    P[-1, :, -1] = 1.0
    R = rng.normal(size=(n_states, n_actions))
    R[-1] = 0.0
    initial = np.append(rng.dirichlet(np.ones(n_states - 1)), 0.0)
    return am.Model.from_arrays(
        P, R, measuring_cost=rng.random((n_states, n_actions)), discount=1.0, initial=initial if rng.random() < 0.7 else 0,
        terminal=np.arange(n_states) == n_states - 1, reveal_start=bool(rng.random() < 0.5),
    )  # fmt: skip


@given(SMALL)
@examples(300)
def test_the_optimum_is_what_the_judge_says(model):
    judge = Judge(model)
    solution = am.solve(model, "optimal", tolerance=1e-6)
    assert solution.gap <= 1e-6 + ROUNDING
    assert solution.lower <= judge.upper + ROUNDING
    assert solution.upper >= judge.lower - ROUNDING


@given(SMALL, st.integers(1, 6))
@examples(300)
def test_stopped_at_any_moment_the_bounds_hold_and_the_schedule_earns_the_lower_one(model, rounds):
    judge = Judge(model)
    search = Search(model, stopped_after(rounds))
    search.run(1e-12)
    assert search.lower <= judge.upper + ROUNDING
    assert search.upper >= judge.lower - ROUNDING
    assert am.evaluate(model, search.schedule()).discounted_return >= search.lower - ROUNDING


@given(models(max_states=6, max_actions=3, discounts=(0.5, 0.9, 0.99)), st.integers(1, 4))
@examples(100)
def test_bounds_of_a_stopped_search_contain_those_of_a_longer_one(model, rounds):
    search = Search(model, stopped_after(rounds))
    search.run(1e-12)
    longer = Search(model, stopped_after(10 * rounds))
    longer.run(1e-9)
    assert search.lower <= longer.upper + ROUNDING
    assert search.upper >= longer.lower - ROUNDING
    for each in (search, longer):
        assert am.evaluate(model, each.schedule()).discounted_return >= each.lower - ROUNDING


@given(SMALL)
@examples(100)
def test_every_bound_on_the_way_holds(model):
    judge = Judge(model)
    solution = am.solve(model, "optimal", tolerance=1e-6)
    assert max(progress.lower for progress in solution.record) <= judge.upper + ROUNDING
    assert min(progress.upper for progress in solution.record) >= judge.lower - ROUNDING


@given(models(max_states=3, max_actions=2, discounts=(0.3, 0.5, 0.7)))
@examples(40)
def test_no_schedule_that_can_be_written_out_beats_the_upper_bound(model):
    model = model.replace(reveal_start=True)
    by_hand = best_of_all_schedules(model, longest=2 if np.count_nonzero(~model.terminal) > 2 else 3)
    solution = am.solve(model, "optimal", tolerance=1e-6)
    assert by_hand <= solution.upper + ROUNDING
    assert by_hand <= Judge(model).upper + ROUNDING


@pytest.mark.parametrize("seed", range(60))
def test_without_discount_the_judge_agrees_where_plans_are_finite(seed):
    model = acyclic_model(np.random.default_rng(seed))
    judge = Judge(model)
    solution = am.solve(model, "optimal", tolerance=1e-6)
    assert judge.upper - judge.lower < 1e-9
    assert solution.gap <= 1e-6 + ROUNDING
    assert solution.lower - 1e-8 <= judge.lower <= solution.upper + 1e-8


def test_the_judge_knows_the_measuring_value_problem():
    judge = Judge(am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.7))
    look, blind = (-0.1 + 0.7 * 0.8) / (1 - 0.2 * 0.7**2), 0.7 * 0.8
    assert judge.lower <= max(look, blind) + ROUNDING
    assert judge.upper >= max(look, blind) - ROUNDING
    assert judge.upper - judge.lower < 1e-4
