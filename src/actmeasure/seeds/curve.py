"""Learning curves as pictures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.errors import AgentError, quoted
from actmeasure.planners.drawing import INK, check_path, new_figure, save_figure
from actmeasure.planners.extras import matplotlib_for
from actmeasure.settings import whole
from actmeasure.statistics import LAST, half_width
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    from actmeasure.seeds.runs import SeedRuns

__all__ = ["Curve", "learning_curve", "plot_runs", "running_mean"]

EDGE, BAND = "0.45", "0.85"
#: Width and height in inches, and the heights of return and measurements.
SIZE, HEIGHTS = (6.4, 4.8), (2, 1)
#: More points than this are not to be seen, but make a drawing large.
MOST_POINTS = 1000


class Curve(NamedTuple):
    """A mean over seeds and its interval, each of shape (n_episodes,); not numbers where fewer than two seeds are left."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def running_mean(values: npt.ArrayLike, window: int) -> FloatArray:
    """Mean of each value and those before it, `window` in all; of fewer at the beginning.

    Examples
    --------
    >>> running_mean([1, 2, 3, 4], 2).tolist()
    [1.0, 1.5, 2.5, 3.5]
    """
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    end = np.arange(1, len(sums))
    begin = np.maximum(0, end - window)
    means: FloatArray = (sums[end] - sums[begin]) / (end - begin)
    return means


def learning_curve(runs: SeedRuns, name: str, window: int) -> Curve:
    """The mean over seeds of running means; seeds that were cut short count as far as they go."""
    longest = max(len(one) for one in runs.episodes)
    smooth = np.full((len(runs), longest), np.nan)
    for row, one in zip(smooth, runs.episodes, strict=True):
        row[: len(one)] = running_mean(getattr(one, name), window)
    count = np.isfinite(smooth).sum(axis=0)
    mean = np.nansum(smooth, axis=0) / count
    squares = np.nansum((smooth - mean) ** 2, axis=0)
    half = half_width(np.sqrt(squares / np.maximum(count - 1, 1)), count)
    return Curve(mean, mean - half, mean + half)


def plot_runs(runs: SeedRuns, path_or_axes: Any, window: int | None) -> Any:
    """Draw on a pair of axes, into a file or on a new figure; the axes are returned."""
    matplotlib_for("SeedRuns.plot")
    size = _default_window(runs) if window is None else whole(window, "window", 1, error=AgentError)
    if isinstance(path_or_axes, (str, os.PathLike)):
        place = check_path(path_or_axes)
        figure = new_figure("SeedRuns.plot", *SIZE)
        axes = _draw(runs, figure.subplots(2, 1, sharex=True, height_ratios=HEIGHTS), size)
        save_figure(figure, place)
        return axes
    return _draw(runs, _shown_axes() if path_or_axes is None else _checked(path_or_axes), size)


def _default_window(runs: SeedRuns) -> int:
    """As many episodes as results are means of, but a tenth of a short run."""
    longest = max(len(one) for one in runs.episodes)
    return max(1, min(LAST, longest // 10))


def _shown_axes() -> Any:
    """Axes that a notebook or `pyplot.show` shows."""
    from matplotlib import pyplot

    return pyplot.subplots(2, 1, figsize=SIZE, sharex=True, height_ratios=HEIGHTS, layout="constrained")[1]


def _checked(axes: Any) -> Any:
    pair = np.asarray(axes, dtype=object).ravel()
    if len(pair) != 2 or not all(hasattr(one, "fill_between") for one in pair):
        raise AgentError(f"plot was given {quoted(axes)}, expected a path, two matplotlib axes, or nothing")
    return pair


def _draw(runs: SeedRuns, axes: Any, window: int) -> Any:
    above, below = axes
    _draw_curve(above, runs, learning_curve(runs, "scalarized_return", window), _label(runs, window))
    _draw_curve(below, runs, learning_curve(runs, "measurements", window), None)
    above.set_ylabel("return")
    below.set_ylabel("measurements")
    below.set_xlabel("episode")
    below.set_ylim(bottom=min(0.0, below.get_ylim()[0]))
    above.set_title(runs.agent)
    above.legend(frameon=False, fontsize="small")
    return axes


def _label(runs: SeedRuns, window: int) -> str:
    over = f"running mean over {window} episodes" if window > 1 else "each episode"
    return over if len(runs) == 1 else f"mean of {len(runs)} seeds, {over}"


def _draw_curve(axes: Any, runs: SeedRuns, curve: Curve, label: str | None) -> None:
    length = len(curve.mean)
    shown = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).astype(int))
    episode = runs.first_episode + shown + 1  # counted from 1, as the number of episodes done
    mean, low, high = (values[shown] for values in curve)
    if len(runs) > 1:
        # The edge shows where the band ends on a printer that leaves out light greys.
        name = None if label is None else "95 % interval"
        axes.fill_between(episode, low, high, facecolor=BAND, edgecolor=EDGE, linewidth=0.5, label=name)
    axes.plot(episode, mean, color=INK, linewidth=1.5, label=label, marker="o" if length == 1 else "", markersize=4)
    axes.spines[["top", "right"]].set_visible(False)
