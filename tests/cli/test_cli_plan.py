"""`actmeasure plan`, as a user types it."""

import csv
import json
import os
import re

import pytest
from command_line import actmeasure
from machines import machine

import actmeasure as am
from actmeasure.cli import app

PRICES_FILE = """
currency = "EUR"
period = "month"
discount = 0.95
inspection = "40 EUR"
[actions]
run = "0 EUR"
repair = "500 EUR"
[running]
worn = "20 EUR/month"
broken = "400 EUR/month"
"""


def run(*arguments, code=0):
    return actmeasure("plan", *arguments, code=code)


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "machine.json"
    machine().save(path)
    return path


@pytest.fixture
def fit_file(tmp_path, fitted):
    path = tmp_path / "fit.npz"
    fitted.save(path)
    (tmp_path / "prices.toml").write_text(PRICES_FILE)
    return path


def test_a_model_file_gives_words_table_csv_and_page(model_file, tmp_path):
    page, table = tmp_path / "plan.html", tmp_path / "plan.csv"
    units = ("--currency", "EUR", "--period", "month")
    done = run(model_file, *units, "--report", page, "--csv", table)
    assert done.stdout.startswith("Inspection plan for machine\n")
    for part in ("after seeing", "months, then inspect", "compared with", "price of an inspection", "certified"):
        assert part in done.stdout
    assert done.stderr == f"Table: {table}\nPage: {page}\n"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["state"] for row in rows] == ["good", "worn", "broken"]
    assert float(rows[0]["cost_eur"]) > 0
    assert page.read_text().startswith("<!doctype html>")


def test_json_is_complete_and_a_price_can_be_given(model_file):
    found = json.loads(run(model_file, "--price", "60", "--json").stdout, parse_constant=pytest.fail)
    solution = am.solve(machine(measuring_cost=60.0), tolerance=1e-4)
    assert found["price_of_an_inspection"] == 60
    assert found["cost_discounted"] == pytest.approx(-solution.value, abs=1e-2)
    assert found["best_possible"] <= found["cost_discounted"]
    assert found["schedule"][0]["plan"] == solution.schedule[0].describe(machine(), "period")
    assert found["prices"][-1]["high"] is None
    assert {policy["key"] for policy in found["policies"]} >= {"plan", "always", "never", "every-k"}
    assert found["cost_per_period_long_run"] == pytest.approx(-solution.evaluation.average_return, rel=1e-3)


def test_a_named_problem_takes_settings():
    found = json.loads(run("measuring-value", "--set", "p=0.8", "--json").stdout)
    assert found["value_discounted"] == pytest.approx(0.8054, abs=1e-4)
    assert found["inspections_in_all"] == pytest.approx(1.25)


def test_a_fit_with_prices(fit_file, tmp_path):
    page = tmp_path / "plan.html"
    done = run(fit_file, "--economics", tmp_path / "prices.toml", "--report", page, code=3)  # the fit is rejected
    assert done.stdout.index("Read this first: the plan should not be used") < done.stdout.index("certified")
    assert re.search(r"best plans of 8 models fitted to resampled records", done.stdout)
    assert "EUR per month" in done.stdout
    assert "Uncertainty of the plan" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("maintenanc",), "did you mean 'maintenance'"),
        (("nowhere.json",), "no such file"),
        (("notes.txt",), "file ending"),
        (("records.csv",), "actmeasure fit records.csv"),
        (("broken.npz",), "not a sound .npz archive"),
        (("broken.json",), "broken.json"),
        (("measuring-value", "--price", "-1"), "price of an inspection is -1.0, expected a finite number"),
        (("measuring-value", "--report", "nowhere/plan.html"), "there is no folder 'nowhere'"),
        (("measuring-value", "--report", "."), "it is a folder"),
        (
            ("measuring-value", "--report", "plan.pdf"),
            "the page 'plan.pdf' cannot be written with the ending '.pdf', only as .html",
        ),
        (("measuring-value", "--report", "plan.png"), "choose a name such as plan.html"),
        (("measuring-value", "--report", "plan"), "only as .html or .htm"),
        (
            ("measuring-value", "--csv", "plan.xlsx"),
            "the table 'plan.xlsx' cannot be written with the ending '.xlsx', only as .csv",
        ),
        # Said before anything is read or computed.
        (("no-such-problem", "--report", "plan.pdf"), "only as .html"),
        (("measuring-value", "--csv", "nowhere/plan.csv"), "there is no folder 'nowhere'"),
        (("measuring-value", "--economics", "prices.toml"), "leave --economics out"),
        (("measuring-value", "--period", ""), "--period is empty"),
        (("nowhere.npz", "--economics", "prices.toml"), "cannot read"),
        (("broken.npz", "--economics", "prices.toml"), "not a sound .npz archive"),
        (("measuring-value", "--time-limit", "0"), "time_limit is 0"),
        (("fit.npz",), "give a file of prices with --economics"),
        (("fit.npz", "--economics", "nowhere.toml"), "no such file"),
        (("fit.npz", "--economics", "prices.toml", "--currency", "USD"), "are in its file of prices"),
        (("fit.npz", "--economics", "prices.toml", "--set", "size=3"), "is a fit"),
    ],
)
def test_mistakes_are_one_sentence(fit_file, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not an archive")
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(am.ActMeasureError) as caught:
        app(["plan", *arguments], standalone_mode=False)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistakes_give_exit_code_2():
    message = run("measuring-value", "--price", "-1", code=2).stderr
    assert message.startswith("actmeasure: the price of an inspection is -1.0")
    assert len(message.strip().splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_page_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    assert "no permission" in run("measuring-value", "--report", tmp_path / "plan.html", code=2).stderr
