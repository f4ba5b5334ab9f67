"""Sweeps: settings with a list of values where one is expected, and the combinations of values that they stand for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from itertools import product
from math import isfinite
from typing import Any

from gymnasium.envs.registration import load_env_creator

from actmeasure import learning, problems
from actmeasure.envs.registration import environment_id, register_environments
from actmeasure.errors import ActMeasureError, StudyError, quoted
from actmeasure.settings import imported, is_import_name

__all__ = ["Sweep", "is_sweep", "swept_settings", "unset_settings"]

#: The key of a table that stands for a sweep, whatever the setting takes.
VALUES = "values"
#: Types, as they are written in annotations, of settings that take one value.
SCALARS = re.compile(r"(int|float|str|bool|None|Literal\[.*\])")
#: Most problems or agents that the sweeps of one of them give.
MOST_COMBINATIONS = 1000


@dataclass(frozen=True)
class Sweep:
    """The sweep that a problem or agent belongs to.

    Attributes
    ----------
    label : str
        Label that all of them have in common.
    values : mapping
        The value of each swept setting, by name.
    """

    label: str
    values: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"label": self.label, "values": dict(self.values)}


def swept_settings(
    what: str, name: str, settings: Mapping[str, Any], always: Collection[str] = ()
) -> list[dict[str, Any]] | None:
    """Return every combination of the values of swept settings; None where none is swept.

    A list is a sweep where the setting takes one value, by its annotation or, without one, by its default. Where a list is a
    value, or where it cannot be told, it stays one; `{values = [...]}` is a sweep always.

    Parameters
    ----------
    what : "problem" or "agent"
    name : str
    settings : mapping
    always : collection of str
        Settings that take one value in any case.
    """
    listed = {key: value for key, value in settings.items() if isinstance(value, (list, tuple)) or is_sweep(value)}
    if not listed:
        return None
    parameters = _parameters(what, name)
    swept: dict[str, list[Any]] = {}
    for key, value in listed.items():
        if isinstance(value, Mapping):
            swept[key] = _checked(value[VALUES], key)
        elif key in always or (key in parameters and _takes_one_value(parameters[key])):
            swept[key] = _checked(value, key)
    if not swept:
        return None
    combinations = [dict(zip(swept, values, strict=True)) for values in product(*swept.values())]
    if len(combinations) > MOST_COMBINATIONS:
        raise StudyError(
            f"the sweep of {', '.join(swept)} gives {len(combinations):,} {what}s, expected {MOST_COMBINATIONS:,} at most; give "
            "fewer values"
        )
    return combinations


def is_sweep(value: Any) -> bool:
    """Return whether a value is a table `{values = [...]}`, which is a sweep whatever the setting takes."""
    return isinstance(value, Mapping) and set(value) == {VALUES} and isinstance(value[VALUES], (list, tuple))


def _checked(values: Any, key: str) -> list[Any]:
    found = list(values)
    if not found:
        raise StudyError(f"the sweep of {key} has no values; give at least one")
    for number, value in enumerate(found):
        if value in found[:number]:
            raise StudyError(f"the sweep of {key} has the value {quoted(value)} twice; give each once")
    return found


def _parameters(what: str, name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a problem, environment or agent by name; none where it is unknown, which is said elsewhere."""
    maker: Callable[..., Any] | None
    try:
        if what == "agent":
            maker = learning.class_of(name)
        elif name in problems.PROBLEMS:
            maker = problems.PROBLEMS[name]
        elif is_import_name(name):
            maker = imported(what, name, StudyError)
        else:
            return _environment_parameters(name)
        return {} if maker is None else inspect.signature(maker).parameters
    except (ActMeasureError, TypeError, ValueError):
        return {}


def _environment_parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of `gymnasium.make` and of the environment that it makes; none if there is none of that id."""
    import gymnasium

    register_environments()
    known = gymnasium.registry.get(name.rpartition(":")[2])
    if known is None or known.entry_point is None:
        return {}
    own = [build for problem, build in problems.PROBLEMS.items() if environment_id(problem) == known.id]
    try:
        maker = load_env_creator(known.entry_point) if isinstance(known.entry_point, str) else known.entry_point
    except Exception:  # whatever its module raises; `gymnasium.make` says so
        return {}
    return {
        key: value for one in (gymnasium.make, maker, *own) for key, value in inspect.signature(one).parameters.items()
    }


def unset_settings(what: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a problem or agent that are not given and the values that they have, where these are plain."""
    if what == "agent":
        try:
            made = getattr(learning.make(name, **settings), "settings", None)
        except ActMeasureError:
            made = None
        if is_dataclass(made) and not isinstance(made, type):  # a preset changes defaults
            return {key: value for key, value in asdict(made).items() if key not in settings and _is_plain(value)}
    defaults = {key: parameter.default for key, parameter in _parameters(what, name).items()}
    return {key: value for key, value in defaults.items() if key not in settings and _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, (bool, int, str))


def _takes_one_value(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter takes one number, text or truth value, and no list."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return isinstance(parameter.default, (bool, int, float, str))
    text = annotation if isinstance(annotation, str) else _written(annotation)
    return all(SCALARS.fullmatch(part.strip()) for part in text.split("|"))


def _written(annotation: Any) -> str:
    """Return an annotation as it is written: `float`, `int | None`, `Literal['a', 'b']`."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
