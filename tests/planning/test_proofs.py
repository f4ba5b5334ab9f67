"""Certificates as proofs: on thousands of random models, ugly ones included, nothing exact is above the upper bound.

The judge works in rational numbers, so that no tolerance is allowed for: what it finds is not above `upper`, and with a discount
the schedule earns no less than `lower`.
"""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from judge import exact_value, exact_value_of_best_found

import actmeasure as am

CHUNK = 100
#: Longer plans are not evaluated in rational numbers: every step adds 53 digits.
LONGEST = 30
METHODS = ("optimal", "optimal", "optimal", "never", "atm", "always")


def ugly_model(rng):
    """A small model with probabilities next to 0 and 1, rewards over many orders of magnitude, any discount; None if refused."""
    n_states, n_actions = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    discount = float(rng.choice([0.5, 0.9, 0.99, 0.9999, 0.999999, 1 - 1e-9, 1.0]))
    ends = discount == 1 or rng.random() < 0.5
    P = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions)) * (
        rng.random((n_states, n_actions, n_states)) < 0.7
    )
    tiny = rng.random(P.shape) < 0.25
    P[tiny] = 10.0 ** rng.uniform(-16, -1, size=int(tiny.sum()))
    if discount == 1:  # some way to the end from everywhere
        P[:, 0, -1] = np.maximum(P[:, 0, -1], 10.0 ** rng.uniform(-12, 0, size=n_states))
    shape = rng.random()
    if shape < 0.15:  # no state comes again but the last
        P *= np.triu(np.ones((n_states, n_states)), 1)[:, None, :]
        P[P.sum(axis=2) == 0, -1] = 1.0
    elif shape < 0.3:  # deterministic
        P = np.eye(n_states)[rng.integers(n_states, size=(n_states, n_actions))]
        if discount == 1:
            P[:, 0] = np.eye(n_states)[-1]
    P[P.sum(axis=2) == 0, 0] = 1.0
    P /= P.sum(axis=2, keepdims=True) * (1 + rng.choice([0, 0, 9e-13, -9e-13]))  # rows need not sum to 1 exactly
    R = rng.normal(size=(n_states, n_actions)) * 10.0 ** rng.uniform(
        -6, rng.choice([1, 12]), size=(n_states, n_actions)
    )
    R[rng.random(R.shape) < 0.4] = 0.0
    if discount == 1:
        R = -np.abs(R) * (rng.random(R.shape) < 0.8) if rng.random() < 0.5 else R
    terminal = np.zeros(n_states, dtype=bool)
    if ends:
        terminal[-1 - int(n_states > 2 and rng.random() < 0.3) :] = True
        P[terminal], R[terminal] = np.eye(n_states)[-1], 0.0
    initial = rng.dirichlet(np.ones(n_states))
    initial[terminal] = 0.0
    price = 10.0 ** rng.uniform(-4, 3) * (rng.random((n_states, n_actions)) if rng.random() < 0.5 else 1.0)
    try:
        return am.Model.from_arrays(
            P, R, measuring_cost=price, discount=discount, terminal=terminal if ends else None,
            initial=initial / initial.sum() if rng.random() < 0.6 else 0, reveal_start=bool(rng.random() < 0.5),
        )  # fmt: skip
    except am.ModelError:  # a cycle that pays, or no way to the end
        return None


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=[] if chunk < 1 else pytest.mark.slow) for chunk in range(55)]
)
def test_nothing_exact_is_above_the_upper_bound(chunk):
    rng = np.random.default_rng([13, chunk])
    solved = refused = 0
    while solved < CHUNK:
        model = ugly_model(rng)
        if model is None:
            continue
        method = str(rng.choice(METHODS))
        scale = float(np.abs(model.rewards).max() + model.measuring_costs.max()) + 1e-300
        try:
            solution = am.solve(model, method, tolerance=1e-7 * scale, time_limit=0.05)
        except am.ActMeasureError as error:
            refused += "time limit" not in str(error)  # a busy machine
            assert refused < 20
            continue
        solved += 1
        plans = [*solution.schedule.plans, *([solution.schedule.start] if solution.schedule.start else [])]
        longest = max((len(plan) for plan in plans), default=0)
        exact = exact_value(model, solution.schedule) if longest <= LONGEST else None
        best = exact_value_of_best_found(model, longest=3)
        for value in (exact, best):
            if value is not None:
                assert Fraction(solution.upper) >= value, (chunk, solved, float(value), solution.upper)
        if exact is not None and model.discount < 1:
            assert Fraction(solution.lower) <= exact, (chunk, solved, float(exact), solution.lower)
            assert solution.value - solution.lower <= 1e-8 * scale / (1 - model.discount) ** 2 + 1e-300
        elif exact is not None and np.isfinite(solution.lower):  # ends have probabilities of 1e-12 and more
            assert float(exact) == pytest.approx(solution.value, rel=1e-3, abs=1e-9 * scale), (chunk, solved)


