"""Uncertainty of a plan whose model is a fit."""

import dataclasses

import pytest
from machines import PRICES, machine

import actmeasure as am
from actmeasure.inspection.advising import confidence
from actmeasure.inspection.diagnostics import diagnostic
from actmeasure.inspection.page import page_html
from actmeasure.inspection.schedules import valid_on_other_models
from actmeasure.planning.budget import Budget


def wearing(chance):
    """The machine, wearing faster or slower."""
    P = machine().transitions.dense().copy()
    P[0, 0] = [1 - chance, chance, 0.0]
    return am.Model.from_arrays(P, machine().rewards, measuring_cost=40.0)


def asked(others, budget=None):
    schedule = am.solve(wearing(0.1), tolerance=1e-4).schedule
    return confidence(wearing(0.1), schedule, others, len(others), 1e-4, budget or Budget(), lambda _: None)


def test_the_same_model_agrees_and_loses_nothing():
    found = asked([wearing(0.1)] * 3)
    assert found.losses == pytest.approx(0, abs=1e-3)
    assert found.same_schedule == 1
    assert all(one.same_plan == one.same_action == 1 for one in found.agreement.values())
    assert len(found.values) == found.asked


def test_losses_are_exact():
    chances = [0.02, 0.1, 0.5]
    found = asked([wearing(chance) for chance in chances])
    schedule = am.solve(wearing(0.1), tolerance=1e-4).schedule
    for number, chance in enumerate(chances):
        best = am.solve(wearing(chance), tolerance=1e-4)
        value = am.evaluate(wearing(chance), schedule).discounted_return
        assert found.values[number] == pytest.approx(value)
        assert found.losses[number] == pytest.approx(best.value - value, abs=1e-2)
    assert found.losses[2] > 1
    assert 0 < found.agreement[0].same_plan < 1
    assert found.agreement[0].earliest < found.agreement[0].latest


def test_time_is_kept():
    assert asked([wearing(0.1)] * 3, Budget(1e-9)) is None


def test_advice_on_a_fit(fitted):
    found = am.inspection.advise(fitted, PRICES, time_limit=None)
    assert found.units.currency == "EUR"
    assert found.units.period == "month"
    assert len(found.confidence.values) == 8
    assert (found.confidence.losses >= 0).all()
    text = str(found)
    assert "the best plans of 8 models fitted to resampled records" in text
    assert "same plan in" in text
    frame = found.to_frame()
    assert frame["same_plan"].between(0, 1).all()
    dearer = am.inspection.advise(fitted, PRICES, price=400.0, time_limit=None)
    assert dearer.price == 400
    assert dearer.confidence.best.mean() < found.confidence.best.mean()


def test_a_fit_needs_prices(fitted):
    with pytest.raises(am.PlanError, match="a fit has no prices"):
        am.inspection.advise(fitted)


def test_failed_units_that_cost_nothing_are_noted(fitted, tmp_path):
    path = tmp_path / "prices.toml"
    prices = (
        'currency = "EUR"\nperiod = "month"\ndiscount = 0.95\ninspection = "40 EUR"\n'
        '[actions]\nrun = "0 EUR"\nrepair = "500 EUR"\n[failure]\nstates = ["broken"]\nprice = "900 EUR"\n'
    )
    for running, noted in (("", True), ('[running]\nbroken = "400 EUR/month"\n', False)):
        path.write_text(prices + running)
        notes = "\n".join(map(str, am.inspection.advise(fitted, path, time_limit=None).notes))
        assert ("stays in 'broken' costs nothing after it has failed" in notes) == noted


