"""Fits as files."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from actmeasure.errors import ActMeasureError, FitError, quoted, unknown_name
from actmeasure.files.archive import Arrays, Shapes, read_arrays, write_arrays
from actmeasure.files.atomic import explain, replacing
from actmeasure.files.checks import FIT_FORMAT, check_keys, number, quote, some_names, whole
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.goodness import TESTS, Goodness, GoodnessTest

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
#: Sums of probabilities may miss 1 by this much.
ROUNDING = 1e-6
#: More inspections or periods than this can have been counted by nobody.
MOST = 1 << 53
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
        about, arrays = read_arrays(place.read_bytes(), FIT_FORMAT, ARRAYS, _check_shapes, _check_about, OPTIONAL)
        return _fit(about, arrays)
    except OSError as error:
        raise FitError(str(explain(error, place, "read"))) from error
    except ActMeasureError as error:
        raise FitError(f"{place}: {error}") from error


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a fit."""
    try:
        place = Path(path)
        usable = b"\0" not in os.fsencode(place) and place.suffix.lower() == ".npz"
    except (TypeError, UnicodeEncodeError):
        usable = False
    if not usable:
        raise FitError(f"{quoted(path)} cannot hold a fit, expected a name that ends in .npz")
    return place


def _check_about(about: dict[str, Any], shapes: Shapes) -> None:
    """Refuse what is told of the fit if it does not fit the shapes of its arrays, before the arrays are read."""
    check_keys(
        about, "'about'", ["format", "version", *(field.name for field in fields(Fit) if field.name not in ARRAYS)]
    )
    n_actions, n_states = (len(_texts(about, name)) for name in ("action_names", "state_names"))
    if shapes["probabilities"] != (n_actions, n_states, n_states):
        raise FitError(
            f"'probabilities' has shape {shapes['probabilities']}, which does not fit {n_actions} actions and {n_states} states"
        )


def _check_shapes(shapes: Shapes) -> int:
    """How many names and remarks there can be; arrays whose shapes do not make a fit are refused before they are read."""
    if len(shapes["probabilities"]) != 3:
        raise FitError(
            f"'probabilities' has shape {shapes['probabilities']}, expected (actions, states, states); the file is damaged"
        )
    n_actions, n_states, _ = shapes["probabilities"]
    rows, square = (n_actions, n_states), (n_actions, n_states, n_states)
    expected: Shapes = dict.fromkeys(ARRAYS, rows) | dict.fromkeys(
        ("probabilities", "low", "high", "bootstrap"), square
    )
    expected["initial"] = (n_states,)
    for name, shape in shapes.items():
        found = shape[1:] if name == "bootstrap" else shape
        if found != expected[name] or (name == "bootstrap" and not shape[0]):
            raise FitError(f"{name!r} has shape {shape}, which does not fit {n_actions} actions and {n_states} states")
    given = [name for name in OPTIONAL if name in shapes]
    if given and len(given) < len(OPTIONAL):
        raise FitError(f"it has {given[0]!r}, but not all of {', '.join(OPTIONAL)}; the file is damaged")
    # Names, and remarks on states, actions and pairs of them, perhaps a few of each.
    return 8 * (n_actions + 1) * (n_states + 1)


def _texts(about: dict[str, Any], name: str) -> tuple[str, ...]:
    if not isinstance(about[name], list):
        raise FitError(f"{name!r} is {quote(about[name])}, expected a list of strings; the file is damaged")
    return tuple(some_names(about[name], name) or ())


def _fit(about: dict[str, Any], arrays: Arrays) -> Fit:
    texts = {name: _texts(about, name) for name in TEXTS}
    _check_names(texts)
    _check_arrays(arrays)
    period = about["period"]
    if period is not None and (not isinstance(period, str) or not period.strip()):
        raise FitError(f"the period is {quote(period)}, expected text; the file is damaged")
    level = number(about["level"], "level")
    if not 0 < level < 1:
        raise FitError(
            f"the level of its intervals is {level:g}, expected a number between 0 and 1; the file is damaged"
        )
    counts = {name: whole(about[name], name) for name in COUNTS}
    parts: dict[str, Any] = {**texts, **counts, **{name: arrays.get(name) for name in ARRAYS}}
    return Fit(
        **parts,
        period=period,
        level=level,
        log_likelihood=number(about["log_likelihood"], "log_likelihood"),
        goodness=_goodness(about["goodness"]),
    )