@pytest.mark.parametrize("method", ["optimal", "never", "atm", "always"])
@pytest.mark.parametrize("end", [1e-6, 1e-9, 1e-12, 1e-15])
def test_without_discount_ends_may_be_next_to_impossible(method, end):
    """Repeating action 1 earns nothing; a linear programme that drops tiny coefficients calls that impossible."""
    P = [[[0, 1], [1 - end, end]], [[0, 1], [0, 1]]]
    model = am.Model.from_arrays(P, [[-1, 0], [0, 0]], measuring_cost=0.1, discount=1, terminal=[False, True])
    solution = am.solve(model, method)
    assert solution.upper == 0
    assert solution.value == 0 or method == "always"


@pytest.mark.parametrize("end", [1e-3, 1e-6, 2e-6, 1e-5, 1e-9, 1e-12, 1e-15])
def test_without_discount_the_lower_bound_is_below_what_the_schedule_earns(end):
    """A look every second step, until the end: -price * x / (1 - x^2), with x the exact chance to run on for a step."""
    P = [[[1 - end, end]], [[0, 1]]]
    model = am.Model.from_arrays(P, [[0], [0]], measuring_cost=0.1, discount=1, terminal=[False, True])
    stays, ends = Fraction(1 - end), Fraction(end)
    x = stays / (stays + ends)
    exact = -Fraction(0.1) * x / (1 - x * x)
    lower = Fraction(am.solve(model, "every-2").lower)
    assert lower <= exact
    assert exact - lower <= Fraction(1e-7) * -exact


@pytest.mark.parametrize("method", ["optimal", "never", "always"])
@pytest.mark.parametrize("rare", [1e-20, 1e-31, 1e-40])
def test_values_far_apart_are_told_apart_without_discount(method, rare):
    """State 0 leads with chance q to a loss of 1 / q: a linear solve lost the value of state 0, -64, beside that."""
    P = [[[1 - 1 / 64 - rare, rare, 1 / 64]], [[0.5, 0, 0.5]], [[0, 0, 1]]]
    model = am.Model.from_arrays(
        P, [[0], [-1 / rare], [0]], measuring_cost=0, discount=1, terminal=[False, False, True], initial=[1, 0, 0]
    )
    solution = am.solve(model, method)
    assert solution.lower <= -64 <= solution.upper + 1e-12
    assert solution.lower >= -64 * (1 + 1e-10)


@pytest.mark.parametrize("method", ["every-2", "optimal", "never"])
@pytest.mark.parametrize("discount", [1, 0.9])
def test_rounding_of_rewards_that_cancel_out_is_counted(method, discount):
    """0.1 * -9e8 + 0.9 * 1e8 is 0 in floating point, and -2.8e-9 exactly."""
    P = [[[0, 0.1, 0.9, 0]], [[0, 0, 0, 1]], [[0, 0, 0, 1]], [[0, 0, 0, 1]]]
    model = am.Model.from_arrays(
        P, [[0], [-9e8], [1e8], [0]], measuring_cost=0, discount=discount, terminal=[False, False, False, True]
    )
    mass = Fraction(0.1) + Fraction(0.9)
    exact = Fraction(discount) * (Fraction(0.1) * -900_000_000 + Fraction(0.9) * 100_000_000) / mass
    lower = Fraction(am.solve(model, method).lower)
    assert lower <= exact
    assert exact - lower <= Fraction(1, 1000)


@pytest.mark.parametrize(("n", "up"), [(2, 1e-5), (3, 1e-4), (4, 1e-4), (5, 1e-3), (12, 0.01), (20, 0.1)])
def test_the_bound_on_rounding_is_small_where_the_way_to_the_end_is_long(n, up):
    P = np.zeros((n + 1, 1, n + 1))
    for state in range(n):
        P[state, 0, state + 1] = up
        P[state, 0, max(state - 1, 0)] += 1 - up
    P[n, 0, n] = 1
    terminal = np.arange(n + 1) == n
    model = am.Model.from_arrays(P, np.where(terminal, 0, -1)[:, None], measuring_cost=1, discount=1, terminal=terminal)
    solution = am.solve(model, "always")
    steps = Fraction(
        0
    )  # from the first state to the end, by first passages: 1 + (1 - p) (the way back and here again) / p
    passage = Fraction(0)
    for _ in range(n):
        passage = (1 + Fraction(1 - up) * passage) / Fraction(up)
        steps += passage
    assert solution.value == pytest.approx(-2 * float(steps), rel=1e-9)
    assert -1e-9 * solution.value >= solution.value - solution.lower > 0


