"""Strict JSON, the shapes of what it holds, and the header of this package's formats.

Shapes are `msgspec` structs, converted by `converted`, whose messages name the key, the value and what is expected. Parsing is
left to the standard library: `msgspec` accepts a key that is given twice in an object, and tells neither line nor column.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

import msgspec

from actmeasure.errors import ModelError, quoted, unknown_name
from actmeasure.files.toml_lines import KeyPath

__all__ = [
    "FIT_FORMAT", "FIT_VERSION", "FORMAT", "VERSION", "Count", "Names", "Number", "Strict", "Whole", "check_header",
    "check_keys", "converted", "decimal_index", "number", "parse_json", "unknown",
    "validation_path", "whole",
]  # fmt: skip

FORMAT = "actmeasure model"
FIT_FORMAT = "actmeasure fit"
#: Newest version of the format of models; version 1 has one exact measurement, "look", and nothing passive.
VERSION = 2
#: Version of the format of fits; since 2 their diagnostics are records, since 3 there are intensities, errors and ages.
FIT_VERSION = 3
#: Largest whole number in a file: successors are 32-bit integers.
LARGEST_COUNT = 2**31 - 1
#: Longest whole number that is parsed: the largest float has 309 digits before the decimal point.
MOST_DIGITS = 310

#: A finite number; whole numbers are converted to float, truth values are refused.
Number = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
#: A whole number from 0 to `LARGEST_COUNT`.
Whole = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
#: A whole number from 1 to `LARGEST_COUNT`.
Count = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_COUNT)]

T = TypeVar("T")


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """Base class of the shapes of JSON objects: unknown keys are errors, and so are required keys that are missing."""


def parse_json(text: str) -> Any:
    """Parse JSON and refuse what the standard parser accepts: repeated keys, NaN, infinity, integers of any length."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_int=_short_integer)
    except RecursionError as error:
        raise ModelError("the JSON is nested too deeply to be a model; the file is damaged") from error
    except json.JSONDecodeError as error:
        raise ModelError(
            f"line {error.lineno}, column {error.colno} is not valid JSON ({error.msg}); the file is damaged or incomplete"
        ) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these keys and values; a key that occurs twice is an error."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in mapping if keys.count(key) > 1)
        raise ModelError(f"the key {quoted(twice)} is given twice in one object; remove one of the two")
    return mapping


def _refuse_constant(name: str) -> float:
    raise ModelError(f"the JSON holds {name}, expected finite numbers; correct it")


def _short_integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ModelError(f"the JSON holds a whole number of {len(digits)} digits, which is too large; correct it")
    return int(digits)


#: A message of `msgspec` about a key.
KEY_MESSAGE = re.compile("Object (?:missing required|contains unknown) field `(.*)`", re.DOTALL)


def validation_path(error: msgspec.ValidationError, data: Mapping[str, object]) -> tuple[KeyPath, str | None]:
    """Return the path to the value in `data` that msgspec refused, and the key that it lacks or must not have, or None.

    The path ends before a mapping with arbitrary keys, which msgspec does not name.

    Examples
    --------
    >>> data = {"part": [{"seeds": [1, "two"]}]}
    >>> validation_path(msgspec.ValidationError("Expected `int`, got `str` - at `$.part[0].seeds[1]`"), data)
    (('part', 0, 'seeds', 1), None)
    >>> validation_path(msgspec.ValidationError("Object contains unknown field `sedes` - at `$.part[0]`"), data)
    (('part', 0), 'sedes')
    """
    outermost = KEY_MESSAGE.fullmatch(str(error))
    if outermost and outermost[1] in data:  # a key of the user may look like a path
        return (), outermost[1]
    problem, path = _problem_and_path(str(error))
    key = KEY_MESSAGE.fullmatch(problem)
    named = tuple(part for part in path[: path.index(None) if None in path else None] if part is not None)
    return named, key[1] if key else None


def _problem_and_path(message: str) -> tuple[str, list[str | int | None]]:
    """Split a message of `msgspec`, such as "Expected `float`, got `str` - at `$.start[...]`"; None stands for "[...]"."""
    problem, at, path = message.rpartition(" - at `$")
    parts = re.findall(r"\.(\w+)|\[([0-9]+|\.\.\.)\]", path) if at else []
    return problem if at else message, [name or (None if index == "..." else int(index)) for name, index in parts]


