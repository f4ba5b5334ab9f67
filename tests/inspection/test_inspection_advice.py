"""The advice: exact, certified, in its units, and honest about time."""

import dataclasses
import itertools
import math
import signal
import sys

import numpy as np
import pytest
from machines import machine

import actmeasure as am
from actmeasure.inspection.economics import Units
from actmeasure.text import plain_number


def test_the_plan_is_the_certified_optimum(advice):
    solution = am.solve(machine(), tolerance=1e-4)
    assert advice.value == pytest.approx(solution.value, abs=1e-3)
    assert advice.value <= advice.upper <= advice.value + 1e-3
    for row in advice.rows:
        there = machine(initial=row.state)
        assert row.value == pytest.approx(am.solve(there, tolerance=1e-4).value, abs=1e-2)
        assert am.evaluate(there, advice.schedule).discounted_return == pytest.approx(row.value)


def test_no_policy_is_better_and_each_is_what_it_says(advice):
    assert [policy.key for policy in advice.policies] == [
        "plan", "always", "never", "every-k", "one-interval", "by-condition",
    ]  # fmt: skip
    for policy in advice.policies:
        assert policy.value <= advice.value + 1e-3
        assert am.evaluate(machine(), policy.schedule).discounted_return == pytest.approx(policy.value)
    by_key = {policy.key: policy for policy in advice.policies}
    assert by_key["always"].evaluation.average_measurements == pytest.approx(1)
    assert by_key["never"].evaluation.average_measurements == 0
    assert by_key["never"].value == pytest.approx(am.solve(machine(), "never", tolerance=1e-4).value, abs=1e-3)
    assert by_key["one-interval"].value <= by_key["by-condition"].value + 1e-6


def test_schedules_are_the_best_between_their_prices(advice):
    pieces = advice.prices
    assert pieces[0].low == 0
    assert pieces[-1].high == math.inf
    assert all(one.high == two.low for one, two in itertools.pairwise(pieces))
    for piece in pieces:
        high = min(piece.high, 1.2 * piece.low + 10)
        for price in (piece.low, (piece.low + high) / 2, high):
            model = machine(measuring_cost=price)
            assert am.evaluate(model, piece.schedule).discounted_return == pytest.approx(piece.value(price))
            assert piece.value(price) >= am.solve(model, tolerance=1e-4).upper - advice.frontier.tolerance - 1e-3
    own = next(piece for piece in pieces if piece.low <= advice.price <= piece.high)
    assert own.value(advice.price) == pytest.approx(advice.value)
    assert own.schedule == advice.schedule


def test_costs_are_shown_above_zero_and_in_their_units(advice):
    assert advice.units == Units("EUR", "month", is_cost=True)
    text = str(advice)
    assert f"cost in all             {advice.units.money(advice.value)}, discounted by 0.95 per month" in text
    assert "no schedule costs less than" in text
    assert "-" not in advice.units.money(advice.value)
    assert "months, then inspect" in text
    per_month = 0.05 * -advice.value
    assert f"cost per month          {plain_number(per_month)} EUR" in text
    average = -am.evaluate(machine(), advice.schedule).average_return
    assert f"in the long run         {plain_number(average)} EUR per month" in text
    assert "EUR" in text.split("compared with")[1].partition("price of an inspection")[0]


def test_tables(advice):
    frame = advice.to_frame()
    assert list(frame.index) == ["good", "worn", "broken"]
    assert frame["cost_eur"].to_numpy() == pytest.approx([-row.value for row in advice.rows])
    assert frame.loc["good", "inspect_after_months"] == advice.rows[0].inspect_after
    compared = advice.compare()
    assert compared["lost_discounted"].min() == 0
    assert compared["cost_discounted"].iloc[0] == pytest.approx(-advice.value)


def test_another_price(advice):
    dear = am.inspection.advise(machine(), price=1e6, time_limit=None)
    assert dear.price == 1e6
    assert dear.evaluation.measurements == 0
    assert advice.evaluation.average_measurements > 0


@pytest.mark.parametrize("price", [-1, math.inf, math.nan, "much"])
def test_prices_that_are_none(price):
    with pytest.raises(am.PlanError, match="price"):
        am.inspection.advise(machine(), price=price)


def test_what_is_no_model_is_said():
    with pytest.raises(am.PlanError, match="expected a Model or a Fit"):
        am.inspection.advise("maintenance")
    with pytest.raises(am.PlanError, match="time_limit is 0"):
        am.inspection.advise(machine(), time_limit=0)
    prices = am.Economics("EUR", "year", 0.97, 120.0)
    with pytest.raises(am.PlanError, match="prices go with a fit"):
        am.inspection.advise(machine(), prices)


