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
#: The largest q t for which 1, 2, ... terms of the series leave out at most a probability of 1e-17; `LONGEST_SERIES` needs 43.
LARGEST_MEANS = special.gammaincinv(np.arange(1.0, 46.0), 1e-17)
#: At least this many terms more than states, so that the probability of passing through all of them soon is accurate, too.
MORE_TERMS = 10
#: Products of matrices are split so that each takes about this many multiplications: then BLAS computes it in one thread, which
#: is faster than several that wait for each other.
MOST_MULTIPLICATIONS = 100_000
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

    def matrices(self, intensities: FloatArray) -> FloatArray:
        """Return expm(Q t) for every duration, (D, S, S); Q, (S, S), may have rows that sum to less than 0."""
        size = len(intensities)
        self._rate = max(float(-intensities.diagonal().min()), SMALLEST_RATE)
        mean = self._rate * self.durations
        with np.errstate(divide="ignore"):
            halvings = np.ceil(np.log2(np.maximum(mean / LONGEST_SERIES, 1.0)))
        self._halvings = halvings.astype(np.int64)
        mean = mean / 2.0**self._halvings
        terms = max(int(np.searchsorted(LARGEST_MEANS, mean.max(initial=0.0))) + 1, size + MORE_TERMS)
        count = np.arange(terms)
        self._weights = np.exp(special.xlogy(count, mean[:, None]) - mean[:, None] - special.gammaln(count + 1.0))
        self._powers = np.empty((terms, size, size))
        self._powers[0] = np.eye(size)
        self._step = np.eye(size) + intensities / self._rate
        for one in range(1, terms):
            self._powers[one] = self._powers[one - 1] @ self._step
        flat = self._powers.reshape(terms, -1)
        result = np.concatenate([self._weights[part] @ flat for part in self._parts(terms, size)])
        result = result.reshape(-1, size, size)
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
        terms = len(self._powers)
        flat = change.reshape(len(change), -1)
        sums = [self._weights[part].T @ flat[part] for part in self._parts(terms, size)]
        by_power = np.sum(sums, axis=0).reshape(terms, size, size)
        total = np.zeros((size, size))
        carried = np.zeros((size, size))
        for number in range(terms - 1, 0, -1):
            carried = by_power[number] + carried @ self._step.T
            total += self._powers[number - 1].T @ carried
        return total / self._rate

    def _parts(self, terms: int, size: int) -> list[slice]:
        """Return the durations in parts, see `MOST_MULTIPLICATIONS`; one part if there are none."""
        step = max(1, MOST_MULTIPLICATIONS // (terms * size * size))
        return [slice(begin, begin + step) for begin in range(0, max(len(self.durations), 1), step)]
