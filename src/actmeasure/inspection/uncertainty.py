"""Uncertainty of an estimate: bootstrap over units, intervals, and probabilities that the records do not determine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import linalg

from actmeasure.inspection.estimation import ChainEstimate, FloatArray, Likelihood, maximise, random_start
from actmeasure.inspection.records import Progress
from actmeasure.interrupts import deferred_interrupts

__all__ = [
    "MOST_FREE",
    "Replication",
    "flat_directions",
    "intervals",
    "largest_entries",
    "one_step_counts",
    "other_chains",
    "resample",
]

T = TypeVar("T")

#: A replicate starts this fraction of the way from the estimate to the first start, because probabilities of 0 stay 0.
TOWARDS_START = 0.05
#: `least_gain` of `maximise` for a replicate.
LEAST_GAIN = 1e-3
#: Number of transitions that a replicate adds to every row, distributed at random over the allowed ones.
ADDED = 1.0
#: Smallest number that is added to an allowed transition, so that its probability is not 0.
LEAST_ADDED = 1e-9
#: A transition expected less often than this in the records may be impossible.
RARE = 0.5
#: Directions with less than this fraction of the information of complete records are flat.
FLAT = 1e-6
#: Number of groups of gaps for the first computation of flat directions, which are then checked with all groups.
SOME_GROUPS = 1000
#: Largest number of free probabilities for which flat directions are computed.
MOST_FREE = 1000
#: Largest difference in log-likelihood of chains that fit equally well.
EQUALLY_LIKELY = 0.05
#: Smallest difference in a probability of chains that count as different.
DIFFERENT = 0.02
#: `least_gain` of the first search from a random start, and the largest difference in log-likelihood to the best chain at which
#: that search is continued to convergence.
ROUGH_GAIN, CONTINUED = 1e-2, 1.0


@dataclass(frozen=True)
class Replication:
    """How the chain is fitted again to resampled or simulated records.

    Attributes
    ----------
    likelihood : Likelihood
    fitted : float64 array, shape (A, S, S)
        The estimate.
    start : float64 array, shape (A, S, S)
        The start of the search for the estimate.
    fixed : float64 array, shape (A, S, S)
        Rows that are not estimated; NaN in all others.
    progress : function of (task, done, total)
    """

    likelihood: Likelihood
    fitted: FloatArray
    start: FloatArray
    fixed: FloatArray
    progress: Progress

    def fit(self, counts: FloatArray, added: FloatArray | None = None) -> FloatArray:
        """Return the probabilities for other counts, (G, S + 1), and numbers of added transitions, (A, S, S)."""
        begin = (1 - TOWARDS_START) * self.fitted + TOWARDS_START * self.start
        return maximise(self.likelihood, counts, begin, self.fixed, added, LEAST_GAIN).probabilities

    def repeat(self, task: str, replicates: int, replicate: Callable[[], T]) -> list[T]:
        """Return the results of calling `replicate` `replicates` times; after Ctrl-C, those that are done."""
        results: list[T] = []
        with deferred_interrupts() as interrupts:
            for number in range(replicates):
                self.progress(task, number, replicates)
                if interrupts.requested:
                    break
                results.append(replicate())
        return results


def resample(replication: Replication, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return probabilities fitted to randomly weighted units, shape (B, A, S, S); after Ctrl-C, the replicates done by then.

    Weights are exponential (the Bayesian bootstrap), so that every unit keeps some weight. Without more, transitions that the
    records happen not to show would be impossible in every replicate, and intervals too short where data are few; so every row
    gets about one additional transition, distributed at random.
    """
    gaps, allowed = replication.likelihood.gaps, replication.start > 0
    shares = np.where(allowed, ADDED / allowed.sum(axis=2, keepdims=True), 1.0)

    def replicate() -> FloatArray:
        weights = rng.exponential(size=gaps.n_units)
        weights *= gaps.n_units / weights.sum()
        added = np.where(allowed, rng.gamma(shares) + LEAST_ADDED, 0.0)
        return replication.fit(gaps.counts(weights), added)

    return np.array(replication.repeat("intervals", replicates, replicate)).reshape(-1, *replication.fitted.shape)


