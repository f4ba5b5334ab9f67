"""How often intervals over seeds hold the true mean, at 5 and 20 seeds; `python -m benchmarks.intervals` prints more cases.

Goals are for returns as they are usual. Two cases are printed without a goal, because intervals fail there: runs of which one in
five is stuck, which five runs often do not show at all, and a strong skew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from benchmarks.goals import Goal

FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]

#: Samples of each size, and percentage points that an interval may hold the truth less often than it says.
SAMPLES, COUNTS, LACKING = 20_000, (5, 20), 2.0


class Family(NamedTuple):
    """A distribution of returns over seeds: its name, how to draw from it, its mean, and whether intervals are to hold there."""

    name: str
    draw: Draw
    mean: float
    goal: bool = True


FAMILIES = (
    Family("normal", lambda rng, shape: rng.normal(0.5, 0.1, shape), 0.5),
    Family("skewed (below an optimum, gamma 4)", lambda rng, shape: 1 - rng.gamma(4.0, 0.05, shape), 0.8),
    Family("means of 50 wins or losses", lambda rng, shape: rng.binomial(50, 0.8, shape) / 50, 0.8),
    Family("half of the runs stuck", lambda rng, shape: _stuck(rng, shape, 0.5), 0.425),
    Family("one run in five stuck", lambda rng, shape: _stuck(rng, shape, 0.2), 0.68, goal=False),
    Family("very skewed (exponential)", lambda rng, shape: rng.exponential(1.0, shape), 1.0, goal=False),
)


def _stuck(rng: np.random.Generator, shape: tuple[int, int], share: float) -> FloatArray:
    """Runs that earn about 0.85, but for a share of them that earns nothing."""
    return np.where(rng.random(shape) < share, 0.0, rng.normal(0.85, 0.03, shape))


def coverage(family: Family, count: int) -> tuple[float, float]:
    """Return the share of intervals that hold the true mean, and of samples for which there is one (runs are not all alike)."""
    rng = np.random.default_rng([count, FAMILIES.index(family)])
    found = statistics.mean(family.draw(rng, (count, SAMPLES)))
    known = ~np.isnan(found.low)
    holds = (found.low <= family.mean) & (family.mean <= found.high)
    return float(holds[known].mean()), float(known.mean())


def intervals() -> list[Goal]:
    """Percentage points that intervals of a mean hold the truth less often than they say."""
    nominal = statistics.LEVEL
    return [
        Goal(
            f"{nominal:.0%} intervals of {count} seeds, {family.name}: {held:.1%}", 100 * (nominal - held), LACKING, "pts"
        )
        for family in FAMILIES if family.goal for count in COUNTS for held in [coverage(family, count)[0]]
    ]  # fmt: skip


def main() -> None:
    print(*intervals(), sep="\n")
    for family in FAMILIES:
        shown = [f"{count} seeds: {held:.1%} of the {known:.1%} that have one" for count in COUNTS
                 for held, known in [coverage(family, count)]]  # fmt: skip
        print(f"{family.name:<36} {'; '.join(shown)}")


if __name__ == "__main__":
    main()
