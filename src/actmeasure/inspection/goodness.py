"""Whether a Markov chain fits the records at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.inspection.estimation import FloatArray, Likelihood, maximise
from actmeasure.inspection.gaps import Gaps, IntArray
from actmeasure.inspection.records import NONE, Progress
from actmeasure.inspection.uncertainty import ENOUGH, FRESH
from actmeasure.interrupts import deferred_interrupts

__all__ = [
    "MEANING",
    "SIGNIFICANT",
    "TESTS",
    "Finding",
    "Goodness",
    "GoodnessTest",
    "describe",
    "goodness_of_fit",
    "periods",
]

#: A test fails if its p-value, times the number of tests, is not above this.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class GoodnessTest:
    """A comparison of seen and expected inspections.

    Attributes
    ----------
    name : str
        What the inspections are split by.
    statistic : float
        Pearson's sum of squared differences over expected numbers.
    p_value : float
        The share of records simulated from the fit, and fitted again, that differ as much or more.
    """

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Goodness:
    """Tests of the fit, and in words what does not fit.

    Attributes
    ----------
    tests : tuple of GoodnessTest
    findings : tuple of str
        Sentences about the largest differences of those tests that fail; empty if all is well.
    replicates : int
        How many simulated records the p-values are taken from.
    """

    tests: tuple[GoodnessTest, ...]
    findings: tuple[str, ...]
    replicates: int

    @property
    def p_value(self) -> float:
        """The smallest p-value, times the number of tests: one that holds for all of them together."""
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests))

    @property
    def can_fail(self) -> bool:
        """Whether there were enough simulated records for any test to fail."""
        return len(self.tests) / (1 + self.replicates) <= SIGNIFICANT

    @property
    def verdict(self) -> str:
        """All tests in a few words."""
        if self.findings:
            return "something does not fit"
        if not self.can_fail:
            return "too few of them to tell whether a Markov chain fits"
        return "no clear sign that a Markov chain does not fit"


# ----------------------------------------------------------------------------------------------------
# Compare what was seen at inspections with what the fit expects, and with what it would make of records of its own.
# ----------------------------------------------------------------------------------------------------


#: Fewer gaps than these in a class, or expected in a cell, say little; such cells are taken together.
LEAST_GAPS, LEAST_EXPECTED = 10, 2.0
MOST_FINDINGS = 3


@dataclass(frozen=True)
class _Split:
    """Gaps in classes; those in class -1 are not part of the test.

    Attributes
    ----------
    kind : str
        By what they are split: "gap", "history" or "age".
    label : int64 array, shape (N,)
    keys : list of (begin, action, bin), one per class
    limits : int64 array
        Where the bins of lengths or ages begin.
    """

    kind: str
    label: IntArray
    keys: list[tuple[int, int, int]]
    limits: IntArray


class _Comparison:
    """Pearson's statistic for one way to split the gaps."""

    def __init__(self, split: _Split, gaps: Gaps, ends: FloatArray) -> None:
        self.split, self._gaps = split, gaps
        self.used = np.flatnonzero(split.label != NONE)
        shape = (len(split.keys), gaps.n_groups)
        ones = np.ones(len(self.used))
        self._gaps_of_groups = sparse.csr_array((ones, (split.label[self.used], gaps.group[self.used])), shape=shape)
        self._cell = _cells(self._expected(ends))

    def _expected(self, ends: FloatArray) -> FloatArray:
        return np.asarray(self._gaps_of_groups @ ends)

    def tables(self, ends: FloatArray, end: IntArray) -> tuple[FloatArray, FloatArray]:
        """Seen and expected numbers of gaps by class and last state."""
        n_states = self._gaps.n_states
        flat = self.split.label[self.used] * n_states + end[self.used]
        seen = np.bincount(flat, minlength=len(self.split.keys) * n_states).reshape(-1, n_states)
        return seen.astype(np.float64), self._expected(ends)

    def statistic(self, ends: FloatArray, end: IntArray) -> float:
        """The sum over cells of the squared difference over the expected number."""
        seen, expected = (np.bincount(self._cell.ravel(), weights=table.ravel()) for table in self.tables(ends, end))
        there = expected > 0
        return float(((seen - expected)[there] ** 2 / expected[there]).sum())


