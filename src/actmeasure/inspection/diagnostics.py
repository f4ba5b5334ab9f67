"""Diagnostics: what limits a fit or an inspection plan, as records with a code, numbers and names.

`Fit.warnings`, `Fit.notes`, `Fit.identifiability`, `Goodness.findings` and `Advice.notes` hold them, files store them, and `str`
turns one into a sentence; the sentences are in `actmeasure.inspection.text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["SEVERITIES", "Diagnostic", "Severity", "diagnostic"]

Severity = Literal["info", "warning", "error"]
Number = int | float | tuple[int | float, ...]
Name = str | tuple[str, ...]

#: Every code and its severity. "info": what was done; "warning": what makes a result less reliable; "error": what failed.
SEVERITIES: dict[str, Severity] = {
    # How the records were read.
    "lines-skipped": "info",
    "dates-to-periods": "info",
    "times-divided": "info",
    "records-merged": "info",
    "default-action-not-recorded": "info",
    "actions-filled-in": "info",
    "units-without-change": "info",
    "times-look-like-dates": "warning",
    "state-seen-once": "warning",
    "state-never-seen": "warning",
    # What was assumed where the records contain no information.
    "assumed-transitions": "info",
    "assumption-not-needed": "info",
    # Little data.
    "few-units": "warning",
    "action-without-data": "warning",
    "action-without-data-in-states": "warning",
    "little-exposure": "warning",
    "estimation-not-converged": "warning",
    "intervals-incomplete": "info",
    "goodness-incomplete": "info",
    # What records with such gaps do not determine, whatever their number.
    "flat-directions": "warning",
    "flat-directions-not-checked": "info",
    "gaps-with-common-factor": "warning",
    "several-chains": "warning",
    # Goodness of fit: a test that fails, and its largest differences.
    "misfit-gap": "warning",
    "misfit-history": "warning",
    "misfit-age": "warning",
    "difference-gap": "warning",
    "difference-history": "warning",
    "difference-age": "warning",
    # The plan.
    "model-does-not-fit": "warning",
    "failure-without-running-cost": "warning",
    "noticed-state-in-plan": "warning",
    "plan-not-closed": "warning",
    "plan-from-other-search": "info",
    "states-without-plan": "info",
    # Parts of the advice that are incomplete.
    "part-interrupted": "warning",
    "part-out-of-time": "warning",
    "policy-out-of-time": "warning",
    "policy-failed": "error",
    "policy-not-closed": "warning",
    "policy-search-stopped": "warning",
    "longest-interval-is-best": "warning",
    "longer-intervals-not-tried": "info",
    "frontier-failed": "error",
    "frontier-not-closed": "warning",
    "plans-at-prices-incomplete": "warning",
    "no-resampled-models": "warning",
    "resampled-models-incomplete": "warning",
    # A sentence of a fit that was saved before diagnostics were stored as records.
    "stored-text": "info",
}


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
        return {
            "code": self.code,
            "severity": self.severity,
            "numbers": self.numbers,
            "names": self.names,
            "text": str(self),
        }


def diagnostic(code: str, **details: int | float | str | Sequence[int | float] | Sequence[str]) -> Diagnostic:
    """Return the diagnostic with a code of `SEVERITIES`; details that are numbers, and empty lists, go to `numbers`, texts
    to `names`.
    """
    numbers: dict[str, Any] = {}
    names: dict[str, Any] = {}
    for key, value in details.items():
        values = value if isinstance(value, str) or not isinstance(value, Sequence) else tuple(value)
        first = next(iter(values), 0) if isinstance(values, tuple) else values
        (names if isinstance(first, str) else numbers)[key] = values
    return Diagnostic(code, SEVERITIES[code], numbers, names)
