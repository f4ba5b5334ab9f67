"""The report of the paper's study: reads like a short paper, with numbers that are all computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from actmeasure.experiments import paper
from actmeasure.experiments.published import AMRL_Q_EPISODES, DISCOUNT
from actmeasure.experiments.results import Results
from actmeasure.report import common
from actmeasure.report.deviations import deviations
from actmeasure.report.document import Column, Document, Note, Section, Text, table_of
from actmeasure.report.outputs import Outputs
from actmeasure.report.paper_figures import costs_figure, curves_figure, scaling_figure
from actmeasure.report.paper_findings import comparisons_section, deviations_section, findings
from actmeasure.report.paper_shown import EIGHT, LOOKS, OPTIMA, RETURNS, SCALING, TABLE, matrix
from actmeasure.report.paper_tables import CURVES, PaperTables

__all__ = ["is_paper", "paper_report"]

MISSING = Text("There are no results of this part yet.")


def is_paper(results: Results) -> bool:
    """Whether these are results of the paper's study, and not of one that happens to have its name."""
    if results.study["name"] not in paper.NAMES:
        return False
    study = paper.paper_study(quick=results.study["name"] == paper.NAMES[1])
    return _labels(results.study["parts"]) == _labels(study.to_json()["parts"])


def _labels(parts: list[dict[str, Any]]) -> list[Any]:
    """What the tables of the report find their rows and columns by, for each part."""
    return [
        (
            part["name"],
            [(problem["label"], problem["name"], problem["settings"]) for problem in part["problems"]],
            [(agent["label"], agent["name"]) for agent in part["agents"]],
        )
        for part in parts
    ]


def paper_report(results: Results, directory: Path) -> tuple[Document, Outputs]:
    """The page, and the files beside it."""
    outputs, found = Outputs(), PaperTables(results)
    differences = deviations(found.cells, found.means)
    for name, table in (
        ("table1.csv", found.table1), ("figure-costs.csv", found.costs), ("figure-curves.csv", found.curves),
        ("figure-scaling.csv", found.scaling), ("lake-8x8.csv", found.eight), ("optima.csv", found.optima),
        ("comparisons.csv", found.comparisons), ("deviations.csv", differences),
    ):  # fmt: skip
        outputs.add_table(name, table)
    sections = [
        _table1(results, found), _what(results),
        _with_progress(_ceiling(found), results, paper.OPTIMA, paper.PATIENT),
        *_tables(found),
        _with_progress(_costs(found, outputs), results, paper.SWEEP, paper.SWEEP_OTP),
        _with_progress(_curves(found, outputs), results, paper.RIGHT),
        _with_progress(_eight(found), results, paper.EIGHT),
        _with_progress(_scaling(found, outputs), results, paper.SCALING),
        comparisons_section(found.comparisons), deviations_section(differences),
        common.machine(results.study, _commands(results.study["name"], directory)),
    ]  # fmt: skip
    said = (
        findings(found, differences) if _has_every_cell(results) else []
    )  # of some cells nothing can be said about all
    first = [*_quick(results), *common.warnings(results), *said]
    subtitle = "What Krale, Simão and Jansen (ICAPS 2023) report, run again, beside the best that could be earned"
    return Document(results.study["title"], subtitle, first, sections), outputs


def _quick(results: Results) -> list[Note]:
    if results.study["name"] != paper.NAMES[1]:
        return []
    return [
        Note(
            "This is the study in small: few seeds, short runs, small lakes. It shows that everything works. Its "
            "numbers say nothing about the paper; the full study has the episodes of the published runs."
        )
    ]


def _what(results: Results) -> Section:
    agents = (
        "Agents with published settings are as in the runs behind the published numbers, where these differ from "
        "the paper's text. Those with default settings have what was found to be good since; Foresight learns a "
        f"model and plans with it. The measuring value problem is a gamble that succeeds with probability {paper.SUCCESS}, "
        f"and a look tells whether it did. In frozen lakes a look costs {paper.LAKE_COST}."
    )
    return Section("What was run", [Text(agents), Text(common.HOW_TO_READ), common.parts_table(results)])


def _ceiling(found: PaperTables) -> Section:
    text = (
        f"With the dynamics known, the best schedule is found with a proof. At the paper's discount of {DISCOUNT:g} the "
        "value of every problem lies between the two bounds shown. Agents are judged by their undiscounted return, "
        f"though, and the best schedule at {DISCOUNT:g} is in a hurry: it can earn less than another. So the best known "
        "return is the largest undiscounted return of the schedules that are best at several discounts: "
        f"{', '.join(f'{each:g}' for each in (DISCOUNT, *paper.PATIENCE))} for lakes, {DISCOUNT:g} and "
        f"{paper.NO_DISCOUNT:g} for the measuring value problem, where it is exact. On lakes nothing is "
        "proven about the undiscounted return; on the large ones the search is cut off after a fixed amount of "
        "work."
    )
    shown = found.optima[found.optima["part"].isin((paper.LEFT, paper.RIGHT, paper.EIGHT))]
    caption = "The best known, for the problems of the tables."
    return Section("What could be earned", [Text(text), *_shown(shown, caption, OPTIMA, "optima.csv")])


