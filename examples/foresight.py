"""Foresight against the best known return, on lakes that were not used to develop it.

A few small lakes by default, some seconds: `python examples/foresight.py`. The 52 lakes of the documentation, sizes 8 to 20
(about ten minutes on two cores): `--full`. Other problems beside their certified optima: `--others`. Learning curves beside
those of the other learners, in results/foresight.png: `--compare`. Tables go to results/ as text and csv.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from scipy import stats

import actmeasure as am
from actmeasure.learning import foresight
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.solve import solve_by_work

OUT = Path("results")
EARLY, EPISODES, LAST, MAX_STEPS = 2_500, 7_500, 500, 1_000
DISCOUNTS = (0.95, 0.99, 0.999)
SOLVE_SECONDS = 10.0
#: Best known return below which a lake is reported apart, and the number of worst lakes that are shown.
WORTHWHILE, WORST = 0.05, 5
SIZES, LAKES_PER_SIZE, FIRST_SEED = range(8, 21), 4, 6_000
#: Number of last episodes in which ACNO-OTP plans; it observes in all before.
PLANNED = 50
#: All with their default settings, but for the simulations of ACNO-OTP, 25,000 for each step, which would take hours.
RIVALS: dict[str, dict[str, int]] = {
    "foresight": {},
    "dyna-atmq": {},
    "atmq": {},
    "amrl-q": {},
    "acno-otp": {"simulations": 2_000},
}


@dataclass(frozen=True)
class Row:
    """Results on one lake; shares are of the best known return, NaN where a schedule cannot be evaluated exactly."""

    size: int
    seed: int
    best: float
    early: float
    early_exact: float
    last: float
    exact: float
    estimated: float
    explored: int
    plans: int
    seconds: float
    planning: float


def best_known(model: am.Model) -> float:
    """Return the largest undiscounted return of the schedules that are best at discounts near 1, with limited search time."""
    returns = []
    for discount in DISCOUNTS:
        solution = am.solve(model.replace(discount=discount), tolerance=1e-3, time_limit=SOLVE_SECONDS)
        returns.append(am.evaluate(model, solution.schedule, horizon=MAX_STEPS).scalarized_return)
    return max(returns)


def best_known_on(size: int, seed: int, lake: am.Model) -> float:
    """Return the best known return of a random lake; it does not depend on the learner, and is cached in results/."""
    path = OUT / "best_known" / f"lake_{size}_{seed}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_text(repr(float(best_known(lake))))
        partial.replace(path)
    return float(path.read_text())


def true_return(agent: foresight.ForesightAgent, lake: am.Model) -> float:
    """Return the exact return of the agent's schedule on the true lake, NaN if it does not fit the true dynamics."""
    learned = agent.schedule  # for one state more, in which the learned model ends
    plans = {state: plan for state, plan in learned.items() if state < lake.n_states}
    return return_of(am.Schedule(plans, lake.n_states, learned.start), lake)


def return_of(schedule: am.Schedule, model: am.Model) -> float:
    """Return the exact return of a schedule, NaN if it does not fit the model."""
    try:
        return am.evaluate(model, schedule, horizon=MAX_STEPS).scalarized_return
    except am.ActMeasureError:
        return np.nan


def timed(spent: list[float]) -> AbstractContextManager[object]:
    """Within this block, all planning adds its seconds of computing to `spent`."""

    def solve(*arguments: Any, **settings: Any) -> am.Solution:
        begun = time.process_time()
        solution = solve_by_work(*arguments, **settings)
        spent.append(time.process_time() - begun)
        return solution

    return patch.object(foresight, "solve_by_work", solve)


def study(size: int, seed: int, episodes: int, early: int) -> Row:
    """Train on one lake, and return its results with the best known return."""
    lake = am.problems.frozen_lake(size, "semi-slippery", measuring_cost=0.05, seed=seed)
    best, agent, spent = best_known_on(size, seed, lake), foresight.ForesightAgent(), [0.0]
    with timed(spent):
        begun = time.process_time()
        first = am.train(agent, lake, early, seed=seed, max_steps=MAX_STEPS, planned_episodes=episodes)
        early_exact = true_return(agent, lake)
        second = am.train(agent, lake, episodes - early, seed=seed, max_steps=MAX_STEPS)
        seconds = time.process_time() - begun
    # What the agent itself expects of its schedule, undiscounted, to be set beside what it earns.
    estimated = return_of(agent.schedule, agent.model())
    return Row(
        size, seed, best, first.scalarized_return[-LAST:].mean() / best, early_exact / best,
        second.scalarized_return[-LAST:].mean() / best, true_return(agent, lake) / best, estimated / best,
        agent.explored, agent.plans_made, seconds, sum(spent) / seconds,
    )  # fmt: skip


