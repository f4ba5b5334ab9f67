"""From the episodes of a study to tables of estimates; pure functions of data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from actmeasure import statistics
from actmeasure.statistics import LAST, FloatArray

__all__ = [
    "aggregates", "best_known", "curves", "efficiency", "improvements", "profiles", "run_means", "scales", "scores",
    "sensitivities", "summaries", "with_bounds",
]  # fmt: skip

CELL = ["part", "problem", "agent"]
MEASURES = ["scalarized_return", "reward", "measurements", "steps"]
#: Most points of a curve.
POINTS = 150
#: Share of a short run that a running mean covers.
SMOOTHED = 0.1


def run_means(episodes: pd.DataFrame, last: int = LAST) -> pd.DataFrame:
    """Return means of the last episodes of each run: a row for each part, problem, agent and seed, in the order of the study."""
    by_run = episodes.groupby([*CELL, "seed"], sort=False, observed=True)
    return by_run.tail(last).groupby([*CELL, "seed"], sort=False, observed=True)[MEASURES].mean().reset_index()


def summaries(means: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each part, problem and agent: return and measurements with intervals, interquartile mean, steps.

    Parameters
    ----------
    means : pandas.DataFrame
        From `run_means`.
    """
    rows = [_summary(labels, runs) for labels, runs in _cells(means)]
    columns = [
        *CELL, "runs", "scalarized_return", "low", "high", "iqm", "iqm_low", "iqm_high",
        "measurements", "measurements_low", "measurements_high", "steps",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _summary(labels: tuple[str, ...], runs: pd.DataFrame) -> tuple[object, ...]:
    returns, looks = _array(runs, "scalarized_return"), _array(runs, "measurements")
    return (
        *labels, len(runs),
        *statistics.mean(returns),
        *statistics.interquartile_mean(returns),
        *statistics.mean(looks),
        float(_array(runs, "steps").mean()),
    )  # fmt: skip


def improvements(means: pd.DataFrame) -> pd.DataFrame:
    """Return difference and probability of improvement for all pairs of agents of a part, over the problems that both have."""
    rows = []
    for part, of_part in means.groupby("part", sort=False, observed=True):
        returns = {
            str(agent): runs.pivot(index="problem", columns="seed", values="scalarized_return")
            for agent, runs in of_part.groupby("agent", sort=False, observed=True)
        }
        for one, other in combinations(returns, 2):
            shared = [
                name for name in of_part["problem"].unique() if all(name in returns[a].index for a in (one, other))
            ]
            if not shared:
                continue
            left, right = (returns[agent].loc[shared].dropna(axis="columns", how="all") for agent in (one, other))
            rows.append((part, one, other, len(shared), *_compared(left, right)))
    columns = [
        "part", "agent", "other", "problems", "difference", "difference_low", "difference_high", "probability", "low", "high",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _compared(left: pd.DataFrame, right: pd.DataFrame) -> tuple[float, ...]:
    """Return difference and probability of improvement of two agents, with their intervals; rows are problems, columns seeds."""
    if list(left.columns) != list(right.columns):  # not to be taken for pairs by their number alone
        both = left.columns.union(right.columns)
        left, right = left.reindex(columns=both), right.reindex(columns=both)
    one, other = left.to_numpy(dtype=np.float64), right.to_numpy(dtype=np.float64)
    return *statistics.difference(one, other), *statistics.probability_of_improvement(one, other)


def curves(episodes: pd.DataFrame, points: int = POINTS) -> pd.DataFrame:
    """Return learning curves: a row for each part, problem, agent and every few episodes, with the mean of running means.

    Columns are `episode`, the last of those that a running mean covers, counted from 1; `window`, how many it covers; and
    return and measurements with intervals.
    """
    tables = [_curve(labels, runs, points) for labels, runs in _cells(episodes)]
    columns = [
        *CELL, "episode", "window", "runs", "scalarized_return", "low", "high", "measurements", "measurements_low",
        "measurements_high",
    ]  # fmt: skip
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def _curve(labels: tuple[str, ...], runs: pd.DataFrame, points: int) -> pd.DataFrame:
    returns, looks = _by_run(runs, "scalarized_return"), _by_run(runs, "measurements")
    window = max(1, min(LAST, int(SMOOTHED * returns.shape[1])))
    smooth = [statistics.running_means(values, window) for values in (returns, looks)]
    chosen = np.unique(np.linspace(0, smooth[0].shape[1] - 1, points).round().astype(int))
    earned = statistics.mean(smooth[0][:, chosen])
    looked = statistics.mean(smooth[1][:, chosen])
    return pd.DataFrame(
        dict(zip(CELL, labels, strict=True))
        | {"episode": chosen + window, "window": window, "runs": len(returns)}
        | dict(zip(("scalarized_return", "low", "high"), earned, strict=True))
        | dict(zip(("measurements", "measurements_low", "measurements_high"), looked, strict=True))
    )


def _by_run(runs: pd.DataFrame, column: str) -> FloatArray:
    """Return a column of the episodes of one agent on one problem, shape (runs, episodes)."""
    return _array(runs, column).reshape(runs["seed"].nunique(), -1)


def _cells(table: pd.DataFrame) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Return the labels and rows of each part, problem and agent."""
    groups: Iterable[tuple[object, pd.DataFrame]] = table.groupby(CELL, sort=False, observed=True)
    for labels, rows in groups:
        assert isinstance(labels, tuple)
        yield tuple(str(label) for label in labels), rows


def _array(rows: pd.DataFrame, column: str) -> FloatArray:
    return rows[column].to_numpy(dtype=np.float64)


#: Agent whose return is 0 on a normalised scale, if the part has it.
CHANCE = "random"
#: Thresholds of performance profiles.
THRESHOLDS = np.linspace(0.0, 1.0, 51)


def scales(study: dict[str, Any], means: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return the ends of the scale of normalised scores: a row for each part and problem, with `worst` and `best`.

    `worst` is the mean return of the agent `random`, or the lowest mean of an agent where the part has none; `best` is the best
    known return, or the highest mean of an agent where nothing was planned. `worst_is` and `best_is` say which.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    means : pandas.DataFrame
        From `run_means`.
    best : pandas.DataFrame
        From `best_known`.
    """
    chance = {
        (part["name"], agent["label"]) for part in study["parts"] for agent in part["agents"] if agent["name"] == CHANCE
    }
    known = {(row["part"], row["problem"]): row["optimal_return"] for row in best.to_dict("records")}
    rows = []
    by_agent = means.groupby(CELL, sort=False, observed=True)["scalarized_return"].mean().reset_index()
    for (part, problem), cells in by_agent.groupby(["part", "problem"], sort=False, observed=True):
        returns = dict(zip(cells["agent"], cells["scalarized_return"], strict=True))
        random = [value for agent, value in returns.items() if (part, agent) in chance]
        optimum = known.get((part, problem))
        worst = random[0] if random else min(returns.values())
        top = max(returns.values()) if optimum is None else optimum
        rows.append(
            (
                part,
                problem,
                worst,
                CHANCE if random else "lowest mean",
                top,
                "highest mean" if optimum is None else "best known",
            )
        )
    return pd.DataFrame(rows, columns=["part", "problem", "worst", "worst_is", "best", "best_is"])


def scores(means: pd.DataFrame, scale: pd.DataFrame) -> pd.DataFrame:
    """Return the normalised score of each run: `means` with a column `score`, NaN where worst and best are equal."""
    found = means.merge(scale, on=["part", "problem"], how="left")
    width = found["best"] - found["worst"]
    found["score"] = (found["scalarized_return"] - found["worst"]) / width.where(width != 0)
    return found


def _score_table(of_agent: pd.DataFrame) -> FloatArray:
    """Return the scores of one agent, shape (problems, seeds), of problems that have a scale."""
    table = of_agent.pivot(index="problem", columns="seed", values="score").dropna(axis="index", how="all")
    return table.to_numpy(dtype=np.float64)


def aggregates(scored: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each part and agent: normalised scores over all problems, mean and interquartile mean over seeds.

    A seed's mean over problems is one observation.
    """
    rows = []
    for (part, agent), runs in scored.groupby(["part", "agent"], sort=False, observed=True):
        table = _score_table(runs)
        complete = table[:, ~np.isnan(table).any(axis=0)] if table.size else table
        if not complete.size:
            continue
        by_seed = complete.mean(axis=0)
        rows.append(
            (part, agent, len(table), len(by_seed), *statistics.mean(by_seed), *statistics.interquartile_mean(by_seed))
        )
    columns = ["part", "agent", "problems", "runs", "score", "low", "high", "iqm", "iqm_low", "iqm_high"]
    return pd.DataFrame(rows, columns=columns)


def profiles(scored: pd.DataFrame, thresholds: FloatArray = THRESHOLDS) -> pd.DataFrame:
    """Return performance profiles: a row for each part, agent and threshold, with the share of problems above it."""
    tables = []
    for (part, agent), runs in scored.groupby(["part", "agent"], sort=False, observed=True):
        table = _score_table(runs)
        if table.size:
            found = statistics.performance_profile(table, thresholds)
            own = dict(zip(("share", "low", "high"), found, strict=True))
            tables.append(pd.DataFrame({"part": part, "agent": agent, "threshold": thresholds, **own}))
    columns = ["part", "agent", "threshold", "share", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def efficiency(episodes: pd.DataFrame, scale: pd.DataFrame, points: int = POINTS) -> pd.DataFrame:
    """Return sample-efficiency curves: a row for each part, agent and every few episodes.

    Columns are `episode`, `window` as for `curves`, and `iqm`, `low` and `high`: the interquartile mean over seeds of the running
    mean of normalised scores, averaged over problems.
    """
    ends = {(row["part"], row["problem"]): (row["worst"], row["best"]) for row in scale.to_dict("records")}
    tables = []
    for (part, agent), runs in episodes.groupby(["part", "agent"], sort=False, observed=True):
        curves_of = []
        for problem, rows in runs.groupby("problem", sort=False, observed=True):
            worst, best = ends[part, problem]
            if worst != best:
                curves_of.append(statistics.normalised(_by_run(rows, "scalarized_return"), worst, best))
        count = min((len(one) for one in curves_of), default=0)  # seeds that are there on all problems
        if not count:
            continue
        length = min(one.shape[1] for one in curves_of)
        together = np.mean([one[:count, :length] for one in curves_of], axis=0)
        window = max(1, min(LAST, int(SMOOTHED * length)))
        smooth = statistics.running_means(together, window)
        chosen = np.unique(np.linspace(0, smooth.shape[1] - 1, points).round().astype(int))
        own = dict(zip(("iqm", "low", "high"), statistics.interquartile_mean(smooth[:, chosen]), strict=True))
        tables.append(
            pd.DataFrame(
                {"part": part, "agent": agent, "episode": chosen + window, "window": window, "runs": count, **own}
            )
        )
    columns = ["part", "agent", "episode", "window", "runs", "iqm", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def sensitivities(study: dict[str, Any], found: pd.DataFrame) -> pd.DataFrame:
    """Return the results of sweeps: a row for each part, swept setting, panel, line and value.

    A sweep of an agent's setting has a panel for each problem, as returns of different problems are not comparable; problems of
    one sweep share a panel, with a line for each. A sweep of a problem's setting has one panel, with a line for each agent. Each
    combination of the other swept settings has a line of its own. Columns are `part`, `sweep` (the common label), `setting`,
    `panel`, `line`, `value`, and those of `summaries` with the return and looks.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    found : pandas.DataFrame
        From `summaries`.
    """
    rows = []
    cells = {(row["part"], row["problem"], row["agent"]): row for row in found.to_dict("records")}
    for part in study["parts"]:
        pairs = [(p, a) for p in part["problems"] for a in part["agents"]]
        for what in ("agents", "problems"):
            for problem, agent in pairs:
                one, beside = (agent, problem) if what == "agents" else (problem, agent)
                sweep, cell = one.get("sweep"), cells.get((part["name"], problem["label"], agent["label"]))
                if sweep is None or cell is None:
                    continue
                panel = (problem.get("sweep") or problem)["label"]
                for setting, value in sweep["values"].items():
                    rest = " ".join(f"{key}={kept}" for key, kept in sweep["values"].items() if key != setting)
                    line = " ".join(filter(None, [beside["label"], rest]))
                    shown = {name: cell[name] for name in SENSITIVITY}
                    rows.append({"part": part["name"], "sweep": sweep["label"], "setting": setting, "panel": panel,
                                 "line": line, "value": value} | shown)  # fmt: skip
    return pd.DataFrame(rows, columns=["part", "sweep", "setting", "panel", "line", "value", *SENSITIVITY])


#: Columns of `summaries` in a table of sweeps.
SENSITIVITY = (
    "runs", "scalarized_return", "low", "high", "measurements", "measurements_low", "measurements_high", "steps",
)  # fmt: skip

#: Planning method whose schedules are optimal up to its bounds, and the columns of `best_known`.
METHOD = "optimal"
COLUMNS = [
    "part", "problem", "optimal_return", "optimal_measurements", "optimal_steps", "value", "value_at_most",
]  # fmt: skip


def best_known(study: dict[str, Any], plans: pd.DataFrame) -> pd.DataFrame:
    """Return the best known results: a row for each part and problem that has been planned for somewhere in the study.

    Agents are compared by their undiscounted return, plans are best for a discounted one. So `optimal_return` is the largest
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


def with_bounds(best: pd.DataFrame, bounds: Mapping[tuple[str, str], float]) -> pd.DataFrame:
    """Return the best known results, with the largest return of problems for which nothing was planned, by part and label."""
    known = set(zip(best["part"], best["problem"], strict=True))
    rows = [(*where, bound, *[float("nan")] * 4) for where, bound in bounds.items() if where not in known]
    more = pd.DataFrame(rows, columns=COLUMNS)
    return more if best.empty else best if more.empty else pd.concat([best, more], ignore_index=True)


def _row(part: str, label: str, best: Any, own: Any) -> tuple[Any, ...]:
    bounds = (float("nan"),) * 2 if own is None else (own["lower"], own["upper"])
    return part, label, best["scalarized_return"], best["measurements"], best["steps"], *bounds


def _problems(study: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Return every problem, with its part's name and limit on the steps of an episode."""
    for part in study["parts"]:
        for problem in part["problems"]:
            yield part["name"], part["max_steps"], problem


def _key(problem: dict[str, Any], steps: int, without: str | None = None) -> str:
    """Return a key that is equal for problems in which the same can be earned, whatever their labels."""
    settings = {name: value for name, value in problem["settings"].items() if name != without}
    return json.dumps([problem.get("content", problem["name"]), steps, settings], sort_keys=True)
