"""The optimum beside the belief exploration of the model checker Storm, on the same lakes to the same gap.

Needs stormpy, which is not in the lock, so on its own: `python -m benchmarks.planning_storm`.

Storm gives one bound per call, at a setting that has to be chosen: unfolding bounds the optimum from below, discretization from
above. Here it is asked at finer and finer settings, and only the cheapest call for each bound counts, as if the best settings
had been known. Both sides are warm, on one core, and the best of three where that is quick; building Storm's model and our
compilation do not count. Storm's bounds hold up to its value iteration, so its gap can be a little below 0.

ACTMEASURE_BENCH_SECONDS is the time for Storm on each lake (60 by default), half of it for each bound.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import actmeasure as am
from benchmarks.goals import Goal
from benchmarks.planning import timed

SECONDS = float(os.environ.get("ACTMEASURE_BENCH_SECONDS", "60"))
#: Size, variant, discount, seed.
LAKES: list[tuple[int, str, float, int | None]] = [
    (4, "semi-slippery", 0.9, None),
    (4, "semi-slippery", 0.95, None),
    (4, "slippery", 0.95, None),
    (8, "semi-slippery", 0.95, None),
    (10, "semi-slippery", 0.95, 0),
]
#: The gap that counts as closed; Storm's own precision is no better.
CLOSED = 1e-6
#: Gaps to compare at on the way to Storm's smallest.
WAYPOINTS = (0.1, 0.01, 0.001)
#: Beliefs to unfold, and resolutions, from coarse to fine.
SETTINGS = {
    "unfolding": [100 * 4**rung for rung in range(9)],
    "discretization": [1, 2, 3, 4, 6, 8, 12, 16, 24],
}
OPTIONS = {"unfolding": ["FIFO"], "discretization": ["static", "dynamic"]}
TRANSLATION = Path(__file__).parents[1] / "tests" / "planning" / "test_stormpy.py"
#: A bound on the optimum and the seconds it took.
Bound = tuple[float, float]


def planning_storm() -> list[Goal]:
    """Our seconds as a share of Storm's, at the smallest gap that Storm reaches."""
    if importlib.util.find_spec("stormpy") is None:
        print("stormpy is not installed: pip install stormpy==2.0.0")
        return []
    with _one_core():
        am.solve(am.problems.frozen_lake(4))  # compiles
        print(f"{'lake':<28}{'discount':>9}{'Storm gap':>12}{'Storm s':>10}{'ours s':>10}{'to 1e-6 s':>11}{'ratio':>9}")
        return [goal for lake in LAKES for goal in _compared(*lake)]


def _compared(size: int, variant: str, discount: float, seed: int | None) -> list[Goal]:
    lake = _lake(size, variant, discount, seed)
    name = f"{size}x{size} {variant}" + ("" if seed is None else f" seed {seed}")
    goal = f"{name} at {discount}, to Storm's gap, against Storm"
    lowers, uppers = _storms_bounds((size, variant, discount, seed))
    if not (lowers and uppers):
        print(f"{name:<28}{discount:>9}  no bound in {SECONDS:g} s", flush=True)
        return []
    closed = _best_seconds(lake, CLOSED)
    ratio = 0.0
    for gap, seconds in _frontier(lowers, uppers):
        ours = _best_seconds(lake, max(gap, CLOSED))
        ratio = ours / seconds
        print(
            f"{name:<28}{discount:>9}{gap:>12.2g}{seconds:>10.4f}{ours:>10.4f}{closed:>11.4f}{1 / ratio:>9.1f}",
            flush=True,
        )
    return [Goal(goal, ratio, 1 / 20, "x")]


def _lake(size: int, variant: str, discount: float, seed: int | None) -> am.Model:
    return am.problems.frozen_lake(size, variant, 0.05, discount, seed=seed)


def _best_seconds(lake: am.Model, tolerance: float) -> float:
    """Our seconds to the tolerance, infinite if it takes longer than Storm may."""

    def once() -> float:
        seconds, solution = timed(lake, tolerance, SECONDS)
        return seconds if solution.gap <= tolerance else float("inf")

    return _best_of_three(once)


