"""Typed errors. Every message is a sentence: what is wrong, where, what was got, what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

__all__ = [
    "ActMeasureError",
    "AgentError",
    "FitError",
    "MissingExtraError",
    "ModelError",
    "ModelWarning",
    "NotCoveredError",
    "PlanError",
    "ScheduleError",
    "SpaceError",
    "StudyError",
    "counted",
    "first_line",
    "first_repeated",
    "import_extra",
    "quoted",
    "shown",
    "unknown_name",
]


#: Most characters of a value in a message.
QUOTED_LENGTH = 60
#: Unicode categories that are escaped: control and format characters, lone surrogates, line and paragraph separators.
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def shown(text: str, keep: str = "") -> str:
    r"""Return text for display: control characters and invisible ones are escaped as in Python.

    Names in files may hold any character. They are kept unchanged as data, and pass through this function before they are shown.

    Parameters
    ----------
    text : str
    keep : str
        Characters that are left alone, such as the line breaks of a text of several lines.

    Examples
    --------
    >>> shown("pump\x1b[31m A\u202e")
    'pump\\x1b[31m A\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(
        ascii(sign)[1:-1] if unicodedata.category(sign) in HIDDEN and sign not in keep else sign for sign in text
    )


def quoted(value: object) -> str:
    """Return the `repr` of any value, cut to `QUOTED_LENGTH` characters, the end left out; never raises.

    Integers of thousands of digits and classes with a faulty `__repr__` have none: their type is named instead.

    Examples
    --------
    >>> quoted("pump"), quoted(10**5000)
    ("'pump'", 'a value of type int that cannot be shown')
    """
    try:
        text = repr(value)
    except Exception:  # repr runs the user's code
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= QUOTED_LENGTH else f"{text[: QUOTED_LENGTH - 3]}..."


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or the name of its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: `1 action`, `2,000 actions`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class ActMeasureError(Exception):
    """Base class of all errors of actmeasure."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(shown(one) if isinstance(one, str) else one for one in arguments))


class ModelError(ActMeasureError, ValueError):
    """A model, or a file or name that should give one, is not valid."""


class ModelWarning(UserWarning):
    """A model is valid, but has something that is probably a mistake."""


class ScheduleError(ActMeasureError, ValueError):
    """A schedule, plan or policy does not fit the model it is used with."""


class PlanError(ActMeasureError, ValueError):
    """A planning method, its settings or what it is to plan for are not valid."""


class NotCoveredError(PlanError):
    """Bounds of this kind cannot be certified yet; commands end with exit code 4."""


class AgentError(ActMeasureError, ValueError):
    """An agent, its settings or the task it is given are not valid."""


class FitError(ActMeasureError, ValueError):
    """Records of inspections, prices or what is to be fitted to them are not valid."""


class SpaceError(ActMeasureError, ValueError):
    """A Gymnasium environment has a space or contract that cannot be used here."""


class StudyError(ActMeasureError, ValueError):
    """A study, the file that describes it or the folder of its results is not valid or cannot be used."""


class MissingExtraError(ActMeasureError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the optional extra {extra!r}, which is not installed; "
            f"install it with: pip install 'actmeasure[{extra}]'"
        )


def import_extra(module: str, feature: str, extra: str) -> Any:
    """Return an optional module; a `MissingExtraError` says what needs it and how to install it."""
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time, or None.

    Examples
    --------
    >>> first_repeated(["visual", "opening", "visual"])
    'visual'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> str:
    """Return the sentence that `name` is not one of `choices`, with the one that was probably meant."""
    known = sorted(choices)
    meant = _probably_meant(str(name), known)
    if meant is None:
        return f"unknown {kind} {quoted(name)}; choose one of: {', '.join(known)}"
    return f"unknown {kind} {quoted(name)}; did you mean {meant!r}? Choose one of: {', '.join(known)}"


def _probably_meant(name: str, known: list[str]) -> str | None:
    """Return the choice that has `name` as one of its words, otherwise the one with the most similar spelling, or None."""
    with_word = [choice for choice in known if name.lower() in re.split("[-_ ]", choice.lower())]
    lowered = {choice.lower(): choice for choice in known}
    close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)]
    return with_word[0] if len(with_word) == 1 else next(iter(close), None)
