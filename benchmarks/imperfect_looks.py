"""Gaps that the general search reaches where looks are imperfect, partial or several, on one core. Warm.

`python -m benchmarks.imperfect_looks` runs all of it (half an hour) and prints the bounds; `python -m benchmarks.imperfect_looks
tiger line-3` the instances named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import actmeasure as am
from benchmarks.goals import Goal

__all__ = ["imperfect_looks"]


class Instance(NamedTuple):
    """A model, the seconds that a search has, and the largest gap in percent of the upper bound that it should leave."""

    build: Callable[[], am.Model]
    seconds: float
    percent: float


def _flat(model: am.Model) -> am.Model:
    """Return a system without its factors."""
    return model.replace(discount=model.discount)


INSTANCES: dict[str, Instance] = {
    "tiger": Instance(am.problems.tiger, 1, 1e-5),
    "simple-fatigue-10": Instance(lambda: am.problems.simple_fatigue(10), 1, 1e-5),
    "pile-selection": Instance(am.problems.pile_selection, 1, 1e-5),
    "line-2": Instance(lambda: am.problems.component_line(2), 10, 0.01),
    "line-3": Instance(lambda: am.problems.component_line(3), 60, 0.01),
    "line-4": Instance(lambda: am.problems.component_line(4), 600, 5),
    "rock-sample-4-4": Instance(lambda: am.problems.rock_sample(4, 4), 120, 1),
    "rock-sample-5-5": Instance(lambda: am.problems.rock_sample(5, 5), 120, 1),
    "rock-sample-7-8": Instance(lambda: am.problems.rock_sample(7, 8), 120, 15),
    "crack-500": Instance(lambda: am.problems.crack_life(500), 120, 0.01),
    "crack-2000": Instance(lambda: am.problems.crack_life(2_000), 120, 1),
    "crack-10000": Instance(lambda: am.problems.crack_life(10_000), 120, 1),
    "n3-k2-flat": Instance(lambda: _flat(am.problems.k_out_of_n(3, 2)), 60, 5),
    **{
        f"n{n}-k{k}": Instance(lambda n=n, k=k: am.problems.k_out_of_n(n, k), 60, 0.1)  # type: ignore[misc]
        for n in (2, 3)
        for k in range(1, n + 1)
    },
    **{f"n4-k{k}": Instance(lambda k=k: am.problems.k_out_of_n(4, k), 120, 0.5) for k in range(1, 5)},  # type: ignore[misc]
    **{
        f"hard-{k}": Instance(lambda k=k: am.problems.k_out_of_n(4, k, hard=True), 120, 0.5)  # type: ignore[misc]
        for k in range(1, 5)
    },
}
#: Those that `make bench` runs.
QUICK = ("tiger", "simple-fatigue-10", "pile-selection", "line-2", "rock-sample-4-4", "n2-k1", "n3-k2")


def imperfect_looks(names: Sequence[str] = QUICK) -> list[Goal]:
    """Solve instances and return the gaps."""
    am.solve(am.problems.tiger())  # compiles
    am.solve(am.problems.k_out_of_n(2, 1), time_limit=1)
    goals = []
    for name in names:
        instance = INSTANCES[name]
        relative = 0.5 * instance.percent / 100
        found = am.solve(instance.build(), tolerance=1e-9, relative_tolerance=relative, time_limit=instance.seconds)
        gap = 100 * found.gap / abs(found.upper)
        title = f"{name}: [{found.lower:.6g}, {found.upper:.6g}] in {found.seconds:.3g} s"
        goals.append(Goal(title, gap, instance.percent, "%"))
        print(goals[-1], file=sys.stderr, flush=True)
    return goals


if __name__ == "__main__":
    sys.exit(sum(not goal.met for goal in imperfect_looks(sys.argv[1:] or tuple(INSTANCES))))
