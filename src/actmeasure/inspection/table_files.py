"""Tables of records as rows of text: CSV, Excel and Parquet files and pandas tables, with several header rows, long or wide."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from actmeasure.errors import FitError, import_extra, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.inspection.calendars import as_cell

__all__ = ["COLUMNS", "BrokenTableError", "Layout", "Row", "Table", "open_table"]

COLUMNS = ("unit", "time", "state", "action")
#: Columns that are read only if they are named: the age of the unit, and the group that it belongs to.
MORE_COLUMNS = ("age", "by")
#: Largest number of characters in a line.
LONGEST_LINE = 1 << 20
#: Number of lines between two calls of `progress`.
LINES_BETWEEN_CALLS = 1 << 16
#: Largest size of the unpacked contents of an Excel file, and how many times that of the file it may be.
MOST_UNPACKED, MOST_RATIO = 1 << 30, 200
#: Largest number of rows of a header.
MOST_HEADER_ROWS = 20
#: First bytes of files that are not text, beside Excel and Parquet files.
OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; give it a name that ends in .xlsx, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"PAR1": "a Parquet file; give it a name that ends in .parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}

#: A row: the number of its line, and its cells.
Row = tuple[int, Sequence[str]]


@dataclass(frozen=True)
class Layout:
    """How a table is laid out; see `actmeasure.fit` for the parameters of the same names."""

    columns: Mapping[str, str]
    action_is_optional: bool = False
    delimiter: str = ","
    encoding: str = "utf-8"
    wide: bool = False
    header: int = 1
    sheet: str | None = None

    def __post_init__(self) -> None:
        for column in self.columns:
            if column not in (*COLUMNS, *MORE_COLUMNS):
                raise FitError(unknown_name("column to rename", column, (*COLUMNS, *MORE_COLUMNS)))
        if (
            isinstance(self.header, bool)
            or not isinstance(self.header, int)
            or not 1 <= self.header <= MOST_HEADER_ROWS
        ):
            raise FitError(f"header is {quoted(self.header)}, expected a number of rows from 1 to {MOST_HEADER_ROWS}")


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, its rows, and where it is, for messages; `source` precedes the number of a line."""

    names: tuple[str, ...]
    rows: Iterator[Row]
    source: str
    where: str
    delimiter: str | None = None


class BrokenTableError(FitError):
    """A table that cannot be read beyond a line."""


def open_table(records: Any, layout: Layout, progress: Any) -> Table:
    """Return the table of a path, or of a pandas table or mapping from names to columns; raise a `FitError` if it is neither."""
    if isinstance(records, (str, os.PathLike)):
        path = Path(records)
        kind = path.suffix.lower()
        try:
            if kind in (".xlsx", ".xlsm"):
                rows = _excel_rows(path, layout.sheet)
            elif kind in (".parquet", ".pq"):
                rows = _parquet_rows(path, progress)
            else:
                return _csv_table(path, layout, progress)
            return _with_header(rows, layout, f"{path}, line", str(path), None)
        except OSError as error:
            raise FitError(str(explain(error, path, "read"))) from error
    if hasattr(records, "__getitem__") and hasattr(records, "keys"):
        return _with_header(_columns_rows(records), layout, "row", "the table", None)
    raise FitError(
        f"records are a {type(records).__name__}, expected the path of a CSV, Excel or Parquet file, or a pandas DataFrame"
    )


def _with_header(rows: Iterator[Row], layout: Layout, source: str, where: str, delimiter: str | None) -> Table:
    """Return a table whose header is the first rows that are not empty."""
    header: list[Sequence[str]] = []
    line = 1
    for line, cells in rows:  # noqa: B007
        if any(cell.strip() for cell in cells):
            header.append([cell.strip().removeprefix("\ufeff") for cell in cells])
        if len(header) == layout.header:
            break
    if len(header) < layout.header:
        raise FitError(f"{where} is empty; expected a first line with the columns {','.join(COLUMNS)}")
    place = f"{where}, line {line}" if line else where  # names of columns that are not in a line have the number 0
    return Table(tuple(_joined(header)), rows, source, place, delimiter)


