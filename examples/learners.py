"""The learners on the paper's Table 1: three presets beside the published cells and the certified optima, and why they differ.

By default a small version that takes some seconds: `python examples/learners.py`. With 20 seeds, and the 625 training
updates of the published Dyna-ATMQ runs: `python examples/learners.py --full`. The picture goes to results/learners.png.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import actmeasure as am

OUT = Path("results")
LAST = 50
#: The published cells: mean return and measurements of the last 50 episodes, in the order of `cases`.
PUBLISHED = {
    "atmq": ((0.94, 1.30), (0.76, 0.50), (0.78, 0.11), (1.00, 0.00), (0.75, 2.65), (0.02, 0.08)),
    "dyna-atmq": ((0.93, 1.34), (0.86, 1.14), (0.82, 0.16), (1.00, 0.00), (0.65, 2.95), (0.03, 0.09)),
    "amrl-q": ((0.82, 0.00), (0.80, 0.00), (0.78, 0.00), (1.00, 0.00), (0.41, 0.00), (0.03, 0.00)),
}
#: The published runs on the measuring value problem also looked at random.
RANDOM_LOOKS = {"random_measuring": 0.05}


@dataclass(frozen=True)
class Case:
    """A column of the table: a problem, and how many episodes ATMQ and the others had."""

    name: str
    model: am.Model
    episodes: dict[str, int]


def cases() -> list[Case]:
    """The six columns."""
    gambles = [
        Case(f"value c={c:.2f}", am.problems.measuring_value(measuring_cost=c), {"atmq": 500})
        for c in (0.05, 0.10, 0.20)
    ]
    variants = {"deterministic": "determ.", "semi-slippery": "semi-slip.", "slippery": "slippery"}
    lakes = [
        Case(f"4x4 {short}", am.problems.frozen_lake(4, name, measuring_cost=0.05), {})
        for name, short in variants.items()
    ]
    return gambles + lakes


def optimum(model: am.Model) -> float:
    """Undiscounted return of the best schedule for a discount of nearly 1, which is about the most that can be earned."""
    solution = am.solve(model.replace(discount=0.999), tolerance=1e-4, time_limit=20)
    return am.evaluate(model, solution.schedule, horizon=1000).scalarized_return


def row(agent: str, preset: str, seeds: int, max_steps: int, columns: list[Case]) -> str:
    """Mean return (standard deviation between seeds) and measurements, in every column."""
    cells = []
    for case in columns:
        settings: dict[str, object] = {"preset": preset}
        if preset == "published" and case.name.startswith("value") and agent != "amrl-q":
            settings |= RANDOM_LOOKS
        episodes = case.episodes.get(agent, 1000) if preset == "published" else 1000
        runs = am.train_seeds(agent, case.model, episodes, seeds, max_steps, settings)
        returns = [run.scalarized_return[-LAST:].mean() for run in runs.episodes]
        looks = [run.measurements[-LAST:].mean() for run in runs.episodes]
        cells.append(f"{np.mean(returns):5.2f} ({np.std(returns):.2f}) {np.mean(looks):4.2f}")
    return f"{agent:<10} {preset:<10} " + "  ".join(cells)


def draw(seeds: int) -> Path:
    """Learning curves of the presets on the 4x4 semi-slippery lake: every seed as a thin line, their mean as a thick one."""
    lake = am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05)
    best = optimum(lake)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    for axis, preset in zip(axes, ("paper", "published", "default"), strict=True):
        runs = am.train_seeds("atmq", lake, 1000, seeds, settings={"preset": preset})
        curves = np.array([np.convolve(run.scalarized_return, np.ones(LAST) / LAST, "valid") for run in runs.episodes])
        axis.plot(curves.T, color="0.75", linewidth=0.6)
        axis.plot(curves.mean(axis=0), color="black", linewidth=1.8)
        axis.axhline(best, color="black", linestyle=":", linewidth=1)
        axis.set(title=preset, xlabel="episode", ylim=(-1.05, 1.05))
    axes[0].set_ylabel(f"return, mean of {LAST} episodes")
    axes[-1].annotate("best possible", (0, best), xytext=(0, 3), textcoords="offset points", fontsize=8)
    OUT.mkdir(exist_ok=True)
    path = OUT / "learners.png"
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    full = "--full" in sys.argv[1:]
    columns, seeds, max_steps = cases(), 20 if full else 3, 1000 if full else 100
    print(f"{'':<22}" + "  ".join(f"{case.name:<17}" for case in columns))
    print(f"{'best possible':<22}" + "  ".join(f"{optimum(case.model):5.2f}{'':<12}" for case in columns))
    for agent, published in PUBLISHED.items():
        print(
            f"{agent + ', in the paper':<22}"
            + "  ".join(f"{value:5.2f}        {looks:4.2f}" for value, looks in published)
        )
        presets = ["published", "paper"] if agent == "amrl-q" else ["published", "default", "paper"]
        slow = (
            agent == "dyna-atmq" and not full
        )  # 625 updates a step, also in the thousand steps of a run that is stuck
        for preset in presets[1:] if slow else presets:
            print(row(agent, preset, seeds, max_steps, columns), flush=True)
    print(f"learning curves: {draw(seeds)}")


if __name__ == "__main__":
    main()
