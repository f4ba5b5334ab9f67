"""How far planning scales: large lakes at .99. Slow, so on its own: `python -m benchmarks.planning_scale`.

ACTMEASURE_BENCH_SECONDS is the time for each of the largest lakes (60 by default; the goals are meant for 600).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import actmeasure as am
from actmeasure.planning import Progress
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import Search
from benchmarks.goals import Goal
from benchmarks.planning import timed

SECONDS = float(os.environ.get("ACTMEASURE_BENCH_SECONDS", "60"))
#: Points of a printed curve.
POINTS = 12


def planning_scale() -> list[Goal]:
    """The slow ones."""
    am.solve(am.problems.frozen_lake(4))  # compiles
    return [_share_left(50), _share_left(100), *_thirty()]


def _thirty(limit: float = 120.0) -> list[Goal]:
    goals = []
    for seed in range(3):
        lake = am.problems.frozen_lake(30, measuring_cost=0.05, discount=0.99, seed=seed)
        seconds, search = _to_one_percent(lake, limit)
        _print_curve(f"30x30 at .99, seed {seed}, value {search.lower:.4f} to {search.upper:.4f}", search.budget.record)
        reached = seconds if search.upper - search.lower <= 0.01 * search.lower else float("inf")
        goals.append(Goal(f"30x30 at .99 to 1 % of the value, seed {seed}", reached, limit, "s"))
    return goals


def _to_one_percent(lake: am.Model, limit: float) -> tuple[float, Search]:
    """A search that is stopped when the gap is 1 % of the value, and the seconds it took."""
    budget = Budget(limit)

    def listen(progress: Progress) -> None:
        if progress.upper - progress.lower <= 0.01 * progress.lower:
            budget.seconds = 0.0

    budget.progress = listen
    search = Search(lake, budget)
    search.run(1e-9)
    return budget.elapsed, search


def _share_left(size: int) -> Goal:
    """What is left of the initial gap, between the bound with free looks and act-then-measure."""
    lake = am.problems.frozen_lake(size, measuring_cost=0.05, discount=0.99, seed=0)
    begins = am.q_mdp(lake)[lake.initial_states].max(axis=1)
    first = float(lake.initial_probabilities @ begins) - am.solve(lake, "atm").value
    _, solution = timed(lake, 1e-5, time_limit=SECONDS)
    _print_curve(f"{size}x{size} at .99, initial gap {first:.4f}, value {solution.value:.4f}", solution.record)
    return Goal(f"{size}x{size} at .99: share of the gap left after {SECONDS:g} s", solution.gap / first, 0.5, "")


def _print_curve(what: str, record: Sequence[Progress]) -> None:
    """Gap against time, at points that are evenly spread over the record."""
    print(what, flush=True)
    step = max(1, len(record) // POINTS)
    for progress in [*record[::step], record[-1]]:
        print(f"  {progress.seconds:8.1f} s   gap {progress.upper - progress.lower:.6f}")


if __name__ == "__main__":
    missed = [goal for goal in planning_scale() if print(goal, flush=True) or not goal.met]
    sys.exit(1 if missed else 0)