def intervals(
    fitted: FloatArray, transitions: FloatArray, replicates: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the low and high ends, shape (A, S, S), of intervals with coverage probability `level`.

    They are quantiles of the replicates, widened to contain the estimate. A transition that the records do not show may be
    impossible, so its interval begins at 0; the interval of the only transition that they show ends at 1.

    Parameters
    ----------
    fitted, transitions : float64 arrays, shape (A, S, S)
        The estimate and the expected number of each transition.
    replicates : float64 array, shape (B, A, S, S)
    """
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    low, high = np.minimum(low, fitted), np.maximum(high, fitted)
    others = transitions.sum(axis=2, keepdims=True) - transitions
    return np.where(transitions < RARE, 0.0, low), np.where(others < RARE, 1.0, high)


@dataclass(frozen=True)
class _FreeProbabilities:
    """Free probabilities: arrays of shape (n_free,) with action, state, successor, and the successor that makes rows sum to 1."""

    action: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    to: npt.NDArray[np.int64]
    against: npt.NDArray[np.int64]

    def direction(self, weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Return changes of the free probabilities as a change of all probabilities, (A, S, S), with row sums of 0."""
        change = np.zeros(shape)
        np.add.at(change, (self.action, self.state, self.to), weights)
        np.add.at(change, (self.action, self.state, self.against), -weights)
        return change


def flat_directions(likelihood: Likelihood, estimate: ChainEstimate, fixed: FloatArray) -> list[FloatArray] | None:
    """Return directions, each (A, S, S), in which the likelihood is flat; None with more than `MOST_FREE` free probabilities.

    They solve the generalised eigenvalue problem of the Fisher information of the inspections against that of complete records,
    with an inspection in every period: eigenvalues near 0 are directions that no number of such gaps determines.
    """
    free = _free(estimate, fixed)
    if len(free.action) > MOST_FREE:
        return None
    if not len(free.action):
        return []
    counts = likelihood.gaps.counts()
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    identity = np.eye(len(free.action))
    seen = _information(likelihood, estimate, free, identity, counts, order[:SOME_GROUPS])
    complete = _complete_information(estimate, free)
    values, vectors = linalg.eigh(seen, complete)
    suspects = vectors[:, values < FLAT]
    if suspects.shape[1] and len(order) > SOME_GROUPS:
        information = _information(likelihood, estimate, free, suspects, counts, order)
        values, rotation = np.linalg.eigh(information)  # the suspects are orthonormal in the complete information
        suspects = suspects @ rotation[:, values < FLAT]
    shape = estimate.probabilities.shape
    return [free.direction(vector, shape) for vector in suspects.T]


def _free(estimate: ChainEstimate, fixed: FloatArray) -> _FreeProbabilities:
    """Return the positive probabilities of rows that were estimated, except the largest one of each row."""
    rows = []
    estimated = np.isnan(fixed[:, :, 0]) & (estimate.exposure >= 1)
    for action, state in np.argwhere(estimated):
        row = estimate.probabilities[action, state]
        against = int(np.argmax(row))
        rows += [(action, state, to, against) for to in np.flatnonzero(row > 0) if to != against]
    return _FreeProbabilities(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def _information(
    likelihood: Likelihood,
    estimate: ChainEstimate,
    free: _FreeProbabilities,
    directions: FloatArray,
    counts: FloatArray,
    groups: npt.NDArray[np.int64],
) -> FloatArray:
    """Return the Fisher information of the ends of some groups of gaps, (n, n), about `directions`, float64 (n_free, n)."""
    ends = _with_unseen(likelihood.end_probabilities(estimate.probabilities)[groups])
    weights = counts[groups]
    if not likelihood.gaps.noticed.any():  # then expected counts can be used, which vary less than observed ones
        weights = weights.sum(axis=1, keepdims=True) * np.c_[ends[:, :-1], np.zeros(len(groups))]
    scale = np.divide(np.sqrt(weights), ends, out=np.zeros_like(ends), where=ends > 1e-12)
    shape = estimate.probabilities.shape
    rates = [
        scale * _with_unseen(likelihood.end_derivatives(estimate.probabilities, free.direction(one, shape), groups))
        for one in directions.T
    ]
    flat = np.stack([rate.ravel() for rate in rates], axis=1)
    information: FloatArray = flat.T @ flat
    return information


def _with_unseen(ends: FloatArray) -> FloatArray:
    """Return the array with a last column, the sum of the others, for gaps whose last state was not observed."""
    extended: FloatArray = np.c_[ends, ends.sum(axis=1)]
    return extended


def _complete_information(estimate: ChainEstimate, free: _FreeProbabilities) -> FloatArray:
    """Return the Fisher information, (n_free, n_free), of records with an inspection in every period."""
    exposure = estimate.exposure[free.action, free.state]
    own = estimate.probabilities[free.action, free.state, free.to]
    other = estimate.probabilities[free.action, free.state, free.against]
    same = (free.action[:, None] == free.action) & (free.state[:, None] == free.state)
    information: FloatArray = np.diag(exposure / own) + same * (exposure / other)[:, None]
    return information


def one_step_counts(likelihood: Likelihood) -> FloatArray:
    """Return how often a state and action were followed by an inspection one period later, shape (A, S)."""
    gaps = likelihood.gaps
    table = np.zeros((gaps.n_actions, gaps.n_states))
    short = (gaps.length == 1) & (gaps.end < gaps.n_states)
    np.add.at(table, (gaps.action[short], gaps.begin[short]), 1)
    return table


def other_chains(
    likelihood: Likelihood,
    estimate: ChainEstimate,
    allowed: npt.NDArray[np.bool_],
    fixed: FloatArray,
    starts: int,
    rng: np.random.Generator,
) -> tuple[ChainEstimate, list[ChainEstimate]]:
    """Return the best estimate of several random starts, and different ones that are as likely."""
    counts = likelihood.gaps.counts()
    best, estimates = estimate, [estimate]
    with deferred_interrupts() as interrupts:
        for _ in range(starts):
            if interrupts.requested:
                break
            one = maximise(likelihood, counts, random_start(allowed, fixed, rng), fixed, least_gain=ROUGH_GAIN)
            if _is_other(one, best, CONTINUED):
                one = maximise(likelihood, counts, one.probabilities, fixed)
                estimates.append(one)
                best = one if one.log_likelihood > best.log_likelihood + EQUALLY_LIKELY else best
    return best, [one for one in estimates if _is_other(one, best, EQUALLY_LIKELY)]


def _is_other(one: ChainEstimate, best: ChainEstimate, slack: float) -> bool:
    """Return whether a chain is at most `slack` less likely than the best, and different in rows with data."""
    informed = (best.exposure >= 1)[:, :, None]
    difference = np.abs(np.where(informed, one.probabilities - best.probabilities, 0.0)).max()
    return bool(difference > DIFFERENT and one.log_likelihood > best.log_likelihood - slack)


def largest_entries(directions: Sequence[FloatArray], most: int = 6) -> list[tuple[int, int, int]]:
    """Return the transitions (action, state, successor) that directions, each (A, S, S), change most."""
    size = np.max([np.abs(one) / np.abs(one).max() for one in directions], axis=0)
    order = np.argsort(-size, axis=None, kind="stable")[:most]
    entries = [tuple(int(part) for part in np.unravel_index(int(entry), size.shape)) for entry in order]
    return [(action, state, to) for action, state, to in entries if size[action, state, to] > 0.1]
