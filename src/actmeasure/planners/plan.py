"""What a planning method hands back before it is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from actmeasure.planners.clock import Stopped
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = ["Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule and what the method knows about it.

    Attributes
    ----------
    schedule : Schedule
    values : float64 array, shape (S,)
        What can be achieved, at least, from each state once it is known.
    upper : float
        A bound on the optimum.
    stopped : str
        Why the method stopped; see `Solution`.
    claimed : float or None
    method_upper : float or None
    """

    schedule: Schedule
    values: FloatArray
    upper: float
    stopped: Stopped = "done"
    claimed: float | None = None
    method_upper: float | None = None