def _best_of_three(seconds: Callable[[], float]) -> float:
    first = seconds()
    return first if first > 1 else min(first, seconds(), seconds())


def _frontier(lowers: list[Bound], uppers: list[Bound]) -> list[tuple[float, float]]:
    """The cheapest pair of bounds within each waypoint that Storm reaches, and within its smallest gap, as gap and seconds."""
    pairs = [(upper - lower, below + above) for lower, below in lowers for upper, above in uppers]
    smallest = max(min(gap for gap, _ in pairs), CLOSED)
    targets = [gap for gap in WAYPOINTS if gap > smallest] + [smallest]
    cheapest = [min((pair for pair in pairs if pair[0] <= target), key=lambda pair: pair[1]) for target in targets]
    return list(dict.fromkeys(cheapest))


def _storms_bounds(lake: tuple[int, str, float, int | None]) -> tuple[list[Bound], list[Bound]]:
    """What Storm finds from below and from above until the gap is closed or the time is over."""
    below, above = Storm("unfolding", lake), Storm("discretization", lake)
    try:
        for rung in range(len(SETTINGS["unfolding"])):
            below.ask(rung)
            above.ask(rung)
            if below.found and above.found and min(above.found)[0] - max(below.found)[0] <= CLOSED:
                break
    finally:
        below.stop()
        above.stop()
    return below.found, above.found


@dataclass
class Storm:
    """Storm in a process of its own, which can be stopped in the middle of a call."""

    kind: str
    lake: tuple[int, str, float, int | None]
    left: float = SECONDS / 2
    found: list[Bound] = field(default_factory=list)

    def __post_init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.line, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_answer, args=(self.kind, self.lake, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.line.recv()  # the model is built

    def ask(self, rung: int) -> None:
        """Bounds at one setting with every option, as far as the time allows."""
        for option in OPTIONS[self.kind]:
            if self.left <= 0:
                return
            begun = time.perf_counter()
            self.line.send((SETTINGS[self.kind][rung], option))
            if self.line.poll(self.left):
                self.found.append(self.line.recv())
                self.left -= time.perf_counter() - begun
            else:
                self.left = 0.0
                self.stop()

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def _answer(kind: str, lake: tuple[int, str, float, int | None], line: Connection) -> None:
    """Build the lake for Storm, then answer (setting, option) with a bound and the seconds it took."""
    bound = _bounding(kind, _lake(*lake))
    bound(SETTINGS[kind][0], OPTIONS[kind][0])  # warms up
    line.send(None)
    while True:
        setting, option = line.recv()
        values: list[float] = []

        def once(setting: int = setting, option: str = option, values: list[float] = values) -> float:
            begun = time.perf_counter()
            values.append(bound(setting, option))
            return time.perf_counter() - begun

        seconds = _best_of_three(once)
        line.send((values[0], seconds))


def _bounding(kind: str, model: am.Model) -> Callable[[int, str], float]:
    stormpy: Any = importlib.import_module("stormpy")
    pomdp: Any = importlib.import_module("stormpy.pomdp")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake.drn"
        path.write_text(runpy.run_path(str(TRANSLATION))["written_out"](model))
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        built = stormpy.build_model_from_drn(str(path), options=options)
    wanted = stormpy.parse_properties('R{"price"}min=? [F "end"]')[0]

    def unfolding(beliefs: int, option: str) -> float:
        order = getattr(pomdp.ExplorationQueueOrder, option)
        done = pomdp.verify_with_belief_unfolding(
            built, wanted, max_exploration_size=beliefs, exploration_queue_order=order
        )
        return 1 - float(done.value)

    def discretization(resolution: int, option: str) -> float:
        done = pomdp.verify_with_belief_discretization(built, wanted, resolution, use_dynamic=option == "dynamic")
        return 1 - float(done.value)

    return unfolding if kind == "unfolding" else discretization


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process, and those it starts, on one core where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    missed = [goal for goal in planning_storm() if print(goal, flush=True) or not goal.met]
    sys.exit(1 if missed else 0)
