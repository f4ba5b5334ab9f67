"""Estimates with intervals from independent runs: the one method of this library, Student's t over runs.

A run (a seed, or one of several lakes) is one observation; episodes of one run depend on each other and are averaged first.
Intervals are

- for a mean, Student's t;
- for an interquartile mean, Student's t with the Winsorized variance (Tukey and McLaughlin, 1963);
- for the difference of two means, Student's t of the differences by seed where both have the same seeds, otherwise Welch's t;
- for the probability that one run earns more than another, Welch's t of placements (Brunner and Munzel, 2000);
- for the share of problems on which a run scores more than a threshold, Student's t of the seeds' shares;
- for the mean of other runs, the prediction interval that goes with Student's t;
- for what was estimated again from resampled data (`quantile_interval`), quantiles of these estimates.

For normal runs those of means, of differences and of other runs are exact for any number of runs (Welch's t nearly so).
Percentile bootstraps of runs are not used: for five runs they hold the truth in 84 % of the cases instead of 95 %. Where all
runs are alike there is no spread to make an interval of, and none is given: 20 equal runs still allow for one in six that is
different. `python -m benchmarks.intervals` prints how often intervals hold the truth, and where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "LAST",
    "LEVEL",
    "Interval",
    "difference",
    "expected_means",
    "half_width",
    "interquartile_mean",
    "mean",
    "normalised",
    "performance_profile",
    "probability_of_improvement",
    "quantile_interval",
    "running_mean",
    "running_means",
]

FloatArray = npt.NDArray[np.float64]

#: Number of last episodes whose mean is the result of a run, as in the paper.
LAST = 50
#: Coverage of intervals.
LEVEL = 0.95
#: Fraction of the runs that an interquartile mean leaves out at either end.
QUARTER = 0.25
#: Relative difference between runs below which they count as equal.
EQUAL_RUNS = 1e-12


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval, which can be unpacked: `value, low, high = mean(runs)`.

    Attributes
    ----------
    value : float or array
    low, high : float or array
        NaN for a single run, and where all runs are alike: without any spread there is no estimate of how different another run
        may be.
    deviation : float or array
        Of a mean: the standard deviation between runs, 0 where all are alike; NaN for a single run, and of other estimates.
    """

    value: Any
    low: Any
    high: Any
    deviation: Any = math.nan

    @property
    def mean(self) -> Any:
        """The value, of an estimate of a mean."""
        return self.value

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.low, self.high))


def half_width(deviation: npt.ArrayLike, count: npt.ArrayLike) -> FloatArray:
    """Return half the width of the interval for the mean of `count` values (Student's t); NaN below two or without deviation."""
    counts, deviations = np.asarray(count, dtype=np.float64), np.asarray(deviation, dtype=np.float64)
    several = np.where(counts > 1, counts, np.nan)
    half: FloatArray = np.where(deviations > 0, _quantile(several - 1) * deviations / np.sqrt(several), np.nan)
    return half


def mean(runs: npt.ArrayLike) -> Interval:
    """Return the mean over runs with its interval.

    Parameters
    ----------
    runs : array of shape (runs,) or (runs, ...)
        With more axes, as many means.

    Examples
    --------
    >>> value, low, high = mean([1.0, 2.0, 3.0, 2.0])
    >>> value, round(low, 2), round(high, 2)
    (2.0, 0.7, 3.3)
    """
    values = np.asarray(runs, dtype=np.float64)
    centre = values.mean(axis=0)
    deviation = _deviation(values)
    return replace(_around(centre, half_width(deviation, len(values))), deviation=_plain(deviation))


def interquartile_mean(runs: npt.ArrayLike) -> Interval:
    """Return the mean over runs without the lowest and the highest quarter, with its interval; shapes as for `mean`.

    Examples
    --------
    >>> float(interquartile_mean([0.0, 10, 11, 12, 13, 14, 15, 99]).value)
    12.5
    """
    values = np.sort(np.asarray(runs, dtype=np.float64), axis=0)
    count = len(values)
    cut = int(QUARTER * count)
    kept = count - 2 * cut
    centre = values[cut : count - cut].mean(axis=0)
    winsorized = np.clip(values, values[cut], values[count - cut - 1])
    # The deviation of a trimmed mean is the Winsorized one of all values, divided by the share of them that is kept.
    return _around(centre, half_width(_deviation(winsorized) * np.sqrt(count / kept), kept))


