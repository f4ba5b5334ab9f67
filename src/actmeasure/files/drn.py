"""Write a model as a POMDP in Storm's explicit format (DRN); it is not read.

In this format observations belong to states, there is no discount, and there is one initial state. So

* a state of the file is a state of the model together with what was seen in it: with the outcome of a measurement, or nothing;
* every step ends with probability 1 - discount, so that the expected total reward is the model's discounted return;
* a start that is random is preceded by a state `begin`, from which every choice leads to it without reward;
* all terminal states are one, with the label `end`.

A choice is an allowed pair of an action and a measurement; its reward is the expected reward minus the price. Comment lines say
what the observations and choices are called in the model, and which property asks for the optimum.

Storm's belief exploration takes unexplored beliefs to be worth at least 0 as it maximises, so that its bounds are wrong where
rewards are negative. Where no reward is positive, the file therefore has a second reward model, `cost`, which is to be minimised;
with rewards of both signs a comment warns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from actmeasure.files.pomdp_writer import exact_decimal, identifiers
from actmeasure.model import Model

__all__ = ["lines"]

#: Names of the rewards in the file, and of rewards with the opposite sign.
REWARDS, COSTS = "reward", "cost"
#: A state of the file: a state of the model, the measurement that showed something (0: none), and its outcome (-1: nothing).
Node = tuple[int, int, int]
BEGIN: Node = (-1, -1, -1)
END: Node = (-2, -2, -2)
#: Stands for a measurement in a start that is shown where looks are not exact.
SHOWN = -1


def lines(model: Model) -> Iterator[str]:
    """Yield the lines of the file, with their line ends."""
    writer = _Writer(model)
    choices = [choice for node in writer.nodes for choice in writer.choices(node)]
    has_gains, has_costs = (any(sign * reward > 0 for _, reward, _ in choices) for sign in (1, -1))
    are_costs = has_costs and not has_gains
    names = [REWARDS, COSTS] if are_costs else [REWARDS]
    yield "// A POMDP in which looking costs, for Storm. Every step ends with probability 1 - discount: the expected total\n"
    yield f"// reward is the return at a discount of {exact_decimal(model.discount)}.\n"
    yield f'// Optimum: R{{"{names[-1]}"}}{"min" if are_costs else "max"}=? [F "end"]\n'
    if has_gains and has_costs:
        yield "// Rewards have both signs. Belief exploration in Storm assumes one, so that its bounds need not hold.\n"
    yield from writer.comments()
    yield "@type: POMDP\n@parameters\n\n"
    yield f"@reward_models\n{' '.join(names)}\n@nr_states\n{len(writer.nodes)}\n@nr_choices\n{len(choices)}\n@model\n"
    nothing = ", ".join("0" for _ in names)
    for number, node in enumerate(writer.nodes):
        label = " init" if number == 0 else " end" if node == END else ""
        yield f"state {number} {{{writer.observations[_seen(node)]}}} [{nothing}]{label}\n"
        for name, reward, row in writer.choices(node):
            rewards = [reward, 0.0 - reward][: len(names)]
            yield f"\taction {name} [{', '.join(map(exact_decimal, rewards))}]\n"
            for target, probability in sorted((writer.nodes[node], p) for node, p in row.items()):
                yield f"\t\t{target} : {exact_decimal(probability)}\n"


def _seen(node: Node) -> tuple[int, int]:
    return node[1:]


class _Writer:
    """The states of the file, numbered in the order in which they are reached, and their choices."""

    def __init__(self, model: Model) -> None:
        self.model = model
        looks = identifiers([one.name for one in model.measurements], len(model.measurements), "m")
        actions = identifiers(None if model.action_names is None else list(model.action_names), model.n_actions, "a")
        self.pairs = [
            (action, measurement)
            for action in range(model.n_actions)
            for measurement in range(1 + len(model.measurements))
            if model.allowed_decisions[action, measurement]
        ]
        named = [
            actions[action] + (f"-{looks[kind - 1]}" if kind else "-blind" * bool(looks)) for action, kind in self.pairs
        ]
        self.names = identifiers(named, len(named), "a")
        self._rows: dict[int, list[tuple[str, float, dict[Node, float]]]] = {}
        starts = dict(zip(model.initial_states.tolist(), model.initial_probabilities.tolist(), strict=True))
        self._starts = {self._start(state): chance for state, chance in starts.items()}
        first = BEGIN if len(self._starts) > 1 else next(iter(self._starts))
        self.nodes: dict[Node, int] = {}
        waiting = [first]
        while waiting:
            node = waiting.pop()
            if node in self.nodes:
                continue
            self.nodes[node] = len(self.nodes)
            waiting += [target for _, _, row in self.choices(node) for target in row]
        self.observations = {seen: number for number, seen in enumerate(dict.fromkeys(map(_seen, self.nodes)))}

    def _start(self, state: int) -> Node:
        """Return the first state of an episode: shown as by a look where looks are exact, else as an observation of its own."""
        if not self.model.reveal_start:
            return state, 0, -1
        return (state, 1, state) if self.model.looks_are_exact else (state, SHOWN, state)

    def choices(self, node: Node) -> list[tuple[str, float, dict[Node, float]]]:
        """Return name, reward and successors with their probabilities of every choice in a state of the file."""
        if node == END:
            return [("end", 0.0, {END: 1.0})]
        if node == BEGIN:
            return [("begin", 0.0, self._starts)]
        if node[0] not in self._rows:
            self._rows[node[0]] = [
                (name, *self._step(node[0], *pair)) for name, pair in zip(self.names, self.pairs, strict=True)
            ]
        return self._rows[node[0]]

    def _step(self, state: int, action: int, measurement: int) -> tuple[float, dict[Node, float]]:
        """Return the reward of a pair in a state, less the price, and where it leads."""
        model = self.model
        price = model.measurements[measurement - 1].of(state, action) if measurement else 0.0
        row: dict[Node, float] = {}
        ends = 1.0 - model.discount
        successors, probabilities = model.transitions.row(state, action)
        for successor, chance in zip(successors.tolist(), probabilities.tolist(), strict=True):
            if model.terminal[successor]:
                ends += model.discount * chance
                continue
            for outcome, likelihood in self._outcomes(successor, action, measurement):
                node = (successor, 0 if outcome < 0 else measurement, outcome)
                row[node] = row.get(node, 0.0) + model.discount * chance * likelihood
        if ends > 0:
            row[END] = ends
        return float(model.rewards[state, action]) - price, row

    def _outcomes(self, state: int, action: int, measurement: int) -> list[tuple[int, float]]:
        """Return what may be seen in a state that was reached, with its probability; -1 for nothing."""
        shows = self.model.shown_by(measurement)
        if shows is None:
            return [(-1, 1.0)]
        if shows.law is None:
            return [(state, 1.0)]
        law = shows.law
        row = action * self.model.n_states + state if law.by_action else state
        entries = slice(int(law.offsets[row]), int(law.offsets[row + 1]))
        return list(zip(law.outcomes[entries].tolist(), law.probabilities[entries].tolist(), strict=True))

    def comments(self) -> Iterator[str]:
        """Yield what the observations and choices are in the model; names are written as in JSON."""
        model = self.model
        for (measurement, outcome), number in self.observations.items():
            yield f"// observation {number}: {self._observation_text(measurement, outcome)}\n"
        for name, (action, measurement) in zip(self.names, self.pairs, strict=True):
            look = f" and {json.dumps(model.measurements[measurement - 1].name)}" if measurement else ""
            yield f"// choice {name}: {json.dumps(model.action_name(action))}{look}\n"

    def _observation_text(self, measurement: int, outcome: int) -> str:
        if (measurement, outcome) == _seen(END):
            return "the episode is over"
        if (measurement, outcome) == _seen(BEGIN):
            return "before the start"
        if outcome < 0:
            return "nothing seen"
        if measurement == SHOWN:
            return f"the start, {json.dumps(self.model.state_name(outcome))}"
        shows = self.model.shown_by(measurement)
        what = "" if shows is None else f"{json.dumps(shows.name)} shows "
        return what + json.dumps(self.model.outcome_name(measurement, outcome))
