"""Run every benchmark, print goal by goal, and fail if one is missed."""

from __future__ import annotations

import sys

from benchmarks.building import building
from benchmarks.evaluating import evaluating
from benchmarks.experiments import experiments
from benchmarks.first_answer import first_answer
from benchmarks.fitting import fitting
from benchmarks.foresight import foresight
from benchmarks.imperfect_looks import exact_as_noisy, imperfect_looks
from benchmarks.intervals import intervals
from benchmarks.learning import learning
from benchmarks.planning import planning
from benchmarks.searching import searching
from benchmarks.stepping import stepping


def main() -> int:
    missed = 0
    benchmarks = (
        first_answer, building, evaluating, stepping, planning, imperfect_looks, exact_as_noisy, learning, foresight,
        searching, fitting, intervals, experiments,
    )  # fmt: skip
    for benchmark in benchmarks:
        for goal in benchmark():
            print(goal, flush=True)
            missed += not goal.met
    print(f"{missed} goals missed" if missed else "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