def _has_every_cell(results: Results) -> bool:
    """Whether every agent has a run on every problem, and every problem its plans."""
    there = len(results.runs.drop_duplicates(["part", "problem", "agent"])) + len(results.plans)
    parts = results.study["parts"]
    return there == sum(len(part["problems"]) * (len(part["agents"]) + len(part["methods"])) for part in parts)


def _with_progress(section: Section, results: Results, *parts: str) -> Section:
    """Return a section that begins with how far its parts are, if they are not finished."""
    return Section(section.title, [*common.part_so_far(results, *parts), *section.blocks])


def _table1(results: Results, found: PaperTables) -> Section:
    """Table 1 as the paper has it: a row for each agent, a column for each setting."""
    text = (
        "What was found here, with its interval, and below that what was published, for the agents that have the settings of the "
        "published runs. On top is the best that could be earned; how that is known is said below."
    )
    blocks = [Text(text), matrix(results.study, found.cells, RETURNS), matrix(results.study, found.cells, LOOKS)]
    return _with_progress(Section("Table 1", blocks), results, paper.LEFT, paper.RIGHT)


def _tables(found: PaperTables) -> list[Section]:
    sections = []
    for part, title, what in (
        (paper.LEFT, "The measuring value problem in detail", "at three costs of a look"),
        (paper.RIGHT, "The 4x4 frozen lake in detail", "in its three variants"),
    ):
        caption = f"Returns {what}, sorted as you like: in the paper, found here, and the best known."
        cells = found.cells[found.cells["part"] == part]
        sections.append(Section(title, _shown(cells, caption, TABLE, "table1.csv")))
    return sections


def _costs(found: PaperTables, outputs: Outputs) -> Section:
    title = "Where looking stops paying"
    if found.costs.empty:
        return Section(title, [MISSING])
    last = _last_cost_worth_a_look(found.costs)
    text = f"Of the costs tried, {last:.2f} is the last at which the best schedule looks." if last is not None else ""
    caption = (
        "Return (above) and looks (below) in the measuring value problem, by the cost of a look. Bands are "
        "intervals; dotted is the best schedule."
    )
    words = (
        "Two rows of panels: return and number of looks by the cost of a look, for published and for default settings."
    )
    picture = outputs.add_figure("figure-costs", costs_figure(found.costs), caption, words, "figure-costs.csv")
    return Section(title, [Text(text), picture])


def _last_cost_worth_a_look(costs: pd.DataFrame) -> float | None:
    looking = costs.loc[costs["optimal_measurements"] > 0, "cost"]
    return None if looking.empty else float(looking.max())


def _curves(found: PaperTables, outputs: Outputs) -> Section:
    title = "Training on the 4x4 semi-slippery lake"
    if found.curves.empty:
        return Section(title, [MISSING])
    best = found.table1.loc[found.table1["setting"] == CURVES, "optimal_return"].dropna()
    figure = curves_figure(found.curves, None if best.empty else float(best.iloc[0]))
    window = int(found.curves["window"].iloc[0])
    caption = (
        f"Running means of {window} episodes, averaged over runs, with intervals; dotted is the best known return."
    )
    words = "Two rows of panels: return and number of looks by episode, for published and for default settings."
    return Section(title, [outputs.add_figure("figure-curves", figure, caption, words, "figure-curves.csv")])


def _eight(found: PaperTables) -> Section:
    caption = "The standard 8x8 map, semi-slippery. Looks were not published."
    return Section("The 8x8 frozen lake", _shown(found.eight, caption, EIGHT, "lake-8x8.csv"))


def _scaling(found: PaperTables, outputs: Outputs) -> Section:
    title = "Larger lakes"
    if found.scaling.empty:
        return Section(title, [MISSING])
    lakes = int(found.scaling["lakes"].max())
    text = (
        "The published lakes are not known, so these are other random maps. Every size has "
        f"{lakes} lakes, each run once, so that an interval is over lakes. All agents have the same number of "
        f"episodes; in the paper AMRL-Q had {AMRL_Q_EPISODES:,} and Dyna-ATMQ one repetition. The published "
        f"act-then-measure settings have random looks at {paper.RANDOM_LOOKS['random_measuring']:.0%} of the steps "
        "added, as in the published runs on the measuring value problem."
    )
    caption = (
        "Return by size of the lake: in the paper, with the published settings, and with our defaults. Dotted is "
        "the best known."
    )
    words = "Three panels: return by the number of cells along a side, in the paper, with published and with default settings."
    picture = outputs.add_figure("figure-scaling", scaling_figure(found.scaling), caption, words, "figure-scaling.csv")
    table = _shown(found.scaling, "The same as numbers.", SCALING, "figure-scaling.csv")
    return Section(title, [Text(text), picture, *table])


def _shown(frame: pd.DataFrame, caption: str, columns: list[Column], file: str) -> list[Any]:
    return [MISSING] if frame.empty else [table_of(frame, caption, columns, [file])]


def _commands(name: str, directory: Path) -> list[str]:
    quick = ["--quick"] if name == paper.NAMES[1] else []
    return common.commands(directory, ["paper", *quick])
