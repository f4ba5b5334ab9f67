"""The best that is known for each problem, from the plans of a study."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

__all__ = ["best_known"]

#: The method whose schedules are the best there are, up to its bounds.
METHOD = "optimal"
COLUMNS = [
    "part", "problem", "optimal_return", "optimal_measurements", "optimal_steps", "value", "value_at_most",
]  # fmt: skip


def best_known(study: dict[str, Any], plans: pd.DataFrame) -> pd.DataFrame:
    """A row for each part and problem that has been planned for somewhere in the study.

    Agents are judged by their undiscounted return, plans are best for a discounted one. So `optimal_return` is the largest
    undiscounted return among the plans for this problem with as many steps, whatever their discount was. `value` and
    `value_at_most` are bounds on the optimum at the problem's own discount, NaN where that was not planned for.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    plans : pandas.DataFrame
        As in `Results.plans`.
    """
    found = plans[plans["method"] == METHOD].set_index(["part", "problem"])
    best: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for part, steps, problem in _problems(study):
        where = (part, problem["label"])
        if where in found.index:
            plan = found.loc[where]
            own[_key(problem, steps)] = plan
            key = _key(problem, steps, without="discount")
            if key not in best or plan["scalarized_return"] > best[key]["scalarized_return"]:
                best[key] = plan
    rows = [
        _row(part, problem["label"], best[key], own.get(_key(problem, steps)))
        for part, steps, problem in _problems(study)
        if (key := _key(problem, steps, without="discount")) in best
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(part: str, label: str, best: Any, own: Any) -> tuple[Any, ...]:
    bounds = (float("nan"),) * 2 if own is None else (own["lower"], own["upper"])
    return part, label, best["scalarized_return"], best["measurements"], best["steps"], *bounds


def _problems(study: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Every problem, with its part's name and limit on the steps of an episode."""
    for part in study["parts"]:
        for problem in part["problems"]:
            yield part["name"], part["max_steps"], problem


def _key(problem: dict[str, Any], steps: int, without: str | None = None) -> str:
    """What decides what can be earned, whatever a problem is called."""
    settings = {name: value for name, value in problem["settings"].items() if name != without}
    return json.dumps([problem.get("content", problem["name"]), steps, settings], sort_keys=True)
