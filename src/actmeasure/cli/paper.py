"""The command `paper`."""

from __future__ import annotations

from typing import Annotated

import typer

from actmeasure.cli.output import Json
from actmeasure.cli.running import Address, EngineName, Keep, NoReport, Out, Workers, make_engine, run_and_report

__all__ = ["register"]

Quick = Annotated[
    bool, typer.Option("--quick", help="Every table and figure in small, within a minute, to see that it works.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:  actmeasure paper --quick  |  actmeasure paper --out results/paper  |  "
        "actmeasure paper --engine ray --address 10.0.0.1:6379"
    )(paper)


def paper(
    quick: Quick = False,
    out: Out = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    keep: Keep = False,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments, and set them beside the published numbers and the best that could be earned.

    Takes about 20 minutes on two cores. The results, table1.csv, a table and a picture for each figure, and report.html go to
    results/paper, or results/paper-quick. The report is there after the first results, with one seed of everything, and is
    renewed about once a minute. Whatever stops it, run it again and it does what is missing.
    """
    chosen = make_engine(engine, address, workers)
    from actmeasure.paper.experiments import paper_study

    run_and_report(paper_study(quick), out, chosen, not no_report, as_json, None, quick, keep)
