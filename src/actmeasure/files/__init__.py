"""Models as files: `.json` (readable), `.npz` (fast and exact) and `.pomdp` (for other solvers).

A problem with a file is a `ModelError` that names the file and the position in it. A failed write leaves an existing file
unchanged and no partial file behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from actmeasure.errors import ModelError, unknown_name
from actmeasure.files import json_format, npz, pomdp_model, pomdp_reader, pomdp_writer
from actmeasure.files.atomic import explain, replacing

if TYPE_CHECKING:
    from actmeasure.model import Model

__all__ = ["load_model", "parse_model", "save_model"]

#: File endings of models.
SUFFIXES = (".json", ".npz", ".pomdp")


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model from a `.json`, `.npz` or `.pomdp` file; its contents are checked like those of a model built from arrays."""
    place = _checked_path(path)
    _checked_suffix(place)
    try:
        contents = place.read_bytes()
    except OSError as error:
        raise explain(error, place, "read") from error
    except MemoryError as error:
        raise _too_large(place) from error
    return parse_model(contents, place)


def parse_model(contents: bytes, place: Path) -> Model:
    """Return the model in the contents of a file, of the format that the name `place` ends in, after checking everything."""
    suffix = _checked_suffix(place)
    try:
        match suffix:
            case ".npz":
                return npz.read(contents)
            case ".json":
                return json_format.read(contents)
            case _:
                return pomdp_model.build(pomdp_reader.read(contents))
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from error
    except MemoryError as error:
        raise _too_large(place) from error


def _too_large(place: Path) -> ModelError:
    return ModelError(f"{place} is too large for the memory of this machine; load it on a larger one")


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as `.json`, `.npz` or `.pomdp`, by the path's ending; an existing file is replaced in one step."""
    place = _checked_path(path)
    suffix = _checked_suffix(place)
    try:
        with replacing(place) as file:
            if suffix == ".npz":
                npz.write(model, file)
            else:
                lines = json_format.lines(model) if suffix == ".json" else pomdp_writer.lines(model)
                file.writelines(line.encode() for line in lines)
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from error
    except OSError as error:
        raise explain(error, place, "write") from error


def _checked_path(path: str | os.PathLike[str]) -> Path:
    try:
        place = Path(path)
        usable = b"\0" not in os.fsencode(place)
    except (TypeError, UnicodeEncodeError):
        usable = False
    if not usable:
        raise ModelError(f"the path is {path!r}, expected the name of a file that ends in .json, .npz or .pomdp")
    return place


def _checked_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(f"{path}: {unknown_name('file ending', path.suffix, SUFFIXES)}")
    return suffix
