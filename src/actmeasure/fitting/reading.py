"""Records from a CSV file or a table in memory, read row by row."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.fitting.coding import Coder
from actmeasure.fitting.progress import Progress

__all__ = ["COLUMNS", "read_csv", "read_table"]

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
