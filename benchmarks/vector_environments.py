"""What stepping several Gymnasium environments at once could save `train`: `python -m benchmarks.vector_environments`.

Printed are CPU microseconds for each step of one environment: of the environment alone, with the wrappers, of a whole training,
and of 1, 8 and 64 environments stepped at once by Gymnasium, one after the other (`sync`) or with arrays where the
environment has code for that (`arrays`). The difference of a row to *environment* is the most that `train` could save.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import actmeasure as am
from actmeasure.text import text_table

STEPS, EPISODES, MAX_STEPS = 20_000, 300, 200
#: Environments, with their grids.
CASES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "bins": [1, 3, 6, 3], "low": [-2.4, -1.5, -0.21, -2.0], "high": [2.4, 1.5, 0.21, 2.0],
    },
    "MountainCar-v0": {"bins": [30, 30]},
    "Taxi-v4": {},
}  # fmt: skip
AGENTS = ("random", "amrl-q", "atmq", "dyna-atmq")
MODES = {"sync": "sync", "arrays": "vector_entry_point"}


def microseconds(run: Callable[[], int]) -> float:
    """Return the CPU microseconds of each step of a second call; the first one compiles."""
    run()
    begun = time.process_time()
    steps = run()
    return 1e6 * (time.process_time() - begun) / steps


def stepping(env: gymnasium.Env[Any, Any], action: Any) -> Callable[[], int]:
    """Return a function that steps an environment."""

    def run() -> int:
        env.reset(seed=0)
        for _ in range(STEPS):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return STEPS

    return run


def stepping_at_once(name: str, mode: str, count: int) -> Callable[[], int]:
    """Return a function that steps several environments at once."""
    envs, actions = gymnasium.make_vec(name, count, vectorization_mode=MODES[mode]), np.zeros(count, dtype=np.int64)

    def run() -> int:
        envs.reset(seed=0)
        for _ in range(STEPS // 10):
            envs.step(actions)
        return STEPS // 10 * count

    return run


def measuring(name: str) -> gymnasium.Env[Any, Any]:
    """Return an environment with looks at a price, on its grid if it has one."""
    env = gymnasium.make(name)
    return am.ActiveMeasuring(am.envs.Grid(env, **CASES[name]) if CASES[name] else env, measuring_cost=0.01)


def training(name: str, agent: str) -> Callable[[], int]:
    """Return a function that trains an agent."""
    return lambda: int(am.train(am.agents.make(agent), measuring(name), EPISODES, 0, MAX_STEPS).steps.sum())


def main() -> None:
    rows: list[tuple[str, str, float]] = []
    for name in CASES:
        rows.append((name, "environment", microseconds(stepping(gymnasium.make(name), 0))))
        rows.append((name, "with wrappers", microseconds(stepping(measuring(name), np.array([0, 1])))))
        rows += [(name, f"train {agent}", microseconds(training(name, agent))) for agent in AGENTS]
        for mode in MODES:
            for count in (1, 8, 64):
                try:
                    run = stepping_at_once(name, mode, count)
                except gymnasium.error.Error:  # it has no code for arrays
                    break
                rows.append((name, f"{count} at once, {mode}", microseconds(run)))
    shown = [[name, what, f"{value:.1f}"] for name, what, value in rows]
    print(*text_table(["environment", "what", "µs a step"], shown, "llr"), sep="\n")


if __name__ == "__main__":
    main()
