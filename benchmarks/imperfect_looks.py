"""Gaps that the general search reaches where looks are imperfect, partial or several, on one core. Warm.

`python -m benchmarks.imperfect_looks` runs all of it (half an hour) and prints the bounds; `python -m benchmarks.imperfect_looks
tiger line-3` the instances named. `lakes` are lakes whose exact looks are written as a noisy measurement, against the search for
exact looks; `controllers` prints what policy graphs with 30, 60 and 120 nodes lose against the lower bound.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import actmeasure as am
from benchmarks.goals import Goal

__all__ = ["exact_as_noisy", "imperfect_looks"]


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


#: Lakes whose exact looks are written as a noisy measurement: size, variant, tolerance.
LAKES = tuple((n, variant, 10.0 ** -(n // 4 + 4)) for n in (4, 8) for variant in ("semi-slippery", "slippery"))


def exact_as_noisy() -> list[Goal]:
    """Solve lakes by the search for exact looks and, with these as a noisy measurement, by the general search; CPU seconds."""
    goals = []
    for size, variant, tolerance in LAKES:
        exact = am.problems.frozen_lake(size, variant, measuring_cost=0.05)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", am.ModelWarning)  # terminal states are never shown
            identity = am.Measurement.noisy("identity", 0.05, probabilities=np.eye(exact.n_states))
            noisy = exact.replace(measurements=[identity], reveal_start=exact.reveal_start)
        (one, seconds), (two, general) = _timed(exact, tolerance), _timed(noisy, tolerance)
        if two.search is None or two.stopped != "closed" or two.lower > one.upper or two.upper < one.lower:
            raise AssertionError(f"the general search found {two!r} and not {one!r}")
        title = f"{size}x{size} {variant} lake to {tolerance:g}, looks noisy / exact: {general:.3g} / {seconds:.3g} s"
        goals.append(Goal(title, general / seconds, 50, ""))
        print(goals[-1], file=sys.stderr, flush=True)
    return goals


def _timed(model: am.Model, tolerance: float) -> tuple[am.Solution, float]:
    """Return a solution and the CPU seconds that it took, after compiling: the least of three times."""
    seconds = []
    for _ in range(4):
        begun = time.process_time()
        found = am.solve(model, tolerance=tolerance, relative_tolerance=0.0)
        seconds.append(time.process_time() - begun)
    return found, min(seconds[1:])


#: Instances whose controllers are measured, with the seconds that the search has before.
CONTROLLED = {"crack-500": 25, "crack-2000": 40, "crack-10000": 40, "line-3": 30, "n4-k2": 60}
#: Largest numbers of nodes, and the most that should be needed for a controller within 1 % of the lower bound.
NODES, ENOUGH_NODES = (30, 60, 120), 60


def controllers() -> list[Goal]:
    """Return what the best controllers with at most 30, 60 and 120 nodes lose, in percent of the lower bound."""
    goals = []
    for name, seconds in CONTROLLED.items():
        found = am.solve(INSTANCES[name].build(), relative_tolerance=1e-3, time_limit=seconds)
        for nodes in NODES:
            graph = found.policy_graph(nodes=nodes)
            lost = 100 * (found.lower - graph.evaluation.discounted_return) / abs(found.lower)
            title = f"{name}: lost by {len(graph.decisions)} nodes, at most {nodes}"
            goals.append(Goal(title, max(lost, 0.0), 1.0 if nodes >= ENOUGH_NODES else 2.0, "%"))
            print(goals[-1], file=sys.stderr, flush=True)
    return goals


if __name__ == "__main__":
    names = tuple(sys.argv[1:]) or ("lakes", *INSTANCES, "controllers")
    measured = exact_as_noisy() if "lakes" in names else []
    measured += imperfect_looks([name for name in names if name in INSTANCES])
    measured += controllers() if "controllers" in names else []
    sys.exit(sum(not goal.met for goal in measured))
