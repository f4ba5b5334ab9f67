"""Uncertainty of an estimate: bootstrap over units, intervals, and probabilities that the records do not determine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import linalg

from actmeasure.inspection.estimation import (
    ChainEstimate,
    Data,
    FloatArray,
    better,
    counted_start,
    maximise,
    random_start,
    refine,
)
from actmeasure.inspection.likelihood import Likelihood
from actmeasure.inspection.records import Progress
from actmeasure.interrupts import deferred_interrupts
from actmeasure.statistics import quantile_interval

__all__ = [
    "MOST_FREE",
    "ROUGH_GAIN",
    "Confounded",
    "Replication",
    "confounded_errors",
    "flat_directions",
    "informed_rows",
    "intervals",
    "largest_entries",
    "one_step_counts",
    "other_chains",
    "resample",
]

T = TypeVar("T")

#: A replicate starts this fraction of the way from the estimate to the first start, because probabilities of 0 stay 0.
TOWARDS_START = 0.05
#: `least_gain` of `maximise` for a replicate, and where recorded states may be wrong, in which case the steps are smaller.
LEAST_GAIN, LEAST_GAIN_WITH_ERRORS = 1e-3, 1e-4
#: Number of transitions that a replicate adds to every row, distributed at random over the allowed ones.
ADDED = 1.0
#: Smallest number that is added to an allowed transition, so that its probability is not 0.
LEAST_ADDED = 1e-9
#: A transition expected less often than this in the records may be impossible.
RARE = 0.5
#: Directions with less than this fraction of the information of complete records are flat.
FLAT = 1e-6
#: The same where the information is that of finite differences, which are less accurate.
FLAT_OBSERVED = 1e-5
#: Step of finite differences, as a fraction of the standard error of complete records.
DIFFERENCE_STEP = 0.01
#: Smallest eigenvalue of the information, relative to that of complete records, that is used for standard errors.
LEAST_INFORMATION = 1e-6
#: An error and a transition are hardly told apart if the correlation of their estimates is above the first, and the standard
#: error of the error above the second or that of the transition above the third times its estimate.
CONFOUNDED, VAGUE_ERROR, VAGUE_RATE = 0.9, 0.1, 0.5
#: Number of groups of gaps for the first computation of flat directions, which are then checked with all groups.
SOME_GROUPS = 1000
#: Largest number of free probabilities for which flat directions are computed.
MOST_FREE = 1000
#: Most transitions that are named of those that directions change.
MOST_LISTED = 6
#: Largest difference in log-likelihood of chains that fit equally well.
EQUALLY_LIKELY = 0.05
#: Smallest difference in a probability of chains that count as different.
DIFFERENT = 0.02
#: `least_gain` of the first search from a random start, and the largest difference in log-likelihood to the best chain at which
#: that search is continued to convergence.
ROUGH_GAIN, CONTINUED = 1e-2, 1.0
#: The same difference where recorded states may be wrong, in which case the first search ends further below a maximum, and the
#: fraction of parameters that a search without some of them keeps.
CONTINUED_WITH_ERRORS, KEPT = 5.0, 0.7


@dataclass(frozen=True)
class Replication:
    """How the chain is fitted again to resampled or simulated records.

    Attributes
    ----------
    likelihood : Likelihood
    fitted : float64 array, shape (B, S, S)
        The parameters of the estimate.
    start : float64 array, shape (B, S, S)
        The start of the search for the estimate; above 0 where parameters may be.
    fixed : float64 array, shape (B, S, S)
        Parameters that are not estimated; NaN in all others.
    progress : function of (task, done, total)
    """

    likelihood: Likelihood
    fitted: FloatArray
    start: FloatArray
    fixed: FloatArray
    progress: Progress

    def fit(self, data: Data, added: FloatArray | None = None) -> FloatArray:
        """Return the parameters for other records, see `Likelihood.data`, and numbers of added transitions, (B, S, S)."""
        begin = (1 - TOWARDS_START) * self.fitted + TOWARDS_START * self.start
        gain = LEAST_GAIN if self.likelihood.errors is None else LEAST_GAIN_WITH_ERRORS
        return maximise(self.likelihood, data, begin, self.fixed, added, gain).parameters

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
    """Return parameters fitted to randomly weighted units, shape (n, B, S, S); after Ctrl-C, the replicates done by then.

    Weights are exponential (the Bayesian bootstrap), so that every unit keeps some weight. Without more, transitions that the
    records happen not to show would be impossible in every replicate, and intervals too short where data are few; so every row
    gets about one additional transition, distributed at random.
    """
    gaps, allowed = replication.likelihood.gaps, replication.start > 0
    shares = np.where(allowed, ADDED / np.maximum(allowed.sum(axis=2, keepdims=True), 1), 1.0)

    # With intensities, the time of the added transitions is that of the estimate.
    rates, diagonal = replication.likelihood.rates, np.eye(allowed.shape[1], dtype=bool)
    leaving = np.where(rates, replication.fitted, 0.0).sum(axis=2, keepdims=True)
    time = np.where(rates & diagonal & (leaving > 0), 1.0 / np.where(leaving > 0, leaving, 1.0), 0.0)

    def replicate() -> FloatArray:
        weights = rng.exponential(size=gaps.n_units)
        weights *= gaps.n_units / weights.sum()
        added = np.where(allowed, rng.gamma(shares) + LEAST_ADDED, 0.0)
        return replication.fit(replication.likelihood.data(weights), added + added.sum(axis=2, keepdims=True) * time)

    return np.array(replication.repeat("intervals", replicates, replicate)).reshape(-1, *replication.fitted.shape)


def intervals(
    fitted: FloatArray,
    transitions: FloatArray,
    replicates: FloatArray,
    level: float,
    rates: npt.NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the low and high ends, shape (B, S, S), of intervals with coverage probability `level`.

    They are those of the replicates, see `quantile_interval`, widened to contain the estimate. A transition that the records do
    not show may be impossible, so its interval begins at 0; the interval of the only transition that they show ends at 1, unless
    it is an intensity.

    Parameters
    ----------
    fitted, transitions : float64 arrays, shape (B, S, S)
        The estimate and the expected number of each transition.
    replicates : float64 array, shape (n, B, S, S)
    level : float
    rates : bool array, shape (B, 1, 1), optional
        Which blocks hold intensities.
    """
    low, high = quantile_interval(replicates, level)
    low, high = np.minimum(low, fitted), np.maximum(high, fitted)
    others = transitions.sum(axis=2, keepdims=True) - transitions
    only = others < RARE if rates is None else (others < RARE) & ~rates
    return np.where(transitions < RARE, 0.0, low), np.where(only, 1.0, high)


