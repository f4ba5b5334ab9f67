"""The tables and figures of the paper as data frames, beside the published numbers and the best known."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pandas as pd

from actmeasure import statistics
from actmeasure.paper import study_spec
from actmeasure.paper.published import RANDOM_LAKES
from actmeasure.studies.report import tables
from actmeasure.studies.report.tables import best_known
from actmeasure.studies.results import Results

__all__ = ["CURVES", "PaperTables"]

CELL = ["part", "problem", "agent"]
#: Training curves are drawn for this problem of the table.
CURVES = "4x4 semi-slippery"
#: ACNO-OTP explores until its last episodes, so that it has no training curve.
NO_CURVE = "acno-otp"


class PaperTables:
    """The tables of the report, each computed when it is first used."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means of the last episodes, a row for each run."""
        return tables.run_means(self._results.episodes)

    @cached_property
    def optima(self) -> pd.DataFrame:
        """Best known returns and certified bounds, a row for each problem."""
        return best_known(self._results.study, self._results.plans)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each part, problem and agent, with settings, estimates, published numbers and the best known."""
        limits = {part["name"]: part["max_steps"] for part in self._results.study["parts"]}
        cells = _with_settings(tables.summaries(self.means), self._results.runs)
        cells = cells.assign(max_steps=cells["part"].map(limits))
        return _with_published(cells).merge(self.optima, on=["part", "problem"], how="left")

    @cached_property
    def table1(self) -> pd.DataFrame:
        """Table 1, a row for each setting and agent."""
        return _table1(self.cells)

    @cached_property
    def eight(self) -> pd.DataFrame:
        """Returns on the 8x8 lake, a row for each agent."""
        dropped = ["part", "agent_settings", "problem_settings", "published_measurements", "max_steps"]
        return self.cells[self.cells["part"] == study_spec.EIGHT].drop(columns=dropped).reset_index(drop=True)

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Returns and measurements by cost, a row for each cost and agent."""
        return _costs(self.cells)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Training curves, a row for each agent and every few episodes."""
        return _curves(self._results)

    @cached_property
    def scaling(self) -> pd.DataFrame:
        """Returns on random lakes, a row for each size and agent."""
        return _scaling(_with_settings(self.means, self._results.runs), self.optima)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Differences between agents in Table 1, a row for each pair of agents and half of the table."""
        return tables.improvements(self.means[self.means["part"].isin((study_spec.LEFT, study_spec.RIGHT))])


def _with_settings(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the name, settings, preset and episodes of each agent and the settings of each problem."""
    known = runs.drop_duplicates(CELL)[[*CELL, "agent_name", "agent_settings", "problem_settings", "episodes"]]
    joined = table.merge(known, on=CELL, how="left")
    presets = joined["agent_settings"].map(lambda text: json.loads(text).get("preset", "default"))
    return joined.assign(preset=presets)


def _with_published(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the published numbers of the same agent, whatever its settings here."""
    columns = ["part", "problem", "agent_name", "published_return", "published_measurements"]
    return cells.merge(pd.DataFrame(study_spec.published(), columns=columns), on=columns[:3], how="left")


def _table1(cells: pd.DataFrame) -> pd.DataFrame:
    shown = cells[cells["part"].isin((study_spec.LEFT, study_spec.RIGHT))]
    table = shown["part"].map({study_spec.LEFT: "measuring value", study_spec.RIGHT: "frozen lake"})
    renamed = shown.assign(table=table).rename(columns={"problem": "setting"})
    return renamed[
        [
            "table", "setting", "agent", "agent_name", "preset", "episodes", "runs", "scalarized_return", "low", "high",
            "measurements", "measurements_low", "measurements_high", "published_return", "published_measurements",
            "optimal_return", "optimal_measurements", "iqm", "iqm_low", "iqm_high", "value", "value_at_most",
        ]
    ].reset_index(drop=True)  # fmt: skip


def _costs(cells: pd.DataFrame) -> pd.DataFrame:
    shown = cells[cells["part"].isin((study_spec.SWEEP, study_spec.SWEEP_OTP))]
    costs = shown.assign(cost=_setting(shown, "measuring_cost"))
    return costs[
        [
            "agent", "agent_name", "preset", "cost", "episodes", "runs", "scalarized_return", "low", "high", "measurements",
            "measurements_low", "measurements_high", "optimal_return", "optimal_measurements",
        ]
    ].reset_index(drop=True)  # fmt: skip


def _curves(results: Results) -> pd.DataFrame:
    runs, episodes = results.runs, results.episodes
    drawn = runs[(runs["part"] == study_spec.RIGHT) & (runs["problem"] == CURVES) & (runs["agent_name"] != NO_CURVE)]
    agents = drawn["agent"].unique()
    chosen = (episodes["part"] == study_spec.RIGHT) & (episodes["problem"] == CURVES) & episodes["agent"].isin(agents)
    return _with_settings(tables.curves(episodes[chosen]), runs).drop(
        columns=["part", "agent_settings", "problem_settings"]
    )


def _scaling(means: pd.DataFrame, optima: pd.DataFrame) -> pd.DataFrame:
    """Return means over the lakes of each size for each agent, with intervals over lakes."""
    shown = means[means["part"] == study_spec.SCALING]
    lakes = shown.assign(size=_setting(shown, "size")).merge(optima, on=["part", "problem"], how="left")
    rows = []
    for _, runs in lakes.groupby(["size", "agent"], sort=False, observed=True):
        first = runs.iloc[0]
        size, agent = int(first["size"]), str(first["agent"])
        rows.append(
            {
                "size": size, "agent": agent, "agent_name": first["agent_name"], "preset": first["preset"],
                "episodes": first["episodes"], "lakes": len(runs),
                **_estimates(runs),
                "published_return": RANDOM_LAKES.get(first["agent_name"], {}).get(size, float("nan")),
                "optimal_return": runs["optimal_return"].mean(),
            }
        )  # fmt: skip
    columns = [
        "size", "agent", "agent_name", "preset", "episodes", "lakes", "scalarized_return", "low", "high", "measurements",
        "measurements_low", "measurements_high", "published_return", "optimal_return",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _estimates(runs: pd.DataFrame) -> dict[str, float]:
    estimates: dict[str, float] = {}
    for column, names in (
        ("scalarized_return", ("scalarized_return", "low", "high")),
        ("measurements", ("measurements", "measurements_low", "measurements_high")),
    ):
        estimate = statistics.mean(runs[column].to_numpy())
        estimates |= dict(zip(names, estimate, strict=True))
    return estimates


def _setting(rows: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a setting of the problem of each row."""
    return pd.Series([json.loads(text)[name] for text in rows["problem_settings"]], rows.index, dtype=float)
