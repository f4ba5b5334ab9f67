"""Planning: what to do, when to look, and how good that provably is."""

from actmeasure.planners.clock import Progress
from actmeasure.planners.frontier import BudgetPlan, Frontier, FrontierPiece
from actmeasure.planners.pomcp import POMCP
from actmeasure.planners.simulated import SimulatedReturn, simulate
from actmeasure.planners.solution import Solution
from actmeasure.planners.solve import METHODS, solve
from actmeasure.planners.tradeoff import tradeoff
from actmeasure.planners.value_iteration import q_mdp

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
