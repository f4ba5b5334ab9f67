"""Zip archives of NumPy arrays, as `numpy.savez` writes them, read without trusting them.

The few array headers that we write are matched literally instead of evaluated, and sizes are compared with what the archive
really holds before memory is taken. `about` is the one member that every archive has: JSON in UTF-8.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.checks import check_header, check_keys, parse_json

__all__ = ["Arrays", "read_arrays", "write_arrays"]

ABOUT = "|u1"
HEADER = re.compile(rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': (False|True), 'shape': \(([0-9, ]*)\), \} *\n")
#: zlib cannot compress further than this.
LARGEST_RATIO = 1032
CHUNK = 1 << 20

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(
    file: BinaryIO, about: Mapping[str, Any], arrays: Mapping[str, npt.ArrayLike | None], types: Mapping[str, str]
) -> None:
    """Write arrays, of the types given by name, into an open file; those that are None are left out."""
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    # The lowest level of compression: a large lake shrinks tenfold in less than a second.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in ({"about": text} | dict(arrays)).items():
            if values is not None:
                kind = ABOUT if name == "about" else types[name]
                array = np.ascontiguousarray(values, dtype=kind).reshape(np.shape(values))
                with archive.open(f"{name}.npy", "w", force_zip64=array.nbytes > 1 << 30) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def read_arrays(
    contents: bytes, form: str, types: Mapping[str, str], optional: Collection[str] = ()
) -> tuple[dict[str, Any], Arrays]:
    """What an archive of the given format says about itself, and its arrays; anything damaged is a `ModelError`."""
    try:
        return _read_archive(contents, form, types, optional)
    except ModelError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, NotImplementedError, ValueError
    ) as error:  # fmt: skip
        reason = str(error) or "it ends too early"
        raise ModelError(f"it is not a sound .npz archive ({reason}); the file is damaged or incomplete") from error


def _read_archive(
    contents: bytes, form: str, types: Mapping[str, str], optional: Collection[str]
) -> tuple[dict[str, Any], Arrays]:
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "about" not in members:
            raise ModelError("it is not a file of actmeasure (no member 'about'); save it again")
        for name, info in members.items():
            if info.compress_size > len(contents) or info.file_size > LARGEST_RATIO * (info.compress_size + 1):
                raise ModelError(f"the array {name!r} cannot be as large as the archive says; the file is damaged")
        about = _about(_read_array(archive, members.pop("about"), "about", ABOUT))
        check_header(about, form)  # first, so that a later version is recognised whatever else it holds
        check_keys(members, "the archive", [name for name in types if name not in optional], optional)
        return about, {name: _read_array(archive, info, name, types[name]) for name, info in members.items()}


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, kind: str) -> npt.NDArray[Any]:
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelError(f"the array {name!r} is encrypted or packed in an unknown way; save it again")
    with archive.open(info) as member:
        shape = _read_header(member, name, kind)
        if member.tell() + math.prod(shape) * np.dtype(kind).itemsize != info.file_size:
            raise ModelError(f"the array {name!r} has {info.file_size} bytes, which does not fit its shape {shape}")
        array = np.empty(shape, dtype=kind)
        target = array.reshape(-1).view(np.uint8)
        position = 0
        while position < len(target):
            chunk = member.read(min(CHUNK, len(target) - position))
            if not chunk:
                raise EOFError(f"the array {name!r} ends too early")
            target[position : position + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            position += len(chunk)
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise ModelError(f"the array {name!r} holds values other than true and false; the file is damaged")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _read_header(member: Any, name: str, kind: str) -> tuple[int, ...]:
    """The shape of an array, from a header as NumPy writes it; data in another order of dimensions is refused."""
    start = member.read(10)
    if len(start) != 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ModelError(f"{name!r} is not a NumPy array of format version 1.0; save it again")
    text = member.read(int.from_bytes(start[8:], "little"))
    match = HEADER.fullmatch(text)
    if match is None or match[1].decode() != kind or match[2] != b"False":
        raise ModelError(f"the array {name!r} is not of type {kind} in C order; save it again")
    return tuple(int(size) for size in match[3].replace(b",", b" ").split())


def _about(text: npt.NDArray[Any]) -> Any:
    try:
        return parse_json(text.tobytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelError(f"'about' is not text ({error}); the file is damaged") from error
