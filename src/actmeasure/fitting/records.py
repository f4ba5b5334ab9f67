"""Records of inspections: what was seen, when, and what was done next."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.fitting.coding import MOST_NAMES, NONE, Coder, Names
from actmeasure.fitting.progress import Progress, ignore_progress
from actmeasure.fitting.reading import read_csv, read_table
from actmeasure.fitting.times import Clock

__all__ = ["Records", "read_records"]

IntArray = npt.NDArray[np.int64]

#: A name this close to a recorded one is taken for a slip (1 is the same).
SLIP = 0.7


@dataclass(frozen=True)
class Records:
    """Checked records in the order of unit and time, one per unit and time.

    Attributes
    ----------
    unit, time, state, action, line : int64 arrays, shape (N,)
        State and action are -1 where the record does not tell. The line is that of the file, or the row of the table.
    unit_names, state_names, action_names : tuples of str
    period : str or None
    notes, warnings : lists of sentences
        What was done to the records, and what looks odd about them.
    """

    unit: IntArray
    time: IntArray
    state: IntArray
    action: IntArray
    line: IntArray
    unit_names: tuple[str, ...]
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    period: str | None
    source: str
    notes: list[str]
    warnings: list[str]

    def place(self, record: int) -> str:
        """`records.csv, line 7`, for messages."""
        return f"{self.source} {self.line[record]:,}"


def read_records(
    records: Any,
    *,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    default_action: str | None = None,
    untried: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    period: float | str | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    skip_broken: bool = False,
    progress: Progress = ignore_progress,
) -> Records:
    """Read records from a CSV file or table and check them; see `actmeasure.fit` for the parameters.

    Actions of `untried` are there even if no record has them.
    """
    given_states, given_actions = _given(states, "states"), _given(actions, "actions")
    named = [*untried, *([] if default_action is None else [default_action])]
    for name in named:
        if given_actions is not None and name not in given_actions:
            raise FitError(unknown_name("action", name, given_actions))
    is_file = isinstance(records, (str, os.PathLike))
    source = f"{os.fspath(records)}, line" if is_file else "row"
    known = (Names("state", given_states, MOST_NAMES), Names("action", given_actions, MOST_NAMES))
    coder = Coder(source, Clock(period), *known)
    renamed, optional = dict(columns or {}), default_action is not None
    if is_file:
        read_csv(records, coder, renamed, optional, delimiter, encoding, progress)
    elif hasattr(records, "__getitem__") and hasattr(records, "keys"):
        read_table(records, coder, renamed, optional)
    else:
        raise FitError(f"records are a {type(records).__name__}, expected the path of a CSV file or a pandas DataFrame")
    notes = _check_broken(coder, source, skip_broken)
    if default_action is not None and given_actions is None:
        notes += _check_default(default_action, tuple(coder.actions.codes))
    return _sorted(coder, source, given_states, given_actions, named, notes)


def _check_default(name: str, recorded: Sequence[str]) -> list[str]:
    """Raise if the default action is a recorded one with a slip; note if it is one that no record names."""
    if not recorded or name in recorded:
        return []
    if get_close_matches(name.lower(), [one.lower() for one in recorded], n=1, cutoff=SLIP):
        raise FitError(unknown_name("default action", name, recorded))
    return [f"No record names the default action {name!r}; the records name {', '.join(recorded)}."]


def _given(names: Sequence[str] | None, what: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise FitError(f"{what} is {quoted(names)}, expected a list of names")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice or not names:
        raise FitError(
            f"{what} has {twice[0]!r} twice; name each once" if twice else f"{what} is empty; name at least one"
        )
    return tuple(names)


def _check_broken(coder: Coder, source: str, skip_broken: bool) -> list[str]:
    """Raise what is wrong with the lines, or tell that they were skipped."""
    notes = []
    if coder.broken:
        line, problem = coder.problems[0]
        lines = ", ".join(f"{line:,}" for line, _ in coder.problems) + ", ..." * (coder.broken > len(coder.problems))
        if not skip_broken or not coder.line:
            raise FitError(f"{source} {line:,}: {problem}; {_what_else(coder, lines)}")
        notes.append(
            f"Left out, as asked for: {_many(coder.broken, 'broken line')} ({lines}). Line {line:,}: {problem}."
        )
    if not coder.line:
        raise FitError(f"{source.removesuffix(', line')} has no records; expected rows below the names of the columns")
    note = coder.clock.note()
    return [*notes, note] if note else notes


def _what_else(coder: Coder, lines: str) -> str:
    """Which lines are broken too, and what could be read."""
    more = f"{coder.broken:,} lines are broken ({lines}); " if coder.broken > 1 else ""
    if not coder.line:
        return f"{more}no other line could be read"
    read = f"{_many(len(coder.line), 'other record')} of {_many(len(set(coder.unit)), 'unit')} could be read"
    return f"{more}{read}; correct what is broken, or leave it out with skip_broken=True (--skip-broken)"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _sorted(
    coder: Coder,
    source: str,
    states: tuple[str, ...] | None,
    actions: tuple[str, ...] | None,
    named: Sequence[str],
    notes: list[str],
) -> Records:
    """The records in order, with those of one unit and time as one."""
    for name in named:
        coder.actions.codes.setdefault(name, len(coder.actions.codes))
    unit, time, line = (np.array(column, dtype=np.int64) for column in (coder.unit, coder.time, coder.line))
    state_names, state = _ranked(coder.states.codes, np.array(coder.state, dtype=np.int64), states)
    action_names, action = _ranked(coder.actions.codes, np.array(coder.action, dtype=np.int64), actions)
    unit_names = tuple(coder.units.codes)
    order = np.lexsort((line, time, unit))
    unit, time, state, action, line = (column[order] for column in (unit, time, state, action, line))
    first = np.flatnonzero(np.r_[True, (unit[1:] != unit[:-1]) | (time[1:] != time[:-1])])
    merged = len(unit) - len(first)
    if merged:
        for kind, column, names in (("states", state, state_names), ("actions", action, action_names)):
            _check_agreement(kind, column, names, first, unit, time, line, unit_names, source)
        state, action = np.maximum.reduceat(state, first), np.maximum.reduceat(action, first)
        unit, time, line = unit[first], time[first], line[first]
        notes.append(
            f"{_many(merged, 'record')} told of a unit and time that another one tells of too; they agree and count once."
        )
    return Records(
        unit, time, state, action, line, unit_names, state_names, action_names, coder.clock.name, source, notes,
        _odd_states(state, line, state_names, source),
    )  # fmt: skip


def _ranked(
    codes: Mapping[str, int], column: IntArray, given: tuple[str, ...] | None
) -> tuple[tuple[str, ...], IntArray]:
    """Names in their order, as given or natural, and the column in terms of it."""
    names = given if given is not None else tuple(sorted(codes, key=natural))
    rank = np.array([names.index(name) for name in codes] + [NONE], dtype=np.int64)
    return names, rank[column]


def natural(name: str) -> list[tuple[int, float, str]]:
    """A key by which 9 comes before 10, and grade 9 before grade 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(0, float(part), "") if number % 2 else (1, 0.0, part) for number, part in enumerate(parts) if part]


