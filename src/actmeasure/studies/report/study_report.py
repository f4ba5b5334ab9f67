"""The report of a study: for each part a table, learning curves, and comparisons of the agents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from actmeasure.studies.report import REPORTS, common, export, tables
from actmeasure.studies.report.document import Column, Document, Outputs, Picture, Section, Text, render, table_of
from actmeasure.studies.report.figures import learning_curves, profile, sample_efficiency, sensitivity
from actmeasure.studies.report.tables import best_known
from actmeasure.studies.results import Results, read_results

__all__ = ["build_report", "report_with", "study_report"]

#: Most problems of a part for which learning curves are drawn.
MOST_CURVES = 12
#: Most panels side by side in a sensitivity plot; more problems give more plots.
MOST_PANELS = 3

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
SCORES = [
    Column("agent", "agent"), Column("problems", "problems", 0), Column("seeds", "runs", 0),
    Column("normalised score", "score", 3, ("low", "high")),
    Column("interquartile mean", "iqm", 3, ("iqm_low", "iqm_high")),
]  # fmt: skip
SWEEPS = [
    Column("sweep", "sweep"), Column("setting", "setting"), Column("value", "shown"), Column("line", "line"),
    Column("runs", "runs", 0), Column("return", "scalarized_return", 3, ("low", "high")),
    Column("looks", "measurements", 2, ("measurements_low", "measurements_high")),
]  # fmt: skip
PAIRS = [
    Column("agent", "agent"), Column("other", "other"), Column("problems", "problems", 0),
    Column("earns more by", "difference", 3, ("difference_low", "difference_high")),
    Column("probability that it earns more", "probability", 2, ("low", "high")),
]  # fmt: skip


def study_report(results: Results, directory: Path) -> tuple[Document, Outputs]:
    """Return the page, and the files beside it."""
    return report_with(results, _commands(results.study, directory), {})


def report_with(
    results: Results, commands: list[str], bounds: Mapping[tuple[str, str], float]
) -> tuple[Document, Outputs]:
    """Return the page, and the files beside it.

    Parameters
    ----------
    results : Results
    commands : list of str
        How the study is run again.
    bounds : mapping
        Largest returns of problems for which nothing can be planned, by part and label.
    """
    outputs = Outputs()
    study, means = results.study, tables.run_means(results.episodes)
    best = tables.with_bounds(best_known(study, results.plans), bounds)
    summaries = tables.summaries(means)
    found = summaries.merge(best, on=["part", "problem"], how="left")
    scale = tables.scales(study, means, best)
    scored = tables.scores(means, scale)
    frames = {
        "results": found, "plans": results.plans, "curves": tables.curves(results.episodes),
        "comparisons": tables.improvements(means), "scores": tables.aggregates(scored), "profiles": tables.profiles(scored),
        "efficiency": tables.efficiency(results.episodes, scale), "scales": scale,
        "sensitivities": tables.sensitivities(study, summaries),
    }  # fmt: skip
    for name, frame in frames.items():
        outputs.add_table(f"{name}.csv", frame)
    sections = [Section("What was run", [Text(common.HOW_TO_READ), common.parts_table(results)])]
    for part in study["parts"]:
        here = {name: frame[frame["part"] == part["name"]] for name, frame in frames.items()}
        far = common.part_so_far(results, part["name"])
        sections.append(Section(part["title"], [*far, *_part(part["name"], here, outputs)]))
    sections.append(common.machine(study, commands))
    title, name = results.study["title"], results.study["name"]
    return Document(title, f"Report of the study {name}", common.warnings(results), sections), outputs


def _part(name: str, here: dict[str, pd.DataFrame], outputs: Outputs) -> Iterator[object]:
    found, plans, curves, pairs = (here[frame] for frame in ("results", "plans", "curves", "comparisons"))
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
    yield from _over_problems(name, here, outputs)
    yield from _sweeps(name, here["sensitivities"], outputs)


def _over_problems(name: str, here: dict[str, pd.DataFrame], outputs: Outputs) -> Iterator[object]:
    """Yield tables and figures of the normalised scores over all problems of a part, if it has several."""
    scored, shares, scale = here["scores"], here["profiles"], here["scales"]
    if scored.empty or scored["problems"].max() < 2:
        return
    ends = "; ".join(
        f"0 is {_counted(scale['worst_is'] == worst, 'the return of random', 'the lowest mean of an agent', worst)}"
        for worst in scale["worst_is"].unique()
    ) + "; " + "; ".join(
        f"1 is {_counted(scale['best_is'] == best, 'the best known return', 'the highest mean of an agent', best)}"
        for best in scale["best_is"].unique()
    )  # fmt: skip
    caption = (
        f"Normalised scores, averaged over problems for every seed, with intervals over seeds: {ends} (scales.csv)."
    )
    yield table_of(scored, caption, SCORES, ["scores.csv", "scales.csv"])
    agents = ", ".join(scored["agent"])
    yield outputs.add_figure(
        f"profile-{name}", profile(shares, "performance profiles"),
        "Performance profiles: the share of problems on which a run's normalised score is above a threshold, with intervals.",
        f"Performance profiles of {agents}.", "profiles.csv",
    )  # fmt: skip
    curves = here["efficiency"]
    window = int(curves["window"].max())
    yield outputs.add_figure(
        f"efficiency-{name}", sample_efficiency(curves),
        f"Sample efficiency: running means of {window} episodes of the normalised score over all problems, interquartile mean "
        "over seeds, with intervals.",
        f"Normalised score by episode of {agents}.", "efficiency.csv",
    )  # fmt: skip


def _counted(is_so: pd.Series[bool], known: str, other: str, which: str) -> str:
    """Return what an end of the scale stands for, and on how many problems unless that is so on all of them."""
    text = known if which in ("random", "best known") else other
    return text if is_so.all() else f"{text} on {int(is_so.sum())} of {len(is_so)} problems"


def _sweeps(name: str, rows: pd.DataFrame, outputs: Outputs) -> Iterator[object]:
    """Yield a sensitivity plot for each swept setting of a part, and a table of all."""
    number = 0
    for (sweep, setting), found in rows.groupby(["sweep", "setting"], sort=False, observed=True):
        problems = list(dict.fromkeys(found["panel"]))
        for first in range(0, len(problems), MOST_PANELS):
            panels = problems[first : first + MOST_PANELS]
            number += 1
            drawn = found[found["panel"].isin(panels)]
            of = "" if panels == [sweep] else f" on {', '.join(panels)}"
            caption = f"Sensitivity of {sweep} to {setting}{of}: return and looks, with intervals."
            words = f"Return and looks of {sweep} by {setting}, for {', '.join(dict.fromkeys(drawn['line']))}."
            figure = sensitivity(drawn, str(setting))
            yield outputs.add_figure(f"sensitivity-{name}-{number}", figure, caption, words, "sensitivities.csv")
    if not rows.empty:
        shown = rows.assign(shown=[str(value) for value in rows["value"]])
        yield table_of(shown, "Sweeps: what is earned for each value of a setting.", SWEEPS, ["sensitivities.csv"])


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
#: File name of the methods, for an appendix.
METHODS = "methods.md"


def build_report(directory: str | os.PathLike[str], latex: bool = False, markdown: bool = False) -> Path:
    """Make the report of a study; see `actmeasure.studies.report.build`."""
    folder = Path(directory)
    results = read_results(folder)
    own = REPORTS.get(results.study["name"])
    document, outputs = (own and own(results, folder)) or study_report(results, folder)
    if latex:
        export.add_latex(document, outputs)
    if markdown:
        export.add_markdown(document, outputs)
    outputs.add(METHODS, export.methods_text(results.study).encode())
    outputs.add(PAGE, render(document).encode())
    outputs.write(folder)
    return folder / PAGE
