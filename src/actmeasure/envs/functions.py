"""Measurements that are functions of the true observation of an environment, for `ActiveMeasuring`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from operator import index
from typing import Any

import numpy as np
from gymnasium import spaces

from actmeasure.envs.contract import Where, place
from actmeasure.errors import SpaceError, first_repeated, quoted
from actmeasure.model.measurement import checked_price

__all__ = ["FunctionMeasurement", "function_measurements", "with_filler"]

#: Entries of an observation that are not results of functions, so that no measurement can have these names.
RESERVED = ("measurement", "start")


class FunctionMeasurement:
    """A measurement whose outcome is a function of the true observation.

    Attributes
    ----------
    name : str
    cost : float
    function : callable
        Of the observation, or of the observation and a random generator, if it takes two arguments or one named `rng`.
    output : gymnasium.spaces.Discrete or Box
        The space of its results, as it was declared.
    space : gymnasium.spaces.Discrete or Box
        With a value for *not measured*.
    filler : int or array
        That value.
    """

    def __init__(self, name: str, cost: Any, function: Any, output: Any) -> None:
        if not isinstance(name, str) or not name.strip() or name in RESERVED:
            raise SpaceError(
                f"the name of a measurement is {quoted(name)}, expected a string other than {' and '.join(map(repr, RESERVED))}"
            )
        self.name, self.cost = name, checked_price(cost, f"the cost of the measurement {name!r}")
        self._rng_as = _how_rng_is_passed(function, name)
        self.function, self.output = function, output
        if not isinstance(output, spaces.Discrete | spaces.Box):
            raise SpaceError(
                f"the output space of the measurement {name!r} is {quoted(output)}, expected a gymnasium.spaces.Discrete or Box; "
                "let the function return a number or an array"
            )
        self.space, self.filler = with_filler(output)

    def result(self, observation: Any, rng: np.random.Generator, where: Where) -> Any:
        """Return the function's result as a value of the space; one outside of `output` is a `SpaceError`."""
        if self._rng_as == "not":
            given = self.function(observation)
        else:
            given = (
                self.function(observation, rng) if self._rng_as != "keyword" else self.function(observation, rng=rng)
            )
        found = _whole_number(given) if isinstance(self.output, spaces.Discrete) else _array(given, self.output)
        if found is None or not self.output.contains(found):
            raise SpaceError(
                f"the measurement {self.name!r} returned {quoted(given)} {place(where)}, expected a value of {self.output}, the "
                "space that was declared for it; correct the function, or the space"
            )
        return found


def function_measurements(given: Any) -> tuple[FunctionMeasurement, ...]:
    """Return the measurements that were given as (name, price, function, output space)."""
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    found = []
    for entry in listed:
        if not isinstance(entry, tuple | list) or len(entry) != 4:
            raise SpaceError(
                f"a measurement is {quoted(entry)}, expected (name, price, function, output space), such as "
                "('coarse', 0.01, lambda observation: observation // 10, gymnasium.spaces.Discrete(50))"
            )
        found.append(FunctionMeasurement(*entry))
    if not found:
        raise SpaceError(
            f"measurements are {quoted(given)}, expected a list of at least one (name, price, function, output space)"
        )
    names = [measurement.name for measurement in found]
    twice = first_repeated(names)
    if twice is not None:
        raise SpaceError(f"two measurements are named {twice!r}; give each a name of its own")
    return tuple(found)


def with_filler(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], Any]:
    """Return a Discrete or Box space that has room for a filler, and the filler: one more number, or zeros."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n) + 1, start=int(space.start)), int(space.start) + int(space.n)
    assert isinstance(space, spaces.Box)
    low, high = np.minimum(space.low, 0), np.maximum(space.high, 0)
    box = spaces.Box(low.astype(space.dtype), high.astype(space.dtype), space.shape, space.dtype.type)
    return box, np.zeros(space.shape, dtype=space.dtype)


def _how_rng_is_passed(function: Any, name: str) -> str:
    """Return how a function takes a random generator, by its signature: "second argument", "keyword" or "not"."""
    if not callable(function):
        raise SpaceError(f"the function of the measurement {name!r} is {quoted(function)}, expected a function")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some functions in C, which have no signature
        return "not"
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    others = [p for p in parameters.values() if p.kind == p.KEYWORD_ONLY and p.default is p.empty and p.name != "rng"]
    takes_one = len(required) == 1 or positional or any(p.kind == p.VAR_POSITIONAL for p in parameters.values())
    if len(required) > 2 or others or not takes_one:
        raise SpaceError(
            f"the function of the measurement {name!r} takes ({', '.join(parameters)}), expected (observation), or (observation, "
            "rng) for random results"
        )
    if len(required) == 2:
        return "second argument"
    return "keyword" if "rng" in parameters and parameters["rng"] not in required else "not"


def _whole_number(given: Any) -> int | None:
    try:
        return None if isinstance(given, bool | np.bool_) or np.ndim(given) else index(given)
    except (TypeError, ValueError):
        return None


def _array(given: Any, space: spaces.Box) -> Any:
    """Return a copy as an array of the type of a Box; None where it has another shape or kind."""
    try:
        found = np.array(given)
    except (TypeError, ValueError):
        return None
    if found.shape != space.shape or found.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        converted = found.astype(space.dtype)
    is_same = space.dtype.kind == "f" or np.array_equal(converted, found)
    return converted if is_same else None
