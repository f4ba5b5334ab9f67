"""Records of inspections, read from a CSV file or a table and checked: unit, time, state and action of each."""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import DAYS
from actmeasure.inspection.text import counted, problem_text

__all__ = [
    "COLUMNS",
    "NONE",
    "NameCodes",
    "PeriodCalendar",
    "Progress",
    "Records",
    "RowCoder",
    "ignore_progress",
    "read_csv",
    "read_records",
    "read_table",
]

IntArray = npt.NDArray[np.int64]
#: A function that is called with the name of a task, how much of it is done, and the total.
Progress = Callable[[str, int, int], None]

COLUMNS = ("unit", "time", "state", "action")
#: The code of an empty cell.
NONE = -1
#: `Records.source` of a table.
ROW = "row"
#: Similarity of names (1: equal) from which a default action counts as a misspelt recorded one.
MISSPELT = 0.7
#: Largest number of different states or actions.
MOST_NAMES = 250
#: Largest number of different texts of times that are cached.
MOST_TIMES = 1 << 20
#: Largest number of broken lines that are named in a message.
SHOWN_PROBLEMS = 5
#: Largest number of characters of a cell that are kept in a diagnostic.
LONGEST_DETAIL = 100
#: Largest number of characters in a line.
LONGEST_LINE = 1 << 20
#: Number of lines between two calls of `progress`.
LINES_BETWEEN_CALLS = 1 << 16
#: First bytes of files that are not text.
OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"PAR1": "a Parquet file; read it with pandas and pass the table to actmeasure.fit",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
WHOLE = re.compile(r"\d{1,15}")
#: Largest time; larger whole numbers are not exact as floats.
LATEST = 2**53


def ignore_progress(task: str, done: int, total: int) -> None:
    """Do nothing: the default of `progress`."""


@dataclass(frozen=True)
class Records:
    """Checked records, sorted by unit and time, one per unit and time.

    Attributes
    ----------
    unit, time, state, action, line : int64 arrays, shape (N,)
        State and action are -1 where the cell is empty. The line is that of the file, or the row of the table.
    unit_names, state_names, action_names : tuples of str
    period : str or None
        Unit of the times, such as "year"; None if it was not given.
    source : str
        The text before the number of a line in messages.
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

    def location(self, record: int) -> str:
        """Return `records.csv, line 7` for messages."""
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

    The actions are those of the records and of `untried`.
    """
    given_states, given_actions = _given(states, "states"), _given(actions, "actions")
    named = [*untried, *([] if default_action is None else [default_action])]
    for name in named:
        if given_actions is not None and name not in given_actions:
            raise FitError(unknown_name("action", name, given_actions))
    is_file = isinstance(records, (str, os.PathLike))
    source = f"{os.fspath(records)}, line" if is_file else ROW
    known = (NameCodes("state", given_states, MOST_NAMES), NameCodes("action", given_actions, MOST_NAMES))
    coder = RowCoder(source, PeriodCalendar(period), *known)
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
    if get_close_matches(name.lower(), [one.lower() for one in recorded], n=1, cutoff=MISSPELT):
        raise FitError(unknown_name("default action", name, recorded))
    return [diagnostic("default-action-not-recorded", action=name, recorded=tuple(recorded))]


def _given(names: Sequence[str] | None, what: str) -> tuple[str, ...] | None:
    """Return a list of names as a tuple; raise a `FitError` if it is empty, names one twice, or is something else."""
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


def _check_broken(coder: RowCoder, source: str, skip_broken: bool) -> list[Diagnostic]:
    """Raise a `FitError` about broken lines, or return diagnostics about those skipped and about how times were read."""
    notes = []
    if coder.broken:
        named = [line for line, _, _ in coder.problems]
        line, problem, details = coder.problems[0]
        if not skip_broken or not coder.line:
            raise FitError(f"{source} {line:,}: {problem_text(problem, details)}; {_what_else(coder, named)}")
        notes.append(diagnostic("lines-skipped", count=coder.broken, lines=named, problem=problem, **details))
    if not coder.line:
        raise FitError(f"{source.removesuffix(', line')} has no records; expected rows below the names of the columns")
    note = coder.calendar.diagnostic()
    return [*notes, note] if note else notes


