"""What training with several seeds returns."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from actmeasure.drawing import INK, check_path, matplotlib_for, new_figure, pandas_for, save_figure
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, MissingExtraError, quoted, unknown_name
from actmeasure.files.atomic import check_place, explain, replacing
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import whole
from actmeasure.statistics import LAST, half_width
from actmeasure.text import short_number, text_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LAST",
    "Curve",
    "Estimate",
    "SeedRuns",
    "Stopped",
    "check_table_path",
    "learning_curve",
    "plot_runs",
    "results_table",
    "running_mean",
    "save_table",
]

FIGURES = ("scalarized_return", "reward", "measurements", "steps")

#: Why training ended: all is done, Ctrl-C, or a worker process could not go on.
Stopped = Literal["done", "interrupted", "failed"]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and how sure it is.

    Attributes
    ----------
    mean : float
    deviation : float
        Standard deviation between seeds; not a number for a single one.
    low, high : float
        95 % interval for the mean, by Student's t; not numbers for a single seed, and where all seeds are alike: without any
        spread nothing says how different another seed may be.
    """

    mean: float
    deviation: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> Estimate:
        """From one value per seed."""
        mean, low, high = statistics.mean(values)
        deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        alike = len(values) > 1 and math.isnan(low)
        return cls(mean, 0.0 if alike else deviation, low, high)


@dataclass(frozen=True, eq=False)
class SeedRuns:
    """The episodes of an agent that was trained several times, with different seeds.

    Attributes
    ----------
    agent : str
        Its name.
    seeds : tuple of int
        Those of which at least one episode is finished.
    episodes : tuple of Episodes
        One for each of the seeds.
    first_episode : int
        The number of the first episode; 0, unless the agent had been trained before.
    stopped : str
        "done"; or else "interrupted" (Ctrl-C) or "failed" (a worker process could not go on), and some seeds have fewer
        episodes than asked for, or none.
    note : str
        What was left undone and why, in a sentence; empty where all is done.
    """

    agent: str
    seeds: tuple[int, ...]
    episodes: tuple[Episodes, ...]
    first_episode: int = 0
    stopped: Stopped = "done"
    note: str = ""

    def __len__(self) -> int:
        return len(self.seeds)

    def means(self, last: int = LAST) -> dict[str, FloatArray]:
        """Means of every seed's last episodes: return, reward, measurements and steps, each of shape (n_seeds,)."""
        count = whole(last, "last", 1, error=AgentError)
        return {
            name: np.array([getattr(one, name)[-count:].mean() for one in self.episodes], dtype=np.float64)
            for name in FIGURES
        }

    def summary(self, last: int = LAST) -> dict[str, Estimate]:
        """What `means` gives, as a mean over seeds with its spread and a 95 % interval (Student's t)."""
        return {name: Estimate.of(values) for name, values in self.means(last).items()}

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A table by columns, with a row for every seed and episode: seed, episode, and those of `Episodes`."""
        lengths = [len(one) for one in self.episodes]
        numbers = [np.arange(self.first_episode, self.first_episode + length) for length in lengths]
        table: dict[str, npt.NDArray[Any]] = {
            "seed": np.repeat(np.array(self.seeds), lengths),
            "episode": np.concatenate(numbers),
        }
        for field in fields(Episodes):
            table[field.name] = np.concatenate([getattr(one, field.name) for one in self.episodes])
        return table

    def to_pandas(self) -> pd.DataFrame:
        """A table with a row for every seed and episode (needs the extra `data`)."""
        table: pd.DataFrame = pandas_for("SeedRuns.to_pandas").DataFrame(self.columns())
        return table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a row for every seed and episode as `.csv` or `.parquet` (needs the extra `data`), by the path's ending."""
        save_table(self.columns(), check_table_path(path))

    def plot(self, path_or_axes: Any = None, window: int | None = None) -> Any:
        """Draw the learning curve: return and measurements against the episode (needs the extra `plots`).

        Every seed's episodes are smoothed by a running mean; what is drawn is the mean over seeds, with a 95 % interval.

        Parameters
        ----------
        path_or_axes : path, or two matplotlib axes, optional
            A picture to write, or where to draw; by default a new figure of pyplot.
        window : int, optional
            Episodes in a running mean; by default 50, or fewer in a short run.

        Returns
        -------
        array of two matplotlib axes
        """
        return plot_runs(self, path_or_axes, window)

    def table(self, last: int = LAST) -> str:
        """The results as text: every seed, unless there are many, then mean, deviation and interval."""
        return results_table(self, last)

    def __repr__(self) -> str:
        found = self.summary()["scalarized_return"]
        return f"SeedRuns({self.agent!r}, {len(self)} seed{'s' * (len(self) != 1)}, mean return {found.mean:.4g})"


