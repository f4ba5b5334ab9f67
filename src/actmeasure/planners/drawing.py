"""Figures and the files they are saved in; greys and line styles only, so that a printout says the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from actmeasure.errors import PlanError, quoted
from actmeasure.files.places import check_place
from actmeasure.planners.extras import matplotlib_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "LARGEST", "check_path", "new_figure", "save_figure"]

#: Endings of file names that can be drawn.
SUFFIXES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")
#: No picture is wider or higher than this, in inches.
LARGEST = 11.0
INK = "black"


def check_path(path: str | os.PathLike[str]) -> Path:
    """The path of a picture that can be written; call it before working long for one."""
    matplotlib_for("a picture")
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(f"the path is {quoted(path)}, expected the name of a picture such as plans.png")
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise PlanError(
            f"the picture {str(place)!r} has no ending that can be drawn; use one of: {', '.join(SUFFIXES)}"
        )
    check_place(place, "the picture", PlanError)
    return place


def new_figure(feature: str, width: float, height: float) -> Figure:
    """A figure of its own, which needs no display and changes no setting of pyplot."""
    figure: Figure = matplotlib_for(feature).figure.Figure(figsize=(width, height), layout="constrained")
    return figure


def save_figure(figure: Figure, place: Path) -> None:
    """Write a figure to a path that `check_path` has let pass."""
    try:
        figure.savefig(place, dpi=130)
    except OSError as error:
        raise PlanError(f"the picture {str(place)!r} cannot be written: {error.strerror or error}") from error
