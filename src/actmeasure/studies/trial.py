"""Running one trial: a pure function of its specification."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure import learning, problems
from actmeasure.errors import AgentError, ModelError, StudyError, unknown_name
from actmeasure.files import parse_model
from actmeasure.learning.agent import Agent
from actmeasure.learning.train import train
from actmeasure.model import Model
from actmeasure.studies.planning_trial import run_plan
from actmeasure.studies.spec import AgentSpec, ProblemSpec, Trial, digest
from actmeasure.studies.store import arrow

if TYPE_CHECKING:
    import pyarrow

__all__ = ["build_model", "new_agent", "run_trial"]

#: Settings of a problem that is a model file.
OVERRIDES = ("measuring_cost", "discount")
#: Agents that need something that a specification cannot hold, and what.
NOT_BY_NAME = {"schedule": "a schedule", "pomcp": "a model to plan on"}


def run_trial(trial: Trial, contents: bytes | None = None) -> pyarrow.Table:
    """Run a trial and return its results.

    Parameters
    ----------
    trial : Trial
    contents : bytes, optional
        Of the problem's model file, where it is one; the file is read by default.

    Returns
    -------
    pyarrow.Table
        Of a training a row for each episode: `episode` (from 0), `scalarized_return`, `reward`, `measurements`, `steps`. Of a
        plan one row: `discounted_return`; `scalarized_return`, `reward`, `measurements` and `steps` over `max_steps` steps;
        `lower` and `upper` bounds on the optimum; `stopped`, why planning ended.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: a trial is complete or not there.
    """
    model = build_model(trial.problem, contents)
    columns = run_plan(trial, model) if trial.agent is None else _train(trial, trial.agent, model)
    return arrow("running a trial").table(columns)


def build_model(problem: ProblemSpec, contents: bytes | None = None) -> Model:
    """Return the model of a problem; contents of a model file have to be those that the problem was specified with."""
    if not problem.is_file:
        return problems.make(problem.name, **problem.settings)
    found = problem.read() if contents is None else contents
    if digest(found) != problem.content:
        raise StudyError(f"the model file {problem.name!r} has changed since the study was read; run the study again")
    for name in problem.settings:
        if name not in OVERRIDES:
            raise ModelError(unknown_name("setting of a model file", name, OVERRIDES))
    return parse_model(found, Path(problem.name)).replace(**problem.settings)


def new_agent(agent: AgentSpec) -> Agent:
    """Return a fresh agent."""
    if agent.name in NOT_BY_NAME:
        needed = NOT_BY_NAME[agent.name]
        known = [name for name in learning.AGENTS if name not in NOT_BY_NAME]
        raise AgentError(
            f"the agent {agent.name!r} needs {needed}, which a study cannot give it; choose one of: {', '.join(sorted(known))}"
        )
    return learning.make(agent.name, **agent.settings)


def _train(trial: Trial, spec: AgentSpec, model: Model) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted after", RuntimeWarning)  # said below
        results = train(new_agent(spec), model, trial.episodes, trial.seed, trial.max_steps)
    if len(results) < trial.episodes:
        raise KeyboardInterrupt
    return {
        "episode": np.arange(trial.episodes),
        "scalarized_return": results.scalarized_return,
        "reward": results.reward,
        "measurements": results.measurements,
        "steps": results.steps,
    }
