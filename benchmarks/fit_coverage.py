"""How often the intervals of a fit cover what made the records: `python -m benchmarks.fit_coverage` (13 minutes; `20 60`: one;
`groups detection`: only these cases).

Pooled are the probabilities that are well observed: at least ten expected transitions of the kind, and ten others from the same
state with the same action.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import actmeasure as am

FloatArray = npt.NDArray[np.float64]
Records = dict[str, list[object]]
Case = Callable[[np.random.Generator], tuple[FloatArray, Records, dict[str, object]]]

WELL = 10.0
#: Sets of records for each case, and how many times as many trials of detection, which take no time.
SETS, MORE_TRIALS = 100, 10
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


#: Intensities of three stages that can improve, and of death; and probabilities of records of the stages.
RATES = np.array([[-0.3, 0.25, 0.0, 0.05], [0.1, -0.5, 0.3, 0.1], [0.0, 0.1, -0.5, 0.4], [0.0, 0.0, 0.0, 0.0]])
ERRORS = np.array([[0.9, 0.1, 0.0, 0.0], [0.1, 0.8, 0.1, 0.0], [0.0, 0.15, 0.85, 0.0], [0.0, 0.0, 0.0, 1.0]])
CONFUSIONS = {"1": ["2"], "2": ["1", "3"], "3": ["2"]}
#: True values and the ends of their intervals.
Ends = list[tuple[FloatArray, FloatArray, FloatArray]]


def intensities(seed: int, replicates: int) -> Ends:
    """Panel data in continuous time, 150 units, death seen at the next visit."""
    found = _continuous(visits(150, seed, False), seed, replicates)
    return [_rates(found, RATES)]


def exact_failures(seed: int, replicates: int) -> Ends:
    """The same with the day of death."""
    return [_rates(_continuous(visits(150, seed, True), seed, replicates, noticed=["4"]), RATES)]


def misclassification(seed: int, replicates: int) -> Ends:
    """The same with wrong records of the stages, 300 units with up to 13 visits; intensities and errors are pooled."""
    records = visits(300, seed, True, ERRORS, most=12)
    found = _continuous(records, seed, replicates, noticed=["4"], errors=CONFUSIONS, start="drawn")
    assert found.errors_low is not None
    assert found.errors_high is not None
    estimated = (ERRORS > 0) & (ERRORS < 1)
    return [_rates(found, RATES), (ERRORS[estimated], found.errors_low[estimated], found.errors_high[estimated])]


def groups(seed: int, replicates: int) -> Ends:
    """Two groups of 120 units, the second twice as fast."""
    first, second = visits(120, seed, True), visits(120, seed + 10_000, True, rates=2 * RATES)
    both: Records = {name: [*first[name], *second[name]] for name in first}
    both["unit"] = [*(("a", one) for one in first["unit"]), *(("b", one) for one in second["unit"])]
    both["kind"] = [*("a" for _ in first["unit"]), *("b" for _ in second["unit"])]
    settings = _settings(seed, replicates) | {"noticed": ["4"]}
    found = am.fit_groups(both, "kind", **settings)
    return [_rates(found.fits["a"], RATES), _rates(found.fits["b"], 2 * RATES)]


def detection(seed: int, replicates: int) -> Ends:
    """Hit/miss trials: a log-normal curve, 150 trials; its probabilities at three sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(1.0, 0.8, size=150)
    found = am.fit_detection(sizes, rng.random(150) < stats.norm.cdf(np.log(sizes), 1.0, 0.6), level=LEVEL)
    at = np.array([1.0, 3.0, 6.0])
    return [(stats.norm.cdf(np.log(at), 1.0, 0.6), *found.interval(at))]


MORE_CASES = (intensities, exact_failures, misclassification, groups, detection)


def _settings(seed: int, replicates: int) -> dict[str, Any]:
    return {
        "time": "continuous", "structure": RATES > 0, "default_action": "wait", "states": list("1234"),
        "bootstrap": replicates, "goodness": 0, "level": LEVEL, "seed": seed,
    }  # fmt: skip


def _continuous(records: Records, seed: int, replicates: int, **more: Any) -> am.Fit:
    return am.fit(records, **(_settings(seed, replicates) | more))


def _rates(found: am.Fit, truth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The true intensities and the ends of their intervals."""
    assert found.dynamics_low is not None
    assert found.dynamics_high is not None
    return truth[truth > 0], found.dynamics_low[0][truth > 0], found.dynamics_high[0][truth > 0]


def visits(
    units: int, seed: int, exact: bool, errors: FloatArray | None = None, most: int = 8, rates: FloatArray = RATES
) -> Records:
    """Visits after 100 to 900 days, in years; with `exact`, death is recorded when it comes, without error."""
    rng = np.random.default_rng(seed)
    records: Records = {"unit": [], "time": [], "state": []}

    def add(unit: int, time: float, state: int) -> None:
        if errors is not None and not (exact and state == 3):
            state = int(rng.choice(4, p=errors[state]))
        for name, value in (("unit", unit), ("time", float(time)), ("state", str(state + 1))):
            records[name].append(value)

    for unit in range(units):
        times = np.r_[0, rng.integers(100, 900, size=most)].cumsum() / 365.2425
        state, now, visit = int(rng.integers(2)), 0.0, 0
        while visit < len(times):
            leaves = now + (rng.exponential(-1 / rates[state, state]) if rates[state, state] else np.inf)
            while visit < len(times) and times[visit] < leaves:
                add(unit, times[visit], state)
                visit += 1
            if visit == len(times):
                break
            chances = np.where(np.arange(4) == state, 0, rates[state])
            now, state = leaves, int(rng.choice(4, p=chances / chances.sum()))
            if exact and state == 3:
                add(unit, now, state)
                break
    return records


def coverage_of(case: Callable[[int, int], Ends], seeds: Iterable[int], replicates: int = 200) -> Coverage:
    """The coverage of all parameters of a case, over sets of records that are made with these seeds."""
    inside: list[bool] = []
    width: list[float] = []
    for seed in seeds:
        for truth, low, high in case(seed, replicates):
            inside.extend(((low <= truth) & (truth <= high)).tolist())
            width.extend((high - low).tolist())
    return Coverage(float(np.mean(inside)), len(inside), float(np.mean(width)))


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    names = {word for word in sys.argv[1:] if not word.isdigit()}
    sets, replicates = (*numbers, *(SETS, 200)[len(numbers) :])
    unknown = names - {case.__name__ for case in (*MORE_CASES, *CASES)}
    if unknown:
        print(
            f"no case {', '.join(sorted(unknown))}; there are {', '.join(case.__name__ for case in (*MORE_CASES, *CASES))}"
        )
        return 2
    missed = 0
    for more in MORE_CASES:
        if not names or more.__name__ in names:
            seeds = range(sets * (MORE_TRIALS if more is detection else 1))
            missed += _missed(more.__name__, coverage_of(more, seeds, replicates))
    for case in CASES:
        if not names or case.__name__ in names:
            found, rest = coverage(case, range(sets), replicates)
            missed += _missed(case.__name__, found, f"; less well observed: {rest.covered:.3f} of {rest.count:,}")
    return 1 if missed else 0


def _missed(name: str, found: Coverage, more: str = "") -> bool:
    met = LEAST <= found.covered <= MOST
    print(
        f"{name:<18} {found.covered:.3f} of {found.count:,} intervals cover, mean width {found.width:.3f}; goal "
        f"{LEAST} to {MOST} {'met' if met else 'MISSED'}{more}",
        flush=True,
    )
    return not met


if __name__ == "__main__":
    sys.exit(main())
