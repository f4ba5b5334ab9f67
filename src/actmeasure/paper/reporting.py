"""The report of the paper's study: reads like a short paper, with numbers that are all computed."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from actmeasure.paper import study_spec
from actmeasure.paper.deviations import REPETITIONS, TEXT_AND_RUNS, deviations
from actmeasure.paper.paper_tables import CURVES, PaperTables
from actmeasure.paper.published import AMRL_Q_EPISODES, DISCOUNT, Published
from actmeasure.statistics import LEVEL
from actmeasure.studies.report import common
from actmeasure.studies.report.document import (
    NOTHING,
    Cell,
    Column,
    Document,
    Items,
    Note,
    Outputs,
    Section,
    Table,
    Text,
    interval_suffix,
    table_of,
)
from actmeasure.studies.report.figures import LOOKS, MEASURES, Line, panels
from actmeasure.studies.results import Results
from actmeasure.text import number_text

__all__ = ["knows", "report"]

MISSING = Text("There are no results of this part yet.")
RETURN = Column("return found", "scalarized_return", 2, ("low", "high"))
MIDDLE = Column("interquartile mean", "iqm", 2, ("iqm_low", "iqm_high"))
BEST = Column("best known", "optimal_return")


def knows(results: Results) -> bool:
    """Return whether these are results of the paper's study, and not of one that happens to have its name."""
    if results.study["name"] not in study_spec.NAMES:
        return False
    study = study_spec.paper_study(quick=results.study["name"] == study_spec.NAMES[1])
    return _labels(results.study["parts"]) == _labels(study.to_json()["parts"])


def _labels(parts: list[dict[str, Any]]) -> list[Any]:
    """Return the names, labels and settings by which the tables of the report find their rows and columns, for each part."""
    return [
        (
            part["name"],
            [(problem["label"], problem["name"], problem["settings"]) for problem in part["problems"]],
            [(agent["label"], agent["name"]) for agent in part["agents"]],
        )
        for part in parts
    ]


def report(results: Results, directory: Path) -> tuple[Document, Outputs]:
    """Return the page, and the tables and figures that are written beside it."""
    outputs, tables = Outputs(), PaperTables(results)
    differences = deviations(tables.cells, tables.means)
    for name, table in (
        ("table1.csv", tables.table1), ("figure-costs.csv", tables.costs), ("figure-curves.csv", tables.curves),
        ("figure-scaling.csv", tables.scaling), ("lake-8x8.csv", tables.eight), ("optima.csv", tables.optima),
        ("comparisons.csv", tables.comparisons), ("deviations.csv", differences),
    ):  # fmt: skip
        outputs.add_table(name, table)
    sections = [
        _table1(results, tables), _what(results),
        _with_progress(_ceiling(tables), results, study_spec.OPTIMA, study_spec.BEST_KNOWN),
        *_details(tables),
        _with_progress(_costs(tables, outputs), results, study_spec.SWEEP, study_spec.SWEEP_OTP),
        _with_progress(_curves(tables, outputs), results, study_spec.RIGHT),
        _with_progress(_eight(tables), results, study_spec.EIGHT),
        _with_progress(_scaling(tables, outputs), results, study_spec.SCALING),
        _comparisons(tables.comparisons), _deviations(differences),
        common.machine(results.study, _commands(results.study["name"], directory)),
    ]  # fmt: skip
    complete = _has_every_cell(results)  # otherwise nothing can be said about all cells
    first = [*_quick(results), *common.warnings(results), *(_findings(tables, differences) if complete else [])]
    subtitle = "What Krale, Simão and Jansen (ICAPS 2023) report, run again, beside the best known"
    return Document(results.study["title"], subtitle, first, sections), outputs


def _commands(name: str, directory: Path) -> list[str]:
    quick = ["--quick"] if name == study_spec.NAMES[1] else []
    return common.commands(directory, ["paper", *quick])


def _quick(results: Results) -> list[Note]:
    if results.study["name"] != study_spec.NAMES[1]:
        return []
    return [
        Note(
            "This is the study in small: few seeds, short runs, small lakes. It shows that everything works. Its "
            "numbers say nothing about the paper; the full study has the episodes of the published runs."
        )
    ]


def _has_every_cell(results: Results) -> bool:
    """Return whether every agent has a run on every problem, and every problem its plans."""
    there = len(results.runs.drop_duplicates(["part", "problem", "agent"])) + len(results.plans)
    parts = results.study["parts"]
    return there == sum(len(part["problems"]) * (len(part["agents"]) + len(part["methods"])) for part in parts)