def converted(value: Any, shape: type[T], location: str = "") -> T:
    """Convert parsed JSON to a struct or type, strictly; a `ModelError` names the key, its value and what is expected.

    Parameters
    ----------
    value : parsed JSON
    shape : type
        A subclass of `Strict` without structs inside, or any type that `msgspec.convert` knows. Values of mappings are `Number`.
    location : str
        Where the value stands in the file; empty for the whole file.

    Examples
    --------
    >>> class Row(Strict):
    ...     to: dict[str, Number]
    >>> converted({"to": {"end": "1"}}, Row, "transitions[2]")
    Traceback (most recent call last):
        ...
    actmeasure.errors.ModelError: transitions[2]: 'to' of 'end' is '1', expected a finite number
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise ModelError(_sentence(str(error), value, shape, location)) from error
    except UnicodeEncodeError as error:  # half a surrogate pair, which no key of a struct has
        raise ModelError(_unknown_key(error.object, shape, location)) from error


def _sentence(message: str, value: Any, shape: Any, location: str) -> str:
    """Word a message of `msgspec` about a value."""
    if key := KEY_MESSAGE.fullmatch(message):
        if key[1] in value:
            return _unknown_key(key[1], shape, location)
        return f"{location or 'it'} has no {quoted(key[1])}; add it, or the file is incomplete"
    problem, path = _problem_and_path(message)
    where, value_there = _at_path(value, path)
    separator = ": " if location and where[:1] == "'" else ""
    return f"{location}{separator}{where} is {quoted(value_there)}, expected {_expected(problem)}"


def _unknown_key(key: str, shape: Any, location: str) -> str:
    return f"{location}{': ' if location else ''}{unknown('key', key, shape.__struct_fields__)}"


def _at_path(value: Any, path: Iterable[str | int | None]) -> tuple[str, Any]:
    """Return words for a path, such as `'states'[1]`, and the value that stands there."""
    words = ""
    for part in path:
        if part is None:  # `msgspec` does not tell the key of a mapping's value
            key = next(key for key, number in value.items() if not _is_finite(number))
            return f"{words!r} of {quoted(key)}", value[key]
        words, value = part if isinstance(part, str) else f"{words}[{part}]", value[part]
    return (words if words[:1] in ("", "[") else repr(words)), value


def _is_finite(value: Any) -> bool:
    try:
        msgspec.convert(value, Number)
    except msgspec.ValidationError:
        return False
    return True


#: Words for the types in the messages of `msgspec`.
TYPES = {
    "float": "a finite number", "int": "a whole number", "bool": "true or false", "str": "a string", "array": "a list",
    "object": "an object {...}",
}  # fmt: skip


def _expected(problem: str) -> str:
    """Word what was expected, from a message such as "Expected `int | array`, got `str`" or "Expected `int` >= 1"."""
    stated = re.match("Expected `([a-z |]+)`(?: ([<>]=) ([0-9]+)$)?", problem)
    if stated is None:  # "Number out of range", for a whole number that is too large for a float
        return TYPES["float"]
    words = " or ".join(TYPES[kind] for kind in stated[1].split(" | ") if kind in TYPES)
    return words if stated[2] is None else f"{words} of at {'least' if stated[2] == '>=' else 'most'} {stated[3]}"


def number(value: Any, location: str) -> float:
    """Return a finite number as a float; anything else, truth values included, is a `ModelError`."""
    return converted(value, Number, location)


def whole(value: Any, location: str, least: int = 0) -> int:
    """Return a whole number of at least `least`; anything else, truth values included, is a `ModelError`."""
    return converted(value, Annotated[int, msgspec.Meta(ge=least, le=LARGEST_COUNT)], location)  # type: ignore[arg-type]


def unknown(kind: str, value: str, choices: Sequence[str]) -> str:
    """Return the sentence of `unknown_name`; of more than twelve choices only the closest is mentioned."""
    if len(choices) <= 12:
        return unknown_name(kind, value, choices)
    close = get_close_matches(value, choices[:10_000], n=1, cutoff=0.5)
    hint = f"; did you mean {quoted(close[0])}?" if close else "; use a name from the file's own list"
    return f"unknown {kind} {quoted(value)}{hint}"


def check_keys(value: Any, location: str, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return an object that has all required keys and no others but optional ones, for keys that depend on other data."""
    if not isinstance(value, dict):
        raise ModelError(f"{location} is {quoted(value)}, expected an object {{...}}")
    needed = list(required)
    known = [*needed, *optional]
    allowed = set(known)
    for key in value:
        if key not in allowed:
            raise ModelError(f"{location}: {unknown('key', key, known)}")
    for key in needed:
        if key not in value:
            raise ModelError(f"{location} has no {quoted(key)}; add it, or the file is incomplete")
    return value


