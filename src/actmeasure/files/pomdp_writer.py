"""Write a model as a POMDP in Cassandra's text format, as SARSOP, pomdp-solve and POMDPs.jl read it.

Every allowed pair of an action and a measurement, or none, becomes an action. Where the only measurement is an exact look, these
are `<action>-blind` and `<action>-measure`, and there is one observation for every state and one called `nothing`. In other
models they are `<action>-<measurement>` and `<action>-blind`, or, without measurements, the actions themselves; observations are
the outcomes, one for each name, because the action tells which measurement was made; terminal states show `end`, and pairs that
show nothing show `nothing`. Terminal states are absorbing, have no reward, and are observed and measured for free.

A start that is random and shown needs a first state more, `begin`, from which every action leads to the start. Where looks are
exact it leads to the states themselves; elsewhere to copies of them, which are shown by observations of their own.

What the format has no place for is in the first line, the comment `# actmeasure {...}`: names with any characters; prices,
because the reward of a measuring action is a difference, which loses their last bits; and which action is which pair. Version 1
is that of models with exact looks, version 2 that of all others.

General lines come first and exceptions after them; no transition or observation line has more than one `*`, because the
reader of POMDPs.jl accepts no more.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.checks import VERSION, Count, Number, Strict, Whole, converted, parse_json, whole
from actmeasure.files.parts import file_version
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray

__all__ = [
    "BEGIN",
    "BLIND",
    "COMMENT",
    "MEASURE",
    "RESERVED",
    "Described",
    "FileLayout",
    "LookComment",
    "PairsComment",
    "check_sizes",
    "comment_of",
    "exact_decimal",
    "identifiers",
    "lines",
    "state_and_pair_numbers",
    "state_identifiers",
]

#: Keywords of the format, which cannot be names.
RESERVED = frozenset({
    "discount", "values", "states", "actions", "observations", "T", "O", "R", "uniform", "identity", "reward", "cost",
    "start", "include", "exclude", "reset",
})  # fmt: skip
#: Observation of actions that do not measure, and of terminal states.
NOTHING, END = "nothing", "end"
#: Additional first state, from which every action leads to a random start that is then shown.
BEGIN = "begin"
#: Endings of the two actions that the file has for every action of a model with exact looks.
BLIND, MEASURE = "-blind", "-measure"
#: Beginning of the comment line `# actmeasure {...}`, after the '#'.
COMMENT = " actmeasure {"


def identifiers(names: Sequence[str] | None, count: int, letter: str, taken: Collection[str] = ()) -> list[str]:
    """Return distinct identifiers of the format for names: a letter, then letters, digits, '_' and '-'.

    Parameters
    ----------
    names : sequence of str, or None to number them
    count : int
    letter : str
        Put in front of a name that does not begin with a letter.
    taken : collection of str
        Identifiers that are not available.
    """
    used = set(taken) | RESERVED
    identifiers_so_far = []
    copies: dict[str, int] = {}
    for name in names if names is not None else [str(index) for index in range(count)]:
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        if not re.match("[A-Za-z]", word):
            word = letter + word
        candidate = word
        while candidate in used:
            copies[word] = copies.get(word, 1) + 1
            candidate = f"{word}_{copies[word]}"
        used.add(candidate)
        identifiers_so_far.append(candidate)
    return identifiers_so_far


def state_identifiers(names: list[str] | None, count: int, begin: bool) -> list[str]:
    """Return identifiers for the states of a model with exact looks, other than `nothing` and, where it is needed, `begin`."""
    return identifiers(names, count, "s", taken=(NOTHING, BEGIN) if begin else (NOTHING,))


def exact_decimal(value: float) -> str:
    """Return a float as text that gives the same float when read, with digits on both sides of the decimal point."""
    if not np.isfinite(value):
        raise ModelError(
            f"a number of the file would be {value}, which the format cannot represent; scale the rewards down"
        )
    text = repr(float(value))
    mantissa, exponent, digits = text.partition("e")
    return text if "." in mantissa or not exponent else f"{mantissa}.0e{digits}"


#: A price as JSON: a number, or a row of numbers for every state.
Price = Number | list[list[Number]]


def _as_price(cost: float | FloatArray) -> Any:
    return cost if isinstance(cost, float) else cost.tolist()


def _read_price(price: float | list[list[float]]) -> float | FloatArray:
    """Return a price: a number, or an array of shape (S, A)."""
    if isinstance(price, float):
        return price
    if not price or len({len(row) for row in price}) != 1 or not price[0]:
        raise ModelError("'measuring_cost' is not a number or a table with a row per state; remove the line")
    return np.array(price)


def _as_list(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


class LookComment(Strict):
    """The comment line of version 1, of models with exact looks, as JSON.

    Attributes
    ----------
    version : int
    states, actions : list of str, or None
        Names.
    measuring_cost : float, or list of lists
    reveal_start : bool
    begin : bool
        Whether the first state of the file is the additional state `begin`.
    successor_rewards : bool
        Whether the model keeps a reward for every successor.
    statements : int
        Number of T, O and R lines that follow: a file cut off between two of them would be another model.
    """

    version: Count
    states: list[str] | None
    actions: list[str] | None
    measuring_cost: Price
    reveal_start: bool
    begin: bool
    successor_rewards: bool
    statements: Whole

    @classmethod
    def of(cls, model: Model) -> LookComment:
        """Return the comment for a model's file, with the number of statements still to be filled in."""
        return cls(
            1, _as_list(model.state_names), _as_list(model.action_names), _as_price(model.measuring_cost), model.reveal_start,
            model.reveal_start and len(model.initial_states) > 1, model.transition_rewards is not None, 0,
        )  # fmt: skip

    @property
    def cost(self) -> float | FloatArray:
        """The price of a look: a number, or an array of shape (S, A)."""
        return _read_price(self.measuring_cost)


