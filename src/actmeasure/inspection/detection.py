"""Probability-of-detection curves from trials in which something of a known size was found or missed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.model import Measurement
from actmeasure.settings import real

__all__ = ["DetectionFit", "fit_detection"]

FloatArray = npt.NDArray[np.float64]
Kind = Literal["log-normal", "log-logistic", "exponential"]

#: By kind, the logarithms of the probabilities of a hit and a miss as functions of the standardised size.
LOGARITHMS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "log-normal": (special.log_ndtr, lambda z: special.log_ndtr(-z)),
    "log-logistic": (special.log_expit, lambda z: special.log_expit(-z)),
    # 1 - exp(-size / scale), with z = log(size / scale)
    "exponential": (lambda z: np.log(-np.expm1(-np.exp(z))), lambda z: -np.exp(z)),
}
#: Smallest and largest spread of the logarithm of the size; at the smallest, hits and misses are separated by their size.
SPREADS = (1e-6, 1e3)
#: Smallest size; sizes of 0 are never found.
SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class DetectionFit:
    """A probability-of-detection curve with intervals, returned by `fit_detection`.

    The probability of a hit at size `a` is F((log a - location) / spread) with the normal distribution function F (log-normal) or
    the logistic one (log-logistic), or 1 - exp(-a / exp(location)) (exponential, whose spread is 1).

    Attributes
    ----------
    kind : {"log-normal", "log-logistic", "exponential"}
    location, spread : float
    covariance : float64 array, shape (2, 2)
        Of the estimates of `location` and log `spread`, from the curvature of the likelihood; 0 for a spread that is not
        estimated.
    level : float
        Coverage probability of the intervals.
    log_likelihood : float
    converged : bool
        Whether the likelihood has a maximum that was found; False where hits and misses are separated by their size.
    trials, hits : int
    """

    kind: Kind
    location: float
    spread: float
    covariance: FloatArray
    level: float
    log_likelihood: float
    converged: bool
    trials: int
    hits: int

    def pod(self, sizes: npt.ArrayLike) -> FloatArray:
        """Return the probability of a hit for each size."""
        return self._pod((_logarithm(sizes) - self.location) / self.spread)

    def interval(self, sizes: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends of the intervals of `pod` for each size."""
        z = (_logarithm(sizes) - self.location) / self.spread
        if not self.converged:
            return np.zeros_like(z), np.ones_like(z)
        # The standardised size is nearly normally distributed, with derivatives -1 / spread and -z by the two parameters.
        rates = np.stack([np.full_like(z, -1.0 / self.spread), -z * (self.kind != "exponential")])
        error = np.sqrt(np.einsum("i...,ij,j...->...", rates, self.covariance, rates))
        width = error * stats.norm.ppf((1 + self.level) / 2)
        return self._pod(z - width), self._pod(z + width)

    def size(self, probability: float = 0.9) -> tuple[float, float, float]:
        """Return the size that is found with a probability, and the ends of its interval."""
        chance = real(probability, "the probability", FitError)
        if not 0 < chance < 1:
            raise FitError(f"the probability is {quoted(probability)}, expected a number between 0 and 1 such as 0.9")
        inverse: dict[str, Callable[[float], float]] = {
            "log-normal": special.ndtri,
            "log-logistic": special.logit,
            "exponential": lambda p: float(np.log(-np.log1p(-p))),
        }
        z = float(inverse[self.kind](chance))
        rates = np.array([1.0, z * self.spread * (self.kind != "exponential")])
        centre = self.location + self.spread * z
        if not self.converged:
            return float(np.exp(centre)), 0.0, np.inf
        width = float(stats.norm.ppf((1 + self.level) / 2) * np.sqrt(rates @ self.covariance @ rates))
        return float(np.exp(centre)), float(np.exp(centre - width)), float(np.exp(centre + width))

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
        lines = [
            f"{self.kind} curve of {self.trials:,} trials with {self.hits:,} hits, log-likelihood {self.log_likelihood:.2f}",
            f"found with probability 0.5 from size {self.size(0.5)[0]:.4g}, with 0.9 from {size:.4g} "
            f"({100 * self.level:g} % interval {low:.4g} to {high:.4g})",
        ]
        if not self.converged:
            lines.insert(
                0, "Not settled: hits and misses are separated by their size, so that the curve may be any steeper one."
            )
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
    if not 0 < real(level, "level", FitError) < 1:
        raise FitError(f"level is {quoted(level)}, expected a number between 0 and 1 such as 0.9")
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


def _fit_kind(kind: str, sizes: FloatArray, hits: npt.NDArray[np.bool_], level: float) -> DetectionFit:
    """Return the curve of one kind; parameters are the location and log spread of the logarithm of the size."""
    logs = np.log(sizes)
    log_hit, log_miss = LOGARITHMS[kind]
    free = 1 if kind == "exponential" else 2

    def loss(x: FloatArray) -> float:
        z = (logs - x[0]) / (np.exp(x[1]) if free == 2 else 1.0)
        with np.errstate(divide="ignore", over="ignore"):
            value = -float(np.where(hits, log_hit(z), log_miss(z)).sum())
        return value if np.isfinite(value) else 1e10

    starts = [
        (np.median(logs) + shift, np.log(max(logs.std(), 0.05) * scale)) for shift in (-1, 0, 1) for scale in (0.3, 1.0)
    ]
    bounds = [(logs.min() - 50, logs.max() + 50), tuple(np.log(SPREADS))][:free]
    results = [optimize.minimize(loss, np.array(one)[:free], method="L-BFGS-B", bounds=bounds) for one in starts]
    best = min(results, key=lambda one: float(one.fun))
    polished = optimize.minimize(
        loss, best.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    )
    x = polished.x if polished.fun < best.fun else best.x
    curvature = _curvature(loss, x)
    settled = bool(np.linalg.eigvalsh(curvature).min() > 1e-6 and -loss(x) < -1e-6)
    covariance = np.zeros((2, 2))
    covariance[:free, :free] = np.linalg.inv(curvature) if settled else np.inf
    spread = float(np.exp(x[1])) if free == 2 else 1.0
    return DetectionFit(
        kind=kind,  # type: ignore[arg-type]
        location=float(x[0]),
        spread=spread,
        covariance=covariance,
        level=float(level),
        log_likelihood=-loss(x),
        converged=settled,
        trials=len(hits),
        hits=int(hits.sum()),
    )


def _curvature(loss: Callable[[FloatArray], float], x: FloatArray, step: float = 1e-4) -> FloatArray:
    """Return the second derivatives of a function by central differences, (n, n)."""
    unit = step * np.eye(len(x))
    return np.array(
        [
            [(loss(x + a + b) - loss(x + a - b) - loss(x - a + b) + loss(x - a - b)) / (4 * step**2) for b in unit]
            for a in unit
        ]
    )
