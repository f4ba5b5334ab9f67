"""Matplotlib figures and the files they are saved in; in black and grey, readable when printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import ActMeasureError, PlanError, import_extra, quoted
from actmeasure.file_access import check_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "LARGEST", "check_path", "draw_pair", "matplotlib_for", "new_figure", "save_figure"]

#: Supported file name endings.
SUFFIXES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")
#: Largest width and height of a picture, in inches.
LARGEST = 11.0
INK = "black"


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture, if it can be written; to be called before a long computation for it."""
    matplotlib_for("a picture")
    if not isinstance(path, (str, os.PathLike)):
        raise PlanError(f"the path is {quoted(path)}, expected the name of a picture such as plans.png")
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise PlanError(f"the picture {str(path)!r} has no ending that can be drawn; use one of: {', '.join(SUFFIXES)}")
    check_writable(path, "the picture", PlanError)
    return path


def new_figure(feature: str, width: float, height: float) -> Figure:
    """Return a new figure, which needs no display and leaves the state of pyplot alone."""
    figure: Figure = matplotlib_for(feature).figure.Figure(figsize=(width, height), layout="constrained")
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a path that `check_path` has returned."""
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise PlanError(f"the picture {str(path)!r} cannot be written: {error.strerror or error}") from error


def draw_pair(
    feature: str,
    path_or_axes: Any,
    draw: Callable[[Any], None],
    size: tuple[float, float],
    error: type[ActMeasureError],
    **layout: Any,
) -> Any:
    """Draw on a pair of axes, into a file, or on a new figure that a notebook or `pyplot.show` shows; return the axes.

    `size` is the width and height of a new figure in inches, `layout` are arguments of `Figure.subplots`.
    """
    matplotlib_for(feature)
    if isinstance(path_or_axes, (str, os.PathLike)):
        path = check_path(path_or_axes)
        figure = new_figure(feature, *size)
        axes = figure.subplots(**layout)
        draw(axes)
        save_figure(figure, path)
        return axes
    if path_or_axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=size, layout="constrained", **layout)[1]
    else:
        axes = np.asarray(path_or_axes, dtype=object).ravel()
        if len(axes) != 2 or not all(hasattr(one, "fill_between") for one in axes):
            raise error(f"plot was given {quoted(path_or_axes)}, expected a path, two matplotlib axes, or nothing")
    draw(axes)
    return axes


def matplotlib_for(feature: str) -> Any:
    """Import and return `matplotlib` with `matplotlib.figure`; a `MissingExtraError` names the feature if it is missing."""
    import_extra("matplotlib.figure", feature, "plots")
    return import_extra("matplotlib", feature, "plots")
