"""Output of the commands: tables, JSON and remarks; and the paths of pictures. Progress is in `actmeasure.progress`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.errors import shown as escaped

if TYPE_CHECKING:
    from actmeasure.model import Model
    from actmeasure.policy_graph import PolicyGraph
    from actmeasure.schedule import BlindPlan, Schedule

__all__ = [
    "EXIT_CODES",
    "Json",
    "Plot",
    "TimeLimit",
    "find_own_modules",
    "graph_json",
    "model_json",
    "picture_path",
    "print_json",
    "print_rows",
    "say",
    "schedule_json",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines; a number that is infinite is null there.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture into this file, such as plans.png or plans.svg.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds; then the best so far is shown. Ctrl-C does the same.")]

#: Exit codes of training and studies: all done, something failed, stopped with Ctrl-C.
EXIT_CODES = {"done": 0, "failed": 1, "interrupted": 130}


def find_own_modules(*names: str | None) -> None:
    """Put the present folder first on the path of Python, as for a script, if a name has the form `module:Name`."""
    from actmeasure.settings import is_import_name

    here = str(Path.cwd())
    if any(map(is_import_name, names)) and not {"", here} & set(sys.path):
        sys.path.insert(0, here)


def print_json(data: Any) -> None:
    """Print as JSON, which has no infinite or undefined numbers: they become null."""
    typer.echo(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data


def print_rows(rows: list[dict[str, Any]], as_json: bool, hidden: Collection[str] = ()) -> None:
    """Print rows with equal keys as a table without the `hidden` columns, or all of them as JSON."""
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    shown = [key for key in rows[0] if key not in hidden]
    for key in shown:
        table.add_column(key, justify="right" if isinstance(rows[0][key], int) else "left", no_wrap=key != "what")
    for row in rows:
        table.add_row(
            *(f"{value:,}" if isinstance(value, int) else escaped(str(value)) for value in map(row.get, shown))
        )
    Console().print(table)


def say(text: str) -> None:
    """Print a remark on stderr, so that stdout holds only what was asked for."""
    typer.echo(escaped(text, keep="\n"), err=True)


def picture_path(path: Path | None) -> Path | None:
    """Return the path of a picture after checking that it can be written; called before a long search."""
    if path is None:
        return None
    from actmeasure.drawing import check_path

    return check_path(path)


def model_json(model: Model) -> dict[str, Any]:
    """Return the sizes, discount and measurements of a model as JSON data; where looks are exact, their cost."""
    measuring: dict[str, Any] = {}
    if model.looks_are_exact:
        measuring["measuring_cost"] = _price_json(model.measuring_cost)
    else:
        measuring["measurements"] = [
            {"name": one.name, "cost": _price_json(one.cost), "outcomes": model.n_outcomes(number)}
            for number, one in enumerate(model.measurements, start=1)
        ]
        measuring["passive"] = None if model.passive is None else model.passive.name
    return {"states": model.n_states, "actions": model.n_actions, "discount": model.discount, **measuring}


def _price_json(price: Any) -> Any:
    return price if isinstance(price, float) else price.tolist()


def graph_json(model: Model, graph: PolicyGraph) -> dict[str, Any]:
    """Return a policy graph as JSON data: its start, and for each node its decision and where each outcome leads."""
    nodes = []
    for number, ((action, measurement), edges) in enumerate(zip(graph.decisions, graph.edges, strict=True)):
        named = {"otherwise" if seen is None else _outcome(model, measurement, seen): to for seen, to in edges.items()}
        nodes.append(
            {
                "node": number,
                "action": model.action_name(action),
                "measurement": None if measurement == 0 else model.measurements[measurement - 1].name,
                "edges": named,
            }
        )
    return {"start": graph.start if isinstance(graph.start, int) else dict(graph.start), "nodes": nodes}


def _outcome(model: Model, measurement: int, outcome: int | str) -> str:
    return outcome if isinstance(outcome, str) else model.outcome_name(measurement, outcome)


def schedule_json(model: Model, schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as JSON data: the plan for a hidden start, or None, and those for the known states."""
    return {
        "start": None if schedule.start is None else _plan_json(model, schedule.start),
        "plans": [
            {"state": state, "name": _name(model.state_names, state)} | _plan_json(model, plan)
            for state, plan in schedule.items()
        ],
    }


def _name(names: Sequence[str] | None, number: int) -> str:
    """Return a name as it is in the data (JSON escapes it), or the number."""
    return str(number) if names is None else names[number]


def _plan_json(model: Model, plan: BlindPlan) -> dict[str, Any]:
    names = [_name(model.action_names, action) for action in plan.actions]
    return {"actions": list(plan.actions), "action_names": names, "then": plan.then, "repeat": plan.repeat}
