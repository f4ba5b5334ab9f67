"""Checks of the settings that all environments share."""

from __future__ import annotations

from operator import index
from typing import Any

from actmeasure.errors import ModelError

__all__ = ["checked_steps"]


def checked_steps(max_steps: Any) -> int:
    """The length of an episode as a positive whole number, or a `ModelError`."""
    try:
        steps = index(max_steps)
    except TypeError:
        steps = 0
    if steps < 1:
        raise ModelError(f"max_steps is {max_steps!r}, expected a whole number of steps from 1 up")
    return steps
