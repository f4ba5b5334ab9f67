"""The command line. Anything heavy is imported inside the command that needs it, so that --help is instant."""

from __future__ import annotations

from typing import Annotated

import typer

from actmeasure import __version__
from actmeasure.cli import fit, listing, plan, planning, studies, training

__all__ = ["app"]

app = typer.Typer(
    name="actmeasure",
    help="When is it worth a look? Plan and learn where observing the state costs something.",
    epilog="Examples:  actmeasure solve frozen-lake  |  actmeasure tradeoff frozen-lake  |  "
    "actmeasure train --problem frozen-lake --agent dyna-atmq  |  actmeasure fit records.csv --out fit.npz  |  "
    "actmeasure plan fit.npz --economics prices.toml --report plan.html",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for commands in (planning, fit, plan, training, studies, listing):
    commands.register(app)


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