@dataclass(frozen=True)
class _FreeParameters:
    """Free parameters: arrays of shape (n_free,) with block, row, column, and the column that makes rows sum to 1.

    For intensities the last is the diagonal, which has no parameter of its own.
    """

    block: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    to: npt.NDArray[np.int64]
    against: npt.NDArray[np.int64]

    def direction(self, weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Return changes of the free parameters as a change of all, (B, S, S), with row sums of 0."""
        change = np.zeros(shape)
        np.add.at(change, (self.block, self.state, self.to), weights)
        np.add.at(change, (self.block, self.state, self.against), -weights)
        return change


def flat_directions(likelihood: Likelihood, estimate: ChainEstimate, fixed: FloatArray) -> list[FloatArray] | None:
    """Return directions, each (B, S, S), in which the likelihood is flat; None with more than `MOST_FREE` free parameters.

    They solve the generalised eigenvalue problem of the Fisher information of the inspections against that of complete records,
    with an inspection in every period (or all the time) and without errors: eigenvalues near 0 are directions that no number of
    such gaps determines.
    """
    free = _free(likelihood, estimate, fixed)
    if len(free.block) > MOST_FREE:
        return None
    if not len(free.block):
        return []
    shape = estimate.parameters.shape
    complete = _complete_information(estimate, free)
    if likelihood.gaps.continuous or likelihood.errors is not None:
        values, vectors = linalg.eigh(_observed_information(likelihood, estimate, free), complete)
        return [free.direction(vector, shape) for vector in vectors[:, values < FLAT_OBSERVED].T]
    counts = likelihood.gaps.counts()
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    identity = np.eye(len(free.block))
    seen = _information(likelihood, estimate, free, identity, counts, order[:SOME_GROUPS])
    values, vectors = linalg.eigh(seen, complete)
    suspects = vectors[:, values < FLAT]
    if suspects.shape[1] and len(order) > SOME_GROUPS:
        information = _information(likelihood, estimate, free, suspects, counts, order)
        values, rotation = np.linalg.eigh(information)  # the suspects are orthonormal in the complete information
        suspects = suspects @ rotation[:, values < FLAT]
    return [free.direction(vector, shape) for vector in suspects.T]


@dataclass(frozen=True)
class Confounded:
    """An error and a transition that the records hardly tell apart.

    Attributes
    ----------
    error : tuple of (state, recorded state)
    transition : tuple of (block, state, successor)
    correlation : float
        Of their estimates, from the curvature of the likelihood.
    standard_error : float
        Of the probability of the error.
    """

    error: tuple[int, int]
    transition: tuple[int, int, int]
    correlation: float
    standard_error: float


def confounded_errors(likelihood: Likelihood, estimate: ChainEstimate, fixed: FloatArray) -> Confounded | None:
    """Return the error and the transition that are told apart worst, if the records hardly do so; None otherwise.

    Standard errors come from the inverse of the observed information. They are large where it is close to singular.
    """
    free = _free(likelihood, estimate, fixed)
    n_dynamic = likelihood.gaps.n_blocks
    errors, dynamic = np.flatnonzero(free.block == n_dynamic), np.flatnonzero(free.block < n_dynamic)
    if not len(errors) or not len(dynamic) or len(free.block) > MOST_FREE:
        return None
    complete = _complete_information(estimate, free)
    values, vectors = linalg.eigh(_observed_information(likelihood, estimate, free), complete)
    covariance = (vectors / np.maximum(values, LEAST_INFORMATION)) @ vectors.T
    standard = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    correlation = covariance / np.outer(standard, standard)
    own = estimate.parameters[free.block, free.state, free.to]
    vague = (standard[errors] > VAGUE_ERROR)[:, None] | (standard[dynamic] > VAGUE_RATE * own[dynamic])[None, :]
    pairs = np.where(vague, np.abs(correlation[np.ix_(errors, dynamic)]), 0.0)
    row, column = np.unravel_index(int(np.argmax(pairs)), pairs.shape)
    if pairs[row, column] < CONFOUNDED:
        return None
    error, other = int(errors[row]), int(dynamic[column])
    return Confounded(
        (int(free.state[error]), int(free.to[error])),
        (int(free.block[other]), int(free.state[other]), int(free.to[other])),
        float(correlation[error, other]),
        float(standard[error]),
    )


def _observed_information(likelihood: Likelihood, estimate: ChainEstimate, free: _FreeParameters) -> FloatArray:
    """Return minus the second derivatives of the log-likelihood, (n_free, n_free), from differences of its gradient."""
    data, shape = likelihood.data(), estimate.parameters.shape
    at = (free.block, free.state, free.to), (free.block, free.state, free.against)
    values = estimate.parameters
    exposure = np.maximum(estimate.exposure[free.block, free.state], 1e-12)
    room = np.where(likelihood.rates[free.block, 0, 0], np.inf, values[at[1]])
    steps = np.minimum(DIFFERENCE_STEP * np.sqrt(values[at[0]] / exposure), 0.4 * np.minimum(values[at[0]], room))
    rows = []
    for number, step in enumerate(steps):
        change = free.direction(step * (np.arange(len(steps)) == number), shape)
        change = np.where(likelihood.rates & np.eye(shape[1], dtype=bool), 0.0, change)
        above, below = (likelihood.gradient(values + sign * change, data)[1] for sign in (1, -1))
        slope = above - below
        rows.append((slope[at[0]] - slope[at[1]]) / (2 * step))
    information = -np.array(rows)
    symmetric: FloatArray = (information + information.T) / 2
    return symmetric


def informed_rows(likelihood: Likelihood, estimate: ChainEstimate) -> npt.NDArray[np.bool_]:
    """Return the rows about which there are data, (B, S): a period or mean gap in the state, or a transition from it."""
    least = np.where(estimate.rates[:, :, 0], likelihood.mean_length, 1.0)
    leaving = np.where(np.eye(estimate.parameters.shape[1], dtype=bool), 0.0, estimate.transitions).sum(axis=2)
    informed: npt.NDArray[np.bool_] = (estimate.exposure >= least) | (leaving >= 1.0)
    return informed


def _free(likelihood: Likelihood, estimate: ChainEstimate, fixed: FloatArray) -> _FreeParameters:
    """Return the positive parameters that were estimated, except the largest one of each row of probabilities."""
    rows = []
    estimated = np.isnan(fixed).any(axis=2) & informed_rows(likelihood, estimate)
    for block, state in np.argwhere(estimated):
        row = np.where(np.isnan(fixed[block, state]), estimate.parameters[block, state], 0.0)
        against = state if estimate.rates[block, 0, 0] else int(np.argmax(row))
        rows += [(block, state, to, against) for to in np.flatnonzero(row > 0) if to != against]
    return _FreeParameters(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def _information(
    likelihood: Likelihood,
    estimate: ChainEstimate,
    free: _FreeParameters,
    directions: FloatArray,
    counts: FloatArray,
    groups: npt.NDArray[np.int64],
) -> FloatArray:
    """Return the Fisher information of the ends of some groups of gaps, (n, n), about `directions`, float64 (n_free, n)."""
    ends = _with_unseen(likelihood.end_probabilities(estimate.parameters)[groups])
    weights = counts[groups]
    if not likelihood.gaps.noticed.any():  # then expected counts can be used, which vary less than observed ones
        weights = weights.sum(axis=1, keepdims=True) * np.c_[ends[:, :-1], np.zeros(len(groups))]
    scale = np.divide(np.sqrt(weights), ends, out=np.zeros_like(ends), where=ends > 1e-12)
    shape = estimate.parameters.shape
    rates = [
        scale * _with_unseen(likelihood.end_derivatives(estimate.parameters, free.direction(one, shape), groups))
        for one in directions.T
    ]
    flat = np.stack([rate.ravel() for rate in rates], axis=1)
    information: FloatArray = flat.T @ flat
    return information


def _with_unseen(ends: FloatArray) -> FloatArray:
    """Return the array with a last column, the sum of the others, for gaps whose last state was not observed."""
    extended: FloatArray = np.c_[ends, ends.sum(axis=1)]
    return extended


def _complete_information(estimate: ChainEstimate, free: _FreeParameters) -> FloatArray:
    """Return the Fisher information, (n_free, n_free), of records that show every transition and error."""
    exposure = estimate.exposure[free.block, free.state]
    own = estimate.parameters[free.block, free.state, free.to]
    other = estimate.parameters[free.block, free.state, free.against]
    same = (free.block[:, None] == free.block) & (free.state[:, None] == free.state)
    shared = np.where(other > 0, exposure / np.where(other > 0, other, 1.0), 0.0)  # intensities do not share a sum
    information: FloatArray = np.diag(np.maximum(exposure, 1e-9) / own) + same * shared[:, None]
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
    """Return the best estimate of several random starts, and different ones that are as likely.

    Where recorded states may be wrong, every other search is one without some of the parameters, at random: the EM algorithm
    comes closest to a maximum on the boundary if it starts there. Searches are continued from further below then, too.
    """
    data = likelihood.data()
    best, estimates = estimate, [estimate]
    wrong = likelihood.errors is not None
    diagonal = np.eye(allowed.shape[1], dtype=bool)
    typical = counted_start(likelihood, allowed, fixed) if likelihood.rates.any() else None
    with deferred_interrupts() as interrupts:
        for number in range(starts):
            if interrupts.requested:
                break
            fewer = allowed & ((rng.random(allowed.shape) < KEPT) | diagonal) if wrong and number % 2 else allowed
            start = random_start(fewer, fixed, rng)
            if typical is not None:  # random intensities are of the order of magnitude of the counted ones
                start = np.where(likelihood.rates, typical * fewer * rng.lognormal(sigma=1.0, size=fewer.shape), start)
            if not np.isfinite(likelihood.gradient(start, data)[0]):  # the records need what was left out
                continue
            one = maximise(likelihood, data, start, fixed, least_gain=ROUGH_GAIN)
            if wrong and one.log_likelihood > best.log_likelihood - CONTINUED_WITH_ERRORS:
                one = refine(likelihood, data, one, allowed, fixed)
            if _is_other(likelihood, one, best, CONTINUED):
                one = maximise(likelihood, data, one.parameters, fixed)
                estimates.append(one)
                best = better(best, one)
    return best, [one for one in estimates if _is_other(likelihood, one, best, EQUALLY_LIKELY)]


def _is_other(likelihood: Likelihood, one: ChainEstimate, best: ChainEstimate, slack: float) -> bool:
    """Return whether a chain is at most `slack` less likely than the best, and different in rows with data."""
    informed = informed_rows(likelihood, best)[:, :, None]
    scale = np.where(best.rates, np.maximum(best.parameters.max(axis=(1, 2), keepdims=True), 1e-300), 1.0)
    difference = np.abs(np.where(informed, one.parameters - best.parameters, 0.0) / scale).max()
    return bool(difference > DIFFERENT and one.log_likelihood > best.log_likelihood - slack)


def largest_entries(directions: Sequence[FloatArray]) -> list[tuple[int, int, int]]:
    """Return the transitions (action, state, successor) that directions, each (A, S, S), change most."""
    size = np.max([np.abs(one) / np.abs(one).max() for one in directions], axis=0)
    order = np.argsort(-size, axis=None, kind="stable")[:MOST_LISTED]
    entries = [tuple(int(part) for part in np.unravel_index(int(entry), size.shape)) for entry in order]
    return [(action, state, to) for action, state, to in entries if size[action, state, to] > 0.1]
