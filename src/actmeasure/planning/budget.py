"""`Budget`: a limit on the seconds or the work of planning, or on both, with progress, Ctrl-C and the reason for stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Literal

from actmeasure.errors import PlanError, quoted
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels.jit import running_time
from actmeasure.progress import rewrite_line
from actmeasure.settings import real, whole

__all__ = ["Budget", "Progress", "Stopped", "why_open"]

#: Seconds of a search that shares a budget, even where less time remains: enough for the bounds of a small model.
LEAST_SECONDS = 0.05
#: Why planning stopped; see `Solution.stopped`.
Stopped = Literal["closed", "time", "beliefs", "interrupted", "memory", "exhausted", "done"]


@dataclass(frozen=True)
class Progress:
    """Bounds on the optimum after some seconds; `str` gives a line for people."""

    seconds: float
    lower: float
    upper: float

    def __str__(self) -> str:
        gap = self.upper - self.lower
        return f"{self.lower:.6g} <= optimum <= {self.upper:.6g}, gap {gap:.2g}, {self.seconds:.0f} s"


@dataclass
class Budget:
    """What planning may spend, and what it has spent so far.

    Where looks are exact, a limit on work makes planning deterministic: the same model gives the same plan on every machine.
    Otherwise, or with a limit on seconds, or without any limit, the plan may depend on the speed of the machine: where looks
    are not exact, the search divides its time between trials and sweeps by the clock. Its bounds hold all the same. Time in
    which kernels are compiled is not counted.

    Parameters
    ----------
    seconds : float, optional
        Time limit, from the creation of the budget; `solve` starts the clock anew.
    work : int, optional
        Limit on the work of one search: beliefs in its graph, plus `optimal.ROUND_WORK` for each round. Methods that do not
        search spend none.
    progress : bool or function
        Called with every `Progress`; True prints the bounds to stderr.
    interruptible : bool
        Whether Ctrl-C stops planning. If not, it is held back until planning ends (see `deferred_interrupts`).

    Attributes
    ----------
    spent : int
        Work of the search that uses this budget.
    record : list of Progress
        Bounds so far, each at least as tight as the one before.

    Examples
    --------
    >>> import actmeasure as am
    >>> am.solve(am.problems.frozen_lake(4), tolerance=1e-12, budget=am.planning.Budget(work=100)).stopped
    'beliefs'
    """

    seconds: float | None = None
    work: int | None = None
    progress: bool | Callable[[Progress], None] = False
    interruptible: bool = True
    spent: int = field(default=0, init=False)
    record: list[Progress] = field(default_factory=list, init=False, repr=False)
    _begun: float = field(default_factory=running_time, init=False, repr=False)
    _interrupts: Interrupts = field(default_factory=Interrupts, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.seconds is not None and not real(self.seconds, "seconds", PlanError, "a number above 0, or None") > 0:
            raise PlanError(f"seconds is {self.seconds!r}, expected a number above 0, or None for no limit")
        if self.work is not None:
            self.work = whole(self.work, "work", 1, error=PlanError, what="a number of beliefs")
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise PlanError(f"progress is {quoted(self.progress)}, expected True, False or a function")

    @classmethod
    def of(
        cls,
        time_limit: float | None,
        progress: bool | Callable[[Progress], None] = False,
        budget: Budget | None = None,
    ) -> Budget:
        """Return the budget for the arguments `time_limit`, `progress` and `budget` of a planning function, its clock at 0.

        A `PlanError` names the argument that is wrong, or says that a budget was given as well as a time limit or progress.
        """
        if budget is not None:
            if not isinstance(budget, Budget):
                raise PlanError(f"the budget is {quoted(budget)}, expected a Budget")
            if time_limit is not None or progress is not False:
                raise PlanError("a budget has its own time limit and progress; leave time_limit and progress out")
            budget.start()
            return budget
        if time_limit is not None and not real(time_limit, "time_limit", PlanError, "seconds above 0, or None") > 0:
            raise PlanError(f"time_limit is {time_limit!r}, expected seconds above 0, or None for no limit")
        return cls(None if time_limit is None else float(time_limit), progress=progress)

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was started, without those in which kernels were compiled."""
        return running_time() - self._begun

    @property
    def remaining(self) -> float:
        """Seconds until the time limit, negative after it; infinite without one."""
        return math.inf if self.seconds is None else self.seconds - self.elapsed

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.remaining <= 0

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C was pressed in the present block of `deferred_interrupts`, and is to stop planning."""
        return self.interruptible and self._interrupts.requested

    @property
    def is_over(self) -> bool:
        """Whether there is a reason to stop."""
        return self.stops() is not None

    def stops(self) -> Stopped | None:
        """Return why to stop now, or None to go on."""
        if self.is_interrupted:
            return "interrupted"
        if self.is_out_of_time:
            return "time"
        return "beliefs" if self.work is not None and self.spent >= self.work else None

    def check(self, what: str) -> None:
        """Raise a `PlanError` if the time is over before there are any bounds; `what` was being computed."""
        if self.is_out_of_time and not self.record:
            raise PlanError(
                f"the time limit of {self.seconds:g} s was over before any bound was found (it ran out while computing {what}); "
                "allow more time"
            )

    def part(self, share: float, seconds: float = math.inf) -> Budget:
        """Return a budget for a part of one search: with the same clock and the same record of bounds.

        It has a share of the remaining time, and at most `seconds` from now, even if this budget has no limit at all. Where
        only the work is limited, parts are not limited in time either, so that planning stays deterministic. The part counts
        its own work, up to the same limit.
        """
        part = copy(self)
        part.spent, limit = 0, self._share(share, seconds)
        part.seconds = None if limit is None else self.elapsed + limit
        return part

    def separate(
        self,
        share: float = 1.0,
        seconds: float = math.inf,
        at_least: float = LEAST_SECONDS,
        progress: bool | Callable[[Progress], None] = False,
    ) -> Budget:
        """Return a budget for one of several searches that share this one: with its own clock, work and record of bounds.

        Its limits are those of `part`, with at least `at_least` seconds where there is a time limit.
        """
        limit = self._share(share, seconds)
        return Budget(None if limit is None else max(limit, at_least), self.work, progress, self.interruptible)

    def _share(self, share: float, seconds: float) -> float | None:
        """Return a share of the remaining time, at most `seconds`; None for no limit on the time."""
        limit = min(share * self.remaining, seconds)
        return None if math.isinf(limit) or (self.seconds is None and self.work is not None) else limit

    def start(self) -> None:
        """Set the clock to 0, with nothing spent and nothing recorded."""
        self.spent, self.record, self._begun = 0, [], running_time()

    @contextmanager
    def deferred_interrupts(self) -> Iterator[None]:
        """Hold Ctrl-C back while this lasts; `stops` then returns "interrupted". Blocks may be nested."""
        before = self._interrupts
        try:
            with deferred_interrupts() as self._interrupts:
                yield
        finally:
            self._interrupts = before

    def note(self, lower: float, upper: float) -> None:
        """Record bounds, or those from before where these were tighter, and report them as progress."""
        if self.record:
            lower, upper = max(lower, self.record[-1].lower), min(upper, self.record[-1].upper)
        self.record.append(Progress(self.elapsed, lower, upper))
        if self.progress is True:
            rewrite_line(str(self.record[-1]))
        elif self.progress:
            self.progress(self.record[-1])


def why_open(stopped: Stopped, discount: float, gain: str = "close the gap") -> str:
    """Return why planning stopped before the bounds were within the tolerance, and a remedy, as a sentence.

    `gain` is what more time may do. The sentence is empty where there was nothing more to do.
    """
    reached = {"time": "The time limit was reached", "beliefs": "The limit on the work was reached"}
    if stopped in ("time", "beliefs", "interrupted"):
        more = "work" if stopped == "beliefs" else "time"
        return f"{reached.get(stopped, 'Stopped with Ctrl-C')}: more {more} may {gain}."
    if stopped == "memory":
        return "The search's memory limit was reached: a larger tolerance, or a smaller discount, needs less."
    if stopped == "exhausted" and discount == 1:
        return "Without discount the search found nothing more to improve: a discount slightly below 1 closes the gap further."
    if stopped == "exhausted":
        return "The search found nothing more to improve: it is as close as rounding allows, so ask for a larger tolerance."
    return ""
