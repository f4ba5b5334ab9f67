"""Whether a Markov chain fits the records at all."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SIGNIFICANT", "Goodness", "GoodnessTest"]

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
