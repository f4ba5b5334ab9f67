"""Measurements in the readable format: the keys `measurements` and `passive` of version 2.

    "measurements": [
      {"name": "visual", "kind": "outcomes", "cost": 10.0, "outcomes": ["miss", "hit"], "probabilities": {
        "new": {"miss": 1.0},
        "worn": {"miss": 0.4, "hit": 0.6}
      }},
      {"name": "opening", "kind": "exact", "cost": 500.0, "with_actions": ["stop"]}
    ],

A price is a number, or an object of prices by state and action, such as `{"new": {"run": 1.0, "stop": 2.0}, ...}`. Where the law
depends on the action, `probabilities_by_action` has one object of rows for every action. Outcomes of probability 0 and terminal
states are left out. Outcomes without names are a count, and each of them is its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.checks import Count, Names, Number, Strict, converted, number, quote
from actmeasure.files.laws import law_of_rows, stored_measurement
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import Law
from actmeasure.model.transitions import ACCEPTED_ERROR, FloatArray

__all__ = ["lines", "names_in", "read"]

EXACT, OUTCOMES = "exact", "outcomes"


def names_in(model: Model) -> Iterator[str]:
    """Yield the names of measurements and outcomes."""
    for measurement in (*model.measurements, *([] if model.passive is None else [model.passive])):
        yield measurement.name
        yield from measurement.outcomes or ()


def lines(model: Model, encoder: json.JSONEncoder) -> Iterator[str]:
    """Yield the lines of the keys `measurements` and, where there is one, `passive`."""
    if model.measurements:
        yield '  "measurements": [\n'
        for position, measurement in enumerate(model.measurements, start=1):
            end = "," * (position < len(model.measurements))
            yield f"    {_text(_object(model, measurement), encoder, '    ')}{end}\n"
        yield "  ],\n"
    else:
        yield '  "measurements": [],\n'
    if model.passive is not None:
        passive = {key: value for key, value in _object(model, model.passive).items() if key != "cost"}
        yield f'  "passive": {_text(passive, encoder, "  ")},\n'


def _text(value: Any, encoder: json.JSONEncoder, indent: str) -> str:
    """Return JSON on one line but for objects of objects, which have a line for each of theirs."""
    if not isinstance(value, dict) or not any(isinstance(inner, dict) for inner in value.values()):
        return encoder.encode(value)
    if not all(isinstance(inner, dict) for inner in value.values()):
        parts = (f"{encoder.encode(key)}: {_text(inner, encoder, indent)}" for key, inner in value.items())
        return "{" + ", ".join(parts) + "}"
    rows = (f"{indent}  {encoder.encode(key)}: {_text(row, encoder, indent + '  ')}" for key, row in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _object(model: Model, measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as it is written."""
    law = measurement.law
    described: dict[str, Any] = {"name": measurement.name, "kind": EXACT if law is None else OUTCOMES}
    described["cost"] = measurement.cost if isinstance(measurement.cost, float) else _prices(model, measurement.cost)
    if measurement.with_actions is not None:
        described["with_actions"] = [
            int(action) if model.action_names is None else model.action_names[int(action)]
            for action in measurement.with_actions
        ]
    if law is None:
        return described
    names = measurement.outcomes
    described["outcomes"] = law.n_outcomes if names is None else list(names)
    by_action = [_rows(model, law, names, action) for action in range(model.n_actions if law.by_action else 1)]
    if law.by_action:
        described["probabilities_by_action"] = {_action(model, action): rows for action, rows in enumerate(by_action)}
    else:
        described["probabilities"] = by_action[0]
    return described


def _prices(model: Model, cost: FloatArray) -> dict[str, dict[str, float]]:
    """Return the prices of all states that are not terminal, by state and action."""
    return {
        _state(model, state): {_action(model, action): price for action, price in enumerate(cost[state].tolist())}
        for state in np.flatnonzero(~model.terminal).tolist()
    }


def _rows(model: Model, law: Law, names: tuple[str, ...] | None, action: int) -> dict[str, dict[str, float]]:
    """Return the law given one action, by state that is not terminal and outcome."""
    rows = {}
    for state in np.flatnonzero(~model.terminal).tolist():
        row = action * model.n_states + state
        entries = slice(int(law.offsets[row]), int(law.offsets[row + 1]))
        outcomes = [str(outcome) if names is None else names[outcome] for outcome in law.outcomes[entries].tolist()]
        rows[_state(model, state)] = dict(zip(outcomes, law.probabilities[entries].tolist(), strict=True))
    return rows


