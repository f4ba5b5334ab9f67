"""Numbers and truth values that a user passes, or a sentence that says what was expected instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from operator import index
from typing import Any, TypeVar

import numpy as np

from actmeasure.errors import ActMeasureError, ModelError, quoted, unknown_name

__all__ = [
    "LARGEST_PRICE",
    "LARGEST_RETURN",
    "MOST_EPISODES",
    "MOST_STEPS",
    "make_by_name",
    "probability",
    "real",
    "summary",
    "truth",
    "whole",
]

#: Rewards, and what they may add up to, are no larger than this: differences, squares and products of values stay finite.
LARGEST_RETURN = 1e100
#: What prices of looks may add up to; larger, so that a price can be set that no reward makes up for.
LARGEST_PRICE = 1e120
#: Most steps of an episode: more take longer than anybody waits, in a loop that Ctrl-C cannot stop before an episode ends.
MOST_STEPS = 10**9
#: Most episodes of a run: the results of more fit into no memory.
MOST_EPISODES = 10**9


def real(value: Any, name: str, error: type[ActMeasureError] = ModelError, expected: str = "a number") -> float:
    """A plain float from a number of any kind; text, truth values and everything else are errors that name it."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, Real):
        raise error(f"{name} is {quoted(value)}, expected {expected}")
    try:
        return float(plain)
    except OverflowError as overflow:
        raise error(f"{name} is {quoted(value)}, which is too large; expected {expected}") from overflow


def probability(value: Any, name: str, error: type[ActMeasureError] = ModelError) -> float:
    """A plain float from 0 to 1."""
    expected = "a probability between 0 and 1"
    found = real(value, name, error, expected)
    if not 0 <= found <= 1:
        raise error(f"{name} is {quoted(value)}, expected {expected}")
    return found


def whole(
    value: Any,
    name: str,
    least: int = 0,
    most: int | None = None,
    error: type[ActMeasureError] = ModelError,
    what: str = "a whole number",
) -> int:
    """A plain int from `least` to `most`; fractions, also those that are whole like 2.0, and truth values are errors."""
    try:
        found = index(value)
    except TypeError:
        found = least - 1
    if isinstance(value, bool) or found < least or (most is not None and found > most):
        span = f"from {least} up" if most is None else f"from {least} to {most}"
        raise error(f"{name} is {quoted(value)}, expected {what} {span}")
    return found


def truth(value: Any, name: str, error: type[ActMeasureError] = ModelError) -> bool:
    """A plain bool from Python's or NumPy's; "no" and 0 are not taken for one."""
    plain = _plain(value)
    if not isinstance(plain, bool):
        raise error(f"{name} is {quoted(value)}, expected True or False")
    return plain


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python value it stands for, and None for one that is masked, whose value means nothing."""
    if np.ma.is_masked(value):
        return None
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


# ----------------------------------------------------------------------------------------------------
# Making things by name.
# ----------------------------------------------------------------------------------------------------


T = TypeVar("T")


def make_by_name(
    kind: str,
    name: str,
    choices: Mapping[str, Callable[..., T]],
    settings: Mapping[str, Any],
    error: type[ActMeasureError],
    also: Iterable[str] = (),
) -> T:
    """Call the choice of that name; unknown or missing names and settings are errors that say what was probably meant.

    Settings named in `also` are the caller's own; they are among those that may have been meant.
    """
    if not isinstance(name, str) or name not in choices:
        raise error(unknown_name(kind, name, choices))
    parameters = inspect.signature(choices[name]).parameters
    for setting in settings:
        if setting not in parameters:
            raise error(unknown_name(f"setting of {name}", setting, {*parameters, *also}))
    needed = [key for key, value in parameters.items() if value.default is inspect.Parameter.empty]
    missing = [key for key in needed if key not in settings]
    if missing:
        raise error(f"the {kind} {name!r} needs {' and '.join(missing)}; pass {missing[0]}=...")
    return choices[name](**settings)


def summary(thing: object) -> str:
    """The first sentence of a docstring."""
    return inspect.cleandoc(thing.__doc__ or "").splitlines()[0]
