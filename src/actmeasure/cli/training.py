"""The command `train`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import EXIT_CODES, Json, find_own_modules, model_json, picture_path, print_json, say
from actmeasure.cli.problem_options import PROBLEM_HELP, Cost, Discount, Settings, read_model, read_settings
from actmeasure.errors import AgentError
from actmeasure.progress import training_bar

if TYPE_CHECKING:
    from actmeasure.learning import Agent
    from actmeasure.learning.agent import Task
    from actmeasure.model import Model
    from actmeasure.studies import SeedRuns

__all__ = ["register"]

Problem = Annotated[
    str,
    typer.Option(metavar="NAME_OR_FILE", help=PROBLEM_HELP, show_default=False),
]
AgentName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of one agent (see: actmeasure agents), or module:Class of your own.",
        show_default=False,
    ),
]
AgentSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-set", metavar="NAME=VALUE", help="A setting of the agent, such as preset=paper; may be repeated."
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes; by default one for a short run and all cores for a long one.")
]
Out = Annotated[
    Path | None, typer.Option(help="Write a row for every seed and episode into this file: .csv or .parquet.")
]
Curve = Annotated[
    Path | None, typer.Option(help="Draw the learning curve into this file, such as curve.png or curve.svg.")
]
Save = Annotated[Path | None, typer.Option(help="Save the trained agent into this .npz file; one seed only.")]
GoOn = Annotated[
    Path | None, typer.Option("--continue", help="Go on with an agent from --save, on the same problem and seed.")
]
Planned = Annotated[
    int | None, typer.Option(metavar="N", help="Episodes the agent is told to expect; by default --episodes.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:  actmeasure train --problem frozen-lake --agent dyna-atmq --seeds 5 --plot curve.png  |  "
        "actmeasure train --problem frozen-lake --set size=8 --agent atmq --agent-set preset=published "
        "--agent-set learning_rate=0.2 --episodes 2000 --seeds 20 --out episodes.csv  |  "
        "actmeasure train --problem machine.json --agent atmq --save agent.npz  |  "
        "actmeasure train --problem machine.json --continue agent.npz --episodes 500 --json"
    )(train)


def train(
    problem: Problem,
    agent: AgentName = None,
    episodes: Annotated[int, typer.Option(metavar="N", help="Episodes for each seed.")] = 1000,
    seeds: Annotated[int, typer.Option(metavar="K", help="How many seeds; several use all cores.")] = 1,
    first_seed: Annotated[int, typer.Option(metavar="SEED", help="The seeds are this one and those after it.")] = 0,
    settings: Settings = None,
    agent_settings: AgentSettings = None,
    cost: Cost = None,
    discount: Discount = None,
    max_steps: Annotated[int, typer.Option(help="Steps after which an episode is cut off.")] = 1000,
    workers: Workers = None,
    out: Out = None,
    plot: Curve = None,
    save: Save = None,
    go_on: GoOn = None,
    planned: Planned = None,
    as_json: Json = False,
) -> None:
    """Train an agent by letting it act, with one or several seeds, and show what it earns in the end.

    Shown is the mean of each seed's last 50 episodes; then the mean over seeds, their standard deviation and a 95 % interval
    for the mean (Student's t). Ctrl-C keeps what is done, with exit code 130. A run that was saved and continued equals one
    without a break, if the seed is the same and the first part was told of all episodes with --planned.
    """
    find_own_modules(agent)
    chosen = read_settings(agent_settings, "--agent-set", "preset=paper")
    _check(agent, chosen, episodes, seeds, first_seed, save, go_on)
    table, picture, archive = _table_path(out), picture_path(plot), _archive_path(save, problem)
    model = read_model(problem, read_settings(settings), cost, discount)
    one = _saved_agent(go_on, agent, model, planned) if go_on else _new_agent(agent or "", chosen, archive)
    from actmeasure.studies import train_agent, train_seeds

    with warnings.catch_warnings(), training_bar() as show:
        warnings.simplefilter("ignore", RuntimeWarning)  # printed below instead
        try:
            if go_on or save:
                runs = train_agent(one, model, episodes, first_seed, max_steps, planned, show)
            else:
                which = range(first_seed, first_seed + seeds)
                runs = train_seeds(agent or "", model, episodes, which, max_steps, chosen, planned, workers, show)
        except KeyboardInterrupt:
            say("Stopped with Ctrl-C before the first episode was over: there is nothing to show.")
            raise typer.Exit(EXIT_CODES["interrupted"]) from None
    _print_runs(runs, model, {"problem": problem, "settings": chosen, "max_steps": max_steps}, as_json)
    if table is not None:
        runs.save(table)
        say(f"Episodes: {table}")
    if picture is not None:
        runs.plot(picture)
        say(f"Picture: {picture}")
    if archive is not None:
        _save_agent(one, archive)
        say(f"Agent: {archive}, after {one.episodes_done:,} episodes; go on with --continue, --first-seed {first_seed}")
    if runs.stopped != "done":
        say(runs.note)
        raise typer.Exit(EXIT_CODES[runs.stopped])


def _check(
    agent: str | None,
    chosen: Mapping[str, Any],
    episodes: int,
    seeds: int,
    first_seed: int,
    save: Path | None,
    go_on: Path | None,
) -> None:
    """Raise an error for options that do not go together, before anything is loaded."""
    for name, value, least in (("--episodes", episodes, 1), ("--seeds", seeds, 1), ("--first-seed", first_seed, 0)):
        if value < least:
            raise AgentError(f"{name} is {value}, expected a whole number from {least} up")
    if seeds > 1 and (save or go_on):
        option = "--save" if save else "--continue"
        raise AgentError(
            f"{option} is for one agent, but there are {seeds} seeds; give --seeds 1 and choose --first-seed"
        )
    if agent is None and go_on is None:
        raise AgentError("there is no agent to train; give --agent, such as --agent dyna-atmq, or --continue")
    if go_on and chosen:
        raise AgentError(
            "--agent-set goes with a new agent, but --continue has its settings from the file; leave one out"
        )


def _new_agent(name: str, chosen: Mapping[str, Any], archive: Path | None) -> Agent:
    """Return a fresh agent of that name, after checking that it can be made by name and, if wanted, saved."""
    from actmeasure.learning import LearningAgent, make

    if name == "schedule":
        raise AgentError(
            "the agent 'schedule' needs a schedule and a model, which only Python can pass; use actmeasure.train there, or "
            "actmeasure solve for what a schedule earns"
        )
    if name == "pomcp":
        raise AgentError(
            "the agent 'pomcp' plans on a model that it is given, and learns nothing; use actmeasure solve ... --method pomcp"
        )
    made = make(name, **chosen)
    if archive is not None and not isinstance(made, LearningAgent):
        raise AgentError(f"the agent {name!r} learns nothing that could be saved; leave --save out")
    return made


def _table_path(path: Path | None) -> Path | None:
    """Return the path of a table of episodes after checking that it can be written, before a long run."""
    if path is None:
        return None
    from actmeasure.studies.seed_runs import check_table_path

    return check_table_path(path)


def _archive_path(path: Path | None, problem: str) -> Path | None:
    """Return the path of a saved agent after checking that it can be written and is not that of the problem."""
    if path is None:
        return None
    from actmeasure.file_access import check_writable, path_of

    path = path_of(path, ".npz", AgentError)
    if path.exists() and Path(problem).exists() and path.samefile(problem):
        raise AgentError(f"--save would replace the problem {problem!r}; choose another name")
    check_writable(path, "the agent", AgentError)
    return path


def _saved_agent(path: Path, name: str | None, model: Model, planned: int | None) -> Agent:
    """Return the saved agent after checking that it was trained on the same problem."""
    from actmeasure.learning import load
    from actmeasure.learning.agent import Task

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
    """Return the differences between two tasks: in what, before and now."""
    import numpy as np

    compared: list[tuple[str, Any, Any]] = [
        ("a number of states of", before.n_states, now.n_states),
        ("a number of actions of", before.n_actions, now.n_actions),
        ("a discount of", before.discount, now.discount),
    ]
    different = [one for one in compared if one[1] != one[2]]
    if not different and not np.array_equal(before.measuring_cost, now.measuring_cost):
        different = [("a measuring cost of", _cost(before), _cost(now))]
    return different


def _cost(task: Task) -> str:
    return f"{task.measuring_cost:g}" if isinstance(task.measuring_cost, float) else "another table"


def _save_agent(agent: Agent, path: Path) -> None:
    """Write an agent that learns."""
    from actmeasure.learning import LearningAgent

    if isinstance(agent, LearningAgent):
        agent.save(path)


def _print_runs(runs: SeedRuns, model: Model, order: Mapping[str, Any], as_json: bool) -> None:
    """Print the results as a table, or as JSON with what was asked for."""
    if not as_json:
        typer.echo(runs.table())
        return
    from actmeasure.studies.seed_runs import LAST

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
            "summary": {
                name: {
                    "mean": estimate.mean,
                    "deviation": estimate.deviation,
                    "low": estimate.low,
                    "high": estimate.high,
                }
                for name, estimate in runs.summary().items()
            },
        }
    )
