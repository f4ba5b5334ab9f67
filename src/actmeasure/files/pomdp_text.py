"""What the writer and the reader of `.pomdp` files share: identifiers, numbers, and the comment line `# actmeasure`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.checks import Count, Number, Strict, Whole, converted
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = [
    "BEGIN",
    "BLIND",
    "COMMENT",
    "MEASURE",
    "NOTHING",
    "RESERVED",
    "Comment",
    "identifiers",
    "number_text",
    "price_table",
]

#: Keywords of the format, which cannot be names.
RESERVED = frozenset({
    "discount", "values", "states", "actions", "observations", "T", "O", "R", "uniform", "identity", "reward", "cost",
    "start", "include", "exclude", "reset",
})  # fmt: skip
#: Observation of actions that do not measure.
NOTHING = "nothing"
#: Additional first state, from which every action leads to a random start that is then shown.
BEGIN = "begin"
#: Endings of the two actions that the file has for every action of the model.
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
    found = []
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
        found.append(candidate)
    return found


def number_text(value: float) -> str:
    """Return a float as text that gives the same float when read, with digits on both sides of the decimal point."""
    if not np.isfinite(value):
        raise ModelError(
            f"a number of the file would be {value}, which the format cannot represent; scale the rewards down"
        )
    text = repr(float(value))
    mantissa, exponent, digits = text.partition("e")
    return text if "." in mantissa or not exponent else f"{mantissa}.0e{digits}"


class _Contents(Strict):
    """The shape of the JSON in the comment line."""

    version: Count
    states: list[str] | None
    actions: list[str] | None
    measuring_cost: Number | list[list[Number]]
    reveal_start: bool
    begin: bool
    successor_rewards: bool
    statements: Whole


@dataclass(frozen=True)
class Comment:
    """What the comment line `# actmeasure {...}` of version 1, for exact looks, tells because the format has no place for it.

    The reward of a measuring action is the reward less the measuring cost, a difference that loses the last bits of the
    cost; names may have any characters; and a start that is both random and shown needs a state of its own.

    Attributes
    ----------
    state_names, action_names : list of str, or None
    measuring_cost : float, or float64 array of shape (S, A)
    reveal_start : bool
    begin : bool
        Whether the first state of the file is the additional state `begin`.
    successor_rewards : bool
        Whether the model keeps a reward for every successor.
    statements : int
        Number of T, O and R lines that follow: a file cut off between two of them would be another model.
    """

    state_names: list[str] | None
    action_names: list[str] | None
    measuring_cost: float | FloatArray
    reveal_start: bool
    begin: bool
    successor_rewards: bool
    statements: int = 0

    @classmethod
    def of(cls, model: Model) -> Comment:
        """Return the comment for a model's file, with the number of statements still to be filled in."""
        return cls(
            None if model.state_names is None else list(model.state_names),
            None if model.action_names is None else list(model.action_names),
            model.measuring_cost,
            model.reveal_start,
            begin=model.reveal_start and len(model.initial_states) > 1,
            successor_rewards=model.transition_rewards is not None,
        )

    def line(self) -> str:
        """Return the comment line, in ASCII."""
        cost = self.measuring_cost if isinstance(self.measuring_cost, float) else self.measuring_cost.tolist()
        about = {
            "version": 1, "states": self.state_names, "actions": self.action_names, "measuring_cost": cost,
            "reveal_start": self.reveal_start, "begin": self.begin, "successor_rewards": self.successor_rewards,
            "statements": self.statements,
        }  # fmt: skip
        return f"#{COMMENT[:-1]}{json.dumps(about)}\n"

    @classmethod
    def of_json(cls, about: Any) -> Comment:
        """Return the comment with these contents, of version 1."""
        found = converted(about, _Contents)
        return cls(
            found.states,
            found.actions,
            found.measuring_cost if isinstance(found.measuring_cost, float) else price_table(found.measuring_cost),
            found.reveal_start,
            found.begin,
            found.successor_rewards,
            found.statements,
        )


def price_table(rows: list[list[float]]) -> FloatArray:
    """Return prices per state and action, shape (S, A)."""
    if not rows or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ModelError("'measuring_cost' is not a number or a table with a row per state; remove the line")
    return np.array(rows)
