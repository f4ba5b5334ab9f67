"""What a report consists of, before it becomes a page: sections of paragraphs, lists, tables and figures."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from actmeasure.errors import StudyError
from actmeasure.files.atomic import explain, replacing
from actmeasure.studies.report.figures import pictures

__all__ = [
    "NOTHING",
    "Cell",
    "Column",
    "Commands",
    "Document",
    "Items",
    "Note",
    "Outputs",
    "Picture",
    "Section",
    "Table",
    "Text",
    "interval_text",
    "number_text",
    "render",
    "table_of",
]

#: Stands where there is nothing.
NOTHING = "\N{EN DASH}"
#: A space at which a line is not broken: an interval goes to the next line, where there is no room, as a whole.
JOINED = "\N{NO-BREAK SPACE}"
#: Text of so many letters is not broken into lines.
SHORT = 36


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Note:
    """A paragraph that must not be overlooked."""

    kind: ClassVar[str] = "note"
    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    kind: ClassVar[str] = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Lines to be typed."""

    kind: ClassVar[str] = "commands"
    lines: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, its caption, what it shows in words, and the files that it is in."""

    kind: ClassVar[str] = "picture"
    svg: bytes
    caption: str
    words: str
    files: Sequence[str]

    @property
    def source(self) -> str:
        """The picture itself, as an address that loads nothing."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, the key of its values, digits after the point, and the keys of an interval for them.

    A row has the number of runs behind its intervals as `count`, if it has: where there are several without an interval, they are
    all alike, which is said.
    """

    title: str
    key: str
    digits: int = 2
    interval: tuple[str, str] | None = None
    count: str = "runs"


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by: a number, or None for text and for what is not there.

    Attributes
    ----------
    text : str
    number : float or None
    below : str
        A second, quieter line.
    shade : int or None
        Which shade of the table's legend the cell has, if any.
    """

    text: str
    number: float | None = None
    below: str = ""
    shade: int | None = None

    @property
    def is_short(self) -> bool:
        """Whether it fits on a line."""
        return len(self.text) <= SHORT


@dataclass(frozen=True)
class Table:
    """A table with its caption, and the file that it is in.

    Attributes
    ----------
    caption : str
    titles : sequence of str
    rows : sequence of rows of cells
    numeric : sequence of bool
        Which columns are of numbers.
    files : sequence of str
    groups : sequence of (str, int)
        Titles above the titles, and how many columns each is of.
    legend : sequence of str
        What the shades of cells mean, from the first on.
    is_sorted : bool
        Whether a click on a title sorts the rows.
    """

    kind: ClassVar[str] = "table"
    caption: str
    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: Sequence[bool]
    files: Sequence[str] = ()
    groups: Sequence[tuple[str, int]] = ()
    legend: Sequence[str] = ()
    is_sorted: bool = True


@dataclass(frozen=True)
class Section:
    """A title and what is below it."""

    title: str
    blocks: Sequence[Any]


@dataclass(frozen=True)
class Document:
    """A title, what to know first, and sections."""

    title: str
    subtitle: str
    first: Sequence[Any] = field(default=())
    sections: Sequence[Section] = field(default=())


def table_of(frame: pd.DataFrame, caption: str, columns: Sequence[Column], files: Sequence[str] = ()) -> Table:
    """A table from a data frame, with these columns of it."""
    rows = [[_cell(row, column) for column in columns] for row in frame.to_dict("records")]
    numeric = [any(row[k].number is not None for row in rows) for k in range(len(columns))]
    return Table(caption, [column.title for column in columns], rows, numeric, files)


def _cell(row: dict[Any, Any], column: Column) -> Cell:
    value = row[column.key]
    if isinstance(value, str):
        return Cell(value)
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    text = number_text(value, column.digits)
    if column.interval is not None:
        low, high = (row[key] for key in column.interval)
        text += interval_text(low, high, column.digits, int(row.get(column.count, 0)))
    return Cell(text, float(value))


def interval_text(low: float, high: float, digits: int, runs: int) -> str:
    """Return what follows a mean of so many runs: its interval, that they are all alike, or nothing for a single run."""
    if not math.isnan(low):
        return f" [{number_text(low, digits)},{JOINED}{number_text(high, digits)}]"
    return f" (all{JOINED}alike)" if runs > 1 else ""


def number_text(value: float, digits: int) -> str:
    """A number with so many digits after the point; nothing is minus zero."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) != 0 else text.lstrip("-")


# ----------------------------------------------------------------------------------------------------
# The page: one file that needs nothing else and can load nothing.
#
# Everything is escaped by Jinja2. The page forbids itself everything but its own style, its own script (both known by their
# hashes) and pictures that are part of it.
# ----------------------------------------------------------------------------------------------------


PACKAGE, FOLDER = "actmeasure.studies.report", "templates"


def render(document: Document) -> str:
    """The document as HTML."""
    environment = Environment(
        loader=PackageLoader(PACKAGE, FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # fmt: skip
    style, script = _asset("report.css"), _asset("sort.js")
    return environment.get_template("report.html").render(
        document=document, style=style, script=script, policy=_policy(style, script)
    )


def _asset(name: str) -> str:
    return (resources.files(PACKAGE) / FOLDER / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing from anywhere, except what has these hashes, and pictures in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# ----------------------------------------------------------------------------------------------------
# The files of a report, collected first and written together.
# ----------------------------------------------------------------------------------------------------


#: Digits of numbers in tables for machines.
DIGITS = "%.6g"


class Outputs:
    """Files by name, each as bytes."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    @property
    def names(self) -> list[str]:
        """Of all files, in the order in which they are written."""
        return list(self._files)

    def contents(self, name: str) -> bytes:
        """Of a file."""
        return self._files[name]

    def add(self, name: str, contents: bytes) -> None:
        """Any file."""
        self._files[name] = contents

    def add_table(self, name: str, frame: pd.DataFrame) -> None:
        """A table as CSV, the same bytes every time."""
        self.add(name, frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n").encode())

    def add_figure(self, name: str, figure: Figure, caption: str, words: str, *tables: str) -> Picture:
        """A figure as SVG and PNG; returned is what the page shows of it, with the names of all files behind it."""
        drawn = pictures(figure)
        files = [f"{name}.{kind}" for kind in drawn]
        for file, contents in zip(files, drawn.values(), strict=True):
            self.add(file, contents)
        return Picture(drawn["svg"], caption, words, [*files, *tables])

    def write(self, directory: Path) -> list[Path]:
        """Write all of them, each completely or not at all."""
        paths = []
        for name, contents in self._files.items():
            path = directory / name
            try:
                with replacing(path) as file:
                    file.write(contents)
            except OSError as error:
                raise StudyError(f"{explain(error, path, 'write')}") from error
            paths.append(path)
        return paths
