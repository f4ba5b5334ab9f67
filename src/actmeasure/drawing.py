"""Figures and the files they are saved in; greys and line styles only, so that a printout says the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actmeasure.errors import MissingExtraError, PlanError, quoted
from actmeasure.files.atomic import check_place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "LARGEST", "check_path", "matplotlib_for", "new_figure", "pandas_for", "save_figure"]

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


# ----------------------------------------------------------------------------------------------------
# Optional dependencies, imported when they are needed, or a sentence that says how to install them.
# ----------------------------------------------------------------------------------------------------


def pandas_for(feature: str) -> Any:
    """The module `pandas`."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error
    return pandas


def matplotlib_for(feature: str) -> Any:
    """The module `matplotlib`, with `matplotlib.figure` loaded."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError(feature, "plots") from error
    return matplotlib
