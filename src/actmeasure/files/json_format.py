"""The readable format: a model as JSON, with one transition to a line.

    {
      "format": "actmeasure model",
      "version": 1,
      "discount": 0.95,
      "measuring_cost": 0.1,
      "states": ["s0", "s+", "s-", "end"],
      "actions": ["a0", "a1"],
      "terminal": ["end"],
      "start": {"s0": 1.0},
      "reveal_start": true,
      "transitions": [
        {"state": "s0", "action": "a0", "to": {"s0": 1.0}, "reward": 0.0},
        {"state": "s0", "action": "a1", "to": {"s+": 0.8, "s-": 0.2}, "reward": 0.0},
        ...
      ]
    }

Where states or actions have no names, `states` and `actions` are counts, and a state is its number. A reward that depends
on the successor is an object such as `{"s+": 1.0, "s-": 0.0}`. A measuring cost per state and action stands with the
transition instead of at the top. Floats are written with the fewest digits that give the same float when read back.

Models with other measurements than one exact "look" are version 2: `measurements` and `passive` stand in place of
`measuring_cost`:

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
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.files.checks import (
    FORMAT,
    VERSION,
    Count,
    Names,
    Number,
    Strict,
    check_header,
    check_keys,
    converted,
    number,
    parse_json,
)
from actmeasure.files.parts import Parts, file_version, law_of_rows, stored_measurement
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import Law
from actmeasure.model.transitions import ACCEPTED_ERROR, FloatArray

__all__ = ["lines", "read"]

#: More pairs of state and action than this are refused: text is not the format for them, and terminal states take no lines.
MOST_ROWS = 10_000_000
#: Kinds of measurements.
EXACT, OUTCOMES = "exact", "outcomes"


def lines(model: Model) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    version = file_version(model)
    names = (*(model.state_names or ()), *(model.action_names or ()), *_names_in(model))
    # Letters of all scripts stay readable; half a surrogate pair, which UTF-8 cannot hold, has to be escaped.
    encoder = json.JSONEncoder(ensure_ascii=any(_has_surrogate(name) for name in names), allow_nan=False)
    yield "{\n"
    for key, value in _head(model, version).items():
        yield f"  {encoder.encode(key)}: {encoder.encode(value)},\n"
    if version > 1:
        yield from _measurement_lines(model, encoder)
    yield '  "transitions": [\n'
    before = ""
    for line in _transitions(model, version):
        yield f"{before}    {encoder.encode(line)}"
        before = ",\n"
    yield "\n  ]\n}\n"


def _has_surrogate(name: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _head(model: Model, version: int) -> dict[str, Any]:
    """Return all keys but measurements and `transitions`, in the order in which they are written."""
    cost = {}
    if version == 1 and isinstance(model.measuring_cost, float):
        cost = {"measuring_cost": model.measuring_cost}
    starts = zip(model.initial_states.tolist(), model.initial_probabilities.tolist(), strict=True)
    return {
        "format": FORMAT,
        "version": version,
        "discount": model.discount,
        **cost,
        "states": model.n_states if model.state_names is None else list(model.state_names),
        "actions": model.n_actions if model.action_names is None else list(model.action_names),
        "terminal": [_state(model, state) for state in np.flatnonzero(model.terminal).tolist()],
        "start": {str(_state(model, state)): probability for state, probability in starts},
        "reveal_start": model.reveal_start,
    }


def _state(model: Model, state: int) -> str | int:
    """Return a state's name, or its number where states have no names."""
    return state if model.state_names is None else model.state_names[state]


def _transitions(model: Model, version: int) -> Iterator[dict[str, Any]]:
    """Yield one object for every state that is not terminal and every action."""
    prices = None if version > 1 or isinstance(model.measuring_cost, float) else model.measuring_cost
    table = model.transitions
    expected, uniform = _reward_summary(model)
    for state in np.flatnonzero(~model.terminal).tolist():
        for action in range(model.n_actions):
            row = state * model.n_actions + action
            entries = slice(int(table.offsets[row]), int(table.offsets[row + 1]))
            successors = [str(_state(model, successor)) for successor in table.successors[entries].tolist()]
            line: dict[str, Any] = {
                "state": _state(model, state),
                "action": action if model.action_names is None else model.action_names[action],
                "to": dict(zip(successors, table.probabilities[entries].tolist(), strict=True)),
            }
            if model.transition_rewards is None:
                line["reward"] = float(model.rewards[state, action])
            elif uniform[row]:
                line["reward"] = float(model.transition_rewards[entries.start])
            else:
                rewards = model.transition_rewards[entries].tolist()
                line["reward"] = dict(zip(successors, rewards, strict=True))
            # The two differ by rounding where they were added up in another order.
            if model.rewards[state, action] != expected[state, action]:
                line["expected_reward"] = float(model.rewards[state, action])
            if prices is not None:
                line["measuring_cost"] = float(prices[state, action])
            yield line