class Described(Strict, omit_defaults=True):
    """A measurement in the comment line of version 2, without its law, which is in the lines of the file.

    Attributes
    ----------
    name : str
    cost : float, or list of lists
    outcomes : int, list of str, or None
        Number of outcomes or their names; None where the measurement is exact.
    by_action : bool
    with_actions : list of int, or None
    unused : list of (action, state, outcome, probability)
        The law with actions with which the measurement cannot be made, for which the file has no lines.
    """

    name: str
    cost: Price
    outcomes: Count | list[str] | None
    by_action: bool
    with_actions: list[Whole] | None
    unused: list[tuple[Whole, Whole, Whole, Number]] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, measurement: Measurement, n_states: int) -> Described:
        """Return the description of a measurement of a model."""
        law = measurement.law
        allowed = None if measurement.with_actions is None else [int(one) for one in measurement.with_actions]
        unused = []
        if law is not None and law.by_action and allowed is not None:
            rows = np.repeat(np.arange(law.n_rows), np.diff(law.offsets))
            for row, outcome, chance in zip(
                rows.tolist(), law.outcomes.tolist(), law.probabilities.tolist(), strict=True
            ):
                action, state = divmod(row, n_states)
                if action not in allowed:
                    unused.append((action, state, outcome, chance))
        names = _as_list(measurement.outcomes)
        outcomes = None if law is None else law.n_outcomes if names is None else names
        return cls(
            measurement.name, _as_price(measurement.cost), outcomes, law is not None and law.by_action, allowed, unused
        )

    @property
    def price(self) -> float | FloatArray:
        """The price: a number, or an array of shape (S, A)."""
        return _read_price(self.cost)

    @property
    def n_outcomes(self) -> int | None:
        """Number of outcomes, None where the measurement is exact."""
        return len(self.outcomes) if isinstance(self.outcomes, list) else self.outcomes

    @property
    def outcome_names(self) -> tuple[str, ...] | None:
        """Names of the outcomes, None where they have none."""
        return tuple(self.outcomes) if isinstance(self.outcomes, list) else None

    def labels(self, state_names: Sequence[str] | None, n_states: int) -> list[str]:
        """Return the names of the outcomes, or their numbers; those of the states where the measurement is exact."""
        names = state_names if self.n_outcomes is None else self.outcome_names
        count = n_states if self.n_outcomes is None else self.n_outcomes
        return [str(number) for number in range(count)] if names is None else list(names)


