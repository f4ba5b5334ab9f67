"""The tables of a POMDP, filled line by line as a file says, where later lines override earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.pomdp_text import Comment
from actmeasure.transitions import FloatArray

__all__ = ["Pomdp", "ProbabilityTable", "RewardTable", "Words"]

#: More entries than this are refused: text is not the format for them, and a damaged count may ask for any number.
MOST_ENTRIES = 5_000_000
#: A row takes the memory of as many entries besides its own.
ROW = 8


@dataclass
class Words:
    """The states, actions or observations of a file: a count, and perhaps names."""

    kind: str
    count: int = 0
    names: list[str] | None = None
    index_of: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, index: int) -> str:
        return str(index) if self.names is None else self.names[index]


class ProbabilityTable:
    """Distributions over columns for every action and state, of which only what is not 0 is kept.

    Attributes
    ----------
    rows : dict from action * n_states + state to dict from column to probability
    """

    def __init__(self, n_states: int, n_columns: int) -> None:
        self.rows: dict[int, dict[int, float]] = {}
        self._n_states = n_states
        self._n_columns = n_columns
        self._work = 0

    def row(self, action: int, state: int) -> dict[int, float]:
        """The distribution of an action and state; empty where the file says nothing."""
        return self.rows.get(action * self._n_states + state, {})

    def _selected(self, actions: range, states: range, width: int) -> list[int]:
        selected = len(actions) * len(states)
        self._work += selected * width
        if self._work > MOST_ENTRIES or ROW * (len(self.rows) + selected) > MOST_ENTRIES:
            raise ModelError(
                f"the tables have more than {MOST_ENTRIES:,} entries; use the .npz format for a model this large"
            )
        return [action * self._n_states + state for action in actions for state in states]

    def set_entries(self, actions: range, states: range, columns: range, value: float) -> None:
        """One probability for all combinations."""
        everything = len(columns) == self._n_columns
        for number in self._selected(actions, states, 1 if value == 0 and everything else len(columns)):
            row = self.rows.setdefault(number, {})
            if value != 0:
                row.update(dict.fromkeys(columns, value))
            elif everything:
                row.clear()
            else:
                for column in columns:
                    row.pop(column, None)

    def set_rows(self, actions: range, states: range, values: Sequence[float]) -> None:
        """One distribution for all combinations."""
        kept = {column: value for column, value in enumerate(values) if value != 0}
        for number in self._selected(actions, states, max(len(kept), 1)):
            self.rows[number] = dict(kept)

    def set_uniform(self, actions: range, states: range) -> None:
        """The same probability for every column."""
        for number in self._selected(actions, states, self._n_columns):
            self.rows[number] = dict.fromkeys(range(self._n_columns), 1 / self._n_columns)

    def set_identity(self, actions: range) -> None:
        """Every state to itself."""
        for number in self._selected(actions, range(self._n_states), 1):
            self.rows[number] = {number % self._n_states: 1.0}


class RewardTable:
    """Rewards by action, state, successor and observation, kept as the lines of the file.

    The full table would have a billion entries for a few hundred states. Instead the lines are sorted by which of the
    four places hold a `*`, and a look-up takes the latest of the few that fit.
    """

    def __init__(self) -> None:
        self._by_places: dict[tuple[bool, ...], dict[tuple[int, ...], tuple[int, float]]] = {}
        self._count = 0

    def set(self, place: tuple[int | None, ...], value: float) -> None:
        """A reward for (action, state, successor, observation), of which None means all."""
        places = tuple(index is not None for index in place)
        key = tuple(index for index in place if index is not None)
        self._count += 1
        self._by_places.setdefault(places, {})[key] = (self._count, value)

    def at(self, action: int, state: int, successor: int, observation: int) -> float:
        """The reward that the file's last fitting line gives, or 0."""
        point = (action, state, successor, observation)
        latest, reward = 0, 0.0
        for places, lines in self._by_places.items():
            key = tuple(index for index, given in zip(point, places, strict=True) if given)
            count, value = lines.get(key, (0, 0.0))
            if count > latest:
                latest, reward = count, value
        return reward


@dataclass
class Pomdp:
    """A POMDP as its file describes it, not yet known to be one in which looking is a choice.

    Attributes
    ----------
    start : float64 array, shape (S,)
    sign : 1.0, or -1.0 where the file gives costs in place of rewards
    statements : int
        How many T, O and R entries, rows and matrices the file has.
    comment : Comment or None
        What our own comment line says, if the file has one.
    """

    discount: float
    sign: float
    states: Words
    actions: Words
    observations: Words
    start: FloatArray
    transitions: ProbabilityTable
    shown: ProbabilityTable
    rewards: RewardTable
    statements: int
    comment: Comment | None

    def reward(self, action: int, state: int, successor: int, observation: int) -> float:
        """What a step pays."""
        return self.sign * self.rewards.at(action, state, successor, observation)

    def uniform_start(self) -> bool:
        """Whether every state is an equally likely start, as it is where the file does not say."""
        return bool(np.all(self.start == self.start[0]))
