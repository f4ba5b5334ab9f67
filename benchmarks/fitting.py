"""Fitting 100,000 records with 10 states and 3 actions, reading the file included; intervals are extra.

And 20,000 records in continuous time that may be wrong, with intervals and goodness of fit.
Run it alone with `python -m benchmarks.fitting`.
"""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

import actmeasure as am
from benchmarks import fit_coverage
from benchmarks.goals import Goal

UNITS, PERIODS, STATES = 2_000, 50, 10
ACTIONS = ("nothing", "repair", "replace")
#: Share of periods with an inspection, and with another action than nothing: gaps that share what was done in them, and gaps of
#: which hardly two are alike.
CASES = {"usual": (0.3, 0.05), "long gaps with many actions": (0.1, 0.3)}
SECONDS = 10.0
#: Units of which 20,000 records are made, and the goal in CPU seconds.
WRONG_UNITS, WRONG_SECONDS = 3_350, 60.0


def fitting() -> list[Goal]:
    goals = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        write_records(path, 0.9, 0.1, units=20)
        am.fit(path, states=_states(), bootstrap=1, goodness=1)  # compiled, from now on
        for name, (looking, acting) in CASES.items():
            write_records(path, looking, acting)
            begin = time.perf_counter()
            am.fit(path, states=_states(), bootstrap=0, goodness=0)
            seconds = time.perf_counter() - begin
            begin = time.perf_counter()
            am.fit(path, states=_states(), bootstrap=3, goodness=0)
            each = (time.perf_counter() - begin - seconds) / 3
            what = f"fit of {UNITS * PERIODS:,} records, {STATES} states, {name} ({each:.2f} s a replicate more)"
            goals.append(Goal(what, seconds, SECONDS, "s"))
        goals.append(wrong_records(path))
    return goals


def wrong_records(path: Path) -> Goal:
    """Dates of visits to units whose states are recorded with errors; deaths on the same day as a visit are left out."""
    records = fit_coverage.visits(WRONG_UNITS, 1, True, fit_coverage.ERRORS, most=12)
    days = [date(2000, 1, 1) + timedelta(days=round(float(str(when)) * 365.2425)) for when in records["time"]]
    rows = zip(records["unit"], days, records["state"], strict=True)
    path.write_text("\n".join(["unit,time,state", *(",".join(map(str, row)) for row in rows)]) + "\n")
    begin = time.process_time()
    am.fit(
        path, time="continuous", structure=fit_coverage.RATES > 0, default_action="wait", noticed=["4"],
        errors=fit_coverage.CONFUSIONS, start="drawn", skip_contradictions=True,
    )  # fmt: skip
    seconds = time.process_time() - begin
    return Goal(f"fit of {len(days):,} records with errors, intervals and goodness", seconds, WRONG_SECONDS, "s of CPU")


def write_records(path: Path, looking: float, acting: float, units: int = UNITS) -> None:
    """Records of units that wear out by one or two states, with a row for every period."""
    rng = np.random.default_rng(0)
    steps = _chains().cumsum(axis=2)
    state = rng.integers(STATES, size=units)
    lines = ["unit,time,state,action"]
    for now in range(PERIODS):
        looks = (rng.random(units) < looking) | (now == 0)
        action = np.where(rng.random(units) < acting, rng.integers(1, len(ACTIONS), size=units), 0)
        lines += [
            f"unit {unit},{now},{1 + state[unit] if looks[unit] else ''},{ACTIONS[action[unit]]}"
            for unit in range(units)
        ]
        state = (rng.random(units)[:, None] >= steps[action, state]).sum(axis=1).clip(max=STATES - 1)
    path.write_text("\n".join(lines) + "\n")


def _states() -> list[str]:
    return [str(state + 1) for state in range(STATES)]


def _chains() -> npt.NDArray[np.float64]:
    chains = np.zeros((len(ACTIONS), STATES, STATES))
    for state in range(STATES):
        chains[0, state, state] += 0.85
        chains[0, state, min(state + 1, STATES - 1)] += 0.12
        chains[0, state, min(state + 2, STATES - 1)] += 0.03
        chains[1, state, max(state - 2, 0)] += 0.7
        chains[1, state, state] += 0.3
        chains[2, state, :2] += 0.95, 0.05
    return chains


if __name__ == "__main__":
    print(*fitting(), sep="\n")
