"""What an agent does in one step."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Decision"]


class Decision(NamedTuple):
    """A control action, and whether to pay for seeing the state it leads to.

    Examples
    --------
    >>> Decision(action=1, measure=True)
    Decision(action=1, measure=True)
    """

    action: int
    measure: bool
