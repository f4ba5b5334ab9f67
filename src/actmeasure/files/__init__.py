"""Models as files: `.json` (readable), `.npz` (fast and exact) and `.pomdp` (Cassandra's format, of any discrete POMDP).

POMDPX files (`.pomdpx`) are read only, Storm's DRN files (`.drn`) are written only. A problem with a file is a `ModelError`
that names the file and the position in it. A failed write leaves an existing file unchanged and no partial file behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from actmeasure.errors import ModelError, unknown_name
from actmeasure.file_access import explain, replacing, usable_path
from actmeasure.files import drn, json_format, npz, pomdp_model, pomdp_reader, pomdp_writer, pomdpx

if TYPE_CHECKING:
    from actmeasure.model import Model

__all__ = ["FORMATS", "READABLE", "SUFFIXES", "Format", "load_model", "parse_model", "save_model"]


class Format(NamedTuple):
    """A file format: `read` returns the model in the bytes of a file, `write` writes a model into an open binary file.

    Formats that are only read have None in place of `write`, those that are only written in place of `read`.
    """

    read: Callable[[bytes], Model] | None
    write: Callable[[Model, BinaryIO], None] | None


def _text(lines: Callable[[Model], Iterator[str]]) -> Callable[[Model, BinaryIO], None]:
    """Return the function that writes the lines of a text format, in UTF-8."""
    return lambda model, file: file.writelines(line.encode() for line in lines(model))


#: Formats by the ending of the file's name.
FORMATS = {
    ".json": Format(json_format.read, _text(json_format.lines)),
    ".npz": Format(npz.read, npz.write),
    ".pomdp": Format(lambda contents: pomdp_model.build(pomdp_reader.read(contents)), _text(pomdp_writer.lines)),
    ".pomdpx": Format(pomdpx.read, None),
    ".drn": Format(None, _text(drn.lines)),
}
#: Endings of files that can be read.
READABLE = tuple(suffix for suffix, form in FORMATS.items() if form.read is not None)
#: Endings of files that can be written.
SUFFIXES = tuple(suffix for suffix, form in FORMATS.items() if form.write is not None)
_ENDINGS = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model from a `.json`, `.npz`, `.pomdp` or `.pomdpx` file; its contents are checked like arrays."""
    path = _checked_path(path)
    _checked_suffix(path, READABLE)
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise explain(error, path, "read") from error
    except MemoryError as error:
        raise _too_large(path) from error
    return parse_model(contents, path)


def parse_model(contents: bytes, path: Path) -> Model:
    """Return the model in the contents of a file, of the format that the name `path` ends in, after checking everything."""
    read = FORMATS[_checked_suffix(path, READABLE)].read
    assert read is not None
    try:
        return read(contents)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except MemoryError as error:
        raise _too_large(path) from error


def _too_large(path: Path) -> ModelError:
    return ModelError(f"{path} is too large for the memory of this machine; load it on a larger one")


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as `.json`, `.npz`, `.pomdp` or `.drn`, by the path's ending; an existing file is replaced in one step."""
    path = _checked_path(path)
    write = FORMATS[_checked_suffix(path, SUFFIXES)].write
    try:
        with replacing(path) as file:
            if write is not None:
                write(model, file)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except OSError as error:
        raise explain(error, path, "write") from error


def _checked_path(path: str | os.PathLike[str]) -> Path:
    usable = usable_path(path)
    if usable is None:
        raise ModelError(f"the path is {path!r}, expected the name of a file that ends in {_ENDINGS}")
    return usable


def _checked_suffix(path: Path, known: Collection[str]) -> str:
    suffix = path.suffix.lower()
    if suffix not in known:
        raise ModelError(f"{path}: {unknown_name('file ending', path.suffix, list(known))}")
    return suffix
