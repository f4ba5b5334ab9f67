"""Bounds over the price and the quality of one measurement hold what is solved at prices and qualities in between."""

import sys

import numpy as np
import pytest

import actmeasure as am
from actmeasure.planning.measurement_tradeoff import largest_quality


def machine(cost=0.05, pod=(0.1, 0.8), table=False):
    P = np.array([[[0.8, 0.2], [1.0, 0.0]], [[0.0, 1.0], [0.9, 0.1]]])
    R = np.array([[0.0, -2.0], [-1.5, -2.0]])
    price = cost * np.array([[1.0, 2.0], [3.0, 1.0]]) if table else cost
    looks = [
        am.Measurement.detection("visual", cost=price, pod=pod),
        am.Measurement.noisy("sound", cost=0.3, probabilities=[[0.95, 0.05], [0.05, 0.95]]),
    ]
    return am.Model.from_arrays(P, R, measurements=looks, discount=0.8, initial=[1.0, 0.0])


def at_price(model, price, table=False):
    visual = model.measurements[0]
    cost = price * visual.cost if table else price
    law = visual.law.matrix().toarray()
    changed = am.Measurement.noisy("visual", cost=cost, probabilities=law, outcomes=("miss", "hit"))
    return model.replace(measurements=[changed, model.measurements[1]])


@pytest.mark.parametrize("table", [False, True])
def test_bounds_hold_between_the_solved_prices(table):
    model = machine(table=table)
    curve = am.tradeoff(model, measurement="visual", tolerance=1e-4, relative_tolerance=0.0)
    assert curve.closed
    assert curve.stopped == "closed"
    assert (np.diff(curve.upper) <= 1e-12).all()
    largest = 1.2 * curve.prices[-1]
    for price in np.linspace(0.0, largest, 9):
        solved = am.solve(at_price(model, price, table), tolerance=1e-6, relative_tolerance=0.0)
        lower, upper = curve.value(price)
        assert lower <= solved.upper + 1e-9
        assert upper >= solved.lower - 1e-9
        assert upper - lower <= 1e-4 + 1e-9
    without = am.solve(model.replace(measurements=[model.measurements[1]]), tolerance=1e-6, relative_tolerance=0.0)
    low, high = curve.break_even
    assert 0 < low <= high < np.inf
    assert am.solve(at_price(model, 0.99 * low, table), tolerance=1e-7, relative_tolerance=0.0).upper > without.lower
    above = am.solve(at_price(model, 1.01 * high, table), tolerance=1e-6, relative_tolerance=0.0)
    assert above.lower <= without.upper + 2e-4
    assert "visual" in str(curve)


def test_a_finite_life_and_an_exact_look():
    life = am.lifetime(machine(), 4)
    curve = am.tradeoff(life, measurement="visual", tolerance=1e-3, relative_tolerance=0.0)
    solved = am.solve(am.lifetime(at_price(machine(), 0.02), 4), tolerance=1e-6, relative_tolerance=0.0)
    lower, upper = curve.value(0.02)
    assert lower <= solved.upper + 1e-9
    assert upper >= solved.lower - 1e-9
    value = am.problems.measuring_value(p=0.8, measuring_cost=0.1)
    named, usual = am.tradeoff(value, measurement="look"), am.tradeoff(value)
    assert named.break_even == pytest.approx(usual.break_even, abs=3e-3)


def test_early_stops_are_sound():
    model = machine()
    curve = am.tradeoff(
        model, measurement="visual", tolerance=1e-7, relative_tolerance=0.0, budget=am.planning.Budget(work=3)
    )
    assert not curve.closed
    assert curve.stopped == "beliefs"
    assert curve.note
    for price in (0.0, 0.03, 0.5):
        solved = am.solve(at_price(model, price))
        lower, upper = curve.value(price)
        assert lower <= solved.upper + 1e-9
        assert upper >= solved.lower - 1e-9


