"""The commands `problems` and `agents`, which list and describe them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from actmeasure.cli.output import Json, find_own_modules, print_json, print_rows

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        epilog="Examples:  actmeasure problems  |  actmeasure problems frozen-lake  |  actmeasure problems --json"
    )(problems)
    app.command(epilog="Examples:  actmeasure agents  |  actmeasure agents random  |  actmeasure agents --json")(agents)


def problems(
    name: Annotated[str | None, typer.Argument(help="Show one problem in full, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the problems that come with actmeasure, or show one in full."""
    from actmeasure.problems import PROBLEMS, make

    if name is not None:
        _describe("problem", name, PROBLEMS, as_json)
        if not as_json:
            typer.echo(f"\nAs an environment: gymnasium.make({_environment_id(name)!r}, ...)")
        return
    rows = []
    for problem, build in PROBLEMS.items():
        model = make(problem)
        rows.append(
            {
                "problem": problem,
                "states": model.n_states,
                "actions": model.n_actions,
                "environment": _environment_id(problem),
            }
            | _summary(build)
        )
    print_rows(rows, as_json, hidden=("environment",))  # shown when one problem is, and in JSON


def agents(
    name: Annotated[str | None, typer.Argument(help="Show one agent in full, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the agents that come with actmeasure and those of installed packages, or show one in full."""
    from actmeasure.learning import AGENTS, class_of, installed_names

    if name is not None:
        find_own_modules(name)
        found = class_of(name)
        known = dict.fromkeys(installed_names()) | AGENTS
        _describe("agent", name, known if found is None else {name: found}, as_json)
        return
    rows = [{"agent": agent} | _summary(kind) for agent, kind in AGENTS.items()]
    print_rows(rows + [_installed_agent(agent) for agent in installed_names()], as_json)


def _installed_agent(name: str) -> dict[str, str]:
    """Return the row of an agent of an installed package; what is wrong with it is its description."""
    from actmeasure.errors import AgentError
    from actmeasure.learning import class_of

    try:
        return {"agent": name} | _summary(class_of(name))
    except AgentError as error:
        return {"agent": name, "what": str(error)}


def _environment_id(problem: str) -> str:
    from actmeasure.envs.registration import environment_id

    return environment_id(problem)


def _summary(documented: object) -> dict[str, str]:
    from actmeasure.settings import summary

    return {"what": summary(documented)}


def _describe(kind: str, name: str, choices: dict[str, Any], as_json: bool) -> None:
    """Print a problem's or agent's whole description and its settings with their defaults."""
    import inspect

    from actmeasure.errors import ActMeasureError, unknown_name

    if name not in choices:
        raise ActMeasureError(unknown_name(kind, name, choices))
    chosen = choices[name]
    parameters = inspect.signature(chosen).parameters
    defaults = {key: value.default for key, value in parameters.items() if value.default is not inspect.Parameter.empty}
    # The settings of learning agents are described by the dataclasses that hold them.
    held = [kind for kind in type(getattr(chosen, "defaults", None)).__mro__ if hasattr(kind, "__dataclass_fields__")]
    described = [chosen, *(kind for kind in held if "Attributes\n" in (kind.__doc__ or ""))]
    description = "\n\n".join(inspect.cleandoc(each.__doc__ or "") for each in described)
    if as_json:
        settings = {key: defaults.get(key, "(required)") for key in parameters}
        print_json({kind: name, "description": description, "settings": settings})
        return
    shown = [f"{key}={defaults[key]!r}" if key in defaults else f"{key} (required)" for key in parameters]
    typer.echo(f"{name}({', '.join(shown)})\n\n{description}")