def difference(one: npt.ArrayLike, other: npt.ArrayLike) -> Interval:
    """Return by how much the mean of `one` is above that of `other`, averaged over problems, with its interval.

    Runs of one seed on several problems depend on each other, so that a seed's mean over problems is one observation. Where both
    have the same number of seeds on all problems, column by column, they are compared seed by seed; otherwise by Welch's t.

    Parameters
    ----------
    one, other : arrays of shape (problems, seeds)
        Problems, and seeds if there are as many, are in the same order. NaN is a run that is missing; there is one at least for
        each problem.

    Examples
    --------
    >>> difference([[1.0, 3.0, 2.0]], [[0.5, 2.0, 2.0]]).value
    0.5
    """
    left, right = (np.asarray(runs, dtype=np.float64) for runs in (one, other))
    value = float(np.nanmean(left, axis=1).mean() - np.nanmean(right, axis=1).mean())
    if left.shape == right.shape and not (np.isnan(left).any() or np.isnan(right).any()):
        return replace(mean((left - right).mean(axis=0)), value=value)
    # A seed that is missing on some problems is compared by what it has beyond the mean of each.
    return _welch(value, _by_seed(left - np.nanmean(left, axis=1, keepdims=True)),
                  _by_seed(right - np.nanmean(right, axis=1, keepdims=True)))  # fmt: skip


def probability_of_improvement(one: npt.ArrayLike, other: npt.ArrayLike) -> Interval:
    """Return the probability that a run of `one` earns more than a run of `other`, ties counting half: the mean over problems.

    The placement of a run is the share of the other agent's runs on the same problem that it beats. A seed's mean placement over
    problems is one observation, and the interval Welch's t for the two agents' placements.

    Parameters
    ----------
    one, other : arrays of shape (problems, seeds)
        Problems are in the same order, numbers of seeds may differ. NaN is a run that is missing; there is one at least for
        each problem.

    Examples
    --------
    >>> probability_of_improvement([[1.0, 3.0]], [[2.0, 2.0]]).value
    0.5
    """
    left, right = (np.asarray(runs, dtype=np.float64) for runs in (one, other))
    won = _won(left[:, :, None], right[:, None, :])
    value = float(np.nanmean(won, axis=(1, 2)).mean())
    ours, theirs = _mean_of_known(won, 2), _mean_of_known(won, 1)
    interval = _welch(value, _by_seed(ours), _by_seed(theirs))
    return Interval(value, *(float(np.clip(bound, 0.0, 1.0)) for bound in (interval.low, interval.high)))


