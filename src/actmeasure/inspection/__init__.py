"""Advice for whoever inspects: a schedule, what it costs, what else could be done, and how sure that is."""

from __future__ import annotations

from actmeasure.inspection.advice import Advice, StatePlan
from actmeasure.inspection.advise import advise
from actmeasure.inspection.confidence import Agreement, Confidence
from actmeasure.inspection.economics import Economics
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.fitting import fit
from actmeasure.inspection.money import Units
from actmeasure.inspection.page import write_page
from actmeasure.inspection.prices import PricedSchedule
from actmeasure.inspection.rules import Policy

__all__ = [
    "Advice",
    "Agreement",
    "Confidence",
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

# ----------------------------------------------------------------------------------------------------
# Models from records of inspections: what was seen, when, and what was done in between.
# ----------------------------------------------------------------------------------------------------
