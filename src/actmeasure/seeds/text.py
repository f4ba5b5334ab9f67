"""Results over seeds as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.planners.wording import number, text_table
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    from actmeasure.seeds.runs import Estimate, SeedRuns

__all__ = ["results_table"]

#: Of more seeds than this only the lowest and the highest are shown.
MANY = 10
#: What is shown, with how many digits.
SHOWN = {"scalarized_return": ".4f", "measurements": ".2f", "steps": ".2f"}


def results_table(runs: SeedRuns, last: int) -> str:
    """A table with a row per seed, or the extremes of many, and what they say together."""
    means = runs.means(last)
    rows = _extremes(means) if len(runs) > MANY else _seed_rows(runs, means)
    if len(runs) > 1:
        rows += _together(runs.summary(last))
    lines = text_table(("seed", "return", "measurements", "steps", "episodes"), rows, "<>>>>")
    return "\n".join([_title(runs, last), "", *lines])


def _title(runs: SeedRuns, last: int) -> str:
    shortest = min(len(one) for one in runs.episodes)
    seeds = "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"
    over = f"the last {last} episodes" if shortest >= last else f"up to {last} last episodes"
    return f"{runs.agent}, {seeds}: means of {over}"


def _seed_rows(runs: SeedRuns, means: dict[str, FloatArray]) -> list[list[str]]:
    return [
        [str(seed), *(number(means[name][i], form) for name, form in SHOWN.items()), f"{len(runs.episodes[i]):,}"]
        for i, seed in enumerate(runs.seeds)
    ]


def _extremes(means: dict[str, FloatArray]) -> list[list[str]]:
    return [
        [word, *(number(float(pick(means[name])), form) for name, form in SHOWN.items()), ""]
        for word, pick in (("lowest", np.min), ("highest", np.max))
    ]


def _together(found: dict[str, Estimate]) -> list[list[str]]:
    def row(word: str, shown: Callable[[Estimate, str], str]) -> list[str]:
        return [word, *(shown(found[name], form) for name, form in SHOWN.items()), ""]

    return [
        row("mean", lambda estimate, form: number(estimate.mean, form)),
        row("standard deviation", lambda estimate, form: number(estimate.deviation, form)),
        row("95 % interval", _interval),
    ]


def _interval(estimate: Estimate, form: str) -> str:
    if math.isnan(estimate.low):
        return "all alike"
    return f"{number(estimate.low, form)} to {number(estimate.high, form)}"
