"""Checks of a user's arguments: numbers, truth values and names, each with an error that says what was expected."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from importlib import import_module
from numbers import Real
from operator import index
from typing import Any, TypeGuard, TypeVar

import numpy as np

from actmeasure.errors import ActMeasureError, ModelError, quoted, unknown_name

__all__ = [
    "LARGEST_EXACT",
    "LARGEST_INTEGER",
    "LARGEST_PRICE",
    "LARGEST_RETURN",
    "MOST_EPISODES",
    "MOST_STEPS",
    "amount",
    "between_0_and_1",
    "discount_factor",
    "imported",
    "is_import_name",
    "make_by_name",
    "probability",
    "real",
    "summary",
    "truth",
    "whole",
]

#: Largest reward and largest return: differences, squares and products of values stay finite.
LARGEST_RETURN = 1e100
#: Largest discounted sum of measuring costs; above `LARGEST_RETURN`, so that a price can outweigh every reward.
LARGEST_PRICE = 1e120
#: Largest number of steps of an episode, which Ctrl-C cannot interrupt.
MOST_STEPS = 10**9
#: Largest number of episodes of a run, whose results are kept in memory.
MOST_EPISODES = 10**9
#: Largest number that fits into a column of a table, and into a kernel.
LARGEST_INTEGER = 2**63 - 1
#: Largest count in files: up to it, every whole number is a float64.
LARGEST_EXACT = 1 << 53


def real(value: Any, name: str, error: type[ActMeasureError] = ModelError, expected: str = "a number") -> float:
    """Return a number of any type as a float; for text, truth values and anything else raise `error` with the name."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, Real):
        raise error(f"{name} is {quoted(value)}, expected {expected}")
    try:
        return float(plain)
    except OverflowError as overflow:
        raise error(f"{name} is {quoted(value)}, which is too large; expected {expected}") from overflow


def probability(value: Any, name: str, error: type[ActMeasureError] = ModelError) -> float:
    """Return a number from 0 to 1 as a float, or raise `error`."""
    expected = "a probability between 0 and 1"
    number = real(value, name, error, expected)
    if not 0 <= number <= 1:
        raise error(f"{name} is {quoted(value)}, expected {expected}")
    return number


def between_0_and_1(value: Any, name: str, error: type[ActMeasureError], such_as: float = 0.9) -> float:
    """Return a number above 0 and below 1 as a float, or raise `error`."""
    number = real(value, name, error)
    if not 0 < number < 1:
        raise error(f"{name} is {quoted(value)}, expected a number between 0 and 1 such as {such_as:g}")
    return number


def amount(
    value: Any,
    name: str,
    above_zero: bool = False,
    error: type[ActMeasureError] = ModelError,
    expected: str | None = None,
) -> float:
    """Return a finite number of 0 or more, or above 0, as a float, or raise `error`."""
    expected = expected or ("a finite number above 0" if above_zero else "a finite number that is 0 or more")
    number = real(value, name, error, expected)
    if not 0 <= number < np.inf or (above_zero and number == 0):
        raise error(f"{name} is {value!r}, expected {expected}")
    return number


def discount_factor(value: Any, name: str, error: type[ActMeasureError] = ModelError) -> float:
    """Return a number above 0 and at most 1 as a float, or raise `error`."""
    expected = "a number above 0 and at most 1, such as 0.95"
    number = real(value, name, error, expected)
    if not 0 < number <= 1:
        raise error(f"{name} is {quoted(value)}, expected {expected}")
    return number


def whole(
    value: Any,
    name: str,
    least: int = 0,
    most: int | None = None,
    error: type[ActMeasureError] = ModelError,
    what: str = "a whole number",
) -> int:
    """Return a whole number from `least` to `most` as an int, or raise `error`, also for 2.0 and truth values."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        span = f"from {least} up" if most is None else f"from {least} to {most}"
        raise error(f"{name} is {quoted(value)}, expected {what} {span}")
    return number


def truth(value: Any, name: str, error: type[ActMeasureError] = ModelError) -> bool:
    """Return a truth value of Python or NumPy as a bool, or raise `error`, also for 0, 1 and text."""
    plain = _plain(value)
    if not isinstance(plain, bool):
        raise error(f"{name} is {quoted(value)}, expected True or False")
    return plain


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value, None if it is masked."""
    if np.ma.is_masked(value):
        return None
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


#: A name `package.module:Name`, which is imported.
IMPORT_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_import_name(name: Any) -> TypeGuard[str]:
    """Return whether a name has the form `package.module:Name`.

    Examples
    --------
    >>> is_import_name("my_agents.fast:Surprised"), is_import_name("atmq"), is_import_name("model.json")
    (True, False, False)
    """
    return isinstance(name, str) and IMPORT_NAME.fullmatch(name) is not None


def imported(kind: str, name: str, error: type[ActMeasureError]) -> Any:
    """Import what a name `package.module:Name` stands for; what goes wrong is an `error` that calls it a `kind`."""
    module, _, attribute = name.partition(":")
    try:
        return reduce(getattr, attribute.split("."), import_module(module))
    except (Exception, SystemExit) as problem:  # whatever a module raises when it is imported
        raise error(
            f"the {kind} {quoted(name)} cannot be imported: {type(problem).__name__}: {problem}; expected package.module:Name of "
            "a module that is installed, on the path of Python, or beside the study file"
        ) from problem


T = TypeVar("T")


def make_by_name(
    kind: str,
    name: str,
    choices: Mapping[str, Callable[..., T]],
    settings: Mapping[str, Any],
    error: type[ActMeasureError],
    also: Iterable[str] = (),
) -> T:
    """Call the function of that name with settings; unknown names and settings are errors that say what was probably meant.

    A name `package.module:Name` is imported. `also` has further settings, which the caller takes itself, to be suggested for
    unknown ones.
    """
    if is_import_name(name) and name not in choices:
        choices = {name: imported(kind, name, error)}
        if not callable(choices[name]):
            raise error(f"the {kind} {name!r} is {quoted(choices[name])}, expected a class or function")
    if not isinstance(name, str) or name not in choices:
        raise error(unknown_name(kind, name, choices))
    parameters = inspect.signature(choices[name]).parameters
    several = [key for key, value in parameters.items() if value.kind in (value.VAR_POSITIONAL, value.VAR_KEYWORD)]
    takes_any = any(value.kind is value.VAR_KEYWORD for value in parameters.values())
    for setting in settings:
        if (setting not in parameters or setting in several) and not takes_any:
            raise error(unknown_name(f"setting of {name}", setting, {*parameters, *also}))
    needed = [
        key for key, value in parameters.items() if value.default is inspect.Parameter.empty and key not in several
    ]
    missing = [key for key in needed if key not in settings]
    if missing:
        raise error(f"the {kind} {name!r} needs {' and '.join(missing)}; pass {missing[0]}=...")
    if choices[name].__module__.partition(".")[0] == "actmeasure":
        return choices[name](**settings)
    try:
        return choices[name](**settings)
    except ActMeasureError:
        raise
    except Exception as problem:  # whatever code from outside raises
        raise error(
            f"the {kind} {name!r} cannot be made: {type(problem).__name__}: {problem}; correct it, or its settings"
        ) from problem


def summary(documented: object) -> str:
    """Return the first line of a docstring, or nothing."""
    return next(iter(inspect.cleandoc(documented.__doc__ or "").splitlines()), "")
