"""Results of studies that were never run: what a report needs, made up in no time."""

import json

import numpy as np
import pandas as pd

from actmeasure.studies import AgentSpec, Part, ProblemSpec, Results, Study

ABOUT = {
    "versions": {"python": "3.11.0", "actmeasure": "0.1.0"},
    "machine": {"system": "Test", "cores": 2, "memory": 8 * 10**9},
    "engine": "local", "started": "2026-01-01T00:00:00+00:00", "finished": "2026-01-01T00:01:00+00:00", "wall_seconds": 60.0,
    "seconds": {}, "failures": [],
}  # fmt: skip


def own_study(problem="lake", agent="learner", title="Two agents"):
    """Two agents on two problems, with plans."""
    problems = [ProblemSpec(problem, "frozen-lake", {"size": 4}), ProblemSpec("gamble", "measuring-value")]
    agents = [AgentSpec(agent, "atmq"), AgentSpec("other", "amrl-q", {"preset": "paper"})]
    return Study("mine", title, [Part("first", title, problems, agents, episodes=60, seeds=4, methods=["optimal"])])


def results_of(study, earn=None, keep=lambda trial: True, plan=None, habits=lambda trial: (1 + trial.seed, 6)):
    """Results of a study, without running it.

    Parameters
    ----------
    earn : function of problem, agent and seed
        The return of every episode of a run; by default by chance.
    keep : function of a trial
        Whether it is there.
    plan : function of a problem
        The undiscounted return of a plan.
    habits : function of a trial
        Measurements and steps of every episode of a run.
    """
    chance = np.random.default_rng(0)
    earn = earn or (lambda problem, agent, seed: chance.normal(0.5, 0.1))
    plan = plan or (lambda problem: 0.9)
    runs, episodes, plans = [], [], []
    for part in study.parts:
        for problem, agent, trial in part.runs():
            if keep(trial):
                own = json.dumps(dict(problem.settings)), agent.name, json.dumps(dict(agent.settings))
                runs.append((part.name, problem.label, agent.label, *own, trial.seed, trial.episodes, trial.hash))
                episodes.append(
                    _episodes(part, problem, agent, trial, earn(problem, agent, trial.seed), *habits(trial))
                )
        for problem, method, trial in part.plans():
            if keep(trial):
                value = plan(problem)
                plans.append((part.name, problem.label, method, value, value, 1.0, 2.0, 6.0, value, value, "closed"))
    missing = tuple(trial for trial in study.trials() if not keep(trial))
    return Results(
        study.to_json() | ABOUT,
        pd.DataFrame(runs, columns=RUNS),
        pd.concat(episodes, ignore_index=True) if episodes else pd.DataFrame(columns=EPISODES),
        pd.DataFrame(plans, columns=PLANS),
        missing,
    )


def _episodes(part, problem, agent, trial, earned, looks, steps):
    return pd.DataFrame(
        {
            "part": part.name, "problem": problem.label, "agent": agent.label, "seed": trial.seed,
            "episode": np.arange(trial.episodes), "scalarized_return": float(earned), "reward": 1.0,
            "measurements": looks, "steps": steps,
        }
    )  # fmt: skip


RUNS = ["part", "problem", "agent", "problem_settings", "agent_name", "agent_settings", "seed", "episodes", "hash"]
EPISODES = [
    "part", "problem", "agent", "seed", "episode", "scalarized_return", "reward", "measurements", "steps",
]  # fmt: skip
PLANS = [
    "part", "problem", "method", "discounted_return", "scalarized_return", "reward", "measurements", "steps", "lower", "upper",
    "stopped",
]  # fmt: skip
