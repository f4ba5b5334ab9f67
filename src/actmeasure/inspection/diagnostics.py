"""Diagnostics: what limits a fit or an inspection plan, as records with a code, numbers and names.

`Fit.warnings`, `Fit.notes`, `Fit.identifiability`, `Goodness.findings` and `Advice.notes` hold them, files store them, and `str`
turns one into a sentence; the sentences are in `actmeasure.inspection.text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["SEVERITIES", "Diagnostic", "Severity", "diagnostic"]

Severity = Literal["info", "warning", "error"]
Number = int | float | tuple[int | float, ...]
Name = str | tuple[str, ...]

#: The codes of each severity. "info": what was done; "warning": what makes a result less reliable; "error": what failed.
CODES: dict[Severity, tuple[str, ...]] = {
    "info": (
        # How the records were read, and what was assumed where they contain no information.
        "lines-skipped", "dates-to-periods", "times-divided", "dates-with-two-readings", "months-without-day", "cells-missing",
        "columns-ignored", "states-sorted", "contradicted-records-left-out", "records-merged", "default-action-not-recorded",
        "actions-filled-in", "actions-filled-in-between", "contradictions-left-out",
        "contradicting-records-left-out", "contradicting-units-left-out",
        "units-without-change", "assumption", "assumed-transitions", "assumption-not-needed",
        "age-matters", "age-does-not-matter",
        # Parts of the fit and of the advice that were left out.
        "intervals-incomplete", "few-replicates", "goodness-incomplete", "flat-directions-not-checked", "plan-from-other-search",
        "states-without-plan", "worth-not-computed", "longer-intervals-not-tried", "no-such-rule", "best-of-those-tried",
        # A sentence of a fit that was saved before diagnostics were stored as records.
        "stored-text",
    ),
    "warning": (
        # Suspicious records, and little data.
        "times-look-like-dates", "state-seen-once", "state-never-seen", "few-units", "action-without-data",
        "action-without-data-in-states", "little-exposure", "estimation-not-converged",
        "intensity-at-limit", "state-left-unseen",
        # What records with such gaps do not determine, whatever their number.
        "flat-directions", "gaps-with-common-factor", "several-chains", "errors-confounded",
        # Goodness of fit: a test that fails, and its largest differences.
        "misfit-gap", "misfit-history", "misfit-age", "difference-gap", "difference-history", "difference-age",
        # The plan and the policies that it is compared with.
        "model-does-not-fit", "failure-without-running-cost", "noticed-state-in-plan", "plan-not-closed", "policy-not-closed",
        "policy-search-stopped", "longest-interval-is-best",
        "failed-units-left", "plan-far-from-bound", "other-policy-is-better", "longest-interval-exceeded",
        "failure-limit-exceeded", "fit-not-tested", "fit-not-decided",
        "plan-never-acts", "failure-price-missing", "limit-in-weighted-mean-only",
        # Parts of the advice that are incomplete.
        "part-interrupted", "part-out-of-time", "policy-out-of-time", "frontier-not-closed", "plans-at-prices-incomplete",
        "no-resampled-models", "resampled-models-incomplete", "resampled-not-solved", "worth-incomplete",
    ),
    "error": ("policy-failed", "frontier-failed"),
}  # fmt: skip
#: Every code and its severity.
SEVERITIES = {code: severity for severity, codes in CODES.items() for code in codes}


@dataclass(frozen=True)
class Diagnostic:
    """A statement about a fit or a plan; `str` returns it as a sentence.

    Attributes
    ----------
    code : str
        One of `SEVERITIES`.
    severity : {"info", "warning", "error"}
    numbers : dict from str to a number or a tuple of numbers
    names : dict from str to a text or a tuple of texts
        States, actions, places in files and similar, as they are in the data.
    """

    code: str
    severity: Severity
    numbers: dict[str, Number]
    names: dict[str, Name]

    def __hash__(self) -> int:
        return hash((self.code, tuple(sorted(self.numbers.items())), tuple(sorted(self.names.items()))))

    def __str__(self) -> str:
        from actmeasure.inspection.text import sentence

        return sentence(self)

    def record(self) -> dict[str, Any]:
        """Return the fields for JSON, and the sentence as `text`."""
        return asdict(self) | {"text": str(self)}


def diagnostic(code: str, **details: int | float | str | Sequence[int | float] | Sequence[str]) -> Diagnostic:
    """Return the diagnostic with a code and details: numbers and empty lists go to `numbers`, texts to `names`."""
    numbers: dict[str, Any] = {}
    names: dict[str, Any] = {}
    for key, value in details.items():
        values = value if isinstance(value, str) or not isinstance(value, Sequence) else tuple(value)
        first = next(iter(values), 0) if isinstance(values, tuple) else values
        (names if isinstance(first, str) else numbers)[key] = values
    return Diagnostic(code, SEVERITIES[code], numbers, names)
