"""Planning: what to do, when to look, and how good that provably is."""

from __future__ import annotations

from actmeasure.planning.budget import Progress
from actmeasure.planning.frontier import BudgetPlan, Frontier, FrontierPiece
from actmeasure.planning.pomcp import POMCP, SimulatedReturn, simulate
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import METHODS, solve
from actmeasure.planning.tradeoff import tradeoff
from actmeasure.planning.value_iteration import q_mdp

__all__ = [
    "METHODS",
    "POMCP",
    "BudgetPlan",
    "Frontier",
    "FrontierPiece",
    "Progress",
    "SimulatedReturn",
    "Solution",
    "q_mdp",
    "simulate",
    "solve",
    "tradeoff",
]
