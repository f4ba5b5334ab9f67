"""The commands `run`, `paper`, `bench-suite` and `report`: studies, and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from actmeasure.cli.output import EXIT_CODES, Json, find_own_modules, print_json, say
from actmeasure.errors import ActMeasureError, MissingExtraError, StudyError, counted, unknown_name
from actmeasure.progress import study_bars

if TYPE_CHECKING:
    from actmeasure.studies import Engine, Study, StudyProgress

__all__ = ["register"]

ENGINES = ("local", "ray")
#: File name of a report.
PAGE = "report.html"

StudyFile = Annotated[
    Path,
    typer.Argument(
        metavar="STUDY",
        help="A .toml or .py file. A .py file is run: only give one that you trust.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of the results, by default results/NAME; run again to go on in it."),
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="local|ray", help="Processes of this machine, or a Ray cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of a Ray cluster's head; without it Ray is started here, and ended again."),
]
Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Trials at once; by default as many as there are cores, or as memory allows."),
]
Quick = Annotated[bool, typer.Option("--quick", help="The study in small: 2 seeds and 100 episodes at most.")]
QuickPaper = Annotated[
    bool, typer.Option("--quick", help="Every table and figure in small, within a minute, to see that it works.")
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Only run the trials; see: actmeasure report.")]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep stored results that other code has computed; the report says how many.")
]
Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder that actmeasure run or actmeasure paper has written.", show_default=False
    ),
]
Added = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="MODULE:CLASS",
        help="An agent of your own to add, from a module in this folder or installed.",
    ),
]
Latex = Annotated[
    bool,
    typer.Option(
        "--latex", help="Also write every table as table-N.tex (for booktabs and graphicx), and figures as .pdf."
    ),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Also write every table as table-N.md.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        epilog="Examples:  actmeasure run study.toml --out results/mine  |  actmeasure run study.py --quick  |  "
        "actmeasure run study.toml --engine ray --address 10.0.0.1:6379  |  actmeasure run study.toml --no-report --json"
    )(run)
    app.command(
        epilog="Examples:  actmeasure paper --quick  |  actmeasure paper --out results/paper  |  "
        "actmeasure paper --engine ray --address 10.0.0.1:6379"
    )(paper)
    app.command(
        "bench-suite",
        epilog="Examples:  actmeasure bench-suite --quick  |  actmeasure bench-suite  |  "
        "actmeasure bench-suite --agent my_module:MyAgent",
    )(bench_suite)
    app.command(epilog="Examples:  actmeasure report results/paper  |  actmeasure report results/mine --latex")(report)


def run(
    study: StudyFile,
    out: Out = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    quick: Quick = False,
    keep: Keep = False,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Run a study: every agent on every problem with every seed, and write its report.

    Results are stored trial by trial, and the report is renewed about once a minute. Whatever stops the study, run it again
    and it does what is missing; a changed setting is a new trial, and trials whose code has changed are run again. Exit code 1
    if trials failed or the report could not be written, 130 after Ctrl-C.
    """
    chosen = _make_engine(engine, address, workers)
    from actmeasure.studies import read_study

    spec = read_study(study)
    _run_and_report(spec.quick() if quick else spec, out, chosen, not no_report, as_json, study, quick, keep)


