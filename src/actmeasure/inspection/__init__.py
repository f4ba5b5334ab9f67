"""Inspection planning for engineers: records -> `fit` -> prices (`Economics`) -> `advise` -> page."""

from __future__ import annotations

from actmeasure.inspection.advice import Advice, StatePlan
from actmeasure.inspection.advise import advise
from actmeasure.inspection.confidence import Agreement, Confidence
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import Economics
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.fitting import fit
from actmeasure.inspection.money import Units
from actmeasure.inspection.page import write_page
from actmeasure.inspection.prices import PricedSchedule
from actmeasure.inspection.rules import ComparedPolicy

__all__ = [
    "Advice",
    "Agreement",
    "ComparedPolicy",
    "Confidence",
    "Diagnostic",
    "Economics",
    "Fit",
    "Policy",
    "PricedSchedule",
    "StatePlan",
    "Units",
    "advise",
    "fit",
    "write_page",
]

#: The name of `ComparedPolicy` in earlier versions.
Policy = ComparedPolicy