def _joined(header: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the names of columns; those of several rows are joined, and an empty cell above another repeats that to its left."""
    width = max(len(row) for row in header)
    padded = [[*row, *[""] * (width - len(row))] for row in header]
    for row in padded[:-1]:
        for column in range(1, width):
            row[column] = row[column] or row[column - 1]
    for column in range(width):
        yield " ".join(row[column] for row in padded if row[column])


def _columns_rows(table: Any) -> Iterator[Row]:
    """Yield the names and rows of a mapping from names to columns; rows are counted from 1."""
    names = [str(name) for name in table]
    columns = [list(table[name]) for name in table]
    yield 0, names
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise FitError(f"the columns of the table have different lengths: {sorted(lengths)}; make them equal")
    for number, cells in enumerate(zip(*columns, strict=True)):
        yield number + 1, [as_cell(cell) for cell in cells]


def _csv_table(path: Path, layout: Layout, progress: Any) -> Table:
    """Return the table of a CSV file, which is read line by line."""
    encoding = layout.encoding
    with path.open("rb") as file:
        _check_beginning(path, file.read(4), encoding)
    rows = _csv_rows(path, encoding, layout.delimiter, progress)
    try:
        return _with_header(rows, layout, f"{path}, line", str(path), layout.delimiter)
    except LookupError as error:
        raise FitError(f"unknown encoding {quoted(encoding)}; give one such as utf-8 or cp1252") from error


def _check_beginning(file_path: Path, beginning: bytes, encoding: str) -> None:
    """Raise a `FitError` if a file is empty or its first bytes are those of a format that is not text."""
    if not beginning:
        raise FitError(f"{file_path} is empty; expected a first line with the columns {','.join(COLUMNS)}")
    for magic, kind in OTHER_FILES.items():
        if beginning.startswith(magic) and not encoding.lower().replace("-", "").startswith("utf16"):
            raise FitError(f"{file_path} is {kind}")


def _csv_rows(path: Path, encoding: str, delimiter: str, progress: Any) -> Iterator[Row]:
    """Yield the rows of a CSV file; empty lines are left out."""
    kind = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding  # Excel writes a byte order mark
    # Bytes that are not text are escaped, so that the error can name their line.
    with path.open(encoding=kind, errors="surrogateescape", newline="") as text:
        try:
            lines = _lines(text, str(path), path.stat().st_size, progress)
            rows = csv.reader(lines, delimiter=delimiter, strict=True)
        except TypeError as error:
            raise FitError(f"delimiter is {quoted(delimiter)}, expected one character such as ';'") from error
        line = 1
        try:
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1  # a cell may hold line breaks
        except csv.Error as error:
            raise BrokenTableError(
                f"{path}, line {line}: the row that begins here cannot be read ({error}); a quote that is not closed is the "
                "usual reason"
            ) from error


def _lines(text: TextIO, file_name: str, size: int, progress: Any) -> Iterator[str]:
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


def _excel_rows(path: Path, sheet: str | None) -> Iterator[Row]:
    """Yield the rows of a sheet of an Excel workbook, its first one by default."""
    openpyxl = import_extra("openpyxl", "reading an Excel file", "excel")
    _check_workbook(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise FitError(f"{path}: {unknown_name('sheet', sheet, book.sheetnames)}")
        chosen = sheet if sheet is not None else book.worksheets[0].title
        rows = book[chosen].iter_rows(values_only=True)
        if _has_formulas(path):
            formulas = openpyxl.load_workbook(path, read_only=True)
            rows = _computed(path, rows, formulas[chosen].iter_rows(values_only=True))
        for number, cells in enumerate(rows, start=1):
            texts = [_excel_cell(cell) for cell in cells]
            if any(texts):
                yield number, texts
        book.close()
    except (FitError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises many kinds of errors at damaged files
        raise FitError(f"{path} is not a sound Excel workbook ({error}); save it again, or as CSV") from error


def _has_formulas(path: Path) -> bool:
    """Return whether a sheet of a workbook has a formula."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as file:
                    end = b""
                    while part := file.read(1 << 20):
                        if b"<f>" in end + part or b"<f " in end + part:
                            return True
                        end = part[-2:]
    return False


def _computed(path: Path, rows: Iterator[Any], formulas: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows of values; raise a `FitError` at a formula without a value, which would look like an empty cell."""
    for number, (values, texts) in enumerate(zip(rows, formulas, strict=True), start=1):
        for value, text in zip(values, texts, strict=True):
            if value is None and text is not None:
                raise FitError(
                    f"{path}, line {number:,}: the value of the formula {quoted(str(text))} is not stored in the workbook; open "
                    "it in a spreadsheet program and save it, or save it as CSV"
                )
        yield values


def _excel_cell(value: Any) -> str:
    """Return a cell of a workbook as text, dates as 2012-04-13."""
    if hasattr(value, "date") and callable(value.date):
        return str(value.date().isoformat())
    return as_cell(value)


def _check_workbook(path: Path) -> None:
    """Raise a `FitError` if a workbook is no zip archive, or unpacks to more than one that fits in memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise FitError(f"{path} is not a sound Excel workbook ({error}); save it again, or as CSV") from error
    if unpacked > MOST_UNPACKED or (unpacked > 1 << 26 and unpacked > MOST_RATIO * path.stat().st_size):
        raise FitError(f"{path} unpacks to {unpacked:,} bytes, more than an Excel file of records has; save it as CSV")


def _parquet_rows(path: Path, progress: Any) -> Iterator[Row]:
    """Yield the names and rows of a Parquet file, a part at a time."""
    parquet = import_extra("pyarrow.parquet", "reading a Parquet file", "data")
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise FitError(f"{path} is not a Parquet file; check its name")
    try:
        source = parquet.ParquetFile(path)
        yield 0, [str(name) for name in source.schema_arrow.names]
        total, number = source.metadata.num_rows, 0
        for batch in source.iter_batches(batch_size=LINES_BETWEEN_CALLS):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield number, [_excel_cell(cell) for cell in cells]
            progress("reading", number, total)
    except (FitError, MemoryError, GeneratorExit):
        raise
    except Exception as error:  # pyarrow raises many kinds of errors at damaged files
        raise FitError(f"{path} is not a sound Parquet file ({error}); save it again, or as CSV") from error
