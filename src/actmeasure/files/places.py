"""Whether a file can be written, known before long work for it begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from actmeasure.errors import ActMeasureError

__all__ = ["check_place", "check_suffix"]


def check_suffix(place: Path, what: str, suffixes: Sequence[str], error: type[ActMeasureError]) -> None:
    """Raise an error with a sentence if a file name does not end in one of the formats that `what` can be written in."""
    if place.suffix.lower() not in suffixes:
        raise error(
            f"{what} {str(place)!r} cannot be written with the ending {place.suffix!r}, only as {' or '.join(suffixes)}; "
            f"choose a name such as {place.stem or 'plan'}{suffixes[0]}"
        )


def check_place(place: Path, what: str, error: type[ActMeasureError]) -> None:
    """Raise an error with a sentence if `what`, such as "the picture", cannot be written to a place."""
    if place.is_dir():
        raise error(f"{what} {str(place)!r} cannot be written, it is a folder; name a file in it")
    if not place.parent.is_dir():
        raise error(f"{what} {str(place)!r} cannot be written, there is no folder {str(place.parent)!r}; make it")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise error(f"{what} {str(place)!r} cannot be written, there is no permission to; choose another place")
