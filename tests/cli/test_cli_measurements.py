"""Commands on a problem whose looks are not exact: what acts there does, what cannot says so with exit code 2."""

import json

import pytest
from command_line import actmeasure

import actmeasure as am


def test_a_random_agent_acts():
    words = ("--problem", "inspection", "--agent", "random", "--episodes", "3", "--max-steps", "9", "--json")
    shown = json.loads(actmeasure("train", *words).stdout)
    assert [look["name"] for look in shown["model"]["measurements"]] == ["visual", "ultrasonic", "opening"]
    assert shown["summary"]["steps"]["mean"] == 9


@pytest.mark.parametrize("agent", ["atmq", "dyna-atmq", "amrl-q", "foresight", "acno-otp"])
def test_learners_that_need_exact_looks_are_refused(agent):
    message = actmeasure("train", "--problem", "inspection", "--agent", agent, "--episodes", "2", code=2).stderr
    assert (
        f"the agent '{agent}' needs one exact measurement that can be made with every action, and this model has 3"
        in message
    )


def test_a_study_names_the_line_of_an_agent_that_cannot_act_on_a_problem(tmp_path):
    pytest.importorskip("pyarrow")
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "x"\n[[part]]\nname = "p"\nproblems = ["chain", "inspection"]\nagents = [\n  "random",\n  "dyna-atmq",\n]\n'
        '[[part]]\nname = "q"\nproblems = ["chain"]\nagents = ["atmq"]\n'
    )
    message = actmeasure("run", str(study), "--out", str(tmp_path / "out"), code=2).stderr
    assert "line 7: the agent 'dyna-atmq' needs one exact measurement" in message
    assert not (tmp_path / "out").exists()


def test_solve_prints_and_draws_a_policy_graph(tmp_path):
    pytest.importorskip("matplotlib")
    words = ("solve", "inspection", "--method", "atm-qmdp")
    text = actmeasure(*words, "--plot", str(tmp_path / "graph.png")).stdout
    assert "by kind" in text
    assert "ultrasonic" in text
    assert "1. " in text
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    shown = json.loads(actmeasure(*words, "--json").stdout)
    assert shown["lower"] <= shown["upper"]
    assert len(shown["looks_by_kind"]) == 3
    nodes = shown["graph"]["nodes"]
    assert all(0 <= to < len(nodes) for node in nodes for to in node["edges"].values())


def test_the_optimum_where_looks_are_not_exact_is_explained():
    words = ("solve", "tiger", "--explain")
    text = actmeasure(*words).stdout
    assert "value vectors" in text
    assert "What may be seen with listen" in text
    shown = json.loads(actmeasure(*words, "--json").stdout)
    assert [one["action"] for one in shown["explanation"]] == [0, 1, 2]
    assert shown["explanation"][0]["lower"] <= shown["upper"]


def test_the_price_and_the_quality_of_one_measurement():
    words = ("tradeoff", "simple-fatigue", "--measurement", "inspection", "--tolerance", "0.1")
    assert "inspection pays up to a price" in actmeasure(*words).stdout
    shown = json.loads(actmeasure(*words, "--quality", "--json").stdout)
    assert [point["quality"] for point in shown["points"]][:4] == [0.25, 0.5, 0.75, 1.0]
    message = actmeasure("tradeoff", "simple-fatigue", "--quality", code=2).stderr
    assert "name it with --measurement" in message


@pytest.mark.parametrize("discount", [(), ("--discount", "1")])
def test_solve_over_a_finite_life(discount):
    shown = json.loads(actmeasure("solve", "maintenance", "--periods", "5", *discount, "--json").stdout)
    assert shown["steps"] == 5
    assert shown["upper"] - shown["lower"] < 1e-5
    assert shown["model"]["states"] == 5 * 11 + 1


def test_periods_must_be_a_count():
    assert "--periods" in actmeasure("solve", "maintenance", "--periods", "0", code=2).stderr


NAME = "gauge\u202e\x07"


def test_names_of_measurements_and_outcomes_are_shown_escaped(tmp_path):
    path = tmp_path / "model.json"
    P = [[[0.7, 0.3, 0], [1, 0, 0]], [[0, 0.7, 0.3], [1, 0, 0]], [[0, 0, 1], [1, 0, 0]]]
    gauge = am.Measurement.noisy(
        NAME, cost=0.2, outcomes=("o", "k\u202e"), probabilities=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    )
    am.Model.from_arrays(P, [[0, -2], [0, -2], [-3, -4]], measurements=[gauge], discount=0.9).save(path)
    for words in (
        ("solve", path, "--explain", "--nodes", "3"),
        ("plan", path, "--nodes", "3", "--time-limit", "10"),
        ("tradeoff", path, "--measurement", NAME, "--time-limit", "5"),
        ("tradeoff", path, "--measurement", NAME, "--quality", "--time-limit", "5"),
    ):
        text = actmeasure(*words).stdout
        assert "\u202e" not in text
        assert "\x07" not in text
        assert r"gauge\u202e\x07" in text


@pytest.mark.parametrize(
    "setting", ["chain n=1000000000", "inventory capacity=1000000000000", "drone top_speed=1000000000000"]
)
def test_problems_too_large_for_any_machine_are_refused(setting):
    name, value = setting.split()
    message = actmeasure("solve", name, "--set", value, code=2).stderr
    assert f"the problem '{name}' cannot be made with these settings" in message
    assert "choose other ones, such as a smaller size" in message


def test_lakes_have_a_largest_size():
    message = actmeasure("solve", "frozen-lake", "--set", "size=6000", code=2).stderr
    assert "size is 6000, expected a whole number of cells from 2 to 3000" in message


@pytest.mark.parametrize("text", ["inspection = {}", 'currency = "EUR"\nperiod = "year"\ninspection = {}'])
def test_numbers_of_too_many_digits_are_refused(text, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text(text.format("9" * 5000))
    with pytest.raises(am.FitError, match="a number of too many digits"):
        am.Economics.load(prices)
    study = tmp_path / "study.toml"
    study.write_text('name = "x"\n[[part]]\nname = "p"\nseeds = ' + "9" * 5000)
    assert "a number of too many digits" in actmeasure("run", study, "--out", tmp_path / "out", code=2).stderr
