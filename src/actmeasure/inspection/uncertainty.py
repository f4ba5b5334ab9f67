"""Bootstrap over units: the fit to other records that could have come from such units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from actmeasure.inspection.estimation import Estimate, FloatArray, Likelihood, maximise, random_start
from actmeasure.inspection.records import Progress
from actmeasure.interrupts import deferred_interrupts

__all__ = ["ENOUGH", "FRESH", "flat_directions", "intervals", "one_step_counts", "other_chains", "resample"]

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


# ----------------------------------------------------------------------------------------------------
# Intervals for probabilities from bootstrap replicates.
# ----------------------------------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------------------------------
# What no amount of such records could tell.
# ----------------------------------------------------------------------------------------------------


#: Directions in which less than this share of the information is in the records are flat.
FLAT = 1e-6
#: So many groups of gaps give the first guess at flat directions, which is then checked with all of them.
SOME_GROUPS = 1000
#: With more free probabilities the matrix of their information takes too long.
MOST_FREE = 1000
#: Chains whose log-likelihoods differ by less fit equally well; chains that differ by more are different.
EQUALLY_LIKELY, DIFFERENT = 0.05, 0.02
#: A search from a random start ends when a round gains less than this; it may then still gain so much, and is ended properly if
#: it seems to lead to another chain.
ROUGHLY, UNSETTLED = 1e-2, 1.0


@dataclass(frozen=True)
class _Free:
    """Probabilities that can change, each against the largest one of its row: arrays of shape (n_free,)."""

    action: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    to: npt.NDArray[np.int64]
    against: npt.NDArray[np.int64]

    def direction(self, weights: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Weights of the free probabilities as a change of all of them."""
        change = np.zeros(shape)
        np.add.at(change, (self.action, self.state, self.to), weights)
        np.add.at(change, (self.action, self.state, self.against), -weights)
        return change


def flat_directions(likelihood: Likelihood, estimate: Estimate, fixed: FloatArray) -> list[FloatArray] | None:
    """Changes of the probabilities, each (A, S, S), that change nothing that can be seen; None if there are too many to tell.

    Compared is the information in the inspections with that in a complete record of every period; a direction without any is one
    that gaps of these lengths hide for ever.
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
        values, turned = np.linalg.eigh(information)  # the suspects are orthonormal by the complete information
        suspects = suspects @ turned[:, values < FLAT]
    shape = estimate.probabilities.shape
    return [free.direction(vector, shape) for vector in suspects.T]


def _free(estimate: Estimate, fixed: FloatArray) -> _Free:
    rows = []
    told = np.isnan(fixed[:, :, 0]) & (estimate.exposure >= 1)
    for action, state in np.argwhere(told):
        row = estimate.probabilities[action, state]
        against = int(np.argmax(row))
        rows += [(action, state, to, against) for to in np.flatnonzero(row > 0) if to != against]
    return _Free(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def _information(
    likelihood: Likelihood,
    estimate: Estimate,
    free: _Free,
    directions: FloatArray,
    counts: FloatArray,
    groups: npt.NDArray[np.int64],
) -> FloatArray:
    """The information in the ends of some groups of gaps about directions, the columns of an array of shape (n_free, n)."""
    chances = _with_unseen(likelihood.end_chances(estimate.probabilities)[groups])
    weights = counts[groups]
    if (
        not likelihood.gaps.noticed.any()
    ):  # then every end was possible, and what is expected says more than what was seen
        weights = weights.sum(axis=1, keepdims=True) * np.c_[chances[:, :-1], np.zeros(len(groups))]
    scale = np.divide(np.sqrt(weights), chances, out=np.zeros_like(chances), where=chances > 1e-12)
    rates = [
        scale
        * _with_unseen(
            likelihood.end_changes(estimate.probabilities, free.direction(one, estimate.probabilities.shape), groups)
        )
        for one in directions.T
    ]
    flat = np.stack([rate.ravel() for rate in rates], axis=1)
    information: FloatArray = flat.T @ flat
    return information


def _with_unseen(ends: FloatArray) -> FloatArray:
    """With a last column for ends that were not seen, which is what the others sum to."""
    both: FloatArray = np.c_[ends, ends.sum(axis=1)]
    return both


def _complete_information(estimate: Estimate, free: _Free) -> FloatArray:
    """The information there would be if every period had been inspected."""
    exposure = estimate.exposure[free.action, free.state]
    own = estimate.probabilities[free.action, free.state, free.to]
    other = estimate.probabilities[free.action, free.state, free.against]
    same = (free.action[:, None] == free.action) & (free.state[:, None] == free.state)
    information: FloatArray = np.diag(exposure / own) + same * (exposure / other)[:, None]
    return information


def one_step_counts(likelihood: Likelihood) -> FloatArray:
    """How often an action was followed by an inspection right away, shape (A, S): what such rows tell is beyond doubt."""
    gaps = likelihood.gaps
    table = np.zeros((gaps.n_actions, gaps.n_states))
    short = (gaps.length == 1) & (gaps.end < gaps.n_states)
    np.add.at(table, (gaps.action[short], gaps.begin[short]), 1)
    return table


def other_chains(
    likelihood: Likelihood,
    estimate: Estimate,
    allowed: npt.NDArray[np.bool_],
    fixed: FloatArray,
    starts: int,
    rng: np.random.Generator,
) -> tuple[Estimate, list[Estimate]]:
    """The best estimate from several random starts, and others that are as likely and different."""
    counts = likelihood.gaps.counts()
    best, found = estimate, [estimate]
    with deferred_interrupts() as interrupts:
        for _ in range(starts):
            if interrupts.requested:
                break
            one = maximise(likelihood, counts, random_start(allowed, fixed, rng), fixed, enough=ROUGHLY)
            if _is_other(one, best, UNSETTLED):
                one = maximise(likelihood, counts, one.probabilities, fixed)
                found.append(one)
                best = one if one.log_likelihood > best.log_likelihood + EQUALLY_LIKELY else best
    return best, [one for one in found if _is_other(one, best, EQUALLY_LIKELY)]


def _is_other(one: Estimate, best: Estimate, slack: float) -> bool:
    """Whether a chain is about as likely as the best, and different where the records tell about it."""
    told = (best.exposure >= 1)[:, :, None]
    difference = np.abs(np.where(told, one.probabilities - best.probabilities, 0.0)).max()
    return bool(difference > DIFFERENT and one.log_likelihood > best.log_likelihood - slack)


def entries(changes: Sequence[FloatArray], states: Sequence[str], actions: Sequence[str], most: int = 6) -> str:
    """The transitions that directions change most, in words."""
    size = np.max([np.abs(change) / np.abs(change).max() for change in changes], axis=0)
    found = []
    for place in np.argsort(-size, axis=None, kind="stable")[:most]:
        action, state, to = (int(part) for part in np.unravel_index(int(place), size.shape))
        if size[action, state, to] > 0.1:
            found.append(f"{actions[action]} from {states[state]} to {states[to]}")
    return "; ".join(found)