def _check_names(texts: dict[str, tuple[str, ...]]) -> None:
    states, actions = texts["state_names"], texts["action_names"]
    for kind, names in (("state", states), ("action", actions)):
        if not names or len(set(names)) < len(names):
            raise FitError(f"its {kind}s have no names, or two of them have the same; the file is damaged")
    if len(texts["structure"]) != len(actions):
        raise FitError(
            f"'structure' has {len(texts['structure'])} entries for {len(actions)} actions; the file is damaged"
        )
    for what, names, known in (("noticed", texts["noticed"], states), ("dropped", texts["dropped"], ())):
        if len(set(names)) < len(names) or (what == "noticed" and not set(names) <= set(known)):
            raise FitError(f"{what!r} is {quote(list(names))}, which does not fit its states; the file is damaged")
    if set(texts["dropped"]) & set(actions):
        raise FitError(f"'dropped' is {quote(list(texts['dropped']))}, which it still has; the file is damaged")


def _check_arrays(arrays: Arrays) -> None:
    """Refuse numbers that no fit has; a row of probabilities is a distribution, or unknown and NaN throughout."""
    known = ~np.isnan(arrays["probabilities"])
    for name in ("probabilities", "bootstrap"):
        values = arrays.get(name, arrays["probabilities"])
        with np.errstate(over="ignore", invalid="ignore"):
            sound = (
                (values >= 0) & (values <= 1 + ROUNDING) & (np.abs(values.sum(axis=-1, keepdims=True) - 1) < ROUNDING)
            )
        if not np.all(np.where(known, sound, np.isnan(values))):
            raise FitError(f"{name!r} has rows that are not probabilities; the file is damaged")
    if "low" in arrays:
        low, high = arrays["low"], arrays["high"]
        # NaN, as comparisons with it are false, is only let through where nothing is known.
        sound = (low >= 0) & (low <= high) & (high <= 1 + ROUNDING)
        if not np.all(np.where(known, sound, sound | np.isnan(low) | np.isnan(high))):
            raise FitError("'low' and 'high' are not the ends of intervals of probabilities; the file is damaged")
    initial = arrays["initial"]
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.all(initial >= 0) or not abs(initial.sum() - 1) < ROUNDING:
            raise FitError("'initial' is not a distribution over its states; the file is damaged")
    for name in ("inspected", "exposure"):
        if not np.all((arrays[name] >= 0) & (arrays[name] <= MOST)):
            raise FitError(f"{name!r} holds numbers that nobody can have counted; the file is damaged")


def _goodness(found: Any) -> Goodness | None:
    if found is None:
        return None
    known = check_keys(found, "'goodness'", ("tests", "findings", "replicates"))
    if not isinstance(known["tests"], list) or not known["tests"]:
        raise FitError("'goodness' has no list of tests; the file is damaged")
    tests = tuple(_goodness_test(test) for test in known["tests"])
    if len({test.name for test in tests}) < len(tests):
        raise FitError("'goodness' has a test twice; the file is damaged")
    return Goodness(tests, _texts(known, "findings"), whole(known["replicates"], "replicates", 1))


def _goodness_test(found: Any) -> GoodnessTest:
    test = check_keys(found, "a test of 'goodness'", ("name", "statistic", "p_value"))
    if not isinstance(test["name"], str) or test["name"] not in TESTS:
        raise FitError(f"{unknown_name('test of the goodness of fit', test['name'], TESTS)}; the file is damaged")
    statistic, p_value = number(test["statistic"], "statistic"), number(test["p_value"], "p_value")
    if statistic < 0 or not 0 <= p_value <= 1:
        raise FitError(
            f"the test {test['name']!r} has the statistic {statistic:g} and p-value {p_value:g}, which no test has; the file is "
            "damaged"
        )
    return GoodnessTest(test["name"], statistic, p_value)
