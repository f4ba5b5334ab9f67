"""Which columns of the paper's tables are shown on the page, and how."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from actmeasure.experiments import paper
from actmeasure.experiments.published import Published
from actmeasure.report.deviations import REPETITIONS
from actmeasure.report.document import NOTHING, Cell, Column, Table, interval_text, number_text

__all__ = ["DEVIATIONS", "EIGHT", "LOOKS", "OPTIMA", "PAIRS", "RETURNS", "SCALING", "TABLE", "Measure", "matrix"]


class Measure(NamedTuple):
    """What a table in the shape of Table 1 shows: columns of `PaperTables.cells`, and whether cells are shaded."""

    caption: str
    found: str
    low: str
    high: str
    best: str
    shaded: bool


RETURNS = Measure(
    "Table 1: return. Shades are the share of the best possible that an agent earns.",
    "scalarized_return", "low", "high", "optimal_return", True,
)  # fmt: skip
LOOKS = Measure(
    "Table 1: looks in an episode.",
    "measurements", "measurements_low", "measurements_high", "optimal_measurements", False,
)  # fmt: skip
#: The smallest share of the best possible for each shade but the first.
SHADES = (0.25, 0.5, 0.75, 0.9, 0.975)

RETURN = Column("return found", "scalarized_return", 2, ("low", "high"))
MIDDLE = Column("interquartile mean", "iqm", 2, ("iqm_low", "iqm_high"))
BEST = Column("best known", "optimal_return")

TABLE = [
    Column("setting", "problem"), Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST, Column("runs", "runs", 0), Column("episodes", "episodes", 0),
]  # fmt: skip
EIGHT = [
    Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high")),
    Column("looks of the best", "optimal_measurements"), Column("runs", "runs", 0),
]  # fmt: skip
SCALING = [
    Column("size", "size", 0), Column("agent", "agent"), Column("published return", "published_return"),
    Column("return found", "scalarized_return", 2, ("low", "high"), "lakes"), BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high"), "lakes"), Column("lakes", "lakes", 0),
]  # fmt: skip
OPTIMA = [
    Column("problem", "problem"), Column("best known return", "optimal_return", 3),
    Column("looks", "optimal_measurements"), Column("steps", "optimal_steps", 1),
    Column("discounted optimum at least", "value", 4), Column("at most", "value_at_most", 4),
]  # fmt: skip
PAIRS = [
    Column("part", "part"), Column("agent", "agent"), Column("other", "other"),
    Column("earns more by", "difference", 2, ("difference_low", "difference_high")),
    Column("probability that it earns more", "probability", 2, ("low", "high")),
]  # fmt: skip
DEVIATIONS = [
    Column("problem", "problem"), Column("agent", "agent"), Column("what", "measure"), Column("published", "published"),
    Column("found", "found"), Column(f"means of {REPETITIONS} runs, from", "expected_low"), Column("to", "expected_high"),
    Column("what is known about it", "reasons"),
]  # fmt: skip


def matrix(study: dict[str, Any], cells: pd.DataFrame, measure: Measure) -> Table:
    """Return a table in the shape of Table 1: a row for each agent, a column for each setting, the best possible on top.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    cells : pandas.DataFrame
        As `PaperTables.cells`; what is not there yet is a dash.
    measure : Measure
    """
    halves = {part["name"]: part for part in study["parts"] if part["name"] in (paper.LEFT, paper.RIGHT)}
    columns = [(name, problem["label"]) for name, part in halves.items() for problem in part["problems"]]
    agents = list({agent["label"]: agent for part in halves.values() for agent in part["agents"]}.values())
    agents.sort(key=lambda agent: agent["settings"].get("preset") != "published")  # stable: otherwise as in the study
    published = {(each.part, each.problem, each.agent): each for each in paper.published()}
    known = {(row["part"], row["problem"], row["agent"]): row for row in cells.to_dict("records")}
    best = {
        (row["part"], row["problem"]): float(row[measure.best])
        for row in known.values()
        if not math.isnan(row[measure.best])
    }
    rows = [[Cell("Best possible"), *(_best_cell(best.get(column)) for column in columns)]]
    for agent in agents:
        theirs = agent["name"] if agent["settings"].get("preset") == "published" else ""
        shown = [
            _matrix_cell(known.get((*column, agent["label"])), published.get((*column, theirs)), measure)
            for column in columns
        ]
        rows.append([Cell(agent["label"]), *shown])
    groups = [("", 1), *((GROUPS[name], len(part["problems"])) for name, part in halves.items())]
    titles = ["", *(label.removeprefix("4x4 ") for _, label in columns)]
    return Table(
        measure.caption, titles, rows, [False] + [True] * len(columns), ["table1.csv"], groups,
        _legend() if measure.shaded else (), is_sorted=False,
    )  # fmt: skip


GROUPS = {paper.LEFT: "measuring value, at a cost of a look of", paper.RIGHT: "4x4 frozen lake"}


def _best_cell(value: float | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(number_text(value, 2), value)


def _matrix_cell(row: dict[Any, Any] | None, published: Published | None, measure: Measure) -> Cell:
    """Return what was found with its interval, and below that what was published, if anything."""
    theirs = None if published is None else getattr(published, measure.found)
    below = "" if theirs is None else f"published {number_text(theirs, 2)}"
    if row is None:
        return Cell(NOTHING, below=below)
    value, best = float(row[measure.found]), float(row[measure.best])
    text = number_text(value, 2) + interval_text(row[measure.low], row[measure.high], 2, int(row["runs"]))
    # Undefined where nothing can be earned.
    shade = sum(value / best >= share for share in SHADES) if measure.shaded and best > 0 else None
    return Cell(text, value, below, shade)


def _legend() -> list[str]:
    bounds = [f"{100 * share:g} %" for share in SHADES]
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]} of the best possible", *between, f"{bounds[-1]} and more"]
