"""What is printed and kept of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from actmeasure.cli.output import model_json, print_json
from actmeasure.errors import AgentError

if TYPE_CHECKING:
    from actmeasure.agents import Agent
    from actmeasure.agents.base import Task
    from actmeasure.model import Model
    from actmeasure.seeds import SeedRuns

__all__ = ["archive_path", "print_runs", "save_agent", "saved_agent", "table_path"]


def table_path(path: Path | None) -> Path | None:
    """The path of a table of episodes, if it can be written; better to know now than after a long run."""
    if path is None:
        return None
    from actmeasure.seeds.files import check_table_path

    return check_table_path(path)


def archive_path(path: Path | None, problem: str) -> Path | None:
    """The path of a saved agent, if it can be written and is not that of the problem."""
    if path is None:
        return None
    from actmeasure.files.places import check_place

    if path.suffix.lower() != ".npz":
        raise AgentError(f"the agent cannot be saved as {str(path)!r}, expected a name that ends in .npz")
    if path.exists() and Path(problem).exists() and path.samefile(problem):
        raise AgentError(f"--save would replace the problem {problem!r}; choose another name")
    check_place(path, "the agent", AgentError)
    return path


def saved_agent(path: Path, name: str | None, model: Model, planned: int | None) -> Agent:
    """The agent to go on with, if it was trained on the same problem."""
    from actmeasure.agents import load
    from actmeasure.agents.base import Task

    agent = load(path)
    if name is not None and name != agent.name:
        raise AgentError(f"{path} holds the agent {agent.name!r}, not {name!r}; leave --agent out, or give that one")
    if planned is not None:
        raise AgentError("--planned is told to a new agent, but that of --continue has been told before; leave it out")
    for what, before, now in _differences(agent.prepared(), Task.of_model(model)):
        raise AgentError(
            f"{path} was trained with {what} {before}, but this problem has {now}; give the same problem and settings"
        )
    return agent


def _differences(before: Task, now: Task) -> list[tuple[str, Any, Any]]:
    """What two tasks differ in, in words."""
    import numpy as np

    found: list[tuple[str, Any, Any]] = [
        ("a number of states of", before.n_states, now.n_states),
        ("a number of actions of", before.n_actions, now.n_actions),
        ("a discount of", before.discount, now.discount),
    ]
    different = [one for one in found if one[1] != one[2]]
    if not different and not np.array_equal(before.measuring_cost, now.measuring_cost):
        different = [("a measuring cost of", _cost(before), _cost(now))]
    return different


def _cost(task: Task) -> str:
    return f"{task.measuring_cost:g}" if isinstance(task.measuring_cost, float) else "another table"


def save_agent(agent: Agent, path: Path) -> None:
    """Write an agent that learns."""
    from actmeasure.agents import LearningAgent

    if isinstance(agent, LearningAgent):
        agent.save(path)


def print_runs(runs: SeedRuns, model: Model, order: Mapping[str, Any], as_json: bool) -> None:
    """Print the results as a table, or as JSON with what was asked for."""
    if not as_json:
        typer.echo(runs.table())
        return
    from actmeasure.seeds.runs import LAST

    means = runs.means()
    print_json(
        {
            "agent": runs.agent,
            **order,
            "model": model_json(model),
            "first_episode": runs.first_episode,
            "stopped": runs.stopped,
            "notes": [runs.note] if runs.note else [],
            "last": LAST,
            "seeds": [
                {"seed": seed, "episodes": len(runs.episodes[number])}
                | {name: float(values[number]) for name, values in means.items()}
                for number, seed in enumerate(runs.seeds)
            ],
            "summary": {name: asdict(estimate) for name, estimate in runs.summary().items()},
        }
    )