def study_all(cases: list[tuple[int, int]], episodes: int, early: int, workers: int, name: str) -> list[Row]:
    """Run all lakes, and write the table after every one of them."""
    if workers == 1:
        return written((study(size, seed, episodes, early) for size, seed in cases), name)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        # The large ones first, so that none of them is left for the end.
        waiting = [pool.submit(study, size, seed, episodes, early) for size, seed in reversed(cases)]
        return written((done.result() for done in as_completed(waiting)), name)


def written(rows: Iterable[Row], name: str) -> list[Row]:
    """Collect rows, and keep them in results/ as a csv file."""
    OUT.mkdir(exist_ok=True)
    path, kept = OUT / f"{name}.csv", []
    for row in rows:
        kept.append(row)
        print(line(row), flush=True)
        partial = path.with_suffix(".part")
        with partial.open("w", newline="") as file:
            table = csv.DictWriter(file, [field.name for field in fields(Row)])
            table.writeheader()
            table.writerows(asdict(each) for each in sorted(kept, key=lambda each: (each.size, each.seed)))
        partial.replace(path)
    return kept


def line(row: Row) -> str:
    """Return one lake as a line of the table."""
    return (
        f"{row.size:>2}x{row.size:<2} {row.seed}  best {row.best:6.3f}  early {row.early:6.3f} ({row.early_exact:6.3f})  "
        f"last {row.last:6.3f} ({row.exact:6.3f}, plan {row.estimated:6.3f})  explored {row.explored:>4}, {row.plans:>2} plans, "
        f"{row.seconds:5.1f} s, {row.planning:4.0%} planning"
    )


def summary(rows: list[Row]) -> str:
    """Print mean shares over the lakes with standard errors, and the worst lakes.

    A share of next to nothing says nothing: one lake on which 0.01 can be earned would outweigh fifty others. So there are three
    figures: the mean over all lakes, the mean without such lakes, and the sum of all returns over the sum of the best known.
    """
    column = {field.name: np.array([getattr(row, field.name) for row in rows], float) for field in fields(Row)}
    titles = {"early": "early, average", "early_exact": "early, exact", "last": "end, average", "exact": "end, exact"}
    lines = [
        f"share of the best known return, {len(rows)} lakes     all lakes          best known at least {WORTHWHILE}     sums"
    ]
    for name, title in titles.items():
        share, best = column[name], column["best"]
        known = np.isfinite(share)
        worthwhile = known & (best >= WORTHWHILE)
        lines.append(
            f"  {title:<16} {mean(share[known]):>40}   {mean(share[worthwhile]):>24}   "
            f"{(share * best)[known].sum() / best[known].sum():9.3f}"
        )
    planning = (column["planning"] * column["seconds"]).sum() / column["seconds"].sum()
    lines += [
        f"  seconds of computing: {column['seconds'].mean():.1f} on average, {column['seconds'].max():.1f} at most; "
        f"planning {planning:.0%} of all",
        "the worst by the average of the last episodes:",
        *(f"  {line(row)}" for row in sorted(rows, key=lambda row: row.last)[:WORST]),
        "the worst by the average of the early ones:",
        *(f"  {line(row)}" for row in sorted(rows, key=lambda row: row.early)[:WORST]),
    ]
    return "\n".join(lines)


def mean(values: FloatArray) -> str:
    """Return a mean, its standard error and the number of values as text."""
    if len(values) < 2:
        return "too few"
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f} ({len(values)} lakes)"


