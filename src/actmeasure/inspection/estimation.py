"""Maximum likelihood estimation of transition probabilities from gaps between inspections.

`Likelihood` computes the log-likelihood and the expected transitions, `maximise` runs the EM algorithm with accelerated steps.
Below them: which transitions are allowed, and which rows are given by assumptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.gaps import Gaps
from actmeasure.kernels import gap_likelihood as kernel

__all__ = [
    "STAY",
    "STRUCTURES",
    "ChainEstimate",
    "Likelihood",
    "allowed_transitions",
    "assumed_rows",
    "check_assumptions",
    "maximise",
    "persistent_start",
    "random_start",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Estimated probabilities below this are set to 0: EM approaches 0 without reaching it.
NEGLIGIBLE = 1e-7
#: Largest number of rounds of `maximise`.
MOST_ROUNDS = 3000
#: An extrapolated step keeps at least this fraction of each probability of the plain EM step.
SMALLEST_FRACTION = 0.01
#: By name, which states `j` may follow state `i`; states are in order, the best first.
STRUCTURES = {
    "any": lambda i, j: (i >= 0) & (j >= 0),
    "deteriorate": lambda i, j: j >= i,
    "deteriorate-by-steps": lambda i, j: (j == i) | (j == i + 1),
    "improve": lambda i, j: j <= i,
    "improve-by-steps": lambda i, j: (j == i) | (j == i - 1),
}
#: The name of a structure that was given as a mask.
MASK = "as given"
#: The key of a mapping of structures for all actions that it does not name.
OTHERS = "*"
#: The assumption that an action changes nothing.
STAY = "stay"


@dataclass(frozen=True)
class ChainEstimate:
    """The result of `maximise`.

    Attributes
    ----------
    probabilities : float64 array, shape (A, S, S)
    log_likelihood : float
    transitions : float64 array, shape (A, S, S)
        Expected number of each transition.
    path : list of float
        The log-likelihood before each round; it never decreases.
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