def failing_where(monkeypatch, fails):
    """Let the solver find no bound for some calls, given the price of the visual inspection and the time limit."""

    def solve(model, method, tolerance, *, relative_tolerance, budget):
        if model.measurements[0].name == "visual" and fails(model.measurements[0].cost, budget.seconds):
            raise am.PlanError("no bound")
        return am.solve(model, method, tolerance, relative_tolerance=relative_tolerance, budget=budget)

    monkeypatch.setattr(sys.modules["actmeasure.planning.tradeoff"], "solve", solve)


def test_prices_without_any_bound_are_left_out(monkeypatch):
    model = machine()
    failing_where(monkeypatch, lambda price, _: price > 0)
    curve = am.tradeoff(model, measurement="visual", tolerance=1e-4, relative_tolerance=0.0)
    assert curve.prices.tolist() == [0]
    assert not curve.closed
    for price in (0.0, 0.05, 0.5):
        solved = am.solve(at_price(model, price))
        lower, upper = curve.value(price)
        assert lower <= solved.upper + 1e-9
        assert upper >= solved.lower - 1e-9


def test_price_0_gets_all_of_the_time_where_its_share_is_too_short(monkeypatch):
    failing_where(monkeypatch, lambda price, seconds: price == 0 and seconds < 30)
    assert am.tradeoff(machine(), measurement="visual", tolerance=1e-3, time_limit=60).closed
    failing_where(monkeypatch, lambda *_: True)
    with pytest.raises(am.PlanError, match="no bound"):
        am.tradeoff(machine(), measurement="visual", tolerance=1e-3, time_limit=60)


def test_quality_scales_the_probability_of_detection():
    model = machine()
    law = am.planning.with_quality(model, "visual", 0.5).measurements[0].law.matrix().toarray()
    assert law == pytest.approx(np.array([[0.95, 0.05], [0.6, 0.4]]))
    assert largest_quality(model, "visual") == pytest.approx(1.25)
    with pytest.raises(am.PlanError, match=r"quality of 'visual' is 1\.5, expected a number from 0 to 1\.25"):
        am.planning.with_quality(model, "visual", 1.5)
    with pytest.raises(am.PlanError, match="'look' is exact"):
        am.planning.with_quality(am.problems.measuring_value(), "look", 0.5)


def test_what_a_better_instrument_may_cost():
    model = machine(cost=0.1)
    found = am.tradeoff(model, measurement="visual", quality=[0.8, 1.0, 1.25], tolerance=1e-4, relative_tolerance=0.0)
    assert found.stopped == "closed"
    assert [point.quality for point in found.points] == [0.8, 1.0, 1.25]
    today = am.solve(model, tolerance=1e-6, relative_tolerance=0.0)
    assert found.points[1].may_cost == (0.1, 0.1)
    for point in found.points:
        solved = am.solve(am.planning.with_quality(model, 1, point.quality), tolerance=1e-6, relative_tolerance=0.0)
        assert point.lower <= solved.upper + 1e-9
        assert point.upper >= solved.lower - 1e-9
        low, high = point.may_cost
        changed = am.planning.with_quality(model, 1, point.quality)
        assert am.solve(at_price(changed, low), tolerance=1e-6, relative_tolerance=0.0).upper >= today.lower - 1e-4
        assert am.solve(at_price(changed, high), tolerance=1e-6, relative_tolerance=0.0).lower <= today.upper + 2e-4
    assert found.points[0].may_cost[1] < 0.1 < found.points[2].may_cost[0]
    between = am.solve(am.planning.with_quality(model, 1, 1.1))
    lower, upper = found.value(1.1)
    assert lower <= between.upper + 1e-9
    assert upper >= between.lower - 1e-9
    assert "may cost" in str(found)


def test_wrong_input():
    model = machine()
    with pytest.raises(am.PlanError, match="name it with measurement"):
        am.tradeoff(model, quality=True)
    with pytest.raises(am.ModelError, match="name one measurement: measurement='visual'"):
        am.tradeoff(model)
    with pytest.raises(am.ModelError, match=r"visul.*visual"):
        am.tradeoff(model, measurement="visul")
    with pytest.raises(am.PlanError, match="which is none"):
        am.tradeoff(model, measurement=0)
    with pytest.raises(am.PlanError, match="expected True, or a list of factors"):
        am.tradeoff(model, measurement="visual", quality="high")