def _reward_summary(model: Model) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the expected rewards that `read` computes, shape (S, A), and the rows whose successors all have one reward."""
    table = model.transitions
    rewards = model.transition_rewards
    if rewards is None:
        return model.rewards, np.ones(len(table.offsets) - 1, dtype=bool)
    expected: FloatArray = table.stacked(table.probabilities * rewards).sum(axis=1).reshape(model.rewards.shape)
    bits = rewards.view(np.int64)
    changes = np.zeros(len(bits) + 1, dtype=np.int64)
    changes[1:-1] = np.cumsum(bits[1:] != bits[:-1])
    changes[-1] = changes[-2]
    # A row is uniform if no entry differs from the one before it, from the row's second on. Empty rows are not written.
    last = np.maximum(table.offsets[1:] - 1, table.offsets[:-1])
    uniform = changes[last] == changes[table.offsets[:-1]]
    if uniform.all():
        # Written per successor all the same: otherwise the file would not tell that the model keeps rewards per successor.
        uniform[~np.repeat(model.terminal, model.n_actions)] = False
    return expected, uniform


def _names_in(model: Model) -> Iterator[str]:
    """Yield the names of measurements and outcomes."""
    for measurement in (*model.measurements, *([] if model.passive is None else [model.passive])):
        yield measurement.name
        yield from measurement.outcomes or ()


def _measurement_lines(model: Model, encoder: json.JSONEncoder) -> Iterator[str]:
    """Yield the lines of the keys `measurements` and, where there is one, `passive`."""
    if model.measurements:
        yield '  "measurements": [\n'
        for position, measurement in enumerate(model.measurements, start=1):
            end = "," * (position < len(model.measurements))
            yield f"    {_indented(_described(model, measurement), encoder, '    ')}{end}\n"
        yield "  ],\n"
    else:
        yield '  "measurements": [],\n'
    if model.passive is not None:
        passive = {key: value for key, value in _described(model, model.passive).items() if key != "cost"}
        yield f'  "passive": {_indented(passive, encoder, "  ")},\n'


def _indented(value: Any, encoder: json.JSONEncoder, indent: str) -> str:
    """Return JSON on one line but for objects of objects, which have a line for each of theirs."""
    if not isinstance(value, dict) or not any(isinstance(inner, dict) for inner in value.values()):
        return encoder.encode(value)
    if not all(isinstance(inner, dict) for inner in value.values()):
        parts = (f"{encoder.encode(key)}: {_indented(inner, encoder, indent)}" for key, inner in value.items())
        return "{" + ", ".join(parts) + "}"
    rows = (f"{indent}  {encoder.encode(key)}: {_indented(row, encoder, indent + '  ')}" for key, row in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _described(model: Model, measurement: Measurement) -> dict[str, Any]:
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
    by_action = [_law_rows(model, law, names, action) for action in range(model.n_actions if law.by_action else 1)]
    if law.by_action:
        described["probabilities_by_action"] = {_action(model, action): rows for action, rows in enumerate(by_action)}
    else:
        described["probabilities"] = by_action[0]
    return described


def _prices(model: Model, cost: FloatArray) -> dict[str, dict[str, float]]:
    """Return the prices of all states that are not terminal, by state and action."""
    return {
        str(_state(model, state)): {_action(model, action): price for action, price in enumerate(cost[state].tolist())}
        for state in np.flatnonzero(~model.terminal).tolist()
    }


def _law_rows(model: Model, law: Law, names: tuple[str, ...] | None, action: int) -> dict[str, dict[str, float]]:
    """Return the law given one action, by state that is not terminal and outcome."""
    rows = {}
    for state in np.flatnonzero(~model.terminal).tolist():
        row = action * model.n_states + state
        entries = slice(int(law.offsets[row]), int(law.offsets[row + 1]))
        outcomes = [str(outcome) if names is None else names[outcome] for outcome in law.outcomes[entries].tolist()]
        rows[str(_state(model, state))] = dict(zip(outcomes, law.probabilities[entries].tolist(), strict=True))
    return rows


def _action(model: Model, action: int) -> str:
    return str(action) if model.action_names is None else model.action_names[action]


class _Document(Strict, kw_only=True):
    """The shape of the file; keys with a default may be left out."""

    format: str
    version: Count = VERSION
    discount: Number
    measuring_cost: Number | None = None  # None: with every transition, unless there are `measurements` or `passive`
    measurements: list[Any] | None = None
    passive: Any = None
    states: Count | list[str]
    actions: Count | list[str]
    terminal: list[int | str] = msgspec.field(default_factory=list)
    start: dict[str, Number] | None = None  # None: the first state
    reveal_start: bool | None = None  # None: the default of models
    # Each of them a `_Transition`, converted when it is its turn, so that no file is in memory twice.
    transitions: list[Any]


class _Transition(Strict):
    """The shape of an element of `transitions`: one state and action."""

    state: int | str
    action: int | str
    to: dict[str, Number]
    reward: Number | dict[str, Number]
    measuring_cost: Number | None = None
    expected_reward: Number | None = None


def read(contents: bytes) -> Model:
    """Return the model in the bytes of a JSON file; a `ModelError` names the line or key that is wrong."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"byte {error.start} is not UTF-8 text; the file is damaged or no JSON") from error
    data = parse_json(text)
    check_header(data)
    document = converted(data, _Document)
    # Every state is terminal or has transitions: a damaged count must not reserve memory for a billion of them.
    n_lines = len(document.transitions)
    states = Names.of(document.states, "state", most=n_lines + len(document.terminal))
    actions = Names.of(document.actions, "action", most=n_lines)
    if states.count * actions.count > MOST_ROWS:
        raise ModelError(
            f"{states.count:,} states and {actions.count:,} actions are too many for a text file; use the .npz format"
        )
    rows = _TransitionRows(
        states, actions, _mask(document.terminal, states), document.measuring_cost, _prices_expected(document)
    )
    for index, line in enumerate(document.transitions):
        rows.add(index, line)
    parts = rows.parts(_start(document.start, states), document.discount, document.reveal_start)
    if document.measurements is not None:
        parts.measurements = [
            _read_measurement(value, f"measurements[{index}]", states, actions)
            for index, value in enumerate(document.measurements)
        ]
    if document.passive is not None:
        parts.passive = _read_measurement(document.passive, "passive", states, actions)
    return parts.model()


