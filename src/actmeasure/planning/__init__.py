"""Planning on a known model: schedules with bounds on the optimum, the trade-off with the price of looking, and POMCP."""

from __future__ import annotations

from actmeasure.planning.bounds import q_mdp
from actmeasure.planning.budget import Budget, Progress
from actmeasure.planning.explain_belief import BeliefExplanation
from actmeasure.planning.frontier import BudgetPlan, Frontier, FrontierPiece
from actmeasure.planning.measurement_tradeoff import MeasurementTradeoff, QualityTradeoff, with_quality
from actmeasure.planning.pomcp import POMCP, SimulatedReturn, simulate
from actmeasure.planning.solution import Plan, Solution
from actmeasure.planning.solve import METHODS, Method, register, solve
from actmeasure.planning.tradeoff import tradeoff

__all__ = [
    "METHODS",
    "POMCP",
    "BeliefExplanation",
    "Budget",
    "BudgetPlan",
    "Frontier",
    "FrontierPiece",
    "MeasurementTradeoff",
    "Method",
    "Plan",
    "Progress",
    "QualityTradeoff",
    "SimulatedReturn",
    "Solution",
    "q_mdp",
    "register",
    "simulate",
    "solve",
    "tradeoff",
    "with_quality",
]
