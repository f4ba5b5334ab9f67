"""Fits as `.npz` archives; everything in a file is checked when it is read."""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.errors import ActMeasureError, FitError, quoted
from actmeasure.file_access import explain, path_of, replacing
from actmeasure.files.archive import Arrays, Shapes, read_arrays, write_arrays
from actmeasure.files.checks import FIT_FORMAT, FIT_VERSION
from actmeasure.inspection.diagnostics import SEVERITIES, Diagnostic
from actmeasure.inspection.fit_result import Fit, age_names
from actmeasure.inspection.goodness import Goodness, GoodnessTest
from actmeasure.inspection.structures import AND, MASK, STRUCTURES
from actmeasure.settings import LARGEST_EXACT

__all__ = ["load_fit", "save_fit"]

#: The type of every array of a fit.
ARRAYS = {
    "probabilities": "<f8",
    "low": "<f8",
    "high": "<f8",
    "bootstrap": "<f8",
    "initial": "<f8",
    "inspected": "<i8",
    "exposure": "<f8",
    "assumed": "|b1",
    "dynamics": "<f8",
    "dynamics_low": "<f8",
    "dynamics_high": "<f8",
    "bootstrap_dynamics": "<f8",
    "errors": "<f8",
    "errors_low": "<f8",
    "errors_high": "<f8",
    "bootstrap_errors": "<f8",
}
#: By the name of an estimate, the arrays of its intervals, which a fit without a bootstrap does not have.
INTERVALS = {
    "probabilities": ("low", "high", "bootstrap"),
    "dynamics": ("dynamics_low", "dynamics_high", "bootstrap_dynamics"),
    "errors": ("errors_low", "errors_high", "bootstrap_errors"),
}
#: Arrays that not every fit has.
OPTIONAL = ("dynamics", "errors", *(name for names in INTERVALS.values() for name in names))
#: Largest intensity in a file.
LARGEST_RATE = 1e300
#: Tolerance of sums of probabilities.
SUM_TOLERANCE = 1e-6

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


#: Details of diagnostics that are lists of texts.
LISTS = ("states", "columns", "texts", "recorded")


class _StoredDiagnostic(msgspec.Struct, forbid_unknown_fields=True):
    """A `Diagnostic` in a file."""

    code: str
    severity: Literal["info", "warning", "error"]
    numbers: dict[str, int | float | tuple[int | float, ...]]
    names: dict[str, str | tuple[str, ...]]

    def diagnostic(self) -> Diagnostic:
        """Return the diagnostic; raise a `FitError` if there is none with this code, or its sentence lacks a detail."""
        diagnostic = Diagnostic(self.code, self.severity, self.numbers, self.names)
        has_lists = not any(isinstance(self.names.get(name), str) for name in LISTS)
        try:
            if has_lists and (SEVERITIES[self.code] == self.severity or self.code == "stored-text"):
                str(diagnostic)
                return diagnostic
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            pass
        raise FitError(f"the diagnostic {quoted(self.code)} is not one that a fit has; the file is damaged")


class _StoredTest(msgspec.Struct, forbid_unknown_fields=True):
    """A `GoodnessTest` in a file."""

    name: Literal["gap", "history", "age"]
    statistic: Annotated[float, msgspec.Meta(ge=0)]
    p_value: Annotated[float, msgspec.Meta(ge=0, le=1)]


class _StoredGoodness(msgspec.Struct, forbid_unknown_fields=True):
    """A `Goodness` in a file."""

    tests: Annotated[list[_StoredTest], msgspec.Meta(min_length=1)]
    findings: list[_StoredDiagnostic]
    replicates: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]

    def goodness(self) -> Goodness:
        if len({test.name for test in self.tests}) < len(self.tests):
            raise FitError("'goodness' has a test twice; the file is damaged")
        tests = tuple(GoodnessTest(test.name, test.statistic, test.p_value) for test in self.tests)
        return Goodness(tests, tuple(one.diagnostic() for one in self.findings), self.replicates)


