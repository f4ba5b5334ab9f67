"""The worth of looking along a plan, as a picture."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from actmeasure.planners.drawing import INK, LARGEST, check_path, new_figure, save_figure
from actmeasure.planners.wording import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from actmeasure.planners.explanation import Explanation

__all__ = ["plot_explanation"]

BLIND = "#c9d1d6"
#: Characters of a title, over some lines.
TITLE_WIDTH = 150


def plot_explanation(explanation: Explanation, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the measuring value along a plan, and save the picture if a path is given."""
    place = None if path is None else check_path(path)
    steps = explanation.steps
    names = [explanation.model.action_name(step.action) for step in steps]
    values = np.array([step.measuring_value for step in steps])
    numbers = np.arange(1, len(steps) + 1)
    figure = new_figure("Explanation.plot", min(LARGEST, max(4.8, 1.2 + 0.55 * len(steps))), 3.6)
    axes = figure.add_subplot()
    looks = np.array([step.looks for step in steps])
    shown = np.isfinite(values)
    axes.bar(numbers[shown & ~looks], values[shown & ~looks], 0.6, color=BLIND, edgecolor=INK, label="goes on blind")
    axes.bar(numbers[shown & looks], values[shown & looks], 0.6, color=INK, edgecolor=INK, label="looks")
    axes.axhline(0, color=INK, linewidth=1)
    for number in numbers[~shown]:
        axes.annotate("?", (number, 0), (0, 4), textcoords="offset points", ha="center", fontsize=12)
    axes.margins(y=0.22)
    for number in numbers[looks & shown]:
        value = values[number - 1]
        axes.annotate(
            "look", (number, value), (0, 4 if value >= 0 else -4), textcoords="offset points", ha="center",
            va="bottom" if value >= 0 else "top", fontweight="bold",
        )  # fmt: skip
    _label_steps(axes, numbers, names)
    axes.set_xlim(0.2, len(steps) + 0.8)
    axes.set_ylabel("measuring value\n(above 0: look)")
    axes.set_title(shortened(explanation.title, TITLE_WIDTH), fontsize=10, loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    if place is not None:
        save_figure(figure, place)
    return figure


def _label_steps(axes: Axes, numbers: npt.NDArray[np.int64], names: list[str]) -> None:
    """Step and action under the bars, of as many as there is room for."""
    stride = max(1, math.ceil(len(numbers) / 18))
    axes.set_xticks(
        numbers[::stride], [f"{number}\n{name}" for number, name in zip(numbers, names, strict=True)][::stride]
    )
    axes.set_xlabel("step and its action")