def test_a_model_that_ends_and_earns():
    found = am.inspection.advise(am.problems.measuring_value(), time_limit=None)
    assert not found.units.is_cost
    assert found.per_period(found.evaluation) is None
    text = str(found)
    assert "value in all            0.8054" in text
    assert "no schedule is worth more than" in text
    assert "1.25 in all, in 2.5 periods" in text
    assert "the state is then known: s0" in text


def test_a_start_that_is_not_shown():
    model = machine(initial=[0.5, 0.3, 0.2], reveal_start=False)
    found = am.inspection.advise(model, time_limit=None)
    first = found.rows[0]
    assert (first.state, first.name) == (None, "(start)")
    assert first.value == found.value == pytest.approx(am.solve(model, tolerance=1e-4).value, abs=1e-3)
    assert "(start)" in str(found)
    for policy in found.policies:
        assert am.evaluate(model, policy.schedule).discounted_return == pytest.approx(policy.value)


def test_costs_that_differ_by_state():
    costs = np.array([[10.0, 10.0], [40.0, 40.0], [80.0, 80.0]])
    found = am.inspection.advise(machine(measuring_cost=costs), currency="EUR", time_limit=None)
    assert found.price == 1
    assert "10 to 80 EUR, by state and action" in str(found)
    doubled = am.inspection.advise(machine(measuring_cost=costs), price=2, time_limit=None)
    assert doubled.value == pytest.approx(am.solve(machine(measuring_cost=2 * costs), tolerance=1e-4).value, abs=1e-3)
    piece = next(piece for piece in found.prices if piece.low <= 2 <= piece.high)
    assert piece.value(2.0) == pytest.approx(doubled.value, abs=found.frontier.tolerance + 1e-3)


def test_without_discount():
    found = am.inspection.advise(am.problems.measuring_value(discount=1.0), time_limit=None)
    assert found.value == pytest.approx(0.875)
    assert "discounted by" not in str(found)


def test_what_there_was_no_time_for_is_said():
    lake = am.problems.frozen_lake(8, variant="slippery", discount=0.999)
    found = am.inspection.advise(lake, time_limit=1.0)
    assert math.isfinite(found.value)
    assert found.notes
    assert any("time" in str(note) for note in found.notes)
    assert "Notes\n- " in str(found)


def test_progress_says_what_is_done():
    said = []
    am.inspection.advise(am.problems.measuring_value(), progress=said.append)
    assert said[0] == "planning"
    assert any(text.startswith("other prices of an inspection: ") for text in said)


def test_the_longest_interval_tried_is_said(monkeypatch):
    monkeypatch.setattr("actmeasure.inspection.usual_policies.LEAST_LONGEST", 1)
    monkeypatch.setattr("actmeasure.inspection.usual_policies.LONGER", 0)
    found = am.inspection.advise(machine(), time_limit=None)
    notes = {policy.key: policy.note for policy in found.policies}
    assert str(notes["by-condition"]).startswith("The best interval is the longest that was tried, 1 period")


def test_words_of_units():
    units = Units("EUR", "year", is_cost=True)
    assert units.money(-1234.5) == "1,234 EUR"
    assert units.money(-math.inf) == "infinite"
    assert units.periods(1) == "1 year"
    assert units.periods(2.5) == "2.5 years"
    assert Units().money(0.0) == "0"
    assert Units.of(am.problems.frozen_lake(4)).is_cost is False


def test_ctrl_c_keeps_what_is_there():
    def press(text):
        if text == "comparing with inspecting by the calendar":
            signal.raise_signal(signal.SIGINT)

    found = am.inspection.advise(machine(), time_limit=None, progress=press)
    assert found.value == pytest.approx(am.solve(machine(), tolerance=1e-4).value, abs=1e-3)
    assert [policy.key for policy in found.policies] == ["plan", "always", "never"]
    assert found.frontier is None
    assert "Stopped with Ctrl-C before other prices of an inspection were tried" in str(found)


