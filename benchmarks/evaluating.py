"""Evaluation: a 300x300 lake, always measured, from every free cell of it; and a small problem over a million steps."""

from __future__ import annotations

from benchmarks.goals import Goal, in_fresh_process

# Random control reaches every cell, so that the linear system has all of them; a good control would keep to its path.
EVALUATE = """
import time
import numpy as np
import actmeasure as am
from actmeasure.warm import warm
warm()
lake = am.problems.frozen_lake(300, variant="semi-slippery", seed=1, discount=0.99)
free = ~lake.terminal
lake = lake.replace(initial=free / free.sum())
actions = np.where(free, np.random.default_rng(0).integers(0, 4, size=lake.n_states), -1)
begun = time.perf_counter()
evaluation = am.evaluate(lake, am.Schedule.always_measure(actions), horizon=200)
result = {"seconds": time.perf_counter() - begun, "states": int(np.isfinite(evaluation.values).sum())}
"""


LONG = """
import time
import actmeasure as am
from actmeasure.warm import warm
warm()
model = am.problems.tight_bound()
always = am.Schedule.always_measure([1, 0, 0, 1])
begun = time.perf_counter()
am.evaluate(model, always, horizon=1_000_000)
result = {"seconds": time.perf_counter() - begun}
"""


def evaluating() -> list[Goal]:
    measured = in_fresh_process(EVALUATE)
    what = f"evaluate always-measure, 300x300 lake, {measured['states']:,.0f} known states"
    return [
        Goal(what, measured["seconds"], 10, "s"),
        Goal("evaluate always-measure, 4 states, a million steps", in_fresh_process(LONG)["seconds"], 1, "s"),
    ]