def _what_else(coder: RowCoder, named: list[int]) -> str:
    """Return how many lines are broken, the first of them, and how many records could be read, for a message."""
    lines = ", ".join(f"{line:,}" for line in named) + ", ..." * (coder.broken > len(named))
    more = f"{coder.broken:,} lines are broken ({lines}); " if coder.broken > 1 else ""
    if not coder.line:
        return f"{more}no other line could be read"
    read = f"{counted(len(coder.line), 'other record')} of {counted(len(set(coder.unit)), 'unit')} could be read"
    return f"{more}{read}; correct what is broken, or leave it out with skip_broken=True (--skip-broken)"


def _sorted(
    coder: RowCoder,
    source: str,
    states: tuple[str, ...] | None,
    actions: tuple[str, ...] | None,
    named: Sequence[str],
    notes: list[Diagnostic],
) -> Records:
    """Return the records sorted, with those of the same unit and time merged."""
    for name in named:
        coder.actions.codes.setdefault(name, len(coder.actions.codes))
    unit, time, line = (np.array(column, dtype=np.int64) for column in (coder.unit, coder.time, coder.line))
    state_names, state = _ranked(coder.states.codes, np.array(coder.state, dtype=np.int64), states)
    action_names, action = _ranked(coder.actions.codes, np.array(coder.action, dtype=np.int64), actions)
    order = np.lexsort((line, time, unit))
    unit, time, state, action, line = (column[order] for column in (unit, time, state, action, line))
    names = (tuple(coder.units.codes), state_names, action_names)
    records = Records(unit, time, state, action, line, *names, coder.calendar.name, source, notes, [])
    first = np.flatnonzero(np.r_[True, (unit[1:] != unit[:-1]) | (time[1:] != time[:-1])])
    merged = len(unit) - len(first)
    if merged:
        _check_agreement(records, "states", state, state_names, first)
        _check_agreement(records, "actions", action, action_names, first)
        notes.append(diagnostic("records-merged", records=merged))
        state, action = np.maximum.reduceat(state, first), np.maximum.reduceat(action, first)
        records = replace(records, unit=unit[first], time=time[first], state=state, action=action, line=line[first])
    return replace(records, warnings=_odd_states(records))


def _ranked(
    codes: Mapping[str, int], column: IntArray, given: tuple[str, ...] | None
) -> tuple[tuple[str, ...], IntArray]:
    """Return the names in their order, as given or natural, and the column with codes in that order."""
    names = given if given is not None else tuple(sorted(codes, key=natural))
    rank = np.array([names.index(name) for name in codes] + [NONE], dtype=np.int64)
    return names, rank[column]


