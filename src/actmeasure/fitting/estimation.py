"""The most likely transition probabilities, by expectation and maximisation with accelerated steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.fitting.likelihood import FloatArray, Likelihood

__all__ = ["Estimate", "maximise", "persistent_start", "random_start"]

#: Probabilities below this are 0 in the end; on their way there they shrink for ever.
NEGLIGIBLE = 1e-7
MOST_ROUNDS = 3000
#: A long step may shrink a probability to no less than this share of what the short steps make it.
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class Estimate:
    """The end of a search.

    Attributes
    ----------
    probabilities : float64 array, shape (A, S, S)
    log_likelihood : float
    transitions : float64 array, shape (A, S, S)
        Expected number of each transition.
    path : list of float
        The log-likelihood before each round; it never falls.
    converged : bool
    """

    probabilities: FloatArray
    log_likelihood: float
    transitions: FloatArray
    path: list[float]
    converged: bool

    @property
    def exposure(self) -> FloatArray:
        """Expected number of periods that began in each state with each action, shape (A, S)."""
        exposure: FloatArray = self.transitions.sum(axis=2)
        return exposure


def persistent_start(allowed: npt.NDArray[np.bool_], fixed: FloatArray) -> FloatArray:
    """Where every search begins: units rather stay where they are. Rows of `fixed` that are not NaN are taken as they are."""
    n_states = allowed.shape[1]
    start = allowed / allowed.sum(axis=2, keepdims=True)
    start = start + 2.0 * (allowed & np.eye(n_states, dtype=bool))
    start /= start.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), start, fixed)


def random_start(allowed: npt.NDArray[np.bool_], fixed: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A start that prefers nothing."""
    start = rng.exponential(size=allowed.shape) * allowed + 1e-3 * allowed
    start /= start.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), start, fixed)


def maximise(
    likelihood: Likelihood,
    counts: FloatArray,
    start: FloatArray,
    fixed: FloatArray,
    prior: FloatArray | None = None,
    enough: float = 1e-7,
    most_rounds: int = MOST_ROUNDS,
) -> Estimate:
    """Search for the most likely probabilities from a start; what is 0 there stays 0.

    A round makes two steps of expectation and maximisation and a long one in the direction in which they bend (SQUAREM of
    Varadhan and Roland, 2008), which is taken back if it would lower the likelihood. The search ends when a round gains less
    than `enough` in the logarithm of the likelihood; a difference of 1 is what chance makes. A `prior`, (A, S, S), are
    transitions that count as seen besides the records; the logarithm of its density is then part of what is maximised.
    """
    now, converged = start, False
    path: list[float] = []

    def expect(probabilities: FloatArray) -> tuple[float, FloatArray]:
        value, transitions = likelihood.expected(probabilities, counts)
        if prior is None:
            return value, transitions
        with np.errstate(divide="ignore"):
            return value + float((prior * np.log(np.where(prior > 0, probabilities, 1.0))).sum()), transitions + prior

    value, expected = expect(now)
    while len(path) < most_rounds:
        path.append(value)
        if len(path) > 1 and value - path[-2] < enough:
            converged = True
            break
        once = _normalised(expected, now, fixed)
        value_once, expected = expect(once)
        twice = _normalised(expected, once, fixed)
        far = _extrapolated(now, once, twice, fixed)
        value, expected = expect(far)
        now = far
        if value < value_once:
            value, expected = expect(twice)
            now = twice
    if prior is not None:
        return Estimate(now, value, expected, path, converged)
    return _without_negligible(Estimate(now, value, expected, path, converged), likelihood, counts, fixed)


def _normalised(expected: FloatArray, before: FloatArray, fixed: FloatArray) -> FloatArray:
    """The probabilities that make the expected transitions most likely; rows in which nothing happens stay as they were."""
    total = expected.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.where(total > 0, expected / total, before)
    return np.where(np.isnan(fixed), rows, fixed)


def _extrapolated(now: FloatArray, once: FloatArray, twice: FloatArray, fixed: FloatArray) -> FloatArray:
    change = once - now
    bend = twice - once - change
    length = np.sqrt((bend**2).sum())
    step = max(1.0, np.sqrt((change**2).sum()) / length) if length > 0 else 1.0
    far = now + 2 * step * change + step**2 * bend
    far = np.maximum(far, SMALLEST_SHARE * twice)
    far /= far.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), far, fixed)


def _without_negligible(found: Estimate, likelihood: Likelihood, counts: FloatArray, fixed: FloatArray) -> Estimate:
    """The estimate without probabilities that only have not reached 0 yet, unless the records need them."""
    kept = np.where(found.probabilities < NEGLIGIBLE, 0.0, found.probabilities)
    if np.array_equal(kept, found.probabilities):
        return found
    kept = np.where(np.isnan(fixed), kept / kept.sum(axis=2, keepdims=True), fixed)
    value, expected = likelihood.expected(kept, counts)
    if value < found.log_likelihood - 1e-3:
        return found
    return Estimate(kept, value, expected, found.path, found.converged)
