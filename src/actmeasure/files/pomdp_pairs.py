"""Names in the `.pomdp` file of a model with measurements, and the comment line of version 2, by which the model is found again.

Every allowed pair of an action and a measurement is an action of the file, `<action>-<measurement>`, or `<action>-blind` where
none is made; without measurements an action keeps its own name. Observations are the outcomes, one for each name, because the
action tells which measurement was made. Terminal states show `end`, and pairs that show nothing show `nothing`.

A start that is random and shown needs further states: from the first, `begin`, every action leads to a copy of one of the
initial states. A copy is shown by an observation of its own and otherwise like the state itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.checks import Count, Number, Strict, Whole, converted
from actmeasure.files.pomdp_text import BEGIN, BLIND, COMMENT, NOTHING, identifiers, price_table
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray

__all__ = ["Described", "Layout", "PairsComment", "check_sizes"]

#: Observation of terminal states.
END = "end"


@dataclass(frozen=True)
class Described:
    """A measurement without its law, which is in the lines of the file.

    Attributes
    ----------
    name : str
    cost : float, or float64 array of shape (S, A)
    outcomes : tuple of str, or None
    n_outcomes : int, or None where the measurement is exact
    by_action : bool
    with_actions : tuple of int, or None
    unused : list of (action, state, outcome, probability)
        The law with actions with which the measurement cannot be made, for which the file has no lines.
    """

    name: str
    cost: float | FloatArray
    outcomes: tuple[str, ...] | None
    n_outcomes: int | None
    by_action: bool
    with_actions: tuple[int, ...] | None
    unused: list[tuple[int, int, int, float]]

    @classmethod
    def of(cls, measurement: Measurement, n_states: int) -> Described:
        """Return the description of a measurement of a model."""
        law = measurement.law
        allowed = None if measurement.with_actions is None else tuple(int(one) for one in measurement.with_actions)
        unused = []
        if law is not None and law.by_action and allowed is not None:
            rows = np.repeat(np.arange(law.n_rows), np.diff(law.offsets))
            for row, outcome, chance in zip(
                rows.tolist(), law.outcomes.tolist(), law.probabilities.tolist(), strict=True
            ):
                action, state = divmod(row, n_states)
                if action not in allowed:
                    unused.append((action, state, outcome, chance))
        return cls(
            measurement.name, measurement.cost, measurement.outcomes, None if law is None else law.n_outcomes,
            law is not None and law.by_action, allowed, unused,
        )  # fmt: skip

    def labels(self, state_names: Sequence[str] | None, n_states: int) -> list[str]:
        """Return the names of the outcomes, or their numbers; those of the states where the measurement is exact."""
        if self.n_outcomes is None:
            return [str(state) for state in range(n_states)] if state_names is None else list(state_names)
        return [str(number) for number in range(self.n_outcomes)] if self.outcomes is None else list(self.outcomes)


class _Described(Strict):
    """The shape of a measurement in the comment line."""

    name: str
    cost: Number | list[list[Number]]
    outcomes: Count | list[str] | None
    by_action: bool
    with_actions: list[Whole] | None
    unused: list[tuple[Whole, Whole, Whole, Number]] = msgspec.field(default_factory=list)


class _Contents(Strict):
    """The shape of the comment line."""

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


@dataclass(frozen=True)
class PairsComment:
    """What the comment line `# actmeasure {...}` of version 2 tells because the format has no place for it.

    Attributes
    ----------
    n_states, n_actions : int
    state_names, action_names : list of str, or None
    measurements : list of Described
    passive : Described, or None
    reveal_start : bool
    starts : list of int, or None
        Initial states that have a copy, where a random start is shown.
    ends : bool
        Whether there are terminal states.
    successor_rewards : bool
        Whether the model keeps a reward for every successor.
    statements : int
        Number of T, O and R lines that follow: a file cut off between two of them would be another model.
    """

    n_states: int
    n_actions: int
    state_names: list[str] | None
    action_names: list[str] | None
    measurements: list[Described]
    passive: Described | None
    reveal_start: bool
    starts: list[int] | None
    ends: bool
    successor_rewards: bool
    statements: int = 0

    @classmethod
    def of(cls, model: Model) -> PairsComment:
        """Return the comment for a model's file, with the number of statements still to be filled in."""
        shown = model.reveal_start and len(model.initial_states) > 1
        return cls(
            model.n_states,
            model.n_actions,
            None if model.state_names is None else list(model.state_names),
            None if model.action_names is None else list(model.action_names),
            [Described.of(measurement, model.n_states) for measurement in model.measurements],
            None if model.passive is None else Described.of(model.passive, model.n_states),
            model.reveal_start,
            model.initial_states.tolist() if shown else None,
            bool(model.terminal.any()),
            model.transition_rewards is not None,
        )

    def line(self) -> str:
        """Return the comment line, in ASCII."""
        about = {
            "version": 2,
            "states": self.n_states if self.state_names is None else self.state_names,
            "actions": self.n_actions if self.action_names is None else self.action_names,
            "measurements": [_json(measurement) for measurement in self.measurements],
            "passive": None if self.passive is None else _json(self.passive),
            "reveal_start": self.reveal_start, "starts": self.starts, "ends": self.ends,
            "successor_rewards": self.successor_rewards, "statements": self.statements,
        }  # fmt: skip
        return f"#{COMMENT[:-1]}{json.dumps(about)}\n"

    @classmethod
    def of_json(cls, about: Any) -> PairsComment:
        """Return the comment with these contents, of version 2."""
        found = converted(about, _Contents)
        return cls(
            found.states if isinstance(found.states, int) else len(found.states),
            found.actions if isinstance(found.actions, int) else len(found.actions),
            None if isinstance(found.states, int) else found.states,
            None if isinstance(found.actions, int) else found.actions,
            [_described(value, f"measurements[{index}]") for index, value in enumerate(found.measurements)],
            None if found.passive is None else _described(found.passive, "passive"),
            found.reveal_start,
            found.starts,
            found.ends,
            found.successor_rewards,
            found.statements,
        )


def _json(measurement: Described) -> dict[str, Any]:
    described = {
        "name": measurement.name,
        "cost": measurement.cost if isinstance(measurement.cost, float) else measurement.cost.tolist(),
        "outcomes": measurement.n_outcomes if measurement.outcomes is None else measurement.outcomes,
        "by_action": measurement.by_action, "with_actions": measurement.with_actions,
    }  # fmt: skip
    return described | ({"unused": measurement.unused} if measurement.unused else {})


def _described(value: Any, place: str) -> Described:
    given = converted(value, _Described, place)
    n_outcomes = len(given.outcomes) if isinstance(given.outcomes, list) else given.outcomes
    return Described(
        given.name,
        given.cost if isinstance(given.cost, float) else price_table(given.cost),
        tuple(given.outcomes) if isinstance(given.outcomes, list) else None,
        n_outcomes,
        given.by_action,
        None if given.with_actions is None else tuple(given.with_actions),
        given.unused,
    )


@dataclass(frozen=True)
class Layout:
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
    def of(cls, comment: PairsComment) -> Layout:
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
