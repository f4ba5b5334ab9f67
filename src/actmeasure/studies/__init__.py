"""Studies: problems x agents x seeds as data, run in processes or on a cluster, stored trial by trial, and resumed.

Also `train_seeds`: one agent on one model with several seeds.
"""

from __future__ import annotations

from actmeasure.statistics import Interval as Estimate
from actmeasure.studies.engines import Engine, LocalEngine, RayEngine
from actmeasure.studies.results import Results, read_results
from actmeasure.studies.runner import run_study
from actmeasure.studies.seed_runs import SeedRuns
from actmeasure.studies.seeds import SeedProgress, train_agent, train_seeds
from actmeasure.studies.spec import AgentSpec, Part, ProblemSpec, Study, Trial
from actmeasure.studies.study_file import read_study
from actmeasure.studies.study_record import Failure, PartProgress, PartSummary, StudyProgress, Summary
from actmeasure.studies.trial import run_trial

__all__ = [
    "AgentSpec",
    "Engine",
    "Estimate",
    "Failure",
    "LocalEngine",
    "Part",
    "PartProgress",
    "PartSummary",
    "ProblemSpec",
    "RayEngine",
    "Results",
    "SeedProgress",
    "SeedRuns",
    "Study",
    "StudyProgress",
    "Summary",
    "Trial",
    "read_results",
    "read_study",
    "run_study",
    "run_trial",
    "train_agent",
    "train_seeds",
]
