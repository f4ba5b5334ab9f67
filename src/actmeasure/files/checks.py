"""What the readers share: strict JSON, the header of our own formats, and the last checks before a `Model`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, unknown_name
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray, IntArray, Transitions

__all__ = [
    "FIT_FORMAT", "FIT_VERSION", "FORMAT", "VERSION", "Parts", "check_header", "check_keys", "decimal_index", "flag", "number",
    "parse_json", "quote", "some_names", "unknown", "whole",
]  # fmt: skip

FORMAT = "actmeasure model"
FIT_FORMAT = "actmeasure fit"
VERSION = 1
#: Version of the format of fits; since 2 their diagnostics are records instead of sentences.
FIT_VERSION = 2
#: Successors are 32-bit numbers.
LARGEST_COUNT = 2**31 - 1
#: Expected rewards may differ by this much, relative to their size, from what the rewards of the successors give.
REWARD_ERROR = 1e-9


def parse_json(text: str) -> Any:
    """Parse JSON without what Python's parser lets pass: keys given twice, NaN, infinity, whole numbers of any length."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant, parse_int=_short)
    except RecursionError as error:
        raise ModelError("the JSON is nested too deeply to be a model; the file is damaged") from error
    except json.JSONDecodeError as error:
        raise ModelError(
            f"line {error.lineno}, column {error.colno} is not valid JSON ({error.msg}); the file is damaged or incomplete"
        ) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise ModelError(f"the key {quote(twice)} is given twice in one object; remove one of the two")
    return found


def _no_constant(name: str) -> float:
    raise ModelError(f"the JSON holds {name}, expected finite numbers; correct it")


def _short(digits: str) -> int:
    if len(digits) > 310:
        raise ModelError(f"the JSON holds a whole number of {len(digits)} digits, which is too large; correct it")
    return int(digits)


def quote(value: object) -> str:
    """`repr`, cut short for messages."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(value: Any, place: str) -> float:
    """A finite number, and not a truth value."""
    found = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number beyond the largest float
            found = float(value)
    if not math.isfinite(found):
        raise ModelError(f"{place} is {quote(value)}, expected a finite number")
    return found


def whole(value: Any, place: str, least: int = 0) -> int:
    """A whole number, and not a truth value."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_COUNT:
        raise ModelError(f"{place} is {quote(value)}, expected a whole number from {least} to {LARGEST_COUNT}")
    return value


def flag(value: Any, place: str) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise ModelError(f"{place} is {quote(value)}, expected true or false")
    return value


def some_names(value: Any, kind: str) -> list[str] | None:
    """A list of strings, or None where there are no names."""
    if value is not None and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise ModelError(f"the {kind} names are {quote(value)}, expected a list of strings")
    names: list[str] | None = value
    return names


def unknown(kind: str, value: str, choices: Sequence[str]) -> str:
    """As `unknown_name`, without a list of a thousand states."""
    if len(choices) <= 12:
        return unknown_name(kind, value, choices)
    close = get_close_matches(value, choices[:10_000], n=1, cutoff=0.5)
    hint = f"; did you mean {quote(close[0])}?" if close else "; use a name from the file's own list"
    return f"unknown {kind} {quote(value)}{hint}"


