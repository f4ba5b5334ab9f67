"""Maximum likelihood estimation of chains, intensities and errors from records of inspections.

`maximise` runs the EM algorithm with accelerated steps, which comes close to a maximum quickly. `refine` goes on with a
quasi-Newton method that can also leave the boundary, where the EM algorithm stays, and checks the conditions of a maximum.
`nested_masks` and the functions below it return where searches start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from actmeasure.inspection.likelihood import Likelihood, WeightedUnits
from actmeasure.inspection.structures import STRUCTURES, named_mask

__all__ = [
    "FASTEST",
    "ChainEstimate",
    "better",
    "counted_start",
    "fast_start",
    "is_maximum",
    "maximise",
    "nested_masks",
    "persistent_start",
    "random_start",
    "refine",
    "starts_without",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Data = FloatArray | WeightedUnits

#: Estimated probabilities below this are set to 0: EM approaches 0 without reaching it.
NEGLIGIBLE = 1e-7
#: Largest number of rounds of `maximise`, and in continuous time and with errors.
MOST_ROUNDS, FEW_ROUNDS = 3000, 300
#: An extrapolated step keeps at least this fraction of each probability of the plain EM step.
SMALLEST_FRACTION = 0.01
#: Intensities are at most this many transitions in a gap of mean length: records do not tell larger ones apart.
FASTEST = 1e3
#: At a maximum, expected transitions differ from what the parameters imply by at most this fraction of the square root of their
#: number (their standard error), and at least by `LEAST_RESIDUAL` to count.
RESIDUAL, LEAST_RESIDUAL = 0.02, 1e-3
#: Relative slope at a parameter of 0 from which it is not at its maximum there.
INWARD = 1e-3
#: An estimate is replaced by one with a log-likelihood that is larger by more than this.
LEAST_IMPROVEMENT = 1e-5
#: Largest number of quasi-Newton searches of `refine`, and iterations of each.
MOST_SEARCHES, MOST_ITERATIONS = 4, 500
#: Largest number of errors of which every combination is left out in one of the searches.
FEW_ERRORS = 3
#: Probability of a correct record at the start of a search.
START_CORRECT = 0.9
#: Transitions of each kind in a gap of mean length at the start of a search in which states change quickly.
FAST = 10.0


@dataclass(frozen=True)
class ChainEstimate:
    """The result of `maximise` and `refine`.

    Attributes
    ----------
    parameters : float64 array, shape (B, S, S)
        See `actmeasure.inspection.likelihood`.
    log_likelihood : float
    transitions : float64 array, shape (B, S, S)
        Expected number of each transition; the diagonal of intensities has the expected time in the state.
    rates : bool array, shape (B, 1, 1)
        Which blocks hold intensities.
    path : list of float
        The log-likelihood before each round of `maximise`; it never decreases.
    converged : bool
        Of `maximise`: whether the last round gained little. Of `refine`: whether the conditions of a maximum hold.
    """

    parameters: FloatArray
    log_likelihood: float
    transitions: FloatArray
    rates: BoolArray
    path: list[float]
    converged: bool

    @property
    def exposure(self) -> FloatArray:
        """Expected number of periods, or time, that began in each state with each action, shape (B, S)."""
        time = self.transitions.diagonal(axis1=1, axis2=2)
        exposure: FloatArray = np.where(self.rates[:, :, 0], time, self.transitions.sum(axis=2))
        return exposure


def maximise(
    likelihood: Likelihood,
    data: Data,
    start: FloatArray,
    fixed: FloatArray,
    prior: FloatArray | None = None,
    least_gain: float = 1e-7,
    most_rounds: int | None = None,
) -> ChainEstimate:
    """Maximise the likelihood by the EM algorithm from a start; probabilities that are 0 there stay 0.

    A round makes two EM steps and an extrapolated one (SQUAREM of Varadhan and Roland, 2008), which is rejected if it lowers the
    likelihood.

    Parameters
    ----------
    likelihood : Likelihood
    data : float64 array of shape (G, S + 1), or WeightedUnits
        See `Likelihood.data`.
    start : float64 array, shape (B, S, S)
    fixed : float64 array, shape (B, S, S)
        Parameters that are not estimated; NaN in all others.
    prior : float64 array, shape (B, S, S), optional
        Numbers of transitions that are added to the expected ones. The logarithm of the corresponding Dirichlet density is then
        part of what is maximised.
    least_gain : float
        The iteration has converged when a round increases the log-likelihood by less than this.
    most_rounds : int, optional
        By default `MOST_ROUNDS`, or `FEW_ROUNDS` in continuous time and with errors, where rounds take longer and `refine`
        follows.
    """
    now, converged = start, False
    path: list[float] = []
    rates = likelihood.rates
    step = _Step(fixed, rates, FASTEST / likelihood.mean_length)
    if most_rounds is None:
        most_rounds = MOST_ROUNDS if likelihood.errors is None and not rates.any() else FEW_ROUNDS

    def expect(probabilities: FloatArray) -> tuple[float, FloatArray]:
        value, transitions = likelihood.expected(probabilities, data)
        if prior is None:
            return value, transitions
        if rates.any():  # the diagonal of intensities holds time, which counts against leaving the state
            time = np.where(rates & step.diagonal, prior, 0.0).sum(axis=2)
            value -= float((time * np.where(rates, probabilities, 0.0).sum(axis=2)).sum())
        counts = np.where(rates & step.diagonal, 0.0, prior)
        with np.errstate(divide="ignore"):
            return value + float((counts * np.log(np.where(counts > 0, probabilities, 1.0))).sum()), transitions + prior

    value, expected = expect(now)
    while len(path) < most_rounds:
        path.append(value)
        if len(path) > 1 and value - path[-2] < least_gain:
            converged = True
            break
        once = step.maximised(expected, now)
        value_once, expected = expect(once)
        twice = step.maximised(expected, once)
        far = step.extrapolated(now, once, twice)
        value, expected = expect(far)
        now = far
        if value < value_once:
            value, expected = expect(twice)
            now = twice
    estimate = ChainEstimate(now, value, expected, rates, path, converged)
    return estimate if prior is not None else _without_negligible(estimate, likelihood, data, step)


class _Step:
    """Steps of the EM algorithm; `fixed` is NaN where parameters are estimated, and `rates` marks intensities."""

    def __init__(self, fixed: FloatArray, rates: BoolArray, fastest: float) -> None:
        self.fixed, self.rates, self.fastest = fixed, rates, fastest
        self.free = np.isnan(fixed)
        self.diagonal = np.eye(fixed.shape[1], dtype=bool)
        #: What the estimated probabilities of a row sum to.
        self.room = 1.0 - np.where(self.free, 0.0, fixed).sum(axis=2, keepdims=True)

    def maximised(self, expected: FloatArray, before: FloatArray) -> FloatArray:
        """Return expected transitions divided by row sums, or by the time in the state; rows without any stay as they were."""
        chosen = np.where(self.free, expected, 0.0) + 0.0  # without negative zeros
        total = chosen.sum(axis=2, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            rows = np.where(total > 0, self.room * chosen / total, before)
            if self.rates.any():
                time = expected.diagonal(axis1=1, axis2=2)[:, :, None]
                rates = np.where(time > 0, np.minimum(chosen / time, self.fastest), before)
                rows = np.where(self.rates, np.where(self.diagonal, 0.0, rates), rows)
        return np.where(self.free, rows, self.fixed)

    def normalised(self, parameters: FloatArray) -> FloatArray:
        """Return the parameters with rows of probabilities that sum to 1, and with the fixed ones."""
        chosen = np.where(self.free, parameters, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = np.where(
                self.rates, np.minimum(chosen, self.fastest), self.room * chosen / chosen.sum(axis=2, keepdims=True)
            )
        return np.where(self.free, rows, self.fixed)

    def extrapolated(self, now: FloatArray, once: FloatArray, twice: FloatArray) -> FloatArray:
        """Return the SQUAREM step from iterates x0, x1, x2: x0 + 2 a r + a^2 v, r = x1 - x0, v = x2 - x1 - r, a = |r| / |v|."""
        change = once - now
        bend = twice - once - change
        length = np.sqrt((bend**2).sum())
        step = max(1.0, np.sqrt((change**2).sum()) / length) if length > 0 else 1.0
        far = now + 2 * step * change + step**2 * bend
        return self.normalised(np.maximum(far, SMALLEST_FRACTION * twice))


def _without_negligible(estimate: ChainEstimate, likelihood: Likelihood, data: Data, step: _Step) -> ChainEstimate:
    """Return the estimate with negligible parameters set to 0, unless that lowers the likelihood."""
    negligible = NEGLIGIBLE / np.where(step.rates, likelihood.mean_length, 1.0)
    kept = np.where((estimate.parameters < negligible) & step.free, 0.0, estimate.parameters)
    if np.array_equal(kept, estimate.parameters):
        return estimate
    kept = step.normalised(kept)
    value, expected = likelihood.expected(kept, data)
    if not value >= estimate.log_likelihood - 1e-3:
        return estimate
    return replace(estimate, parameters=kept, log_likelihood=value, transitions=expected)


def refine(
    likelihood: Likelihood, data: Data, estimate: ChainEstimate, allowed: BoolArray, fixed: FloatArray
) -> ChainEstimate:
    """Continue a search with a quasi-Newton method (L-BFGS-B) until the conditions of a maximum hold.

    Unlike the EM algorithm it can increase parameters that are 0. The result keeps the parameters of `estimate` unless others
    have a larger likelihood, and its `converged` says whether the conditions of a maximum hold.

    Parameters
    ----------
    allowed : bool array, shape (B, S, S)
        Parameters that may be above 0.
    fixed : float64 array, shape (B, S, S)
        Parameters that are not estimated; NaN in all others.
    """
    free = allowed & np.isnan(fixed)
    best = estimate
    for number in range(MOST_SEARCHES):
        # Where the likelihood is nearly flat, the EM algorithm meets the conditions some way from the maximum.
        if number and is_maximum(likelihood, data, best, free, fixed):
            break
        following = _quasi_newton(likelihood, data, best, free, fixed)
        if following.log_likelihood < best.log_likelihood:
            break
        best = following
    settled = is_maximum(likelihood, data, best, free, fixed)
    return replace(better(estimate, best), converged=settled)


def better(estimate: ChainEstimate, other: ChainEstimate) -> ChainEstimate:
    """Return the estimate, or the other one if it is clearly more likely."""
    return other if other.log_likelihood > estimate.log_likelihood + LEAST_IMPROVEMENT else estimate


def is_maximum(likelihood: Likelihood, data: Data, estimate: ChainEstimate, free: BoolArray, fixed: FloatArray) -> bool:
    """Return whether the gradient vanishes where parameters are above 0, and points outward where they are 0.

    With m the multiplier of a row (what one transition more from the state is worth; for intensities the time in the state), the
    parameter p with derivative g contributes p (g - m), the number of transitions by which the EM algorithm would change it.
    """
    value, gradient = likelihood.gradient(estimate.parameters, data)
    if value == -np.inf:
        return False
    slope, multiplier = _slopes(estimate.parameters, gradient, fixed, likelihood.rates)
    count = estimate.parameters * gradient
    residual = np.abs(estimate.parameters * slope) > np.maximum(
        RESIDUAL * np.sqrt(np.maximum(count, 0)), LEAST_RESIDUAL
    )
    at_limit = likelihood.rates & (estimate.parameters >= 0.999 * FASTEST / likelihood.mean_length)
    inside = free & (estimate.parameters > 0) & ~at_limit
    # A slope at 0 matters if a transition that is expected once would raise the likelihood noticeably.
    inward = free & (estimate.parameters == 0) & (slope > INWARD * multiplier + LEAST_RESIDUAL)
    return not bool((residual & inside).any() or inward.any())


def _slopes(
    parameters: FloatArray, gradient: FloatArray, fixed: FloatArray, rates: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the slope of the likelihood along the constraints, (B, S, S), and the multiplier of each row, (B, S, 1)."""
    free = np.isnan(fixed)
    room = 1.0 - np.where(free, 0.0, fixed).sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(free, parameters * gradient, 0.0).sum(axis=2, keepdims=True) / np.maximum(room, 1e-300)
    multiplier = np.where(rates, gradient.diagonal(axis1=1, axis2=2)[:, :, None], mean)
    return gradient - multiplier, multiplier


