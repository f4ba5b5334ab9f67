"""The fast format: a zip archive of NumPy arrays, exact to the last bit, without pickle.

`numpy.load` reads these files too. Our own reader takes nothing on trust: the few array headers that we write are matched
literally instead of evaluated, sizes are compared with what the archive really holds before memory is taken, and the
contents go through the same checks as a model built by hand.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.checks import (
    FORMAT,
    VERSION,
    Parts,
    check_header,
    check_keys,
    flag,
    number,
    parse_json,
    some_names,
)
from actmeasure.model import Model

__all__ = ["read", "write"]

#: Members of the archive and their types; `measuring_cost` has shape () or (S, A), `about` is JSON in UTF-8.
MEMBERS = {
    "about": "|u1",
    "offsets": "<i8",
    "successors": "<i4",
    "probabilities": "<f8",
    "rewards": "<f8",
    "transition_rewards": "<f8",
    "terminal": "|b1",
    "initial_states": "<i8",
    "initial_probabilities": "<f8",
    "measuring_cost": "<f8",
}
OPTIONAL = ("transition_rewards",)
HEADER = re.compile(rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': (False|True), 'shape': \(([0-9, ]*)\), \} *\n")
#: zlib cannot compress further than this.
LARGEST_RATIO = 1032
CHUNK = 1 << 20

Arrays = dict[str, npt.NDArray[Any]]


def write(model: Model, file: BinaryIO) -> None:
    """Write the model into an open file."""
    table = model.transitions
    about = {
        "format": FORMAT, "version": VERSION, "discount": model.discount, "reveal_start": model.reveal_start,
        "state_names": model.state_names, "action_names": model.action_names,
    }  # fmt: skip
    arrays: dict[str, npt.ArrayLike | None] = {
        "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        "offsets": table.offsets,
        "successors": table.successors,
        "probabilities": table.probabilities,
        "rewards": model.rewards,
        "transition_rewards": model.transition_rewards,
        "terminal": model.terminal,
        "initial_states": model.initial_states,
        "initial_probabilities": model.initial_probabilities,
        "measuring_cost": model.measuring_cost,
    }
    # The lowest level of compression: a large lake shrinks tenfold in less than a second.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in arrays.items():
            if values is not None:
                array = np.ascontiguousarray(values, dtype=MEMBERS[name]).reshape(np.shape(values))
                with archive.open(f"{name}.npy", "w", force_zip64=array.nbytes > 1 << 30) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def read(contents: bytes) -> Model:
    """A model from the bytes of a file; anything damaged is a `ModelError`."""
    try:
        arrays = _read_archive(contents)
    except ModelError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, NotImplementedError, ValueError
    ) as error:  # fmt: skip
        reason = str(error) or "it ends too early"
        raise ModelError(f"it is not a sound .npz archive ({reason}); the file is damaged or incomplete") from error
    return _parts(arrays).model()


def _read_archive(contents: bytes) -> Arrays:
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "about" not in members:
            raise ModelError("it is not a model file of actmeasure (no member 'about'); save the model again")
        for name, info in members.items():
            if info.compress_size > len(contents) or info.file_size > LARGEST_RATIO * (info.compress_size + 1):
                raise ModelError(f"the array {name!r} cannot be as large as the archive says; the file is damaged")
        arrays = {"about": _read_array(archive, members["about"], "about")}
        check_header(_about(arrays))  # first, so that a later version is recognised whatever else it holds
        check_keys(members, "the archive", [name for name in MEMBERS if name not in OPTIONAL], OPTIONAL)
        for name, info in members.items():
            arrays[name] = _read_array(archive, info, name)
    return arrays


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> npt.NDArray[Any]:
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ModelError(f"the array {name!r} is encrypted or packed in an unknown way; save the model again")
    with archive.open(info) as member:
        shape = _read_header(member, name)
        if member.tell() + math.prod(shape) * np.dtype(MEMBERS[name]).itemsize != info.file_size:
            raise ModelError(f"the array {name!r} has {info.file_size} bytes, which does not fit its shape {shape}")
        array = np.empty(shape, dtype=MEMBERS[name])
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


def _read_header(member: Any, name: str) -> tuple[int, ...]:
    """The shape of an array, from a header as NumPy writes it; data in another order of dimensions is refused."""
    start = member.read(10)
    if len(start) != 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ModelError(f"{name!r} is not a NumPy array of format version 1.0; save the model again")
    text = member.read(int.from_bytes(start[8:], "little"))
    match = HEADER.fullmatch(text)
    if match is None or match[1].decode() != MEMBERS.get(name) or match[2] != b"False":
        raise ModelError(f"the array {name!r} is not of type {MEMBERS.get(name)} in C order; save the model again")
    return tuple(int(size) for size in match[3].replace(b",", b" ").split())


def _about(arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    try:
        text = arrays["about"].tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"'about' is not text ({error}); the file is damaged") from error
    return parse_json(text)


def _parts(arrays: Arrays) -> Parts:
    keys = ("format", "version", "discount", "reveal_start", "state_names", "action_names")
    about = check_keys(_about(arrays), "'about'", keys)
    if arrays["rewards"].ndim != 2:
        raise ModelError(
            f"'rewards' has shape {arrays['rewards'].shape}, expected (states, actions); the file is damaged"
        )
    n_states, n_actions = arrays["rewards"].shape
    n_entries = arrays["successors"].size
    starts = arrays["initial_states"].size
    costs = arrays["measuring_cost"]
    _check_shapes(arrays, {
        "offsets": (n_states * n_actions + 1,), "successors": (n_entries,), "probabilities": (n_entries,),
        "transition_rewards": (n_entries,), "terminal": (n_states,), "initial_states": (starts,),
        "initial_probabilities": (starts,), "measuring_cost": (n_states, n_actions) if costs.ndim else (),
    })  # fmt: skip
    return Parts(
        n_states=n_states,
        n_actions=n_actions,
        offsets=arrays["offsets"],
        successors=arrays["successors"],
        probabilities=arrays["probabilities"],
        rewards=arrays["rewards"],
        transition_rewards=arrays.get("transition_rewards"),
        terminal=arrays["terminal"],
        initial=_start(arrays["initial_states"], arrays["initial_probabilities"], n_states),
        measuring_cost=costs if costs.ndim else float(costs),
        discount=number(about["discount"], "the discount"),
        reveal_start=flag(about["reveal_start"], "reveal_start"),
        state_names=some_names(about["state_names"], "state"),
        action_names=some_names(about["action_names"], "action"),
    )


def _check_shapes(arrays: Arrays, expected: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in expected.items():
        if name in arrays and arrays[name].shape != shape:
            raise ModelError(f"{name!r} has shape {arrays[name].shape}, expected {shape}; the file is damaged")


def _start(
    states: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64], n_states: int
) -> npt.NDArray[np.float64]:
    if not states.size or states.min() < 0 or states.max() >= n_states or np.any(states[1:] <= states[:-1]):
        raise ModelError(f"the initial states are not ascending numbers from 0 to {n_states - 1}; the file is damaged")
    if np.any(probabilities == 0):
        raise ModelError("an initial state has probability 0, expected more; the file is damaged")
    initial = np.zeros(n_states)
    initial[states] = probabilities
    return initial
