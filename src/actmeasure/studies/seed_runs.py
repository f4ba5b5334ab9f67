"""The results of training with several seeds: statistics, text tables, files and learning curves."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from actmeasure.drawing import INK, draw_pair
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, counted, import_extra, unknown_name
from actmeasure.file_access import check_writable, explain, replacing
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import whole
from actmeasure.statistics import LAST, Interval, half_width, running_mean
from actmeasure.text import short_number, text_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LAST",
    "SeedRuns",
    "Stopped",
    "check_table_path",
    "learning_curve",
    "plot_runs",
    "results_table",
    "save_table",
]

#: Columns of `Episodes` that are averaged.
FIGURES = ("scalarized_return", "reward", "measurements", "steps")
#: Number of seeds above which a table shows only the lowest and the highest.
MOST_SEED_ROWS = 10
#: Columns of a text table and their formats.
SHOWN = {"scalarized_return": ".4f", "measurements": ".2f", "steps": ".2f"}
#: Endings of files of episodes.
SUFFIXES = (".csv", ".parquet")
#: Greys of the edge and the inside of an interval in a figure.
EDGE, BAND = "0.45", "0.85"
#: Width and height of a figure in inches, and relative heights of the panels for return and measurements.
SIZE, HEIGHTS = (6.4, 4.8), (2, 1)
#: Most points of a curve: more cannot be seen and make a file large.
MOST_POINTS = 1000
#: Why training ended: all episodes are done, Ctrl-C, or a worker process failed.
Stopped = Literal["done", "interrupted", "failed"]


@dataclass(frozen=True, eq=False)
class SeedRuns:
    """The episodes of an agent that was trained several times, with different seeds.

    Attributes
    ----------
    agent : str
        Name of the agent.
    seeds : tuple of int
        Seeds with at least one finished episode.
    episodes : tuple of Episodes
        One for each of the seeds.
    first_episode : int
        The number of the first episode; 0, unless the agent had been trained before.
    stopped : str
        "done"; or "interrupted" (Ctrl-C) or "failed" (a worker process could not go on), where some seeds have fewer episodes
        than asked for, or none.
    note : str
        A sentence on what was left undone and why; empty where all is done.
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
        """Return the means of every seed's last episodes: return, reward, measurements and steps, each of shape (n_seeds,)."""
        count = whole(last, "last", 1, error=AgentError)
        return {
            name: np.array([getattr(one, name)[-count:].mean() for one in self.episodes], dtype=np.float64)
            for name in FIGURES
        }

    def summary(self, last: int = LAST) -> dict[str, Interval]:
        """Return the mean over seeds of what `means` returns, with standard deviation and 95 % interval (Student's t)."""
        return {name: statistics.mean(values) for name, values in self.means(last).items()}

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return columns with a row for every seed and episode: seed, episode, and those of `Episodes`."""
        lengths = [len(one) for one in self.episodes]
        numbers = [np.arange(self.first_episode, self.first_episode + length) for length in lengths]
        table: dict[str, npt.NDArray[Any]] = {
            "seed": np.repeat(np.array(self.seeds), lengths),
            "episode": np.concatenate(numbers),
        }
        columns = [one.columns() for one in self.episodes]
        return table | {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with a row for every seed and episode (needs the extra `data`)."""
        table: pd.DataFrame = import_extra("pandas", "SeedRuns.to_pandas", "data").DataFrame(self.columns())
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
        """Return a text table: a row per seed, or the extremes of more than ten; then mean, standard deviation and interval."""
        return results_table(self, last)

    def __repr__(self) -> str:
        found = self.summary()["scalarized_return"]
        return f"SeedRuns({self.agent!r}, {counted(len(self), 'seed')}, mean return {found.mean:.4g})"


def results_table(runs: SeedRuns, last: int) -> str:
    """Return the text table of `SeedRuns.table`."""
    means = runs.means(last)
    rows = _extremes(means) if len(runs) > MOST_SEED_ROWS else _seed_rows(runs, means)
    if len(runs) > 1:
        rows += _together(runs.summary(last))
    lines = text_table(("seed", "return", "measurements", "steps", "episodes"), rows, "<>>>>")
    return "\n".join([_title(runs, last), "", *lines])


def _title(runs: SeedRuns, last: int) -> str:
    shortest = min(len(one) for one in runs.episodes)
    seeds = counted(len(runs), "seed")
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