class _FitDescription(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a fit that are not arrays, as they are in the JSON of an archive."""

    format: str
    version: int
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    level: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    log_likelihood: Finite
    goodness: _StoredGoodness | None
    identifiability: list[_StoredDiagnostic]
    warnings: list[_StoredDiagnostic]
    notes: list[_StoredDiagnostic]
    structure: tuple[str, ...]
    noticed: tuple[str, ...]
    dropped: tuple[str, ...]
    period: Annotated[str, msgspec.Meta(pattern=r"\S")] | None
    n_units: Count
    n_records: Count
    n_inspections: Count
    # Of version 3.
    converged: bool = True
    free_parameters: Count = 0
    time: Literal["discrete", "continuous"] = "discrete"
    at_once: tuple[str, ...] = ()
    default_action: str | None = None
    age_breaks: tuple[Annotated[float, msgspec.Meta(gt=0, le=1e300)], ...] = ()
    start: str | None = None


def save_fit(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit; an existing file is replaced in one step, or stays as it was."""
    file_path = path_of(path, ".npz", FitError)
    about = {field.name: getattr(fit, field.name) for field in fields(fit) if field.name not in ARRAYS}
    about = msgspec.to_builtins({"format": FIT_FORMAT, "version": FIT_VERSION, **about})
    try:
        with replacing(file_path) as file:
            write_arrays(file, about, {name: getattr(fit, name) for name in ARRAYS}, ARRAYS)
    except OSError as error:
        raise FitError(str(explain(error, file_path, "write"))) from error


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Read a fit; everything in the file is checked."""
    file_path = path_of(path, ".npz", FitError)
    try:
        about, arrays = read_arrays(file_path.read_bytes(), FIT_FORMAT, ARRAYS, _check_shapes, _check_about, OPTIONAL)
        return _fit(_converted(about), arrays)
    except OSError as error:
        raise FitError(str(explain(error, file_path, "read"))) from error
    except ActMeasureError as error:
        raise FitError(f"{file_path}: {error}") from error


def _converted(about: dict[str, Any]) -> _FitDescription:
    """Return the JSON of an archive as checked fields; raise a `FitError` that names the key of anything wrong."""
    try:
        return msgspec.convert(_upgraded(about), _FitDescription)
    except (msgspec.ValidationError, OverflowError) as error:
        problem, _, key = str(error).partition(" - at `$.")
        where = f"{key.rstrip('`')}: " if key else ""
        raise FitError(
            f"'about' is not that of a fit ({where}{problem.replace('`', '')}); the file is damaged"
        ) from error


def _upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of version 1, whose diagnostics are sentences, as that of version 2."""
    if about.get("version", 1) != 1:
        return about

    def stored(sentences: Any, severity: str) -> Any:
        if not isinstance(sentences, list) or not all(isinstance(text, str) for text in sentences):
            return None  # refused by the conversion
        return [
            {"code": "stored-text", "severity": severity, "numbers": {}, "names": {"text": text}} for text in sentences
        ]

    severities = {"identifiability": "warning", "warnings": "warning", "notes": "info"}
    changed = {name: stored(about.get(name), severity) for name, severity in severities.items()}
    goodness = about.get("goodness")
    if isinstance(goodness, dict):
        changed["goodness"] = goodness | {"findings": stored(goodness.get("findings"), "warning")}
    return about | {"version": 1} | changed


def _check_about(about: dict[str, Any], shapes: Shapes) -> None:
    """Raise a `FitError` if the JSON is not valid or does not match the shapes of the arrays; called before these are read."""
    description = _converted(about)
    n_actions, n_states = len(description.action_names), len(description.state_names)
    if shapes["probabilities"] != (n_actions, n_states, n_states):
        raise FitError(
            f"'probabilities' has shape {shapes['probabilities']}, which does not fit {n_actions} actions and {n_states} states"
        )


def _check_shapes(shapes: Shapes) -> int:
    """Return the largest number of names and details of diagnostics; raise a `FitError` if the shapes are not those of a fit."""
    if len(shapes["probabilities"]) != 3:
        raise FitError(
            f"'probabilities' has shape {shapes['probabilities']}, expected (actions, states, states); the file is damaged"
        )
    n_actions, n_states, _ = shapes["probabilities"]
    rows, square = (n_actions, n_states), (n_actions, n_states, n_states)
    expected: Shapes = dict.fromkeys(ARRAYS, rows)
    for name, parts in INTERVALS.items():
        expected |= dict.fromkeys((name, *parts), square[1:] if name == "errors" else square)
    expected["initial"] = (n_states,)
    for name, shape in shapes.items():
        inner = shape[1:] if name.startswith("bootstrap") else shape
        if inner != expected[name] or (name.startswith("bootstrap") and shape[:1] != shapes.get("bootstrap", (0,))[:1]):
            raise FitError(f"{name!r} has shape {shape}, which does not fit {n_actions} actions and {n_states} states")
    if "bootstrap" in shapes and not shapes["bootstrap"][0]:
        raise FitError("'bootstrap' is empty; the file is damaged")
    for name, parts in INTERVALS.items():
        given = [part for part in parts if part in shapes]
        if given and (len(given) < len(parts) or name not in shapes):
            raise FitError(f"it has {given[0]!r}, but not all of {', '.join(parts)}; the file is damaged")
        if name in shapes and bool(given) != ("bootstrap" in shapes):
            raise FitError(f"not all of its estimates have intervals ({name!r}); the file is damaged")
    # Names, and diagnostics of states, actions and pairs of them.
    return 16 * (n_actions + 1) * (n_states + 1)


def _fit(about: _FitDescription, arrays: Arrays) -> Fit:
    _check_names(about)
    _check_kind(about, arrays)
    _check_arrays(arrays)
    _check_dynamics(about, arrays)
    parts: dict[str, Any] = {name: arrays.get(name) for name in ARRAYS}
    for name in ("identifiability", "warnings", "notes"):
        parts[name] = tuple(one.diagnostic() for one in getattr(about, name))
    for field in fields(Fit):
        if field.name not in parts and field.name != "goodness":
            parts[field.name] = getattr(about, field.name)
    return Fit(goodness=None if about.goodness is None else about.goodness.goodness(), **parts)


def _check_names(about: _FitDescription) -> None:
    """Raise a `FitError` if names are missing or given twice, or do not match each other."""
    states, actions = about.state_names, about.action_names
    for kind, names in (("state", states), ("action", actions)):
        if not names or len(set(names)) < len(names):
            raise FitError(f"its {kind}s have no names, or two of them have the same; the file is damaged")
    if len(about.structure) != len(actions):
        raise FitError(
            f"'structure' has {len(about.structure)} entries for {len(actions)} actions; the file is damaged"
        )
    for name in {part.strip() for structure in about.structure if structure != MASK for part in structure.split(AND)}:
        if name not in STRUCTURES:
            raise FitError(f"'structure' names {quoted(name)}, which is none; the file is damaged")
    if len(set(about.noticed)) < len(about.noticed) or not set(about.noticed) <= set(states):
        raise FitError(
            f"'noticed' is {quoted(list(about.noticed))}, which does not fit its states; the file is damaged"
        )
    if len(set(about.dropped)) < len(about.dropped) or set(about.dropped) & set(actions):
        raise FitError(
            f"'dropped' is {quoted(list(about.dropped))}, which does not fit its actions; the file is damaged"
        )


def _check_kind(about: _FitDescription, arrays: Arrays) -> None:
    """Raise a `FitError` if the kind of fit does not match its arrays, actions and breaks of age."""
    if ("dynamics" in arrays) != (about.time == "continuous"):
        raise FitError(f"its time is {quoted(about.time)}, which does not fit its arrays; the file is damaged")
    if ("errors" in arrays) != (about.start is not None):
        raise FitError(f"'start' is {quoted(about.start)}, which does not fit its arrays; the file is damaged")
    breaks = about.age_breaks
    if any(later <= earlier for earlier, later in pairwise(breaks)) or len(about.action_names) % (1 + len(breaks)):
        raise FitError(f"'age_breaks' is {quoted(list(breaks))}, which does not fit its actions; the file is damaged")
    if breaks:
        count = len(about.action_names) // (1 + len(breaks))
        endings = [f", {interval}" for interval in age_names(breaks)]
        plain = [name.removesuffix(endings[0]) for name in about.action_names[:count]]
        if about.action_names != tuple(f"{name}{ending}" for ending in endings for name in plain):
            raise FitError("its actions do not have the names of its intervals of age; the file is damaged")
    else:
        plain = list(about.action_names)
    if about.default_action not in (None, *plain, *about.dropped):
        raise FitError(
            f"'default_action' is {quoted(about.default_action)}, which does not fit its actions; the file is damaged"
        )
    if not set(about.at_once) <= set(plain) or (about.at_once and about.default_action not in plain):
        raise FitError(
            f"'at_once' is {quoted(list(about.at_once))}, which does not fit its actions; the file is damaged"
        )


def _check_dynamics(about: _FitDescription, arrays: Arrays) -> None:
    """Raise a `FitError` about intensities, effects and errors that no fit has."""
    for name in ("errors", "bootstrap_errors"):
        if name in arrays and not _are_distributions(arrays[name]).all():
            raise FitError(f"{name!r} has rows that are not probabilities; the file is damaged")
    if "dynamics" in arrays:
        count = len(about.action_names) // (1 + len(about.age_breaks))
        ending = f", {age_names(about.age_breaks)[0]}" if about.age_breaks else ""
        plain = [name.removesuffix(ending) for name in about.action_names[:count]]
        at_once = np.tile(np.isin(plain, about.at_once), 1 + len(about.age_breaks))[:, None, None]
        known = ~np.isnan(arrays["dynamics"])
        diagonal = np.eye(arrays["dynamics"].shape[1], dtype=bool)
        for name in ("dynamics", "bootstrap_dynamics"):
            values = arrays.get(name, arrays["dynamics"])
            sound = (values >= 0) & (values <= LARGEST_RATE) & ((values == 0) | ~diagonal)
            sound = np.where(at_once, _are_distributions(values), sound)
            if not np.all(np.where(known, sound, np.isnan(values))):
                raise FitError(f"{name!r} holds numbers that are no intensities; the file is damaged")
    for name in ("dynamics", "errors"):
        low, high, _ = INTERVALS[name]
        if low in arrays:
            sound = (arrays[low] >= 0) & (arrays[low] <= arrays[high]) & (arrays[high] <= LARGEST_RATE)
            if not np.all(sound | np.isnan(arrays[name])):
                raise FitError(f"{low!r} and {high!r} are not the ends of intervals; the file is damaged")


def _are_distributions(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return whether values are part of a row of probabilities, of the shape of `values`."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums: npt.NDArray[np.bool_] = np.abs(values.sum(axis=-1, keepdims=True) - 1) < SUM_TOLERANCE
        return (values >= 0) & (values <= 1 + SUM_TOLERANCE) & sums


def _check_arrays(arrays: Arrays) -> None:
    """Raise a `FitError` about numbers that no fit has; a row of probabilities is a distribution or, if not known, NaN."""
    known = ~np.isnan(arrays["probabilities"])
    for name in ("probabilities", "bootstrap"):
        values = arrays.get(name, arrays["probabilities"])
        if not np.all(np.where(known, _are_distributions(values), np.isnan(values))):
            raise FitError(f"{name!r} has rows that are not probabilities; the file is damaged")
    if "low" in arrays:
        low, high = arrays["low"], arrays["high"]
        # Comparisons with NaN are false: it is accepted only where the probability is not known.
        sound = (low >= 0) & (low <= high) & (high <= 1 + SUM_TOLERANCE)
        if not np.all(np.where(known, sound, sound | np.isnan(low) | np.isnan(high))):
            raise FitError("'low' and 'high' are not the ends of intervals of probabilities; the file is damaged")
    initial = arrays["initial"]
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.all(initial >= 0) or not abs(initial.sum() - 1) < SUM_TOLERANCE:
            raise FitError("'initial' is not a distribution over its states; the file is damaged")
    for name in ("inspected", "exposure"):
        if not np.all((arrays[name] >= 0) & (arrays[name] <= LARGEST_EXACT)):
            raise FitError(f"{name!r} holds numbers that cannot be counts; the file is damaged")
