"""Records of inspections: what was seen, when, and what was done next."""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.money import DAYS

__all__ = [
    "COLUMNS",
    "NONE",
    "Coder",
    "Names",
    "PeriodCalendar",
    "Progress",
    "Records",
    "ignore_progress",
    "read_csv",
    "read_records",
    "read_table",
]

# ----------------------------------------------------------------------------------------------------
# How a fit tells how far it is.
# ----------------------------------------------------------------------------------------------------


#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], None]


def ignore_progress(doing: str, done: int, total: int) -> None:
    """For those who do not want to know."""


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
    notes, warnings : lists of Diagnostic
        How the records were read, and states that were seen once or never.
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
    notes: list[Diagnostic]
    warnings: list[Diagnostic]

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
    coder = Coder(source, PeriodCalendar(period), *known)
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


def _check_default(name: str, recorded: Sequence[str]) -> list[Diagnostic]:
    """Raise if the default action is probably a misspelt recorded one; return a diagnostic if no record names it."""
    if not recorded or name in recorded:
        return []
    if get_close_matches(name.lower(), [one.lower() for one in recorded], n=1, cutoff=SLIP):
        raise FitError(unknown_name("default action", name, recorded))
    return [diagnostic("default-action-not-recorded", action=name, recorded=tuple(recorded))]


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