def natural(name: str) -> list[tuple[int, float, str]]:
    """Return a sorting key in which numbers within names are compared as numbers: 9 before 10, grade 9 before grade 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(0, float(part), "") if number % 2 else (1, 0.0, part) for number, part in enumerate(parts) if part]


def _check_agreement(records: Records, kind: str, column: IntArray, names: Sequence[str], first: IntArray) -> None:
    """Raise a `FitError` if two records of the same unit and time have different states or actions.

    `column` has the codes of all records, and `first` the first record of each unit and time.
    """
    largest = np.maximum.reduceat(column, first)
    smallest = np.minimum.reduceat(np.where(column == NONE, len(names), column), first)
    wrong = np.flatnonzero(smallest < largest)
    if not wrong.size:
        return
    begin = int(first[wrong[0]])
    end = int(np.r_[first, len(column)][wrong[0] + 1])
    low = begin + int(np.argmax(column[begin:end] == smallest[wrong[0]]))
    high = begin + int(np.argmax(column[begin:end] == largest[wrong[0]]))
    one, other = sorted((low, high), key=lambda record: records.line[record])
    times = f"; {len(wrong):,} times and units are contradicted in all" if len(wrong) > 1 else ""
    raise FitError(
        f"{records.location(other)}: unit {records.unit_names[records.unit[one]]!r} has two {kind} at time {records.time[one]}, "
        f"{names[column[one]]!r} (line {records.line[one]:,}) and {names[column[other]]!r}{times}; correct one, or use shorter "
        "periods if both are right"
    )


def _odd_states(records: Records) -> list[Diagnostic]:
    """Return diagnostics about states that were seen once, or never although they were named."""
    counts = np.bincount(records.state[records.state != NONE], minlength=len(records.state_names))
    file = {"file": records.source.removesuffix(", line")} if records.source != ROW else {}
    odd = []
    for number, name in enumerate(records.state_names):
        if counts[number] == 1:
            line = int(records.line[np.argmax(records.state == number)])
            odd.append(diagnostic("state-seen-once", state=name, line=line, **file))
        elif not counts[number]:
            odd.append(diagnostic("state-never-seen", state=name))
    return odd


def read_csv(
    path: str | os.PathLike[str],
    coder: RowCoder,
    columns: Mapping[str, str],
    action_is_optional: bool,
    delimiter: str,
    encoding: str,
    progress: Progress,
) -> None:
    """Read a file line by line into the coder, which notes broken lines; raise a `FitError` if the file is not readable."""
    file_path = Path(path)
    try:
        with file_path.open("rb") as file:
            _check_beginning(file_path, file.read(4), encoding)
        # Bytes that are not text are escaped, so that the error can name their line.
        kind = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # Excel writes a byte order mark
        with file_path.open(encoding=kind, errors="surrogateescape", newline="") as text:
            lines = _lines(text, str(file_path), file_path.stat().st_size, progress)
            _read_rows(lines, str(file_path), coder, columns, action_is_optional, delimiter)
    except OSError as error:
        raise FitError(str(explain(error, file_path, "read"))) from error
    except LookupError as error:
        raise FitError(f"unknown encoding {quoted(encoding)}; give one such as utf-8 or cp1252") from error


def _check_beginning(file_path: Path, beginning: bytes, encoding: str) -> None:
    """Raise a `FitError` if a file is empty or its first bytes are those of a format that is not text."""
    if not beginning:
        raise FitError(f"{file_path} is empty; expected a first line with the columns {','.join(COLUMNS)}")
    for magic, kind in OTHER_FILES.items():
        if beginning.startswith(magic) and not encoding.lower().replace("-", "").startswith("utf16"):
            raise FitError(f"{file_path} is {kind}")


def _read_rows(
    lines: Iterator[str],
    file_name: str,
    coder: RowCoder,
    columns: Mapping[str, str],
    action_is_optional: bool,
    delimiter: str,
) -> None:
    """Read the header and all rows of a CSV file into the coder."""
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
            raise FitError(f"{file_name} is empty; expected a first line with the columns {','.join(COLUMNS)}")
        names = [name.strip().removeprefix("\ufeff") for name in header]
        where = _positions(names, columns, action_is_optional, f"{file_name}, line {rows.line_num}", delimiter)
        width, line = len(names), rows.line_num + 1
        unit, time, state, action = where
        for row in rows:
            if len(row) == width:
                coder.add(line, row[unit], row[time], row[state], row[action] if action >= 0 else "")
            elif row:
                coder.note(line, "wrong-width", {"fields": len(row), "expected": width, "delimiter": delimiter})
            line = rows.line_num + 1  # a cell may hold line breaks
    except csv.Error as error:
        raise FitError(
            f"{file_name}, line {line}: the row that begins here cannot be read ({error}); {len(coder.line):,} records were read "
            "before it; a quote that is not closed is the usual reason"
        ) from error


def _lines(text: TextIO, file_name: str, size: int, progress: Progress) -> Iterator[str]:
    """Yield the lines of a file; raise a `FitError` at a line that is too long, before it fills the memory."""
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and line[-1] not in "\r\n":
            raise FitError(
                f"{file_name}, line {number} is longer than {LONGEST_LINE:,} characters; is this a CSV file?"
            )
        if number % LINES_BETWEEN_CALLS == 0:
            progress("reading", min(size, text.buffer.tell()), size)
        yield line


def _positions(
    names: Sequence[str], columns: Mapping[str, str], action_is_optional: bool, where: str, delimiter: str
) -> tuple[int, int, int, int]:
    """Return the positions of the four columns; -1 for an optional action that is missing."""
    for column in columns:
        if column not in COLUMNS:
            raise FitError(unknown_name("column to rename", column, COLUMNS))
    positions = []
    for column in COLUMNS:
        name = columns.get(column, column)
        if names.count(name) > 1:
            raise FitError(f"{where}: the column {name!r} is there {names.count(name)} times; rename all but one")
        if name in names:
            positions.append(names.index(name))
        elif column == "action" and action_is_optional and column not in columns:
            positions.append(-1)
        else:
            raise FitError(f"{where}: {_missing(column, name, names, delimiter)}")
    return positions[0], positions[1], positions[2], positions[3]


def _missing(column: str, name: str, names: Sequence[str], delimiter: str) -> str:
    """Return the problem of a missing column and its remedy."""
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


def read_table(table: Any, coder: RowCoder, columns: Mapping[str, str], action_is_optional: bool) -> None:
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
    """Return a cell as text: empty for missing values, and 3 for 3.0, as pandas has whole numbers beside missing ones."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return "" if text in ("NaT", "<NA>") else text