def _quasi_newton(
    likelihood: Likelihood, data: Data, estimate: ChainEstimate, free: BoolArray, fixed: FloatArray
) -> ChainEstimate:
    """Return the estimate after a search with L-BFGS-B.

    Its variables are weights of 0 or more: intensities, or weights that are divided by their row sum. Each is scaled by the
    standard error it would have if every transition had been seen.
    """
    rates = likelihood.rates
    step = _Step(fixed, rates, FASTEST / likelihood.mean_length)
    exposure = np.maximum(estimate.exposure[:, :, None], 1.0 if not rates.any() else likelihood.mean_length)
    scale = np.maximum(np.sqrt(estimate.parameters / exposure), 1.0 / exposure)[free]
    rows = np.broadcast_to(rates, free.shape)[free]
    upper = np.where(rows, step.fastest / scale, np.inf)
    worst = -estimate.log_likelihood + 1e3 + abs(estimate.log_likelihood)

    def weights_of(x: FloatArray) -> FloatArray:
        weights = np.zeros(free.shape)
        weights[free] = np.maximum(x * scale, 0.0)
        return weights

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        weights = weights_of(x)
        total = weights.sum(axis=2, keepdims=True)
        if ((total <= 0) & free.any(axis=2, keepdims=True) & ~rates).any():
            return worst, np.zeros_like(x)
        parameters = step.normalised(np.where(total > 0, weights, estimate.parameters))
        value, gradient = likelihood.gradient(parameters, data)
        if not np.isfinite(value):
            return worst, np.zeros_like(x)
        slope, _ = _slopes(parameters, gradient, fixed, rates)
        with np.errstate(invalid="ignore", divide="ignore"):
            by_weight = np.where(rates, slope, step.room * slope / total)
        return -value, -by_weight[free] * scale

    begin = estimate.parameters[free] / scale
    found = optimize.minimize(
        objective, begin, jac=True, method="L-BFGS-B", bounds=optimize.Bounds(np.zeros_like(begin), upper),
        options={"maxiter": MOST_ITERATIONS, "maxfun": 2 * MOST_ITERATIONS, "maxcor": 30, "ftol": 1e-13, "gtol": 1e-5},
    )  # fmt: skip
    weights = weights_of(found.x)
    total = weights.sum(axis=2, keepdims=True)
    parameters = step.normalised(np.where(rates | (total > 0), weights, estimate.parameters))
    value, expected = likelihood.expected(parameters, data)
    return replace(estimate, parameters=parameters, log_likelihood=value, transitions=expected)