def _check_broken(coder: Coder, source: str, skip_broken: bool) -> list[Diagnostic]:
    """Raise a `FitError` about broken lines, or return diagnostics about those skipped and about how times were read."""
    notes = []
    if coder.broken:
        line, problem = coder.problems[0]
        lines = ", ".join(f"{line:,}" for line, _ in coder.problems) + ", ..." * (coder.broken > len(coder.problems))
        if not skip_broken or not coder.line:
            raise FitError(f"{source} {line:,}: {problem}; {_what_else(coder, lines)}")
        named = tuple(line for line, _ in coder.problems)
        notes.append(diagnostic("lines-skipped", count=coder.broken, lines=named, problem=problem))
    if not coder.line:
        raise FitError(f"{source.removesuffix(', line')} has no records; expected rows below the names of the columns")
    note = coder.calendar.diagnostic()
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
    notes: list[Diagnostic],
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
        notes.append(diagnostic("records-merged", records=merged))
    return Records(
        unit, time, state, action, line, unit_names, state_names, action_names, coder.calendar.name, source, notes,
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


def _odd_states(state: IntArray, line: IntArray, names: Sequence[str], source: str) -> list[Diagnostic]:
    """Return diagnostics about states that were seen once, or never although they were named."""
    counts = np.bincount(state[state != NONE], minlength=len(names))
    odd = []
    for number, name in enumerate(names):
        if counts[number] == 1:
            place = f"{source} {line[np.argmax(state == number)]:,}"
            odd.append(diagnostic("state-seen-once", state=name, place=place))
        elif not counts[number]:
            odd.append(diagnostic("state-never-seen", state=name))
    return odd


# ----------------------------------------------------------------------------------------------------
# Records from a CSV file or a table in memory, read row by row.
# ----------------------------------------------------------------------------------------------------


COLUMNS = ("unit", "time", "state", "action")
#: A longer line is not one of records.
LONGEST_LINE = 1 << 20
LINES_BETWEEN_NEWS = 1 << 16
#: How files begin that are no text.
OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"PAR1": "a Parquet file; read it with pandas and pass the table to actmeasure.fit",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


def read_csv(
    path: str | os.PathLike[str],
    coder: Coder,
    columns: Mapping[str, str],
    action_is_optional: bool,
    delimiter: str,
    encoding: str,
    progress: Progress,
) -> None:
    """Read a file into the coder without ever holding more of its text than a line; what is wrong with it is a `FitError`.

    Broken lines are noted by the coder; what makes the rest unreadable is raised.
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            _check_beginning(place, file.read(4), encoding)
        # Bytes that are no text become marks, so that the line they are in is known.
        kind = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # Excel begins UTF-8 with a mark
        with place.open(encoding=kind, errors="surrogateescape", newline="") as text:
            lines = _lines(text, str(place), place.stat().st_size, progress)
            _read_rows(lines, str(place), coder, columns, action_is_optional, delimiter)
    except OSError as error:
        raise FitError(str(explain(error, place, "read"))) from error
    except LookupError as error:
        raise FitError(f"unknown encoding {quoted(encoding)}; give one such as utf-8 or cp1252") from error


def _check_beginning(place: Path, beginning: bytes, encoding: str) -> None:
    if not beginning:
        raise FitError(f"{place} is empty; expected a first line with the columns {','.join(COLUMNS)}")
    for magic, kind in OTHER_FILES.items():
        if beginning.startswith(magic) and not encoding.lower().replace("-", "").startswith("utf16"):
            raise FitError(f"{place} is {kind}")


def _read_rows(
    lines: Iterator[str],
    place: str,
    coder: Coder,
    columns: Mapping[str, str],
    action_is_optional: bool,
    delimiter: str,
) -> None:
    try:
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
    except TypeError as error:
        raise FitError(f"delimiter is {quoted(delimiter)}, expected one character such as ';'") from error
    line = 1
    try:
        header = next(rows, None)
        while header is not None and not any(cell.strip() for cell in header):
            header = next(rows, None)
        if header is None:
            raise FitError(f"{place} is empty; expected a first line with the columns {','.join(COLUMNS)}")
        names = [name.strip().removeprefix("\ufeff") for name in header]
        where = _positions(names, columns, action_is_optional, f"{place}, line {rows.line_num}", delimiter)
        width, line = len(names), rows.line_num + 1
        unit, time, state, action = where
        for row in rows:
            if len(row) == width:
                coder.add(line, row[unit], row[time], row[state], row[action] if action >= 0 else "")
            elif row:
                coder.note(line, _wrong_width(len(row), width, delimiter))
            line = rows.line_num + 1  # a cell may hold line breaks
    except csv.Error as error:
        raise FitError(
            f"{place}, line {line}: the row that begins here cannot be read ({error}); {len(coder.line):,} records were read "
            "before it; a quote that is not closed is the usual reason"
        ) from error


def _lines(text: TextIO, place: str, size: int, progress: Progress) -> Iterator[str]:
    """The lines of a file; one that never ends is an error and not a full memory."""
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and line[-1] not in "\r\n":
            raise FitError(f"{place}, line {number} is longer than {LONGEST_LINE:,} characters; is this a CSV file?")
        if number % LINES_BETWEEN_NEWS == 0:
            progress("reading", min(size, text.buffer.tell()), size)
        yield line


def _wrong_width(found: int, expected: int, delimiter: str) -> str:
    cells = "1 field" if found == 1 else f"{found} fields"
    return (
        f"it has {cells}, expected {expected} as in the first line; an empty cell still needs its {delimiter!r}, and a cell "
        f"with a {delimiter!r} in it needs quotes"
    )


def _positions(
    names: Sequence[str], columns: Mapping[str, str], action_is_optional: bool, place: str, delimiter: str
) -> tuple[int, int, int, int]:
    """Where the four columns stand; -1 for an action that may be missing."""
    for column in columns:
        if column not in COLUMNS:
            raise FitError(unknown_name("column to rename", column, COLUMNS))
    found = []
    for column in COLUMNS:
        name = columns.get(column, column)
        if names.count(name) > 1:
            raise FitError(f"{place}: the column {name!r} is there {names.count(name)} times; rename all but one")
        if name in names:
            found.append(names.index(name))
        elif column == "action" and action_is_optional and column not in columns:
            found.append(-1)
        else:
            raise FitError(f"{place}: {_missing(column, name, names, delimiter)}")
    return found[0], found[1], found[2], found[3]


def _missing(column: str, name: str, names: Sequence[str], delimiter: str) -> str:
    """What to do about a column that is not there."""
    other = [sign for sign in (";", "\t", ",", "|") if sign != delimiter and len(names) == 1 and sign in names[0]]
    if other:
        return (
            f"there is no column {name!r}, as the columns are separated by {other[0]!r}; give delimiter={other[0]!r} "
            f"(--delimiter {other[0]!r})"
        )
    remedy = f"name the column that holds it with columns={{{column!r}: '...'}} (--column {column}=...)"
    if column == "action":
        remedy += ", or say what was always done with default_action='nothing' (--default-action nothing)"
    meant = unknown_name("column", name, names).partition("; did you mean ")[2].partition("?")[0]
    hint = f"; did you mean {meant}?" if meant else ";"
    listed = ", ".join(repr(name) for name in names[:12])
    return f"there is no column {name!r} among {listed}{hint} {remedy}"


def read_table(table: Any, coder: Coder, columns: Mapping[str, str], action_is_optional: bool) -> None:
    """Read a pandas table, or any mapping from column names to sequences, into the coder; rows are counted from 1."""
    names = [str(name) for name in table]
    where = _positions(names, columns, action_is_optional, "the table", ",")
    cells = [list(table[names[position]]) if position >= 0 else None for position in where]
    lengths = {len(column) for column in cells if column is not None}
    if len(lengths) != 1:
        raise FitError(f"the columns of the table have different lengths: {sorted(lengths)}; make them equal")
    count = lengths.pop()
    unit, time, state, action = ([""] * count if column is None else column for column in cells)
    for number in range(count):
        coder.add(number + 1, _text(unit[number]), _text(time[number]), _text(state[number]), _text(action[number]))


def _text(value: Any) -> str:
    """A cell as it would stand in a file; nothing for missing values, and 3 for 3.0, as pandas makes it beside missing ones."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return "" if text in ("NaT", "<NA>") else text


# ----------------------------------------------------------------------------------------------------
# Rows of text as columns of numbers, with everything checked that a row tells by itself.
# ----------------------------------------------------------------------------------------------------


#: The number that stands for an empty cell.
NONE = -1
#: More different values than these are not names of states or actions.
MOST_NAMES = 250
#: Distinct texts of times that are remembered.
MOST_TIMES = 1 << 20
#: So many broken lines are named, the others counted.
SHOWN_PROBLEMS = 5


class HopelessError(FitError):
    """What is wrong with the whole file and not with a line."""


class Names:
    """Names in the order in which they are met, or only the given ones."""

    def __init__(self, kind: str, given: Sequence[str] | None = None, most: int | None = None) -> None:
        self.kind, self.closed, self._most = kind, given is not None, most
        self.codes: dict[str, int] = {}
        #: Number of every text as it stands in a cell, spaces included; empty cells have none.
        self.seen: dict[str, int] = {}
        for name in given or ():
            self.codes[name] = len(self.codes)

    def code(self, text: str) -> int:
        """The number of the name in a cell that has not been met before."""
        name = text.strip()
        if not name:
            number = NONE
        elif name in self.codes:
            number = self.codes[name]
        else:
            number = self._new(name)
        self.seen[text] = number
        return number

    def _new(self, name: str) -> int:
        if "\0" in name or any("\ud800" <= sign <= "\udfff" for sign in name):
            raise FitError(
                f"the {self.kind} {quoted(_shown(name))} is not UTF-8 text; save the file as UTF-8, or give its encoding, such "
                "as encoding='cp1252' (--encoding cp1252)"
            )
        if self.closed:
            raise FitError(unknown_name(self.kind, name, self.codes))
        if self._most is not None and len(self.codes) >= self._most:
            raise HopelessError(
                f"the {self.kind} {quoted(name)} is one of more than {self._most:,} different ones; {self.kind}s are classes "
                "such as 1 to 5, so put measured values into classes first"
            )
        self.codes[name] = len(self.codes)
        return self.codes[name]


@dataclass
class Coder:
    """Columns of numbers, filled row by row; `source` is what stands before the number of a line in messages."""

    source: str
    calendar: PeriodCalendar
    states: Names
    actions: Names
    units: Names = field(default_factory=lambda: Names("unit"))
    unit: array[int] = field(default_factory=lambda: array("q"))
    time: array[int] = field(default_factory=lambda: array("q"))
    state: array[int] = field(default_factory=lambda: array("h"))
    action: array[int] = field(default_factory=lambda: array("h"))
    line: array[int] = field(default_factory=lambda: array("q"))
    problems: list[tuple[int, str]] = field(default_factory=list)
    broken: int = 0

    def __post_init__(self) -> None:
        self._times: dict[str, int] = {}

    def add(self, line: int, unit: str, time: str, state: str, action: str) -> None:
        """Take a row, or note what is wrong with it."""
        try:
            codes = (
                _known(self.units, unit), self._time(time), _known(self.states, state), _known(self.actions, action)
            )  # fmt: skip
            if codes[0] == NONE:
                raise FitError("the unit is empty; name the unit")
        except HopelessError as error:
            raise FitError(f"{self.source} {line:,}: {error}") from None
        except FitError as error:
            self.note(line, str(error))
            return
        self.unit.append(codes[0])
        self.time.append(codes[1])
        self.state.append(codes[2])
        self.action.append(codes[3])
        self.line.append(line)

    def note(self, line: int, problem: str) -> None:
        """Remember that a line is broken."""
        self.broken += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append((line, problem))

    def _time(self, text: str) -> int:
        found = self._times.get(text)
        if found is None:
            stripped = text.strip()
            if not stripped:
                raise FitError("the time is empty; give the period of the record")
            if len(self._times) >= MOST_TIMES:
                self._times.clear()
            found = self._times[text] = self.calendar.parse(stripped)
        return found


def _shown(name: str) -> str:
    """A name with a mark for each byte that is no text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _known(names: Names, text: str) -> int:
    found = names.seen.get(text)
    return names.code(text) if found is None else found


# ----------------------------------------------------------------------------------------------------
# Times of records as whole periods.
# ----------------------------------------------------------------------------------------------------


WHOLE = re.compile(r"\d{1,15}")
#: Larger whole numbers are not exact as floats.
LATEST = 2**53


class PeriodCalendar:
    """Turns the text of a time into a whole number of periods from 0 up.

    Parameters
    ----------
    period : None, a number, or "day", "week", "month", "quarter", "year"
        Without it times are whole numbers. With a number, times are real numbers that are divided by it and rounded down. With a
        name, times are whole numbers of such periods, or dates (2024-05-31), which fall into the period of the calendar.
    """

    def __init__(self, period: float | str | None = None) -> None:
        self.period = period
        self._dates: bool | None = None
        if isinstance(period, str) and period not in DAYS:
            raise FitError(unknown_name("period", period, DAYS) + "; or a number such as 0.5, in the unit of the times")
        if period is not None and not isinstance(period, str):
            numeric = isinstance(period, (int, float)) and not isinstance(period, bool)
            if not numeric or not math.isfinite(period) or period <= 0:
                raise FitError(f"period is {quoted(period)}, expected a number above 0 or one of: {', '.join(DAYS)}")

    @property
    def name(self) -> str | None:
        """What a period is, if that is known."""
        return self.period if isinstance(self.period, str) else None

    def parse(self, text: str) -> int:
        """The period of a time; a `FitError` says, without its place, what is wrong."""
        if WHOLE.fullmatch(text) and not isinstance(self.period, (int, float)):
            return self._as(int(text), is_date=False)
        try:
            number = float(text)
        except ValueError:
            return self._as(self._of_date(text), is_date=True)
        return self._as(self._of_number(number, text), is_date=False)

    def _of_number(self, number: float, text: str) -> int:
        if not math.isfinite(number) or abs(number) > LATEST:
            raise FitError(f"the time {quoted(text)} is not a usable number; correct it")
        if number < 0:
            raise FitError(f"the time {quoted(text)} is negative; count times from 0 up")
        if isinstance(self.period, (int, float)):
            periods = number / self.period
            # 0.3 / 0.1 is a little less than 3, and means 3.
            return math.floor(periods + 1e-9 * max(1.0, periods))
        if not number.is_integer():
            raise FitError(
                f"the time {quoted(text)} is not a whole number of periods; give the length of a period with period=0.5 "
                "(--period 0.5) to have times divided by it and rounded down"
            )
        return int(number)

    def _of_date(self, text: str) -> int:
        try:
            day = datetime.fromisoformat(text).date()
        except ValueError:
            raise FitError(
                f"the time {quoted(text)} is neither a number nor a date such as 2024-05-31; correct it"
            ) from None
        if not isinstance(self.period, str):
            raise FitError(
                f"the time {quoted(text)} is a date; say what a period is with period='month' (--period month), or one of: "
                f"{', '.join(DAYS)}"
            )
        return _period_of(day, self.period)

    def _as(self, time: int, is_date: bool) -> int:
        if self._dates is None:
            self._dates = is_date
        if self._dates != is_date:
            raise FitError(
                "the time is a date where those before are numbers, or the other way round; use one of the two"
            )
        return time

    def diagnostic(self) -> Diagnostic | None:
        """Return how the times were converted, or None if they were whole numbers of periods."""
        if self._dates and isinstance(self.period, str):
            return diagnostic("dates-to-periods", period=self.period)
        if isinstance(self.period, (int, float)):
            return diagnostic("times-divided", length=self.period)
        return None


def _period_of(day: date, period: str) -> int:
    match period:
        case "day":
            return day.toordinal()
        case "week":  # from Monday on
            return (day.toordinal() - 1) // 7
        case "month":
            return day.year * 12 + day.month - 1
        case "quarter":
            return day.year * 4 + (day.month - 1) // 3
        case _:
            return day.year
