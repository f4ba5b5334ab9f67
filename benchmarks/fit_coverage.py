"""How often the intervals of a fit cover the chances that made the records: `python -m benchmarks.fit_coverage` (half an hour).

Pooled are the probabilities that are well observed: at least ten expected transitions of the kind, and ten others from the same
state with the same action.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import actmeasure as am

FloatArray = npt.NDArray[np.float64]
Records = dict[str, list[object]]
Case = Callable[[np.random.Generator], tuple[FloatArray, Records, dict[str, object]]]

WELL = 10.0
#: Sets of records for each case.
SETS = 100
LEVEL, LEAST, MOST = 0.9, 0.85, 0.95


@dataclass(frozen=True)
class Coverage:
    """The share of intervals that cover, of how many, and their mean width."""

    covered: float
    count: int
    width: float


def coverage(case: Case, seeds: Iterable[int], replicates: int = 200) -> tuple[Coverage, Coverage]:
    """The coverage of well observed probabilities, and of the others, over sets of records that are made with these seeds."""
    inside: tuple[list[bool], list[bool]] = ([], [])
    width: tuple[list[float], list[float]] = ([], [])
    for seed in seeds:
        chains, records, settings = case(np.random.default_rng(seed))
        found = am.fit(records, bootstrap=replicates, goodness=0, level=LEVEL, seed=seed, **settings)  # type: ignore[arg-type]
        assert found.low is not None
        assert found.high is not None
        times = found.exposure[:, :, None] * chains
        others = found.exposure[:, :, None] * (1 - chains)
        observed = (times >= WELL) & (others >= WELL)
        others_are = ~observed & (chains > 0) & (chains < 1) & ~np.isnan(found.probabilities)
        covers = (found.low <= chains) & (chains <= found.high)
        for number, chosen in enumerate((observed, others_are)):
            inside[number].extend(covers[chosen].tolist())
            width[number].extend((found.high - found.low)[chosen].tolist())
    first, second = (
        Coverage(float(np.mean(of)), len(of), float(np.mean(wide))) if of else Coverage(np.nan, 0, np.nan)
        for of, wide in zip(inside, width, strict=True)
    )
    return first, second


def wear_and_repair(rng: np.random.Generator) -> tuple[FloatArray, Records, dict[str, object]]:
    """Wear by steps and a repair, 80 units for 25 periods, gaps of 1 to 5 periods; nothing about the structure is told."""
    chains = _wear_and_repair((0.9, 0.85, 0.8, 0.7))
    return chains, _records(chains, 80, 25, 5, 0.15, rng), {"states": [str(state) for state in range(5)]}


def known_structure(rng: np.random.Generator) -> tuple[FloatArray, Records, dict[str, object]]:
    """The same with 200 units, where it is known that units only get worse by themselves."""
    chains = _wear_and_repair((0.9, 0.85, 0.8, 0.7))
    records = _records(chains, 200, 25, 5, 0.15, rng)
    return chains, records, {"states": [str(state) for state in range(5)], "structure": {"nothing": "deteriorate"}}


def slow_wear(rng: np.random.Generator) -> tuple[FloatArray, Records, dict[str, object]]:
    """Rare changes and long gaps, as of sewers: 300 units for 60 periods, gaps of 3 to 12, no repair."""
    chains = _wear_and_repair((0.955, 0.972, 0.979, 0.988))[:1]
    records = _records(chains, 300, 60, 12, 0.0, rng, shortest=3, starts=4)
    return chains, records, {"states": [str(state) for state in range(5)], "structure": "deteriorate-by-steps"}


def any_chain(rng: np.random.Generator) -> tuple[FloatArray, Records, dict[str, object]]:
    """A random chain of four states, another for each seed, with gaps of 1 to 4 periods; 100 units for 15 periods."""
    chains = np.stack([0.5 * np.eye(4) + 0.5 * rng.dirichlet(np.ones(4), size=4)])
    return chains, _records(chains, 100, 15, 4, 0.0, rng, starts=4), {"states": [str(state) for state in range(4)]}


CASES: tuple[Case, ...] = (wear_and_repair, known_structure, slow_wear, any_chain)


def _wear_and_repair(stay: tuple[float, ...]) -> FloatArray:
    n_states = len(stay) + 1
    wear = np.diag([*stay, 1.0]) + np.diag(1 - np.array(stay), k=1)
    repair = np.zeros((n_states, n_states))
    repair[:, :3] = 0.7, 0.25, 0.05
    return np.stack([wear, repair])


def _records(
    chains: FloatArray,
    units: int,
    periods: int,
    longest: int,
    repairs: float,
    rng: np.random.Generator,
    shortest: int = 1,
    starts: int = 2,
) -> Records:
    """All units at once, a row for every unit and period."""
    steps = chains.cumsum(axis=2)
    state, next_look = rng.integers(starts, size=units), np.zeros(units, dtype=np.int64)
    records: Records = {"unit": [], "time": [], "state": [], "action": []}
    for time in range(periods):
        looks = next_look == time
        next_look = np.where(looks, time + rng.integers(shortest, longest + 1, size=units), next_look)
        action = (rng.random(units) < repairs).astype(np.int64)
        records["unit"] += range(units)
        records["time"] += [time] * units
        records["state"] += [str(one) if look else "" for one, look in zip(state, looks, strict=True)]
        records["action"] += [("nothing", "repair")[one] for one in action]
        state = (rng.random(units)[:, None] >= steps[action, state]).sum(axis=1).clip(max=chains.shape[1] - 1)
    return records


def main() -> int:
    missed = 0
    for case in CASES:
        result, rest = coverage(case, range(SETS))
        met = LEAST <= result.covered <= MOST
        missed += not met
        print(
            f"{case.__name__:<16} {result.covered:.3f} of {result.count:,} intervals cover, mean width {result.width:.3f}; goal "
            f"{LEAST} to {MOST} {'met' if met else 'MISSED'}; less well observed: {rest.covered:.3f} of {rest.count:,}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
