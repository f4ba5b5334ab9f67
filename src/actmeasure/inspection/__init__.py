"""Inspection planning for engineers: records -> `fit` -> prices (`Economics`) -> `advise` -> page."""

from __future__ import annotations

from actmeasure.inspection.advice import Advice, Agreement, Confidence, FailureLimit, MethodWorth, StatePlan
from actmeasure.inspection.advising import advise
from actmeasure.inspection.detection import DetectionFit, fit_detection
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import Components, Economics, InspectionMethod, RuleStep, Units
from actmeasure.inspection.fitting import Fit, fit
from actmeasure.inspection.groups import GroupFits, fit_groups
from actmeasure.inspection.page import write_page
from actmeasure.inspection.plan_figures import Figures, HistoryPeriod, PlanStep, StepBranch
from actmeasure.inspection.problem import Problem
from actmeasure.inspection.schedules import PricedSchedule
from actmeasure.inspection.usual_policies import ComparedPolicy

__all__ = [
    "Advice",
    "Agreement",
    "ComparedPolicy",
    "Components",
    "Confidence",
    "DetectionFit",
    "Diagnostic",
    "Economics",
    "FailureLimit",
    "Figures",
    "Fit",
    "GroupFits",
    "HistoryPeriod",
    "InspectionMethod",
    "MethodWorth",
    "PlanStep",
    "Policy",
    "PricedSchedule",
    "Problem",
    "RuleStep",
    "StatePlan",
    "StepBranch",
    "Units",
    "advise",
    "fit",
    "fit_detection",
    "fit_groups",
    "write_page",
]

#: The name of `ComparedPolicy` in earlier versions.
Policy = ComparedPolicy
