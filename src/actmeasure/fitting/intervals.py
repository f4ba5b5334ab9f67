"""Intervals for probabilities from bootstrap replicates."""

from __future__ import annotations

import numpy as np

from actmeasure.fitting.likelihood import FloatArray

__all__ = ["intervals"]

#: A transition expected less often than this in the records may well be impossible.
HARDLY_EVER = 0.5


def intervals(
    fitted: FloatArray, transitions: FloatArray, replicates: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends, shape (A, S, S), of intervals that cover with probability `level`.

    They are quantiles of the replicates, widened to hold the fitted probability. A transition that the records do not show may be
    impossible, so its interval begins at 0; and where they show no other, that one's may end at 1.

    Parameters
    ----------
    fitted, transitions : float64 arrays, shape (A, S, S)
        The probabilities, and how often each transition is expected to have happened.
    replicates : float64 array, shape (B, A, S, S)
    """
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    low, high = np.minimum(low, fitted), np.maximum(high, fitted)
    others = transitions.sum(axis=2, keepdims=True) - transitions
    return np.where(transitions < HARDLY_EVER, 0.0, low), np.where(others < HARDLY_EVER, 1.0, high)
