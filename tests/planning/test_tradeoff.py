"""The frontier between reward and looks."""

import math
import os
import signal
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models

import actmeasure as am
from actmeasure.planning.budget import Budget
from actmeasure.planning.tradeoff import tradeoff

TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def lake():
    return tradeoff(am.problems.frozen_lake(4, measuring_cost=0.05), tolerance=1e-4)


def optimum(model, price, tolerance=1e-6):
    cost = model.measuring_cost
    return am.solve(
        model.replace(measuring_cost=price if isinstance(cost, float) else price * cost), tolerance=tolerance
    )


def never_looks(schedule):
    return all(plan.then != "measure" for plan in (*schedule.plans, *([schedule.start] if schedule.start else [])))


def test_measuring_value_without_discount_has_the_closed_form():
    frontier = tradeoff(am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=1.0))
    assert frontier.closed
    assert len(frontier.pieces) == 2
    for price in np.linspace(0, 0.3, 31):
        lower, upper = frontier.value(price)
        closed_form = max(0.8, 1 - price / 0.8)
        assert lower == pytest.approx(closed_form, abs=1e-9)
        assert closed_form <= upper + 1e-12
        assert upper <= closed_form + TOLERANCE
    low, high = frontier.break_even
    assert low <= 0.16 + 1e-12
    assert high >= 0.16 - 1e-12
    assert high - low < 0.002
    looking, blind = frontier.pieces
    assert (looking.reward, looking.measurements, looking.steps) == pytest.approx((1, 1.25, 2.5))
    assert looking.scalarized_return == pytest.approx(0.875)
    assert (blind.reward, blind.measurements, blind.low, blind.high) == pytest.approx((0.8, 0, 0.16, math.inf))


def test_measuring_value_with_discount():
    frontier = tradeoff(am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.95), tolerance=1e-5)
    for price, value in [(0.05, 0.8664), (0.10, 0.8054), (0.14, 0.76), (0.2, 0.76), (100.0, 0.76)]:
        lower, upper = frontier.value(price)
        assert lower == pytest.approx(value, abs=5e-5)
        assert upper - lower <= 1e-5
    low, high = frontier.break_even
    assert 0.13 < low <= high < 0.14


def test_semi_slippery_lake(lake):
    assert lake.closed
    for price, value in [(0.05, 0.6805), (0.10, 0.5892)]:
        lower, upper = lake.value(price)
        assert lower == pytest.approx(value, abs=1.5e-4)
        assert lower <= upper <= lower + 1e-4
        exact = am.evaluate(lake.model.replace(measuring_cost=price), lake.schedule(price)).discounted_return
        assert exact == pytest.approx(lower, abs=1e-12)
    assert lake.piece(0.05).scalarized_return == pytest.approx(0.9)
    assert not never_looks(lake.schedule(0.05))
    assert never_looks(lake.schedule(1.0))


def test_pieces_follow_each_other_and_look_less_and_less(lake):
    assert lake.pieces[0].low == 0
    assert lake.pieces[-1].high == math.inf
    for before, after in zip(lake.pieces, lake.pieces[1:], strict=False):
        assert before.low < before.high == after.low
        assert before.discounted_looks > after.discounted_looks
        assert before.discounted_reward > after.discounted_reward
        assert before.value(after.low) == pytest.approx(after.value(after.low), abs=1e-12)


def test_break_even_is_certified(lake):
    low, high = lake.break_even
    never = am.solve(lake.model, "never", tolerance=1e-7)
    assert lake.value(low - 1e-6)[0] > never.method_upper
    for price in (high, 2 * high):
        assert optimum(lake.model, price).upper <= never.value + 1e-4


@given(models(max_states=4, max_actions=2, discounts=(0.5, 0.9)), st.integers(0, 2**32 - 1))
@examples(15)
def test_bounds_hold_at_random_prices_of_random_models(model, seed):
    frontier = tradeoff(model, tolerance=0.01)
    assert frontier.closed
    assert 0 <= frontier.gap <= 0.01
    low, high = frontier.break_even
    assert 0 <= low <= high
    assert np.all(frontier.lower <= frontier.upper + 1e-9)
    reach = 1.5 * (frontier.pieces[-1].low or 1.0)
    prices = np.sort(np.random.default_rng(seed).uniform(0, reach, 4))
    for price in prices:
        lower, upper = frontier.value(price)
        assert upper - lower <= 0.01 + 1e-9
        found = optimum(model, price, 1e-4)
        assert lower <= found.upper + 1e-9
        assert found.lower <= upper + 1e-9
    grid = np.linspace(0, reach, 41)
    for bound in np.array([frontier.value(price) for price in grid]).T:
        assert np.all(np.diff(bound, 2) >= -1e-9)
        assert np.all(np.diff(bound) <= 1e-9)
    for budget in np.linspace(frontier.pieces[-1].discounted_looks, frontier.pieces[0].discounted_looks, 5):
        plan = frontier.budget(budget)
        assert plan.reward <= plan.upper + 1e-9
        assert plan.upper - plan.reward <= 0.01 + 1e-9


