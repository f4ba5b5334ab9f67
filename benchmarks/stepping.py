"""Stepping a tabular environment through Gymnasium, side by side with Gymnasium's own frozen lake.

Run it alone with `python -m benchmarks.stepping`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

import actmeasure  # noqa: F401  (registers our environments)
from benchmarks.goals import Goal

STEPS = 20_000
ROUNDS = 9
#: Largest ratio of the time of our step to that of Gymnasium's.
GOAL = 2.0


def stepping() -> list[Goal]:
    """The ratio of our time for a step to theirs.

    Both are slippery 4x4 lakes with random actions, made by `gymnasium.make` with its default wrappers. The rounds
    alternate, and the pair of rounds with the median ratio is reported, so that a slow moment of the machine hits both.
    """
    generator = np.random.default_rng(0)
    theirs = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    ours = gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="slippery", measuring_cost=0.05)
    controls = [int(control) for control in generator.integers(4, size=STEPS)]
    decisions = list(generator.integers([4, 2], size=(STEPS, 2)))
    pairs = [(_seconds(theirs, controls), _seconds(ours, decisions)) for _ in range(ROUNDS)]
    their_time, our_time = sorted(pairs, key=lambda pair: pair[1] / pair[0])[ROUNDS // 2]
    what = f"step our lake ({STEPS / our_time:,.0f}/s) against Gymnasium's ({STEPS / their_time:,.0f}/s)"
    return [Goal(what, our_time / their_time, GOAL, "x")]


def _seconds(env: gymnasium.Env[Any, Any], actions: Sequence[Any]) -> float:
    """Time for these actions, resets included."""
    env.reset(seed=0)
    begin = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(*stepping(), sep="\n")
