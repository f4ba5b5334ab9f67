"""Which transitions are possible, which recorded states may be wrong, and rows of probabilities given by assumptions."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.file_access import explain
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.settings import probability

__all__ = [
    "STAY",
    "STRUCTURES",
    "NamedMask",
    "allowed_transitions",
    "assumed_rows",
    "check_assumptions",
    "named_mask",
    "possible_errors",
    "read_mask",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: By name, which states `j` may follow state `i` of `n`; states are in order, the best first.
STRUCTURES: dict[str, Callable[[Any, Any, int], Any]] = {
    "any": lambda i, j, n: (i >= 0) & (j >= 0),
    "deteriorate": lambda i, j, n: j >= i,
    "deteriorate-by-steps": lambda i, j, n: (j == i) | (j == i + 1),
    "improve": lambda i, j, n: j <= i,
    "improve-by-steps": lambda i, j, n: (j == i) | (j == i - 1),
    "no-healing": lambda i, j, n: j >= i,
    "by-steps": lambda i, j, n: abs(i - j) <= 1,
    "absorbing": lambda i, j, n: (i < n - 1) | (j == i),
}
#: Largest number of lines of a file with a structure.
MOST_MASK_ROWS = 1000
#: What stands between names of structures that hold together.
AND = "+"
#: The name of a structure that was given as a mask.
MASK = "as given"
#: The key of a mapping of structures for all actions that it does not name.
OTHERS = "*"
#: The assumption that an action changes nothing.
STAY = "stay"


class NamedMask(NamedTuple):
    """Which states may follow which, by name: a table that was read from a file."""

    states: tuple[str, ...]
    table: BoolArray
    path: str


def read_mask(path: str) -> NamedMask:
    """Return the structure in a CSV file: states as its first row and column, and 0 or 1 in its cells."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(islice(file, MOST_MASK_ROWS)) if any(row)]
    except OSError as error:
        raise FitError(str(explain(error, Path(path), "read"))) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FitError(f"{path} cannot be read as CSV ({error}); save it as UTF-8") from error
    states = tuple(rows[0][1:]) if rows else ()
    if not states or tuple(row[0] for row in rows[1:]) != states or any(len(row) != len(rows[0]) for row in rows):
        raise FitError(
            f"{path} is no structure; expected a table with the same states as its first row and its first column"
        )
    for row in rows[1:]:
        wrong = [cell for cell in row[1:] if cell not in ("0", "1")]
        if wrong:
            raise FitError(
                f"{path}: the row of {row[0]!r} has {quoted(wrong[0])}, expected 0 (impossible) or 1 (possible)"
            )
    return NamedMask(states, np.array([[cell == "1" for cell in row[1:]] for row in rows[1:]]), path)


def _in_order(mask: NamedMask, states: Sequence[str]) -> BoolArray:
    """Return a mask that was read from a file in the order of the states."""
    if set(mask.states) != set(states) or len(mask.states) != len(states):
        missing = [name for name in states if name not in mask.states]
        problem = (
            f"has no row of {missing[0]!r}"
            if missing
            else f"has states that the records do not have: {', '.join(mask.states)}"
        )
        raise FitError(f"{mask.path} {problem}; expected the states {', '.join(states)}")
    order = [mask.states.index(name) for name in states]
    return mask.table[np.ix_(order, order)]


def allowed_transitions(
    structure: Any, action_names: Sequence[str], state_names: Sequence[str], rates: BoolArray | None = None
) -> tuple[BoolArray, tuple[str, ...]]:
    """Return a mask of shape (A, S, S) and the name of each action's structure.

    `structure` is a name, or names that hold together such as "by-steps+absorbing", for all actions, a mask of shape (S, S) for
    all, or a mapping from actions to names or masks; actions that it does not name have that of "*", or else "any". For actions
    with intensities, `rates` (A,), the diagonal of a mask is ignored; those that act at once may do anything unless they are
    named.
    """
    if isinstance(structure, Mapping):
        for action in structure:
            if action not in action_names and action != OTHERS:
                raise FitError(f"structure: {unknown_name('action', action, action_names)}")
        each = [structure.get(action, structure.get(OTHERS, "any")) for action in action_names]
    else:
        each = ["any" if structure is None else structure] * len(action_names)
    if (
        rates is not None
    ):  # a structure of intensities says nothing about actions that act at once, unless it names them
        named = structure if isinstance(structure, Mapping) else {}
        each = [
            one if rate or action in named else "any"
            for one, action, rate in zip(each, action_names, rates, strict=True)
        ]
    n_states = len(state_names)
    each = [_in_order(one, state_names) if isinstance(one, NamedMask) else one for one in each]
    is_rate = [False] * len(action_names) if rates is None else rates.tolist()
    masks = [_mask(one, action, n_states, rate) for one, action, rate in zip(each, action_names, is_rate, strict=True)]
    return np.array(masks), tuple(one if isinstance(one, str) else MASK for one in each)


def named_mask(name: str, n_states: int) -> BoolArray:
    """Return which transitions a named structure allows, (S, S)."""
    i, j = np.indices((n_states, n_states))
    return np.asarray(STRUCTURES[name](i, j, n_states))


