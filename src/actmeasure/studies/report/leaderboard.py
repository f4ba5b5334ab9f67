"""The page of the benchmark: a leaderboard, what every agent earns on every problem, and the report of a study below."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd

from actmeasure.statistics import LAST
from actmeasure.studies.bench_suite import BOUNDS, IMPERFECT, NAMES, SMALL, SUITE
from actmeasure.studies.report import common, tables
from actmeasure.studies.report.document import (
    NOTHING,
    Cell,
    Column,
    Commands,
    Document,
    Outputs,
    Section,
    Table,
    Text,
    interval_suffix,
    table_of,
)
from actmeasure.studies.report.study_report import report_with
from actmeasure.studies.results import Results
from actmeasure.text import number_text

__all__ = ["report"]

#: Shades of cells by the share of the scale that is reached, and their legend.
SHADES = (0.2, 0.4, 0.6, 0.8, 0.95)
LEGEND = ("below 20 % of the scale", "20 %", "40 %", "60 %", "80 %", "95 % and more")
RANKS = [
    Column("rank", "rank", 0), Column("agent", "agent"), Column("problems", "problems", 0), Column("seeds", "runs", 0),
    Column("normalised score", "score", 3, ("low", "high")),
    Column("interquartile mean", "iqm", 3, ("iqm_low", "iqm_high")),
]  # fmt: skip
HOW = (
    f"Twelve fixed problems. On eleven of them a look shows the state; a run's result is the mean return of its last {LAST} "
    "episodes, and a score of 1 is the best known return, 0 that of acting at random. For ten of them the optimum has "
    "certified bounds, which are in the tables below (they do not meet for the drone). For CartPole on a grid nothing can be "
    "planned; its scale ends at 500, the largest return of an episode. acno-pomcp acts on nine of them, as it keeps a "
    "probability of every transition. "
    "On the twelfth, looks are imperfect: agents that keep tables of states cannot act there."
)


def report(results: Results, directory: Path) -> tuple[Document, Outputs]:
    """Return the page, and the files beside it."""
    document, outputs = report_with(results, _commands(results, directory), BOUNDS)
    means = tables.run_means(results.episodes)
    means["part"] = means["part"].replace({SMALL: SUITE})  # the same problems, of which one agent has fewer
    best = tables.with_bounds(tables.best_known(results.study, results.plans), BOUNDS)
    scale = tables.scales(results.study, means, best)
    ranks = _ranks(tables.aggregates(tables.scores(means, scale)))
    outputs.add_table("leaderboard.csv", ranks)
    blocks: list[object] = [*common.part_so_far(results, SUITE, IMPERFECT), Text(HOW)]
    if not ranks.empty:
        caption = "Leaderboard: normalised scores over eleven problems, with intervals over seeds."
        blocks.append(table_of(ranks, caption, RANKS, ["leaderboard.csv"]))
        blocks.append(_cells(tables.summaries(means), scale, list(ranks["agent"]), best))
    add = "To add an agent of your own, which is then trained on all problems and ranked; what is stored is not run again:"
    quick = ["--quick"] * (results.study["name"] == NAMES[1])
    blocks += [Text(add), Commands([" ".join(["actmeasure bench-suite --agent my_module:MyAgent", *quick])])]
    return replace(document, sections=[Section("Leaderboard", blocks), *document.sections]), outputs


def _ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the agents of the suite by their score, the best first; those that lack problems come last."""
    suite = scores[scores["part"] == SUITE]
    ordered = suite.sort_values(["problems", "score"], ascending=False, kind="stable").reset_index(drop=True)
    return ordered.drop(columns="part").assign(rank=range(1, len(ordered) + 1))


def _cells(found: pd.DataFrame, scale: pd.DataFrame, agents: list[str], best: pd.DataFrame) -> Table:
    """Return the table of returns: a row for each problem, a column for each agent, shaded by score."""
    suite, ends = found[found["part"] == SUITE], scale[scale["part"] == SUITE].set_index("problem")
    rows = []
    for problem in dict.fromkeys(suite["problem"]):
        known = best[(best["part"] == SUITE) & (best["problem"] == problem)]["optimal_return"]
        row = [Cell(problem), _number(float(known.iloc[0]) if len(known) else math.nan)]
        for agent in agents:
            own = suite[(suite["problem"] == problem) & (suite["agent"] == agent)].to_dict("records")
            row.append(_cell(own[0], ends.loc[problem]) if own else Cell(NOTHING))
        rows.append(row)
    caption = "Returns on every problem, with intervals; darker is closer to the best known."
    titles = ["problem", "best known", *agents]
    return Table(caption, titles, rows, [False, *[True] * (len(titles) - 1)], ["results.csv"], legend=LEGEND)


def _number(value: float) -> Cell:
    return Cell(NOTHING) if math.isnan(value) else Cell(number_text(value, 3), value)


def _cell(row: dict[object, float], ends: pd.Series[float]) -> Cell:
    width = ends["best"] - ends["worst"]
    share = (row["scalarized_return"] - ends["worst"]) / width if width else math.nan
    shade = None if math.isnan(share) else sum(share >= limit for limit in SHADES)
    interval = interval_suffix(row["low"], row["high"], 2, int(row["runs"]))
    return Cell(number_text(row["scalarized_return"], 3), float(row["scalarized_return"]), interval.strip(), shade)


def _commands(results: Results, directory: Path) -> list[str]:
    quick = ["--quick"] if results.study["name"] == NAMES[1] else []
    return common.commands(directory, ["bench-suite", *quick])
