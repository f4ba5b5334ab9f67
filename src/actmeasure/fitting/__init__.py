"""Models from records of inspections: what was seen, when, and what was done in between."""

from __future__ import annotations

from actmeasure.fitting.economics import Economics
from actmeasure.fitting.from_records import fit
from actmeasure.fitting.result import Fit

__all__ = ["Economics", "Fit", "fit"]
