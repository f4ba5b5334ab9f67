"""Stepping a tabular environment through Gymnasium, side by side with Gymnasium's own frozen lake.

Run it alone with `python -m benchmarks.stepping`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

import actmeasure.envs  # noqa: F401  (registers our environments)

STEPS = 20_000
ROUNDS = 9
#: Our step may take so many times as long as Gymnasium's.
GOAL = 2.0


def stepping() -> list[dict[str, Any]]:
    """Steps per second of both, and the ratio of our time to theirs, which is to be at most `GOAL`.

    Both are slippery 4x4 lakes with random actions, made by `gymnasium.make` with its default wrappers. The rounds
    alternate, and the ratio is the median over pairs of rounds, so that a slow moment of the machine hits both.
    """
    generator = np.random.default_rng(0)
    theirs = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    ours = gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="slippery", measuring_cost=0.05)
    controls = [int(control) for control in generator.integers(4, size=STEPS)]
    decisions = list(generator.integers([4, 2], size=(STEPS, 2)))
    pairs = [(_seconds(theirs, controls), _seconds(ours, decisions)) for _ in range(ROUNDS)]
    their_time, our_time = (statistics.median(times) / STEPS for times in zip(*pairs, strict=True))
    ratio = statistics.median(our / their for their, our in pairs)
    return [
        {"name": "FrozenLake-v1, steps per second", "value": 1 / their_time, "goal": None},
        {"name": "actmeasure/FrozenLake-v0, steps per second", "value": 1 / our_time, "goal": None},
        {"name": "time of a step, ours / Gymnasium's", "value": ratio, "goal": GOAL},
    ]


def _seconds(env: gymnasium.Env[Any, Any], actions: Sequence[Any]) -> float:
    """Time for these actions, resets included."""
    env.reset(seed=0)
    begin = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - begin


def main() -> None:
    """Print what was measured."""
    for row in stepping():
        goal = "" if row["goal"] is None else f"   (goal: at most {row['goal']:g})"
        print(f"{row['name']:<45}{row['value']:>12,.2f}{goal}")


if __name__ == "__main__":
    main()
