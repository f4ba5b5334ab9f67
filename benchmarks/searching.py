"""Simulations a second of POMCP on the 4x4 semi-slippery lake, how long a decision takes, and how much memory it needs.

Run it alone with `python -m benchmarks.searching`.
"""

from __future__ import annotations

import time

import actmeasure as am
from benchmarks.goals import Goal

#: At least so many simulations a second, at this depth; the published code made about 2,800.
LEAST, DEPTH, THEIRS = 300_000, 10, 2_800
#: A decision of the published baseline, and the most seconds it may take.
SIMULATIONS, SECONDS = 25_000, 0.1
#: The most memory with the default number of histories, in MiB, and by how much it may grow in an episode.
MEMORY = 64.0
ROUNDS = 5


def searching() -> list[Goal]:
    """Time and memory of the search, plain and with what an action and its look share."""
    goals = []
    for name, share in (("", False), (", sharing", True)):
        planner = _planner(share)
        seconds = min(_seconds(planner) for _ in range(ROUNDS))
        speed = SIMULATIONS / seconds
        what = f"pomcp{name}: {speed:,.0f} simulations/s, {speed / THEIRS:,.0f} x the published"
        goals.append(Goal(what, 1e6 / speed, 1e6 / LEAST, "us"))
        goals.append(Goal(f"pomcp{name}, a decision of {SIMULATIONS:,} simulations", seconds, SECONDS, "s"))
    before = planner.memory
    _play(planner)
    goals.append(Goal("pomcp, memory of the trees", planner.memory / 2**20, MEMORY, "MiB"))
    goals.append(Goal("pomcp, memory of the trees after 50 steps against before", planner.memory / before, 1.0, "x"))
    return goals


def _planner(share: bool) -> am.planners.POMCP:
    lake = am.problems.frozen_lake(4, variant="semi-slippery", measuring_cost=0.05)
    planner = am.planners.POMCP(
        lake, simulations=SIMULATIONS, depth=DEPTH, exploration=10.0, rollout="blind", share=share
    )
    planner.decide(am.Belief.at(0))
    return planner


def _seconds(planner: am.planners.POMCP) -> float:
    planner.start(am.Belief.at(0))
    begin = time.perf_counter()
    planner.decide()
    return time.perf_counter() - begin


def _play(planner: am.planners.POMCP, steps: int = 50) -> None:
    """An episode in which nothing is ever seen, so that the tree is kept from step to step."""
    planner.start(am.Belief.at(0))
    for _ in range(steps):
        planner.observe(None, planner.decide()._replace(measurement=0))


if __name__ == "__main__":
    print(*searching(), sep="\n")