# ----------------------------------------------------------------------------------------------------
# Results over seeds as text.
# ----------------------------------------------------------------------------------------------------


#: Of more seeds than this only the lowest and the highest are shown.
MANY = 10
#: What is shown, with how many digits.
SHOWN = {"scalarized_return": ".4f", "measurements": ".2f", "steps": ".2f"}


def results_table(runs: SeedRuns, last: int) -> str:
    """A table with a row per seed, or the extremes of many, and what they say together."""
    means = runs.means(last)
    rows = _extremes(means) if len(runs) > MANY else _seed_rows(runs, means)
    if len(runs) > 1:
        rows += _together(runs.summary(last))
    lines = text_table(("seed", "return", "measurements", "steps", "episodes"), rows, "<>>>>")
    return "\n".join([_title(runs, last), "", *lines])


def _title(runs: SeedRuns, last: int) -> str:
    shortest = min(len(one) for one in runs.episodes)
    seeds = "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"
    over = f"the last {last} episodes" if shortest >= last else f"up to {last} last episodes"
    return f"{runs.agent}, {seeds}: means of {over}"


def _seed_rows(runs: SeedRuns, means: dict[str, FloatArray]) -> list[list[str]]:
    return [
        [str(seed), *(short_number(means[name][i], form) for name, form in SHOWN.items()), f"{len(runs.episodes[i]):,}"]
        for i, seed in enumerate(runs.seeds)
    ]


def _extremes(means: dict[str, FloatArray]) -> list[list[str]]:
    return [
        [word, *(short_number(float(pick(means[name])), form) for name, form in SHOWN.items()), ""]
        for word, pick in (("lowest", np.min), ("highest", np.max))
    ]


def _together(found: dict[str, Estimate]) -> list[list[str]]:
    def row(word: str, shown: Callable[[Estimate, str], str]) -> list[str]:
        return [word, *(shown(found[name], form) for name, form in SHOWN.items()), ""]

    return [
        row("mean", lambda estimate, form: short_number(estimate.mean, form)),
        row("standard deviation", lambda estimate, form: short_number(estimate.deviation, form)),
        row("95 % interval", _interval),
    ]


def _interval(estimate: Estimate, form: str) -> str:
    if math.isnan(estimate.low):
        return "all alike"
    return f"{short_number(estimate.low, form)} to {short_number(estimate.high, form)}"


# ----------------------------------------------------------------------------------------------------
# Tables of episodes as files.
# ----------------------------------------------------------------------------------------------------


SUFFIXES = (".csv", ".parquet")


def check_table_path(path: str | os.PathLike[str]) -> Path:
    """The path of a table that can be written; call it before working long for one."""
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise AgentError(f"the table {str(place)!r} cannot be written: {_unknown_ending(place)}")
    if place.suffix.lower() == ".parquet":
        _parquet()
    check_place(place, "the table", AgentError)
    return place


def _unknown_ending(place: Path) -> str:
    return unknown_name("file ending", place.suffix, SUFFIXES)


def save_table(columns: Mapping[str, npt.NDArray[Any]], place: Path) -> None:
    """Write columns of equal length; the file is there completely or not at all."""
    write = _write_csv if place.suffix.lower() == ".csv" else _write_parquet
    try:
        with replacing(place) as file:
            write(columns, file)
    except OSError as error:
        raise AgentError(str(explain(error, place, "write"))) from error


def _write_csv(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    # Python's own numbers are written so that reading them gives back every bit.
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    text.detach()


def _write_parquet(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    arrow, parquet = _parquet()
    parquet.write_table(arrow.table(dict(columns)), file)


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("a .parquet file", "data") from error
    return pyarrow, pyarrow.parquet


# ----------------------------------------------------------------------------------------------------
# Learning curves as pictures.
# ----------------------------------------------------------------------------------------------------


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
