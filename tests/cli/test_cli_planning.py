"""`actmeasure solve` and `actmeasure tradeoff`, as a user types them."""

import json
import math
import sys

import numpy as np
import pytest
from command_line import actmeasure
from terminal import Terminal

import actmeasure as am
from actmeasure import check_certificate as checker
from actmeasure.cli import app
from actmeasure.cli.output import print_json
from actmeasure.cli.planning import _break_even
from actmeasure.cli.problem_options import read_settings

SLIPPERY = ("--set", "size=8", "--set", "variant=slippery", "--discount", "0.999")
SLIPPERY_LAKE = ("frozen-lake", *SLIPPERY)
LONG = ("solve", *SLIPPERY_LAKE, "--tolerance", "1e-12")


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """A time limit is for searching, not for the first compilation of the kernels."""
    am.solve(am.problems.frozen_lake(4))


def command(*arguments):
    return [sys.executable, "-m", "actmeasure", *map(str, arguments)]


def run(*arguments, code=0):
    done = actmeasure(*arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def test_solve_shows_value_bounds_looks_and_plans():
    text = run("solve", "frozen-lake")
    for part in ("value    0.680482", "optimum  0.680482 to", "2 per episode", "3x down; the state is then known"):
        assert part in text
    assert "more time" not in text


def test_only_twenty_plans_are_shown():
    text = run("solve", "frozen-lake", "--set", "size=8", "--method", "always")
    shown = text.split("-----\n")[-1].splitlines()
    count = len(am.solve(am.problems.frozen_lake(8), "always").schedule)
    assert len(shown) == 21
    assert shown[-1] == f"... and {count - 20} more plans"


def test_settings_cost_and_discount_reach_the_model():
    arguments = (
        "--set",
        "size=4",
        "--set",
        "variant=slippery",
        "--set",
        "seed=3",
        "--cost",
        "0.01",
        "--discount",
        "0.9",
    )
    found = json.loads(run("solve", "frozen-lake", *arguments, "--json"))
    model = am.problems.frozen_lake(4, variant="slippery", seed=3, measuring_cost=0.01, discount=0.9)
    assert found["value"] == pytest.approx(am.solve(model).value)
    assert found["model"] == {"states": 16, "actions": 4, "discount": 0.9, "measuring_cost": 0.01}
    assert read_settings(["a=1", "b=x", "c=[1, 2]", "d=true", "e=a=b"]) == {
        "a": 1, "b": "x", "c": [1, 2], "d": True, "e": "a=b",
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["json", "npz", "pomdp"])
def test_solve_reads_model_files(tmp_path, ending):
    path = tmp_path / f"model.{ending}"
    am.problems.measuring_value().save(path)
    found = json.loads(run("solve", path, "--json"))
    assert found["value"] == pytest.approx(0.805369, abs=1e-6)
    assert found["plans"][0]["then"] == "measure"


def test_a_relative_tolerance_can_be_asked_for():
    """Where looks are not exact, --tolerance alone does not make bounds closer than a thousandth."""
    found = json.loads(run("solve", "tiger", "--tolerance", "1e-7", "--relative-tolerance", "0", "--json"))
    assert found["gap"] <= 1e-7
    curve = json.loads(
        run("tradeoff", "inspection", "--measurement", "visual", "--relative-tolerance", "0.05", "--json")
    )
    assert curve["gap"] > 1e-3
    assert "name it with --measurement" in run("tradeoff", "frozen-lake", "--relative-tolerance", "0.1", code=2)
    assert "--relative-tolerance out" in run(
        "solve", "tiger", "--method", "pomcp", "--relative-tolerance", "0.1", code=2
    )


def test_a_certificate_comes_with_the_model_that_its_checker_reads(tmp_path):
    run("solve", "tiger", "--certificate", tmp_path / "proof.npz")
    assert checker.main([str(tmp_path / "proof.model.json"), str(tmp_path / "proof.npz")]) == 0


def test_json_of_a_solution_is_complete():
    found = json.loads(run("solve", "frozen-lake", "--json"))
    solution = am.solve(am.problems.frozen_lake(4))
    plans = {
        plan["state"]: am.BlindPlan(tuple(plan["actions"]), then=plan["then"], repeat=plan["repeat"])
        for plan in found["plans"]
    }
    assert am.Schedule(plans, 16) == solution.schedule
    assert found["lower"] <= found["upper"]
    assert found["looks"] == pytest.approx(2)
    assert found["plans"][0]["action_names"] == ["right"]
    linear = json.loads(run("solve", "frozen-lake", "--method", "atm-linear", "--json"))
    assert linear["claimed"] == pytest.approx(0.723593, abs=1e-6)
    assert linear["value"] == 0
    assert linear["steps"] is None  # it goes on for ever, and JSON has no infinity
    never = json.loads(run("solve", "frozen-lake", "--method", "never", "--json"))
    assert never["method_upper"] == pytest.approx(never["value"], abs=1e-6)


@pytest.mark.parametrize("name", ["frozen-lake", "measuring-value"])
def test_solve_draws(tmp_path, name):
    path = tmp_path / "plans.png"
    found = run("solve", name, "--plot", path, "--json")
    assert json.loads(found)["method"] == "optimal"
    assert path.stat().st_size > 1000


def test_a_lake_of_unknown_shape_is_drawn_as_other_models_are(tmp_path):
    am.problems.frozen_lake(map=["SFF", "FFG"]).save(tmp_path / "lake.json")
    run("solve", tmp_path / "lake.json", "--plot", tmp_path / "plans.svg")
    assert "measuring value" in (tmp_path / "plans.svg").read_text()


def test_an_oblong_map_is_drawn(tmp_path):
    run("solve", "frozen-lake", "--set", 'map=["SFF", "FFG"]', "--plot", tmp_path / "plans.svg")
    assert (tmp_path / "plans.svg").exists()


def test_a_time_limit_gives_the_best_so_far():
    text = run(*LONG, "--time-limit", "1")
    assert "The time limit was reached: more time may close the gap." in text
    assert "optimum" in text
    found = json.loads(run(*LONG, "--time-limit", "1", "--json"))
    assert found["stopped"] == "time"
    assert found["notes"] == ["The time limit was reached: more time may close the gap."]


@pytest.mark.slow
def test_ctrl_c_gives_the_best_so_far_and_progress_shows_the_gap():
    text, shown = interrupted(LONG)
    assert "<= optimum <=" in shown, shown
    assert "Stopped with Ctrl-C: more time may close the gap." in text
    assert "after seeing" in text


@pytest.mark.slow
def test_tradeoff_says_that_and_why_it_is_not_within_tolerance():
    long = ("tradeoff", *SLIPPERY_LAKE, "--tolerance", "1e-9")
    text = run(*long, "--time-limit", "2")
    assert "above the tolerance of 1e-09" in text
    assert "The time limit was reached: more time may close the gap." in text
    text, shown = interrupted((*long, "--json"))
    assert " solved, " in shown
    found = strict_json(text)
    assert found["stopped"] == "interrupted"
    assert found["notes"] == ["Stopped with Ctrl-C: more time may close the gap."]


def interrupted(arguments):
    """What a command prints and shows when Ctrl-C is pressed as soon as it shows progress; on a terminal, so that it does."""
    terminal = Terminal(command(*arguments))
    terminal.wait_until(lambda shown: "Ctrl-C" in shown, "what Ctrl-C does")
    terminal.press_ctrl_c()
    text, shown = terminal.end()
    assert terminal.process.returncode == 0
    return text, shown


@pytest.fixture(scope="module")
def losing(tmp_path_factory):
    """The gamble without discount, where every step costs something: whoever goes in circles loses without end."""
    gamble = am.problems.measuring_value(discount=1.0)
    rewards = np.where(gamble.terminal[:, None], 0.0, gamble.rewards - 0.01)
    model = am.Model.from_arrays(
        gamble.transitions.dense(), rewards, measuring_cost=0.1, discount=1.0, terminal=gamble.terminal
    )
    path = tmp_path_factory.mktemp("models") / "losing.json"
    model.save(path)
    return path


def test_a_schedule_that_loses_without_end_is_said_in_a_sentence(losing):
    text = run("solve", losing, "--method", "every-2")
    assert "Without discount this schedule loses without end" in text
    assert "optimum  at most 0.8" in text
    found = strict_json(run("solve", losing, "--method", "every-2", "--json"))
    assert found["value"] is found["lower"] is found["gap"] is None
    assert found["notes"][0].startswith("Without discount this schedule loses without end")


def strict_json(text):
    """JSON as the standard has it, without infinities and NaN."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_json_has_no_infinities(capsys):
    print_json({"a": [math.inf, -math.inf, math.nan, 1.5], "b": {"c": (math.inf, "x", 1, True, None)}})
    assert strict_json(capsys.readouterr().out) == {
        "a": [None, None, None, 1.5],
        "b": {"c": [None, "x", 1, True, None]},
    }


def test_tradeoff_shows_pieces_and_the_break_even_price():
    text = run("tradeoff", "measuring-value", "--discount", "1", "--budget", "0.5")
    assert "0 to 0.16 " in text
    assert "Looking pays up to a price of 0.16." in text
    assert "reward 0.88 " in text
    assert "probability 0.4." in text
    assert text.count("after seeing s0: ") == 2


def test_costs_that_differ_are_called_costs(tmp_path):
    model = am.problems.measuring_value()
    model.replace(measuring_cost=np.full((4, 2), 0.1)).save(tmp_path / "costs.json")
    text = run("tradeoff", tmp_path / "costs.json", "--budget", "0.01")
    assert text.startswith("price (times the costs)  discounted: reward  cost of looks  ")
    assert "Within 0.01 discounted cost of looks" in text


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [
        ((0, 0), "Looking is never worth anything here."),
        ((0.1, 0.1), "Looking pays up to a price of 0.1."),
        ((0.1, 0.2), "Looking pays up to a price between 0.1 and 0.2."),
        ((0.1, math.inf), "Looking pays up to a price of 0.1 at least."),
        ((0, math.inf), "Whether looking pays is not known yet."),
        ((math.inf, math.inf), "Looking pays at every price."),
    ],
)
def test_the_break_even_price_in_words(prices, sentence):
    assert _break_even(*prices) == sentence


def test_tradeoff_as_json_and_picture(tmp_path):
    path = tmp_path / "tradeoff.png"
    found = json.loads(run("tradeoff", "frozen-lake", "--json", "--budget", "1.5", "--plot", path))
    assert found["gap"] <= found["tolerance"] == 1e-3
    assert found["break_even"][0] <= found["break_even"][1]
    assert found["pieces"][0]["low"] == 0
    assert found["pieces"][-1]["high"] is None
    assert found["budget"]["looks"] <= 1.5
    assert all(0 <= number < len(found["pieces"]) for number in found["budget"]["pieces"])
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("frozn-lake",), "did you mean 'frozen-lake'"),
        (("nowhere.json",), "no such file"),
        (("./frozen-lake",), "file ending"),
        (("machine.txt",), "file ending"),
        (("frozen-lake", "--set", "sise=8"), "did you mean 'size'"),
        (("frozen-lake", "--set", "size"), "write it as NAME=VALUE"),
        (("frozen-lake", "--set", "size=4", "--set", "size=8"), "given twice"),
        (("frozen-lake", "--set", "discount=0.9", "--discount", "0.9"), "given twice, with --set and with --discount"),
        (("nowhere.json", "--set", "size=4"), "is a file"),
        (("frozen-lake", "--tolerance", "0"), "tolerance is 0"),
        (("frozen-lake", "--time-limit", "-1"), "time_limit is -1"),
        (("frozen-lake", "--plot", "plans.txt"), "no ending that can be drawn"),
        (("frozen-lake", "--plot", "nowhere/plans.png"), "there is no folder 'nowhere'"),
        (("frozen-lake", "--tolerance", "nan"), "tolerance is nan"),
        (("frozen-lake", "--time-limit", "nan"), "time_limit is nan"),
    ],
)
def test_mistakes_are_one_sentence(arguments, sentence):
    for name in ("solve", "tradeoff"):
        check_sentence((name, *arguments), sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("solve", "frozen-lake", "--method", "allways"), "did you mean 'always'"),
        (("solve", "frozen-lake", "--cost", "-1"), "measuring_cost is -1.0"),
        (("tradeoff", "measuring-value", "--budget", "-1"), "budget is -1"),
    ],
)
def test_mistakes_of_one_command(arguments, sentence):
    check_sentence(arguments, sentence)


def check_sentence(arguments, sentence):
    with pytest.raises(am.ActMeasureError) as caught:
        app(list(arguments), standalone_mode=False)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistakes_give_exit_code_2():
    for name in ("solve", "tradeoff"):
        message = run(name, "frozn-lake", code=2)
        assert message.startswith("actmeasure: unknown problem 'frozn-lake'; did you mean 'frozen-lake'?")
        assert len(message.strip().splitlines()) == 1