def _with_progress(section: Section, results: Results, *parts: str) -> Section:
    """Return a section that begins with how far its parts are, if they are not finished."""
    return Section(section.title, [*common.part_so_far(results, *parts), *section.blocks])


def _shown(frame: pd.DataFrame, caption: str, columns: list[Column], file: str) -> list[Any]:
    return [MISSING] if frame.empty else [table_of(frame, caption, columns, [file])]


FORESIGHT = "Foresight"
#: Returns that differ by less count as equal.
SAME_RETURN = 0.005


def _findings(tables: PaperTables, differences: pd.DataFrame) -> list[Any]:
    """Return the main results in a few sentences."""
    return [Items(text)] if (text := [*_agreement(differences), *_defaults(tables.cells), *_shares(tables)]) else []


def _agreement(differences: pd.DataFrame) -> list[str]:
    returns = differences[differences["measure"] == "return"]
    if returns.empty:
        return []
    agree = int((~returns["differs"].astype(bool)).sum())
    return [
        f"With the settings of the published runs, {agree} of {len(returns)} published returns are what "
        f"{REPETITIONS} runs are expected to give here; the others are in the list of differences below."
    ]


def _defaults(cells: pd.DataFrame) -> list[str]:
    """Compare the paper's agents with default settings to their published returns."""
    ours = cells[(cells["preset"] == "default") & cells["published_return"].notna()]
    if ours.empty:
        return []
    gain = ours["scalarized_return"] - ours["published_return"]
    best = ours.iloc[int(gain.to_numpy().argmax())]
    return [
        f"With default settings the paper's agents earn more than published in {int((gain > SAME_RETURN).sum())} of "
        f"{len(ours)} cells and less in {int((gain < -SAME_RETURN).sum())}; the largest gain is "
        f"{number_text(gain.max(), 2)} ({best['agent']}, {best['problem']}), the largest loss "
        f"{number_text(max(0.0, -gain.min()), 2)}."
    ]


def _shares(tables: PaperTables) -> list[str]:
    """Compare the best agents to the best known return."""
    text = []
    table = tables.table1
    if not table.empty and table["optimal_return"].notna().any():
        lacking = table["optimal_return"] - table["scalarized_return"]
        below = lacking.groupby(table["agent"], sort=False).max().dropna().clip(lower=0.0).sort_values(kind="stable")
        others = (
            f"; the closest of the others, {below.index[1]}, is up to {number_text(below.iloc[1], 2)} below"
            if len(below) > 1
            else ""
        )
        text.append(
            f"In Table 1 {below.index[0]} is never more than {number_text(below.iloc[0], 2)} below the best known "
            f"return{others}."
        )
    lakes = tables.scaling.dropna(subset=["optimal_return"])
    if not lakes.empty:
        sums = lakes.groupby("agent", sort=False)[["scalarized_return", "optimal_return"]].sum()
        share = (sums["scalarized_return"] / sums["optimal_return"]).sort_values(ascending=False)
        shown = ", ".join(f"{agent} {number_text(100 * value, 0)} %" for agent, value in share.items())
        text.append(f"Of what could be earned on all larger lakes together, agents earn: {shown}.")
    return text


class Measure(NamedTuple):
    """What a table in the shape of Table 1 shows: names of columns of `PaperTables.cells`, and whether cells are shaded."""

    caption: str
    column: str
    low: str
    high: str
    best: str
    shaded: bool


RETURNS = Measure(
    "Table 1: return. Shades are the share of the best known that an agent earns.",
    "scalarized_return", "low", "high", "optimal_return", True,
)  # fmt: skip
MEASUREMENTS = Measure(
    "Table 1: looks in an episode.",
    "measurements", "measurements_low", "measurements_high", "optimal_measurements", False,
)  # fmt: skip
#: The smallest share of the best known for each shade but the first.
SHADES = (0.25, 0.5, 0.75, 0.9, 0.975)
GROUPS = {study_spec.LEFT: "measuring value, at a cost of a look of", study_spec.RIGHT: "4x4 frozen lake"}


def _table1(results: Results, tables: PaperTables) -> Section:
    """Return Table 1 in the paper's shape: a row for each agent, a column for each setting."""
    text = (
        "What was found here, with its interval, and below that what was published, for the agents that have the settings of the "
        "published runs. On top is the best known return; how that is known is said below."
    )
    blocks = [
        Text(text),
        _matrix(results.study, tables.cells, RETURNS),
        _matrix(results.study, tables.cells, MEASUREMENTS),
    ]
    return _with_progress(Section("Table 1", blocks), results, study_spec.LEFT, study_spec.RIGHT)