def _mask(structure: Any, action: str, n_states: int, is_rate: bool) -> BoolArray:
    """Return which transitions are possible, (S, S); with intensities the diagonal is false."""
    if isinstance(structure, str):
        mask = np.ones((n_states, n_states), dtype=bool)
        for name in structure.split(AND):
            if name.strip() not in STRUCTURES:
                raise FitError(unknown_name(f"structure of action {action!r}", name, STRUCTURES))
            mask &= named_mask(name.strip(), n_states)
        return mask & ~np.eye(n_states, dtype=bool) if is_rate else mask
    try:
        mask = np.asarray(structure)
    except ValueError:  # rows of different lengths
        mask = np.array(len(structure) * [None])
    if mask.shape != (n_states, n_states) or mask.dtype != np.bool_:
        raise FitError(
            f"the structure of action {action!r} is an array of type {mask.dtype} and shape {mask.shape}, expected truth values "
            f"of shape ({n_states}, {n_states}): whether state j may follow state i; or one of: {', '.join(STRUCTURES)}"
        )
    if is_rate:
        return mask & ~np.eye(n_states, dtype=bool)
    closed = np.flatnonzero(~mask.any(axis=1))
    if closed.size:
        raise FitError(
            f"the structure of action {action!r} allows nothing from state {int(closed[0])}; allow a transition"
        )
    return mask


def possible_errors(errors: Any, states: Sequence[str], noticed: Sequence[str]) -> tuple[BoolArray, FloatArray]:
    """Return which states may be recorded in place of each state, (S, S), and the known probabilities of that, NaN elsewhere.

    `errors` maps a true state to the states that may be recorded instead: a list of names, whose probabilities are estimated,
    or a mapping from names to probabilities, of which None are estimated. The diagonal is possible in every row, and known where
    all errors of the row are.
    """
    size, numbers = len(states), {name: number for number, name in enumerate(states)}
    allowed = np.eye(size, dtype=bool)
    known = np.full((size, size), np.nan)
    if not isinstance(errors, Mapping):
        raise FitError(f"errors is {quoted(errors)}, expected a mapping such as {{'1': ['2'], '2': ['1', '3']}}")
    for true, recorded in errors.items():
        if true not in numbers:
            raise FitError(f"errors: {unknown_name('state', true, states)}")
        if isinstance(recorded, str) or not isinstance(recorded, (Mapping, Sequence)):
            raise FitError(
                f"errors[{true!r}] is {quoted(recorded)}, expected a list of states or a mapping to probabilities"
            )
        given = recorded.items() if isinstance(recorded, Mapping) else [(name, None) for name in recorded]
        for name, chance in given:
            if not isinstance(name, str) or name not in numbers:
                raise FitError(f"errors[{true!r}]: {unknown_name('state', name, states)}")
            if name == true:
                raise FitError(f"errors[{true!r}] names the state itself, which is what remains; leave it out")
            if true in noticed or name in noticed:
                raise FitError(
                    f"errors[{true!r}] names {name!r}, but states that are noticed at once are recorded without "
                    "error; leave it out"
                )
            allowed[numbers[true], numbers[name]] = True
            if chance is not None:
                known[numbers[true], numbers[name]] = probability(chance, f"errors[{true!r}][{name!r}]", FitError)
        total = np.nansum(known[numbers[true]])
        if total >= 1:
            raise FitError(
                f"errors[{true!r}] has probabilities that sum to {total:g}; they must leave some for {true!r} itself"
            )
    settled = ~(allowed & np.isnan(known) & ~np.eye(size, dtype=bool)).any(axis=1)
    known[settled] = np.nan_to_num(known[settled])
    known[settled, settled] = 1.0 - known[settled].sum(axis=1)
    return allowed, known


def check_assumptions(assume: Mapping[str, str], states: Sequence[str]) -> None:
    """Raise a `FitError` if an assumption names neither a state nor "stay"."""
    for action, target in assume.items():
        if target not in states and target != STAY:
            raise FitError(f"assume {action!r}: {unknown_name('state', target, [*states, STAY])}")


def assumed_rows(
    unknown: BoolArray, assume: Mapping[str, str], actions: Sequence[str], states: Sequence[str], rates: BoolArray
) -> tuple[FloatArray, BoolArray, list[Diagnostic]]:
    """Return the rows given by assumptions: (A, S, S) with NaN in all others, a mask of them (A, S), and diagnostics.

    Only rows of `unknown`, bool (A, S), are assumed: those about which the records contain no information. With breaks of age
    there are several blocks for each action. An action with intensities, `rates` (A,), can only be assumed to stay.
    """
    fixed = np.full((*unknown.shape, len(states)), np.nan)
    assumed = np.zeros_like(unknown)
    notes = []
    for action, target in assume.items():
        leads = {"target": target} if target in states else {}
        shown: dict[str, None] = {}
        for number in range(list(actions).index(action), len(unknown), len(actions)):
            rows = np.flatnonzero(unknown[number]).tolist()
            fixed[number, rows] = 0.0
            if not rates[number]:
                fixed[number, rows, np.full(len(rows), list(states).index(target)) if leads else rows] = 1.0
            assumed[number, rows] = True
            shown |= dict.fromkeys(states[row] for row in rows)
        code = "assumed-transitions" if shown else "assumption-not-needed"
        details = {"states": tuple(shown)} if shown else {}
        notes.append(diagnostic(code, action=action, **details, **leads))
    return fixed, assumed, notes
