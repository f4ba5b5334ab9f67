"""How long planning may take, and how it is going."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from actmeasure.errors import PlanError

__all__ = ["Clock", "Progress"]


@dataclass(frozen=True)
class Progress:
    """Bounds on the optimum after some seconds."""

    seconds: float
    lower: float
    upper: float


@dataclass
class Clock:
    """Keeps the time limit and the record of bounds.

    Attributes
    ----------
    limit : float or None
        Seconds.
    share : float
        The share of the limit that may be used.
    listener : function, optional
        Called with every `Progress`.
    """

    limit: float | None = None
    listener: Callable[[Progress], None] | None = None
    share: float = 1.0
    begun: float = field(default_factory=time.perf_counter)
    record: list[Progress] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.limit is not None and self.seconds >= self.share * self.limit

    def check(self, what: str) -> None:
        """Raise a `PlanError` if the time is over before there are any bounds."""
        if self.is_over and not self.record:
            raise PlanError(
                f"the time limit of {self.limit:g} s was over before any bound was found (it ran out while computing {what}); "
                "allow more time"
            )

    def note(self, lower: float, upper: float) -> None:
        """Record bounds and tell the listener."""
        progress = Progress(self.seconds, lower, upper)
        self.record.append(progress)
        if self.listener is not None:
            self.listener(progress)