class PairsComment(Strict):
    """The comment line of version 2, of models with any measurements, as JSON.

    Attributes
    ----------
    version : int
    states, actions : int, or list of str
        Their number, or their names.
    measurements : list of Described
    passive : Described, or None
    reveal_start : bool
    starts : list of int, or None
        Initial states that have a copy, where a random start is shown.
    ends : bool
        Whether there are terminal states.
    successor_rewards, statements
        As in `LookComment`.
    """

    version: Count
    states: Count | list[str]
    actions: Count | list[str]
    measurements: list[Any]
    passive: Any
    reveal_start: bool
    starts: list[Whole] | None
    ends: bool
    successor_rewards: bool
    statements: Whole

    @classmethod
    def of(cls, model: Model) -> PairsComment:
        """Return the comment for a model's file, with the number of statements still to be filled in."""
        shown = model.reveal_start and len(model.initial_states) > 1
        return cls(
            2,
            model.n_states if model.state_names is None else list(model.state_names),
            model.n_actions if model.action_names is None else list(model.action_names),
            [Described.of(measurement, model.n_states) for measurement in model.measurements],
            None if model.passive is None else Described.of(model.passive, model.n_states),
            model.reveal_start,
            model.initial_states.tolist() if shown else None,
            bool(model.terminal.any()),
            model.transition_rewards is not None,
            0,
        )

    @property
    def n_states(self) -> int:
        """Number of states of the model."""
        return self.states if isinstance(self.states, int) else len(self.states)

    @property
    def n_actions(self) -> int:
        """Number of actions of the model."""
        return self.actions if isinstance(self.actions, int) else len(self.actions)

    @property
    def state_names(self) -> list[str] | None:
        """Names of the states, None where they have none."""
        return None if isinstance(self.states, int) else self.states

    @property
    def action_names(self) -> list[str] | None:
        """Names of the actions, None where they have none."""
        return None if isinstance(self.actions, int) else self.actions


def comment_of(text: str) -> LookComment | PairsComment:
    """Return the contents of the comment line whose JSON this is; a `ModelError` names the key that is wrong."""
    about = parse_json(text)
    version = whole(about.get("version") if isinstance(about, dict) else None, "'version'", least=1)
    if version > VERSION:
        raise ModelError(f"it has version {version}, this actmeasure reads versions up to {VERSION}; update actmeasure")
    if version == 1:
        look = converted(about, LookComment)
        _read_price(look.measuring_cost)
        return look
    pairs = converted(about, PairsComment)
    pairs.measurements = [_described(value, f"measurements[{index}]") for index, value in enumerate(pairs.measurements)]
    pairs.passive = None if pairs.passive is None else _described(pairs.passive, "passive")
    return pairs


def _described(value: Any, where: str) -> Described:
    described = converted(value, Described, where)
    _read_price(described.cost)
    return described


