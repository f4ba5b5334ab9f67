"""What training with several seeds returns."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.planners.extras import pandas_for
from actmeasure.settings import whole
from actmeasure.statistics import LAST
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LAST", "Estimate", "SeedRuns", "Stopped"]

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
        from actmeasure.seeds.files import check_table_path, save_table

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
        from actmeasure.seeds.curve import plot_runs

        return plot_runs(self, path_or_axes, window)

    def table(self, last: int = LAST) -> str:
        """The results as text: every seed, unless there are many, then mean, deviation and interval."""
        from actmeasure.seeds.text import results_table

        return results_table(self, last)

    def __repr__(self) -> str:
        found = self.summary()["scalarized_return"]
        return f"SeedRuns({self.agent!r}, {len(self)} seed{'s' * (len(self) != 1)}, mean return {found.mean:.4g})"