def _matrix(study: dict[str, Any], cells: pd.DataFrame, measure: Measure) -> Table:
    """Return a table in the shape of Table 1: a row for each agent, a column for each setting, the best known on top.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    cells : pandas.DataFrame
        As `PaperTables.cells`; what is not there yet is a dash.
    measure : Measure
    """
    halves = {part["name"]: part for part in study["parts"] if part["name"] in (study_spec.LEFT, study_spec.RIGHT)}
    columns = [(name, problem["label"]) for name, part in halves.items() for problem in part["problems"]]
    agents = list({agent["label"]: agent for part in halves.values() for agent in part["agents"]}.values())
    agents.sort(key=lambda agent: agent["settings"].get("preset") != "published")  # stable: otherwise as in the study
    published = {(each.part, each.problem, each.agent): each for each in study_spec.published()}
    known = {(row["part"], row["problem"], row["agent"]): row for row in cells.to_dict("records")}
    best = {
        (row["part"], row["problem"]): float(row[measure.best])
        for row in known.values()
        if not math.isnan(row[measure.best])
    }
    rows = [[Cell("Best known"), *(_best_cell(best.get(column)) for column in columns)]]
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


def _best_cell(value: float | None) -> Cell:
    return Cell(NOTHING) if value is None else Cell(number_text(value, 2), value)


def _matrix_cell(row: dict[Any, Any] | None, published: Published | None, measure: Measure) -> Cell:
    """Return what was found with its interval, and below that what was published, if anything."""
    theirs = None if published is None else getattr(published, measure.column)
    below = "" if theirs is None else f"published {number_text(theirs, 2)}"
    if row is None:
        return Cell(NOTHING, below=below)
    value, best = float(row[measure.column]), float(row[measure.best])
    text = number_text(value, 2) + interval_suffix(row[measure.low], row[measure.high], 2, int(row["runs"]))
    # Undefined where nothing can be earned.
    shade = sum(value / best >= share for share in SHADES) if measure.shaded and best > 0 else None
    return Cell(text, value, below, shade)


def _legend() -> list[str]:
    bounds = [f"{100 * share:g} %" for share in SHADES]
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]} of the best known", *between, f"{bounds[-1]} and more"]


def _what(results: Results) -> Section:
    agents = (
        "Agents with published settings are as in the runs behind the published numbers, where these differ from "
        "the paper's text. Those with default settings have what was found to be good since; Foresight learns a "
        f"model and plans with it. The measuring value problem is a gamble that succeeds with probability {study_spec.SUCCESS}, "
        f"and a look tells whether it did. In frozen lakes a look costs {study_spec.LAKE_COST}."
    )
    return Section("What was run", [Text(agents), Text(common.HOW_TO_READ), common.parts_table(results)])


OPTIMA = [
    Column("problem", "problem"), Column("best known return", "optimal_return", 3),
    Column("looks", "optimal_measurements"), Column("steps", "optimal_steps", 1),
    Column("discounted optimum at least", "value", 4), Column("at most", "value_at_most", 4),
]  # fmt: skip


def _ceiling(tables: PaperTables) -> Section:
    text = (
        f"With the dynamics known, the best schedule is found with a proof. At the paper's discount of {DISCOUNT:g} the "
        "value of every problem lies between the two bounds shown. Agents are judged by their undiscounted return, "
        f"though, and the best schedule at {DISCOUNT:g} does not wait for late rewards: it can earn less than "
        "another. So the best known return is the largest undiscounted return of the schedules that are best at several "
        "discounts: "
        f"{', '.join(f'{each:g}' for each in (DISCOUNT, *study_spec.HIGH_DISCOUNTS))} for lakes, {DISCOUNT:g} and "
        f"{study_spec.NO_DISCOUNT:g} for the measuring value problem, where it is exact. On lakes nothing is "
        "proven about the undiscounted return; on the large ones the search is cut off after a fixed amount of "
        "work."
    )
    shown = tables.optima[tables.optima["part"].isin((study_spec.LEFT, study_spec.RIGHT, study_spec.EIGHT))]
    caption = "The best known, for the problems of the tables."
    return Section("What could be earned", [Text(text), *_shown(shown, caption, OPTIMA, "optima.csv")])


DETAILS = [
    Column("setting", "problem"), Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST, Column("runs", "runs", 0), Column("episodes", "episodes", 0),
]  # fmt: skip


