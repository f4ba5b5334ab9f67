"""Running one trial: a pure function of its specification."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from actmeasure import learning, problems
from actmeasure.envs.grid import Grid
from actmeasure.envs.registration import register_environments
from actmeasure.envs.wrapper import ActiveMeasuring
from actmeasure.errors import AgentError, ModelError, SpaceError, StudyError, quoted, unknown_name
from actmeasure.files import parse_model
from actmeasure.learning.agent import Agent
from actmeasure.learning.train import DISCOUNT, train
from actmeasure.model import Model
from actmeasure.settings import is_import_name, make_by_name
from actmeasure.studies.planning_trial import run_plan
from actmeasure.studies.spec import AgentSpec, ProblemSpec, Trial, digest
from actmeasure.studies.store import arrow

if TYPE_CHECKING:
    import pyarrow

__all__ = ["World", "build_environment", "build_model", "build_world", "new_agent", "run_trial"]

#: What an agent is trained on.
World = Model | gymnasium.Env[Any, Any]

#: Settings of a problem that is a model file.
OVERRIDES = ("measuring_cost", "discount")
#: Agents that need something that a specification cannot hold, and what.
NOT_BY_NAME = {"schedule": "a schedule"}
#: The agent that is told the dynamics: it is given the model of the problem.
PLANNER = "pomcp"


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
    if trial.agent is None:
        columns = run_plan(trial, build_model(trial.problem, contents))
    else:
        columns = _train(trial, trial.agent, build_world(trial.problem, contents))
    return arrow("running a trial").table(columns)


def build_model(problem: ProblemSpec, contents: bytes | None = None) -> Model:
    """Return the model of a problem, to plan for; an environment without a table of its dynamics is a `ModelError`.

    Contents of a model file have to be those that the problem was specified with.
    """
    if problem.gymnasium is not None:
        env = _made(problem)
        if env.has_wrapper_attr("model") and isinstance(env.get_wrapper_attr("model"), Model):
            model: Model = env.get_wrapper_attr("model")
            return model
        discount = DISCOUNT if problem.discount is None else problem.discount
        return Model.from_gymnasium(env, measuring_cost=_price(problem), discount=discount)
    world = build_world(problem, contents)
    if isinstance(world, Model):
        return world
    raise ModelError(
        f"the problem {problem.label!r} is an environment, for which nothing can be planned; leave out methods"
    )


def build_world(problem: ProblemSpec, contents: bytes | None = None) -> World:
    """Return what agents are trained on: the model of a problem, or an environment in which looking costs."""
    if problem.gymnasium is not None:
        return build_environment(problem)
    if not problem.is_file:
        if not is_import_name(problem.name):
            return problems.make(problem.name, **problem.settings)
        made: Any = make_by_name("problem", problem.name, problems.PROBLEMS, problem.settings, ModelError)
        if not isinstance(made, (Model, gymnasium.Env)):
            raise ModelError(
                f"the problem {problem.name!r} returned {quoted(made)}, expected a Model or an environment"
            )
        return made
    contents = problem.read() if contents is None else contents
    if digest(contents) != problem.content:
        raise StudyError(f"the model file {problem.name!r} has changed since the study was read; run the study again")
    for name in problem.settings:
        if name not in OVERRIDES:
            raise ModelError(unknown_name("setting of a model file", name, OVERRIDES))
    return parse_model(contents, Path(problem.name)).replace(**problem.settings)


def build_environment(problem: ProblemSpec) -> gymnasium.Env[Any, Any]:
    """Return the Gymnasium environment of a problem, on a grid if it has one, in which looking costs."""
    env = _made(problem)
    if problem.grid is not None:
        env = Grid(env, **_grid_settings(problem.grid))
    if not env.has_wrapper_attr("measuring_cost"):
        env = ActiveMeasuring(env, measuring_cost=_price(problem))
    elif problem.measuring_cost is not None:
        raise StudyError(
            f"looking already costs something in {problem.gymnasium}; leave out measuring_cost, or put it into the settings"
        )
    return env


def _made(problem: ProblemSpec) -> gymnasium.Env[Any, Any]:
    """Return what `gymnasium.make` gives; its errors are a `StudyError`."""
    register_environments()
    assert problem.gymnasium is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of newer versions of an environment
            return gymnasium.make(problem.gymnasium, **problem.settings)
    except ImportError as error:
        raise StudyError(f"the environment {problem.gymnasium!r} needs a package that is missing: {error}") from error
    except Exception as error:  # an environment checks its settings as it likes
        raise StudyError(
            f"gymnasium.make cannot make {problem.gymnasium!r}: {type(error).__name__}: {error}; correct the id or the settings"
        ) from error


def _price(problem: ProblemSpec) -> float:
    if not isinstance(problem.measuring_cost, float):
        raise StudyError(
            f"the problem {problem.label!r} has no measuring_cost; say what a look costs, such as measuring_cost = 0.01"
        )
    return problem.measuring_cost


def _grid_settings(given: Any) -> dict[str, Any]:
    """Return arguments of `Grid`; an unknown one is a `SpaceError` that suggests a known one."""
    known = ("bins", "low", "high", "actions")
    for name in given:
        if name not in known:
            raise SpaceError(unknown_name("setting of a grid", name, known))
    return dict(given)


def new_agent(agent: AgentSpec, world: World | None = None) -> Agent:
    """Return a fresh agent for a world; without one, to see whether its settings are valid."""
    if agent.name == PLANNER:
        model = problems.make("measuring-value") if world is None else world
        if not isinstance(model, Model):
            raise AgentError(f"the agent {PLANNER!r} plans on the problem's model, but the problem is an environment")
        return learning.make(PLANNER, model=model, **agent.settings)
    if agent.name in NOT_BY_NAME:
        needed = NOT_BY_NAME[agent.name]
        known = [name for name in learning.AGENTS if name not in NOT_BY_NAME]
        raise AgentError(
            f"the agent {agent.name!r} needs {needed}, which a study cannot give it; choose one of: {', '.join(sorted(known))}"
        )
    return learning.make(agent.name, **agent.settings)


def _train(trial: Trial, spec: AgentSpec, world: World) -> dict[str, Any]:
    discount = DISCOUNT if trial.problem.discount is None else trial.problem.discount
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted after", RuntimeWarning)  # said below
        results = train(new_agent(spec, world), world, trial.episodes, trial.seed, trial.max_steps, discount)
    if len(results) < trial.episodes:
        raise KeyboardInterrupt
    return {
        "episode": np.arange(trial.episodes),
        "scalarized_return": results.scalarized_return,
        "reward": results.reward,
        "measurements": results.measurements,
        "steps": results.steps,
    }