def check_header(value: Any, form: str = FORMAT, latest: int | None = None) -> None:
    """Raise a `ModelError` for JSON that is not of the format `form`, or of a version above `latest`, by default the newest."""
    if latest is None:
        latest = FIT_VERSION if form == FIT_FORMAT else VERSION
    if not isinstance(value, dict) or value.get("format") != form:
        what = form.removeprefix("actmeasure ")
        article = "an" if what[0] in "aeiou" else "a"
        format_there = value.get("format") if isinstance(value, dict) else None
        remedy = f"use a file that {what}.save(path) has written"
        if format_there == FIT_FORMAT:
            remedy = "it is a fit: say when to inspect with `actmeasure plan`, or write its model with `actmeasure fit --model`"
        elif form == FORMAT:
            remedy = f'if it is meant to be one, add the line "format": "{form}", to it'
        raise ModelError(f"it is not {article} {what} file of actmeasure; {remedy}")
    version = whole(value.get("version", latest), "the version", least=1)
    if version > latest:
        raise ModelError(
            f"it has format version {version}, and this actmeasure reads versions up to {latest}; update actmeasure"
        )


def decimal_index(text: str) -> int:
    """Return the number that a plain decimal such as "12" stands for, or -1 for any other text."""
    return int(text) if re.fullmatch(r"0|[1-9][0-9]{0,9}", text) else -1


@dataclass
class Names:
    """The states, actions or outcomes of a file, referred to by name or, where they have no names, by number."""

    kind: str
    count: int
    names: list[str] | None
    index_of: dict[str, int]

    @classmethod
    def of(cls, names: int | list[str], kind: str, most: int) -> Names:
        """Return the names in a list, or as many unnamed states or actions as a count says, of which there are at `most`."""
        if isinstance(names, int):
            if names > most:
                raise ModelError(
                    f"there are {names} {kind}s, but only {most} lines that could describe them; complete the file"
                )
            return cls(kind, names, None, {})
        if not names:
            raise ModelError(f"'{kind}s' is empty, expected at least one {kind}")
        index_of = {name: index for index, name in enumerate(names)}
        if len(index_of) != len(names):
            twice = next(name for index, name in enumerate(names) if index_of[name] != index)
            raise ModelError(f"'{kind}s' has {quoted(twice)} more than once; give every {kind} a name of its own")
        return cls(kind, len(names), names, index_of)

    def index(self, value: int | str, location: str) -> int:
        """Return the number of a state or action that is given by name, or by number where there are no names."""
        if self.names is not None:
            if not isinstance(value, str):
                raise ModelError(
                    f"{location}: {quoted(value)} is no name of {self.kind}; the {self.kind}s have names, use them"
                )
            return self.key(value, location)
        if not isinstance(value, int) or not 0 <= value < self.count:
            raise ModelError(
                f"{location}: {self.kind} is {quoted(value)}, expected a whole number from 0 to {self.count - 1}"
            )
        return value

    def key(self, text: str, location: str) -> int:
        """Return the number of a state that is given as a key of an object, which is always a string."""
        if self.names is not None:
            index = self.index_of.get(text, -1)
            if index < 0:
                raise ModelError(f"{location}: {unknown(self.kind, text, self.names)}")
            return index
        index = decimal_index(text)
        if not 0 <= index < self.count:
            raise ModelError(f"{location}: unknown {self.kind} {quoted(text)}; use numbers from 0 to {self.count - 1}")
        return index
