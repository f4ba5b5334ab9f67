"""CPU seconds to the first answer after an installation, when nothing is compiled yet."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.goals import Goal

#: The most CPU seconds that a first answer may take, the interpreter and all imports included.
MOST_SECONDS = 15.0
TRAIN = """
import actmeasure as am
model = am.problems.frozen_lake(4)
am.train({agent}, model, episodes=20)
"""
SCHEDULED = (
    "am.agents.make('schedule', schedule=am.Schedule({s: am.BlindPlan((1,)) for s in range(16)}, 16), model=model)"
)
FIT = """
import actmeasure as am
am.fit({"unit": [1, 1, 1], "time": [0, 1, 3], "state": ["good", "worn", "worn"], "action": ["wait"] * 3})
"""
FIRST: dict[str, list[str]] = {
    "solve frozen-lake": ["-m", "actmeasure", "solve", "frozen-lake"],
    **{
        f"train {name}": ["-c", TRAIN.format(agent=f"am.agents.make('{name}')")]
        for name in ("atmq", "dyna-atmq", "amrl-q", "foresight", "random")
    },
    "train acno-otp": ["-c", TRAIN.format(agent="am.agents.make('acno-otp', exploring_episodes=5, simulations=10)")],
    "train pomcp": ["-c", TRAIN.format(agent="am.agents.make('pomcp', model=model, simulations=10)")],
    "train schedule": ["-c", TRAIN.format(agent=SCHEDULED)],
    "fit": ["-c", FIT],
}


def first_answer() -> Iterator[Goal]:
    """Each in a process of its own, with an empty cache."""
    for name, arguments in FIRST.items():
        yield Goal(f"first answer: {name}, nothing compiled, CPU", _cpu_seconds(arguments), MOST_SECONDS, "s")


def _cpu_seconds(arguments: list[str]) -> float:
    """CPU seconds, of user and system, that Python takes with these arguments and an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments], capture_output=True, check=True, env={**os.environ, "NUMBA_CACHE_DIR": folder}
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    for goal in first_answer():
        print(goal, flush=True)
