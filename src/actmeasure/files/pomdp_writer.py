"""Write a model as a POMDP in Cassandra's text format, as SARSOP, pomdp-solve and POMDPs.jl read it.

Every control action becomes two, `<action>-blind` and `<action>-measure`, and there is one observation for every state and
one called `nothing`. Terminal states are absorbing, have no reward, are observed for free and cost nothing to measure.
General lines come first and exceptions after them; no transition or observation line has more than one `*`, because the
reader of POMDPs.jl accepts no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from actmeasure.files.pomdp_text import BEGIN, BLIND, MEASURE, NOTHING, Comment, identifiers, number_text
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = ["lines", "state_identifiers"]


def state_identifiers(names: list[str] | None, count: int, begin: bool) -> list[str]:
    """Return identifiers for the model's states, other than `nothing` and, where it is needed, `begin`."""
    return identifiers(names, count, "s", taken=(NOTHING, BEGIN) if begin else (NOTHING,))


def lines(model: Model) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    comment = Comment.of(model)
    writer = _Writer(
        model,
        state_identifiers(comment.state_names, model.n_states, comment.begin),
        identifiers(comment.action_names, model.n_actions, "a"),
        comment.begin,
    )
    body = [*writer.transitions(), *writer.observations(), *writer.rewards()]
    statements = sum(line != "\n" for line in body)
    yield replace(comment, statements=statements).line()
    yield "# A POMDP in which looking costs: <action>-blind shows nothing, <action>-measure shows the state and is paid for.\n"
    if comment.begin:
        yield "# The start is random and shown: from 'begin', every action leads to it. So values at the start of this file\n"
        yield f"# are the model's times the discount, {number_text(model.discount)}.\n"
    yield from writer.preamble()
    yield from body


@dataclass
class _Writer:
    model: Model
    states: list[str]
    actions: list[str]
    begin: bool

    def preamble(self) -> Iterator[str]:
        states = [*([BEGIN] if self.begin else []), *self.states]
        yield f"\ndiscount: {number_text(self.model.discount)}\n"
        yield "values: reward\n"
        yield f"states: {' '.join(states)}\n"
        yield f"actions: {' '.join(action + kind for action in self.actions for kind in (BLIND, MEASURE))}\n"
        yield f"observations: {' '.join([*states, NOTHING])}\n"
        if self.begin:
            yield f"start: {BEGIN}\n"
        elif self.model.initial_probabilities.tolist() == [1.0]:
            yield f"start: {self.states[int(self.model.initial_states[0])]}\n"
        else:
            yield f"start: {' '.join(number_text(p) for p in self.model.initial_distribution)}\n"

    def transitions(self) -> Iterator[str]:
        """Yield the transitions, equal for both actions of a pair; one line with `*` where they are equal for all actions."""
        yield "\n"
        if self.begin:
            starts = zip(self.model.initial_states.tolist(), self.model.initial_probabilities.tolist(), strict=True)
            yield from (f"T: * : {BEGIN} : {self.states[state]} {number_text(p)}\n" for state, p in starts)
        for state, name in enumerate(self.states):
            if self.model.terminal[state]:
                yield f"T: * : {name} : {name} 1.0\n"
                continue
            rows = [self.model.transitions.row(state, action) for action in range(len(self.actions))]
            same = all(np.array_equal(row[0], rows[0][0]) and np.array_equal(row[1], rows[0][1]) for row in rows)
            for action, (successors, probabilities) in zip(self.actions, rows[:1] if same else rows, strict=False):
                for kind in ("*",) if same else (action + BLIND, action + MEASURE):
                    for successor, probability in zip(successors.tolist(), probabilities.tolist(), strict=True):
                        yield f"T: {kind} : {name} : {self.states[successor]} {number_text(probability)}\n"

    def observations(self) -> Iterator[str]:
        yield "\n"
        for action in self.actions:
            yield f"O: {action}{BLIND} : * : {NOTHING} 1.0\n"
        running = [name for name, ends in zip(self.states, self.model.terminal, strict=True) if not ends]
        for action in self.actions:
            for name in [*([BEGIN] if self.begin else []), *running]:
                yield f"O: {action}{MEASURE} : {name} : {name} 1.0\n"
        for state in np.flatnonzero(self.model.terminal).tolist():
            yield f"O: * : {self.states[state]} : {NOTHING} 0.0\n"
            yield f"O: * : {self.states[state]} : {self.states[state]} 1.0\n"

    def rewards(self) -> Iterator[str]:
        """Yield the rewards that are not 0; first the measuring cost for all states, where it is one number."""
        yield "\n"
        cost = self.model.measuring_cost
        common = cost if isinstance(cost, float) else 0.0
        if common:
            for name in self.actions:
                yield f"R: {name}{MEASURE} : * : * : * {number_text(-common)}\n"
            free = [self.states[state] for state in np.flatnonzero(self.model.terminal).tolist()]
            for name in [*([BEGIN] if self.begin else []), *free]:
                yield f"R: * : {name} : * : * 0.0\n"
        for state in np.flatnonzero(~self.model.terminal).tolist():
            for action in range(len(self.actions)):
                price = self.model.measurements[0].of(state, action)
                yield from self._row(state, action, BLIND, price=0.0, usual=0.0)
                yield from self._row(state, action, MEASURE, price=price, usual=-common)

    def _row(self, state: int, action: int, kind: str, price: float, usual: float) -> Iterator[str]:
        """Yield the rewards of one state and action, less the price, where they differ from what earlier lines give."""
        start = f"R: {self.actions[action]}{kind} : {self.states[state]} :"
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
                yield f"{start} {self.states[successor]} : * {number_text(value)}\n"

    def _paid(self, state: int, action: int, price: float) -> tuple[list[int], FloatArray]:
        table = self.model.transitions
        row = state * table.n_actions + action
        entries = slice(table.offsets[row], table.offsets[row + 1])
        rewards = self.model.transition_rewards
        paid = np.full(1, self.model.rewards[state, action]) if rewards is None else rewards[entries]
        with np.errstate(over="ignore"):  # `number_text` refuses infinity
            return table.successors[entries].tolist(), paid - price
