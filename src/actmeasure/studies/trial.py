"""Running one trial: a pure function of its specification."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from actmeasure import learning, problems
from actmeasure.errors import AgentError, ModelError, StudyError, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.files import parse_model
from actmeasure.interrupts import deferred_interrupts
from actmeasure.learning.agent import Agent
from actmeasure.learning.train import train
from actmeasure.model import Model
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import MOST_BYTES, NEGLIGIBLE_GAP, Never, Optimal
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import method_of, solve
from actmeasure.studies.spec import AgentSpec, ProblemSpec, Trial, canonical, digest
from actmeasure.studies.store import arrow

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Appraiser", "Expense", "build_model", "new_agent", "plan_by_work", "run_trial"]

#: What may be changed of a model file.
OVERRIDES = ("measuring_cost", "discount")
#: Methods that spend a limit on work, and have a relative tolerance.
SEARCHES = (Optimal, Never)
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


def _plan(trial: Trial, model: Model) -> dict[str, Any]:
    plan = plan_by_work(model, trial.method, trial.settings["tolerance"], trial.settings["beliefs"])
    searches = isinstance(method_of(trial.method), SEARCHES)
    found = evaluate(model, plan.schedule, horizon=trial.max_steps)
    return {
        "discounted_return": [found.discounted_return],
        "scalarized_return": [found.scalarized_return],
        "reward": [found.reward],
        "measurements": [found.measurements],
        "steps": [found.steps],
        "lower": [plan.value if searches else plan.lower],
        "upper": [plan.upper],
        "stopped": [plan.stopped],
    }


# ----------------------------------------------------------------------------------------------------
# Planning that is never ended by the clock, so that the same problem gives the same plan on every machine.
# ----------------------------------------------------------------------------------------------------


def plan_by_work(model: Model, method: str, tolerance: float, beliefs: int) -> Solution:
    """Plan; searches end at a gap of `tolerance`, as a share of the value, or with a limit on the work (see `Budget`).

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: half a plan is none.
    """
    with deferred_interrupts() as interrupts:
        chosen = method_of(method)
        if isinstance(chosen, SEARCHES):
            chosen, tolerance = replace(chosen, relative_tolerance=tolerance), NEGLIGIBLE_GAP
        found = solve(model, chosen, tolerance, budget=Budget(work=beliefs))
        interrupts.check()
    return found


# ----------------------------------------------------------------------------------------------------
# What a trial is expected to cost, before any has been run: to order trials, and to start no more workers than memory allows.
# ----------------------------------------------------------------------------------------------------


#: Microseconds, roughly, for each state and episode by agent (by agent and preset, where that matters), and for each state of a
#: plan and step that counts at its discount, up to a largest number. They are corrected by what trials turn out to take.
WEIGHTS = {
    "random": 0.05, "amrl-q": 0.05, "atmq": 0.3, "dyna-atmq": 0.7, "dyna-atmq published": 10.0, "foresight": 8.0,
    "acno-otp": 500.0, "acno-pomcp": 500.0,
}  # fmt: skip
PLAN_WEIGHT, FAR = 100.0, 1000.0
#: Seconds that any trial takes.
LEAST = 0.02
#: Bytes of a worker that does nothing, for each state and action, and for each belief of a search.
WORKER_BYTES, PAIR_BYTES, BELIEF_BYTES = 350 << 20, 500, 2500


class Expense(NamedTuple):
    """What a trial is expected to cost.

    Attributes
    ----------
    cell : str
        Common to trials that differ in nothing but their seed.
    kind : str
        Common to trials of the same agent with the same settings, or of the same method with the same settings and discount.
    family : str
        The agent or method.
    work : float
        Seconds, by a rough rule.
    memory : int
        Bytes that a worker takes for it.
    """

    cell: str
    kind: str
    family: str
    work: float
    memory: int


class Appraiser:
    """Checks that trials can be run, and says what they cost; each problem and agent is made once."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int, float]] = {}
        self._beliefs: dict[str, int] = {}

    def appraise(self, trial: Trial, contents: bytes | None) -> Expense:
        """The expense of a trial; whatever is wrong with its problem, agent or method is an error that says so."""
        n_states, n_actions, discount = self._size(trial, contents)
        base = WORKER_BYTES + n_states * n_actions * PAIR_BYTES
        problem = canonical(trial.problem.identity())
        if trial.agent is None:
            searches = isinstance(method_of(trial.method), SEARCHES)
            beliefs = trial.settings["beliefs"] if searches else 0
            steps = min(1 / (1 - discount), FAR) if discount < 1 else FAR
            kind = canonical([trial.method, dict(trial.settings), discount])
            work = LEAST + 1e-6 * PLAN_WEIGHT * n_states * steps
            return Expense(f"{kind} {problem}", kind, trial.method, work, base + _search_bytes(beliefs))
        agent = trial.agent
        kind = canonical(agent.identity())
        work = LEAST + 1e-6 * _weight(agent) * trial.episodes * n_states
        cell = f"{kind} {problem} {trial.episodes} {trial.max_steps}"
        return Expense(cell, kind, agent.name, work, base + _search_bytes(self._agent_beliefs(agent)))

    def _size(self, trial: Trial, contents: bytes | None) -> tuple[int, int, float]:
        key = str(trial.problem.identity())
        if key not in self._sizes:
            model: Model = build_model(trial.problem, contents)
            self._sizes[key] = model.n_states, model.n_actions, model.discount
        return self._sizes[key]

    def _agent_beliefs(self, agent: AgentSpec) -> int:
        """How many beliefs the agent's planner may come to, if it has one."""
        key = str(agent.identity())
        if key not in self._beliefs:
            self._beliefs[key] = getattr(getattr(new_agent(agent), "settings", None), "beliefs", 0)
        return self._beliefs[key]


def _weight(agent: AgentSpec) -> float:
    return WEIGHTS.get(f"{agent.name} {agent.settings.get('preset')}", WEIGHTS.get(agent.name, 1.0))


def _search_bytes(beliefs: int) -> int:
    return min(beliefs * BELIEF_BYTES, MOST_BYTES)