def test_a_plan_that_never_acts_says_so_first(fitted, tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(
        'currency = "EUR"\nperiod = "month"\ndiscount = 0.95\ninspection = "40 EUR"\n'
        '[actions]\nrun = "0 EUR"\nrepair = "500 EUR"\n[running]\nworn = "20 EUR/month"\n'
    )
    found = am.inspection.advise(fitted, path, time_limit=None)
    assert "plan-never-acts" in {note.code for note in found.first_notes}
    assert not found.is_usable


@pytest.mark.parametrize(
    ("prices", "missing"),
    [
        ("", True),
        ('[failure]\nstates = ["broken"]\nprice = 0\n', True),
        ('[failure]\nstates = ["broken"]\nprice = "1 EUR"\n', False),
        ('[running]\nbroken = "400 EUR/month"\n', False),
    ],
)
@pytest.mark.parametrize("way", ['inspection = "40 EUR"\n', 'inspection = "40 EUR"\nlife = "6 months"\n'])
def test_a_plan_without_any_price_of_a_failure_should_not_be_used(fitted, tmp_path, prices, missing, way):
    path = tmp_path / "prices.toml"
    path.write_text(
        f'currency = "EUR"\nperiod = "month"\ndiscount = 0.95\n{way}[actions]\nrun = "0 EUR"\nrepair = "500 EUR"\n{prices}'
    )
    found = am.inspection.advise(fitted, path, time_limit=5.0)
    assert ("failure-price-missing" in {note.code for note in found.first_notes}) == missing
    if missing:
        assert not found.is_usable
        assert str(found).index("A price is missing") < str(found).index("cost in all")


def test_what_the_fit_says_of_itself_is_in_the_notes(fitted, tmp_path):
    finding = diagnostic("misfit-history")
    assumed = diagnostic("assumed-transitions", action="repair", states=["broken"], target="good")
    goodness = dataclasses.replace(fitted.goodness, findings=(finding,))
    told = dataclasses.replace(fitted, goodness=goodness, notes=(assumed,), noticed=("broken",))
    path = tmp_path / "prices.toml"
    path.write_text(
        'currency = "EUR"\nperiod = "month"\ndiscount = 0.95\ninspection = "40 EUR"\n'
        '[actions]\nrun = "0 EUR"\nrepair = "500 EUR"\n[running]\nworn = "20 EUR/month"\nbroken = "400 EUR/month"\n'
    )
    found = am.inspection.advise(told, path, time_limit=None)
    assert {finding, assumed} < set(found.notes)
    assert {"model-does-not-fit", "noticed-state-in-plan"} < {note.code for note in found.notes}
    assert "'broken' is noticed at once in the records, but the plan assumes that it is not" in "\n".join(
        map(str, found.notes)
    )
    assert str(finding) in page_html(found)
    # What forbids to use the plan comes before assumptions, and all of it before the figures.
    first = [note.code for note in found.first_notes]
    assert first[:2] == ["model-does-not-fit", "misfit-history"]
    assert "assumed-transitions" in first
    assert not found.is_usable
    assert str(found).index("does not fit the records") < str(found).index("certified: no schedule")


@pytest.mark.parametrize("way", ["", 'life = "6 months"\n'])
def test_a_fit_that_was_not_tested_enough_says_so_first(fitted, tmp_path, way):
    path = tmp_path / "prices.toml"
    path.write_text(
        f'currency = "EUR"\nperiod = "month"\ndiscount = 0.95\ninspection = "40 EUR"\n{way}'
        '[actions]\nrun = "0 EUR"\nrepair = "500 EUR"\n[running]\nbroken = "400 EUR/month"\n'
    )
    few = dataclasses.replace(fitted.goodness, replicates=5, findings=())
    enough = dataclasses.replace(fitted.goodness, replicates=100, findings=())
    for goodness, code in ((None, "fit-not-tested"), (few, "fit-not-decided"), (enough, None)):
        found = am.inspection.advise(dataclasses.replace(fitted, goodness=goodness), path, time_limit=5.0)
        first = {note.code for note in found.first_notes}
        assert first & {"fit-not-tested", "fit-not-decided"} == ({code} if code else set())
        assert found.is_usable


def test_plans_are_compared_by_what_they_do():
    repaired = wearing(
        0.1
    )  # "repair; then it is good, and so on" is the same as "repair, run for some months, then inspect"
    long_form = valid_on_other_models(repaired, am.solve(repaired, tolerance=1e-4).schedule)
    found = confidence(repaired, long_form, [repaired], 1, 1e-4, Budget(), lambda _: None)
    assert found.same_schedule == 1
