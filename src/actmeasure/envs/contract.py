"""Checks of the values that an environment returns from `reset` and `step`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import SpaceError, counted, quoted
from actmeasure.settings import LARGEST_RETURN, real

__all__ = [
    "Where",
    "checked_box",
    "checked_flag",
    "checked_observation",
    "checked_reward",
    "location",
    "reset_parts",
    "step_parts",
]

#: Episode and step of a run. All checks are made in every step of every episode, so they format it only for an error, and accept
#: the usual types after a single comparison.
Where = tuple[int, int]


def location(where: Where) -> str:
    """Return `at the start of episode 2` or `in step 3 of episode 2`, for messages."""
    episode, step = where
    return f"at the start of episode {episode}" if step == 0 else f"in step {step} of episode {episode}"


def reset_parts(given: Any, where: Where) -> tuple[Any, Mapping[str, Any]]:
    """Return observation and info of what `reset` returned; anything but these two is a `SpaceError`."""
    if type(given) is tuple and len(given) == 2 and type(given[1]) is dict:
        return given
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise SpaceError(
            f"reset() of the environment returned {_shown(given)} {location(where)}, expected (observation, info); "
            "bring the environment to Gymnasium's present interface"
        )
    return given[0], _checked_info(given[1], where)


def step_parts(given: Any, where: Where) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
    """Return the five parts of what `step` returned, of which observation and reward are still to be checked."""
    if not isinstance(given, tuple | list) or len(given) != 5:
        raise SpaceError(
            f"step() of the environment returned {_shown(given)} {location(where)}, expected (observation, reward, terminated, "
            "truncated, info); bring the environment to Gymnasium's present interface"
        )
    observation, reward, terminated, truncated, info = given
    if type(terminated) is not bool:
        terminated = checked_flag(terminated, "terminated", where)
    if type(truncated) is not bool:
        truncated = checked_flag(truncated, "truncated", where)
    if type(info) is not dict:
        info = _checked_info(info, where)
    return observation, reward, terminated, truncated, info


def checked_observation(value: Any, first: int, last: int, where: Where) -> int:
    """Return an observation of a Discrete space from `first` to `last` as a plain int; anything else is a `SpaceError`."""
    if type(value) is int and first <= value <= last:
        return value
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = index(value)  # raises for floats, text and None; accepts NumPy's integers and arrays of shape ()
    except TypeError:
        number = first - 1
    if not first <= number <= last or np.ndim(value):
        raise SpaceError(
            f"the environment's observation is {quoted(value)} {location(where)}, expected a whole number from {first} to "
            f"{last}, as its observation space says; correct the environment, or its space"
        )
    return number


def checked_box(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], where: Where) -> npt.NDArray[Any]:
    """Return a copy of an observation of a Box space; one of another shape or kind is a `SpaceError`.

    So is one with numbers that the type of the space cannot hold: it would become another observation.
    """
    try:
        array = np.array(value)
        fits = array.shape == shape and array.dtype.kind in "biuf"
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise SpaceError(
            f"the environment's observation is {quoted(value)} {location(where)}, expected numbers of shape {shape}, as its "
            "observation space says; correct the environment, or its space"
        )
    if array.dtype == dtype:
        return array
    if dtype.kind in "biu" and not _are_whole(array, dtype):
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        raise SpaceError(
            f"the environment's observation is {quoted(value)} {location(where)}, expected whole numbers from {least} to {most}, "
            f"as its observation space of type {dtype} says; correct the environment, or its space"
        )
    with np.errstate(over="ignore"):
        converted = array.astype(dtype, copy=False)
    if dtype.kind == "f" and not np.array_equal(np.isinf(converted), np.isinf(array)):
        raise SpaceError(
            f"the environment's observation is {quoted(value)} {location(where)}, expected numbers of at most "
            f"{np.finfo(dtype).max:g} in size, as its observation space of type {dtype} says; correct the environment, or its "
            "space"
        )
    return converted


def _are_whole(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether all are whole numbers within the range of an integer or boolean type."""
    if array.dtype.kind == "f" and not (np.isfinite(array) & (np.floor(array) == array)).all():
        return False
    if not array.size or array.dtype.kind == "b":
        return True
    least, most = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return least <= int(array.min()) and int(array.max()) <= most


def checked_reward(value: Any, what: str, where: Where) -> float:
    """Return a number that an environment pays or charges as a plain, finite float; anything else is a `SpaceError`."""
    if type(value) is float and -LARGEST_RETURN <= value <= LARGEST_RETURN:
        return value
    try:
        reward = real(value, what, SpaceError)
    except SpaceError:
        reward = np.nan
    if not -LARGEST_RETURN <= reward <= LARGEST_RETURN:
        raise SpaceError(
            f"{what} is {quoted(value)} {location(where)}, expected one finite number of at most {LARGEST_RETURN:g} in size; "
            "correct the environment"
        )
    return reward


def checked_flag(value: Any, what: str, where: Where) -> bool:
    """Return a truth value as a plain bool; anything else, 0 and 1 included, is a `SpaceError`."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value.item()
    if not isinstance(value, bool | np.bool_):
        raise SpaceError(
            f"{what!r} of the environment is {quoted(value)} {location(where)}, expected True or False; correct the environment"
        )
    return bool(value)


def _checked_info(value: Any, where: Where) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpaceError(
            f"info of the environment is {quoted(value)} {location(where)}, expected a dictionary, which may be empty; "
            "correct the environment"
        )
    return value


def _shown(given: Any) -> str:
    if not isinstance(given, tuple | list):
        return f"{quoted(given)}"
    return counted(len(given), "value")
