"""A million-state lake: built in under 10 s and 1 GiB."""

from __future__ import annotations

from benchmarks.goals import Goal, in_fresh_process

BUILD = """
import time
import actmeasure as am
begun = time.perf_counter()
lake = am.problems.frozen_lake(1000, variant="semi-slippery", seed=1)
result = {"seconds": time.perf_counter() - begun, "states": lake.n_states}
"""


def building() -> list[Goal]:
    measured = in_fresh_process(BUILD)
    what = f"build a semi-slippery lake of {measured['states']:,.0f} states"
    return [
        Goal(f"{what}: time", measured["seconds"], 10, "s"),
        Goal(f"{what}: peak memory of the process", measured["memory"], 1, "GiB"),
    ]
