"""Goodness of fit: parametric bootstrap tests of whether a Markov chain fits the records.

The gaps are split into classes in three ways (by length, by the inspection before, by time since the unit's first record). Each
test compares, by Pearson's statistic, how often the gaps of a class ended in each state with the numbers expected by the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.estimation import FloatArray
from actmeasure.inspection.gaps import Gaps, IntArray
from actmeasure.inspection.likelihood import WeightedUnits
from actmeasure.inspection.records import NONE
from actmeasure.inspection.uncertainty import Replication
from actmeasure.kernels.gap_likelihood import UnitEvents

__all__ = ["TESTS", "Goodness", "GoodnessTest", "gap_events", "goodness_of_fit"]

#: What the gaps of each test are split by.
TESTS = ("gap", "history", "age")
#: Significance level: a test fails if its p-value, times the number of tests (Bonferroni), is at most this.
SIGNIFICANT = 0.05
#: Smallest number of gaps in a class, and smallest expected number in a cell; smaller cells are merged.
LEAST_GAPS, LEAST_EXPECTED = 10, 2.0
#: Largest number of differences that are reported for a test that fails.
MOST_FINDINGS = 3


@dataclass(frozen=True)
class GoodnessTest:
    """A test of observed against expected ends of gaps.

    Attributes
    ----------
    name : str
        What the gaps are split by, one of `TESTS`.
    statistic : float
        Pearson's statistic: the sum of squared differences divided by expected numbers.
    p_value : float
        Fraction of sets of records, simulated from the fit and fitted again, with a statistic at least as large.
    """

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Goodness:
    """Goodness-of-fit tests and what does not fit.

    Attributes
    ----------
    tests : tuple of GoodnessTest
    findings : tuple of Diagnostic
        For each test that fails, its meaning and its largest differences; empty if none fails.
    replicates : int
        Number of simulated sets of records behind the p-values.
    """

    tests: tuple[GoodnessTest, ...]
    findings: tuple[Diagnostic, ...]
    replicates: int

    @property
    def p_value(self) -> float:
        """The smallest p-value times the number of tests (Bonferroni): a p-value of all tests together."""
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests))

    @property
    def can_fail(self) -> bool:
        """Whether there were enough simulated sets of records for any test to fail."""
        return len(self.tests) / (1 + self.replicates) <= SIGNIFICANT

    @property
    def verdict(self) -> Literal["misfit", "undecided", "no-misfit"]:
        """The result of all tests together; undecided if there were too few simulated records for any to fail."""
        if self.findings:
            return "misfit"
        return "no-misfit" if self.can_fail else "undecided"

    def record(self) -> dict[str, Any]:
        """Return the fields for JSON, with the sentences of the findings."""
        return {
            "tests": [asdict(test) for test in self.tests],
            "findings": [finding.record() for finding in self.findings],
            "replicates": self.replicates,
            "verdict": self.verdict,
        }


def goodness_of_fit(
    replication: Replication,
    names: tuple[Sequence[str], Sequence[str], str],
    replicates: int,
    rng: np.random.Generator,
) -> Goodness | None:
    """Test the fit; return None if there is too little to compare. `names` are those of states, actions and the period.

    A p-value is the fraction of simulated sets of records whose statistic, against their own fit, is at least as large. Simulated
    gaps have the first state, actions and length of the observed ones; their last state is drawn from the fit.
    """
    gaps = replication.likelihood.gaps
    if replication.likelihood.errors is not None:
        return _with_errors(replication, names, replicates, rng)
    ends = _inspected_ends(replication.likelihood.end_probabilities(replication.fitted), gaps)
    splits = [split for split in (_by_gap(gaps), _by_history(gaps), _by_age(gaps)) if split.keys]
    if not splits:
        return None
    comparisons = [_Comparison(split, gaps, ends) for split in splits]
    values = np.array([comparison.statistic(ends, gaps.end) for comparison in comparisons])
    simulated = _simulated(replication, comparisons, ends, replicates, rng)
    if not len(simulated):
        return None
    p_values = (1 + (simulated >= values * (1 - 1e-9)).sum(axis=0)) / (1 + len(simulated))
    tests, findings = [], []
    for comparison, value, p in zip(comparisons, values, p_values, strict=True):
        tests.append(GoodnessTest(comparison.split.kind, float(value), float(p)))
        if p * len(comparisons) <= SIGNIFICANT:
            findings += _findings(comparison, ends, gaps, names)
    return Goodness(tuple(tests), tuple(findings), len(simulated))


def _with_errors(
    replication: Replication,
    names: tuple[Sequence[str], Sequence[str], str],
    replicates: int,
    rng: np.random.Generator,
) -> Goodness | None:
    """Test a fit in which recorded states may be wrong: all records of a unit are simulated, and split anew.

    What is compared are recorded states with their probabilities given the unit's earlier records.
    """
    likelihood = replication.likelihood
    assert likelihood.errors is not None
    events = likelihood.errors.events

    def comparisons(parameters: FloatArray, simulated: UnitEvents) -> dict[str, tuple[_Comparison, FloatArray, Gaps]]:
        gaps = _recorded_gaps(likelihood.gaps, simulated)
        places = gap_events(simulated)
        ends = _inspected_ends(likelihood.record_probabilities(parameters, simulated)[places], gaps)
        splits = [split for split in (_by_gap(gaps), _by_history(gaps), _by_age(gaps)) if split.keys]
        return {split.kind: (_Comparison(split, gaps, ends), ends, gaps) for split in splits}

    observed = comparisons(replication.fitted, events)
    if not observed:
        return None

    def statistics(found: dict[str, tuple[_Comparison, FloatArray, Gaps]]) -> list[float]:
        return [
            found[kind][0].statistic(found[kind][1], found[kind][2].end) if kind in found else 0.0 for kind in observed
        ]

    def replicate() -> list[float]:
        simulated = likelihood.simulated(replication.fitted, events, rng)
        weights = np.ones(likelihood.gaps.n_units)
        return statistics(comparisons(replication.fit(WeightedUnits(simulated, weights)), simulated))

    values = np.array(statistics(observed))
    simulated = np.array(replication.repeat("goodness of fit", replicates, replicate)).reshape(-1, len(values))
    if not len(simulated):
        return None
    p_values = (1 + (simulated >= values * (1 - 1e-9)).sum(axis=0)) / (1 + len(simulated))
    tests, findings = [], []
    for (kind, (comparison, ends, gaps)), value, p in zip(observed.items(), values, p_values, strict=True):
        tests.append(GoodnessTest(kind, float(value), float(p)))
        if p * len(observed) <= SIGNIFICANT:
            findings += _findings(comparison, ends, gaps, names)
    return Goodness(tuple(tests), tuple(findings), len(simulated))


def gap_events(events: UnitEvents) -> IntArray:
    """Return the event that ends each gap, shape (N,); gaps and the events of units are in the same order."""
    ends = np.flatnonzero(events.event < 0)
    first = events.offsets[:-1][np.diff(events.offsets) > 0]
    starts_with_record = ends[np.isin(ends, first)]
    return np.setdiff1d(ends, starts_with_record)


def _recorded_gaps(gaps: Gaps, events: UnitEvents) -> Gaps:
    """Return the gaps with the recorded states of some events, each a group of its own."""
    end = -1 - events.event[gap_events(events)]
    new = np.r_[True, gaps.unit[1:] != gaps.unit[:-1]]
    begin = np.where(new, events.begin[gaps.unit], np.r_[0, end[:-1]])
    before = np.where(new, NONE, np.r_[0, begin[:-1]])
    number = np.arange(len(end))
    words = gaps.words._replace(word=gaps.words.word[gaps.group], begin=begin)
    return replace(gaps, begin=begin, end=end, before=before, group=number, words=words)


def _simulated(
    replication: Replication,
    comparisons: Sequence[_Comparison],
    ends: FloatArray,
    replicates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the statistics of records simulated from the fit, each against its own fit, shape (replicates, tests)."""
    likelihood, gaps = replication.likelihood, replication.likelihood.gaps
    drawn = np.flatnonzero(_ends_at_inspection(gaps))
    cumulative = ends.cumsum(axis=1)[gaps.group[drawn]]

    def replicate() -> list[float]:
        end = gaps.end.copy()
        end[drawn] = (rng.random(len(drawn))[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
        own_ends = _inspected_ends(likelihood.end_probabilities(replication.fit(gaps.counts(end=end))), gaps)
        return [comparison.statistic(own_ends, end) for comparison in comparisons]

    statistics = replication.repeat("goodness of fit", replicates, replicate)
    return np.array(statistics).reshape(-1, len(comparisons))


def _ends_at_inspection(gaps: Gaps) -> npt.NDArray[np.bool_]:
    """Return which gaps end with an inspection, not with a noticed state or the end of the records, shape (N,)."""
    at_inspection: npt.NDArray[np.bool_] = ~np.r_[gaps.noticed, True][gaps.end]
    return at_inspection


def _inspected_ends(ends: FloatArray, gaps: Gaps) -> FloatArray:
    """Return end probabilities, (G, S), conditional on the gap ending with an inspection, not in a noticed state."""
    inspected = ends * ~gaps.noticed
    total = inspected.sum(axis=1, keepdims=True)
    conditional: FloatArray = np.divide(inspected, total, out=np.zeros_like(inspected), where=total > 0)
    return conditional


@dataclass(frozen=True)
class _Split:
    """A partition of the gaps into classes; gaps in class -1 are not part of the test.

    Attributes
    ----------
    kind : str
        One of `TESTS`.
    label : int64 array, shape (N,)
        The class of each gap.
    keys : list of (begin, action, bin), one per class
    limits : int64 or float64 array
        Lower limits of the bins of lengths or ages.
    """

    kind: str
    label: IntArray
    keys: list[tuple[int, int, int]]
    limits: IntArray | FloatArray


class _Comparison:
    """Pearson's statistic for one partition of the gaps; `ends`, float64 (G, S), are end probabilities of groups of gaps."""

    def __init__(self, split: _Split, gaps: Gaps, ends: FloatArray) -> None:
        self.split, self._gaps = split, gaps
        self.used = np.flatnonzero(split.label != NONE)
        shape = (len(split.keys), gaps.n_groups)
        ones = np.ones(len(self.used))
        self._gaps_of_groups = sparse.csr_array((ones, (split.label[self.used], gaps.group[self.used])), shape=shape)
        self._cell = _cells(self._expected(ends))

    def _expected(self, ends: FloatArray) -> FloatArray:
        """Return the expected numbers of gaps by class and last state, (n_classes, S)."""
        return np.asarray(self._gaps_of_groups @ ends)

    def tables(self, ends: FloatArray, end: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the observed and expected numbers of gaps by class and last state, each (n_classes, S)."""
        n_states = self._gaps.n_states
        flat = self.split.label[self.used] * n_states + end[self.used]
        seen = np.bincount(flat, minlength=len(self.split.keys) * n_states).reshape(-1, n_states)
        return seen.astype(np.float64), self._expected(ends)

    def statistic(self, ends: FloatArray, end: IntArray) -> float:
        """Return the sum over cells of the squared difference divided by the expected number."""
        seen, expected = (np.bincount(self._cell.ravel(), weights=table.ravel()) for table in self.tables(ends, end))
        used = expected > 0
        return float(((seen - expected)[used] ** 2 / expected[used]).sum())


def _cells(expected: FloatArray) -> IntArray:
    """Return the cell of every class and last state, (n_classes, S); in each class, cells expected too rarely are merged."""
    n_states = expected.shape[1]
    cell = np.arange(expected.size, dtype=np.int64).reshape(expected.shape)
    for row, numbers in enumerate(expected):
        rare = numbers < LEAST_EXPECTED
        together = int(np.argmax(rare)) if numbers[rare].sum() >= LEAST_EXPECTED else int(np.argmax(numbers))
        cell[row, rare] = row * n_states + together
    return cell


def _findings(
    comparison: _Comparison, ends: FloatArray, gaps: Gaps, names: tuple[Sequence[str], Sequence[str], str]
) -> list[Diagnostic]:
    """Return the meaning of a failed test and the cells in which observed and expected numbers differ most."""
    states, actions, period = names
    kind, limits = comparison.split.kind, comparison.split.limits
    seen, expected = comparison.tables(ends, gaps.end)
    weight = np.abs(seen - expected) / np.sqrt(np.maximum(expected, LEAST_EXPECTED))
    findings = [diagnostic(f"misfit-{kind}")]
    for cell in np.argsort(weight, axis=None)[::-1][:MOST_FINDINGS]:
        row, state = divmod(int(cell), gaps.n_states)
        begin, action, part = comparison.split.keys[row]
        details: dict[str, Any] = {
            "begin": states[begin],
            "state": states[state],
            "seen": int(seen[row, state]),
            "expected": float(expected[row, state]),
            "total": int(seen[row].sum()),
        }
        if action < len(actions):
            details["action"] = actions[action]
        if kind == "history":
            details["also_before"] = part
        else:
            details |= {"period": period, "first": limits[part].item()}
            if part + 1 < len(limits):
                details["last"] = limits[part + 1].item() - (0 if gaps.continuous else 1)
        findings.append(diagnostic(f"difference-{kind}", **details))
    return findings


def _by_gap(gaps: Gaps) -> _Split:
    """Split by the quartile of the length: do probabilities after long gaps follow from those after short ones?"""
    limits: IntArray | FloatArray = np.unique(np.quantile(gaps.length, [0, 0.25, 0.5, 0.75], method="higher"))
    limits = limits if gaps.continuous else limits.astype(np.int64)
    return _split("gap", gaps, np.searchsorted(limits, gaps.length, side="right") - 1, limits)


def _by_history(gaps: Gaps) -> _Split:
    """Split by whether the unit was in the same state at the inspection before: is the process Markov?"""
    part = np.where(gaps.before == NONE, NONE, (gaps.before == gaps.begin).astype(np.int64))
    return _split("history", gaps, part, np.zeros(0, dtype=np.int64))


def _by_age(gaps: Gaps) -> _Split:
    """Split by time since the unit's first record, at its median: are the probabilities constant in time?"""
    middle = float(np.median(gaps.age)) + 1e-9 if gaps.continuous else int(np.median(gaps.age)) + 1
    limits = np.unique([0, middle])
    return _split("age", gaps, (gaps.age >= limits[-1]).astype(np.int64), limits)


def _split(kind: str, gaps: Gaps, part: IntArray, limits: IntArray | FloatArray) -> _Split:
    """Return classes of gaps with equal first state, action and part; without those that have few gaps.

    There are no classes if all gaps are in the same part, except for lengths, where classes of one part are a test as well.
    """
    usable = _ends_at_inspection(gaps) & (part != NONE)
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
