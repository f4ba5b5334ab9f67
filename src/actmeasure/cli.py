"""The command line. Anything heavy is imported inside the command that needs it, so that --help is instant."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from actmeasure import __version__, cli_planning

app = typer.Typer(
    name="actmeasure",
    help="When is it worth a look? Plan and learn where observing the state costs something.",
    epilog="Examples:  actmeasure solve frozen-lake  |  actmeasure tradeoff frozen-lake  |  actmeasure problems frozen-lake",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

cli_planning.register(app)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"actmeasure {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """When is it worth a look? Plan and learn where observing the state costs something."""


@app.command(epilog="Examples:  actmeasure problems  |  actmeasure problems frozen-lake  |  actmeasure problems --json")
def problems(
    name: Annotated[str | None, typer.Argument(help="Show one problem in full, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the problems that come with actmeasure, or show one in full."""
    from actmeasure.problems import PROBLEMS, make

    if name is not None:
        _describe("problem", name, PROBLEMS, as_json)
        if not as_json:
            typer.echo(f"\nAs an environment: gymnasium.make({_environment_id(name)!r}, ...)")
        return
    rows = []
    for problem, build in PROBLEMS.items():
        model = make(problem)
        rows.append(
            {
                "problem": problem,
                "states": model.n_states,
                "actions": model.n_actions,
                "environment": _environment_id(problem),
            }
            | _summary(build)
        )
    _print_table(rows, as_json)


@app.command(epilog="Examples:  actmeasure agents  |  actmeasure agents random  |  actmeasure agents --json")
def agents(
    name: Annotated[str | None, typer.Argument(help="Show one agent in full, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the agents that come with actmeasure, or show one in full."""
    from actmeasure.agents import AGENTS

    if name is not None:
        _describe("agent", name, AGENTS, as_json)
        return
    _print_table([{"agent": agent} | _summary(kind) for agent, kind in AGENTS.items()], as_json)


def _environment_id(problem: str) -> str:
    from actmeasure.envs.registration import environment_id

    return environment_id(problem)


def _summary(thing: object) -> dict[str, str]:
    from actmeasure.registry import summary

    return {"what": summary(thing)}


def _describe(kind: str, name: str, choices: dict[str, Any], as_json: bool) -> None:
    """Print a problem's or agent's whole description and its settings with their defaults."""
    import inspect

    from actmeasure.errors import ActMeasureError, unknown_name

    if name not in choices:
        raise ActMeasureError(unknown_name(kind, name, choices))
    thing = choices[name]
    parameters = inspect.signature(thing).parameters
    defaults = {key: value.default for key, value in parameters.items() if value.default is not inspect.Parameter.empty}
    description = inspect.cleandoc(thing.__doc__ or "")
    if as_json:
        settings = {key: defaults.get(key, "(required)") for key in parameters}
        typer.echo(json.dumps({kind: name, "description": description, "settings": settings}, indent=2))
        return
    shown = [f"{key}={defaults[key]!r}" if key in defaults else f"{key} (required)" for key in parameters]
    typer.echo(f"{name}({', '.join(shown)})\n\n{description}")


def _print_table(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    shown = [key for key in rows[0] if key != "environment"]  # in --json, and when one problem is shown
    for key, value in ((key, rows[0][key]) for key in shown):
        table.add_column(key, justify="right" if isinstance(value, int) else "left", no_wrap=key != "what")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in map(row.get, shown)))
    Console().print(table)