class BrokenLineError(FitError):
    """A problem of a line, as data: a key of `text.PROBLEMS`, and its details."""

    def __init__(self, problem: str, **details: str | Sequence[str]) -> None:
        cut = {name: value[:LONGEST_DETAIL] if isinstance(value, str) else value for name, value in details.items()}
        super().__init__(problem_text(problem, cut))
        self.problem, self.details = problem, cut


class NameCodes:
    """Codes of names: of the given ones only, or of all names in the order of their first appearance."""

    def __init__(self, kind: str, given: Sequence[str] | None = None, most: int | None = None) -> None:
        self.kind, self.closed, self._most = kind, given is not None, most
        self.codes: dict[str, int] = {}
        #: Code of every text of a cell, with its spaces.
        self.seen: dict[str, int] = {}
        for name in given or ():
            self.codes[name] = len(self.codes)

    def code(self, text: str) -> int:
        """Return the code of the name in a cell whose text is not in `seen`, and add it there."""
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
            raise BrokenLineError("not-text", kind=self.kind, name=_shown(name))
        if self.closed:
            raise BrokenLineError("unknown-name", kind=self.kind, name=name, choices=tuple(self.codes))
        if self._most is not None and len(self.codes) >= self._most:
            raise FitError(
                f"the {self.kind} {quoted(name)} is one of more than {self._most:,} different ones; {self.kind}s are classes "
                "such as 1 to 5, so put measured values into classes first"
            )
        self.codes[name] = len(self.codes)
        return self.codes[name]


