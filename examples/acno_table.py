"""Observe, then plan: the paper's strongest competitor, on its Table 1 and on lakes for which its authors give no figures.

Run it as it is for a quick look, with `--full` for the table (5 seeds, 1,000 episodes, 25,000 simulations a decision), and with
`--large` for lakes of 8x8 and 12x12.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import actmeasure as am

#: Largest number of steps of an episode, as in the paper's runs.
MAX_STEPS = 500


@dataclass(frozen=True)
class Case:
    """A problem, the published return of ACNO-OTP, the number of training episodes, and settings for the default preset."""

    name: str
    model: am.Model
    published: str
    episodes: int = 1000
    settings: dict[str, Any] = field(default_factory=dict)


def table() -> list[Case]:
    """Return the columns of the paper's Table 1."""
    gambles = [
        Case(f"measuring value, c={cost:.2f}", am.problems.measuring_value(measuring_cost=cost), published)
        for cost, published in {0.05: "0.94", 0.10: "0.81", 0.20: "0.79"}.items()
    ]
    lakes = [
        Case(f"4x4 {variant}", am.problems.frozen_lake(4, variant, measuring_cost=0.05), published)
        for variant, published in {"deterministic": "1.00", "semi-slippery": "0.40", "slippery": "0.04"}.items()
    ]
    return [*gambles, *lakes]


def large() -> list[Case]:
    """Return lakes without a published figure, because planning took too long; they need a larger depth."""
    far = {"discount": 0.99, "depth": 50}
    eight = am.problems.frozen_lake(8, "semi-slippery", measuring_cost=0.05)
    twelve = am.problems.frozen_lake(12, "semi-slippery", seed=0, measuring_cost=0.05)
    return [Case("8x8 semi-slippery", eight, "-", 2000, far), Case("12x12 semi-slippery", twelve, "-", 7500, far)]


def best_return(model: am.Model) -> float:
    """Return the undiscounted return of the optimal schedule for discount 0.99."""
    patient = model.replace(discount=0.99)
    return am.evaluate(patient, am.solve(patient, time_limit=60).schedule, horizon=MAX_STEPS).scalarized_return


def show(case: Case, preset: str, simulations: int, episodes: int, seeds: int) -> None:
    """Train with several seeds, and print the mean of the last 50 episodes."""
    begin = time.perf_counter()
    settings = {"preset": preset, "simulations": simulations} | (case.settings if preset == "default" else {})
    runs = am.train_seeds("acno-otp", case.model, episodes, seeds, MAX_STEPS, settings)
    found = runs.summary()
    earned, looks, steps = (found[name].mean for name in ("scalarized_return", "measurements", "steps"))
    spread = found["scalarized_return"].deviation
    seconds = time.perf_counter() - begin
    print(
        f"{case.name:<24}{preset:>10}{case.published:>10}{best_return(case.model):>8.2f}{earned:>8.2f}{spread:>6.2f}"
        f"{looks:>7.2f}{steps:>7.1f}{seconds:>7.0f} s",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="as in the paper: 5 seeds, 25,000 simulations a decision")
    parser.add_argument("--large", action="store_true", help="8x8 and 12x12 lakes")
    parser.add_argument("--presets", nargs="+", default=["published", "default"], help="paper, published, default")
    given = parser.parse_args()
    seeds, simulations = (5, 25_000) if given.full or given.large else (1, 500)
    print(f"acno-otp, mean of the last 50 episodes over {seeds} seeds, {simulations:,} simulations a decision\n")
    print(f"{'':24}{'preset':>10}{'published':>10}{'best':>8}{'return':>8}{'sd':>6}{'looks':>7}{'steps':>7}{'time':>9}")
    for case in large() if given.large else table():
        for preset in given.presets:
            show(case, preset, simulations, case.episodes if given.full or given.large else 250, seeds)


if __name__ == "__main__":
    main()
