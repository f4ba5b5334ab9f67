"""Whether a file can be written, known before long work for it begins."""

from __future__ import annotations

import os
from pathlib import Path

from actmeasure.errors import ActMeasureError

__all__ = ["check_place"]


def check_place(place: Path, what: str, error: type[ActMeasureError]) -> None:
    """Raise an error with a sentence if `what`, such as "the picture", cannot be written to a place."""
    if place.is_dir():
        raise error(f"{what} {str(place)!r} cannot be written, it is a folder; name a file in it")
    if not place.parent.is_dir():
        raise error(f"{what} {str(place)!r} cannot be written, there is no folder {str(place.parent)!r}; make it")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise error(f"{what} {str(place)!r} cannot be written, there is no permission to; choose another place")
