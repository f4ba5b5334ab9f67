"""Fits as files."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from actmeasure.errors import ActMeasureError, FitError
from actmeasure.files.archive import Arrays, read_arrays, write_arrays
from actmeasure.files.atomic import explain, replacing
from actmeasure.files.checks import FIT_FORMAT, check_keys, number, some_names, whole
from actmeasure.fitting.goodness import Goodness, GoodnessTest
from actmeasure.fitting.result import Fit

__all__ = ["load_fit", "save_fit"]

VERSION = 1
ARRAYS = {
    "probabilities": "<f8",
    "low": "<f8",
    "high": "<f8",
    "bootstrap": "<f8",
    "initial": "<f8",
    "inspected": "<i8",
    "exposure": "<f8",
    "assumed": "|b1",
}
OPTIONAL = ("low", "high", "bootstrap")
TEXTS = (
    "state_names", "action_names", "dropped", "identifiability", "warnings", "notes", "structure", "noticed",
)  # fmt: skip
COUNTS = ("n_units", "n_records", "n_inspections")


def save_fit(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit; an existing file is replaced in one step, or stays as it was."""
    place = checked_path(path)
    about: dict[str, Any] = {"format": FIT_FORMAT, "version": VERSION}
    about |= {field.name: getattr(fit, field.name) for field in fields(fit) if field.name not in ARRAYS}
    about["goodness"] = None if fit.goodness is None else asdict(fit.goodness)
    try:
        with replacing(place) as file:
            write_arrays(file, about, {name: getattr(fit, name) for name in ARRAYS}, ARRAYS)
    except OSError as error:
        raise FitError(str(explain(error, place, "write"))) from error


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Read a fit; everything in the file is checked."""
    place = checked_path(path)
    try:
        about, arrays = read_arrays(place.read_bytes(), FIT_FORMAT, ARRAYS, OPTIONAL)
        return _fit(about, arrays)
    except OSError as error:
        raise FitError(str(explain(error, place, "read"))) from error
    except ActMeasureError as error:
        raise FitError(f"{place}: {error}") from error


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a fit."""
    place = Path(path)
    if place.suffix.lower() != ".npz":
        raise FitError(f"{str(place)!r} cannot hold a fit, expected a name that ends in .npz")
    return place


def _fit(about: dict[str, Any], arrays: Arrays) -> Fit:
    others = [field.name for field in fields(Fit) if field.name not in ARRAYS]
    check_keys(about, "'about'", ["format", "version", *others])
    texts = {name: tuple(some_names(about[name], name) or ()) for name in TEXTS}
    counts = {name: whole(about[name], name) for name in COUNTS}
    _check_arrays(arrays, len(texts["action_names"]), len(texts["state_names"]))
    period = about["period"]
    if period is not None and not isinstance(period, str):
        raise FitError(f"the period is {period!r:.60}, expected text; the file is damaged")
    parts: dict[str, Any] = {**texts, **counts, **{name: arrays.get(name) for name in ARRAYS}}
    return Fit(
        **parts,
        period=period,
        level=number(about["level"], "level"),
        log_likelihood=number(about["log_likelihood"], "log_likelihood"),
        goodness=_goodness(about["goodness"]),
    )


def _check_arrays(arrays: Arrays, n_actions: int, n_states: int) -> None:
    rows, square = (n_actions, n_states), (n_actions, n_states, n_states)
    shapes: dict[str, tuple[int, ...]] = {
        "initial": (n_states,),
        "probabilities": square,
        "low": square,
        "high": square,
    }
    for name, array in arrays.items():
        shape = array.shape[1:] if name == "bootstrap" else array.shape
        expected = square if name == "bootstrap" else shapes.get(name, rows)
        if shape != expected:
            raise FitError(
                f"{name!r} has shape {array.shape}, which does not fit {n_actions} actions and {n_states} states"
            )
    for name in ("probabilities", "bootstrap"):
        sums = arrays[name].sum(axis=-1) if name in arrays else np.ones(1)
        if np.any(arrays.get(name, sums) < 0) or not np.all(np.isnan(sums) | (np.abs(sums - 1) < 1e-6)):
            raise FitError(f"{name!r} has rows that are not probabilities; the file is damaged")


def _goodness(found: Any) -> Goodness | None:
    if found is None:
        return None
    known = check_keys(found, "'goodness'", ("tests", "findings", "replicates"))
    if not isinstance(known["tests"], list) or not known["tests"]:
        raise FitError("'goodness' has no list of tests; the file is damaged")
    tests = [check_keys(test, "a test", ("name", "statistic", "p_value")) for test in known["tests"]]
    return Goodness(
        tuple(
            GoodnessTest(str(test["name"]), number(test["statistic"], "statistic"), number(test["p_value"], "p_value"))
            for test in tests
        ),
        tuple(some_names(known["findings"], "findings") or ()),
        whole(known["replicates"], "replicates"),
    )
