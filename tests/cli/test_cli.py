"""The command line, as a user types it."""

import json
import subprocess
import sys

import pytest
from command_line import actmeasure

import actmeasure as am


def run(*arguments, code=0):
    done = actmeasure(*arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def test_version_and_help():
    assert run("--version") == f"actmeasure {am.__version__}\n"
    assert "problems" in run("--help")
    for command in ("problems", "agents"):
        assert "Examples:" in run(command, "--help")


HELP = """
import sys
sys.argv[0] = "actmeasure"
from typer.main import get_command
from actmeasure.cli import app
command = get_command(app)
for name in [None, *command.commands]:
    print(f"== {name}")
    app([*([name] if name else []), "--help"], standalone_mode=False)
    heavy = {"numpy", "scipy", "numba", "gymnasium", "pandas", "pyarrow", "matplotlib", "jinja2", "multiprocessing", "ray"}
    assert not heavy & set(sys.modules), (name, heavy & set(sys.modules))
"""


def test_help_of_every_command_has_examples_and_loads_nothing_heavy():
    shown = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True).stdout
    assert shown.count("== ") > 10
    assert all("Examples:" in part for part in shown.split("== ")[1:])


def test_problems():
    table = run("problems")
    rows = json.loads(run("problems", "--json"))
    assert [row["problem"] for row in rows] == list(am.problems.PROBLEMS)
    assert all(row["problem"] in table for row in rows)
    lake = next(row for row in rows if row["problem"] == "frozen-lake")
    assert (lake["states"], lake["actions"], lake["environment"]) == (16, 4, "actmeasure/FrozenLake-v0")
    assert "semi-slippery" in run("problems", "frozen-lake")
    assert json.loads(run("problems", "frozen-lake", "--json"))["settings"]["measuring_cost"] == 0.05


def test_agents():
    rows = json.loads(run("agents", "--json"))
    assert [row["agent"] for row in rows] == list(am.agents.AGENTS)
    assert "measure_probability" in run("agents", "random")
    assert "random" in run("agents")
    assert run("agents", "schedule").startswith("schedule(schedule (required), model (required))\n")
    assert json.loads(run("agents", "schedule", "--json"))["settings"]["model"] == "(required)"


@pytest.mark.parametrize("arguments", [("problems", "frozen-lak"), ("agents", "rando"), ("problem",)])
def test_mistakes_are_one_sentence_and_exit_code_2(arguments):
    message = run(*arguments, code=2)
    assert "Traceback" not in message
    assert "did you mean" in message.lower()


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (
            OSError(28, "No space left on device", "plan.json"),
            "No space left on device (plan.json); choose another place",
        ),
        (MemoryError("9 TiB"), "too large (9 TiB); use a smaller one"),
        (OverflowError("huge"), "too large (huge); use a smaller one"),
        (RecursionError("deep"), "too large (deep); use a smaller one"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_no_command_expects_is_a_sentence_too(raised, sentence, monkeypatch):
    def fail(*arguments, **settings):
        raise raised

    monkeypatch.setattr(am.problems, "make", fail)
    assert sentence in run("solve", "frozen-lake", code=2)


@pytest.mark.parametrize(
    "setting", [("--simulations", 10**12), ("--simulations", 10**30), ("--depth", 10**14), ("--episodes", 10**17)]
)
def test_absurd_simulations_are_refused(setting):
    message = run("solve", "measuring-value", "--method", "pomcp", *setting, code=2)
    assert "expected a whole number from 1 to" in message