def goodness_of_fit(
    likelihood: Likelihood,
    fitted: FloatArray,
    start: FloatArray,
    fixed: FloatArray,
    names: tuple[Sequence[str], Sequence[str], str],
    replicates: int,
    rng: np.random.Generator,
    progress: Progress,
) -> Goodness | None:
    """Test the fit; None if there is too little to compare. `names` are those of states, actions and the period.

    A p-value is the share of simulated records whose own fit differs from them as much or more: inspections take place when they
    did, and each gap begins where it did and ends by the chances of the fit.
    """
    gaps = likelihood.gaps
    ends = _conditional(likelihood.end_chances(fitted), gaps)
    found = [
        _Comparison(split, gaps, ends) for split in (_by_gap(gaps), _by_history(gaps), _by_age(gaps)) if split.keys
    ]
    if not found:
        return None
    values = np.array([comparison.statistic(ends, gaps.end) for comparison in found])
    simulated = _simulated(likelihood, found, ends, fitted, start, fixed, replicates, rng, progress)
    if not len(simulated):
        return None
    p_values = (1 + (simulated >= values * (1 - 1e-9)).sum(axis=0)) / (1 + len(simulated))
    tests = tuple(
        GoodnessTest(comparison.split.kind, float(value), float(p))
        for comparison, value, p in zip(found, values, p_values, strict=True)
    )
    findings: list[str] = []
    for comparison, p in zip(found, p_values, strict=True):
        if p * len(found) <= SIGNIFICANT:
            findings += describe(comparison.split.kind, _findings(comparison, ends, gaps), names)
    return Goodness(tests, tuple(findings), len(simulated))


def _simulated(
    likelihood: Likelihood,
    comparisons: Sequence[_Comparison],
    ends: FloatArray,
    fitted: FloatArray,
    start: FloatArray,
    fixed: FloatArray,
    replicates: int,
    rng: np.random.Generator,
    progress: Progress,
) -> FloatArray:
    """The statistics of records that the fit makes itself, shape (replicates, tests)."""
    gaps = likelihood.gaps
    free = np.flatnonzero(_is_free(gaps))
    steps = ends.cumsum(axis=1)[gaps.group[free]]
    begin = (1 - FRESH) * fitted + FRESH * start
    found = []
    with deferred_interrupts() as interrupts:
        for number in range(replicates):
            progress("goodness of fit", number, replicates)
            if interrupts.requested:
                break
            end = gaps.end.copy()
            end[free] = (rng.random(len(free))[:, None] * steps[:, -1:] >= steps).sum(axis=1)
            again = maximise(likelihood, gaps.counts(end=end), begin, fixed, enough=ENOUGH)
            chances = _conditional(likelihood.end_chances(again.probabilities), gaps)
            found.append([comparison.statistic(chances, end) for comparison in comparisons])
    return np.array(found).reshape(-1, len(comparisons))


def _is_free(gaps: Gaps) -> npt.NDArray[np.bool_]:
    """Gaps whose end was seen because somebody looked, not because it was noticed or the records stop."""
    free: npt.NDArray[np.bool_] = ~np.r_[gaps.noticed, True][gaps.end]
    return free


def _conditional(ends: FloatArray, gaps: Gaps) -> FloatArray:
    """The chances of the ends of gaps that somebody looked at the end of."""
    looked = ends * ~gaps.noticed
    total = looked.sum(axis=1, keepdims=True)
    chances: FloatArray = np.divide(looked, total, out=np.zeros_like(looked), where=total > 0)
    return chances


def _cells(expected: FloatArray) -> IntArray:
    """A cell for every class and last state; those that are expected too rarely are taken together, class by class."""
    n_states = expected.shape[1]
    cell = np.arange(expected.size, dtype=np.int64).reshape(expected.shape)
    for row, numbers in enumerate(expected):
        rare = numbers < LEAST_EXPECTED
        together = int(np.argmax(rare)) if numbers[rare].sum() >= LEAST_EXPECTED else int(np.argmax(numbers))
        cell[row, rare] = row * n_states + together
    return cell


def _findings(comparison: _Comparison, ends: FloatArray, gaps: Gaps) -> list[Finding]:
    """The cells in which seen and expected numbers differ most."""
    seen, expected = comparison.tables(ends, gaps.end)
    weight = np.abs(seen - expected) / np.sqrt(np.maximum(expected, LEAST_EXPECTED))
    found = []
    for place in np.argsort(weight, axis=None)[::-1][:MOST_FINDINGS]:
        row, state = divmod(int(place), gaps.n_states)
        begin, action, part = comparison.split.keys[row]
        limits = comparison.split.limits
        first = int(limits[part]) if part < len(limits) else 0
        last = int(limits[part + 1]) - 1 if part + 1 < len(limits) else None
        found.append(
            Finding(
                begin, action, part, first, last, state, int(seen[row, state]), float(expected[row, state]),
                int(seen[row].sum()),
            )
        )  # fmt: skip
    return found


