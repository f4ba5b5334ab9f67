"""Studies: problems x agents x seeds as data, run in processes or on a cluster, stored trial by trial, and resumed."""

from actmeasure.experiments.engines import Engine, LocalEngine, RayEngine
from actmeasure.experiments.progress import PartProgress, StudyProgress
from actmeasure.experiments.results import Results, read_results
from actmeasure.experiments.runner import run_study
from actmeasure.experiments.spec import AgentSpec, Part, ProblemSpec, Study, Trial
from actmeasure.experiments.study_file import read_study
from actmeasure.experiments.summary import Failure, PartSummary, Summary
from actmeasure.experiments.trial import run_trial

__all__ = [
    "AgentSpec",
    "Engine",
    "Failure",
    "LocalEngine",
    "Part",
    "PartProgress",
    "PartSummary",
    "ProblemSpec",
    "RayEngine",
    "Results",
    "Study",
    "StudyProgress",
    "Summary",
    "Trial",
    "read_results",
    "read_study",
    "run_study",
    "run_trial",
]
