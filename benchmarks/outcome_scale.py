"""How far the general search scales with states, outcomes and measurements: CPU seconds to a gap of 5 %, and memory.

`python -m benchmarks.outcome_scale` prints a table. The models are a unit that deteriorates through ten hidden conditions, at a
rate that depends on its surroundings. These are known and change at random to neighbouring ones, so that a belief has at most
ten states, however many surroundings there are. Measurements report the condition with errors; the better, the dearer. Each
model is solved in a new process, after compiling.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

import actmeasure as am
from benchmarks.goals import in_fresh_process

__all__ = ["scale_model"]

#: Hidden conditions.
LEVELS = 10
#: States, outcomes and measurements of the models, one of which varies.
SIZES = (
    *((states, 5, 2) for states in (100, 1_000, 10_000, 100_000)),
    *((1_000, outcomes, 2) for outcomes in (2, 10, 50)),
    *((1_000, 5, measurements) for measurements in (1, 5, 20)),
)
#: Seconds that a search has, by the clock.
SECONDS = 120.0


def scale_model(states: int, outcomes: int, measurements: int, seed: int = 0) -> am.Model:
    """Return a unit of ten conditions in `states / 10` known surroundings."""
    generator = np.random.default_rng(seed)
    surroundings = states // LEVELS
    rates = generator.uniform(0.05, 0.35, surroundings)
    ring = scipy.sparse.lil_array((surroundings, surroundings))
    for place in range(surroundings):
        for step, probability in zip((-1, 0, 1), generator.dirichlet([1.0, 2.0, 1.0]), strict=True):
            ring[place, (place + step) % surroundings] += probability
    worse = scipy.sparse.block_diag(
        [np.diag([1 - rate] * (LEVELS - 1) + [1.0]) + np.diag([rate] * (LEVELS - 1), 1) for rate in rates], "csr"
    )
    moved = scipy.sparse.kron(ring.tocsr(), scipy.sparse.eye_array(LEVELS), "csr")
    renewed = np.zeros((LEVELS, LEVELS))
    renewed[:, 0] = 1.0
    repair = scipy.sparse.kron(ring.tocsr(), renewed, "csr")
    losses = np.tile(np.linspace(0.0, 1.0, LEVELS) ** 3 * 10, surroundings)
    places = scipy.sparse.eye_array(surroundings)
    passive = am.Measurement.noisy("surroundings", probabilities=scipy.sparse.kron(places, np.ones((LEVELS, 1)), "csr"))
    looks = []
    for number in range(measurements):
        width = LEVELS / (1.5 + 2 * number)
        seen = np.linspace(0, LEVELS - 1, outcomes)
        law = np.exp(-0.5 * ((np.arange(LEVELS)[:, None] - seen) / width) ** 2)
        law /= law.sum(axis=1, keepdims=True)
        table = scipy.sparse.kron(places, law, "csr")
        looks.append(am.Measurement.noisy(f"look-{number + 1}", 0.1 * (1 + number), probabilities=table))
    return am.Model.from_arrays(
        [worse @ moved, repair],
        np.column_stack([-losses, -losses - 4.0]),
        measurements=looks,
        passive=passive,
        discount=0.95,
    )


def main() -> None:
    """Print CPU seconds to 5 % and memory for each size."""
    print(f"{'states':>8} {'outcomes':>8} {'measurements':>12} {'seconds':>8} {'gap, %':>8} {'GiB':>6}")
    for size in SIZES:
        code = f"""
import time
import actmeasure as am
from benchmarks.outcome_scale import scale_model
am.solve(am.problems.tiger(), time_limit=1)
model, begun = scale_model(*{size}), time.process_time()
found = am.solve(model, tolerance=1e-9, relative_tolerance=0.05, time_limit={SECONDS})
result = {{"seconds": time.process_time() - begun, "gap": 100 * found.gap / abs(found.upper)}}
"""
        result = in_fresh_process(code)
        print(
            f"{size[0]:>8,} {size[1]:>8} {size[2]:>12} {result['seconds']:>8.2f} {result['gap']:>8.2f} {result['memory']:>6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
