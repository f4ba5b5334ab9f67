"""`actmeasure train`, as a user types it."""

import json
import re
import sys

import numpy as np
import pandas as pd
import psutil
import pytest
from command_line import actmeasure
from terminal import Terminal

import actmeasure as am
from actmeasure.cli import app
from actmeasure.cli.problem_options import read_settings

LAKE = ("train", "--problem", "frozen-lake")
#: More episodes than are ever finished here.
ENDLESS = ("--agent", "dyna-atmq", "--episodes", "20000000", "--seeds", "3", "--workers", "2")


def command(*arguments):
    return [sys.executable, "-m", "actmeasure", *map(str, arguments)]


def run(*arguments, code=0):
    done = actmeasure(*arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def call(*arguments):
    """The command in this process, for what needs no process of its own."""
    app([*map(str, arguments)], standalone_mode=False)


def test_train_shows_writes_and_draws(tmp_path):
    out, plot = tmp_path / "episodes.csv", tmp_path / "curve.png"
    arguments = ("--agent", "atmq", "--agent-set", "preset=published", "--agent-set", "learning_rate=.2")
    order = ("--episodes", 80, "--seeds", 3, "--first-seed", 5, "--max-steps", 100, "--cost", "0.01")
    text = run(*LAKE, *arguments, *order, "--out", out, "--plot", plot)
    model = am.problems.frozen_lake(4, measuring_cost=0.01)
    settings = {"preset": "published", "learning_rate": 0.2}
    runs = am.train_seeds("atmq", model, 80, range(5, 8), max_steps=100, settings=settings, workers=1)
    assert text == runs.table() + "\n"
    pd.testing.assert_frame_equal(pd.read_csv(out), runs.to_pandas())
    assert plot.stat().st_size > 1000


def test_json_is_complete(capsys):
    call(*LAKE, "--set", "size=8", "--agent", "random", "--episodes", 10, "--seeds", 2, "--discount", "0.9", "--json")
    found = json.loads(capsys.readouterr().out)
    runs = am.train_seeds("random", am.problems.frozen_lake(8), 10, 2)
    assert [(one["seed"], one["episodes"]) for one in found["seeds"]] == [(0, 10), (1, 10)]
    assert [one["steps"] for one in found["seeds"]] == runs.means()["steps"].tolist()
    assert found["summary"]["steps"]["high"] == pytest.approx(runs.summary()["steps"].high)
    assert found["model"] == {"states": 64, "actions": 4, "discount": 0.9, "measuring_cost": 0.05}
    assert (found["agent"], found["problem"], found["stopped"], found["last"]) == ("random", "frozen-lake", "done", 50)
    call(*LAKE, "--agent", "random", "--episodes", 10, "--json")
    assert json.loads(capsys.readouterr().out)["summary"]["steps"]["low"] is None


@pytest.mark.parametrize("agent", ["atmq", "amrl-q"])
def test_a_run_saved_and_continued_equals_one_without_a_break(tmp_path, agent, capsys):
    saved, begin, end, whole = (tmp_path / name for name in ("a.npz", "begin.csv", "end.csv", "whole.csv"))
    lake = (*LAKE, "--first-seed", 7)
    call(*lake, "--agent", agent, "--episodes", 40, "--planned", 70, "--save", saved, "--out", begin)
    assert "--first-seed 7" in capsys.readouterr().err
    call(*lake, "--continue", saved, "--episodes", 30, "--out", end)
    call(*lake, "--agent", agent, "--episodes", 70, "--out", whole)
    joined = pd.concat([pd.read_csv(begin), pd.read_csv(end)], ignore_index=True)
    pd.testing.assert_frame_equal(joined, pd.read_csv(whole))


def test_model_files_can_be_trained_on(tmp_path, capsys):
    am.problems.measuring_value().save(tmp_path / "gamble.json")
    call("train", "--problem", tmp_path / "gamble.json", "--agent", "random", "--episodes", 5, "--json")
    assert json.loads(capsys.readouterr().out)["model"]["states"] == 4


class Started(Terminal):
    """A run with two worker processes on a terminal, once it shows the return of an episode."""

    def __init__(self, *arguments):
        super().__init__(command(*arguments))
        self.wait_until(lambda shown: re.search(r"return [^?]", shown), "the return of an episode")

    @property
    def workers(self):
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "loky.backend.popen_loky_posix" in child.cmdline()]


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(tmp_path):
    out = tmp_path / "episodes.csv"
    started = Started(*LAKE, *ENDLESS, "--out", out, "--json")
    workers = started.workers
    started.press_ctrl_c()
    text, shown = started.end()
    assert started.process.returncode == 130
    assert len(workers) == 2
    assert not any(worker.is_running() for worker in workers)
    assert "Stopped with Ctrl-C: 0 of 3 seeds are complete" in shown
    found = json.loads(text)
    assert found["stopped"] == "interrupted"
    episodes = pd.read_csv(out)
    assert episodes.groupby("seed").size().tolist() == [one["episodes"] for one in found["seeds"]]
    returns = episodes[episodes.seed == 0].scalarized_return[:20]
    alone = am.train(am.agents.make("dyna-atmq"), am.problems.frozen_lake(4), 20)
    np.testing.assert_array_equal(returns, alone.scalarized_return[: len(returns)])


