"""Running one trial: a pure function of its specification."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure import agents, problems
from actmeasure.agents.base import Agent
from actmeasure.errors import AgentError, ModelError, StudyError, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.experiments.extras import arrow
from actmeasure.experiments.ingredients import AgentSpec, ProblemSpec
from actmeasure.experiments.plain import digest
from actmeasure.experiments.planning import plan_by_work
from actmeasure.experiments.trial_spec import Trial
from actmeasure.files import parse_model
from actmeasure.model import Model
from actmeasure.training import train

if TYPE_CHECKING:
    import pyarrow

__all__ = ["build_model", "new_agent", "run_trial"]

#: What may be changed of a model file.
OVERRIDES = ("measuring_cost", "discount")
#: Agents that need what a specification cannot hold.
NOT_BY_NAME = {"schedule": "a schedule", "pomcp": "a model to plan on"}


def run_trial(trial: Trial, contents: bytes | None = None) -> pyarrow.Table:
    """Run a trial.

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
        After Ctrl-C: half a trial is none.
    """
    model = build_model(trial.problem, contents)
    columns = _plan(trial, model) if trial.agent is None else _train(trial, trial.agent, model)
    return arrow("running a trial").table(columns)


def build_model(problem: ProblemSpec, contents: bytes | None = None) -> Model:
    """The model of a problem; of a file, if its contents are those that the problem was specified with."""
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
    """A fresh agent."""
    if agent.name in NOT_BY_NAME:
        needed = NOT_BY_NAME[agent.name]
        known = [name for name in agents.AGENTS if name not in NOT_BY_NAME]
        raise AgentError(
            f"the agent {agent.name!r} needs {needed}, which a study cannot give it; choose one of: {', '.join(sorted(known))}"
        )
    return agents.make(agent.name, **agent.settings)


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


def _plan(trial: Trial, model: Model) -> dict[str, Any]:
    plan = plan_by_work(model, trial.method, trial.settings["tolerance"], trial.settings["beliefs"])
    found = evaluate(model, plan.schedule, horizon=trial.max_steps)
    return {
        "discounted_return": [found.discounted_return],
        "scalarized_return": [found.scalarized_return],
        "reward": [found.reward],
        "measurements": [found.measurements],
        "steps": [found.steps],
        "lower": [plan.lower],
        "upper": [plan.upper],
        "stopped": [plan.stopped],
    }
