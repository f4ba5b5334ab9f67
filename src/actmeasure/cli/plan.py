"""The command `plan`."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from actmeasure.cli.output import Json, print_json, say
from actmeasure.cli.problem_options import MODEL_FILES, Settings, read_model, read_settings
from actmeasure.errors import ModelError, PlanError
from actmeasure.progress import status_line

if TYPE_CHECKING:
    from actmeasure.inspection import Advice, Economics, Fit
    from actmeasure.model import Model

__all__ = ["register"]

#: Exit code if the plan should not be used as it is.
NOT_TO_BE_USED = 3
#: Arrays of the file of a fit that the file of a model does not have.
OF_A_FIT = {"inspected.npy", "exposure.npy"}

Problem = Annotated[
    str,
    typer.Argument(
        metavar="MODEL_OR_FIT",
        help=f"A fit (.npz, from: actmeasure fit), a model file ({MODEL_FILES}), or the name of a problem "
        "(see: actmeasure problems).",
        show_default=False,
    ),
]
Prices = Annotated[
    Path | None, typer.Option("--economics", metavar="FILE.toml", help="Prices and units; a fit needs them.")
]
Price = Annotated[
    float | None,
    typer.Option(help="Price of an inspection in place of the one given; prices by state are multiplied by it."),
]
Currency = Annotated[str, typer.Option(help="Currency of a model's rewards, such as EUR.")]
Period = Annotated[str, typer.Option(help="Name of a model's step, such as year.")]
TimeLimit = Annotated[
    float, typer.Option(help="Seconds for everything; the notes name parts for which there was no time.")
]
Nodes = Annotated[
    int | None,
    typer.Option(
        help="Most nodes of a plan with imperfect or several inspections; as many as lose at most 1 % unless told."
    ),
]
Rule = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json", help="Your present rule as a policy graph; it may also stand in the file of prices."
    ),
]
Failures = Annotated[
    list[str] | None,
    typer.Option("--failure", metavar="STATE", help="A state of a model that is a failure; repeatable."),
]
Report = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write an interactive page, one .html file.")]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write pictures of the plan into a folder, each as .png and .svg.")
]
Table = Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the schedule as a table.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:  actmeasure plan fit.npz --economics prices.toml --report plan.html  |  "
        "actmeasure plan machine.json --price 50 --currency EUR --period week --csv schedule.csv  |  "
        "actmeasure plan maintenance --json"
    )(plan)


def plan(
    problem: Problem,
    economics: Prices = None,
    price: Price = None,
    report: Report = None,
    table: Table = None,
    figures: Figures = None,
    currency: Currency = "",
    period: Period = "period",
    time_limit: TimeLimit = 60.0,
    nodes: Nodes = None,
    rule: Rule = None,
    failures: Failures = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Plan when to inspect and what to do: a schedule, its costs, a comparison with usual policies, and its uncertainty.

    The costs are exact, and a bound certifies how far the plan is from the best possible. --report writes a page on which the
    last seen state can be chosen and the price of an inspection be changed. Exit code 3 says that the plan should not be used
    as it is: the model does not fit, estimates are not settled, or a price seems to be missing; the first lines say which.
    """
    if not period.strip():
        raise PlanError("--period is empty, expected the name of a step, such as year")
    _check_files(report, table, figures)
    subject, prices = _read(problem, economics, settings, currency, period)
    from actmeasure.inspection import advise
    from actmeasure.policy_graph import PolicyGraph

    with status_line() as show:
        advice = advise(
            subject,
            prices,
            price=price,
            currency=currency,
            period=period,
            title=_title(problem),
            time_limit=time_limit,
            progress=show,
            nodes=nodes,
            rule=None if rule is None else PolicyGraph.load(rule),
            failures=failures or (),
        )
    if table is not None:
        _write_table(advice, table)
        say(f"Table: {table}")
    if report is not None:
        from actmeasure.inspection.page import write_page

        write_page(advice, report)
        say(f"Page: {report}")
    if figures is not None:
        from actmeasure.inspection.pictures import write_figures

        say(f"Pictures: {len(write_figures(advice, figures))} files in {figures}")
    if as_json:
        from actmeasure.inspection.advice import summary

        print_json(summary(advice))
    else:
        typer.echo(str(advice))
    if not advice.is_usable:
        raise typer.Exit(NOT_TO_BE_USED)


def _title(problem: str) -> str:
    return f"Inspection plan for {Path(problem).stem}"


def _read(
    problem: str, economics: Path | None, settings: list[str] | None, currency: str, period: str
) -> tuple[Model | Fit, Economics | None]:
    """Return the model or fit, and the prices of a fit."""
    if Path(problem).suffix.lower() == ".csv":
        raise ModelError(f"{problem!r} holds records; fit a model to them first: actmeasure fit {problem}")
    if not _is_fit(problem):
        model = read_model(problem, read_settings(settings))  # raises first if it cannot be read
        if economics is not None:
            raise PlanError(
                f"{problem!r} is no fit but a model, which has its rewards already; leave --economics out, and name its units "
                "with --currency and --period"
            )
        return model, None
    if settings:
        raise ModelError(f"--set goes with a named problem, but {problem!r} is a fit; leave it out")
    if economics is None:
        raise PlanError(
            f"{problem!r} is a fit, which has no prices; give a file of prices with --economics prices.toml"
        )
    if currency or period != "period":
        raise PlanError("--currency and --period are for models; the units of a fit are in its file of prices")
    from actmeasure.inspection import Economics, Fit

    return Fit.load(problem), Economics.load(economics)


def _is_fit(problem: str) -> bool:
    """Return whether a file is that of a fit, without reading its contents."""
    path = Path(problem)
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist()) >= OF_A_FIT
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return False  # reading it as a model raises the error


def _check_files(report: Path | None, table: Path | None, figures: Path | None) -> None:
    """Raise a `PlanError` about files that cannot be written, before the plan is computed."""
    if report is not None:
        from actmeasure.inspection.page import check_page_path

        check_page_path(report)
    if figures is not None:
        from actmeasure.inspection.pictures import check_figures_path

        check_figures_path(figures)
    if table is not None:
        from actmeasure.file_access import check_suffix, check_writable

        check_writable(table, "the table", PlanError)
        check_suffix(table, "the table", (".csv",), PlanError)


def _write_table(advice: Advice, path: Path) -> None:
    """Write the schedule as a CSV file."""
    from actmeasure.file_access import explain, replacing

    records = list(advice.records())
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    try:
        with replacing(path) as file:
            file.write(text.getvalue().encode())
    except OSError as error:
        raise PlanError(str(explain(error, path, "write"))) from error
