"""The decision of one step."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Decision"]


class Decision(NamedTuple):
    """An action, and whether to measure the state that it leads to.

    Examples
    --------
    >>> Decision(action=1, measure=True)
    Decision(action=1, measure=True)
    """

    action: int
    measure: bool
