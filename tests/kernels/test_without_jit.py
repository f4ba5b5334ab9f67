"""Kernels give the same with and without Numba."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
import numpy as np
import actmeasure as am
lake = am.problems.frozen_lake(4)
plans = {s: am.BlindPlan((s % 4, (s + 1) % 4)) for s in range(16)}
schedule = am.Schedule(plans | {0: am.BlindPlan((1, 2, 1), then="repeat", repeat=2)}, 16)
for start in (0, 1):
    model = lake.replace(initial=start)
    result = am.evaluate(model, schedule, horizon=50)
    print(result.discounted_return.hex(), result.scalarized_return.hex(), result.steps.hex())
    for agent in (am.agents.make("random"), am.agents.make("schedule", schedule=schedule, model=model)):
        episodes = am.train(agent, model, episodes=20, seed=3, max_steps=40)
        print(episodes.scalarized_return.tolist(), episodes.steps.tolist(), episodes.measurements.tolist())

rng = np.random.default_rng(0)
anywhere = np.where(lake.terminal, 0.0, 1.0) / 11
worlds = [lake, lake.replace(measuring_cost=rng.random((16, 4)), initial=anywhere, reveal_start=False)]
learners = [("atmq", {"preset": preset}) for preset in ("default", "published", "paper")]
learners += [("dyna-atmq", {"preset": preset, "training_updates": 4}) for preset in ("default", "published", "paper")]
learners += [("atmq", {"random_measuring": 0.1, "particles": 700, "exploratory_measurements": 3}), ("amrl-q", {})]
for model in worlds:
    for name, settings in learners:
        agent = am.agents.make(name, **settings)
        episodes = am.train(agent, model, episodes=40, seed=3, max_steps=30)
        tables = b"".join(values.tobytes() for values in agent.learned().values())
        print(episodes.scalarized_return.sum().hex(), episodes.steps.sum(), hashlib.sha256(tables).hexdigest())
"""

SEARCHES = """
import actmeasure as am
lake = am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05)
for settings in ({}, {"share": True, "rollout": "looking", "exploration": 0.5}, {"rollout": "random", "clamp": True}):
    planner = am.planners.POMCP(lake, simulations=60, depth=8, particles=40, nodes=150, **settings)
    planner.begin(am.Belief.at(0))
    for step in range(6):
        decision = planner.decide()
        print(decision, planner.value.hex(), planner.histories, planner.reinvigorated, planner.belief())
        planner.observe(decision, 4 if decision.measure else None)
for name, settings in (
    ("acno-otp", {"exploiting_episodes": 4}),
    ("acno-otp", {"exploiting_episodes": 4, "exploring_method": "euler", "preset": "paper"}),
    ("acno-pomcp", {}),
):
    agent = am.agents.make(name, simulations=10, nodes=100, particles=20, **settings)
    episodes = am.train(agent, lake, episodes=20, seed=3, max_steps=15)
    tables = {key: values.tolist() for key, values in agent.learned().items()}
    print(episodes.scalarized_return.tolist(), episodes.steps.tolist(), tables)
"""

PLANS = """
import actmeasure as am
from actmeasure.planning.budget import Budget
problems = am.problems
for model, work in ((problems.simple_fatigue(3), 20), (problems.measuring_value(), 200)):
    solution = am.solve(model, budget=Budget(work=work))
    print(f"{solution.lower:.9g} {solution.upper:.9g}")
"""


def output(script, **environment):
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True).stdout


def same_output(script):
    """Return what a script prints, after checking that it prints the same with and without compiling."""
    plain = output(script, NUMBA_DISABLE_JIT="1")
    assert output(script, NUMBA_DISABLE_JIT="0") == plain
    return plain


@pytest.mark.slow
def test_compiled_and_plain_runs_agree():
    """Bit for bit: returns, lengths, and every table that was learned."""
    assert same_output(SCRIPT).count("\n") == 6 + 16


@pytest.mark.slow
def test_compiled_and_plain_searches_agree():
    assert same_output(SEARCHES).count("\n") == 3 * 6 + 3


def test_compiled_and_plain_plans_agree():
    """Over a life where looks are not exact, and where they are."""
    assert same_output(PLANS).count("\n") == 2