def test_in_a_large_model_the_states_seen_most_come_first(monkeypatch):
    monkeypatch.setattr("actmeasure.inspection.advice.MOST_IN_ORDER", 3)
    lake = am.problems.frozen_lake(4)
    found = am.inspection.advise(lake, time_limit=None)
    rows = found.rows
    expected = [row.state for row in rows if row.is_expected]
    assert [row.is_expected for row in rows] == sorted((row.is_expected for row in rows), reverse=True)
    assert expected[0] == 0  # where it begins
    assert set(expected) == found.expected
    assert expected != sorted(expected)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (am.BlindPlan((0, 0, 0, 0)), "run for 4 months, then inspect"),
        (am.BlindPlan((0,)), "run, then inspect 1 month later"),
        (am.BlindPlan((1, 0, 0)), "repair, run for 2 months, then inspect"),
        (am.BlindPlan((0, 0, 1)), "run for 2 months, repair, then inspect 1 month later"),
        (am.BlindPlan((0, 0, 1), then="known"), "run for 2 months, repair; the state is then known"),
        (am.BlindPlan((1,), then="end"), "repair; it is then over"),
        (am.BlindPlan((1, 0, 0), then="repeat", repeat=1), "repair, run without end"),
        (
            am.BlindPlan((0, 0, 1), then="repeat", repeat=3),
            "run for 2 months, repair; the last 3 months repeated without end",
        ),
    ],
)
def test_plans_in_an_inspectors_words(plan, words):
    assert plan.describe(machine(), "month") == words
    schedule = am.Schedule({1: plan}, 3)
    assert schedule.describe(machine(), "month") == f"after seeing worn: {words}"


def careless(model, method="optimal", *settings, **more):
    """A solver that came to nothing better than running for ever, with a bound that holds."""
    found = am.solve(model, method, *settings, **more)
    if method != "optimal":
        return found
    poor = am.Schedule(dict.fromkeys(range(3), am.BlindPlan((0,), then="repeat", repeat=1)), 3)
    value = am.evaluate(model, poor)
    return dataclasses.replace(
        found, schedule=poor, evaluated=value, lower=value.discounted_return, stopped="time", upper=found.upper + 50
    )


def test_the_plan_is_no_worse_than_anything_in_hand(advice, monkeypatch):
    monkeypatch.setattr(sys.modules["actmeasure.inspection.advising"], "solve", careless)
    found = am.inspection.advise(machine(), time_limit=None)
    assert all(found.lost(policy) >= 0 for policy in found.policies)
    assert found.value == max(policy.value for policy in found.policies)
    assert found.value >= found.frontier.piece(40.0).value(40.0) - 1e-9
    best = am.solve(machine(), tolerance=1e-4)
    assert best.lower <= found.upper < best.upper + 50  # the frontier's bound is the tighter one
    assert found.value == pytest.approx(best.value, abs=found.frontier.tolerance)
    assert any("The plan is the best schedule found, by" in str(note) for note in found.notes)
    assert found.compare()["lost_discounted"].min() == 0
    own = next(piece for piece in found.prices if piece.low <= 40 <= piece.high)
    assert own.value(40.0) == pytest.approx(found.value)


def test_a_hurried_plan_is_no_worse_than_what_it_is_compared_with():
    found = am.inspection.advise(am.problems.sewer(measuring_cost=300.0, discount=0.999), time_limit=0.5)
    assert all(found.lost(policy) >= 0 for policy in found.policies)
    assert found.value <= found.upper


def test_acting_in_rounds_without_a_look(advice, monkeypatch):
    def none_found(model, method, *settings, **more):
        if method == "never":
            poor = am.Schedule({0: am.BlindPlan((0,), then="repeat", repeat=1)}, 3)
            value = am.evaluate(model, poor)
            found = am.solve(model, "never")
            lower = value.discounted_return
            return dataclasses.replace(
                found, schedule=poor, evaluated=value, lower=lower, stopped="time", method_upper=0.0
            )
        return am.solve(model, method, *settings, **more)

    monkeypatch.setattr("actmeasure.inspection.usual_policies.solve", none_found)
    found = am.inspection.advise(machine(), time_limit=None)
    never = next(policy for policy in found.policies if policy.key == "never")
    rounds = [am.BlindPlan((0,) * (n - 1) + (1,), then="repeat", repeat=n) for n in range(2, 30)]
    values = [am.evaluate(machine(), am.Schedule({0: plan}, 3)).discounted_return for plan in rounds]
    assert never.value >= max(values) - 1e-9
    assert never.note.code == "policy-not-closed"
    assert found.prices[-1].looks == 0
    assert found.prices[-1].reward >= never.value - 1e-9


def test_averages_are_without_digits_that_say_nothing():
    units = Units("EUR", "year")
    assert units.about(5.888) == "5.9 years"
    assert units.about(1234.5) == "1,234 years"
    assert units.periods(1 + 1e-9) == "1 year"