def paper(
    quick: QuickPaper = False,
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
    chosen = _make_engine(engine, address, workers)
    from actmeasure.paper import paper_study

    _run_and_report(paper_study(quick), out, chosen, not no_report, as_json, None, quick, keep)


def bench_suite(
    agent: Added = None,
    quick: Quick = False,
    out: Out = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    keep: Keep = False,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Run the benchmark: twelve fixed problems with certified or best known optima, and a leaderboard of all agents.

    The problems are the paper's, sepsis, the drone, maintenance, inspection with imperfect looks, and CartPole on a grid. Every
    --agent is added and stays: what is stored is not run again. Results and the leaderboard, report.html, go to
    results/bench-suite-1.
    """
    chosen = _make_engine(engine, address, workers)
    from actmeasure.studies.bench_suite import NAMES, added_agents
    from actmeasure.studies.bench_suite import bench_suite as suite

    find_own_modules(*(agent or ()))
    directory = Path("results") / NAMES[quick] if out is None else out
    study = suite(quick, added_agents(directory, agent or ()))
    _run_and_report(study, directory, chosen, not no_report, as_json, None, quick, keep)


def report(directory: Directory, latex: Latex = False, markdown: Markdown = False) -> None:
    """Make the report of a study anew from what is stored, whether it is finished or not.

    Tables (.csv), figures (.svg and .png), the page report.html, and methods.md with all settings, seeds, versions and the
    machine go to the same folder; the same results give the same files.
    """
    import actmeasure.paper
    import actmeasure.studies.bench_suite  # noqa: F401  (both register their reports)
    from actmeasure.studies.report import build

    typer.echo(build(directory, latex, markdown))


def _make_engine(name: str, address: str | None, workers: int | None) -> Engine:
    """Return the engine of that name."""
    if name not in ENGINES:
        raise StudyError(unknown_name("engine", name, ENGINES))
    if address is not None and name != "ray":
        raise StudyError("--address is of a Ray cluster; give --engine ray as well, or leave it out")
    if workers is not None and workers < 1:
        raise StudyError(f"--workers is {workers}, expected a whole number from 1 up")
    from actmeasure.studies import LocalEngine, RayEngine

    return LocalEngine(workers) if name == "local" else RayEngine(address, workers)


def _run_and_report(
    study: Study,
    out: Path | None,
    engine: Engine,
    with_report: bool,
    as_json: bool,
    file: Path | None = None,
    quick: bool = False,
    keep: bool = False,
) -> None:
    """Run a study with bars on the terminal, print its summary, and write its report, at intervals also while it runs."""
    from actmeasure.studies import run_study

    directory = Path("results") / study.name if out is None else out
    if with_report:
        say(_announcement(directory))
    try:
        with study_bars() as show, _interim_reports(directory, with_report) as renew:

            def watch(now: StudyProgress) -> None:
                show(now)
                renew(now)

            summary = run_study(study, directory, engine, watch, file=file, quick=quick, keep=keep, tell=say)
    except KeyboardInterrupt:  # Ctrl-C was pressed twice, or before anything began
        say(_closing_sentence("interrupted", 0, directory, None))
        raise typer.Exit(EXIT_CODES["interrupted"]) from None
    if not as_json:
        typer.echo(summary.table())
    for failure in summary.failures:
        say(f"Failed: {failure.trial}: {failure.why}")
    page, wanted = None, with_report and summary.stopped != "interrupted"
    try:
        page = _written_report(directory) if wanted else None
    finally:  # whatever becomes of the report, the study was run
        if as_json:
            print_json(summary.to_json() | {"report": None if page is None else str(page)})
    shown = directory / PAGE if with_report and page is None and (directory / PAGE).exists() else page
    say(_closing_sentence(summary.stopped, len(summary.failures), directory, shown))
    if summary.stopped != "done":
        raise typer.Exit(EXIT_CODES[summary.stopped])
    if wanted and page is None:
        raise typer.Exit(EXIT_CODES["failed"])


@contextmanager
def _interim_reports(directory: Path, wanted: bool) -> Iterator[Callable[[StudyProgress], None]]:
    """Give a function that has reports written while a study is run, if they are wanted and possible."""
    from actmeasure.studies.report import is_possible

    if not wanted or not is_possible():
        yield lambda now: None
        return
    from actmeasure.studies.report.interim import InterimReports

    with InterimReports(directory, say) as reports:
        yield reports.attend


def _announcement(directory: Path) -> str:
    """Return a sentence on where the report will be, or what to install for one."""
    from actmeasure.studies.report import is_possible

    if is_possible():
        return f"Report: {directory / PAGE}, from the first results on; renewed about once a minute"
    return f"There will be no report: {MissingExtraError('a report', 'report')}"


def _written_report(directory: Path) -> Path | None:
    """Write the report of a study and return its path; None, with a remark, if it cannot be written."""
    from actmeasure.studies.report import build

    try:
        page: Path = build(directory)
    except ActMeasureError as error:
        say(f"There is no report: {error}")
        return None
    return page


def _closing_sentence(stopped: str, failures: int, directory: Path, page: Path | None) -> str:
    where = f"Results: {directory}" if page is None else f"Report: {page}"
    if stopped == "interrupted":
        return f"Stopped with Ctrl-C; run the same again to do what is left. {where}"
    if stopped == "failed":
        return f"{counted(failures, 'trial')} failed; run the same again to try them once more. {where}"
    return where
