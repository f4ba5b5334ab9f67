"""actmeasure: when is it worth a look?

Planning and learning for decisions in which observing the state costs something.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actmeasure import envs

if TYPE_CHECKING:
    from actmeasure import (
        agents,
        experiments,
        files,
        inspection,
        learning,
        paper,
        planners,
        planning,
        problems,
        report,
        studies,
        testing,
    )
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
        ModelWarning,
        NotCoveredError,
        PlanError,
        ScheduleError,
        SpaceError,
        StudyError,
    )
    from actmeasure.evaluation import Evaluation, evaluate
    from actmeasure.inspection import DetectionFit, Economics, Fit, GroupFits, fit, fit_detection, fit_groups
    from actmeasure.learning.train import train
    from actmeasure.model import Measurement, Model, lifetime
    from actmeasure.model.system import Component, system
    from actmeasure.planning.bounds import q_mdp
    from actmeasure.planning.certificate import Certificate, certificate
    from actmeasure.planning.frontier import Frontier
    from actmeasure.planning.solution import Solution
    from actmeasure.planning.solve import solve
    from actmeasure.planning.tradeoff import tradeoff
    from actmeasure.policy import Policy, unroll
    from actmeasure.policy_graph import PolicyGraph
    from actmeasure.schedule import BlindPlan, Schedule
    from actmeasure.studies import SeedRuns, train_seeds
    from actmeasure.studies.runner import run_study

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used, so that `actmeasure --help` is instant.
_HOME = {
    "ActMeasureError": "errors",
    "ActiveMeasuring": "envs.wrapper",
    "AgentError": "errors",
    "Belief": "belief",
    "BlindPlan": "schedule",
    "Certificate": "planning.certificate",
    "Component": "model",
    "Decision": "decision",
    "DetectionFit": "inspection",
    "Economics": "inspection",
    "Episodes": "episodes",
    "Evaluation": "evaluation",
    "Fit": "inspection",
    "FitError": "errors",
    "Frontier": "planning.frontier",
    "GroupFits": "inspection",
    "Measurement": "model",
    "MissingExtraError": "errors",
    "Model": "model",
    "ModelError": "errors",
    "ModelWarning": "errors",
    "NotCoveredError": "errors",
    "Schedule": "schedule",
    "ScheduleError": "errors",
    "SeedRuns": "studies",
    "SpaceError": "errors",
    "StudyError": "errors",
    "PlanError": "errors",
    "Policy": "policy",
    "PolicyGraph": "policy_graph",
    "Solution": "planning.solution",
    "certificate": "planning.certificate",
    "evaluate": "evaluation",
    "fit": "inspection",
    "fit_detection": "inspection",
    "fit_groups": "inspection",
    "lifetime": "model",
    "q_mdp": "planning.bounds",
    "run_study": "studies.runner",
    "solve": "planning.solve",
    "system": "model",
    "tradeoff": "planning.tradeoff",
    "train": "learning.train",
    "train_seeds": "studies",
    "unroll": "policy",
}
#: Modules that can be used as attributes without being imported; `experiments` and `report` are former names.
_MODULES = frozenset(
    {
        "agents", "experiments", "files", "inspection", "learning", "paper", "planners", "planning", "problems", "report",
        "studies", "testing",
    }
)  # fmt: skip

__all__ = [
    "ActMeasureError",
    "ActiveMeasuring",
    "AgentError",
    "Belief",
    "BlindPlan",
    "Certificate",
    "Component",
    "Decision",
    "DetectionFit",
    "Economics",
    "Episodes",
    "Evaluation",
    "Fit",
    "FitError",
    "Frontier",
    "GroupFits",
    "Measurement",
    "MissingExtraError",
    "Model",
    "ModelError",
    "ModelWarning",
    "NotCoveredError",
    "PlanError",
    "Policy",
    "PolicyGraph",
    "Schedule",
    "ScheduleError",
    "SeedRuns",
    "Solution",
    "SpaceError",
    "StudyError",
    "__version__",
    "agents",
    "certificate",
    "envs",
    "evaluate",
    "experiments",
    "files",
    "fit",
    "fit_detection",
    "fit_groups",
    "inspection",
    "learning",
    "lifetime",
    "paper",
    "planners",
    "planning",
    "problems",
    "q_mdp",
    "report",
    "run_study",
    "solve",
    "studies",
    "system",
    "testing",
    "tradeoff",
    "train",
    "train_seeds",
    "unroll",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"actmeasure.{name}")
    if name in _HOME:
        value = getattr(import_module(f"actmeasure.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'actmeasure' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
