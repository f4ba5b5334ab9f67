"""Transition probabilities over given durations from intensities: expm(Q t) for many t, and its derivative.

By uniformisation, expm(Q t) = sum_k Poisson(k; q t) R^k with R = I + Q / q and q at least the largest rate of leaving a state.
The powers of R are the same for all durations, and every term is non-negative, so that there is no cancellation. A duration with
a large q t is halved until the series is short, and the result squared as often. Derivatives run backwards through the same
steps (reverse accumulation).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

__all__ = ["Flows", "generator", "transition_probabilities"]

FloatArray = npt.NDArray[np.float64]

#: Largest q t of the series; longer durations are halved.
LONGEST_SERIES = 8.0
#: Number of terms: beyond it the Poisson probabilities with mean `LONGEST_SERIES` are below 1e-17.
TERMS = 45
#: Smallest q: that of a matrix of zeros.
SMALLEST_RATE = 1e-300


def generator(rates: FloatArray) -> FloatArray:
    """Return the matrix of intensities whose off-diagonal entries are `rates`, (..., S, S), and whose rows sum to 0."""
    off = rates * ~np.eye(rates.shape[-1], dtype=bool)
    matrix: FloatArray = off - np.eye(rates.shape[-1]) * off.sum(axis=-1, keepdims=True)
    return matrix


def transition_probabilities(rates: FloatArray, duration: float) -> FloatArray:
    """Return expm(Q t), (..., S, S), of intensities whose off-diagonal entries are `rates`, (..., S, S).

    Rows of states without known intensities (NaN) are NaN; for the others such a state is not left, as where it ends an episode.
    """
    flat = rates.reshape(-1, *rates.shape[-2:])
    found = [Flows(np.array([duration])).matrices(generator(one))[0] for one in np.nan_to_num(flat)]
    unknown = np.asarray(np.isnan(rates * ~np.eye(rates.shape[-1], dtype=bool)).any(axis=-1, keepdims=True))
    return np.where(unknown, np.nan, np.array(found).reshape(rates.shape))


class Flows:
    """expm(Q t) for fixed durations t, float64 (D,), and any Q.

    `matrices` keeps what `gradient` needs, which must be called with no other `matrices` in between.
    """

    def __init__(self, durations: FloatArray) -> None:
        self.durations = durations
        self._number = np.arange(TERMS)
        self._log_factorial = special.gammaln(self._number + 1.0)

    def matrices(self, intensities: FloatArray) -> FloatArray:
        """Return expm(Q t) for every duration, (D, S, S); Q, (S, S), may have rows that sum to less than 0."""
        size = len(intensities)
        self._rate = max(float(-intensities.diagonal().min()), SMALLEST_RATE)
        mean = self._rate * self.durations
        with np.errstate(divide="ignore"):
            halvings = np.ceil(np.log2(np.maximum(mean / LONGEST_SERIES, 1.0)))
        self._halvings = halvings.astype(np.int64)
        mean = mean / 2.0**self._halvings
        self._weights = np.exp(special.xlogy(self._number, mean[:, None]) - mean[:, None] - self._log_factorial)
        self._powers = np.empty((TERMS, size, size))
        self._powers[0] = np.eye(size)
        self._step = np.eye(size) + intensities / self._rate
        for number in range(1, TERMS):
            self._powers[number] = self._powers[number - 1] @ self._step
        result: FloatArray = (self._weights @ self._powers.reshape(TERMS, -1)).reshape(-1, size, size)
        self._squared: list[tuple[npt.NDArray[np.int64], FloatArray]] = []
        for number in range(int(self._halvings.max(initial=0))):
            chosen = np.flatnonzero(self._halvings > number)
            before = result[chosen]
            self._squared.append((chosen, before))
            result[chosen] = before @ before
        return result

    def gradient(self, change: FloatArray) -> FloatArray:
        """Return the gradient by the entries of Q, (S, S), of a function whose gradient by `matrices` is `change`, (D, S, S)."""
        size = change.shape[1]
        change = change.copy()
        for chosen, before in reversed(self._squared):
            turned = before.transpose(0, 2, 1)
            change[chosen] = change[chosen] @ turned + turned @ change[chosen]
        by_power = (self._weights.T @ change.reshape(len(change), -1)).reshape(TERMS, size, size)
        total = np.zeros((size, size))
        carried = np.zeros((size, size))
        for number in range(TERMS - 1, 0, -1):
            carried = by_power[number] + carried @ self._step.T
            total += self._powers[number - 1].T @ carried
        return total / self._rate