class Likelihood:
    """The likelihood of transition probabilities, float64 (A, S, S), given the first states and actions of all gaps.

    It holds the work space of the kernels, so that an instance must be used by one thread only.
    """

    def __init__(self, gaps: Gaps) -> None:
        self.gaps = gaps
        size = gaps.n_states
        n_letters = gaps.n_actions * (2 if gaps.noticed.any() else 1)
        # A noticed state cannot have been entered before the last period, or the gap would have ended there.
        self._unnoticed = ~(~gaps.noticed[:, None] & gaps.noticed[None, :])
        self._nodes = np.zeros((len(gaps.words.letter), size, size))
        self._node_gradient = np.zeros_like(self._nodes)
        self._changes = np.zeros_like(self._nodes)
        self._letter_gradient = np.zeros((n_letters, size, size))
        self._forward = np.zeros((gaps.longest_word + 1, size))
        self._backward = np.zeros_like(self._forward)

    def expected(self, probabilities: FloatArray, counts: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood of the counted ends, (G, S + 1), and the expected number of each transition, (A, S, S)."""
        kernel.run_matrices(self.gaps.words, self._letters(probabilities), self._nodes)
        value = kernel.gradient(
            self.gaps.words,
            self._nodes,
            counts,
            self._node_gradient,
            self._letter_gradient,
            self._forward,
            self._backward,
        )
        return value, probabilities * self._action_gradient(self._letter_gradient)

    def end_probabilities(self, probabilities: FloatArray) -> FloatArray:
        """Return the distribution of the last state of a gap of each group, (G, S).

        With noticed states rows sum to less than 1: the rest is the probability that such a state ends the gap earlier.
        """
        kernel.run_matrices(self.gaps.words, self._letters(probabilities), self._nodes)
        ends = np.zeros((self.gaps.n_groups, self.gaps.n_states))
        kernel.end_probabilities(self.gaps.words, self._nodes, self._forward, ends)
        return ends

    def end_derivatives(
        self, probabilities: FloatArray, direction: FloatArray, groups: npt.NDArray[np.int64]
    ) -> FloatArray:
        """Return the directional derivative of `end_probabilities` of some groups, (n_groups, S); `direction` is (A, S, S)."""
        words = self.gaps.words._replace(word=self.gaps.words.word[groups], begin=self.gaps.words.begin[groups])
        kernel.run_matrices(words, self._letters(probabilities), self._nodes)
        kernel.run_derivatives(words, self._nodes, self._letters(direction), self._changes)
        ends = np.zeros((len(groups), self.gaps.n_states))
        kernel.end_derivatives(words, self._nodes, self._changes, self._forward, self._backward, ends)
        return ends

    def _letters(self, probabilities: FloatArray) -> FloatArray:
        """Return the matrices of the letters of `Words`: with noticed states two for each action."""
        if not self.gaps.noticed.any():
            return probabilities
        return np.concatenate([probabilities * self._unnoticed, probabilities])

    def _action_gradient(self, letters: FloatArray) -> FloatArray:
        """Return the gradient by the matrices of actions, (A, S, S), from that by the matrices of letters."""
        n_actions = self.gaps.n_actions
        if len(letters) == n_actions:
            return letters
        return letters[:n_actions] * self._unnoticed + letters[n_actions:]


def maximise(
    likelihood: Likelihood,
    counts: FloatArray,
    start: FloatArray,
    fixed: FloatArray,
    prior: FloatArray | None = None,
    least_gain: float = 1e-7,
    most_rounds: int = MOST_ROUNDS,
) -> ChainEstimate:
    """Maximise the likelihood by the EM algorithm from a start; probabilities that are 0 there stay 0.

    A round makes two EM steps and an extrapolated one (SQUAREM of Varadhan and Roland, 2008), which is rejected if it lowers the
    likelihood.

    Parameters
    ----------
    likelihood : Likelihood
    counts : float64 array, shape (G, S + 1)
        How often each group of gaps ended in each state; see `Gaps.counts`.
    start : float64 array, shape (A, S, S)
    fixed : float64 array, shape (A, S, S)
        Rows that are not estimated; NaN in all others.
    prior : float64 array, shape (A, S, S), optional
        Numbers of transitions that are added to the expected ones. The logarithm of the corresponding Dirichlet density is then
        part of what is maximised.
    least_gain : float
        The iteration has converged when a round increases the log-likelihood by less than this.
    most_rounds : int
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
        if len(path) > 1 and value - path[-2] < least_gain:
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
    estimate = ChainEstimate(now, value, expected, path, converged)
    return estimate if prior is not None else _without_negligible(estimate, likelihood, counts, fixed)


def _normalised(expected: FloatArray, before: FloatArray, fixed: FloatArray) -> FloatArray:
    """Return the maximisation step: expected transitions divided by their row sums; rows without any stay as they were."""
    total = expected.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.where(total > 0, expected / total, before)
    return np.where(np.isnan(fixed), rows, fixed)


def _extrapolated(now: FloatArray, once: FloatArray, twice: FloatArray, fixed: FloatArray) -> FloatArray:
    """Return the SQUAREM step from three iterates x0, x1, x2: x0 + 2 a r + a^2 v, r = x1 - x0, v = x2 - x1 - r, a = |r| / |v|."""
    change = once - now
    bend = twice - once - change
    length = np.sqrt((bend**2).sum())
    step = max(1.0, np.sqrt((change**2).sum()) / length) if length > 0 else 1.0
    far = now + 2 * step * change + step**2 * bend
    far = np.maximum(far, SMALLEST_FRACTION * twice)
    far /= far.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), far, fixed)


def _without_negligible(
    estimate: ChainEstimate, likelihood: Likelihood, counts: FloatArray, fixed: FloatArray
) -> ChainEstimate:
    """Return the estimate with negligible probabilities set to 0, unless that lowers the likelihood."""
    kept = np.where(estimate.probabilities < NEGLIGIBLE, 0.0, estimate.probabilities)
    if np.array_equal(kept, estimate.probabilities):
        return estimate
    kept = np.where(np.isnan(fixed), kept / kept.sum(axis=2, keepdims=True), fixed)
    value, expected = likelihood.expected(kept, counts)
    if value < estimate.log_likelihood - 1e-3:
        return estimate
    return ChainEstimate(kept, value, expected, estimate.path, estimate.converged)


