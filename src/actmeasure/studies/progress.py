"""Progress of training and of studies, as passed to the caller's `progress` function."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PartProgress", "SeedProgress", "StudyProgress"]


@dataclass(frozen=True)
class SeedProgress:
    """Progress of a training with several seeds.

    Attributes
    ----------
    done, total : int
        Episodes of all seeds.
    recent_return : float
        Mean of the last 50 episodes' returns over the seeds that are being trained; NaN before the first.
    stopping : bool
        Whether Ctrl-C was pressed, so that every seed ends after the episodes that it is at.
    """

    done: int
    total: int
    recent_return: float
    stopping: bool = False


@dataclass(frozen=True)
class PartProgress:
    """Progress of a part of a study.

    Attributes
    ----------
    name, title : str
    done, total : int
        Trials that are finished, stored or failed, and all trials.
    seconds_left : float
        An estimate; NaN while there is none.
    """

    name: str
    title: str
    done: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study: that of its parts, and an estimate of the seconds that are left (NaN while there is none)."""

    parts: tuple[PartProgress, ...]
    seconds_left: float
