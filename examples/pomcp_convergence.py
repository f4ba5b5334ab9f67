"""Convergence of POMCP's value at the root to the certified optimum, with and without shared samples.

Prints a table, and draws it into results/pomcp_convergence.svg.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import actmeasure as am

OUT = Path("results")
SIMULATIONS = (1_000, 10_000, 100_000)
SEEDS = 5
PROBLEMS = {
    "measuring value, c=0.05": (am.problems.measuring_value(measuring_cost=0.05), 25),
    "4x4 deterministic": (am.problems.frozen_lake(4, "deterministic", measuring_cost=0.05), 12),
    "4x4 semi-slippery": (am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05), 25),
}
#: Settings of the search: the paper's, with sharing, and the defaults of `acno-otp`.
SEARCHES = {
    "blind rollouts": {"rollout": "blind", "share": False},
    "blind, shared": {"rollout": "blind", "share": True},
    "looking rollouts": {"rollout": "looking", "share": False},
    "looking, shared": {"rollout": "looking", "share": True},
}


def at_the_root(model: am.Model, depth: int, simulations: int, search: dict[str, object]) -> tuple[float, float]:
    """The mean value at the root over seeds, and half its 95 % interval."""
    values = []
    for seed in range(SEEDS):
        planner = am.planners.POMCP(
            model, simulations, depth, 0.5, rollout=str(search["rollout"]), share=bool(search["share"]), seed=seed
        )
        planner.decide(am.Belief.start(model))
        values.append(planner.value)
    return float(np.mean(values)), float(stats.t.ppf(0.975, SEEDS - 1) * np.std(values, ddof=1) / np.sqrt(SEEDS))


def main() -> None:
    """Print the table and draw the picture."""
    figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(11, 3.4), layout="constrained")
    print(f"{'':26}{'':18}" + "".join(f"{count:>18,}" for count in SIMULATIONS))
    for (name, (model, depth)), axis in zip(PROBLEMS.items(), axes, strict=True):
        optimum = am.solve(model).value
        axis.axhline(optimum, color="black", linewidth=0.8, label="certified optimum")
        for (search, settings), style in zip(SEARCHES.items(), ("--o", "-o", "--s", "-s"), strict=True):
            found = [at_the_root(model, depth, count, settings) for count in SIMULATIONS]
            cells = "".join(f"{mean:>10.3f} ± {half:.3f}" for mean, half in found)
            print(f"{name:<26}{search:<18}{cells}   optimum {optimum:.3f}", flush=True)
            means, halves = zip(*found, strict=True)
            axis.errorbar(SIMULATIONS, means, halves, fmt=style, color="gray", markersize=4, capsize=2, label=search)
        axis.set(title=name, xlabel="simulations", xscale="log")
    axes[0].set_ylabel("value at the root")
    axes[-1].legend(fontsize=7)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "pomcp_convergence.svg")
    print(f"Picture: {OUT / 'pomcp_convergence.svg'}")


if __name__ == "__main__":
    main()
