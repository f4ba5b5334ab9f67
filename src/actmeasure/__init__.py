"""actmeasure: when is it worth a look?

Planning and learning for decisions in which observing the state costs something.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actmeasure import envs  # light; registers our environments as soon as Gymnasium is there

if TYPE_CHECKING:
    from actmeasure import agents, experiments, files, inspection, planners, problems, report, testing
    from actmeasure.belief import Belief
    from actmeasure.decision import Decision
    from actmeasure.envs.wrapper import ActiveMeasuring
    from actmeasure.episodes import Episodes
    from actmeasure.errors import (
        ActMeasureError,
        AgentError,
        FitError,
        MissingExtraError,
        ModelError,
        PlanError,
        ScheduleError,
        SpaceError,
        StudyError,
    )
    from actmeasure.evaluation import Evaluation, evaluate
    from actmeasure.experiments.runner import run_study
    from actmeasure.fitting import Economics, Fit, fit
    from actmeasure.model import Model
    from actmeasure.planners.frontier import Frontier
    from actmeasure.planners.solution import Solution
    from actmeasure.planners.solve import solve
    from actmeasure.planners.tradeoff import tradeoff
    from actmeasure.planners.value_iteration import q_mdp
    from actmeasure.schedule import BlindPlan, Schedule
    from actmeasure.seeds import SeedRuns, train_seeds
    from actmeasure.training import train
    from actmeasure.unrolling import unroll

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used, so that `actmeasure --help` is instant.
_HOME = {
    "ActMeasureError": "errors",
    "ActiveMeasuring": "envs.wrapper",
    "AgentError": "errors",
    "Belief": "belief",
    "BlindPlan": "schedule",
    "Decision": "decision",
    "Economics": "fitting",
    "Episodes": "episodes",
    "Evaluation": "evaluation",
    "Fit": "fitting",
    "FitError": "errors",
    "Frontier": "planners.frontier",
    "MissingExtraError": "errors",
    "Model": "model",
    "ModelError": "errors",
    "Schedule": "schedule",
    "ScheduleError": "errors",
    "SeedRuns": "seeds",
    "SpaceError": "errors",
    "StudyError": "errors",
    "PlanError": "errors",
    "Solution": "planners.solution",
    "evaluate": "evaluation",
    "fit": "fitting",
    "q_mdp": "planners.value_iteration",
    "run_study": "experiments.runner",
    "solve": "planners.solve",
    "tradeoff": "planners.tradeoff",
    "train": "training",
    "train_seeds": "seeds",
    "unroll": "unrolling",
}
_SUBPACKAGES = ("agents", "experiments", "files", "inspection", "planners", "problems", "report", "testing")

__all__ = [
    "ActMeasureError",
    "ActiveMeasuring",
    "AgentError",
    "Belief",
    "BlindPlan",
    "Decision",
    "Economics",
    "Episodes",
    "Evaluation",
    "Fit",
    "FitError",
    "Frontier",
    "MissingExtraError",
    "Model",
    "ModelError",
    "PlanError",
    "Schedule",
    "ScheduleError",
    "SeedRuns",
    "Solution",
    "SpaceError",
    "StudyError",
    "__version__",
    "agents",
    "envs",
    "evaluate",
    "experiments",
    "files",
    "fit",
    "inspection",
    "planners",
    "problems",
    "q_mdp",
    "report",
    "run_study",
    "solve",
    "testing",
    "tradeoff",
    "train",
    "train_seeds",
    "unroll",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"actmeasure.{name}")
    if name in _HOME:
        value = getattr(import_module(f"actmeasure.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'actmeasure' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
