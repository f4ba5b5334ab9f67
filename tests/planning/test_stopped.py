"""Why planning stopped, and what there is when it is stopped early."""

import signal

import numpy as np
import pytest

import actmeasure as am
from actmeasure.planning import optimal
from actmeasure.planning.act_then_measure import ActThenMeasure
from actmeasure.planning.budget import Budget

LAKE = am.problems.frozen_lake(4)
LARGER = am.problems.frozen_lake(20, seed=1, discount=0.99)
ROUNDING = 1e-9


@pytest.mark.parametrize("method", ["optimal", "never"])
@pytest.mark.parametrize("discount", [0.95, 1.0])
def test_a_search_says_that_its_bounds_closed(method, discount):
    solution = am.solve(am.problems.measuring_value(discount=discount), method)
    assert solution.stopped == "closed"


@pytest.mark.parametrize("method", ["atm", "atm-qmdp", "atm-linear", "always", "every-3"])
def test_what_is_no_search_is_done(method):
    assert am.solve(LAKE, method).stopped == "done"


@pytest.mark.parametrize("method", ["optimal", "never"])
def test_a_search_says_that_its_time_was_over(method):
    am.solve(LAKE, method)  # compiles
    lake = am.problems.frozen_lake(20, seed=236, discount=0.99)  # the hardest known of its size: open after minutes
    solution = am.solve(lake, method, tolerance=1e-12, time_limit=0.5)
    assert solution.stopped == "time"
    assert solution.lower < solution.upper


def test_a_search_says_that_it_cannot_get_closer(monkeypatch):
    monkeypatch.setattr(optimal.Search, "upper", property(lambda search: 2.0))
    solution = am.solve(LAKE)
    assert solution.stopped == "exhausted"
    assert solution.upper == 2.0


def test_a_search_ends_when_it_may_not_grow(monkeypatch):
    monkeypatch.setattr(optimal, "MOST_GRAPH_BYTES", 20_000_000)
    model = am.problems.frozen_lake(8, "slippery", discount=0.99)
    solution = am.solve(model, tolerance=1e-9)
    assert solution.stopped == "memory"
    assert solution.value == am.evaluate(model, solution.schedule).discounted_return
    assert solution.lower <= am.solve(model, "atm").upper + ROUNDING
    assert solution.upper >= am.solve(model, "atm").lower - ROUNDING


@pytest.mark.parametrize("discount", [0.99, 1.0])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("notes", [1, 2])
def test_act_then_measure_stopped_early_is_no_worse_than_looking_always(discount, hidden, notes):
    model = LARGER.replace(discount=discount)
    if hidden:
        initial = np.zeros(model.n_states)
        initial[[0, 1]] = 0.5
        model = model.replace(initial=initial, reveal_start=False)
    budget = Budget()
    budget.progress = lambda progress: setattr(budget, "seconds", 0.0 if len(budget.record) >= notes else None)
    plan = ActThenMeasure().solve(model, budget)
    value = am.evaluate(model, plan.schedule).discounted_return
    assert plan.stopped == "time"
    assert value >= am.solve(model, "always").value - ROUNDING
    assert value >= budget.record[-1].lower - ROUNDING
    assert value <= plan.upper + ROUNDING


@pytest.mark.parametrize("method", ["atm", "optimal", "never"])
@pytest.mark.parametrize("discount", [0.99, 1.0])
def test_ctrl_c_at_the_first_bounds(method, discount):
    model = LARGER.replace(discount=discount)
    pressed = []

    def press(progress):
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    solution = am.solve(model, method, tolerance=1e-12, progress=press)
    assert solution.stopped == "interrupted"
    assert solution.lower <= solution.upper


@pytest.mark.parametrize("discount", [0.99, 1.0])
def test_an_open_search_is_joined_by_act_then_measure(monkeypatch, discount):
    model = LARGER.replace(discount=discount)
    budget, plans = Budget(), []

    def and_no_more(*arguments):
        plans.append(solve(*arguments))
        budget.seconds = 0.0
        return plans[0]

    solve = ActThenMeasure.solve
    monkeypatch.setattr(ActThenMeasure, "solve", and_no_more)
    monkeypatch.setattr(optimal, "HEAD_SECONDS", 0.0)
    monkeypatch.setattr(optimal, "WARM_START_SECONDS", 0.0)
    plan = optimal.Optimal(tolerance=1e-9).solve(model, budget)
    joined = am.evaluate(model, plans[0].schedule).discounted_return
    assert plan.stopped == "time"
    assert am.evaluate(model, plan.schedule).discounted_return >= joined - ROUNDING


def test_progress_without_discount_reports_bounds_that_hold():
    seen = []
    model = am.problems.measuring_value(0.8, 0.05, discount=1.0)
    am.solve(model, progress=seen.append)
    optimum = 1 - 0.05 / 0.8
    assert len(seen) > 1
    assert all(each.lower <= optimum + ROUNDING and each.upper >= optimum - ROUNDING for each in seen)


def test_a_value_above_the_bound_is_reported_as_an_error(monkeypatch):
    monkeypatch.setattr(optimal.Search, "upper", property(lambda search: 0.5))
    with pytest.raises(RuntimeError, match=r"above the bound 0\.5 on every schedule.*please report it"):
        am.solve(LAKE, tolerance=1e-3)


def test_a_discount_close_to_1_is_searched_on_until_the_bounds_are_close():
    lake = am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05, discount=0.9995)
    solution = am.solve(lake, tolerance=1e-4)
    assert solution.stopped == "closed"
    assert solution.gap <= 1e-4


def test_a_calendar_with_long_pauses_keeps_to_the_time():
    with pytest.raises(am.PlanError, match="time limit"):
        am.solve(am.problems.frozen_lake(20, seed=1), "every-10000", time_limit=0.2)
    with pytest.raises(am.PlanError, match="use never"):
        am.solve(am.problems.frozen_lake(4), "every-99999999999")