def others() -> str:
    """Run the other problems, and the slippery 8x8 lake: the return of the last 500 episodes beside the best known."""
    cases = {
        "8x8 slippery": am.problems.frozen_lake(8, "slippery", measuring_cost=0.05),
        "8x8 semi-slippery": am.problems.frozen_lake(8, "semi-slippery", measuring_cost=0.05),
        **{f"chain n={n}": am.problems.chain(n) for n in (10, 20, 50)},
        "maintenance": am.problems.maintenance(),
        "sepsis": am.problems.sepsis(),
    }
    lines = []
    for name, model in cases.items():
        # A problem without end is truncated, and so is its optimum.
        steps = MAX_STEPS if model.terminal.any() else 100
        solutions = [am.solve(model.replace(discount=d), tolerance=1e-4, time_limit=SOLVE_SECONDS) for d in DISCOUNTS]
        best = max(am.evaluate(model, s.schedule, horizon=steps).scalarized_return for s in solutions)
        agent, begun = foresight.ForesightAgent(), time.process_time()
        episodes = am.train(agent, model, EPISODES, seed=0, max_steps=steps)
        seconds = time.process_time() - begun
        early, last = (episodes.scalarized_return[end - LAST : end] for end in (EARLY, EPISODES))
        lines.append(
            f"{name:<18} best known {best:8.3f}   early {early.mean():8.3f}   last {last.mean():8.3f} +- "
            f"{last.std() / np.sqrt(LAST):.3f}   explored {agent.explored:>4}, {seconds:4.1f} s"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def compare(sizes: tuple[int, ...], seeds: int, episodes: int, name: str) -> str:
    """Draw learning curves and cumulative return of the learners, with 95 % intervals of the mean over seeds."""
    lines = []
    figure, axes = plt.subplots(
        2, len(sizes), figsize=(3.2 * len(sizes), 5), sharex=True, layout="constrained", squeeze=False
    )
    window = max(1, episodes // 75)
    for size, (curve, total) in zip(sizes, axes.T, strict=True):
        seed = FIRST_SEED + 100 + size
        lake = am.problems.frozen_lake(size, "semi-slippery", measuring_cost=0.05, seed=seed)
        best = best_known_on(size, seed, lake)
        curve.axhline(best, color="black", linestyle=":", linewidth=1)
        curve.set(title=f"{size}x{size}", ylim=(-1.5, 1))
        for rival, settings in RIVALS.items():
            runs = am.train_seeds(rival, lake, episodes, seeds, MAX_STEPS, settings)
            returns = np.array([run.scalarized_return for run in runs.episodes])
            blocks = returns[:, : episodes // window * window].reshape(seeds, -1, window)
            at = window * (1 + np.arange(blocks.shape[1]))
            band(curve, at, blocks.mean(axis=2), rival)
            band(total, at, blocks.sum(axis=2).cumsum(axis=1), rival)
            last = PLANNED if rival == "acno-otp" else LAST
            sums, ends = returns.sum(axis=1), returns[:, -last:].mean(axis=1)
            lines.append(
                f"{size:>2}x{size:<2} best known {best:.3f}  {rival:<10} cumulative {sums.mean():9.1f} +- {half(sums):7.1f}   "
                f"last {last:>3} {ends.mean():6.3f} +- {half(ends):.3f}"
            )
            print(lines[-1], flush=True)
        # Observing before planning costs a look at every step, which is far below all others.
        total.set(xlabel="episode", ylim=(-0.5 * episodes, best * episodes))
    axes[0, 0].set_ylabel(f"return, mean of {window} episodes")
    axes[1, 0].set_ylabel("cumulative return")
    axes[1, 0].legend(fontsize=8)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=85)
    plt.close(figure)
    return "\n".join(lines)


def band(axis: Axes, at: npt.NDArray[np.int64], values: FloatArray, label: str) -> None:
    """Draw the mean over seeds of values of shape (seeds, points), with its 95 % interval."""
    middle, width = values.mean(axis=0), np.array([half(column) for column in values.T])
    (drawn,) = axis.plot(at, middle, label=label, linewidth=1.4)
    axis.fill_between(at, middle - width, middle + width, color=drawn.get_color(), alpha=0.25, linewidth=0)


def half(values: FloatArray) -> float:
    """Return half the width of the 95 % interval of a mean, by Student's t distribution."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    wanted = set(sys.argv[1:])
    if unknown := wanted - {"--full", "--others", "--compare"}:
        sys.exit(f"unknown option {', '.join(sorted(unknown))}; there are --full, --others and --compare")
    reports = {}
    if "--full" in wanted:
        cases = [(size, FIRST_SEED + LAKES_PER_SIZE * (size - 8) + k) for size in SIZES for k in range(LAKES_PER_SIZE)]
        reports["foresight_lakes"] = summary(study_all(cases, EPISODES, EARLY, 2, "foresight_lakes"))
        print(reports["foresight_lakes"])
    if "--others" in wanted:
        reports["foresight_others"] = others()
    if "--compare" in wanted:
        reports["foresight_compare"] = compare((10, 15, 20), 10, EPISODES, "foresight")
    if not wanted:
        rows = study_all(
            [(4, FIRST_SEED), (6, FIRST_SEED + 1), (8, FIRST_SEED + 2)], 1_500, 1_000, 1, "foresight_small"
        )
        reports["foresight_small"] = summary(rows)
        print(reports["foresight_small"])
    OUT.mkdir(exist_ok=True)
    for name, text in reports.items():
        (OUT / f"{name}.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
