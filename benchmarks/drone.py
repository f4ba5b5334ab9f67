"""The drone, 40,656 states, 25 actions: how much of the initial gap is closed. Slow, so on its own: `python -m benchmarks.drone`.

ACTMEASURE_BENCH_SECONDS is the time for the search, 300 by default; act-then-measure, where the initial gap begins, has as long.
"""

from __future__ import annotations

import os
import sys
import time

import actmeasure as am
from actmeasure.planning import Progress
from benchmarks.goals import Goal

SECONDS = float(os.environ.get("ACTMEASURE_BENCH_SECONDS", "300"))


def drone() -> list[Goal]:
    """How long building takes, and the share of the gap that is left."""
    am.solve(am.problems.frozen_lake(4))  # compiles
    begun = time.perf_counter()
    model = am.problems.drone()
    building = time.perf_counter() - begun
    free = float(am.q_mdp(model)[model.initial_states[0]].max())
    atm = am.solve(model, "atm", time_limit=SECONDS)
    print(f"free looks {free:.6f}, act-then-measure {atm.value:.6f} ({atm.stopped}, {atm.seconds:.0f} s)", flush=True)
    solution = am.solve(model, "optimal", time_limit=SECONDS, progress=_print)
    print(
        f"{solution.lower:.6f} <= optimum <= {solution.upper:.6f} after {solution.seconds:.0f} s ({solution.stopped}); "
        f"initial gap {free - atm.value:.6f}, left {solution.gap:.6f}",
        flush=True,
    )
    return [
        Goal("building the drone", building, 10, "s"),
        Goal(f"drone: share of the gap left after {SECONDS:g} s", solution.gap / (free - atm.value), 0.5, ""),
        Goal("drone: seconds it took, as a share of those it was given", solution.seconds / SECONDS, 1.2, ""),
    ]


def _print(progress: Progress) -> None:
    gap = progress.upper - progress.lower
    print(f"  {progress.seconds:7.1f} s  {progress.lower:.6f} to {progress.upper:.6f}  gap {gap:.6f}", flush=True)


if __name__ == "__main__":
    missed = [goal for goal in drone() if print(goal, flush=True) or not goal.met]
    sys.exit(1 if missed else 0)