def _by_gap(gaps: Gaps) -> _Split:
    """By the length of the gap: do the chances after long gaps follow from those after short ones?"""
    limits = np.unique(np.quantile(gaps.length, [0, 0.25, 0.5, 0.75], method="higher")).astype(np.int64)
    return _split("gap", gaps, np.searchsorted(limits, gaps.length, side="right") - 1, limits)


def _by_history(gaps: Gaps) -> _Split:
    """By whether the unit was already in the state at the inspection before: is the state all that matters?"""
    part = np.where(gaps.before == NONE, NONE, (gaps.before == gaps.begin).astype(np.int64))
    return _split("history", gaps, part, np.zeros(0, dtype=np.int64))


def _by_age(gaps: Gaps) -> _Split:
    """By how long ago the unit's records begin: are the chances the same all the time?"""
    limits = np.unique([0, int(np.median(gaps.age)) + 1])
    return _split("age", gaps, (gaps.age >= limits[-1]).astype(np.int64), limits)


def _split(kind: str, gaps: Gaps, part: IntArray, limits: IntArray) -> _Split:
    """Classes of gaps with equal first state, action and part; none where nothing is split, or only few gaps are there."""
    usable = _is_free(gaps) & (part != NONE)
    code = (gaps.begin * (gaps.n_actions + 1) + gaps.action) * (len(limits) + 2) + part
    values, number, counts = np.unique(code[usable], return_inverse=True, return_counts=True)
    large = counts >= LEAST_GAPS
    rank = np.where(large, np.cumsum(large) - 1, NONE)
    label = np.full(len(part), NONE, dtype=np.int64)
    label[usable] = rank[number]
    keys = []
    for value in values[large]:
        pair, which = divmod(int(value), len(limits) + 2)
        keys.append((*divmod(pair, gaps.n_actions + 1), which))
    if len({which for _, _, which in keys}) < 2 and kind != "gap":
        return _Split(kind, label, [], limits)
    return _Split(kind, label, keys, limits)


# ----------------------------------------------------------------------------------------------------
# What does not fit, in words.
# ----------------------------------------------------------------------------------------------------


#: What is compared.
TESTS = {
    "gap": "ends of gaps, by their length",
    "history": "ends of gaps, by the inspection before",
    "age": "ends of gaps, by time since the unit's first record",
}

#: What it means when a test fails.
MEANING = {
    "gap": "The chances after long gaps do not follow from those after short ones: the time in a state is not geometric, or "
    "inspections were made when something seemed wrong.",
    "history": "The state is not all that matters: how long a unit has been in it does (ageing), or units differ from each "
    "other.",
    "age": "The chances change with time since a unit's first record: ageing, or conditions that changed.",
}


@dataclass(frozen=True)
class Finding:
    """A class of gaps and a last state that was seen more or less often than expected.

    `first` and `last` are the least and most periods of the class: of its gaps, or since the units' first records.
    """

    begin: int
    action: int
    part: int
    first: int
    last: int | None
    state: int
    seen: int
    expected: float
    total: int


def describe(kind: str, findings: Sequence[Finding], names: tuple[Sequence[str], Sequence[str], str]) -> list[str]:
    """What the failed test means, and its largest differences."""
    states, actions, period = names
    sentences = [MEANING[kind]]
    for one in findings:
        done = f"{actions[one.action]!r}" if one.action < len(actions) else "several actions"
        match kind:
            case "gap":
                where = f"after {done} for {periods(one.first, one.last, period)}"
            case "history":
                where = (
                    f"after {done}, {'also' if one.part else 'not'} in {states[one.begin]} at the inspection before,"
                )
            case _:
                where = f"after {done}, {periods(one.first, one.last, period)} from the unit's first record,"
        sentences.append(
            f"Of {one.total:,} times that a unit was seen in {states[one.begin]}, {where} it was then seen in "
            f"{states[one.state]} {one.seen:,} time{'s' * (one.seen != 1)}; {one.expected:,.1f} were expected."
        )
    return sentences


def periods(first: int, last: int | None, period: str) -> str:
    """`3 years`, `3 to 5 years` or `3 years or more`."""
    many = f"{period}s"
    if last is None:
        return f"{first:,} {period if first == 1 else many} or more"
    if first == last:
        return f"{first:,} {period if first == 1 else many}"
    return f"{first:,} to {last:,} {many}"