def _details(tables: PaperTables) -> list[Section]:
    sections = []
    for part, title, what in (
        (study_spec.LEFT, "The measuring value problem in detail", "at three costs of a look"),
        (study_spec.RIGHT, "The 4x4 frozen lake in detail", "in its three variants"),
    ):
        caption = f"Returns {what}, sorted as you like: in the paper, found here, and the best known."
        cells = tables.cells[tables.cells["part"] == part]
        sections.append(Section(title, _shown(cells, caption, DETAILS, "table1.csv")))
    return sections


def _costs(tables: PaperTables, outputs: Outputs) -> Section:
    title = "Where looking stops paying"
    if tables.costs.empty:
        return Section(title, [MISSING])
    last = _last_cost_worth_a_look(tables.costs)
    text = f"Of the costs tried, {last:.2f} is the last at which the best schedule looks." if last is not None else ""
    caption = (
        "Return (above) and looks (below) in the measuring value problem, by the cost of a look. Bands are "
        "intervals; dotted is the best schedule."
    )
    words = (
        "Two rows of panels: return and number of looks by the cost of a look, for published and for default settings."
    )
    figure = panels(tables.costs, "cost", _columns(tables.costs), "cost of a look")
    picture = outputs.add_figure("figure-costs", figure, caption, words, "figure-costs.csv")
    return Section(title, [Text(text), picture])


def _last_cost_worth_a_look(costs: pd.DataFrame) -> float | None:
    looking = costs.loc[costs["optimal_measurements"] > 0, "cost"]
    return None if looking.empty else float(looking.max())


def _curves(tables: PaperTables, outputs: Outputs) -> Section:
    title = "Training on the 4x4 semi-slippery lake"
    if tables.curves.empty:
        return Section(title, [MISSING])
    best = tables.table1.loc[tables.table1["setting"] == CURVES, "optimal_return"].dropna()
    figure = _curves_figure(tables.curves, None if best.empty else float(best.iloc[0]))
    window = int(tables.curves["window"].iloc[0])
    caption = (
        f"Running means of {window} episodes, averaged over runs, with intervals; dotted is the best known return."
    )
    words = "Two rows of panels: return and number of looks by episode, for published and for default settings."
    return Section(title, [outputs.add_figure("figure-curves", figure, caption, words, "figure-curves.csv")])


EIGHT = [
    Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high")),
    Column("looks of the best", "optimal_measurements"), Column("runs", "runs", 0),
]  # fmt: skip


def _eight(tables: PaperTables) -> Section:
    caption = "The standard 8x8 map, semi-slippery. Looks were not published."
    return Section("The 8x8 frozen lake", _shown(tables.eight, caption, EIGHT, "lake-8x8.csv"))


SCALING = [
    Column("size", "size", 0), Column("agent", "agent"), Column("published return", "published_return"),
    Column("return found", "scalarized_return", 2, ("low", "high"), "lakes"), BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high"), "lakes"), Column("lakes", "lakes", 0),
]  # fmt: skip


def _scaling(tables: PaperTables, outputs: Outputs) -> Section:
    title = "Larger lakes"
    if tables.scaling.empty:
        return Section(title, [MISSING])
    lakes = int(tables.scaling["lakes"].max())
    text = (
        "The published lakes are not known, so these are other random maps. Every size has "
        f"{lakes} lakes, each run once, so that an interval is over lakes. All agents have the same number of "
        f"episodes; in the paper AMRL-Q had {AMRL_Q_EPISODES:,} and Dyna-ATMQ one repetition. The published "
        f"act-then-measure settings have random looks at {study_spec.RANDOM_LOOKS['random_measuring']:.0%} of the steps "
        "added, as in the published runs on the measuring value problem."
    )
    caption = (
        "Return by size of the lake: in the paper, with the published settings, and with our defaults. Dotted is "
        "the best known."
    )
    words = "Three panels: return by the number of cells along a side, in the paper, with published and with default settings."
    picture = outputs.add_figure(
        "figure-scaling", _scaling_figure(tables.scaling), caption, words, "figure-scaling.csv"
    )
    table = _shown(tables.scaling, "The same as numbers.", SCALING, "figure-scaling.csv")
    return Section(title, [Text(text), picture, *table])


PAIRS = [
    Column("part", "part"), Column("agent", "agent"), Column("other", "other"),
    Column("earns more by", "difference", 2, ("difference_low", "difference_high")),
    Column("probability that it earns more", "probability", 2, ("low", "high")),
]  # fmt: skip