@dataclass(frozen=True)
class FileLayout:
    """The states, actions and observations of the file of a model, and what each of them is in the model.

    Attributes
    ----------
    states : list of str
        With a shown start first `begin`, then the copies of initial states, then the states of the model.
    n_added : int
        Number of states that the model does not have.
    pairs : list of (action, measurement)
        Of each action of the file.
    actions, observations : list of str
    numbers : list of lists of int
        For each measurement, 0 being the passive one, the observation of each outcome; empty where nothing is seen.
    nothing, end, first_copy : int
        Observations that stand for nothing seen, for the end, and for the first copy of an initial state; -1 where there is none.
    """

    states: list[str]
    n_added: int
    pairs: list[tuple[int, int]]
    actions: list[str]
    observations: list[str]
    numbers: list[list[int]]
    nothing: int
    end: int
    first_copy: int

    @classmethod
    def of(cls, comment: PairsComment) -> FileLayout:
        """Return the layout of the file with this comment line."""
        copies = comment.starts or []
        added = [BEGIN] if comment.starts is not None else []
        states = identifiers(comment.state_names, comment.n_states, "s", taken=added)
        added += identifiers([f"{states[state]}-start" for state in copies], len(copies), "s", taken=[*states, *added])
        pairs, actions = _pairs(comment)
        shown = [comment.passive, *comment.measurements]
        labels = [[] if one is None else one.labels(comment.state_names, comment.n_states) for one in shown]
        number = {label: index for index, label in enumerate(dict.fromkeys(chain.from_iterable(labels)))}
        special = [END] * comment.ends + [NOTHING] * (comment.passive is None or bool(added))
        observations = identifiers(list(number), len(number), "o", taken=special)
        first_copy = len(observations) if copies else -1
        observations += identifiers(added[1:], len(copies), "o", taken=[*special, *observations])
        observations += special
        return cls(
            [*added, *states],
            len(added),
            pairs,
            actions,
            observations,
            [[number[label] for label in of_one] for of_one in labels],
            observations.index(NOTHING) if NOTHING in special else -1,
            observations.index(END) if END in special else -1,
            first_copy,
        )


def _pairs(comment: PairsComment) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the allowed pairs of action and measurement, and their names."""
    actions = identifiers(comment.action_names, comment.n_actions, "a")
    if not comment.measurements:
        return [(action, 0) for action in range(comment.n_actions)], actions
    looks = identifiers([one.name for one in comment.measurements], len(comment.measurements), "m")
    endings = [BLIND, *(f"-{look}" for look in looks)]
    allowed = [None, *(None if one.with_actions is None else set(one.with_actions) for one in comment.measurements)]
    pairs = [
        (action, number)
        for action in range(comment.n_actions)
        for number, known in enumerate(allowed)
        if known is None or action in known
    ]
    return pairs, identifiers([actions[action] + endings[number] for action, number in pairs], len(pairs), "a")


def check_sizes(comment: PairsComment, n_states: int, n_actions: int, n_observations: int) -> None:
    """Raise a `ModelError` where the numbers in a comment line do not fit those of its file: only then is its layout computed."""
    starts = comment.starts
    added = 0 if starts is None else 1 + len(starts)
    sound = starts is None or (len(starts) > 1 and _is_ascending(starts) and starts[-1] < comment.n_states)
    if comment.n_states + added != n_states or not sound:
        raise ModelError("it has other states")
    described = [*comment.measurements, *([] if comment.passive is None else [comment.passive])]
    for one in comment.measurements:
        actions = one.with_actions
        if actions is not None and (not actions or not _is_ascending(actions) or actions[-1] >= comment.n_actions):
            raise ModelError(f"with_actions of the measurement {one.name!r} are not ascending numbers of actions")
    if comment.passive is not None and comment.passive.with_actions is not None:
        raise ModelError(f"the passive measurement {comment.passive.name!r} has with_actions, expected null")
    sizes = [comment.n_actions if one.with_actions is None else len(one.with_actions) for one in comment.measurements]
    if comment.n_actions + sum(sizes) != n_actions:
        raise ModelError("it has other actions")
    for one in described:
        if (comment.n_states if one.n_outcomes is None else one.n_outcomes) > n_observations:
            raise ModelError(f"its measurement {one.name!r} has more outcomes than the file has observations")


def _is_ascending(numbers: Sequence[int]) -> bool:
    return all(one < two for one, two in pairwise(numbers))


def lines(model: Model) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    comment, writer = _comment_and_writer(model)
    if isinstance(comment, LookComment):
        about = "<action>-blind shows nothing, <action>-measure shows the state and is paid for"
    else:
        about = "<action>-<measurement> shows an outcome and is paid for, <action>-blind is not"
    body = [*writer.transitions(), *writer.observations(), *writer.rewards()]
    comment.statements = sum(line != "\n" for line in body)
    yield f"#{COMMENT[:-1]}{json.dumps(msgspec.to_builtins(comment))}\n"
    if model.measurements:
        yield f"# A POMDP in which looking costs: {about}.\n"
    if writer.begin:
        yield "# The start is random and shown: from 'begin', every action leads to it. So values at the start of this file\n"
        yield f"# are the model's times the discount, {exact_decimal(model.discount)}.\n"
    yield from _changed_names(model, writer)
    yield from writer.preamble()
    yield from body


def _changed_names(model: Model, writer: _Writer) -> Iterator[str]:
    """Yield a comment line for every name that the format does not allow, or that was taken, and that is another in the file."""
    measurements = [one.name for one in model.measurements]
    actions = identifiers(model.action_names, model.n_actions, "a")
    states = [name for name, _ in writer.states[-model.n_states :]]
    named: list[tuple[str, Sequence[str] | None, Sequence[str]]] = [
        ("state", model.state_names, states),
        ("action", model.action_names, actions),
    ]
    if isinstance(writer, _PairsWriter):
        named.append(("measurement", measurements, identifiers(measurements, len(measurements), "m")))
        for number in range(1 + len(measurements)):
            shown = model.shown_by(number)
            if shown is not None and shown.law is not None and shown.outcomes is not None:
                own = [writer.observation_names[index] for index in writer.layout.numbers[number]]
                named.append(("outcome", shown.outcomes, own))
    changed = {
        (kind, name, written)
        for kind, names, in_file in named
        for name, written in zip(names or (), in_file if names else (), strict=True)
        if name not in (written, written[1:])  # a letter in front of a number changes nothing
    }
    for kind, name, written in sorted(changed):
        yield f"# The {kind} {json.dumps(name)} is written as {written}.\n"


def state_and_pair_numbers(model: Model) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Return the state of the model for each state of the file, -1 for `begin`, and action and measurement of each action."""
    _, writer = _comment_and_writer(model)
    states = [*([-1] if writer.begin else []), *(state for _, state in writer.states)]
    return np.array(states, dtype=np.int64), writer.pairs


