"""Checks of the settings that all environments share."""

from __future__ import annotations

from typing import Any

from actmeasure.settings import MOST_STEPS, whole

__all__ = ["checked_steps"]


def checked_steps(max_steps: Any) -> int:
    """The length of an episode as a positive whole number, or a `ModelError`."""
    return whole(max_steps, "max_steps", 1, MOST_STEPS, what="a whole number of steps")
