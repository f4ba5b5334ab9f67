"""The results of a run, episode by episode."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.errors import import_extra
from actmeasure.model.transitions import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Episode", "Episodes"]


class Episode(NamedTuple):
    """One episode of a run, as a callback of `train` gets it.

    Attributes
    ----------
    number : int
        From 0; an agent that was trained before goes on counting.
    scalarized_return, reward : float
        Undiscounted sums of reward minus measuring cost, and of reward alone.
    measuring_cost : float
        Sum of what measurements cost.
    measurements, steps : int
    terminated : bool
        Whether it ended, rather than being truncated.
    """

    number: int
    scalarized_return: float
    reward: float
    measuring_cost: float
    measurements: int
    steps: int
    terminated: bool


@dataclass(frozen=True, eq=False)
class Episodes:
    """One entry for every episode of a run, in order; all arrays but `looks` have shape (n_episodes,).

    Attributes
    ----------
    scalarized_return : float64 array
        Undiscounted sum of reward minus measuring cost.
    reward : float64 array
        Undiscounted sum of reward alone.
    measurements, steps : int64 arrays
        Number of measurements of all kinds, and of steps.
    terminated : bool array
        Whether the episode ended, rather than being truncated.
    looks : int64 array, shape (n_episodes, k)
        Number of measurements of each kind, in the order of `model.measurements`.
    """

    scalarized_return: FloatArray
    reward: FloatArray
    measurements: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]
    #: Number of measurements of each kind, where the number of kinds is not 1.
    by_kind: npt.NDArray[np.int64] | None = None

    @classmethod
    def empty(cls, count: int, n_measurements: int = 1) -> Episodes:
        """Return arrays of zeros for `count` episodes of a world with that many measurements, to be filled in."""
        return cls(
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, bool),
            None if n_measurements == 1 else np.zeros((count, n_measurements), np.int64),
        )

    @property
    def looks(self) -> npt.NDArray[np.int64]:
        """Number of measurements of each kind, shape (n_episodes, k)."""
        return self.measurements[:, None] if self.by_kind is None else self.by_kind

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays with one number for every episode, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "by_kind"}

    def part(self, begin: int, end: int) -> Episodes:
        """Return the episodes `begin` to `end` as views of the same arrays."""
        by_kind = None if self.by_kind is None else self.by_kind[begin:end]
        return Episodes(**{name: array[begin:end] for name, array in self.columns().items()}, by_kind=by_kind)

    def fill(self, begin: int, part: Episodes) -> None:
        """Write other episodes over those from number `begin` on."""
        mine = self.part(begin, begin + len(part))
        for name, array in part.columns().items():
            getattr(mine, name)[:] = array
        if mine.by_kind is not None:
            mine.by_kind[:] = part.looks

    def episode(self, index: int, number: int | None = None) -> Episode:
        """Return one of the episodes, under its own number or another one."""
        earned, reward = float(self.scalarized_return[index]), float(self.reward[index])
        return Episode(
            index if number is None else number, earned, reward, reward - earned, int(self.measurements[index]),
            int(self.steps[index]), bool(self.terminated[index]),
        )  # fmt: skip

    def first(self, count: int) -> Episodes:
        """Return the first `count` episodes."""
        return self.part(0, count)

    def __len__(self) -> int:
        return len(self.steps)

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row per episode (needs the extra `data`)."""
        pandas = import_extra("pandas", "Episodes.to_pandas", "data")
        frame: pd.DataFrame = pandas.DataFrame(self.columns(), index=pandas.RangeIndex(len(self), name="episode"))
        return frame

    def __repr__(self) -> str:
        if not len(self):
            return "Episodes(none)"
        return (
            f"Episodes({len(self)}, mean return {self.scalarized_return.mean():.4g}, "
            f"measurements {self.measurements.mean():.4g}, steps {self.steps.mean():.4g})"
        )