def _comment_and_writer(model: Model) -> tuple[LookComment | PairsComment, _Writer]:
    if file_version(model) == 1:
        look = LookComment.of(model)
        return look, _LookWriter.of(model, look)
    pairs = PairsComment.of(model)
    return pairs, _PairsWriter.of(model, pairs)


@dataclass
class _Writer(ABC):
    """The lines of a file.

    Attributes
    ----------
    states : list of (str, int)
        Name and number of the states of the model, a state that has a copy twice.
    starts : list of str
        The states to which `begin` leads, or, without it, in which an episode may begin.
    pairs : list of (int, int)
        The action and the measurement of each action of the file, by action.
    actions : list of str
        Names of the pairs.
    observations : list of str
    begin : bool
        Whether there is an additional first state, `begin`.
    """

    model: Model
    states: list[tuple[str, int]]
    starts: list[str]
    pairs: list[tuple[int, int]]
    actions: list[str]
    observation_names: list[str]
    begin: bool

    def preamble(self) -> Iterator[str]:
        states = [*([BEGIN] if self.begin else []), *(name for name, _ in self.states)]
        yield f"\ndiscount: {exact_decimal(self.model.discount)}\n"
        yield "values: reward\n"
        yield f"states: {' '.join(states)}\n"
        yield f"actions: {' '.join(self.actions)}\n"
        yield f"observations: {' '.join(self.observation_names)}\n"
        if self.begin:
            yield f"start: {BEGIN}\n"
        elif self.model.initial_probabilities.tolist() == [1.0]:
            yield f"start: {self.starts[0]}\n"
        else:
            yield f"start: {' '.join(exact_decimal(p) for p in self.model.initial_distribution)}\n"

    def _terminal(self) -> list[str]:
        return [name for name, state in self.states if self.model.terminal[state]]

    def transitions(self) -> Iterator[str]:
        """Yield the transitions, equal for all pairs of an action; one line with `*` where they are equal for all actions."""
        yield "\n"
        names = [name for name, _ in self.states[-self.model.n_states :]]
        if self.begin:
            starts = zip(self.starts, self.model.initial_probabilities.tolist(), strict=True)
            yield from (f"T: * : {BEGIN} : {start} {exact_decimal(p)}\n" for start, p in starts)
        for name, state in self.states:
            if self.model.terminal[state]:
                yield f"T: * : {name} : {name} 1.0\n"
                continue
            rows = [self.model.transitions.row(state, action) for action in range(self.model.n_actions)]
            same = all(np.array_equal(row[0], rows[0][0]) and np.array_equal(row[1], rows[0][1]) for row in rows)
            of_actions = [("*", 0)] if same else zip(self.actions, (action for action, _ in self.pairs), strict=True)
            for kind, action in of_actions:
                successors, probabilities = rows[action]
                for successor, probability in zip(successors.tolist(), probabilities.tolist(), strict=True):
                    yield f"T: {kind} : {name} : {names[successor]} {exact_decimal(probability)}\n"

    @abstractmethod
    def observations(self) -> Iterator[str]:
        """Yield the probabilities of observations."""

    def rewards(self) -> Iterator[str]:
        """Yield the rewards that are not 0; first the prices for all states, where they are one number."""
        yield "\n"
        prices = [0.0, *(one.cost if isinstance(one.cost, float) else 0.0 for one in self.model.measurements)]
        if any(prices):
            for name, (_, measurement) in zip(self.actions, self.pairs, strict=True):
                if prices[measurement]:
                    yield f"R: {name} : * : * : * {exact_decimal(-prices[measurement])}\n"
            for name in [*([BEGIN] if self.begin else []), *self._terminal()]:
                yield f"R: * : {name} : * : * 0.0\n"
        for name, state in self.states:
            if not self.model.terminal[state]:
                for pair, (action, measurement) in zip(self.actions, self.pairs, strict=True):
                    price = self.model.measurements[measurement - 1].of(state, action) if measurement else 0.0
                    yield from self._row(f"R: {pair} : {name} :", state, action, price, usual=-prices[measurement])

    def _row(self, start: str, state: int, action: int, price: float, usual: float) -> Iterator[str]:
        """Yield the rewards of one state and pair, less the price, where they differ from what earlier lines give."""
        successors, paid = self._paid(state, action, price)
        if (paid == paid[0]).all():
            if paid[0] != usual:
                yield f"{start} * : * {exact_decimal(paid[0])}\n"
            return
        values, counts = np.unique(paid, return_counts=True)
        most = float(values[np.argmax(counts)])
        if most != usual and counts.max() > 1:
            yield f"{start} * : * {exact_decimal(most)}\n"
            usual = most
        for successor, value in zip(successors, paid.tolist(), strict=True):
            if value != usual:
                name = self.states[successor - self.model.n_states][0]
                yield f"{start} {name} : * {exact_decimal(value)}\n"

    def _paid(self, state: int, action: int, price: float) -> tuple[list[int], FloatArray]:
        table = self.model.transitions
        row = state * table.n_actions + action
        entries = slice(table.offsets[row], table.offsets[row + 1])
        rewards = self.model.transition_rewards
        paid = np.full(1, self.model.rewards[state, action]) if rewards is None else rewards[entries]
        with np.errstate(over="ignore"):  # `exact_decimal` refuses infinity
            return table.successors[entries].tolist(), paid - price