def _state(model: Model, state: int) -> str:
    return str(state) if model.state_names is None else model.state_names[state]


def _action(model: Model, action: int) -> str:
    return str(action) if model.action_names is None else model.action_names[action]


class _Measurement(Strict):
    """The shape of an element of `measurements`, and of `passive`."""

    name: str
    kind: str
    cost: Number | dict[str, Any] = 0.0
    with_actions: list[int | str] | None = None
    outcomes: Count | list[str] | None = None
    probabilities: dict[str, Any] | None = None
    probabilities_by_action: dict[str, Any] | None = None


def read(value: Any, place: str, states: Names, actions: Names) -> Measurement:
    """Return the measurement that an object describes; a `ModelError` names the key that is wrong."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        place = f"{place} ({quote(value['name'])})"
    given = converted(value, _Measurement, place)
    with_actions = None
    if given.with_actions is not None:
        with_actions = tuple(actions.index(action, f"{place}, with_actions") for action in given.with_actions)
    cost = _read_prices(given.cost, place, states, actions) if isinstance(given.cost, dict) else given.cost
    outcomes, law = _read_law(given, place, states, actions)
    try:
        return stored_measurement(given.name, cost, outcomes, with_actions, law)
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from error


def _read_prices(cost: dict[str, Any], place: str, states: Names, actions: Names) -> FloatArray:
    """Return the prices by state and action, shape (S, A); 0 where none is given."""
    table = np.zeros((states.count, actions.count))
    for name, row in cost.items():
        where = f"{place}, cost of {quote(name)}"
        state = states.key(name, where)
        for action, price in _object_at(row, where).items():
            table[state, actions.key(action, where)] = number(price, f"{where}, {quote(action)}")
    return table


def _read_law(
    given: _Measurement, place: str, states: Names, actions: Names
) -> tuple[tuple[str, ...] | None, Law | None]:
    """Return the names of the outcomes, or None, and the law, None where the measurement is exact."""
    laws = {"probabilities": given.probabilities, "probabilities_by_action": given.probabilities_by_action}
    stated = [key for key, value in laws.items() if value is not None]
    if given.kind == EXACT:
        if stated or given.outcomes is not None:
            raise ModelError(
                f"{place}: it is exact, and {quote((stated or ['outcomes'])[0])} is given; remove it, or let 'kind' be "
                f"{OUTCOMES!r}"
            )
        return None, None
    if given.kind != OUTCOMES:
        raise ModelError(f"{place}: 'kind' is {quote(given.kind)}, expected {EXACT!r} or {OUTCOMES!r}")
    if len(stated) != 1 or given.outcomes is None:
        raise ModelError(
            f"{place}: expected 'outcomes' and one of 'probabilities' and 'probabilities_by_action'; complete it"
        )
    if isinstance(given.outcomes, int):
        names = Names("outcome", given.outcomes, None, {})
    else:
        names = Names.of(given.outcomes, "outcome", most=len(given.outcomes))
    where = f"{place}, {stated[0]}"
    if given.probabilities is not None:
        rows = _read_rows(given.probabilities, where, states, names)
    else:
        rows = [{} for _ in range(actions.count * states.count)]
        for name, of_action in (given.probabilities_by_action or {}).items():
            action = actions.key(name, where)
            inside = f"{where} of {quote(name)}"
            read_rows = _read_rows(_object_at(of_action, inside), inside, states, names)
            rows[action * states.count : (action + 1) * states.count] = read_rows
    law = law_of_rows(names.count, given.probabilities is None, rows, place)
    return (None if names.names is None else tuple(names.names)), law


def _read_rows(value: dict[str, Any], place: str, states: Names, outcomes: Names) -> list[dict[int, float]]:
    """Return the row of every state, empty where there is none."""
    rows: list[dict[int, float]] = [{} for _ in range(states.count)]
    for name, row in value.items():
        where = f"{place}, {quote(name)}"
        state = states.key(name, place)
        for outcome, chance in _object_at(row, where).items():
            probability = number(chance, f"{where}, {quote(outcome)}")
            if not 0 <= probability <= 1 + ACCEPTED_ERROR:
                raise ModelError(
                    f"{where}, {quote(outcome)}: {probability} is not a probability between 0 and 1; correct it"
                )
            rows[state][outcomes.key(outcome, where)] = probability
    return rows


def _object_at(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{place} is {quote(value)}, expected an object {{...}}")
    return value
