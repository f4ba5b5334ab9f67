"""What is finished so far, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from actmeasure.episodes import Episodes
from actmeasure.seeds.runs import LAST, SeedRuns, Stopped

__all__ = ["Ledger", "SeedProgress"]


@dataclass(frozen=True)
class SeedProgress:
    """How far training is.

    Attributes
    ----------
    done, total : int
        Episodes of all seeds.
    recent_return : float
        Mean of the last 50 episodes' returns over the seeds that are being trained; not a number before the first.
    stopping : bool
        Whether Ctrl-C was pressed, so that seeds only finish what they cannot leave half done.
    """

    done: int
    total: int
    recent_return: float
    stopping: bool = False


class Ledger:
    """Collects finished episodes, in whatever order the seeds deliver them."""

    def __init__(
        self, seeds: Sequence[int], episodes: int, progress: Callable[[SeedProgress], None] | None = None
    ) -> None:
        self.seeds, self.episodes = seeds, episodes
        self._progress = progress
        self._results: dict[int, Episodes] = {}
        self._entered = [0] * len(seeds)
        self._done = [0] * len(seeds)
        #: Whether what is still running was told to stop.
        self.stopping = False

    def add(self, number: int, part: Episodes) -> None:
        """Enter the next finished episodes of seed `number`, counted from 0."""
        results = self._results.setdefault(number, Episodes.empty(self.episodes))
        begin, end = self._entered[number], self._entered[number] + len(part)
        for field in fields(Episodes):
            getattr(results, field.name)[begin:end] = getattr(part, field.name)
        self._entered[number] = end
        self._done[number] = max(self._done[number], end)

    def restart(self, number: int) -> None:
        """A seed begins again: the same episodes are going to be entered, so that those that are there can stay."""
        self._entered[number] = 0

    @property
    def done(self) -> int:
        """Finished episodes of all seeds."""
        return sum(self._done)

    @property
    def total(self) -> int:
        """All episodes there are going to be."""
        return len(self.seeds) * self.episodes

    @property
    def unfinished(self) -> list[int]:
        """Numbers of the seeds that have episodes left."""
        return [number for number, done in enumerate(self._done) if done < self.episodes]

    def show(self) -> None:
        """Tell how far it is."""
        if self._progress is not None:
            # Of a seed that begins again what is done anew counts, or the time left would seem to grow.
            entered = sum(self._entered)
            self._progress(SeedProgress(entered, self.total, self._recent_return(), self.stopping))

    def _recent_return(self) -> float:
        begun = [number for number, done in enumerate(self._done) if done]
        running = [number for number in begun if self._done[number] < self.episodes]
        recent = [
            self._results[number].part(max(0, self._done[number] - LAST), self._done[number])
            for number in running or begun
        ]
        return float(np.mean([one.scalarized_return.mean() for one in recent])) if recent else math.nan

    def runs(self, agent: str, first_episode: int, stopped: Stopped, reason: str) -> SeedRuns:
        """Everything that is finished; `reason` says why that is not all."""
        kept = [number for number, done in enumerate(self._done) if done]
        return SeedRuns(
            agent=agent,
            seeds=tuple(self.seeds[number] for number in kept),
            episodes=tuple(self._results[number].first(self._done[number]) for number in kept),
            first_episode=first_episode,
            stopped=stopped,
            note="" if stopped == "done" else f"{reason}: {self._left()}",
        )

    def _left(self) -> str:
        if len(self.seeds) == 1:
            return f"{self.done:,} of {self.episodes:,} episodes are done, and kept."
        complete = len(self.seeds) - len(self.unfinished)
        begun = sum(0 < done < self.episodes for done in self._done)
        parts = f"; of {begun} more what they had finished is kept" if begun else ""
        return f"{complete} of {len(self.seeds)} seeds are complete{parts}."
