"""Bootstrap over units: the fit to other records that could have come from such units."""

from __future__ import annotations

import numpy as np

from actmeasure.fitting.estimation import maximise
from actmeasure.fitting.likelihood import FloatArray, Likelihood
from actmeasure.fitting.progress import Progress
from actmeasure.interrupts import deferred_interrupts

__all__ = ["ENOUGH", "FRESH", "resample"]

#: A replicate begins this share of the way from the fit back to where the fit began, as what is 0 would stay 0.
FRESH = 0.05
ENOUGH = 1e-3
#: Transitions that a replicate adds to every row, spread at random over those that are allowed.
ADDED = 1.0
#: Keeps them from being 0, where a probability would be lost for ever.
LEAST_ADDED = 1e-9


def resample(
    likelihood: Likelihood,
    fitted: FloatArray,
    start: FloatArray,
    fixed: FloatArray,
    replicates: int,
    rng: np.random.Generator,
    progress: Progress,
) -> FloatArray:
    """Probabilities fitted to randomly weighted units, shape (B, A, S, S).

    Weights are exponential (the Bayesian bootstrap): every unit keeps some weight, so that what few units tell about is never
    lost altogether. A plain bootstrap holds for impossible what the records happen not to show, and its intervals are too short
    where data are few; so every row gets, in all, about one transition more, at random. After Ctrl-C the replicates are those
    that were done.
    """
    gaps = likelihood.gaps
    allowed = start > 0
    shares = np.where(allowed, ADDED / allowed.sum(axis=2, keepdims=True), 0.0)
    begin = (1 - FRESH) * fitted + FRESH * start
    found = []
    with deferred_interrupts() as interrupts:
        for number in range(replicates):
            progress("intervals", number, replicates)
            if interrupts.requested:
                break
            weights = rng.exponential(size=gaps.n_units)
            weights *= gaps.n_units / weights.sum()
            added = np.where(allowed, rng.gamma(np.where(allowed, shares, 1.0)) + LEAST_ADDED, 0.0)
            estimate = maximise(likelihood, gaps.counts(weights), begin, fixed, added, ENOUGH)
            found.append(estimate.probabilities)
    return np.array(found).reshape(-1, *fitted.shape)
