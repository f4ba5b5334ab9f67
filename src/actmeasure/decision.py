"""The decision of one step."""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Decision", "expected_decision", "is_valid"]


class _Decision(NamedTuple):
    action: int
    measurement: int


class Decision(_Decision):
    """An action, and the measurement to make of the state that it leads to.

    Attributes
    ----------
    action : int
    measurement : int
        0 for none, otherwise the number of the measurement as in `model.measurements`, counted from 1. `Decision` takes True and
        False as 1 and 0, and `measure=` as another name, for models with one measurement.

    Examples
    --------
    >>> Decision(1, 2)
    Decision(action=1, measurement=2)
    >>> Decision(action=1, measure=True).measurement
    1
    >>> action, measurement = Decision(3, False)
    >>> measurement
    0
    """

    __slots__ = ()

    def __new__(cls, action: int, measurement: int = 0, *, measure: bool | None = None) -> Decision:
        """Return the pair as a tuple, with truth values as numbers."""
        if measure is not None and measurement:
            raise TypeError("a Decision has either measurement= or measure=, which is another name of it")
        chosen = measurement if measure is None else measure
        if type(chosen) is not int and isinstance(chosen, (bool, np.bool_)):
            chosen = int(chosen)
        return tuple.__new__(cls, (action, chosen))

    def _replace(self, **changes: Any) -> Decision:
        """Return a copy with some fields changed; `measure` is another name of `measurement` here as well."""
        if "measure" in changes:
            changes["measurement"] = changes.pop("measure")
        return Decision(changes.pop("action", self[0]), changes.pop("measurement", self[1]), **changes)

    @property
    def measure(self) -> bool:
        """Whether a measurement is made."""
        return bool(self[1])


def is_valid(decision: Any, n_actions: int, n_measurements: int = 1) -> bool:
    """Return whether a value is a `Decision` with an action and a measurement that exist, both whole numbers."""
    if not isinstance(decision, Decision):
        return False
    action, measurement = decision
    try:
        in_range = 0 <= index(action) < n_actions and 0 <= index(measurement) <= n_measurements
    except TypeError:
        return False
    return in_range and not isinstance(action, bool)


def expected_decision(n_actions: int, n_measurements: int = 1) -> str:
    """Return the end of a message about a decision that is not valid: what was expected."""
    looks = {0: "0 (none)", 1: "0 (none) or 1"}.get(n_measurements, f"from 0 (none) to {n_measurements}")
    return f"expected a Decision with an action from 0 to {n_actions - 1} and a measurement {looks}"
