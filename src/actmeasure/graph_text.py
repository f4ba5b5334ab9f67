"""Policy graphs in words and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import ScheduleError, import_extra, quoted, shown
from actmeasure.model import Model
from actmeasure.policy_graph import NO_EDGE, BoundGraph, PolicyGraph, bind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Branch", "ReaderStep", "decision_text", "describe", "first_states", "outcome_list", "steps", "to_pandas"]

#: Number of outcomes of one edge that are named.
OUTCOMES_NAMED = 8


@dataclass(frozen=True)
class Branch:
    """The outcomes after which a node leads to the same next node.

    Attributes
    ----------
    target : int
    outcomes : tuple of int, or None
        Numbers of outcomes; None for all that no other branch has, or for nothing seen.
    """

    target: int
    outcomes: tuple[int, ...] | None


@dataclass(frozen=True)
class ReaderStep:
    """Nodes that are one step for a reader: equal blind decisions one after the other; and where the last of them leads."""

    nodes: tuple[int, ...]
    leads: tuple[Branch, ...]


def steps(graph: PolicyGraph, model: Model) -> list[ReaderStep]:
    """Return the steps of a graph in the order in which they are reached from the start."""
    bound = bind(graph, model)
    leads_to = {node: _branches(graph, bound, node) for node in _breadth_first(graph, bound)}
    return [ReaderStep(tuple(nodes), tuple(leads_to[nodes[-1]])) for nodes in _runs(graph, leads_to)]


def _branches(graph: PolicyGraph, bound: BoundGraph, node: int) -> list[Branch]:
    """Return where a node leads, the edge None last; one branch without outcomes where all lead to the same node."""
    targets = bound.targets[node]
    used = [int(target) for target in dict.fromkeys(targets.tolist()) if target != NO_EDGE]
    if len(used) == 1 and (targets != NO_EDGE).all():
        return [Branch(used[0], None)]
    default = graph.edges[node].get(None)
    listed = [Branch(target, tuple(np.flatnonzero(targets == target).tolist())) for target in used if target != default]
    return [*listed, *([Branch(default, None)] if default in used else [])]


def _breadth_first(graph: PolicyGraph, bound: BoundGraph) -> list[int]:
    """Return the nodes that can be reached from the start in the order in which they are."""
    order = list(first_states(graph))
    seen = set(order)
    for node in order:
        for branch in _branches(graph, bound, node):
            if branch.target not in seen:
                seen.add(branch.target)
                order.append(branch.target)
    return order


def first_states(graph: PolicyGraph) -> dict[int, list[int | str]]:
    """Return the start nodes, each with the states in which an episode begins there; no states where there is one node."""
    if isinstance(graph.start, int):
        return {graph.start: []}
    states: dict[int, list[int | str]] = {}
    for state, node in graph.start.items():
        states.setdefault(node, []).append(state)
    return states


def outcome_list(model: Model, measurement: int, outcomes: tuple[int, ...]) -> str:
    """Return names of outcomes: `'a', 'b' or 'c'`; the number of the others where there are many."""
    names = [f"'{model.outcome_name(measurement, outcome)}'" for outcome in outcomes[:OUTCOMES_NAMED]]
    rest = len(outcomes) - len(names)
    if rest:
        return f"{', '.join(names)} or {rest} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def decision_text(model: Model, action: int, measurement: int) -> str:
    """Return a decision in words: `wait, with visual`."""
    name = model.action_name(action)
    return name if measurement == 0 else f"{name}, with {model.measurement_name(measurement)}"


def describe(graph: PolicyGraph, model: Model, period: str) -> str:
    """Return the graph as numbered steps; `PolicyGraph.describe` documents it."""
    if not isinstance(period, str) or not period.strip():
        raise ScheduleError(f"period is {quoted(period)}, expected a word such as 'year'")
    listed = steps(graph, model)
    number = {step.nodes[0]: position for position, step in enumerate(listed, start=1)}
    lines = _start_lines(graph, model, number)
    for position, step in enumerate(listed, start=1):
        action, measurement = graph.decisions[step.nodes[0]]
        lasting = f" for {len(step.nodes)} {shown(period)}s" if len(step.nodes) > 1 else ""
        what = decision_text(model, action, measurement) + lasting
        lines.append(f"{position}. {what}. {_next_text(model, measurement, step, number)}")
    return "\n".join(lines)


def _runs(graph: PolicyGraph, leads_to: Mapping[int, list[Branch]]) -> list[list[int]]:
    """Return the nodes in order of first mention, those that wait one after the other without a choice together."""
    entries: dict[int, int] = dict.fromkeys(first_states(graph), 2)  # a start node begins a step
    for leads in leads_to.values():
        for branch in leads:
            entries[branch.target] = entries.get(branch.target, 0) + 1
    follower = {}
    for node, leads in leads_to.items():
        blind = graph.decisions[node].measurement == 0 and len(leads) == 1 and leads[0].outcomes is None
        target = leads[0].target if blind else node
        if blind and target != node and entries[target] == 1 and graph.decisions[target] == graph.decisions[node]:
            follower[node] = target
    inside = set(follower.values())
    runs = []
    for node in leads_to:
        if node not in inside:
            run = [node]
            while run[-1] in follower:
                run.append(follower[run[-1]])
            runs.append(run)
    return runs


def _start_lines(graph: PolicyGraph, model: Model, number: Mapping[int, int]) -> list[str]:
    if isinstance(graph.start, int):
        return []
    numbers = {name: position for position, name in enumerate(model.state_names or ())}
    lines = ["At the start, by the first state:"]
    for node, states in first_states(graph).items():
        names = [f"'{model.state_name(numbers[s] if isinstance(s, str) else s)}'" for s in states[:OUTCOMES_NAMED]]
        rest = len(states) - len(names)
        lines.append(f"- {', '.join(names)}{f' and {rest} more' if rest else ''}: go to {number[node]}.")
    return lines


def _next_text(model: Model, measurement: int, step: ReaderStep, number: Mapping[int, int]) -> str:
    """Return what follows a step: `If 'hit': go to 3. Otherwise: go to 1.`"""

    def go(target: int) -> str:
        return "repeat this step" if (target,) == step.nodes else f"go to {number[target]}"

    leads = step.leads
    if not leads:
        return "Then it is over."
    if len(leads) == 1 and leads[0].outcomes is None:
        seen = "Then" if model.shown_by(measurement) is None else "Whatever is seen,"
        return f"{seen} {go(leads[0].target)}."
    parts = []
    for branch in leads:
        case = "Otherwise" if branch.outcomes is None else f"If {outcome_list(model, measurement, branch.outcomes)}"
        parts.append(f"{case}: {go(branch.target)}.")
    return " ".join(parts)


def to_pandas(graph: PolicyGraph, model: Model | None) -> pd.DataFrame:
    """Return a table with a row for every edge; `PolicyGraph.to_pandas` documents it."""
    pandas = import_extra("pandas", "PolicyGraph.to_pandas", "data")
    if model is not None:
        bind(graph, model)
    rows: list[dict[str, Any]] = []
    for node, (decision, edges) in enumerate(zip(graph.decisions, graph.edges, strict=True)):
        action: int | str = decision.action
        measurement: int | str | None = decision.measurement
        if model is not None:
            action = model.action_name(decision.action)
            made = decision.measurement
            measurement = model.measurement_name(made) if made else None
        for outcome, target in edges.items() or [(None, None)]:
            seen = shown(outcome) if isinstance(outcome, str) else outcome
            if model is not None and isinstance(outcome, int):
                seen = model.outcome_name(decision.measurement, outcome)
            rows.append(
                {"node": node, "action": action, "measurement": measurement, "outcome": seen, "next_node": target}
            )
    frame: pd.DataFrame = pandas.DataFrame(rows)
    for column in ("measurement", "outcome") if model is not None else ("outcome",):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
    frame["next_node"] = frame["next_node"].astype("Int64")
    return frame
