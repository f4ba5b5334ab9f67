"""The results of a run, episode by episode."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from actmeasure.errors import import_extra
from actmeasure.model.transitions import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Episodes"]


@dataclass(frozen=True, eq=False)
class Episodes:
    """One entry for every episode of a run, in order; all arrays have shape (n_episodes,).

    Attributes
    ----------
    scalarized_return : float64 array
        Undiscounted sum of reward minus measuring cost.
    reward : float64 array
        Undiscounted sum of reward alone.
    measurements, steps : int64 arrays
    terminated : bool array
        Whether the episode ended, rather than being truncated.
    """

    scalarized_return: FloatArray
    reward: FloatArray
    measurements: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, count: int) -> Episodes:
        """Return arrays of zeros for `count` episodes, to be filled in."""
        return cls(
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, bool),
        )

    def part(self, begin: int, end: int) -> Episodes:
        """Return the episodes `begin` to `end` as views of the same arrays."""
        return Episodes(*(getattr(self, field.name)[begin:end] for field in fields(self)))

    def first(self, count: int) -> Episodes:
        """Return the first `count` episodes."""
        return self.part(0, count)

    def __len__(self) -> int:
        return len(self.steps)

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row per episode (needs the extra `data`)."""
        pandas = import_extra("pandas", "Episodes.to_pandas", "data")
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.RangeIndex(len(self), name="episode"))
        return frame

    def __repr__(self) -> str:
        if not len(self):
            return "Episodes(none)"
        return (
            f"Episodes({len(self)}, mean return {self.scalarized_return.mean():.4g}, "
            f"measurements {self.measurements.mean():.4g}, steps {self.steps.mean():.4g})"
        )
