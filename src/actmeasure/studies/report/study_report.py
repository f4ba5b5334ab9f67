"""The report of a study: for each part a table, learning curves, and comparisons of the agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from actmeasure.studies.report import REPORTS, common, tables
from actmeasure.studies.report.document import Column, Document, Outputs, Picture, Section, Text, render, table_of
from actmeasure.studies.report.figures import learning_curves
from actmeasure.studies.report.tables import best_known
from actmeasure.studies.results import Results, read_results

__all__ = ["build_report", "study_report"]

#: Most problems of a part for which learning curves are drawn.
MOST_CURVES = 12

COLUMNS = [
    Column("problem", "problem"), Column("agent", "agent"), Column("runs", "runs", 0),
    Column("return", "scalarized_return", 3, ("low", "high")),
    Column("interquartile mean", "iqm", 3, ("iqm_low", "iqm_high")),
    Column("best known", "optimal_return", 3),
    Column("looks", "measurements", 2, ("measurements_low", "measurements_high")),
    Column("looks of the best", "optimal_measurements"), Column("steps", "steps", 1),
]  # fmt: skip
PLANS = [
    Column("problem", "problem"), Column("method", "method"), Column("return", "scalarized_return", 3),
    Column("looks", "measurements"), Column("steps", "steps", 1), Column("discounted", "discounted_return", 4),
    Column("optimum at least", "lower", 4), Column("at most", "upper", 4), Column("planning stopped", "stopped"),
]  # fmt: skip
#: Explanation below results that are compared with the best known.
BEST_KNOWN = (
    "The best known is the largest return, undiscounted, among the plans that are best at the discounts that the study "
    "plans for. A schedule that is best at a low discount does not wait for late rewards, so that an agent may earn more; "
    "plan for the problem at a discount near 1 as well to come closer to what could be earned."
)
PAIRS = [
    Column("agent", "agent"), Column("other", "other"), Column("problems", "problems", 0),
    Column("earns more by", "difference", 3, ("difference_low", "difference_high")),
    Column("probability that it earns more", "probability", 2, ("low", "high")),
]  # fmt: skip


def study_report(results: Results, directory: Path) -> tuple[Document, Outputs]:
    """Return the page, and the files beside it."""
    outputs = Outputs()
    means = tables.run_means(results.episodes)
    found = tables.summaries(means).merge(best_known(results.study, results.plans), on=["part", "problem"], how="left")
    curves, pairs = tables.curves(results.episodes), tables.improvements(means)
    outputs.add_table("results.csv", found)
    outputs.add_table("plans.csv", results.plans)
    outputs.add_table("curves.csv", curves)
    outputs.add_table("comparisons.csv", pairs)
    sections = [Section("What was run", [Text(common.HOW_TO_READ), common.parts_table(results)])]
    for part in results.study["parts"]:
        here = [frame[frame["part"] == part["name"]] for frame in (found, results.plans, curves, pairs)]
        far = common.part_so_far(results, part["name"])
        sections.append(Section(part["title"], [*far, *_part(part["name"], here, outputs)]))
    sections.append(common.machine(results.study, _commands(results.study, directory)))
    title, name = results.study["title"], results.study["name"]
    return Document(title, f"Report of the study {name}", common.warnings(results), sections), outputs


def _part(name: str, tables_of_part: list[pd.DataFrame], outputs: Outputs) -> Iterator[object]:
    found, plans, curves, pairs = tables_of_part
    if found.empty and plans.empty:
        yield Text("There are no results of this part yet.")
    if not found.empty:
        yield table_of(
            found, "What the agents earn in the end, beside the best that is known.", COLUMNS, ["results.csv"]
        )
    if found["optimal_return"].notna().any():
        yield Text(BEST_KNOWN)
    if not plans.empty:
        caption = "Plans, for known dynamics: what they earn in an episode, and bounds on the discounted optimum."
        yield table_of(plans, caption, PLANS, ["plans.csv"])
    problems = list(dict.fromkeys(curves["problem"]))
    for number, problem in enumerate(problems[:MOST_CURVES], start=1):
        yield _curve(f"curves-{name}-{number}", problem, curves, found, outputs)
    if len(problems) > MOST_CURVES:
        yield Text(f"Curves of the other {len(problems) - MOST_CURVES} problems are in curves.csv.")
    if not pairs.empty:
        caption = (
            "How much more one agent earns than the other, and how likely a run of it earns more than a run of the other, "
            "ties counting half; both averaged over problems, with intervals over seeds, by Student's t."
        )
        yield table_of(pairs, caption, PAIRS, ["comparisons.csv"])


def _curve(name: str, problem: str, curves: pd.DataFrame, found: pd.DataFrame, outputs: Outputs) -> Picture:
    best = found.loc[found["problem"] == problem, "optimal_return"].dropna()
    drawn = curves[curves["problem"] == problem]
    figure = learning_curves(drawn, None if best.empty else float(best.iloc[0]), problem)
    window = int(drawn["window"].iloc[0])
    caption = (
        f"{problem}: running means of {window} episodes, averaged over runs, with intervals; dotted: the best known."
    )
    words = (
        f"Learning curves on {problem}: return and measurements by episode for {', '.join(drawn['agent'].unique())}."
    )
    return outputs.add_figure(name, figure, caption, words, "curves.csv")


def _commands(study: dict[str, Any], directory: Path) -> list[str]:
    source = study.get("source") or {}  # a study that a script made has no file
    again = ["run", source["file"], *(["--quick"] if source["quick"] else [])] if source.get("file") else None
    return common.commands(directory, again)


#: File name of the page.
PAGE = "report.html"


def build_report(directory: str | os.PathLike[str]) -> Path:
    """Make the report of a study; see `actmeasure.studies.report.build`."""
    place = Path(directory)
    results = read_results(place)
    own = REPORTS.get(results.study["name"])
    document, outputs = (own and own(results, place)) or study_report(results, place)
    outputs.add(PAGE, render(document).encode())
    outputs.write(place)
    return place / PAGE