def persistent_start(allowed: BoolArray, fixed: FloatArray) -> FloatArray:
    """Return the start of the main search, in which staying is more likely than any other transition.

    Rows of `fixed` that are not NaN are taken as they are.
    """
    n_states = allowed.shape[1]
    start = allowed / allowed.sum(axis=2, keepdims=True)
    start = start + 2.0 * (allowed & np.eye(n_states, dtype=bool))
    start /= start.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), start, fixed)


def random_start(allowed: BoolArray, fixed: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return rows drawn uniformly from the distributions over allowed transitions, kept away from 0."""
    start = rng.exponential(size=allowed.shape) * allowed + 1e-3 * allowed
    start /= start.sum(axis=2, keepdims=True)
    return np.where(np.isnan(fixed), start, fixed)


def allowed_transitions(
    structure: Any, action_names: Sequence[str], n_states: int
) -> tuple[BoolArray, tuple[str, ...]]:
    """Return a mask of shape (A, S, S) and the name of each action's structure.

    `structure` is a name for all actions, a mask of shape (S, S) for all, or a mapping from actions to names or masks; actions
    that it does not name have that of "*", or else "any".
    """
    if isinstance(structure, Mapping):
        for action in structure:
            if action not in action_names and action != OTHERS:
                raise FitError(f"structure: {unknown_name('action', action, action_names)}")
        each = [structure.get(action, structure.get(OTHERS, "any")) for action in action_names]
    else:
        each = ["any" if structure is None else structure] * len(action_names)
    masks = [_mask(one, action, n_states) for one, action in zip(each, action_names, strict=True)]
    return np.array(masks), tuple(one if isinstance(one, str) else MASK for one in each)


def _mask(structure: Any, action: str, n_states: int) -> BoolArray:
    if isinstance(structure, str):
        if structure not in STRUCTURES:
            raise FitError(unknown_name(f"structure of action {action!r}", structure, STRUCTURES))
        i, j = np.indices((n_states, n_states))
        return np.asarray(STRUCTURES[structure](i, j))
    mask = np.asarray(structure)
    if mask.shape != (n_states, n_states) or mask.dtype != np.bool_:
        raise FitError(
            f"the structure of action {action!r} is an array of type {mask.dtype} and shape {mask.shape}, expected truth values "
            f"of shape ({n_states}, {n_states}): whether state j may follow state i; or one of: {', '.join(STRUCTURES)}"
        )
    closed = np.flatnonzero(~mask.any(axis=1))
    if closed.size:
        raise FitError(
            f"the structure of action {action!r} allows nothing from state {int(closed[0])}; allow a transition"
        )
    return mask


def check_assumptions(assume: Mapping[str, str], states: Sequence[str]) -> None:
    """Raise a `FitError` if an assumption names neither a state nor "stay"."""
    for action, target in assume.items():
        if target not in states and target != STAY:
            raise FitError(f"assume {action!r}: {unknown_name('state', target, [*states, STAY])}")


def assumed_rows(
    unknown: BoolArray, assume: Mapping[str, str], actions: Sequence[str], states: Sequence[str]
) -> tuple[FloatArray, BoolArray, list[Diagnostic]]:
    """Return the rows given by assumptions: (A, S, S) with NaN in all others, a mask of them (A, S), and diagnostics.

    Only rows of `unknown`, bool (A, S), are assumed: those about which the records contain no information.
    """
    fixed = np.full((len(actions), len(states), len(states)), np.nan)
    assumed = np.zeros_like(unknown)
    notes = []
    for action, target in assume.items():
        number = list(actions).index(action)
        rows = np.flatnonzero(unknown[number]).tolist()
        leads = {"target": target} if target in states else {}
        if not rows:
            notes.append(diagnostic("assumption-not-needed", action=action, **leads))
            continue
        ends = np.full(len(rows), list(states).index(target)) if leads else np.array(rows)
        fixed[number, rows] = 0.0
        fixed[number, rows, ends] = 1.0
        assumed[number, rows] = True
        notes.append(
            diagnostic("assumed-transitions", action=action, states=tuple(states[row] for row in rows), **leads)
        )
    return fixed, assumed, notes
