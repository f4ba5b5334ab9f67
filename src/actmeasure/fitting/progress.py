"""How a fit tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "ignore_progress"]

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


def ignore_progress(doing: str, done: int, total: int) -> None:
    """For those who do not want to know."""