@dataclass
class RowCoder:
    """Columns of codes, filled row by row; `source` is the text before the number of a line in messages."""

    source: str
    calendar: PeriodCalendar
    states: NameCodes
    actions: NameCodes
    units: NameCodes = field(default_factory=lambda: NameCodes("unit"))
    unit: array[int] = field(default_factory=lambda: array("q"))
    time: array[int] = field(default_factory=lambda: array("q"))
    state: array[int] = field(default_factory=lambda: array("h"))
    action: array[int] = field(default_factory=lambda: array("h"))
    line: array[int] = field(default_factory=lambda: array("q"))
    problems: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    broken: int = 0

    def __post_init__(self) -> None:
        self._times: dict[str, int] = {}

    def add(self, line: int, unit: str, time: str, state: str, action: str) -> None:
        """Append a row, or note the problem of a broken one."""
        try:
            codes = (
                _known(self.units, unit), self._time(time), _known(self.states, state), _known(self.actions, action)
            )  # fmt: skip
            if codes[0] == NONE:
                raise BrokenLineError("unit-empty")
        except BrokenLineError as error:
            self.note(line, error.problem, error.details)
            return
        except FitError as error:  # a problem of the whole file
            raise FitError(f"{self.source} {line:,}: {error}") from None
        self.unit.append(codes[0])
        self.time.append(codes[1])
        self.state.append(codes[2])
        self.action.append(codes[3])
        self.line.append(line)

    def note(self, line: int, problem: str, details: dict[str, Any]) -> None:
        """Count a broken line and keep its problem, if it is one of the first."""
        self.broken += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append((line, problem, details))

    def _time(self, text: str) -> int:
        period = self._times.get(text)
        if period is None:
            stripped = text.strip()
            if not stripped:
                raise BrokenLineError("time-empty")
            if len(self._times) >= MOST_TIMES:
                self._times.clear()
            period = self._times[text] = self.calendar.parse(stripped)
        return period


def _shown(name: str) -> str:
    """Return a name with a replacement character for each byte that is not text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _known(names: NameCodes, text: str) -> int:
    code = names.seen.get(text)
    return names.code(text) if code is None else code


class PeriodCalendar:
    """Conversion of the text of a time into a whole number of periods, 0 or more.

    Parameters
    ----------
    period : None, a number, or "day", "week", "month", "quarter", "year"
        Without it, times are whole numbers. With a number, times are real numbers that are divided by it and rounded down. With
        a name, times are whole numbers of such periods, or dates (2024-05-31), which are assigned to calendar periods.
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
        """The name of the period, if it has one."""
        return self.period if isinstance(self.period, str) else None

    def parse(self, text: str) -> int:
        """Return the period of a time; raise a `BrokenLineError` if it is not valid."""
        if WHOLE.fullmatch(text) and not isinstance(self.period, (int, float)):
            return self._as(int(text), is_date=False)
        try:
            number = float(text)
        except ValueError:
            return self._as(self._of_date(text), is_date=True)
        return self._as(self._of_number(number, text), is_date=False)

    def _of_number(self, number: float, text: str) -> int:
        if not math.isfinite(number) or abs(number) > LATEST:
            raise BrokenLineError("time-unusable", time=text)
        if number < 0:
            raise BrokenLineError("time-negative", time=text)
        if isinstance(self.period, (int, float)):
            periods = number / self.period
            # In floating point 0.3 / 0.1 is less than 3.
            return math.floor(periods + 1e-9 * max(1.0, periods))
        if not number.is_integer():
            raise BrokenLineError("time-not-whole", time=text)
        return int(number)

    def _of_date(self, text: str) -> int:
        try:
            day = datetime.fromisoformat(text).date()
        except ValueError:
            raise BrokenLineError("time-not-read", time=text) from None
        if not isinstance(self.period, str):
            raise BrokenLineError("date-without-period", time=text)
        return _period_of(day, self.period)

    def _as(self, time: int, is_date: bool) -> int:
        """Return the time; raise a `BrokenLineError` if some times are dates and others numbers."""
        if self._dates is None:
            self._dates = is_date
        if self._dates != is_date:
            raise BrokenLineError("dates-and-numbers")
        return time

    def diagnostic(self) -> Diagnostic | None:
        """Return how the times were converted, or None if they were whole numbers of periods."""
        if self._dates and isinstance(self.period, str):
            return diagnostic("dates-to-periods", period=self.period)
        if isinstance(self.period, (int, float)):
            return diagnostic("times-divided", length=self.period)
        return None


def _period_of(day: date, period: str) -> int:
    """Return the number of the calendar period that contains a day."""
    match period:
        case "day":
            return day.toordinal()
        case "week":  # weeks begin on Monday
            return (day.toordinal() - 1) // 7
        case "month":
            return day.year * 12 + day.month - 1
        case "quarter":
            return day.year * 4 + (day.month - 1) // 3
        case _:
            return day.year
