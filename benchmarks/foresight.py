"""Foresight on 20x20 lakes: seconds of computing for 7,500 episodes, and how much of that is planning."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

import actmeasure as am
from actmeasure.learning import foresight as module
from actmeasure.planning.solve import solve_by_work
from benchmarks.goals import Goal

SEEDS = (6048, 6049)
EPISODES = 7_500


def foresight() -> list[Goal]:
    """The slower of two lakes."""
    am.train(am.agents.make("foresight"), am.problems.frozen_lake(4), 100)  # compiles
    seconds, planning = max(_run(seed) for seed in SEEDS)
    print(f"foresight, 20x20: planning is {planning / seconds:.0%} of {seconds:.1f} s of computing", flush=True)
    return [Goal(f"foresight, 20x20, {EPISODES:,} episodes", seconds, 20, "s")]


def _run(seed: int) -> tuple[float, float]:
    """Seconds in all, and of planning."""
    spent = 0.0

    def timed(*arguments: Any, **settings: Any) -> am.Solution:
        nonlocal spent
        begun = time.process_time()
        solution = solve_by_work(*arguments, **settings)
        spent += time.process_time() - begun
        return solution

    lake = am.problems.frozen_lake(20, "semi-slippery", measuring_cost=0.05, seed=seed)
    with patch.object(module, "solve_by_work", timed):
        begun = time.process_time()
        am.train(am.agents.make("foresight"), lake, EPISODES, seed=seed)
        return time.process_time() - begun, spent
