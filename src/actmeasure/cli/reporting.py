"""The command `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]

Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder that actmeasure run or actmeasure paper has written.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Examples:  actmeasure report results/paper  |  actmeasure report results/mine")(report)


def report(directory: Directory) -> None:
    """Make the report of a study anew from what is stored, whether it is finished or not.

    Tables (.csv), figures (.svg and .png) and the page report.html go to the same folder; the same results give the same files.
    """
    from actmeasure.studies.report import build

    typer.echo(build(directory))