@pytest.mark.slow
def test_a_killed_worker_is_said(tmp_path):
    out = tmp_path / "episodes.csv"
    started = Started(*LAKE, *ENDLESS, "--out", out)
    started.workers[0].kill()
    text, shown = started.end()
    assert started.process.returncode == 1
    assert "A worker process was killed (signal 9)" in shown
    assert text.startswith("dyna-atmq, ")
    assert len(pd.read_csv(out)) > 0


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "saved.npz"
    agent = am.agents.make("atmq")
    am.train(agent, am.problems.frozen_lake(4), 5)
    agent.save(path)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--problem", "frozn-lake", "--agent", "atmq"), "did you mean 'frozen-lake'"),
        (("--agent", "dyna-atm"), "did you mean 'dyna-atmq'"),
        (("--agent", "atmq", "--agent-set", "larning_rate=1"), "did you mean 'learning_rate'"),
        (("--agent", "atmq", "--agent-set", "learning_rate=2"), "learning_rate is 2"),
        (("--agent", "atmq", "--agent-set", "learning_rate"), "such as --agent-set preset=paper"),
        (("--agent", "atmq", "--agent-set", "preset=papr"), "did you mean 'paper'"),
        (("--agent", "atmq", "--set", "sise=8"), "did you mean 'size'"),
        (("--agent", "schedule"), "which only Python can pass"),
        ((), "there is no agent to train"),
        (("--agent", "atmq", "--episodes", "0"), "--episodes is 0"),
        (("--agent", "atmq", "--seeds", "0"), "--seeds is 0"),
        (("--agent", "atmq", "--first-seed", "-1"), "--first-seed is -1"),
        (("--agent", "atmq", "--workers", "0"), "workers is 0"),
        (("--agent", "atmq", "--max-steps", "0"), "max_steps is 0"),
        (("--agent", "atmq", "--out", "episodes.txt"), "unknown file ending '.txt'"),
        (("--agent", "atmq", "--out", "nowhere/episodes.csv"), "there is no folder 'nowhere'"),
        (("--agent", "atmq", "--plot", "curve.txt"), "no ending that can be drawn"),
        (("--agent", "atmq", "--save", "agent.csv"), "expected the name of a file that ends in .npz"),
        (("--agent", "atmq", "--save", "nowhere/agent.npz"), "there is no folder 'nowhere'"),
        (("--agent", "atmq", "--seeds", "2", "--save", "agent.npz"), "--save is for one agent, but there are 2 seeds"),
        (("--agent", "random", "--save", "agent.npz"), "learns nothing that could be saved"),
        (("--continue", "nowhere.npz"), "no such file"),
        (("--continue", "SAVED", "--agent", "amrl-q"), "holds the agent 'atmq', not 'amrl-q'"),
        (("--continue", "SAVED", "--agent-set", "preset=paper"), "has its settings from the file"),
        (("--continue", "SAVED", "--seeds", "2"), "--continue is for one agent"),
        (("--continue", "SAVED", "--planned", "9"), "has been told before"),
        (("--continue", "SAVED", "--set", "size=8"), "a number of states of 16, but this problem has 64"),
        (("--continue", "SAVED", "--cost", "0.1"), "a measuring cost of 0.05, but this problem has 0.1"),
        (("--continue", "SAVED", "--discount", "0.9"), "a discount of 0.95, but this problem has 0.9"),
    ],
)
def test_mistakes_are_one_sentence_before_the_run(arguments, sentence, saved, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    problem = () if "--problem" in arguments else ("--problem", "frozen-lake")
    with pytest.raises(am.ActMeasureError) as caught:
        call("train", *problem, *(saved if word == "SAVED" else word for word in arguments))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_problem_is_not_replaced_by_the_agent(tmp_path):
    path = tmp_path / "gamble.npz"
    am.problems.measuring_value().save(path)
    with pytest.raises(am.AgentError, match="would replace the problem"):
        call("train", "--problem", path, "--agent", "atmq", "--save", path)


def test_mistakes_give_exit_code_2():
    message = run(*LAKE, "--agent", "dyna-atm", code=2)
    assert message.startswith("actmeasure: unknown agent 'dyna-atm'; did you mean 'dyna-atmq'?")
    assert len(message.strip().splitlines()) == 1


def test_settings_may_be_written_as_in_python():
    given = ["a=.5", "b=2.", "c=-1.e-3", "d=True", "e=None", "f=1.2.3", "g=.", "h=1e-3"]
    assert read_settings(given) == {
        "a": 0.5, "b": 2.0, "c": -0.001, "d": True, "e": None, "f": "1.2.3", "g": ".", "h": 0.001,
    }  # fmt: skip
