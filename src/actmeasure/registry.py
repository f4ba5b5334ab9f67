"""Making things by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from actmeasure.errors import ActMeasureError, unknown_name

__all__ = ["make_by_name", "summary"]

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
