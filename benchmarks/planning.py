"""Certified optima of lakes, and values when looking is free on a million states. Warm, on one core.

`python -m benchmarks.planning 100-139 735` prints the slowest of chosen lakes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import actmeasure as am
from actmeasure.planning import Solution
from benchmarks.goals import Goal, in_fresh_process

#: Seconds for a lake of 20x20 by which the search was tuned, and for others; and when to give up.
GOAL, OTHERS, LIMIT = 0.5, 2.0, 20.0

FREE_VALUES = """
import time, tracemalloc
import actmeasure as am
am.q_mdp(am.problems.frozen_lake(4))  # compiles
lake = am.problems.frozen_lake(1000, variant="semi-slippery", seed=1, discount=0.95)
table = lake.transitions
arrays = (table.offsets, table.successors, table.probabilities, lake.rewards, lake.transition_rewards, lake.terminal)
begun = time.perf_counter()
tracemalloc.start()
am.q_mdp(lake)
result = {
    "seconds": time.perf_counter() - begun,
    "extra": tracemalloc.get_traced_memory()[1],
    "model": sum(array.nbytes for array in arrays if array is not None),
}
"""


def planning() -> list[Goal]:
    """The quick ones."""
    am.solve(am.problems.frozen_lake(4))  # compiles
    return [*_twenty(), _slippery(), *_free_values()]


def timed(model: am.Model, tolerance: float, time_limit: float | None = None) -> tuple[float, Solution]:
    """Seconds to solve, and the solution."""
    begun = time.perf_counter()
    solution = am.solve(model, "optimal", tolerance, time_limit)
    return time.perf_counter() - begun, solution


def _twenty() -> list[Goal]:
    """The first ten lakes, by which the search was tuned; eighty of which 109 and 236 were slow; forty never looked at."""
    goals = []
    for discount in (0.95, 0.99):
        tuned = _seconds(range(10), discount)
        goals.append(Goal(f"slowest of 10 lakes 20x20 at {discount} to 1e-5", tuned[-1], GOAL, "s"))
        for first in (100, 200, 1000):
            others = _seconds(range(first, first + 40), discount)
            within = sum(seconds <= OTHERS for seconds in others)
            name = f"lakes {first}-{first + 39} at {discount}: {within} of 40 within {OTHERS:g} s; the slowest"
            goals.append(Goal(name, others[-1], OTHERS, "s"))
    return goals


def _seconds(seeds: Iterable[int], discount: float) -> list[float]:
    """Seconds to close each lake, ascending; infinite where it stays open for `LIMIT`."""
    return [seconds for seconds, _ in _slowest(seeds, discount)][::-1]


def _slowest(seeds: Iterable[int], discount: float) -> list[tuple[float, int]]:
    """Seconds to close each lake and its seed, the slowest first; infinite where it stays open for `LIMIT`."""
    found = []
    for seed in seeds:
        lake = am.problems.frozen_lake(20, measuring_cost=0.05, discount=discount, seed=seed)
        seconds, solution = timed(lake, 1e-5, time_limit=LIMIT)
        found.append((seconds if solution.gap <= 1e-5 else float("inf"), seed))
    return sorted(found, reverse=True)


def _slippery() -> Goal:
    seconds, solution = timed(am.problems.frozen_lake(8, "slippery", discount=0.95), 1e-6, time_limit=60)
    return Goal("8x8 slippery at .95 to 1e-6", seconds if solution.gap <= 1e-6 else float("inf"), 5, "s")


def _free_values() -> list[Goal]:
    measured = in_fresh_process(FREE_VALUES)
    return [
        Goal("values when looking is free, million-state lake at .95", measured["seconds"], 60, "s"),
        Goal(
            "the same: extra memory, as a multiple of the model's arrays", measured["extra"] / measured["model"], 2, "x"
        ),
    ]


def chosen_lakes(words: list[str]) -> None:
    """Print the slowest lakes of each range of seeds, such as "100-139", or of one seed."""
    timed(am.problems.frozen_lake(20, measuring_cost=0.05, discount=0.99, seed=109), 1e-5)  # compiles
    for word in words:
        first, _, last = word.partition("-")
        if not (first + last).isdigit() or int(last or first) < int(first):
            sys.exit(f"{word!r} is no range of seeds, expected one such as 100-139, or a seed")
        for discount in (0.95, 0.99):
            slowest = _slowest(range(int(first), int(last or first) + 1), discount)
            text = ", ".join(f"{seconds:.2f} s (seed {seed})" for seconds, seed in slowest[:3])
            print(f"lakes {word} at {discount}, the slowest of {len(slowest)}: {text}", flush=True)


if __name__ == "__main__":
    chosen_lakes(sys.argv[1:] or ["100-139", "200-239"])