def check_keys(value: Any, place: str, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """An object with exactly the required keys and perhaps some optional ones."""
    if not isinstance(value, dict):
        raise ModelError(f"{place} is {quote(value)}, expected an object {{...}}")
    needed = list(required)
    known = [*needed, *optional]
    allowed = set(known)
    for key in value:
        if key not in allowed:
            raise ModelError(f"{place}: {unknown('key', key, known)}")
    for key in needed:
        if key not in value:
            raise ModelError(f"{place} has no {quote(key)}; add it, or the file is incomplete")
    return value


def check_header(value: Any, form: str = FORMAT) -> None:
    """Refuse what is not one of our files of that format, or one of a later version."""
    if not isinstance(value, dict) or value.get("format") != form:
        what = form.removeprefix("actmeasure ")
        article = "an" if what[0] in "aeiou" else "a"
        found = value.get("format") if isinstance(value, dict) else None
        remedy = f"use a file that {what}.save(path) has written"
        if found == FIT_FORMAT:
            remedy = "it is a fit: say when to inspect with `actmeasure plan`, or write its model with `actmeasure fit --model`"
        elif form == FORMAT:
            remedy = f'if it is meant to be one, add the line "format": "{form}", to it'
        raise ModelError(f"it is not {article} {what} file of actmeasure; {remedy}")
    version = whole(value.get("version", VERSION), "the version", least=1)
    newest = FIT_VERSION if form == FIT_FORMAT else VERSION
    if version > newest:
        raise ModelError(
            f"it has format version {version}, and this actmeasure reads versions up to {newest}; update actmeasure"
        )


def decimal_index(text: str) -> int:
    """The state or action that a plain decimal stands for, or -1."""
    return int(text) if re.fullmatch(r"0|[1-9][0-9]{0,9}", text) else -1


@dataclass
class Parts:
    """What a file says, before it is known to be a model.

    Attributes
    ----------
    offsets, successors, probabilities : arrays as in `Transitions`
    rewards : float64 array, shape (S, A), or None to have them follow from `transition_rewards`
    transition_rewards : float64 array, shape (n_entries,), or None
    terminal : bool array, shape (S,)
    initial : float64 array, shape (S,)
    stated_rewards : mapping from row number to reward
        Expected rewards that a file gives, besides those of the successors, because they differ in the last bits.
    """

    n_states: int
    n_actions: int
    offsets: IntArray
    successors: IntArray
    probabilities: FloatArray
    rewards: FloatArray | None
    transition_rewards: FloatArray | None
    terminal: npt.NDArray[np.bool_]
    initial: FloatArray
    measuring_cost: float | FloatArray
    discount: float
    reveal_start: bool
    state_names: Sequence[str] | None
    action_names: Sequence[str] | None
    stated_rewards: Mapping[int, float] = field(default_factory=dict)

    def model(self) -> Model:
        """The model, once every part is known to be sound and to fit the others; otherwise a `ModelError`."""
        self._check_rows()
        self._check_finite()
        table = Transitions.checked(
            self.n_states, self.n_actions, self.offsets, self.successors, self.probabilities, self.terminal
        )
        return Model.assemble(
            table, self._checked_rewards(table), self.transition_rewards, self.terminal, self.initial,
            self.measuring_cost, self.discount, self.reveal_start, self.state_names, self.action_names,
        )  # fmt: skip

    def _check_rows(self) -> None:
        """What `Transitions.checked` takes for granted: offsets in range, no zeros, empty rows for terminal states."""
        if self.terminal.all():
            raise ModelError("every state is terminal, so no episode can begin; leave at least one state non-terminal")
        if self.offsets.size and (self.offsets.min() < 0 or self.offsets.max() > len(self.successors)):
            raise ModelError("the transition table's row offsets are out of range; the file is damaged")
        if np.any(self.probabilities == 0):
            raise ModelError(
                "the transition table holds a probability of 0, which has no place there; the file is damaged"
            )
        filled = self.terminal & (np.diff(self.offsets).reshape(self.n_states, self.n_actions) != 0).any(axis=1)
        if filled.any():
            state = int(np.argmax(filled))
            raise ModelError(f"state {state} is terminal, but has transitions; remove them, or its terminal mark")

    def _check_finite(self) -> None:
        for name, array in (("a reward", self.rewards), ("the reward of a transition", self.transition_rewards)):
            if array is not None and not np.isfinite(array).all():
                value = float(array[~np.isfinite(array)][0])
                raise ModelError(f"{name} is {value}, expected a finite number; correct it")

    def _checked_rewards(self, table: Transitions) -> FloatArray:
        shape = (self.n_states, self.n_actions)
        if self.transition_rewards is None:
            if self.rewards is None:
                raise ModelError("there are no rewards; add them")
            rewards = self.rewards
        else:
            paid = table.probabilities * self.transition_rewards
            expected: FloatArray = table.stacked(paid).sum(axis=1).reshape(shape)
            rewards = expected.copy() if self.rewards is None else self.rewards
            for row, value in self.stated_rewards.items():
                rewards[divmod(row, self.n_actions)] = value
            allowed = REWARD_ERROR * table.stacked(np.abs(paid)).sum(axis=1).reshape(shape)
            with np.errstate(over="ignore", invalid="ignore"):
                wrong = ~np.isfinite(expected) | (np.abs(rewards - expected) > allowed)
            if wrong.any():
                state, action = divmod(int(np.argmax(wrong)), self.n_actions)
                raise ModelError(
                    f"the expected reward of state {state}, action {action} is {float(rewards[state, action])!r}, but "
                    f"the rewards of its successors give {float(expected[state, action])!r}; the file is damaged"
                )
        paying = self.terminal & (rewards != 0).any(axis=1)
        if paying.any():
            raise ModelError(f"state {int(np.argmax(paying))} is terminal, but has a reward; set it to 0")
        return rewards