class _LookWriter(_Writer):
    """The lines of the file of a model with exact looks: the observations are the states, and `nothing`."""

    @classmethod
    def of(cls, model: Model, comment: LookComment) -> _LookWriter:
        states = state_identifiers(comment.states, model.n_states, comment.begin)
        actions = identifiers(comment.actions, model.n_actions, "a")
        return cls(
            model,
            list(zip(states, range(model.n_states), strict=True)),
            [states[state] for state in model.initial_states.tolist()],
            [(action, kind) for action in range(model.n_actions) for kind in (0, 1)],
            [action + kind for action in actions for kind in (BLIND, MEASURE)],
            [*([BEGIN] if comment.begin else []), *states, NOTHING],
            comment.begin,
        )

    def observations(self) -> Iterator[str]:
        yield "\n"
        for blind in self.actions[::2]:
            yield f"O: {blind} : * : {NOTHING} 1.0\n"
        running = [name for name, state in self.states if not self.model.terminal[state]]
        for measure in self.actions[1::2]:
            for name in [*([BEGIN] if self.begin else []), *running]:
                yield f"O: {measure} : {name} : {name} 1.0\n"
        for name in self._terminal():
            yield f"O: * : {name} : {NOTHING} 0.0\n"
            yield f"O: * : {name} : {name} 1.0\n"