def _comparisons(pairs: pd.DataFrame) -> Section:
    """Compare Foresight with every other agent, and every agent's default settings with its published ones."""
    settings = pairs["agent"] == pairs["other"] + " (published)"
    swapped = pairs["other"] == FORESIGHT
    # A pair is stored once, the agent that comes first in the study first; turned round it says the same.
    turned = pairs.assign(
        agent=pairs["other"], other=pairs["agent"],
        probability=1 - pairs["probability"], low=1 - pairs["high"], high=1 - pairs["low"],
        difference=-pairs["difference"], difference_low=-pairs["difference_high"], difference_high=-pairs["difference_low"],
    )  # fmt: skip
    shown = pd.concat([turned[swapped], pairs[pairs["agent"] == FORESIGHT], turned[settings]])
    parts = {study_spec.LEFT: "measuring value", study_spec.RIGHT: "4x4 lakes"}
    text = (
        "How much more one agent earns than the other in its last episodes, and how likely a run of it earns more than a "
        "run of the other, ties counting half; both averaged over the three settings of each half of Table 1, with "
        "intervals over seeds, by Student's t: seed by seed where both have the same seeds, otherwise Welch's."
    )
    title = "Who earns more"
    if shown.empty:
        return Section(title, [Text("There are no two agents to compare yet.")])
    frame = shown.assign(part=shown["part"].map(parts))
    return Section(title, [Text(text), table_of(frame, "Probability of improvement.", PAIRS, ["comparisons.csv"])])


DEVIATIONS = [
    Column("problem", "problem"), Column("agent", "agent"), Column("what", "measure"), Column("published", "published"),
    Column("found", "found"), Column(f"means of {REPETITIONS} runs, from", "expected_low"), Column("to", "expected_high"),
    Column("what is known about it", "reasons"),
]  # fmt: skip


def _deviations(differences: pd.DataFrame) -> Section:
    """List the published numbers that our runs do not reproduce, with the known reasons."""
    title = "What differs from the paper, and why"
    runs = Text(
        "Where the runs behind the published numbers differ from the text, the settings called published follow "
        "the runs:"
    )
    if differences.empty:
        return Section(title, [runs, Items(TEXT_AND_RUNS), Text("There is nothing to compare yet.")])
    different = differences[differences["differs"].astype(bool)]
    rule = (
        f"A published number differs from ours if it is outside of where the mean of {REPETITIONS} other runs such as ours "
        f"is expected, {LEVEL:.0%} of the time, and by more than what does not matter. Of {len(differences)} published "
        f"returns and numbers of looks, {len(different)} do."
    )
    blocks: list[Any] = [runs, Items(TEXT_AND_RUNS), Text(rule)]
    if not different.empty:
        caption = "Published numbers that our runs with the published settings do not give."
        blocks.append(table_of(different, caption, DEVIATIONS, ["deviations.csv"]))
    return Section(title, blocks)


#: Label and line style of each agent, the same in every figure and for all settings; the panels name the settings.
AGENTS = {
    name: (label, LOOKS[number])
    for number, (name, label) in enumerate(
        {"atmq": "ATMQ", "dyna-atmq": "Dyna-ATMQ", "amrl-q": "AMRL-Q", "acno-otp": "ACNO-OTP", "foresight": "Foresight"}.items()
    )
}  # fmt: skip
#: Panels from left to right: what is above them, and the preset of the agents in them.
PAPER = "in the paper"
PANELS = {"published settings": "published", "default settings": "default"}


def _curves_figure(curves: pd.DataFrame, best: float | None) -> Figure:
    """Draw return and measurements while training on the 4x4 semi-slippery lake."""
    table = curves if best is None else curves.assign(optimal_return=best)
    return panels(table, "episode", _columns(table), "episode", markers=False)


def _scaling_figure(scaling: pd.DataFrame) -> Figure:
    """Draw returns on random lakes by size: in the paper, with the published settings, and with our defaults."""
    theirs = scaling[(scaling["preset"] == "published") & scaling["published_return"].notna()]
    paper = theirs.assign(
        agent=theirs["agent"] + " in the paper", scalarized_return=theirs["published_return"], low=float("nan")
    )
    both = pd.concat([scaling, paper], ignore_index=True)
    columns = {PAPER: _lines(paper)} | _columns(scaling)
    # The best known is that of our lakes; that of the paper's is not known.
    return panels(both, "size", columns, "cells along a side", MEASURES[:1], without_best=[PAPER])


def _columns(table: pd.DataFrame) -> dict[str, list[Line]]:
    return {title: _lines(table[table["preset"] == preset]) for title, preset in PANELS.items()}


def _lines(rows: pd.DataFrame) -> list[Line]:
    agents = rows.drop_duplicates("agent")
    return [Line(agent, *AGENTS[name]) for agent, name in zip(agents["agent"], agents["agent_name"], strict=True)]
