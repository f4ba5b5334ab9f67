"""Policy graphs as JSON, with one node to a line.

    {
      "format": "actmeasure policy graph",
      "version": 1,
      "start": 0,
      "nodes": [
        {"action": 0, "measurement": 1, "edges": [{"outcome": "hit", "to": 1}, {"outcome": null, "to": 0}]},
        {"action": 1, "measurement": 0, "edges": [{"outcome": null, "to": 0}]}
      ]
    }

An outcome is a name, a number, or null for nothing seen and all outcomes without an edge of their own. Where the start depends on
the first state, `start` is a list such as `[{"state": "good", "to": 0}, ...]`, with names or numbers of states.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from actmeasure.errors import ModelError, ScheduleError
from actmeasure.file_access import explain, path_of, replacing
from actmeasure.files.checks import Count, Strict, Whole, converted, parse_json, whole
from actmeasure.policy_graph import Outcome, PolicyGraph

__all__ = ["FORMAT", "VERSION", "load", "save"]

FORMAT = "actmeasure policy graph"
VERSION = 1


class _Document(Strict, kw_only=True):
    """The shape of the file."""

    format: str
    version: Count = VERSION
    start: Whole | list[Any] = 0
    nodes: list[Any]


class _Node(Strict):
    """The shape of an element of `nodes`."""

    action: Whole
    edges: list[Any]
    measurement: Whole = 0


class _Edge(Strict):
    """The shape of an element of `edges`."""

    outcome: Whole | str | None
    to: Whole


class _Start(Strict):
    """The shape of an element of `start`."""

    state: Whole | str
    to: Whole


def save(graph: PolicyGraph, path: str | os.PathLike[str]) -> None:
    """Write a policy graph; an existing file is replaced in one step."""
    path = path_of(path, ".json", ScheduleError)
    try:
        with replacing(path) as file:
            file.writelines(line.encode() for line in _lines(graph))
    except OSError as error:
        raise ScheduleError(str(explain(error, path, "write"))) from error


def _lines(graph: PolicyGraph) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    # Letters of all scripts stay readable; half a surrogate pair, which UTF-8 cannot hold, has to be escaped.
    names = [key for edges in graph.edges for key in edges if isinstance(key, str)]
    names += [] if isinstance(graph.start, int) else [key for key in graph.start if isinstance(key, str)]
    escaped = any("\ud800" <= letter <= "\udfff" for name in names for letter in name)
    encode = json.JSONEncoder(ensure_ascii=escaped).encode
    start: Any = graph.start
    if not isinstance(start, int):
        start = [{"state": state, "to": node} for state, node in start.items()]
    yield f'{{\n  "format": {encode(FORMAT)},\n  "version": {VERSION},\n  "start": {encode(start)},\n  "nodes": [\n'
    before = ""
    for (action, measurement), edges in zip(graph.decisions, graph.edges, strict=True):
        listed = [{"outcome": outcome, "to": target} for outcome, target in edges.items()]
        yield f"{before}    {encode({'action': action, 'measurement': measurement, 'edges': listed})}"
        before = ",\n"
    yield "\n  ]\n}\n"


def load(path: str | os.PathLike[str]) -> PolicyGraph:
    """Read a policy graph; a `ScheduleError` names the file and the place in it where something is wrong."""
    path = path_of(path, ".json", ScheduleError)
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise ScheduleError(str(explain(error, path, "read"))) from error
    try:
        return _read(contents)
    except (ModelError, ScheduleError) as error:
        raise ScheduleError(f"{path}: {error}") from error


def _read(contents: bytes) -> PolicyGraph:
    try:
        data = parse_json(contents.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ScheduleError(f"byte {error.start} is not UTF-8 text; the file is damaged or no JSON") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ScheduleError("it is not a policy graph of actmeasure; use a file that PolicyGraph.save has written")
    version = whole(data.get("version", VERSION), "the version", least=1)
    if version > VERSION:
        raise ScheduleError(
            f"it has format version {version}, and this actmeasure reads versions up to {VERSION}; update actmeasure"
        )
    document = converted(data, _Document)
    decisions, edges = [], []
    for number, line in enumerate(document.nodes):
        node = converted(line, _Node, f"nodes[{number}]")
        decisions.append((node.action, node.measurement))
        edges.append(_edges(node.edges, f"nodes[{number}]"))
    start: Any = document.start
    if not isinstance(start, int):
        nodes_by_state: dict[int | str, int] = {}
        for position, item in enumerate(start):
            one = converted(item, _Start, f"start[{position}]")
            if one.state in nodes_by_state:
                raise ScheduleError(f"start[{position}]: the state {one.state!r} is given twice; remove one of the two")
            nodes_by_state[one.state] = one.to
        start = nodes_by_state
    return PolicyGraph(decisions, edges, start)  # type: ignore[arg-type]


def _edges(listed: list[Any], where: str) -> dict[Outcome, int]:
    targets: dict[Outcome, int] = {}
    for position, item in enumerate(listed):
        edge = converted(item, _Edge, f"{where}, edges[{position}]")
        if edge.outcome in targets:
            raise ScheduleError(f"{where} has two edges for the outcome {edge.outcome!r}; remove one of them")
        targets[edge.outcome] = edge.to
    return targets