@dataclass
class _PairsWriter(_Writer):
    """The lines of the file of any other model."""

    layout: FileLayout

    @classmethod
    def of(cls, model: Model, comment: PairsComment) -> _PairsWriter:
        layout = FileLayout.of(comment)
        copies = comment.starts or []
        names = layout.states[1:] if comment.starts is not None else layout.states
        starts = [names[state] for state in model.initial_states.tolist()]
        return cls(
            model,
            list(zip(names, [*copies, *range(model.n_states)], strict=True)),
            names[: len(copies)] if copies else starts,
            layout.pairs,
            layout.actions,
            layout.observations,
            comment.starts is not None,
            layout,
        )

    def observations(self) -> Iterator[str]:
        yield "\n"
        nothing = NOTHING if self.layout.nothing >= 0 else ""
        shown = [self.model.shown_by(number) for number in range(1 + len(self.model.measurements))]
        only = shown[0]
        if len(shown) == 1 and only is not None and (only.law is None or not only.law.by_action):
            yield from self._law("*", 0, 0)
        else:
            for pair, (action, measurement) in zip(self.actions, self.pairs, strict=True):
                if shown[measurement] is None:
                    yield f"O: {pair} : * : {nothing} 1.0\n"
                else:
                    yield from self._law(pair, action, measurement)
        special = [(name, self.observation_names[self.layout.end]) for name in self._terminal()]
        if self.begin:
            special.append((BEGIN, nothing))
            special += zip(self.starts, self.observation_names[self.layout.first_copy :], strict=False)
        for name, observation in special:
            if shown[0] is None and observation != nothing:  # lines for all states of a blind pair gave it
                yield f"O: * : {name} : {nothing} 0.0\n"
            yield f"O: * : {name} : {observation} 1.0\n"

    def _law(self, pair: str, action: int, measurement: int) -> Iterator[str]:
        """Yield the law of the outcomes of a pair in the states that are not terminal."""
        measured = self.model.shown_by(measurement)
        law = None if measured is None else measured.law
        numbers, names = self.layout.numbers[measurement], self.observation_names
        for name, state in self.states[-self.model.n_states :]:
            if self.model.terminal[state]:
                continue
            if law is None:
                yield f"O: {pair} : {name} : {names[numbers[state]]} 1.0\n"
                continue
            row = action * self.model.n_states + state if law.by_action else state
            entries = slice(int(law.offsets[row]), int(law.offsets[row + 1]))
            for outcome, chance in zip(
                law.outcomes[entries].tolist(), law.probabilities[entries].tolist(), strict=True
            ):
                yield f"O: {pair} : {name} : {names[numbers[outcome]]} {exact_decimal(chance)}\n"
