"""Searching and exploring give the same with and without Numba."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
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


def output(**environment):
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_compiled_and_plain_searches_agree():
    plain = output(NUMBA_DISABLE_JIT="1")
    assert plain.count("\n") == 3 * 6 + 3
    assert output(NUMBA_DISABLE_JIT="0") == plain
