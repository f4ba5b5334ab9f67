"""Prices with units: what a model gets from them, and what is said about wrong ones."""

import dataclasses

import numpy as np
import pytest

import actmeasure as am

PRICES = """\
currency = "EUR"
period = "year"
interest = "3 %/year"
inspection = "120 EUR"

[actions]
wait = 0
repair = { "2" = "700 EUR", otherwise = "900 EUR" }

[running]
"2" = "10 EUR/month"

[failure]
states = ["3"]
price = "20000 EUR"
"""
SEEN = {
    "unit": [1] * 8 + [2] * 8,
    "time": [*range(8)] * 2,
    "state": list("12312312") + list("13213213"),
    "action": ["wait", "repair"] * 4 + ["repair", "wait"] * 4,
}


@pytest.fixture(scope="module")
def fit():
    return am.fit(SEEN, bootstrap=3, goodness=0)


def prices(tmp_path, text=PRICES):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def test_a_model_has_prices_as_negative_rewards(tmp_path, fit):
    economics = am.Economics.load(prices(tmp_path))
    assert economics.discount == pytest.approx(1 / 1.03)
    assert economics.running == {"2": pytest.approx(120)}
    model = fit.model(economics)
    assert model.state_names == ("1", "2", "3")
    assert model.action_names == ("repair", "wait")
    assert model.measuring_cost == 120
    expected = -np.array([[900.0, 0.0], [700 + 120, 0 + 120], [900, 0]])
    failing = fit.probabilities[:, :, 2].T * 20000
    failing[2] = 0  # it has failed already
    np.testing.assert_allclose(model.rewards, expected - failing)
    np.testing.assert_allclose(model.initial_distribution, [1, 0, 0])
    assert fit.model(prices(tmp_path)) == model
    np.testing.assert_allclose([m.transitions.probabilities.size for m in fit.models(economics)], 18)


def test_prices_by_state_action_and_ends(tmp_path, fit):
    text = PRICES.replace('inspection = "120 EUR"', 'discount = 0.9\nterminal = ["3"]').replace(
        'interest = "3 %/year"\n', ""
    )
    by_action = text + '[inspection]\nprice = 50\n[inspection.by_action]\nrepair = "0 EUR"\n'
    model = fit.model(prices(tmp_path, by_action))
    assert model.discount == 0.9
    assert model.terminal.tolist() == [False, False, True]
    np.testing.assert_array_equal(model.measuring_cost, [[0, 50], [0, 50], [0, 0]])
    by_state = text + '[inspection]\nprice = 50\n[inspection.by_state]\n"2" = "70 EUR"\n'
    np.testing.assert_array_equal(fit.model(prices(tmp_path, by_state)).measuring_cost, [[50, 50], [70, 70], [0, 0]])


