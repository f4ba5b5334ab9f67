"""Zip archives of NumPy arrays, as `numpy.savez` writes them, read without trusting them.

Array headers are matched against the few forms that this module writes instead of being evaluated. Before any array is read,
all sizes that the archive declares are compared with each other, with the archive's own size, and with what the reader
expects: a small file cannot make its reader allocate much memory. `about` is the one member that every archive has: JSON in
UTF-8, which is only parsed if it has no more values than arrays of such shapes can need.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ActMeasureError, ModelError
from actmeasure.files.checks import check_header, check_keys, parse_json

__all__ = ["Arrays", "Shapes", "read_arrays", "write_arrays"]

ABOUT = "|u1"
HEADER = re.compile(rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': (False|True), 'shape': \(([0-9, ]*)\), \} *\n")
#: Largest accepted ratio of unpacked to packed size: models have about 10. `write_arrays` stays below it.
LARGEST_RATIO = 100
#: Bytes that an archive of any size may unpack to, in total and for `about`.
ALWAYS_UNPACKED, ALWAYS_TOLD = 1 << 26, 1 << 22
#: Largest number of JSON values in `about` besides names: three bytes of JSON can become an object of 64 bytes.
ALWAYS_VALUES = 10_000
#: Text up to the next comma or opening bracket outside of strings; possessive, so that matching takes linear time.
VALUE = re.compile(rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"?)*+[,\[{]', re.DOTALL)
CHUNK = 1 << 20
MOST_AXES = 4

Arrays = dict[str, npt.NDArray[Any]]
Shapes = dict[str, tuple[int, ...]]


def write_arrays(
    file: BinaryIO, about: Mapping[str, Any], arrays: Mapping[str, npt.ArrayLike | None], types: Mapping[str, str]
) -> None:
    """Write arrays, of the types given by name, and the member `about` into an open file; arrays that are None are left out."""
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    members: dict[str, npt.NDArray[Any]] = {}
    for name, values in ({"about": text} | dict(arrays)).items():
        if values is not None:
            kind = ABOUT if name == "about" else types[name]
            members[name] = np.ascontiguousarray(values, dtype=kind).reshape(np.shape(values))
    # The lowest level of compression: a large lake shrinks tenfold in less than a second.
    packed = _write_members(file, members, zipfile.ZIP_DEFLATED)
    unpacked = sum(array.nbytes for array in members.values())
    if _is_suspicious(unpacked, packed, ALWAYS_UNPACKED) or _is_suspicious(text.nbytes, packed, ALWAYS_TOLD):
        file.seek(0)
        file.truncate()
        _write_members(file, members, zipfile.ZIP_STORED)


def _write_members(file: BinaryIO, members: Mapping[str, npt.NDArray[Any]], compression: int) -> int:
    """Write the archive; return its size in bytes."""
    with zipfile.ZipFile(file, "w", compression, compresslevel=1) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=array.nbytes > 1 << 30) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    return file.tell()


def _is_suspicious(unpacked: int, packed: int, always: int) -> bool:
    """Return whether the ratio of unpacked to packed size is above what a model can have."""
    return unpacked > max(always, LARGEST_RATIO * packed)


def read_arrays(
    contents: bytes,
    form: str,
    types: Mapping[str, str],
    check_shapes: Callable[[Shapes], int],
    check_about: Callable[[dict[str, Any], Shapes], None],
    optional: Collection[str] = (),
    latest: int | None = None,
) -> tuple[dict[str, Any], Arrays]:
    """Return the member `about` and the arrays of an archive of the given format; a `ModelError` tells what is damaged.

    `check_shapes` is called with the shapes of all arrays, raises an error where they do not fit together, and returns the
    largest number of names in `about`. `check_about` is called with `about` and the shapes; only then are the arrays read.
    Files of a version of the format above `latest`, by default the newest, are refused.
    """
    try:
        return _read_archive(contents, form, types, check_shapes, check_about, optional, latest)
    except MemoryError as error:
        raise ModelError("it is too large for the memory of this machine; load it on a larger one") from error
    except ActMeasureError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, NotImplementedError, ValueError
    ) as error:  # fmt: skip
        reason = str(error) or "it ends too early"
        raise ModelError(f"it is not a sound .npz archive ({reason}); the file is damaged or incomplete") from error


def _read_archive(
    contents: bytes,
    form: str,
    types: Mapping[str, str],
    check_shapes: Callable[[Shapes], int],
    check_about: Callable[[dict[str, Any], Shapes], None],
    optional: Collection[str],
    latest: int | None,
) -> tuple[dict[str, Any], Arrays]:
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if len(members) != len(archive.infolist()):
            raise ModelError("an array is in the archive twice; the file is damaged")
        if "about" not in members:
            raise ModelError("it is not a file of actmeasure (no member 'about'); save it again")
        unpacked = sum(info.file_size for info in members.values())
        told = members["about"].file_size
        if _is_suspicious(unpacked, len(contents), ALWAYS_UNPACKED) or _is_suspicious(told, len(contents), ALWAYS_TOLD):
            raise ModelError(
                f"it has {len(contents):,} bytes that unpack to {unpacked:,}, more than a model can have; the file is damaged, "
                "or was made to exhaust the memory"
            )
        text = _read_array(archive, members.pop("about"), "about", ABOUT)
        is_long = _has_more_values(text, ALWAYS_VALUES)
        if not is_long:
            check_header(_about(text), form, latest)  # a later version is recognised whatever else the file has
        check_keys(members, "the archive", [name for name in types if name not in optional], optional)
        shapes = {name: _read_shape(archive, info, name, types[name]) for name, info in members.items()}
        names = check_shapes(shapes)
        if is_long and _has_more_values(text, ALWAYS_VALUES + names):
            raise ModelError(
                f"'about' has more than {ALWAYS_VALUES + names:,} values, more than there is to tell about arrays of these "
                "shapes; the file is damaged, or was made to exhaust the memory"
            )
        about = _about(text)
        check_header(about, form, latest)
        check_about(about, shapes)
        return about, {name: _read_array(archive, info, name, types[name]) for name, info in members.items()}


def _read_shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, kind: str) -> tuple[int, ...]:
    """Return the shape of an array, after checking that its data have the size that the shape implies."""
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelError(f"the array {name!r} is encrypted or packed in an unknown way; save it again")
    with archive.open(info) as member:
        shape = _read_header(member, name, kind)
        if member.tell() + math.prod(shape) * np.dtype(kind).itemsize != info.file_size:
            raise ModelError(f"the array {name!r} has {info.file_size} bytes, which does not fit its shape {shape}")
    return shape


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, kind: str) -> npt.NDArray[Any]:
    shape = _read_shape(archive, info, name, kind)
    with archive.open(info) as member:
        _read_header(member, name, kind)
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
    """Return the shape of an array, from a header as NumPy writes it for C order."""
    start = member.read(10)
    if len(start) != 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ModelError(f"{name!r} is not a NumPy array of format version 1.0; save it again")
    text = member.read(int.from_bytes(start[8:], "little"))
    match = HEADER.fullmatch(text)
    if match is None or match[1].decode() != kind or match[2] != b"False":
        raise ModelError(f"the array {name!r} is not of type {kind} in C order; save it again")
    shape = tuple(int(size) for size in match[3].replace(b",", b" ").split())
    if len(shape) > MOST_AXES:
        raise ModelError(f"the array {name!r} has {len(shape)} axes, more than the format allows; the file is damaged")
    return shape


def _has_more_values(text: npt.NDArray[Any], most: int) -> bool:
    """Return whether JSON has more than `most` values, without parsing it."""
    return next(islice(VALUE.finditer(text.data), most, None), None) is not None


def _about(text: npt.NDArray[Any]) -> Any:
    try:
        return parse_json(text.tobytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelError(f"'about' is not text ({error}); the file is damaged") from error