def _check_agreement(
    kind: str,
    column: IntArray,
    names: Sequence[str],
    first: IntArray,
    unit: IntArray,
    time: IntArray,
    line: IntArray,
    unit_names: Sequence[str],
    source: str,
) -> None:
    """Raise if two records of one unit and time contradict each other."""
    largest = np.maximum.reduceat(column, first)
    smallest = np.minimum.reduceat(np.where(column == NONE, len(names), column), first)
    wrong = np.flatnonzero(smallest < largest)
    if not wrong.size:
        return
    begin = int(first[wrong[0]])
    end = int(np.r_[first, len(column)][wrong[0] + 1])
    low = begin + int(np.argmax(column[begin:end] == smallest[wrong[0]]))
    high = begin + int(np.argmax(column[begin:end] == largest[wrong[0]]))
    one, other = sorted((low, high), key=lambda record: line[record])
    times = f"; {len(wrong):,} times and units are contradicted in all" if len(wrong) > 1 else ""
    raise FitError(
        f"{source} {line[other]:,}: unit {unit_names[unit[one]]!r} has two {kind} at time {time[one]}, "
        f"{names[column[one]]!r} (line {line[one]:,}) and {names[column[other]]!r}{times}; correct one, or use shorter periods "
        f"if both are right"
    )


def _odd_states(state: IntArray, line: IntArray, names: Sequence[str], source: str) -> list[str]:
    """States that were seen once, or never although they were named."""
    counts = np.bincount(state[state != NONE], minlength=len(names))
    odd = []
    for number, name in enumerate(names):
        if counts[number] == 1:
            place = f"{source} {line[np.argmax(state == number)]:,}"
            odd.append(f"State {name!r} was seen only once ({place}): a slip of the pen, or too rare to learn about.")
        elif not counts[number]:
            odd.append(f"State {name!r} was never seen.")
    return odd
