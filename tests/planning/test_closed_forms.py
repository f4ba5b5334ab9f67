"""Optima that are known on paper, or certified by other solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import actmeasure as am
from actmeasure.problems import frozen_lake, measuring_value, most_likely_successor, tight_bound, two_state_belief

PUBLISHED_DIGITS = 5.1e-5


@pytest.mark.parametrize("p", [0.5, 0.6, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("cost", [0.0, 0.01, 0.05, 0.1, 0.2, 0.5])
def test_measuring_value_without_discount(p, cost):
    solution = am.solve(measuring_value(p, cost, discount=1.0), tolerance=1e-6)
    assert solution.lower == pytest.approx(max(p, 1 - cost / p), abs=1e-6)
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("p", [0.5, 0.6, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("cost", [0.0, 0.01, 0.05, 0.1, 0.2, 0.5])
def test_measuring_value_with_discount(p, cost):
    looking = (-cost + 0.95 * p) / (1 - (1 - p) * 0.95**2)  # look after the gamble, go back if it failed
    solution = am.solve(measuring_value(p, cost, discount=0.95))
    assert solution.lower == pytest.approx(max(0.95 * p, looking), abs=1e-6)
    assert solution.gap <= 1e-6


def test_deterministic_lake():
    assert am.solve(frozen_lake(4, "deterministic")).value == pytest.approx(0.95**5, abs=1e-9)


@pytest.mark.parametrize(
    ("size", "variant", "cost", "optimum", "sr", "looks", "steps"),
    [
        (4, "deterministic", 0.05, 0.7738, 1.000, 0.0, 6.0),
        (4, "semi-slippery", 0.05, 0.6805, 0.900, 2.0, 6.0),
        (4, "semi-slippery", 0.10, 0.5892, 0.799, None, None),
        (4, "slippery", 0.05, 0.0385, 0.064, 0.0, None),
        (8, "semi-slippery", 0.05, 0.5931, 0.984, 0.0, None),
    ],
)
def test_certified_optima_of_lakes(size, variant, cost, optimum, sr, looks, steps):
    model = frozen_lake(size, variant, cost)
    solution = am.solve(model, tolerance=1e-6)
    assert solution.gap <= 1e-6
    assert solution.value == pytest.approx(optimum, abs=PUBLISHED_DIGITS)
    undiscounted = am.evaluate(model, solution.schedule, horizon=200)
    assert undiscounted.scalarized_return == pytest.approx(sr, abs=1.1e-3)
    if looks is not None:
        assert undiscounted.measurements == pytest.approx(looks, abs=1e-9)
    if steps is not None:
        assert undiscounted.steps == pytest.approx(steps, abs=1e-9)


@pytest.mark.parametrize(("cost", "optimum"), [(0.05, 0.8664), (0.10, 0.8054), (0.14, 0.76), (0.2, 0.76)])
def test_certified_optima_of_measuring_value(cost, optimum):
    assert am.solve(measuring_value(0.8, cost)).value == pytest.approx(optimum, abs=PUBLISHED_DIGITS)


@pytest.mark.parametrize("cost", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_value_of_a_look_in_the_papers_figure(cost):
    model = two_state_belief(0.8, cost)
    worth = am.solve(model).value - am.solve(model, "never").value
    assert worth == pytest.approx(max(0.2 - cost, 0.0), abs=1e-6)


@pytest.mark.parametrize("cost", [0.05, 0.1, 0.3])
def test_act_then_measure_loses_what_its_bound_allows_and_no_more(cost):
    most = cost / (1 - 0.95)
    losses = []
    for epsilon in (0.01, 0.001, 0.0001):
        model = tight_bound(epsilon, cost, 0.95)
        losses.append(am.solve(model, tolerance=1e-8).value - am.solve(model, "atm").value)
    assert losses == sorted(losses)
    assert losses[-1] <= most + 1e-8
    assert losses[-1] == pytest.approx(most, abs=0.0001 / (1 - 0.95) + 1e-8)


def deterministic_model(rng):
    """Every action leads to one state; rewards of both signs; known start."""
    n_states, n_actions = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    P = np.eye(n_states)[rng.integers(0, n_states, size=(n_states, n_actions))]
    R, terminal = rng.normal(size=(n_states, n_actions)), np.zeros(n_states, dtype=bool)
    if rng.random() < 0.5:
        terminal[-1], R[-1] = True, 0.0
    cost = float(rng.choice([0.0, 0.1])) if rng.random() < 0.5 else 0.01 + rng.random((n_states, n_actions))
    return am.Model.from_arrays(P, R, measuring_cost=cost, discount=0.9, initial=0, terminal=terminal)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_act_then_measure_is_optimal_where_nothing_is_random(seed):
    model = deterministic_model(np.random.default_rng(seed))
    free = am.q_mdp(model)[0].max()
    solution = am.solve(model, "atm")
    assert solution.value == pytest.approx(free, abs=1e-8)
    if model.measuring_costs[0, 0] > 0:
        assert solution.evaluation.discounted_measurements == 0
    assert am.solve(model).value == pytest.approx(free, abs=1e-6)


def test_assuming_the_likeliest_successor_loses_without_bound():
    losses = []
    for penalty in (1.0, 10.0, 100.0, 1000.0):
        model = most_likely_successor(penalty=penalty)
        gamble = am.Schedule({0: am.BlindPlan((0, 0), then="end")}, model.n_states)
        optimum = am.solve(model)
        assert optimum.schedule[0].actions == (1,)
        assert optimum.value == pytest.approx(0.0, abs=1e-9)
        losses.append(optimum.value - am.evaluate(model, gamble).discounted_return)
    assert losses[-1] > 100 * losses[0] > 0
    assert np.diff(losses).min() > 0


@pytest.mark.parametrize("model", [measuring_value(0.8, 0.1), frozen_lake(4)], ids=["measuring value", "lake"])
def test_trap_act_then_measure_with_q_mdp_walks_in_circles(model):
    assert am.solve(model, "atm-qmdp").value == 0
    assert am.solve(model, "atm").value > 0.5


def test_trap_the_equations_as_printed_claim_more_than_the_optimum():
    model = frozen_lake(4)
    printed = am.solve(model, "atm-linear")
    assert printed.claimed == pytest.approx(0.7236, abs=PUBLISHED_DIGITS)
    assert printed.claimed > am.solve(model).upper
    assert printed.value == 0
    assert am.solve(model, "always").value == pytest.approx(0.572, abs=5.1e-4)
    assert am.solve(model, "atm").value == pytest.approx(0.6805, abs=PUBLISHED_DIGITS)


@pytest.mark.parametrize("size", [4, 8])
def test_deterministic_lakes_close_without_discount(size):
    solution = am.solve(frozen_lake(size, "deterministic", discount=1.0))
    assert solution.value == pytest.approx(1.0, abs=1e-9)
    assert solution.gap <= 1e-6
    assert solution.evaluation.ending_probability == pytest.approx(1.0)


def zero_circle_model(middle_reward):
    """At discount 1. State 0 may end for -2, or go for -1 to states 1 and 2, between which one can walk for nothing for ever.

    Another way from 2 to 1 pays `middle_reward`.
    """
    successors = [[3, 1], [2, 3], [1, 1], [3, 3]]
    R = [[-2.0, -1.0], [0.0, -2.0], [middle_reward, 0.0], [0.0, 0.0]]
    return am.Model.from_arrays(
        np.eye(4)[successors], R, measuring_cost=0.1, discount=1.0, initial=0, terminal=[False, False, False, True]
    )


@pytest.mark.parametrize("middle_reward", [0.0, -1.0])
@pytest.mark.parametrize("method", ["optimal", "atm", "never", "always"])
def test_without_discount_walking_in_a_circle_for_nothing_is_allowed(method, middle_reward):
    solution = am.solve(zero_circle_model(middle_reward), method)
    assert solution.upper >= -1.0
    if method == "optimal":
        assert solution.value == pytest.approx(-1.0, abs=1e-6)


def cheapest_way(successors, R):
    """Undiscounted optimum from state 0 in a deterministic model with rewards <= 0; the last state is the end."""
    n_states = len(R)
    free = np.zeros((n_states, n_states), dtype=bool)
    for state in range(n_states - 1):
        free[state, successors[state][R[state] == 0]] = True
    for _ in range(n_states):
        free |= free.astype(int) @ free.astype(int) > 0
    values = np.where(np.diag(free) | (np.arange(n_states) == n_states - 1), 0.0, -np.inf)
    for _ in range(n_states):
        values[:-1] = np.maximum(values, (R + values[successors]).max(axis=1))[:-1]
    return values[0]


@pytest.mark.parametrize("seed", range(60))
def test_without_discount_bounds_hold_on_deterministic_models(seed):
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    successors = rng.integers(0, n_states, size=(n_states, n_actions))
    successors[:, -1] = np.minimum(np.arange(n_states) + 1, n_states - 1)  # so that some policy ends
    R = -rng.integers(0, 3, size=(n_states, n_actions)).astype(float)
    successors[-1], R[-1] = n_states - 1, 0.0
    model = am.Model.from_arrays(
        np.eye(n_states)[successors], R, measuring_cost=0.05, discount=1.0, terminal=np.arange(n_states) == n_states - 1
    )
    optimum = cheapest_way(successors, R)
    for method in ("optimal", "atm", "always", "never", "every-2"):
        solution = am.solve(model, method)
        assert solution.lower - 1e-8 <= optimum <= solution.upper + 1e-8
