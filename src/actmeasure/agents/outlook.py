"""What an agent that plans on measured dynamics may still gain by knowing them better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.evaluation import evaluate
from actmeasure.kernels.learned_model import Counts
from actmeasure.model import Model
from actmeasure.planners.limited import solve_within
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = ["Outlook", "outlook", "redrawn"]


@dataclass(frozen=True)
class Outlook:
    """What a schedule may be worth, and what a better one may add; all discounted, from the start.

    Attributes
    ----------
    value : float
        Of the schedule, if the dynamics are exactly as measured.
    low, high : float
        The same over dynamics that agree with what was measured: 5 % and 95 % quantiles.
    gain, most_gain : float
        How much better the best schedule found for such dynamics is: the mean, and the 95 % quantile.
    unexplored : float
        Chance that an episode of exploring comes to something that was measured too little.
    """

    value: float
    low: float
    high: float
    gain: float
    most_gain: float
    unexplored: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was seen: measured transitions, how often each pair was taken in a known state, and ended the episode, (S * A,)."""

    counts: Counts
    taken: npt.NDArray[np.int64]
    ended: npt.NDArray[np.int64]

    @property
    def ends(self) -> FloatArray:
        """How likely each pair ends the episode, NaN for those never taken."""
        return np.where(self.taken > 0, self.ended / np.maximum(self.taken, 1), np.nan)

    def redrawn(self, rng: np.random.Generator) -> tuple[Counts, FloatArray]:
        """Counts and ends as they could be as well, both drawn from their posterior over what was seen to happen.

        Pairs that pay and may end the episode stay as they are: often it is the end that is paid for, and of rewards only their
        mean is known, so that a lower chance of the end would mean to be paid again and again.
        """
        both = (self.ended > 0) & (self.ended < self.taken)
        fixed = both & (self.counts.rewards[: both.size] != 0)
        drawn = rng.beta(np.maximum(self.ended, 1), np.maximum(self.taken - self.ended, 1))
        return redrawn(self.counts, fixed, rng), np.where(both & ~fixed, drawn, self.ends)


def redrawn(counts: Counts, fixed: npt.NDArray[np.bool_], rng: np.random.Generator) -> Counts:
    """Counts as they could be as well: the frequencies of each pair drawn from their posterior, over successors that were seen.

    Those of `fixed` pairs, shape (S * A,), stay. The `times` and `measured` of others are not whole numbers.
    """
    used = int(counts.used[0])
    times = np.zeros(used)
    times[1:] = rng.standard_gamma(counts.times[1:used])
    totals, entries = np.zeros(len(counts.first)), counts.first
    while entries.any():
        stay = entries[: fixed.size][fixed]
        times[stay] = counts.times[stay]
        totals += np.where(entries > 0, times[entries], 0.0)
        entries = np.where(entries > 0, counts.following[entries], 0)
    return counts._replace(times=times, measured=totals)


def outlook(
    evidence: Evidence,
    build: Callable[[Counts, FloatArray], Model],
    schedule: Schedule,
    tolerance: float,
    beliefs: int,
    unexplored: float,
    samples: int,
    rng: np.random.Generator,
) -> Outlook:
    """Weigh a schedule against the best ones for several models that `build` makes of redrawn counts and ends."""
    values, gains = np.zeros(samples), np.zeros(samples)
    for i in range(samples):
        model = build(*evidence.redrawn(rng))
        values[i] = evaluate(model, schedule).discounted_return
        gains[i] = max(0.0, solve_within(model, tolerance, beliefs)[1] - values[i])
    low, high = np.quantile(values, [0.05, 0.95])
    value = evaluate(build(evidence.counts, evidence.ends), schedule).discounted_return
    return Outlook(value, float(low), float(high), float(gains.mean()), float(np.quantile(gains, 0.95)), unexplored)
