"""Estimates with intervals, from what independent runs earned; chance is passed in.

A run, a seed, is what is drawn again in a bootstrap: episodes of one run depend on each other. All intervals are percentile
intervals (`scipy.stats.bootstrap`), which for five runs are too narrow by a third or so and for twenty by a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "LAST",
    "LEVEL",
    "RESAMPLES",
    "Estimate",
    "bootstrap",
    "expected_means",
    "interquartile_mean",
    "last_means",
    "mean",
    "probability_of_improvement",
    "running_means",
]

FloatArray = npt.NDArray[np.float64]

#: Results are means of so many last episodes, as in the paper.
LAST = 50
#: How often the true value is to be in the interval.
LEVEL = 0.95
RESAMPLES = 2_000
#: Numbers held at a time while resampling.
BATCH = 4_000_000


class Estimate(NamedTuple):
    """A value and an interval for it; the interval of a single run is unknown, NaN."""

    value: Any
    low: Any
    high: Any


def last_means(episodes: npt.ArrayLike, last: int = LAST) -> FloatArray:
    """Means of the last episodes of each run, shape (runs, episodes) to (runs,); of all of them where there are fewer."""
    means: FloatArray = np.asarray(episodes, dtype=np.float64)[:, -last:].mean(axis=1)
    return means


def running_means(episodes: npt.ArrayLike, window: int = LAST) -> FloatArray:
    """Means of every `window` episodes in a row of each run, shape (runs, episodes) to (runs, episodes - window + 1)."""
    values = np.asarray(episodes, dtype=np.float64)
    means: FloatArray = np.lib.stride_tricks.sliding_window_view(values, window, axis=1).mean(axis=-1)
    return means


def mean(runs: npt.ArrayLike, generator: np.random.Generator, resamples: int = RESAMPLES) -> Estimate:
    """The mean over runs, with an interval.

    Parameters
    ----------
    runs : array of shape (runs,) or (runs, ...)
        With more axes, that many means, all from the same resampled runs.
    generator : numpy.random.Generator
    resamples : int

    Examples
    --------
    >>> mean([1.0, 2.0, 3.0, 2.0], np.random.default_rng(0)).value
    2.0
    """
    values = np.asarray(runs, dtype=np.float64)
    return bootstrap([values], np.mean, generator, resamples)


def interquartile_mean(runs: npt.ArrayLike, generator: np.random.Generator, resamples: int = RESAMPLES) -> Estimate:
    """The mean over runs without the lowest and the highest quarter, with an interval; shapes as for `mean`."""
    values = np.asarray(runs, dtype=np.float64)
    return bootstrap([values], _middle, generator, resamples)


def probability_of_improvement(
    one: Sequence[npt.ArrayLike],
    other: Sequence[npt.ArrayLike],
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Estimate:
    """How likely a run of `one` earns more than a run of `other`, ties counting half: the mean over problems.

    Runs are drawn again within each problem (a stratified bootstrap).

    Parameters
    ----------
    one, other : sequences of arrays of shape (runs,)
        An array for each problem, in the same order; numbers of runs may differ.
    generator : numpy.random.Generator
    resamples : int

    Examples
    --------
    >>> probability_of_improvement([[1.0, 3.0]], [[2.0, 2.0]], np.random.default_rng(0)).value
    0.5
    """
    problems = len(one)
    samples = [np.asarray(runs, dtype=np.float64) for runs in (*one, *other)]

    def improvement(*runs: FloatArray, axis: int = -1) -> FloatArray:
        shares = [_wins(runs[k], runs[problems + k], axis) for k in range(problems)]
        average: FloatArray = np.mean(shares, axis=0)
        return average

    return bootstrap(samples, improvement, generator, resamples)


def expected_means(
    runs: npt.ArrayLike, count: int, generator: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The interval that means of `count` runs such as these fall into, to tell whether another mean of so many is unusual.

    Examples
    --------
    >>> expected_means([1.0, 1.0, 1.0], 5, np.random.default_rng(0))
    (1.0, 1.0)
    """
    drawn = generator.choice(np.asarray(runs, dtype=np.float64), size=(resamples, count)).mean(axis=1)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def bootstrap(
    samples: Sequence[FloatArray],
    statistic: Callable[..., Any],
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Estimate:
    """A statistic of samples, each of shape (runs, ...) and drawn again by itself, with a percentile interval."""
    value = statistic(*samples, axis=0)
    if min(len(sample) for sample in samples) < 2:
        unknown = _plain(np.full(np.shape(value), np.nan))
        return Estimate(_plain(value), unknown, unknown)
    largest = max(sample.size * len(sample) if len(samples) > 1 else sample.size for sample in samples)
    interval = stats.bootstrap(
        samples, statistic, n_resamples=resamples, batch=max(1, BATCH // largest), vectorized=True, axis=0,
        confidence_level=LEVEL, method="percentile", rng=generator,
    ).confidence_interval  # fmt: skip
    # The mean of resampled equal numbers may be another by rounding, so that the value is just outside.
    return Estimate(_plain(value), _plain(np.minimum(interval.low, value)), _plain(np.maximum(interval.high, value)))


def _middle(values: FloatArray, axis: int) -> Any:
    return stats.trim_mean(values, 0.25, axis=axis)


def _wins(one: FloatArray, other: FloatArray, axis: int) -> FloatArray:
    """The share of pairs of runs in which `one` has more, ties counting half."""
    left, right = np.moveaxis(one, axis, -1)[..., :, None], np.moveaxis(other, axis, -1)[..., None, :]
    shares: FloatArray = ((left > right) + 0.5 * (left == right)).mean(axis=(-2, -1))
    return shares


def _plain(value: Any) -> Any:
    return value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
