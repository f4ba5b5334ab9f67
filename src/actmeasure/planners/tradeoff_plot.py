"""The frontier as a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import PlanError, quoted
from actmeasure.planners.drawing import INK, check_path, new_figure, save_figure
from actmeasure.planners.extras import matplotlib_for

if TYPE_CHECKING:
    from actmeasure.planners.frontier import Frontier

__all__ = ["plot_frontier"]

BOUND, BAND = "0.45", "0.88"
#: Width and height in inches.
SIZE = (9.0, 3.6)
#: The picture goes on so far beyond the highest price that matters.
MARGIN = 1.3


def plot_frontier(frontier: Frontier, path_or_axes: str | os.PathLike[str] | Sequence[Any] | None = None) -> Any:
    """Draw a frontier on a pair of axes, into a file or on a new figure; the axes are returned."""
    matplotlib_for("Frontier.plot")
    if isinstance(path_or_axes, (str, os.PathLike)):
        place = check_path(path_or_axes)
        figure = new_figure("Frontier.plot", *SIZE)
        axes = _drawn(frontier, figure.subplots(1, 2))
        save_figure(figure, place)
        return axes
    return _drawn(frontier, _shown_axes() if path_or_axes is None else _checked(path_or_axes))


def _drawn(frontier: Frontier, axes: Any) -> Any:
    _draw_values(frontier, axes[0])
    _draw_rewards(frontier, axes[1])
    return axes


def _shown_axes() -> Any:
    """Axes that a notebook or `pyplot.show` shows."""
    from matplotlib import pyplot

    return pyplot.subplots(1, 2, figsize=SIZE, layout="constrained")[1]


def _checked(axes: Any) -> Any:
    pair = np.asarray(axes, dtype=object).ravel()
    if len(pair) != 2 or not all(hasattr(one, "fill_between") for one in pair):
        raise PlanError(f"plot was given {quoted(axes)}, expected a path, two matplotlib axes, or nothing")
    return pair


def _draw_values(frontier: Frontier, axes: Any) -> None:
    end = _last_price(frontier)
    crossings = [piece.low for piece in frontier.pieces if piece.low < end]
    prices = np.unique([*crossings, *frontier.prices[frontier.prices <= end], end])
    lower, upper = np.array([frontier.value(price) for price in prices]).T
    low, high = frontier.break_even
    if low < end:
        # An interval that is closed to a point is still to be seen.
        axes.axvspan(low, min(high, end), facecolor=BAND, edgecolor=BOUND, linewidth=1, label="looking breaks even")
    axes.plot(prices, upper, color=BOUND, linestyle="--", linewidth=1, label="at most")
    axes.plot(prices, lower, color=INK, linewidth=1.5, label="achieved")
    axes.plot(crossings[1:], [frontier.value(p)[0] for p in crossings[1:]], "o", color=INK, markersize=3)
    _finish(axes, "price of a look" if _is_number(frontier) else "price (times the cost table)", "discounted value")


def _draw_rewards(frontier: Frontier, axes: Any) -> None:
    looks = np.array([piece.discounted_looks for piece in frontier.pieces])
    rewards = np.array([piece.discounted_reward for piece in frontier.pieces])
    budgets = np.linspace(looks.min(), looks.max(), 201)
    upper = [frontier.budget(float(budget)).upper for budget in budgets]
    axes.plot(budgets, upper, color=BOUND, linestyle="--", linewidth=1, label="at most")
    axes.plot(looks, rewards, color=INK, linewidth=1.5, marker="o", markersize=3, label="schedules and coin tosses")
    _finish(axes, "discounted looks" if _is_number(frontier) else "discounted cost at price 1", "discounted reward")


def _finish(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _last_price(frontier: Frontier) -> float:
    """The price at which the picture ends: a little beyond the last change of schedule."""
    interesting = [frontier.pieces[-1].low, *(price for price in frontier.break_even if math.isfinite(price))]
    return MARGIN * max(interesting) or MARGIN * (float(frontier.prices[-1]) or 1.0)


def _is_number(frontier: Frontier) -> bool:
    return isinstance(frontier.model.measuring_cost, float)