def test_rates_and_running_costs_are_converted_between_periods(tmp_path):
    monthly = am.Economics.load(prices(tmp_path, PRICES.replace('period = "year"', 'period = "month"')))
    assert monthly.discount**12 == pytest.approx(1 / 1.03)
    assert monthly.running == {"2": pytest.approx(10)}


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('currency = "EUR"\n', "", ["there is no currency", "no unit", 'currency = "EUR"']),
        ('period = "year"\n', "", ["there is no period"]),
        ('interest = "3 %/year"\n', "", ["neither discount nor interest"]),
        ('interest = "3 %/year"', 'interest = "3 %/year"\ndiscount = 0.9', ["both discount and interest"]),
        ('"3 %/year"', "3", ["line 3: interest is 3, which has no unit", '"3 %/year"']),
        ('"3 %/year"', '"3 EUR"', ["line 3: interest is '3 EUR'"]),
        ('"3 %/year"', '"3 %/fortnight"', ["line 3", "unknown period 'fortnight'"]),
        ('interest = "3 %/year"', "discount = 1.2", ["line 3: discount is 1.2"]),
        ('"120 EUR"', '"120 USD"', ["line 4: inspection is '120 USD'", 'write "120 EUR"']),
        ('"120 EUR"', '"120"', ["line 4: inspection is '120', which has no unit", '"50 EUR"']),
        ('"120 EUR"', '"120 USD"', ["line 4", "the currency of the file is EUR"]),
        ('"120 EUR"', '"-120 EUR"', ["line 4", "0 or more", "positive numbers"]),
        ('"120 EUR"', '"1.200,50 EUR"', ["line 4", "'1.200,50' is not a number", "decimal point"]),
        ('"120 EUR"', '"120 EUR/year"', ["line 4", "a price per year, expected a price for one time"]),
        ('"120 EUR"', "true", ["line 4: inspection is True"]),
        ('inspection = "120 EUR"\n', "", ["there is no price of an inspection"]),
        ('"10 EUR/month"', '"10 EUR"', ["line 11: running.2 is '10 EUR', expected a price per year"]),
        ('"700 EUR"', '"700 EURO"', ["line 8: actions.repair.2", "EUR"]),
        ('price = "20000 EUR"', "", ["line 13", "states and a price"]),
        ('states = ["3"]', 'states = "3"', ["line 14: failure.states is '3', expected a list"]),
        ("[running]", "[runing]", ["line 10: unknown key 'runing'; did you mean 'running'"]),
        ("[running]", '["a` - at `$.b"]', ["line 10: unknown key 'a` - at `$.b'"]),
        ("states =", '"a` - at `$.b" =', ["line 14: unknown key 'a` - at `$.b'"]),
        ("[actions]", "[actions", ["not valid TOML", "line 6"]),
        ('"2" = "10 EUR/month"', '"2" = "10 EUR/month"\n"2" = 3', ["not valid TOML", "line 12"]),
    ],
)
def test_wrong_prices_are_sentences_with_the_line(tmp_path, old, new, parts):
    assert old in PRICES
    with pytest.raises(am.FitError) as error:
        am.Economics.load(prices(tmp_path, PRICES.replace(old, new)))
    assert str(error.value).startswith(str(tmp_path / "prices.toml"))
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('"2" = "10', '"2b" = "10', ["line 11: unknown state '2b'; did you mean '2'"]),
        ('["3"]', '["4"]', ["line 14: unknown state '4'"]),
        ("wait = 0", "weit = 0", ["line 7: unknown action 'weit'; did you mean 'wait'"]),
        ("wait = 0\n", "", ["line 6: the action 'wait' has no price"]),
        (', otherwise = "900 EUR"', "", ["line 8: the action 'repair' has no price in state '1'", "otherwise"]),
        ('"2" = "700', '"9" = "700', ["line 8: unknown state '9'"]),
        ('"120 EUR"\n', '"120 EUR"\nterminal = ["2"]\n', ["line 12", "'2' has running costs, but it is terminal"]),
    ],
)
def test_names_that_the_fit_does_not_have_are_sentences_with_the_line(tmp_path, fit, old, new, parts):
    assert old in PRICES
    with pytest.raises(am.FitError) as error:
        fit.model(prices(tmp_path, PRICES.replace(old, new)))
    assert str(error.value).startswith(str(tmp_path / "prices.toml"))
    for part in parts:
        assert part in str(error.value)


def test_the_period_of_the_records_and_the_prices_must_agree(tmp_path):
    monthly = am.fit(SEEN, bootstrap=0, goodness=0, period="month")
    with pytest.raises(
        am.FitError, match=r"line 2: the prices are for a period of a year, but the records .* by month"
    ):
        monthly.model(prices(tmp_path))
    assert monthly.model(prices(tmp_path, PRICES.replace('period = "year"', 'period = "month"'))).n_states == 3


def test_dropped_actions_may_have_a_price(tmp_path, fit):
    assert fit.without(["repair"]).model(prices(tmp_path)).action_names == ("wait",)
    with pytest.raises(am.FitError, match="no action is left"):
        fit.without(["repair", "wait"])


def test_prices_in_python_are_checked(fit):
    economics = am.Economics("EUR", "year", 0.95, 10, actions={"wait": 0, "repair": 5})
    assert fit.model(dataclasses.replace(economics, inspection=20)).measuring_cost == 20
    for change, part in (
        ({"inspection": -1}, "inspection is -1"), ({"discount": 0}, "discount is 0"), ({"currency": ""}, "currency is ''"),
        ({"running": {"2": "5 EUR"}}, "expected a number"), ({"actions": {"wait": {"1": -3}}}, "0 or more"),
        ({"inspection_by_state": {"1": 2}, "inspection_by_action": {"wait": 3}}, "only one of the two"),
    ):  # fmt: skip
        with pytest.raises(am.FitError, match=part):
            dataclasses.replace(economics, **change)
    with pytest.raises(am.FitError, match="no bootstrap replicates"):
        am.fit(SEEN, bootstrap=0, goodness=0).models(economics)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(am.FitError, match="no such file"):
        am.Economics.load(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes('currency = "EUR"\n# Währung\n'.encode("cp1252"))
    with pytest.raises(am.FitError, match="line 2: this is not UTF-8 text"):
        am.Economics.load(tmp_path / "latin.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(am.FitError, match="larger than 1 MiB"):
        am.Economics.load(tmp_path / "large.toml")