def quantile_interval(draws: npt.ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the low and high ends, shape (...), of the interval that holds one more draw with probability `level`.

    One more draw is below the k-th smallest of n with probability k / (n + 1), so the ends are the draws with the numbers (n + 1)
    (1 - level) / 2 from either side, interpolated. The usual quantiles, with the numbers 1 + (n - 1) (1 - level) / 2, lie further
    inside: with 60 draws a level of 0.9 would be one of 0.87. With fewer than (1 + level) / (1 - level) draws the ends are the
    smallest and the largest, which hold one more with probability (n - 1) / (n + 1).

    Parameters
    ----------
    draws : array of float, shape (n, ...)
    level : float
    """
    tail = (1 - level) / 2
    low, high = np.quantile(np.asarray(draws), [tail, 1 - tail], axis=0, method="weibull")
    return low, high


def normalised(returns: npt.ArrayLike, worst: float, best: float) -> FloatArray:
    """Return scores on a scale on which `worst` is 0 and `best` is 1; NaN where these are equal.

    Examples
    --------
    >>> normalised([0.0, 5.0, 12.0], worst=0.0, best=10.0).tolist()
    [0.0, 0.5, 1.2]
    """
    values = np.asarray(returns, dtype=np.float64)
    return (values - worst) / (best - worst) if best != worst else np.full(values.shape, np.nan)


def performance_profile(scores: npt.ArrayLike, thresholds: npt.ArrayLike) -> Interval:
    """Return the share of problems on which a run scores more than each threshold, with its interval.

    A seed's share of problems is one observation, as runs of one seed may depend on each other.

    Parameters
    ----------
    scores : array of shape (problems, seeds)
        Comparable between problems, as `normalised` makes them. NaN is a run that is missing; there is one at least for each
        seed.
    thresholds : array of shape (T,)

    Returns
    -------
    Interval of arrays of shape (T,)

    Examples
    --------
    >>> performance_profile([[0.2, 0.4], [0.6, 0.8]], [0.0, 0.3, 0.7]).value.tolist()
    [1.0, 0.75, 0.25]
    """
    values, limits = np.asarray(scores, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    above = np.where(np.isnan(values)[..., None], np.nan, values[..., None] > limits)
    interval = mean(_mean_of_known(above, 0))
    return Interval(interval.value, np.clip(interval.low, 0.0, 1.0), np.clip(interval.high, 0.0, 1.0))


def expected_means(runs: npt.ArrayLike, count: int) -> tuple[float, float]:
    """Return the interval that a mean of `count` other runs such as these falls into, to tell whether such a mean is unusual.

    It allows for the chance of that mean and of our own. Of runs that are all alike the same is expected again; of a single run
    nothing is known, NaN.

    Examples
    --------
    >>> expected_means([1.0, 1.0, 1.0], 5)
    (1.0, 1.0)
    """
    values = np.asarray(runs, dtype=np.float64)
    own = len(values)
    if own < 2:
        return float("nan"), float("nan")
    centre = float(values.mean())
    half = float(_quantile(own - 1) * _deviation(values) * np.sqrt(1 / own + 1 / count))
    return centre - half, centre + half


def running_means(episodes: npt.ArrayLike, window: int = LAST) -> FloatArray:
    """Return means of every `window` episodes in a row of each run, shape (runs, episodes) to (runs, episodes - window + 1)."""
    values = np.asarray(episodes, dtype=np.float64)
    means: FloatArray = np.lib.stride_tricks.sliding_window_view(values, window, axis=1).mean(axis=-1)
    return means


def running_mean(values: npt.ArrayLike, window: int) -> FloatArray:
    """Return the mean of each value and those before it, `window` in all; of fewer at the beginning.

    Examples
    --------
    >>> running_mean([1, 2, 3, 4], 2).tolist()
    [1.0, 1.5, 2.5, 3.5]
    """
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    end = np.arange(1, len(sums))
    begin = np.maximum(0, end - window)
    means: FloatArray = (sums[end] - sums[begin]) / (end - begin)
    return means


def _quantile(freedom: FloatArray | float) -> FloatArray:
    """Return the upper quantile of Student's t for a number of degrees of freedom."""
    from scipy.special import stdtrit  # here, because it takes a while to load

    quantile: FloatArray = np.asarray(stdtrit(freedom, (1 + LEVEL) / 2), dtype=np.float64)
    return quantile


def _deviation(values: FloatArray) -> FloatArray:
    """Return the standard deviation between runs, the first axis; rounding counts as none."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    spread = values.max(axis=0) - values.min(axis=0)
    alike = spread <= EQUAL_RUNS * np.abs(values).max(axis=0)
    deviation: FloatArray = np.where(alike, 0.0, values.std(axis=0, ddof=1))
    return deviation


def _around(centre: Any, half: FloatArray) -> Interval:
    return Interval(*(_plain(np.asarray(one)) for one in (centre, centre - half, centre + half)))


def _welch(value: float, one: FloatArray, other: FloatArray) -> Interval:
    """Return an interval around a difference of means of independent observations, from those of either side."""
    counts = np.array([len(one), len(other)])
    if counts.min() < 2:
        return Interval(value, float("nan"), float("nan"))
    errors = np.array([_deviation(one), _deviation(other)]) ** 2 / counts
    if errors.sum() == 0:
        return Interval(value, float("nan"), float("nan"))
    freedom = errors.sum() ** 2 / (errors**2 / (counts - 1)).sum()
    half = float(_quantile(freedom) * np.sqrt(errors.sum()))
    return Interval(value, value - half, value + half)


def _won(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return 1 where `one` wins, 0 where it loses, a half for ties, NaN where a run is missing."""
    won: FloatArray = np.where(np.isnan(one) | np.isnan(other), np.nan, (one > other) + 0.5 * (one == other))
    return won


def _mean_of_known(values: FloatArray, axis: int) -> FloatArray:
    """Return means over the values that are not NaN; NaN where there are none."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    means: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return means


def _by_seed(values: FloatArray) -> FloatArray:
    """Return the mean over problems of every seed that has any, from shape (problems, seeds)."""
    means = _mean_of_known(values, 0)
    return means[~np.isnan(means)]


def _plain(value: npt.NDArray[Any]) -> Any:
    return value.item() if value.ndim == 0 else value
