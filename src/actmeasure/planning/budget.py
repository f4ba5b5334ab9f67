"""How long planning may take, and how it is going."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from actmeasure.errors import PlanError
from actmeasure.interrupts import Interrupts
from actmeasure.kernels.jit import running_time

__all__ = ["Clock", "Progress", "Stopped", "why_open"]

#: Why planning stopped; see `Solution.stopped`.
Stopped = Literal["closed", "time", "interrupted", "memory", "exhausted", "done"]


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
    listener : function, optional
        Called with every `Progress`.
    """

    limit: float | None = None
    listener: Callable[[Progress], None] | None = None
    begun: float = field(default_factory=running_time)
    record: list[Progress] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, without those in which kernels were compiled."""
        return running_time() - self.begun

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.limit is not None and self.seconds >= self.limit

    def stops(self, interrupts: Interrupts) -> Stopped | None:
        """Why to stop now, if there is a reason."""
        if interrupts.requested:
            return "interrupted"
        return "time" if self.is_over else None

    def check(self, what: str) -> None:
        """Raise a `PlanError` if the time is over before there are any bounds."""
        if self.is_over and not self.record:
            raise PlanError(
                f"the time limit of {self.limit:g} s was over before any bound was found (it ran out while computing {what}); "
                "allow more time"
            )

    def part(self, share: float, seconds: float = math.inf) -> Clock:
        """The same clock and record with less time: a share of what is left, and so many seconds from now at most."""
        left = math.inf if self.limit is None else self.limit - self.seconds
        limit = self.seconds + min(share * left, seconds)
        return replace(self, limit=None if math.isinf(limit) else limit)

    def note(self, lower: float, upper: float) -> None:
        """Record bounds, or those from before where these were tighter, and tell the listener."""
        if self.record:
            lower, upper = max(lower, self.record[-1].lower), min(upper, self.record[-1].upper)
        progress = Progress(self.seconds, lower, upper)
        self.record.append(progress)
        if self.listener is not None:
            self.listener(progress)


# ----------------------------------------------------------------------------------------------------
# Why a search ended before its bounds were as close as asked for, and what to do about it.
# ----------------------------------------------------------------------------------------------------


def why_open(stopped: Stopped, discount: float, gain: str = "close the gap") -> str:
    """A sentence for a reason to stop, where `gain` is what more time may do; empty where there was nothing more to do."""
    match stopped:
        case "time":
            return f"The time limit was reached: more time may {gain}."
        case "interrupted":
            return f"Stopped with Ctrl-C: more time may {gain}."
        case "memory":
            return "The search's memory limit was reached: a larger tolerance, or a smaller discount, needs less."
        case "exhausted" if discount == 1:
            return (
                "Without discount the search found nothing more to improve: a discount slightly below 1 closes the gap "
                "further."
            )
        case "exhausted":
            return "The search found nothing more to improve: it is as close as rounding allows, so ask for a larger tolerance."
        case "closed" | "done":
            return ""