def _prices_expected(document: _Document) -> bool:
    """Return whether every transition has to have a `measuring_cost`: it has one price, and it is not given for the model."""
    if document.measurements is not None and document.measuring_cost is not None:
        raise ModelError(
            "'measuring_cost' and 'measurements' are both given; remove 'measuring_cost', each measurement has its own 'cost'"
        )
    return document.measuring_cost is None and document.measurements is None and document.passive is None


def _mask(terminal: list[int | str], states: Names) -> list[bool]:
    """Return for every state whether it is terminal."""
    mask = [False] * states.count
    for index, value in enumerate(terminal):
        mask[states.index(value, f"terminal[{index}]")] = True
    return mask


def _start(start: dict[str, float] | None, states: Names) -> FloatArray:
    """Return the initial distribution, shape (S,): the first state where the file does not tell."""
    initial = np.zeros(states.count)
    for name, probability in {}.items() if start is None else start.items():
        initial[states.key(name, "'start'")] = probability
    if start is None:
        initial[0] = 1.0
    return initial


@dataclass
class _TransitionRows:
    """The transitions read so far, by row number state * n_actions + action."""

    states: Names
    actions: Names
    terminal: list[bool]
    cost: float | None
    prices_expected: bool
    read: dict[int, tuple[list[int], list[float], list[float]]] = field(default_factory=dict)
    expected: dict[int, float] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)
    by_successor: bool = False

    def add(self, index: int, line: Any) -> None:
        """Check an element of `transitions` and keep it."""
        location = f"transitions[{index}]"
        if isinstance(line, dict) and "state" in line and "action" in line:
            location = f"{location} (state {quoted(line['state'])}, action {quoted(line['action'])})"
        transition = converted(line, _Transition, location)
        state = self.states.index(transition.state, location)
        row = state * self.actions.count + self.actions.index(transition.action, location)
        if row in self.read:
            raise ModelError(f"{location} is given twice; remove one of the two")
        if self.terminal[state]:
            raise ModelError(
                f"{location}: the state is terminal, where no action is taken; remove the line or the terminal mark"
            )
        self.read[row] = self._entries(transition.to, transition.reward, location)
        if transition.expected_reward is not None:
            self.expected[row] = transition.expected_reward
        if not self.prices_expected and transition.measuring_cost is not None:
            where = "the whole model" if self.cost is not None else "measurements"
            raise ModelError(f"{location}: 'measuring_cost' is given here and for {where}; remove one of the two")
        if self.prices_expected:
            if transition.measuring_cost is None:
                raise ModelError(
                    f"{location}: there is no 'measuring_cost', neither here nor for the whole model; add one"
                )
            self.costs[row] = transition.measuring_cost

    def _entries(
        self, to: dict[str, float], reward: float | dict[str, float], location: str
    ) -> tuple[list[int], list[float], list[float]]:
        """Return successors in ascending order, their probabilities and rewards, without successors of probability 0."""
        if not to:
            raise ModelError(f"{location}: 'to' is {{}}, expected an object such as {{state: probability}}")
        if isinstance(reward, dict):
            self.by_successor = True
            check_keys(reward, f"{location}: 'reward'", to)
        entries = []
        for name, probability in to.items():
            if not 0 <= probability <= 1 + ACCEPTED_ERROR:
                raise ModelError(
                    f"{location}, to {quoted(name)}: {probability} is not a probability between 0 and 1; correct it"
                )
            successor = self.states.key(name, f"{location}, to")
            if probability > 0:
                entries.append((successor, probability, reward[name] if isinstance(reward, dict) else reward))
        entries.sort()
        return [e[0] for e in entries], [e[1] for e in entries], [e[2] for e in entries]

    def parts(self, initial: FloatArray, discount: float, reveal_start: bool | None) -> Parts:
        """Return the contents of the whole file."""
        n_states, n_actions = self.states.count, self.actions.count
        self._check_complete()
        ended = np.array(self.terminal)
        rewards = np.zeros((n_states, n_actions))
        costs = np.zeros((n_states, n_actions))
        offsets = np.zeros(n_states * n_actions + 1, dtype=np.int64)
        successors: list[int] = []
        probabilities: list[float] = []
        entry_rewards: list[float] = []
        for row in range(n_states * n_actions):
            state, action = divmod(row, n_actions)
            if row in self.read:
                to, chances, paid = self.read[row]
                successors += to
                probabilities += chances
                entry_rewards += paid
                rewards[state, action] = paid[0] if paid else 0.0
                costs[state, action] = self.costs.get(row, 0.0)
            offsets[row + 1] = len(successors)
        chances_array, paid_array = np.array(probabilities, dtype=np.float64), np.array(entry_rewards, dtype=np.float64)
        return Parts(
            n_states=n_states,
            n_actions=n_actions,
            offsets=offsets,
            successors=np.array(successors, dtype=np.int64),
            probabilities=chances_array,
            rewards=None if self.by_successor else rewards,
            transition_rewards=paid_array if self.by_successor else None,
            terminal=ended,
            initial=initial,
            measuring_cost=costs if self.prices_expected else self.cost,
            discount=discount,
            reveal_start=reveal_start,
            state_names=self.states.names,
            action_names=self.actions.names,
            stated_rewards=self.expected,
        )

    def _check_complete(self) -> None:
        """Raise a `ModelError` if a state that is not terminal lacks a line for an action."""
        if self.expected and not self.by_successor:
            raise ModelError("'expected_reward' goes with rewards per successor only; remove it")
        n_actions = self.actions.count
        if len(self.read) == self.terminal.count(False) * n_actions:
            return
        running = (state for state, ended in enumerate(self.terminal) if not ended)
        missing = next((s, a) for s in running for a in range(n_actions) if s * n_actions + a not in self.read)
        state, action = (
            str(index) if given.names is None else quoted(given.names[index])
            for index, given in zip(missing, (self.states, self.actions), strict=True)
        )
        raise ModelError(
            f"there is no transition for state {state}, action {action}; add it, or mark the state terminal"
        )


