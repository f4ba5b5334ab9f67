"""Advice for whoever inspects: a schedule, what it costs, what else could be done, and how sure that is."""

from __future__ import annotations

from actmeasure.inspection.advice import Advice, StatePlan
from actmeasure.inspection.advise import advise
from actmeasure.inspection.confidence import Agreement, Confidence
from actmeasure.inspection.policies import Policy
from actmeasure.inspection.prices import PricedSchedule
from actmeasure.inspection.units import Units

__all__ = ["Advice", "Agreement", "Confidence", "Policy", "PricedSchedule", "StatePlan", "Units", "advise"]
