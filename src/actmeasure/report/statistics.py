"""Estimates with intervals, from what independent runs earned; chance is passed in.

A run, a seed, is what is drawn again in a bootstrap: episodes of one run depend on each other. All intervals are percentile
intervals (`scipy.stats.bootstrap`), which for five runs are too narrow by a third or so and for twenty by a tenth.
"""

from __future__ import annotations

import warnings
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
    "mean",
    "probability_of_improvement",
    "running_means",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

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
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Estimate:
    """How likely a run of `one` earns more than a run of `other`, ties counting half: the mean over problems.

    Runs of one seed on several problems depend on each other. So for each of the two agents seeds are drawn again, and used on
    all problems.

    Parameters
    ----------
    one, other : arrays of shape (problems, seeds)
        Problems are in the same order, numbers of seeds may differ. NaN is a run that is missing; there is one at least for
        each problem.
    generator : numpy.random.Generator
    resamples : int

    Examples
    --------
    >>> probability_of_improvement([[1.0, 3.0]], [[2.0, 2.0]], np.random.default_rng(0)).value
    0.5
    """
    left, right = (np.asarray(runs, dtype=np.float64) for runs in (one, other))
    won, known = _pairs(left[:, :, None], right[:, None, :])

    def improvement(ours: IntArray, theirs: IntArray, axis: int = -1) -> FloatArray:
        """Of the seeds of these numbers, shapes (..., seeds)."""
        i, j = np.moveaxis(ours, axis, -1)[..., :, None], np.moveaxis(theirs, axis, -1)[..., None, :]
        total, problems = np.zeros(i.shape[:-2]), np.zeros(i.shape[:-2])
        for wins, there in zip(won, known, strict=True):
            pairs = there[i, j].sum(axis=(-2, -1))
            total += wins[i, j].sum(axis=(-2, -1)) / np.maximum(pairs, 1)
            problems += pairs > 0
        return np.divide(total, problems, out=np.full_like(total, np.nan), where=problems > 0)

    with warnings.catch_warnings():
        # Where so many runs are missing that a resample may have none, the interval is unknown, NaN, which SciPy warns of.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        return bootstrap([np.arange(left.shape[1]), np.arange(right.shape[1])], improvement, generator, resamples)


def expected_means(
    runs: npt.ArrayLike, count: int, generator: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The interval that a mean of `count` other runs such as these falls into, to tell whether such a mean is unusual.

    It allows for the chance of that mean and of our own: differences of the two are drawn again. The spread of n runs about their
    own mean is too small by the square root of (n - 1) / n, which is put right. Of a single run nothing is known, NaN.

    Examples
    --------
    >>> expected_means([1.0, 1.0, 1.0], 5, np.random.default_rng(0))
    (1.0, 1.0)
    """
    values = np.asarray(runs, dtype=np.float64)
    own = len(values)
    if own < 2:
        return float("nan"), float("nan")
    theirs, ours = (generator.choice(values, size=(resamples, size)).mean(axis=1) for size in (count, own))
    low, high = np.quantile(theirs - ours, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) * np.sqrt(own / (own - 1))
    return float(values.mean() + low), float(values.mean() + high)


def bootstrap(
    samples: Sequence[npt.NDArray[Any]],
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


def _pairs(one: FloatArray, other: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Which pairs of runs `one` wins, ties counting half, and which pairs there are; nobody wins the others."""
    return (one > other) + 0.5 * (one == other), ~(np.isnan(one) | np.isnan(other))


def _plain(value: Any) -> Any:
    return value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
