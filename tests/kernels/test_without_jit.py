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


def output(**environment):
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_compiled_and_plain_runs_agree():
    """Bit for bit: returns, lengths, and every table that was learned."""
    plain = output(NUMBA_DISABLE_JIT="1")
    assert plain.count("\n") == 6 + 16
    assert output(NUMBA_DISABLE_JIT="0") == plain
