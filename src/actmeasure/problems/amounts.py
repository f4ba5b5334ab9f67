"""Prices and other amounts that a problem is built from."""

from __future__ import annotations

import math

from actmeasure.errors import ModelError
from actmeasure.settings import real

__all__ = ["amount"]


def amount(value: float, name: str, above_zero: bool = False) -> float:
    """A finite number that is 0 or more, or above 0; anything else is a `ModelError` that names it."""
    expected = "a finite number above 0" if above_zero else "a finite number that is 0 or more"
    found = real(value, name, expected=expected)
    if not 0 <= found < math.inf or (above_zero and found == 0):
        raise ModelError(f"{name} is {value!r}, expected {expected}")
    return found
