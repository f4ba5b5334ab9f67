"""Steps a second of the learners on the 4x4 semi-slippery lake, and how that changes on a lake of a million states.

Run it alone with `python -m benchmarks.learning`.
"""

from __future__ import annotations

import time

import actmeasure as am
from benchmarks.goals import Goal, in_fresh_process

#: Agent, its settings, episodes, least steps a second, and steps a second of the authors' code on a machine with the speed below.
LEARNERS: tuple[tuple[str, dict[str, int], int, int, int | None], ...] = (
    ("atmq", {}, 100_000, 1_000_000, 6_100),
    ("dyna-atmq", {}, 30_000, 400_000, None),
    ("dyna-atmq", {"training_updates": 625}, 3_000, 40_000, 38),
    ("amrl-q", {}, 500_000, 10_000_000, 43_000),
)
#: Iterations a second of `_python_loop` on the machine on which the authors' code was timed.
THEIR_LOOP = 2.6e7
#: Largest ratio of the time of a step on the large lake to that on the small one, and largest memory in GiB.
SLOWER, MEMORY = 4.0, 2.0
ROUNDS = 3

LARGE = """
import time
import actmeasure as am
lake = am.problems.frozen_lake(1000, variant="semi-slippery", seed=0, measuring_cost=0.05)
agent = am.agents.make("dyna-atmq")
am.train(agent, lake, episodes=10)
begin = time.perf_counter()
episodes = am.train(agent, lake, episodes=20_000)
result = {"seconds": (time.perf_counter() - begin) / episodes.steps.sum(), "steps": float(episodes.steps.sum())}
"""


def learning() -> list[Goal]:
    """Time of a step against its goal; the names say how many times as fast as the authors' code that is."""
    loop = _python_loop()
    goals = []
    for agent, settings, episodes, least, theirs in LEARNERS:
        seconds = min(_seconds_a_step(agent, settings, episodes) for _ in range(ROUNDS))
        name = f"{agent} {settings.get('training_updates', '')}".strip()
        against = "" if theirs is None else f", {1 / seconds / theirs * THEIR_LOOP / loop:,.0f} x the authors'"
        goals.append(Goal(f"{name}: {1 / seconds:,.0f} steps/s{against}", 1e9 * seconds, 1e9 / least, "ns"))
    small = min(_seconds_a_step("dyna-atmq", {}, 20_000) for _ in range(ROUNDS))
    large = in_fresh_process(LARGE)
    what = f"dyna-atmq, {large['steps']:,.0f} steps on a million states"
    goals.append(Goal(f"{what}, time a step against 4x4", large["seconds"] / small, SLOWER, "x"))
    goals.append(Goal(f"{what}, memory in all", large["memory"], MEMORY, "GiB"))
    return goals


def _seconds_a_step(agent: str, settings: dict[str, int], episodes: int) -> float:
    lake = am.problems.frozen_lake(4, variant="semi-slippery", measuring_cost=0.05)
    learner = am.agents.make(agent, **settings)
    am.train(learner, lake, episodes=10)
    begin = time.perf_counter()
    steps = am.train(learner, lake, episodes=episodes).steps.sum()
    return float((time.perf_counter() - begin) / steps)


def _python_loop(count: int = 3_000_000) -> float:
    """Iterations a second of plain Python, to compare machines with."""
    x = 0
    begin = time.perf_counter()
    for i in range(count):
        x += i & 7
    return count / (time.perf_counter() - begin)


if __name__ == "__main__":
    print(*learning(), sep="\n")