def _together(found: dict[str, Interval]) -> list[list[str]]:
    def row(word: str, shown: Callable[[Interval, str], str]) -> list[str]:
        return [word, *(shown(found[name], form) for name, form in SHOWN.items()), ""]

    return [
        row("mean", lambda estimate, form: short_number(estimate.mean, form)),
        row("standard deviation", lambda estimate, form: short_number(estimate.deviation, form)),
        row("95 % interval", _interval),
    ]


def _interval(estimate: Interval, form: str) -> str:
    if math.isnan(estimate.low):
        return "all alike"
    return f"{short_number(estimate.low, form)} to {short_number(estimate.high, form)}"


def check_table_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table after checking that it can be written; called before a long run."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        unknown = unknown_name("file ending", path.suffix, SUFFIXES)
        raise AgentError(f"the table {str(path)!r} cannot be written: {unknown}")
    if path.suffix.lower() == ".parquet":
        _parquet()
    check_writable(path, "the table", AgentError)
    return path


def save_table(columns: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """Write columns of equal length; the file is written completely or not at all."""
    write = _write_csv if path.suffix.lower() == ".csv" else _write_parquet
    try:
        with replacing(path) as file:
            write(columns, file)
    except OSError as error:
        raise AgentError(str(explain(error, path, "write"))) from error


def _write_csv(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    # As Python floats, whose text gives back every bit when it is read.
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    text.detach()


def _write_parquet(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    _parquet().write_table(import_module("pyarrow").table(dict(columns)), file)


def _parquet() -> Any:
    return import_extra("pyarrow.parquet", "a .parquet file", "data")


def plot_runs(runs: SeedRuns, path_or_axes: Any, window: int | None) -> Any:
    """Draw on a pair of axes, into a file or on a new figure, and return the axes."""
    size = _default_window(runs) if window is None else whole(window, "window", 1, error=AgentError)
    layout = {"nrows": 2, "ncols": 1, "sharex": True, "height_ratios": HEIGHTS}
    return draw_pair("SeedRuns.plot", path_or_axes, lambda axes: _draw(runs, axes, size), SIZE, AgentError, **layout)


def _default_window(runs: SeedRuns) -> int:
    """Return the default window: `LAST` episodes, or a tenth of a short run."""
    longest = max(len(one) for one in runs.episodes)
    return max(1, min(LAST, longest // 10))


def _draw(runs: SeedRuns, axes: Any, window: int) -> None:
    above, below = axes
    _draw_curve(above, runs, learning_curve(runs, "scalarized_return", window), _label(runs, window))
    _draw_curve(below, runs, learning_curve(runs, "measurements", window), None)
    above.set_ylabel("return")
    below.set_ylabel("measurements")
    below.set_xlabel("episode")
    below.set_ylim(bottom=min(0.0, below.get_ylim()[0]))
    above.set_title(runs.agent)
    above.legend(frameon=False, fontsize="small")


def _label(runs: SeedRuns, window: int) -> str:
    over = f"running mean over {window} episodes" if window > 1 else "each episode"
    return over if len(runs) == 1 else f"mean of {len(runs)} seeds, {over}"


def _draw_curve(axes: Any, runs: SeedRuns, curve: Interval, label: str | None) -> None:
    length = len(curve.value)
    shown = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).astype(int))
    episode = runs.first_episode + shown + 1  # counted from 1, as the number of episodes done
    mean, low, high = (values[shown] for values in curve)
    if len(runs) > 1:
        # The edge shows where the band ends on a printer that leaves out light greys.
        name = None if label is None else "95 % interval"
        axes.fill_between(episode, low, high, facecolor=BAND, edgecolor=EDGE, linewidth=0.5, label=name)
    axes.plot(episode, mean, color=INK, linewidth=1.5, label=label, marker="o" if length == 1 else "", markersize=4)
    axes.spines[["top", "right"]].set_visible(False)


def learning_curve(runs: SeedRuns, name: str, window: int) -> Interval:
    """Return means over seeds of running means, shape (n_episodes,); a seed that was cut short counts as far as it goes."""
    longest = max(len(one) for one in runs.episodes)
    smooth = np.full((len(runs), longest), np.nan)
    for row, one in zip(smooth, runs.episodes, strict=True):
        row[: len(one)] = running_mean(getattr(one, name), window)
    count = np.isfinite(smooth).sum(axis=0)
    mean = np.nansum(smooth, axis=0) / count
    squares = np.nansum((smooth - mean) ** 2, axis=0)
    half = half_width(np.sqrt(squares / np.maximum(count - 1, 1)), count)
    return Interval(mean, mean - half, mean + half)
