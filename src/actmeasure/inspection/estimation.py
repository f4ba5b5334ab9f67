"""The most likely transition probabilities, by expectation and maximisation with accelerated steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, unknown_name
from actmeasure.inspection.gaps import Gaps
from actmeasure.kernels import gap_likelihood as kernel

__all__ = [
    "STAY",
    "STRUCTURES",
    "Estimate",
    "Likelihood",
    "allowed_transitions",
    "assumed_rows",
    "check_assumptions",
    "maximise",
    "persistent_start",
    "random_start",
]

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


# ----------------------------------------------------------------------------------------------------
# How likely the records are, and what probably happened between the inspections.
# ----------------------------------------------------------------------------------------------------


FloatArray = npt.NDArray[np.float64]


class Likelihood:
    """The likelihood of transition probabilities, float64 (A, S, S), given where gaps began and what was done in them.

    Holds the work space of the kernels, so one of it belongs to one thread.
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
        """The log-likelihood of the counted ends, (G, S + 1), and the expected number of each transition, (A, S, S)."""
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
        return value, probabilities * self._of_letters(self._letter_gradient)

    def end_chances(self, probabilities: FloatArray) -> FloatArray:
        """The chance of each state at the end of a gap of each group, (G, S); less than 1 in all if it may end before."""
        kernel.run_matrices(self.gaps.words, self._letters(probabilities), self._nodes)
        ends = np.zeros((self.gaps.n_groups, self.gaps.n_states))
        kernel.end_chances(self.gaps.words, self._nodes, self._forward, ends)
        return ends

    def end_changes(
        self, probabilities: FloatArray, direction: FloatArray, groups: npt.NDArray[np.int64]
    ) -> FloatArray:
        """How `end_chances` of some groups changes if the probabilities change in a direction, (A, S, S)."""
        words = self.gaps.words._replace(word=self.gaps.words.word[groups], begin=self.gaps.words.begin[groups])
        kernel.run_matrices(words, self._letters(probabilities), self._nodes)
        kernel.run_changes(words, self._nodes, self._letters(direction), self._changes)
        ends = np.zeros((len(groups), self.gaps.n_states))
        kernel.end_changes(words, self._nodes, self._changes, self._forward, self._backward, ends)
        return ends

    def _letters(self, probabilities: FloatArray) -> FloatArray:
        if not self.gaps.noticed.any():
            return probabilities
        return np.concatenate([probabilities * self._unnoticed, probabilities])

    def _of_letters(self, letters: FloatArray) -> FloatArray:
        n_actions = self.gaps.n_actions
        if len(letters) == n_actions:
            return letters
        return letters[:n_actions] * self._unnoticed + letters[n_actions:]


# ----------------------------------------------------------------------------------------------------
# Which transitions an action may make.
# ----------------------------------------------------------------------------------------------------


BoolArray = npt.NDArray[np.bool_]

#: By name, which states `j` may follow state `i`; states are in order, the best first.
STRUCTURES = {
    "any": lambda i, j: (i >= 0) & (j >= 0),
    "deteriorate": lambda i, j: j >= i,
    "deteriorate-by-steps": lambda i, j: (j == i) | (j == i + 1),
    "improve": lambda i, j: j <= i,
    "improve-by-steps": lambda i, j: (j == i) | (j == i - 1),
}
MASK = "as given"
#: The key that stands for all actions that a mapping does not name.
OTHERS = "*"


def allowed_transitions(
    structure: Any, action_names: Sequence[str], n_states: int
) -> tuple[BoolArray, tuple[str, ...]]:
    """A mask of shape (A, S, S) and the name of each action's structure.

    `structure` is a name for all actions, a mask of shape (S, S) for all, or a mapping from actions to names or masks; actions
    that it does not name have that of "*", or else may do anything.
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


# ----------------------------------------------------------------------------------------------------
# What to take for true where the records tell nothing.
# ----------------------------------------------------------------------------------------------------


#: The word for an action that changes nothing.
STAY = "stay"


def check_assumptions(assume: Mapping[str, str], states: Sequence[str]) -> None:
    """Raise a `FitError` if an assumption does not name a state."""
    for action, target in assume.items():
        if target not in states and target != STAY:
            raise FitError(f"assume {action!r}: {unknown_name('state', target, [*states, STAY])}")


def assumed_rows(
    unknown: npt.NDArray[np.bool_], assume: Mapping[str, str], actions: Sequence[str], states: Sequence[str]
) -> tuple[FloatArray, npt.NDArray[np.bool_], list[str]]:
    """Rows given by assumptions, shape (A, S, S) with NaN in all others; which these are, (A, S); and a note for each action."""
    fixed = np.full((len(actions), len(states), len(states)), np.nan)
    assumed = np.zeros_like(unknown)
    notes = []
    for action, target in assume.items():
        number = list(actions).index(action)
        rows = np.flatnonzero(unknown[number]).tolist()
        told = f"Assumed, as asked for: {action!r} "
        told += f"leads to {target}" if target in states else "changes nothing"
        if not rows:
            notes.append(
                f"{told} where the records tell nothing; but they tell about all states, so nothing was assumed."
            )
            continue
        ends = np.full(len(rows), list(states).index(target)) if target in states else np.array(rows)
        fixed[number, rows] = 0.0
        fixed[number, rows, ends] = 1.0
        assumed[number, rows] = True
        notes.append(f"{told}, from {', '.join(states[row] for row in rows)}; the records tell nothing about that.")
    return fixed, assumed, notes