class _Measurement(Strict):
    """The shape of an element of `measurements`, and of `passive`."""

    name: str
    kind: str
    cost: Number | dict[str, Any] = 0.0
    with_actions: list[int | str] | None = None
    outcomes: Count | list[str] | None = None
    probabilities: dict[str, Any] | None = None
    probabilities_by_action: dict[str, Any] | None = None


def _read_measurement(value: Any, location: str, states: Names, actions: Names) -> Measurement:
    """Return the measurement that an object describes; a `ModelError` names the key that is wrong."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        location = f"{location} ({quoted(value['name'])})"
    given = converted(value, _Measurement, location)
    with_actions = None
    if given.with_actions is not None:
        with_actions = tuple(actions.index(action, f"{location}, with_actions") for action in given.with_actions)
    cost = _read_prices(given.cost, location, states, actions) if isinstance(given.cost, dict) else given.cost
    outcomes, law = _read_law(given, location, states, actions)
    try:
        return stored_measurement(given.name, cost, outcomes, with_actions, law)
    except ModelError as error:
        raise ModelError(f"{location}: {error}") from error


def _read_prices(cost: dict[str, Any], location: str, states: Names, actions: Names) -> FloatArray:
    """Return the prices by state and action, shape (S, A); 0 where none is given."""
    table = np.zeros((states.count, actions.count))
    for name, row in cost.items():
        where = f"{location}, cost of {quoted(name)}"
        state = states.key(name, where)
        for action, price in _object_at(row, where).items():
            table[state, actions.key(action, where)] = number(price, f"{where}, {quoted(action)}")
    return table


def _read_law(
    given: _Measurement, location: str, states: Names, actions: Names
) -> tuple[tuple[str, ...] | None, Law | None]:
    """Return the names of the outcomes, or None, and the law, None where the measurement is exact."""
    laws = {"probabilities": given.probabilities, "probabilities_by_action": given.probabilities_by_action}
    stated = [key for key, value in laws.items() if value is not None]
    if given.kind == EXACT:
        if stated or given.outcomes is not None:
            raise ModelError(
                f"{location}: it is exact, and {quoted((stated or ['outcomes'])[0])} is given; remove it, or let 'kind' be "
                f"{OUTCOMES!r}"
            )
        return None, None
    if given.kind != OUTCOMES:
        raise ModelError(f"{location}: 'kind' is {quoted(given.kind)}, expected {EXACT!r} or {OUTCOMES!r}")
    if len(stated) != 1 or given.outcomes is None:
        raise ModelError(
            f"{location}: expected 'outcomes' and one of 'probabilities' and 'probabilities_by_action'; complete it"
        )
    if isinstance(given.outcomes, int):
        names = Names("outcome", given.outcomes, None, {})
    else:
        names = Names.of(given.outcomes, "outcome", most=len(given.outcomes))
    where = f"{location}, {stated[0]}"
    if given.probabilities is not None:
        rows = _read_rows(given.probabilities, where, states, names)
    else:
        rows = [{} for _ in range(actions.count * states.count)]
        for name, of_action in (given.probabilities_by_action or {}).items():
            action = actions.key(name, where)
            inside = f"{where} of {quoted(name)}"
            read_rows = _read_rows(_object_at(of_action, inside), inside, states, names)
            rows[action * states.count : (action + 1) * states.count] = read_rows
    law = law_of_rows(names.count, given.probabilities is None, rows, location)
    return (None if names.names is None else tuple(names.names)), law


def _read_rows(value: dict[str, Any], location: str, states: Names, outcomes: Names) -> list[dict[int, float]]:
    """Return the row of every state, empty where there is none."""
    rows: list[dict[int, float]] = [{} for _ in range(states.count)]
    for name, row in value.items():
        where = f"{location}, {quoted(name)}"
        state = states.key(name, location)
        for outcome, chance in _object_at(row, where).items():
            probability = number(chance, f"{where}, {quoted(outcome)}")
            if not 0 <= probability <= 1 + ACCEPTED_ERROR:
                raise ModelError(
                    f"{where}, {quoted(outcome)}: {probability} is not a probability between 0 and 1; correct it"
                )
            rows[state][outcomes.key(outcome, where)] = probability
    return rows


def _object_at(value: Any, location: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{location} is {quoted(value)}, expected an object {{...}}")
    return value
