"""Probability-of-detection curves from trials in which something of a known size was found or missed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from actmeasure.errors import FitError, unknown_name
from actmeasure.model import Measurement
from actmeasure.settings import between_0_and_1

__all__ = ["DetectionFit", "fit_detection"]

FloatArray = npt.NDArray[np.float64]
Kind = Literal["log-normal", "log-logistic", "exponential"]

#: By kind, the logarithms of the probabilities of a hit and a miss as functions of the standardised size.
LOGARITHMS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "log-normal": (special.log_ndtr, lambda z: special.log_ndtr(-z)),
    "log-logistic": (special.log_expit, lambda z: special.log_expit(-z)),
    # 1 - exp(-size / scale), with z = log(size / scale); for small z it is size / scale
    "exponential": (
        lambda z: np.where(z < -40.0, z, np.log(-np.expm1(-np.exp(np.clip(z, -40.0, 700.0))))),
        lambda z: -np.exp(np.minimum(z, 700.0)),
    ),
}
#: Smallest and largest spread of the logarithm of the size: at the smallest, hits and misses are separated by their size; at the
#: largest, hits do not become more frequent with size.
SPREADS = (1e-6, 1e3)
#: Smallest size; sizes of 0 are never found.
SMALLEST = 1e-300
#: How far from all trials, as a logarithm, the size found with probability 0.5 is searched.
FARTHEST = 50.0
#: Accuracy of logarithms of sizes and spreads.
ACCURACY = 1e-9
#: An interval that is wider than this many standard deviations of the curve has no end on that side.
WIDEST = 1e6


@dataclass(frozen=True, eq=False)
class DetectionFit:
    """A probability-of-detection curve with intervals, returned by `fit_detection`.

    The probability of a hit at size `a` is F((log a - location) / spread) with the normal distribution function F (log-normal) or
    the logistic one (log-logistic), or 1 - exp(-a / exp(location)) (exponential, whose spread is 1).

    Intervals hold what the likelihood ratio does not reject. In the slope 1 / spread and the standardised size at any one size
    the log-likelihood is concave, so that these are intervals, and the largest likelihood given a point of the curve is
    found by a search in one dimension.

    Attributes
    ----------
    kind : {"log-normal", "log-logistic", "exponential"}
    location, spread : float
    covariance : float64 array, shape (2, 2)
        Of the estimates of `location` and log `spread`, from the curvature of the likelihood; 0 for a spread that is not
        estimated, infinite where there is no maximum.
    level : float
        Coverage probability of the intervals.
    log_likelihood : float
    converged : bool
        Whether the likelihood has a maximum that was found; False where hits and misses are separated by their size, or hits
        do not become more frequent with it.
    sizes : float64 array, shape (n,)
    found : bool array, shape (n,)
        The trials.
    """

    kind: Kind
    location: float
    spread: float
    covariance: FloatArray
    level: float
    log_likelihood: float
    converged: bool
    sizes: FloatArray
    found: npt.NDArray[np.bool_]

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.found)

    @property
    def hits(self) -> int:
        """The number of trials in which something was found."""
        return int(self.found.sum())

    def pod(self, sizes: npt.ArrayLike) -> FloatArray:
        """Return the probability of a hit for each size."""
        return self._pod((_logarithm(sizes) - self.location) / self.spread)

    def interval(self, sizes: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends of the intervals of `pod` for each size."""
        logs = _logarithm(sizes)
        best = (logs - self.location) / self.spread
        ends = np.array(
            [
                [self._end(lambda z, at=at: self._profile(at, z), z, side) for side in (-1.0, 1.0)]  # type: ignore[misc]
                for at, z in zip(logs.ravel(), best.ravel(), strict=True)
            ]
        ).reshape(*logs.shape, 2)
        chances = np.where((np.asarray(sizes) == 0)[..., None], 0.0, self._pod(ends))
        return chances[..., 0], chances[..., 1]

    def size(self, probability: float = 0.9) -> tuple[float, float, float]:
        """Return the size that is found with a probability, and the ends of its interval, which may be 0 and infinity."""
        chance = between_0_and_1(probability, "the probability", FitError)
        inverse: dict[str, Callable[[float], float]] = {
            "log-normal": special.ndtri,
            "log-logistic": special.logit,
            "exponential": lambda p: float(np.log(-np.log1p(-p))),
        }
        z = float(inverse[self.kind](chance))
        centre = self.location + self.spread * z
        low, high = (self._end(lambda log: self._profile(log, z), centre, side) for side in (-1.0, 1.0))
        with np.errstate(over="ignore"):
            return float(np.exp(centre)), float(np.exp(low)), float(np.exp(high))

    def _profile(self, at: float, z: float) -> float:
        """Return the largest log-likelihood of curves with the standardised size `z` at a log size."""
        return _profile(self.kind, np.log(self.sizes), self.found, at, z)[0]

    def _end(self, profile: Callable[[float], float], best: float, side: float) -> float:
        """Return the value at which the likelihood ratio test begins to reject, on one side of the best; or infinity."""
        limit = self.log_likelihood - stats.chi2.ppf(self.level, 1) / 2
        step = 0.5
        while profile(best + side * step) > limit:
            step *= 2
            if step > WIDEST:
                return side * np.inf
        return float(optimize.brentq(lambda x: profile(best + side * x) - limit, 0.0, step, xtol=1e-6)) * side + best

    def measurement(
        self,
        name: str,
        cost: npt.ArrayLike = 0.0,
        *,
        sizes: npt.ArrayLike,
        with_actions: Iterable[int | str] | None = None,
    ) -> Measurement:
        """Return the measurement with this curve: miss or hit, in states whose defects have these sizes, shape (S,)."""
        return Measurement.detection(name, cost, pod=self.pod(sizes), with_actions=with_actions)

    def _pod(self, z: FloatArray) -> FloatArray:
        return np.asarray(np.exp(LOGARITHMS[self.kind][0](np.asarray(z, dtype=np.float64))))

    def summary(self) -> str:
        """Return the curve in words."""
        size, low, high = self.size(0.9)
        ends = f"{low:.4g} to {high:.4g}" if high < np.inf else f"{low:.4g} or larger"
        lines = [
            f"{self.kind} curve of {self.trials:,} trials with {self.hits:,} hits, log-likelihood {self.log_likelihood:.2f}",
            f"found with probability 0.5 from size {self.size(0.5)[0]:.4g}, with 0.9 from {size:.4g} "
            f"({100 * self.level:g} % interval {ends})",
        ]
        if not self.converged:
            reason = (
                "hits do not become more frequent with size, so that there is no such curve"
                if self.spread > 1
                else "hits and misses are separated by their size, so that the curve may be any steeper one"
            )
            lines.insert(0, f"Not settled: {reason}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"DetectionFit({self.kind!r}, location={self.location:.4g}, spread={self.spread:.4g}, {self.trials:,} trials)"


def fit_detection(
    sizes: Sequence[float] | npt.ArrayLike,
    hits: Sequence[bool] | npt.ArrayLike,
    kind: Kind | Literal["best"] = "log-normal",
    *,
    level: float = 0.9,
) -> DetectionFit:
    """Fit a probability-of-detection curve to trials by maximum likelihood, with intervals.

    Parameters
    ----------
    sizes : array of float, shape (n,)
        Size of what there was to find in each trial, above 0.
    hits : array of bool (or 0 and 1), shape (n,)
        Whether it was found.
    kind : "log-normal", "log-logistic", "exponential" or "best"
        The curve; "best" is that with the largest likelihood less its number of parameters (AIC).
    level : float
        Coverage probability of the intervals.

    Examples
    --------
    >>> import actmeasure as am
    >>> sizes = [0.5, 1, 1, 2, 2, 3, 4, 4, 6, 8]
    >>> curve = am.fit_detection(sizes, [0, 0, 1, 0, 1, 1, 0, 1, 1, 1])
    >>> curve.pod([1.0, 4.0]).round(2).tolist()
    [0.33, 0.78]
    >>> curve.measurement("visual", cost=10.0, sizes=[0.0, 1.0, 4.0])
    Measurement('visual', cost=10, outcomes miss and hit)
    """
    level = between_0_and_1(level, "level", FitError)
    found, size = _checked_trials(sizes, hits)
    if kind == "best":
        curves = [_fit_kind(one, size, found, level) for one in LOGARITHMS]
        return max(curves, key=lambda one: one.log_likelihood - (1 if one.kind == "exponential" else 2))
    if kind not in LOGARITHMS:
        raise FitError(unknown_name("kind of curve", kind, [*LOGARITHMS, "best"]))
    return _fit_kind(kind, size, found, level)


def _checked_trials(sizes: npt.ArrayLike, hits: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return hits and sizes as arrays; raise a `FitError` if they are not those of trials."""
    try:
        size, found = np.asarray(sizes, dtype=np.float64), np.asarray(hits, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FitError(f"sizes and hits must be numbers ({error})") from error
    if size.ndim != 1 or size.shape != found.shape or not len(size):
        raise FitError(f"sizes have shape {size.shape} and hits {found.shape}; expected one of each for every trial")
    wrong = np.flatnonzero(~(np.isfinite(size) & (size > 0)))
    if wrong.size:
        raise FitError(f"trial {wrong[0] + 1} has the size {size[wrong[0]]:g}; expected a finite number above 0")
    wrong = np.flatnonzero((found != 0) & (found != 1))
    if wrong.size:
        raise FitError(f"trial {wrong[0] + 1} has the hit {found[wrong[0]]:g}; expected True or False (1 or 0)")
    if found.min() == found.max():
        what = "a hit" if found[0] else "a miss"
        raise FitError(f"every trial is {what}, so that there is no curve to fit; add trials with other sizes")
    return found.astype(bool), size


def _logarithm(sizes: npt.ArrayLike) -> FloatArray:
    """Return the logarithm of sizes of 0 or more."""
    size = np.asarray(sizes, dtype=np.float64)
    if not np.all(size >= 0):
        raise FitError("a size is below 0 or not a number; give sizes of 0 or more")
    return np.log(np.maximum(size, SMALLEST))


def _log_likelihood(kind: str, z: FloatArray, hits: npt.NDArray[np.bool_]) -> float:
    """Return the log-likelihood of trials with these standardised sizes, (n,)."""
    log_hit, log_miss = LOGARITHMS[kind]
    return float(log_hit(z[hits]).sum() + log_miss(z[~hits]).sum())


def _profile(kind: str, logs: FloatArray, hits: npt.NDArray[np.bool_], at: float, z: float) -> tuple[float, float]:
    """Return the largest log-likelihood of curves with the standardised size `z` at the log size `at`, and its log spread.

    With the slope b = 1 / spread the standardised sizes are z + b (log a - at). The log-likelihood is concave in b, and so has
    one maximum in log b.
    """
    if kind == "exponential":
        return _log_likelihood(kind, z + logs - at, hits), 0.0
    found = optimize.minimize_scalar(
        lambda log_spread: -_log_likelihood(kind, z + (logs - at) * np.exp(-log_spread), hits),
        bounds=(math.log(SPREADS[0]), math.log(SPREADS[1])),
        method="bounded",
        options={"xatol": ACCURACY},
    )
    return -float(found.fun), float(found.x)


def _fit_kind(kind: str, sizes: FloatArray, hits: npt.NDArray[np.bool_], level: float) -> DetectionFit:
    """Return the curve of one kind: the best location, each with its best spread."""
    logs = np.log(sizes)
    free = 1 if kind == "exponential" else 2
    found = optimize.minimize_scalar(
        lambda at: -_profile(kind, logs, hits, at, 0.0)[0],
        bounds=(logs.min() - FARTHEST, logs.max() + FARTHEST),
        method="bounded",
        options={"xatol": ACCURACY},
    )
    location = float(found.x)
    value, log_spread = _profile(kind, logs, hits, location, 0.0)
    curvature = _curvature(
        lambda x: -_log_likelihood(kind, (logs - x[0]) * np.exp(-(x[1] if free == 2 else 0.0)), hits),
        np.array([location, log_spread])[:free],
    )
    inside = free == 1 or np.log(SPREADS[0]) + 1 < log_spread < np.log(SPREADS[1]) - 1
    settled = bool(inside and np.linalg.eigvalsh(curvature).min() > 1e-6 and value < -1e-6)
    covariance = np.zeros((2, 2))
    covariance[:free, :free] = np.linalg.inv(curvature) if settled else np.inf
    return DetectionFit(
        kind=kind,  # type: ignore[arg-type]
        location=location,
        spread=float(np.exp(log_spread)),
        covariance=covariance,
        level=float(level),
        log_likelihood=value,
        converged=settled,
        sizes=sizes,
        found=hits,
    )


def _curvature(loss: Callable[[FloatArray], float], x: FloatArray) -> FloatArray:
    """Return the second derivatives of a function by central differences, (n, n)."""
    step = 1e-4
    unit = step * np.eye(len(x))
    return np.array(
        [
            [(loss(x + a + b) - loss(x + a - b) - loss(x - a + b) + loss(x - a - b)) / (4 * step**2) for b in unit]
            for a in unit
        ]
    )