def persistent_start(allowed: BoolArray, fixed: FloatArray) -> FloatArray:
    """Return the start of the main search, in which staying is more likely than any other transition.

    Parameters of `fixed` that are not NaN are taken as they are.
    """
    n_states = allowed.shape[1]
    start = allowed / np.maximum(allowed.sum(axis=2, keepdims=True), 1)
    start = start + 2.0 * (allowed & np.eye(n_states, dtype=bool))
    return _rows(start, fixed)


def random_start(allowed: BoolArray, fixed: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return rows drawn uniformly from the distributions over allowed transitions, kept away from 0."""
    start = rng.exponential(size=allowed.shape) * allowed + 1e-3 * allowed
    return _rows(start, fixed)


def _rows(start: FloatArray, fixed: FloatArray) -> FloatArray:
    """Return non-negative numbers, (B, S, S), divided by their row sums, with the fixed ones as they are."""
    free = np.isnan(fixed)
    room = 1.0 - np.where(free, 0.0, fixed).sum(axis=2, keepdims=True)
    chosen = np.where(free, start, 0.0)
    total = chosen.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.where(total > 0, room * chosen / total, chosen)
    return np.where(free, rows, fixed)


def counted_start(likelihood: Likelihood, allowed: BoolArray, fixed: FloatArray) -> FloatArray:
    """Return parameters from the states at the beginning and end of gaps, as if the transition between had been seen.

    A transition that is not allowed is replaced by a shortest path of allowed ones. Every allowed transition also gets a tenth of
    a count. Errors start with correct records of probability `START_CORRECT`, first states as they were recorded.
    """
    gaps, n_dynamic = likelihood.gaps, likelihood.gaps.n_blocks
    size, n_actions = gaps.n_states, gaps.n_actions
    counts = 0.1 * allowed.astype(np.float64)
    time = np.full((likelihood.n_blocks, size), 0.1 * likelihood.mean_length)
    known = (gaps.end < size) & (gaps.action < n_actions)
    code = ((gaps.action * size) + gaps.begin) * size + np.minimum(gaps.end, size - 1)
    number = np.bincount(code[known], minlength=n_actions * size * size).reshape(n_actions, size, size)
    length = np.zeros((n_actions, size))
    chosen = gaps.action < n_actions
    np.add.at(length, (gaps.action[chosen], gaps.begin[chosen]), gaps.length[chosen])
    for block in range(n_dynamic):
        action = block % n_actions
        paths = _shortest_paths(allowed[block])
        time[block] += length[action]
        for begin, end in np.argwhere(number[action]):
            path = paths.get((int(begin), int(end)), ())
            for here, there in pairwise(path):
                counts[block, here, there] += number[action, begin, end]
    rates = likelihood.rates
    steps = np.where(rates, counts / time[:, :, None], counts)
    diagonal = np.eye(size, dtype=bool)
    staying = np.maximum(time - counts.sum(axis=2), 0.1 * time)[:, :, None]
    steps = np.where(~rates & diagonal & allowed, staying, steps)
    if likelihood.errors is not None:
        chances = allowed[n_dynamic] / np.maximum(allowed[n_dynamic].sum(axis=1, keepdims=True) - 1, 1)
        steps[n_dynamic] = np.where(diagonal, START_CORRECT, (1 - START_CORRECT) * chances)
        if likelihood.n_blocks > n_dynamic + 1:
            begin_counts = np.bincount(np.maximum(likelihood.errors.events.begin, 0), minlength=size) + 0.5
            steps[n_dynamic + 1] = 0.0
            steps[n_dynamic + 1, 0] = begin_counts * allowed[n_dynamic + 1, 0]
    return np.where(rates & np.isnan(fixed), np.where(diagonal, 0.0, steps), _rows(steps, fixed))


def fast_start(likelihood: Likelihood, allowed: BoolArray, fixed: FloatArray) -> FloatArray:
    """Return parameters with the errors of `counted_start` and equal intensities, so high that states mix between records.

    Counts leave a state that is never recorded without transitions, although it may be visited in every gap, or be recorded as
    another one in which units seem to stay.
    """
    start = counted_start(likelihood, allowed, fixed)
    chosen = likelihood.rates & allowed & np.isnan(fixed) & ~np.eye(allowed.shape[1], dtype=bool)
    return np.where(chosen, FAST / likelihood.mean_length, start)


def _shortest_paths(allowed: BoolArray) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return a shortest path of allowed transitions between every two different states that have one."""
    paths: dict[tuple[int, int], tuple[int, ...]] = {}
    for begin in range(len(allowed)):
        frontier: list[tuple[int, ...]] = [(begin,)]
        reached = {begin}
        while frontier:
            following = []
            for path in frontier:
                for there in np.flatnonzero(allowed[path[-1]]).tolist():
                    if there not in reached:
                        reached.add(there)
                        paths[begin, there] = (*path, there)
                        following.append((*path, there))
            frontier = following
    return paths


def starts_without(estimate: ChainEstimate, fixed: FloatArray, rarely: float) -> Iterator[FloatArray]:
    """Yield the parameters of an estimate with one of them 0, for each that is expected less than `rarely`, the rarest first.

    The most frequent probability of a row is not set to 0.
    """
    free = np.isnan(fixed) & ~(estimate.rates & np.eye(fixed.shape[1], dtype=bool)) & (estimate.parameters > 0)
    most = np.where(free, estimate.transitions, -1.0).max(axis=2, keepdims=True)
    rare = free & (estimate.transitions < rarely) & (estimate.rates | (estimate.transitions < most))
    places = np.argwhere(rare)
    for block, state, to in places[np.argsort(estimate.transitions[rare], kind="stable")]:
        start = estimate.parameters.copy()
        row = np.isnan(fixed[block, state])
        before = start[block, state, row].sum()
        start[block, state, to] = 0.0
        if not estimate.rates[block, 0, 0]:
            start[block, state, row] *= before / start[block, state, row].sum()
        yield start


def nested_masks(allowed: BoolArray, n_dynamic: int, n_actions: int) -> Iterator[BoolArray]:
    """Yield the allowed parameters of smaller structures and of fewer errors.

    The structures are each named one, for all actions, and for each action alone. Of the errors of records, if there are any,
    every combination is left out if there are at most `FEW_ERRORS`, otherwise each one and all.
    """
    size = allowed.shape[1]
    seen = {allowed.tobytes()}
    diagonal = np.eye(size, dtype=bool)
    for name in STRUCTURES:
        mask = named_mask(name, size) | diagonal
        for action in range(-1, n_actions if n_actions > 1 else 0):
            nested = allowed.copy()
            blocks: Any = slice(0, n_dynamic) if action < 0 else slice(action, n_dynamic, n_actions)
            nested[blocks] &= mask
            if nested.tobytes() not in seen and (nested.any(axis=2) | ~allowed.any(axis=2)).all():
                seen.add(nested.tobytes())
                yield nested
    if len(allowed) == n_dynamic:
        return
    errors = np.argwhere(allowed[n_dynamic] & ~diagonal)
    numbers = [1, len(errors)] if len(errors) > FEW_ERRORS else range(1, len(errors) + 1)
    for chosen in chain.from_iterable(combinations(errors.tolist(), number) for number in numbers):
        nested = allowed.copy()
        nested[n_dynamic][tuple(np.transpose(chosen))] = False
        yield nested
