"""Tables of records as rows of text: CSV, Excel and Parquet files and pandas tables, with several header rows, long or wide."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, TextIO
from xml.parsers import expat

import numpy as np

from actmeasure.errors import FitError, import_extra, quoted, unknown_name
from actmeasure.file_access import explain
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
#: Number of rows of a sheet of Excel, and the largest number of XML elements in a row or in a part that is parsed as a whole.
MOST_EXCEL_ROWS, MOST_ELEMENTS = 1 << 20, 1 << 20
#: A row with a number of this many digits or more is above the last one.
LONGEST_NUMBER = 20
#: Largest number of rows of a Parquet file; a small file can declare any number of equal ones.
MOST_PARQUET_ROWS = 20_000_000
#: Types of columns of texts in Parquet files.
TEXT_TYPES = ("string", "large_string", "binary", "large_binary")
#: Largest number of characters of another library's error that are shown.
LONGEST_REASON = 200
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

    @property
    def read(self) -> frozenset[str]:
        """The names of the columns that are read from a table with a row for each record."""
        return frozenset(self.columns.get(column, column) for column in (*COLUMNS, *self.columns))

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
                table = _with_header(_excel_rows(path, layout.sheet), layout, f"{path}, line", str(path), None)
                return replace(table, rows=_of_width(table.rows, len(table.names)))
            if kind in (".parquet", ".pq"):
                return _with_header(_parquet_rows(path, layout, progress), layout, f"{path}, line", str(path), None)
            return _csv_table(path, layout, progress)
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
    """Yield the rows of a sheet of an Excel workbook, its first one by default; cells at the end of a row may be missing."""
    openpyxl = import_extra("openpyxl", "reading an Excel file", "excel")
    _check_workbook(path)
    try:
        has_formulas = _scan_workbook(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise FitError(f"{path}: {unknown_name('sheet', sheet, book.sheetnames)}")
        if not book.worksheets:
            raise FitError(f"{path} has no sheet with cells; save it again, or as CSV")
        chosen = sheet if sheet is not None else book.worksheets[0].title
        rows = _sheet_rows(path, book[chosen])
        if has_formulas:
            formulas = openpyxl.load_workbook(path, read_only=True)
            rows = _computed(path, rows, _sheet_rows(path, formulas[chosen]))
        for number, cells in enumerate(rows, start=1):
            texts = [_excel_cell(cell) for cell in cells]
            if any(texts):
                yield number, texts
        book.close()
    except (FitError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises many kinds of errors at damaged files
        raise _unsound(path, "Excel workbook", error) from error


def _sheet_rows(path: Path, sheet: Any) -> Iterator[Any]:
    """Yield the values of the rows of a sheet; raise a `FitError` at a row that no sheet of Excel has."""
    if not hasattr(sheet, "reset_dimensions"):
        raise FitError(f"{path}: the sheet {sheet.title!r} has no cells; choose another (--sheet)")
    sheet.reset_dimensions()  # the range that a file declares may be wrong, and rows would be filled up to it
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > MOST_EXCEL_ROWS:
            raise FitError(
                f"{path} has a row with a number above {MOST_EXCEL_ROWS:,}, the last of a sheet; save it again, or as CSV"
            )
        yield cells


def _of_width(rows: Iterator[Row], width: int) -> Iterator[Row]:
    """Yield rows with as many cells as the header has: empty ones are added, and what stands to the right is left out."""
    for line, cells in rows:
        yield line, [*cells[:width], *repeat("", width - len(cells))]


def _unsound(path: Path, kind: str, error: Exception) -> FitError:
    """Return the error of a damaged file, with the reason that another library gave."""
    reason = " ".join(str(error).split())
    if len(reason) > LONGEST_REASON:
        reason = reason[:LONGEST_REASON] + " ..."
    return FitError(f"{path} is not a sound {kind} ({reason}); save it again, or as CSV")


def _scan_workbook(path: Path) -> bool:
    """Return whether a workbook has formulas; raise a `FitError` if a part of it would fill the memory when it is parsed.

    The parts are parsed without keeping anything. Rows and shared texts are later read one at a time, everything else as a whole.
    """
    has_formulas = False
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            scan = _PartScan(path)
            with archive.open(info) as file:
                try:
                    while piece := file.read(1 << 20):
                        scan.parser.Parse(piece, False)
                except expat.ExpatError:  # a picture, or damaged: an error if the part is needed
                    continue
            has_formulas |= scan.has_formulas
    return has_formulas


class _PartScan:
    """Parser of a part of a workbook that keeps only what kind it is, whether it has formulas, and counts of elements."""

    def __init__(self, path: Path) -> None:
        self.path, self.has_formulas = path, False
        self.root, self.count, self.row, self.is_shared = "", 0, 0, False
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        local = name.rpartition(" ")[2]
        self.root = self.root or local
        self.has_formulas |= local == "f" and self.root == "worksheet"
        self.count = 0 if (self.root, local) in (("worksheet", "row"), ("sst", "si")) else self.count + 1
        if self.count > MOST_ELEMENTS:
            raise FitError(
                f"{self.path} has more than {MOST_ELEMENTS:,} cells in a row, or as many styles; save it again, or as CSV"
            )
        if (self.root, local) == ("worksheet", "row"):
            self._check_order(attributes.get("r"))
        if local == "c":
            self.is_shared = attributes.get("t") == "s"
        self.parser.CharacterDataHandler = self._check_index if local == "v" and self.is_shared else None

    def _check_index(self, text: str) -> None:
        """Raise a `FitError` if the number of a shared text is negative: it would be counted from the end."""
        if "-" in text:
            raise FitError(
                f"{self.path} has a cell in row {self.row} with the negative number {quoted(text.strip())} of a shared text; "
                "save it again, or as CSV"
            )

    def _check_order(self, number: str | None) -> None:
        """Raise a `FitError` if the number of a row is not above that of the row before: such a row would not be read."""
        before, self.row = self.row, self.row + 1
        if number is not None and number.removeprefix("-").isdecimal() and len(number) < LONGEST_NUMBER:
            self.row = int(number)
            if self.row <= before:
                raise FitError(
                    f"{self.path} has a row with the number {self.row} after row {before}; save it again, or as CSV"
                )


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
        raise _unsound(path, "Excel workbook", error) from error
    if unpacked > MOST_UNPACKED or (unpacked > 1 << 26 and unpacked > MOST_RATIO * path.stat().st_size):
        raise FitError(f"{path} unpacks to {unpacked:,} bytes, more than an Excel file of records has; save it as CSV")


def _parquet_rows(path: Path, layout: Layout, progress: Any) -> Iterator[Row]:
    """Yield the names and rows of a Parquet file, a part at a time; columns that are not needed are empty."""
    parquet = import_extra("pyarrow.parquet", "reading a Parquet file", "data")
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise FitError(f"{path} is not a Parquet file; check its name")
    try:
        schema = parquet.read_schema(path)
        names = schema.names
        # Equal texts are kept once: a small file can hold a long text any number of times.
        texts = [one.name for one in schema if str(one.type) in TEXT_TYPES]
        source = parquet.ParquetFile(path, read_dictionary=texts)
        yield 0, [str(name) for name in names]
        wanted = names if layout.wide else [name for name in names if name in layout.read]
        _check_parquet(path, source, wanted)
        total, number = source.metadata.num_rows, 0
        for batch in source.iter_batches(batch_size=LINES_BETWEEN_CALLS, columns=wanted):
            read = {name: _parquet_cells(path, name, batch.column(name)) for name in wanted}
            for cells in zip(*(read.get(name, repeat("", len(batch))) for name in names), strict=True):
                number += 1
                yield number, cells
            progress("reading", number, total)
    except (FitError, MemoryError, GeneratorExit):
        raise
    except Exception as error:  # pyarrow raises many kinds of errors at damaged files
        raise _unsound(path, "Parquet file", error) from error


def _check_parquet(path: Path, source: Any, wanted: Sequence[str]) -> None:
    """Raise a `FitError` if a Parquet file declares more than fits in memory, or a column does not have one value in each row."""
    about = source.metadata
    if about.num_rows > MOST_PARQUET_ROWS:
        raise FitError(
            f"{path} declares {about.num_rows:,} rows, more than {MOST_PARQUET_ROWS:,}; save the part that is needed, or save it "
            "as CSV"
        )
    unpacked = sum(
        chunk.total_uncompressed_size
        for group in map(about.row_group, range(about.num_row_groups))
        for chunk in map(group.column, range(group.num_columns))
        if chunk.path_in_schema in wanted
    )
    if unpacked > MOST_UNPACKED:
        raise FitError(
            f"{path} unpacks to {unpacked:,} bytes, more than records have; shorten its texts, or save it as CSV"
        )
    for name in wanted:
        kind = source.schema_arrow.field(name).type
        if import_extra("pyarrow", "reading a Parquet file", "data").types.is_nested(kind):
            raise FitError(
                f"{path}: the column {name!r} has several values in a row ({quoted(str(kind))}); write one into each row"
            )


def _parquet_cells(path: Path, name: str, column: Any) -> list[str]:
    """Return the cells of a part of a column; those of equal texts are the same object."""
    try:
        if not hasattr(column, "dictionary"):
            return [_excel_cell(_decoded(cell)) for cell in column.to_pylist()]
        _check_texts(path, name, column.dictionary)
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        used, place = np.unique(codes, return_inverse=True)
        if not len(column.dictionary):
            return [""] * len(codes)
        texts = [_excel_cell(_decoded(cell)) for cell in column.dictionary.take(used).to_pylist()]
        empty = column.is_null().to_numpy(zero_copy_only=False)
        return ["" if is_empty else texts[one] for one, is_empty in zip(place, empty, strict=True)]
    except OverflowError as error:  # pyarrow has dates of any year, Python those from 1 to 9999
        raise FitError(
            f"{path}: the column {name!r} has a date outside of the years 1 to 9999; correct it, or leave its row out"
        ) from error


def _check_texts(path: Path, name: str, texts: Any) -> None:
    """Raise a `FitError` if a text, of an array of pyarrow, is longer than a line of a CSV file may be."""
    compute = import_extra("pyarrow.compute", "reading a Parquet file", "data")
    longest = compute.max(compute.binary_length(texts)).as_py() or 0
    if longest > LONGEST_LINE:
        raise FitError(
            f"{path}: the column {name!r} has a text of {longest:,} bytes, more than {LONGEST_LINE:,}; shorten it, or "
            "name another column with columns={...} (--column)"
        )


def _decoded(cell: Any) -> Any:
    """Return a cell; bytes, which some programs write in place of texts, as text."""
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell
