"""Run every benchmark, or those that are named, print goal by goal, and fail if one is missed.

For example: python -m benchmarks planning learning
"""

from __future__ import annotations

import argparse
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

BENCHMARKS = (
    first_answer, building, evaluating, stepping, planning, imperfect_looks, exact_as_noisy, learning, foresight,
    searching, fitting, intervals, experiments,
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    names = [benchmark.__name__ for benchmark in BENCHMARKS]
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(names)}; all by default")
    chosen = parser.parse_args().names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"no benchmark is called {unknown[0]!r}; choose from {', '.join(names)}")
    missed = 0
    for benchmark in BENCHMARKS:
        if chosen and benchmark.__name__ not in chosen:
            continue
        for goal in benchmark():
            print(goal, flush=True)
            missed += not goal.met
    print(f"{missed} goals missed" if missed else "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
