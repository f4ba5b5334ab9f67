"""Write a model as a POMDP in Cassandra's text format, as SARSOP, pomdp-solve and POMDPs.jl read it.

Every allowed pair of an action and a measurement, or none, becomes an action. Where the only measurement is an exact look, these
are `<action>-blind` and `<action>-measure`, and there is one observation for every state and one called `nothing`; the names of
other models are in `pomdp_pairs`. Terminal states are absorbing, have no reward, and are observed and measured for free.
General lines come first and exceptions after them; no transition or observation line has more than one `*`, because the
reader of POMDPs.jl accepts no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from actmeasure.files.laws import file_version
from actmeasure.files.pomdp_pairs import Layout, PairsComment
from actmeasure.files.pomdp_text import BEGIN, BLIND, MEASURE, NOTHING, Comment, identifiers, number_text
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = ["lines", "state_and_pair_numbers", "state_identifiers"]


def state_identifiers(names: list[str] | None, count: int, begin: bool) -> list[str]:
    """Return identifiers for the states of a model with exact looks, other than `nothing` and, where it is needed, `begin`."""
    return identifiers(names, count, "s", taken=(NOTHING, BEGIN) if begin else (NOTHING,))


def lines(model: Model) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    comment, writer = _comment_and_writer(model)
    if isinstance(comment, Comment):
        about = "<action>-blind shows nothing, <action>-measure shows the state and is paid for"
    else:
        about = "<action>-<measurement> shows an outcome and is paid for, <action>-blind is not"
    body = [*writer.transitions(), *writer.observations(), *writer.rewards()]
    yield replace(comment, statements=sum(line != "\n" for line in body)).line()
    if model.measurements:
        yield f"# A POMDP in which looking costs: {about}.\n"
    if writer.begin:
        yield "# The start is random and shown: from 'begin', every action leads to it. So values at the start of this file\n"
        yield f"# are the model's times the discount, {number_text(model.discount)}.\n"
    yield from writer.preamble()
    yield from body


def state_and_pair_numbers(model: Model) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Return the state of the model for each state of the file, -1 for `begin`, and action and measurement of each action."""
    _, writer = _comment_and_writer(model)
    states = [*([-1] if writer.begin else []), *(state for _, state in writer.states)]
    return np.array(states, dtype=np.int64), writer.pairs


def _comment_and_writer(model: Model) -> tuple[Comment | PairsComment, _Writer]:
    if file_version(model) == 1:
        look = Comment.of(model)
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
        yield f"\ndiscount: {number_text(self.model.discount)}\n"
        yield "values: reward\n"
        yield f"states: {' '.join(states)}\n"
        yield f"actions: {' '.join(self.actions)}\n"
        yield f"observations: {' '.join(self.observation_names)}\n"
        if self.begin:
            yield f"start: {BEGIN}\n"
        elif self.model.initial_probabilities.tolist() == [1.0]:
            yield f"start: {self.starts[0]}\n"
        else:
            yield f"start: {' '.join(number_text(p) for p in self.model.initial_distribution)}\n"

    def _terminal(self) -> list[str]:
        return [name for name, state in self.states if self.model.terminal[state]]

    def transitions(self) -> Iterator[str]:
        """Yield the transitions, equal for all pairs of an action; one line with `*` where they are equal for all actions."""
        yield "\n"
        names = [name for name, _ in self.states[-self.model.n_states :]]
        if self.begin:
            starts = zip(self.starts, self.model.initial_probabilities.tolist(), strict=True)
            yield from (f"T: * : {BEGIN} : {start} {number_text(p)}\n" for start, p in starts)
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
                    yield f"T: {kind} : {name} : {names[successor]} {number_text(probability)}\n"

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
                    yield f"R: {name} : * : * : * {number_text(-prices[measurement])}\n"
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
                yield f"{start} * : * {number_text(paid[0])}\n"
            return
        values, counts = np.unique(paid, return_counts=True)
        most = float(values[np.argmax(counts)])
        if most != usual and counts.max() > 1:
            yield f"{start} * : * {number_text(most)}\n"
            usual = most
        for successor, value in zip(successors, paid.tolist(), strict=True):
            if value != usual:
                name = self.states[successor - self.model.n_states][0]
                yield f"{start} {name} : * {number_text(value)}\n"

    def _paid(self, state: int, action: int, price: float) -> tuple[list[int], FloatArray]:
        table = self.model.transitions
        row = state * table.n_actions + action
        entries = slice(table.offsets[row], table.offsets[row + 1])
        rewards = self.model.transition_rewards
        paid = np.full(1, self.model.rewards[state, action]) if rewards is None else rewards[entries]
        with np.errstate(over="ignore"):  # `number_text` refuses infinity
            return table.successors[entries].tolist(), paid - price


class _LookWriter(_Writer):
    """The lines of the file of a model with exact looks: the observations are the states, and `nothing`."""

    @classmethod
    def of(cls, model: Model, comment: Comment) -> _LookWriter:
        states = state_identifiers(comment.state_names, model.n_states, comment.begin)
        actions = identifiers(comment.action_names, model.n_actions, "a")
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

    layout: Layout

    @classmethod
    def of(cls, model: Model, comment: PairsComment) -> _PairsWriter:
        layout = Layout.of(comment)
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
                yield f"O: {pair} : {name} : {names[numbers[outcome]]} {number_text(chance)}\n"