def test_budget_is_met_exactly_and_more_of_it_is_better(lake):
    most = lake.pieces[0].discounted_looks
    plans = [lake.budget(looks) for looks in np.linspace(0, most, 50)]
    for plan in plans:
        assert plan.looks == pytest.approx(plan.budget, abs=1e-12)
        assert 0 <= plan.probability <= 1
        assert plan.reward <= plan.upper <= plan.reward + 1e-4
    assert np.all(np.diff([plan.reward for plan in plans]) > 0)
    toss = lake.budget(0.5)
    assert [piece.discounted_looks for piece in toss.pieces] == pytest.approx([1, 0])
    assert toss.probability == pytest.approx(0.5)
    assert "with probability 0.5 the schedule with 1 looks, else the one with 0" in repr(toss)


def test_budget_of_nothing_and_of_plenty(lake):
    nothing, plenty = lake.budget(0), lake.budget(1000)
    assert (nothing.looks, nothing.probability) == (0, 1)
    assert len(nothing.pieces) == len(plenty.pieces) == 1
    assert never_looks(nothing.pieces[0].schedule)
    assert plenty.reward == lake.value(0)[0]


def test_deterministic_lake_is_never_worth_a_look():
    frontier = tradeoff(am.problems.frozen_lake(4, variant="deterministic", measuring_cost=0.05))
    assert frontier.break_even == (0, 0)
    assert len(frontier.pieces) == 1
    assert frontier.value(0.05) == pytest.approx((0.95**5, 0.95**5))
    assert frontier.budget(2).looks == 0


def test_price_multiplies_a_table_of_costs():
    model = am.problems.frozen_lake(4, measuring_cost=0.05)
    number = tradeoff(model)
    table = tradeoff(model.replace(measuring_cost=np.full((model.n_states, model.n_actions), 0.05)))
    for price in (0.0, 0.5, 1.0, 2.0, 3.0, 10.0):
        assert table.value(price)[0] == pytest.approx(number.value(0.05 * price)[0], abs=TOLERANCE)
    assert table.break_even == pytest.approx(np.array(number.break_even) / 0.05, rel=0.02)
    assert table.pieces[-1].discounted_looks == 0
    assert table.pieces[-1].measurements == 0


def test_costs_that_differ_between_actions():
    model = am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.95)
    costs = np.random.default_rng(1).random((model.n_states, model.n_actions))
    model = model.replace(measuring_cost=costs)
    frontier = tradeoff(model)
    for price in (0.0, 0.1, 0.3, 1.0):
        lower, upper = frontier.value(price)
        found = optimum(model, price)
        assert lower <= found.upper
        assert found.lower <= upper + 1e-9
        assert upper - lower <= TOLERANCE


def test_looks_that_stay_free_are_worth_it_at_any_price():
    model = am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.95)
    frontier = tradeoff(model.replace(measuring_cost=np.zeros((model.n_states, model.n_actions))))
    assert frontier.break_even == (math.inf, math.inf)
    assert frontier.closed
    assert frontier.value(1e9)[0] == pytest.approx(frontier.value(0)[0])


def test_time_limit_and_interrupt_leave_honest_bounds(lake):
    told = []

    def press_ctrl_c(progress):
        if progress.solved == 1 and not told:  # a second time would mean to stop at once
            told.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    stopped = tradeoff(lake.model, tolerance=1e-6, progress=press_ctrl_c)
    assert not stopped.closed
    assert stopped.stopped == "interrupted"
    assert stopped.note.startswith("Stopped with Ctrl-C")
    assert "above the tolerance" in repr(stopped)
    assert stopped.prices.tolist() == [0]
    for price in (0.0, 0.05, 0.1, 0.5):
        lower, upper = stopped.value(price)
        assert lower <= lake.value(price)[1] + 1e-9
        assert upper >= lake.value(price)[0] - 1e-9
        assert upper - lower <= stopped.gap + 1e-9
    low, high = stopped.break_even
    assert low <= lake.break_even[1]
    assert high >= lake.break_even[0]
    told.clear()
    limited = tradeoff(lake.model, tolerance=1e-6, time_limit=30, progress=told.append)
    assert sorted({one.solved for one in told}) == list(range(len(limited.prices) + 1))
    assert told[-1].gap == limited.gap


def test_interrupt_inside_the_solver_is_noticed(monkeypatch):
    """A price that takes long is left early, and no further one is begun."""
    pressed = []

    def press(budget, lower, upper):
        note(budget, lower, upper)
        if len(pressed) < 2:  # in the middle of a search: with the second bounds of price 0
            pressed.append(lower)
            if len(pressed) == 2:
                os.kill(os.getpid(), signal.SIGINT)

    note = Budget.note
    monkeypatch.setattr(Budget, "note", press)
    model = am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=1)
    frontier = tradeoff(model, tolerance=1e-12)
    assert not frontier.closed
    assert frontier.stopped == "interrupted"
    assert len(frontier.prices) == 1


