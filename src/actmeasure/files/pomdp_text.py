"""What the writer and the reader of `.pomdp` files agree on: identifiers, numbers, and our comment line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.checks import VERSION, check_keys, flag, number, parse_json, some_names, whole
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = ["BEGIN", "BLIND", "COMMENT", "MEASURE", "NOTHING", "RESERVED", "Comment", "identifiers", "number_text"]

#: Words with a meaning of their own in the format, which cannot be names.
RESERVED = frozenset({
    "discount", "values", "states", "actions", "observations", "T", "O", "R", "uniform", "identity", "reward", "cost",
    "start", "include", "exclude", "reset",
})  # fmt: skip
NOTHING = "nothing"
BEGIN = "begin"
BLIND = "-blind"
MEASURE = "-measure"
#: How the text of our comment begins, after the '#'.
COMMENT = " actmeasure {"
KEYS = (
    "version", "states", "actions", "measuring_cost", "reveal_start", "begin", "successor_rewards", "statements"
)  # fmt: skip


def identifiers(names: Sequence[str] | None, count: int, letter: str, taken: Collection[str] = ()) -> list[str]:
    """Distinct words that the format can take for names: a letter, then letters, digits, '_' and '-'.

    Parameters
    ----------
    names : sequence of str, or None to number them
    count : int
    letter : str
        What to put in front where a name does not begin with a letter.
    taken : collection of str
        Words not to use.
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
    """A float as text that reads back the same, with a digit on both sides of the decimal point as the format asks."""
    if not np.isfinite(value):
        raise ModelError(f"a number of the file would be {value}, which the format cannot hold; scale the rewards down")
    text = repr(float(value))
    mantissa, exponent, digits = text.partition("e")
    return text if "." in mantissa or not exponent else f"{mantissa}.0e{digits}"


@dataclass(frozen=True)
class Comment:
    """What our own files say about the model in a comment line, because the format itself cannot.

    The reward of a measuring action is the reward less the measuring cost, a difference that loses the last bits of the
    cost; names may hold any letters; and a start that is both random and shown has to be written as a state of its own.

    Attributes
    ----------
    begin : bool
        Whether the first state of the file is such an additional beginning.
    successor_rewards : bool
        Whether the model keeps a reward for every successor.
    statements : int
        How many T, O and R lines follow: a file cut off between two of them would be another model.
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
        """The comment of a model's file, of which the number of statements is not known yet."""
        return cls(
            None if model.state_names is None else list(model.state_names),
            None if model.action_names is None else list(model.action_names),
            model.measuring_cost,
            model.reveal_start,
            begin=model.reveal_start and len(model.initial_states) > 1,
            successor_rewards=model.transition_rewards is not None,
        )

    def line(self) -> str:
        """The comment line, in ASCII."""
        cost = self.measuring_cost if isinstance(self.measuring_cost, float) else self.measuring_cost.tolist()
        about = {
            "version": VERSION, "states": self.state_names, "actions": self.action_names, "measuring_cost": cost,
            "reveal_start": self.reveal_start, "begin": self.begin, "successor_rewards": self.successor_rewards,
            "statements": self.statements,
        }  # fmt: skip
        return f"#{COMMENT[:-1]}{json.dumps(about)}\n"

    @classmethod
    def parse(cls, text: str) -> Comment:
        """From the JSON in the comment line."""
        about = parse_json(text)
        version = whole(about.get("version") if isinstance(about, dict) else None, "'version'", least=1)
        if version > VERSION:
            raise ModelError(
                f"it has version {version}, this actmeasure reads versions up to {VERSION}; update actmeasure"
            )
        check_keys(about, "it", KEYS)
        return cls(
            some_names(about["states"], "state"),
            some_names(about["actions"], "action"),
            _cost(about["measuring_cost"]),
            flag(about["reveal_start"], "'reveal_start'"),
            flag(about["begin"], "'begin'"),
            flag(about["successor_rewards"], "'successor_rewards'"),
            whole(about["statements"], "'statements'"),
        )


def _cost(value: Any) -> float | FloatArray:
    if not isinstance(value, list):
        return number(value, "'measuring_cost'")
    rows = [row if isinstance(row, list) else [] for row in value]
    if not rows or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ModelError("'measuring_cost' is not a number or a table with a row per state; remove the line")
    return np.array([[number(cost, "'measuring_cost'") for cost in row] for row in rows])