@pytest.mark.parametrize("method", ["optimal", "never"])
@pytest.mark.parametrize("chance", [1e-6, 3e-10, 1e-12])
def test_states_that_are_next_to_impossible_stay_possible(method, chance):
    """Blind steps lead to state 0 but for a chance that falls below 1e-290: it is not known, as a plan said that was refused."""
    model = am.Model.from_arrays(
        [[[1, 0]], [[1 - chance, chance]]], [[0], [1]], measuring_cost=0.1, discount=1 - 1e-9, initial=[0.9, 0.1],
        reveal_start=False,
    )  # fmt: skip
    solution = am.solve(model, method, time_limit=10)
    exact = 0.1 / (1 - model.discount * chance)
    assert solution.lower <= exact * (1 + 1e-12)
    assert solution.upper >= exact * (1 - 1e-12)
    assert solution.lower >= 0.999 * exact


def test_closed_means_that_the_proved_bounds_are_within_the_tolerance():
    model = am.Model.from_arrays(
        [[[1, 0]], [[1 - 1e-6, 1e-6]]], [[0], [1]], measuring_cost=0.1, discount=1 - 1e-9, initial=[0.9, 0.1],
        reveal_start=False,
    )  # fmt: skip
    solution = am.solve(model)
    assert solution.stopped == ("closed" if solution.gap <= 1e-6 else "exhausted")


def test_beliefs_that_differ_little_are_told_apart_where_rewards_are_huge():
    e = 1e-13
    P = np.zeros((4, 2, 4))
    P[0, 0, 1:3], P[0, 1, 1:3] = (1 - e, e), (1 - 3 * e, 3 * e)
    P[1:, :, 3] = 1
    R = np.zeros((4, 2))
    R[2, 0] = 1e13
    model = am.Model.from_arrays(
        P, R, measuring_cost=1e6, discount=0.9, initial=0, terminal=[False, False, False, True]
    )
    solution = am.solve(model)
    assert solution.value == pytest.approx(2.7)
    assert solution.upper == pytest.approx(2.7)


@pytest.mark.parametrize("near", [1e-4, 1e-5, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("seed", range(4))
def test_small_models_are_solved_near_discount_1(near, seed):
    rng = np.random.default_rng(seed)
    P, R = rng.dirichlet(np.ones(2), size=(2, 2)), rng.normal(size=(2, 2))
    solution = am.solve(am.Model.from_arrays(P, R, measuring_cost=0.1, discount=1 - near), time_limit=20)
    assert solution.gap * near <= max(1e-4, 1e-13 / near)  # the values times 1 - discount are averages


def test_a_discount_next_to_1_is_refused():
    model = am.Model.from_arrays([[[0.5, 0.5]], [[0.3, 0.7]]], [[1], [0]], measuring_cost=0.1, discount=1 - 1e-15)
    with pytest.raises(am.PlanError, match="so close to 1"):
        am.solve(model)


FROM_THE_FIRST_NODE = """
import actmeasure as am
import actmeasure.kernels.graph_search as search, test_proofs
import actmeasure.planning.optimal as optimal
optimal.MANY_EXPANDED = 0
count, inner_count = [0], [0]
mixed, inner = search.lower_by_mixture, search.lower_by_inner
def inner_counted(graph, bounds, node):
    before = graph.upper[node]
    inner(graph, bounds, node)
    inner_count[0] += graph.upper[node] < before
search.lower_by_inner = inner_counted
def counted(graph, bounds, mixing, discount, node):
    before = graph.upper[node]
    part = mixed(graph, bounds, mixing, discount, node)
    count[0] += graph.upper[node] < before
    return part
search.lower_by_mixture = counted
solve = am.solve
am.solve = lambda model, method, tolerance, time_limit: solve(model, method, tolerance=tolerance, time_limit=2.0)
test_proofs.METHODS, test_proofs.CHUNK = ("optimal",), 40
test_proofs.test_nothing_exact_is_above_the_upper_bound({chunk})
assert count[0] > 20, count
assert inner_count[0] > 20, inner_count
"""


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [100, 101, 102])
def test_nothing_exact_is_above_the_upper_bound_where_all_bounds_are_used_at_once(chunk):
    """Only long searches use these bounds; without compiling, a constant decides."""
    code = FROM_THE_FIRST_NODE.format(chunk=chunk)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent, env=os.environ | {
        "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
