"""A trial is a pure function of its specification: training as `train` gives it, plans that no clock ends."""

import inspect
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

import actmeasure as am
from actmeasure.studies import AgentSpec, ProblemSpec, Trial, run_trial
from actmeasure.studies.trial import build_model, new_agent


def plan(problem, method="optimal", settings=None, **others):
    table = run_trial(Trial.plan(ProblemSpec("p", problem, settings or {}), method, **others))
    (row,) = table.to_pylist()
    return row


def test_a_training_is_what_train_gives():
    settings = {"preset": "published", "learning_rate": 0.2}
    trial = Trial.train(
        ProblemSpec("p", "frozen-lake", {"size": 4}), AgentSpec("a", "atmq", settings), 40, seed=3, max_steps=60
    )
    table = run_trial(trial)
    assert table.column_names == ["episode", "scalarized_return", "reward", "measurements", "steps"]
    episodes = am.train(am.agents.make("atmq", **settings), am.problems.frozen_lake(4), 40, seed=3, max_steps=60)
    for name in table.column_names[1:]:
        assert np.array_equal(table.column(name).to_numpy(), getattr(episodes, name))
    assert table.column("episode").to_pylist() == list(range(40))
    assert run_trial(trial).equals(table)


def test_plans_have_the_known_values():
    best = plan("frozen-lake", settings={"size": 4}, max_steps=200)
    assert best["lower"] == pytest.approx(0.6805, abs=5e-5)
    assert best["scalarized_return"] == pytest.approx(0.9, abs=5e-4)
    assert best["measurements"] == pytest.approx(2.0, abs=5e-3)
    assert best["steps"] == pytest.approx(6.0, abs=5e-3)
    assert (best["stopped"], best["discounted_return"]) == ("closed", best["lower"])
    assert best["upper"] - best["lower"] < 1e-6
    for method in ("atm", "always", "never", "every-3"):
        other = plan("frozen-lake", method, {"size": 4})
        assert other["lower"] <= best["upper"] <= other["upper"] + 1e-9


def test_plans_without_discount():
    found = plan("measuring-value", settings={"measuring_cost": 0.1, "discount": 1.0})
    assert found["lower"] == pytest.approx(0.875, abs=1e-6)
    assert found["upper"] >= 0.875 - 1e-9
    assert plan("measuring-value", "never", {"discount": 1.0})["lower"] == pytest.approx(0.8)


def test_a_limit_of_work_leaves_sound_bounds():
    lake = {"size": 8, "variant": "slippery"}
    found = plan("frozen-lake", settings=lake, beliefs=10)
    assert found["stopped"] == "beliefs"
    best = plan("frozen-lake", settings=lake)
    assert found["lower"] <= best["upper"]
    assert best["lower"] <= found["upper"]
    assert found["lower"] < best["lower"]


@pytest.mark.parametrize("method", ["optimal", "never", "atm"])
def test_the_clock_changes_nothing(method, monkeypatch):
    settings = {"size": 4, "variant": "slippery"}
    before = plan("frozen-lake", method, settings)
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(hours)))
    assert plan("frozen-lake", method, settings) == before


@pytest.mark.parametrize(
    "trial",
    [
        Trial.train(ProblemSpec("p", "frozen-lake"), AgentSpec("a", "dyna-atmq"), 10**8, 0),
        Trial.plan(
            ProblemSpec("p", "frozen-lake", {"size": 16, "variant": "slippery", "seed": 0}), "optimal", beliefs=10**9
        ),
    ],
    ids=["train", "plan"],
)
def test_half_a_trial_is_none(trial):
    pressed = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    pressed.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_trial(trial)
    finally:
        pressed.cancel()


def test_model_files_and_their_settings(tmp_path):
    path = tmp_path / "chain.npz"
    am.problems.chain(6).save(path)
    model = build_model(ProblemSpec("file", str(path), {"measuring_cost": 0.5, "discount": 0.5}))
    assert (model.n_states, model.measuring_cost, model.discount) == (am.problems.chain(6).n_states, 0.5, 0.5)
    contents = path.read_bytes()
    problem = ProblemSpec("file", str(path))
    path.unlink()
    assert build_model(problem, contents).n_states == model.n_states
    with pytest.raises(am.ModelError, match="unknown setting of a model file 'size'"):
        build_model(ProblemSpec("file", str(path), {"size": 3}, problem.content), contents)


def test_every_problem_takes_a_price_and_a_discount():
    for function in am.problems.PROBLEMS.values():
        assert {"measuring_cost", "discount"} <= set(inspect.signature(function).parameters)


def test_agents_that_need_more_than_a_name_are_refused():
    with pytest.raises(am.AgentError, match=r"the agent 'schedule' needs .*choose one of"):
        new_agent(AgentSpec("a", "schedule"))


def test_pomcp_plans_on_the_model_of_the_problem():
    planner = AgentSpec("a", "pomcp", {"simulations": 20})
    table = run_trial(Trial.train(ProblemSpec("p", "inspection"), planner, 2, 0, max_steps=5))
    model = am.problems.inspection()
    alone = am.train(am.agents.make("pomcp", model=model, simulations=20), model, 2, 0, max_steps=5)
    assert table.column("scalarized_return").to_pylist() == alone.scalarized_return.tolist()
    cart = ProblemSpec("p", gymnasium="CartPole-v1", measuring_cost=0.1, grid={"bins": 2})
    with pytest.raises(am.AgentError, match="plans on the problem's model, but the problem is an environment"):
        run_trial(Trial.train(cart, planner, 1, 0))
