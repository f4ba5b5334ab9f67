"""Settings of agents: what has a name of its own, what is given instead, and what is allowed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from actmeasure.errors import AgentError, unknown_name
from actmeasure.settings import real

__all__ = ["checked_discount", "chosen", "finite", "own_discount", "settings_signature"]

Settings = TypeVar("Settings")


def chosen(
    kind: type[Settings], presets: Mapping[str, Mapping[str, Any]], preset: str, given: Mapping[str, Any]
) -> Settings:
    """The settings of a preset, and those given instead; unknown names are an `AgentError`."""
    if not isinstance(preset, str) or preset not in presets:
        raise AgentError(unknown_name("preset", preset, presets))
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise AgentError(unknown_name("setting", name, [*known, "preset"]))
    return replace(kind(), **(dict(presets[preset]) | dict(given)))  # type: ignore[type-var]


def settings_signature(defaults: Any) -> inspect.Signature:
    """What an agent with these settings can be made with, for those who ask: `help`, and the check for unknown names."""
    preset = inspect.Parameter("preset", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="default", annotation=str)
    kind = inspect.Parameter.KEYWORD_ONLY
    settings = [
        inspect.Parameter(f.name, kind, default=getattr(defaults, f.name), annotation=f.type) for f in fields(defaults)
    ]
    return inspect.Signature([preset, *settings])


def checked_discount(discount: Any) -> float | None:
    """A discount, or None for the task's own."""
    return None if discount is None else own_discount(discount, "discount")


def own_discount(discount: Any, name: str) -> float:
    """A plain number above 0 and at most 1."""
    found = finite(discount, name)
    if not 0 < found <= 1:
        raise AgentError(f"{name} is {discount!r}, expected a number above 0 and at most 1, such as 0.95")
    return found


def finite(value: Any, name: str) -> float:
    """A plain number that is neither infinite nor undefined."""
    found = real(value, name, AgentError)
    if not np.isfinite(found):
        raise AgentError(f"{name} is {value!r}, expected a finite number")
    return found