def failing_where(monkeypatch, fails):
    """Let the solver find no bound for some calls, given method, price and time limit."""

    def solve(model, method, tolerance, *, relative_tolerance, budget):
        assert relative_tolerance is None
        if fails(method, float(np.max(model.measuring_cost)), budget.seconds):
            raise am.PlanError("no bound")
        return am.solve(model, method, tolerance, budget=budget)

    monkeypatch.setattr(sys.modules["actmeasure.planning.tradeoff"], "solve", solve)


@pytest.mark.parametrize("limit", [None, 60])
def test_prices_without_any_bound_are_left_out_and_count_as_open(lake, monkeypatch, limit):
    failing_where(monkeypatch, lambda method, price, _: method == "optimal" and price > 0)
    frontier = tradeoff(lake.model, time_limit=limit)
    assert not frontier.closed
    assert frontier.prices.tolist() == [0]
    assert frontier.stopped == ("exhausted" if limit is None else "time")
    assert frontier.note
    for price in (0.05, 0.1, 1.0):
        lower, upper = frontier.value(price)
        assert lower <= lake.value(price)[1] + 1e-9
        assert upper >= lake.value(price)[0] - 1e-9
        assert upper - lower <= frontier.gap + 1e-9


def test_without_a_schedule_that_never_looks_the_frontier_is_found_all_the_same(lake, monkeypatch):
    failing_where(monkeypatch, lambda method, price, _: method == "never")
    frontier = tradeoff(lake.model)
    assert frontier.closed
    assert frontier.stopped == "closed"
    assert frontier.note == ""
    low, high = frontier.break_even
    assert low <= lake.break_even[1]
    assert high >= lake.break_even[0]


def test_where_every_schedule_looks_and_the_largest_price_has_no_bound_the_search_ends(monkeypatch):
    failing_where(monkeypatch, lambda method, price, _: method == "never" or price > 0)
    frontier = tradeoff(am.problems.frozen_lake(4))
    assert frontier.gap == math.inf
    assert frontier.stopped == "exhausted"


def test_the_first_price_gets_all_the_time_if_its_share_is_too_short(lake, monkeypatch):
    failing_where(monkeypatch, lambda method, price, limit: price == 0 and limit < 20)
    assert tradeoff(lake.model, time_limit=30).closed


def test_time_limit_too_short_for_any_bound():
    with pytest.raises(am.PlanError, match=r"time limit of 1e-06 s was over before .* allow more time"):
        tradeoff(am.problems.frozen_lake(30, measuring_cost=0.05, seed=1), time_limit=1e-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"tolerance": 0}, "tolerance is 0, expected a finite number above 0"),
        ({"tolerance": math.nan}, "tolerance is nan"),
        ({"tolerance": "small"}, "tolerance is 'small', expected a finite number above 0"),
        ({"time_limit": -1}, "time_limit is -1, expected seconds above 0"),
        ({"horizon": 0}, "horizon is 0"),
    ],
)
def test_bad_settings(arguments, sentence):
    with pytest.raises(am.PlanError, match=sentence):
        tradeoff(am.problems.measuring_value(), **arguments)


def test_bad_model():
    with pytest.raises(am.PlanError, match="expected a Model"):
        tradeoff("lake.json")


def test_bad_prices_and_budgets(lake):
    with pytest.raises(am.PlanError, match=r"price is -0.1, expected a finite number that is 0 or more"):
        lake.value(-0.1)
    with pytest.raises(am.PlanError, match="price is nan"):
        lake.schedule(math.nan)
    with pytest.raises(am.PlanError, match="budget is -1, expected"):
        lake.budget(-1)
    with pytest.raises(am.PlanError, match="budget is 'two', expected a finite number"):
        lake.budget("two")


def test_table_and_text(lake):
    table = lake.to_pandas()
    assert len(table) == len(lake.pieces)
    assert table["discounted_looks"].is_monotonic_decreasing
    assert "looking breaks even at a price from 0.20" in repr(lake)
    assert "discounted reward" in repr(lake.pieces[0])
    with pytest.raises(ValueError, match="read-only"):
        lake.prices[0] = 1


def test_plot(lake, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    lake.plot(tmp_path / "frontier.png")
    assert (tmp_path / "frontier.png").stat().st_size > 1000
    figure, axes = pyplot.subplots(1, 2)
    drawn = lake.plot(axes)
    assert drawn[0].get_xlabel() == "price of a look"
    assert drawn[1].get_xlabel() == "discounted looks"
    pyplot.close(figure)
    with pytest.raises(am.PlanError, match="expected a path, two matplotlib axes"):
        lake.plot([1, 2, 3])
    flat = tradeoff(am.problems.frozen_lake(4, variant="deterministic", measuring_cost=0.05))
    flat.plot(tmp_path / "flat.pdf")
    assert (tmp_path / "flat.pdf").exists()


@pytest.mark.parametrize(
    ("module", "use", "extra"),
    [
        ("matplotlib", lambda frontier: frontier.plot(), "plots"),
        ("pandas", lambda frontier: frontier.to_pandas(), "data"),
    ],
)
def test_missing_extras_are_named(lake, monkeypatch, module, use, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(am.MissingExtraError, match=rf"actmeasure\[{extra}\]"):
        use(lake)
