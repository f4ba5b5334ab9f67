"""A report as data (sections of paragraphs, lists, tables and figures), as an HTML page, and as files."""

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

from actmeasure.errors import StudyError, shown
from actmeasure.file_access import explain, replacing
from actmeasure.studies.report.figures import pictures
from actmeasure.text import number_text

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
    "interval_suffix",
    "render",
    "table_of",
]

#: Shown for a missing value.
NOTHING = "\N{EN DASH}"
#: A space at which a line is not broken: an interval goes to the next line, where there is no room, as a whole.
JOINED = "\N{NO-BREAK SPACE}"
#: Number of letters up to which text is not broken into lines.
UNBROKEN_LETTERS = 36
#: Package and folder of the templates.
PACKAGE, FOLDER = "actmeasure.studies.report", "templates"
#: Format of numbers in CSV files.
DIGITS = "%.6g"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Note:
    """A highlighted paragraph."""

    kind: ClassVar[str] = "note"
    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    kind: ClassVar[str] = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Commands for the terminal, a line each."""

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
        """The picture as a `data:` address, which loads nothing."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, the key of its values, digits after the point, and the keys of an interval for them.

    `count` is the key of the number of runs behind an interval: several runs without an interval are all alike, which is shown.
    """

    title: str
    key: str
    digits: int = 2
    interval: tuple[str, str] | None = None
    count: str = "runs"


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the number that it is sorted by (None for text and missing values).

    Attributes
    ----------
    text : str
    number : float or None
    below : str
        A second line, in grey.
    shade : int or None
        Number of the shade in the table's legend, if the cell is shaded.
    """

    text: str
    number: float | None = None
    below: str = ""
    shade: int | None = None

    @property
    def is_short(self) -> bool:
        """Whether the text is not broken into lines."""
        return len(self.text) <= UNBROKEN_LETTERS


@dataclass(frozen=True)
class Table:
    """A table with its caption, and the files with its data.

    Attributes
    ----------
    caption : str
    titles : sequence of str
    rows : sequence of rows of cells
    numeric : sequence of bool
        Which columns are of numbers.
    files : sequence of str
    groups : sequence of (str, int)
        Titles above the column titles, and the number of columns below each.
    legend : sequence of str
        Meaning of each shade, from the first on.
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
    """A title, and the blocks below it."""

    title: str
    blocks: Sequence[Any]


@dataclass(frozen=True)
class Document:
    """A title, blocks at the top, and sections."""

    title: str
    subtitle: str
    first: Sequence[Any] = field(default=())
    sections: Sequence[Section] = field(default=())


def table_of(frame: pd.DataFrame, caption: str, columns: Sequence[Column], files: Sequence[str] = ()) -> Table:
    """Return a table with these columns of a data frame."""
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
        text += interval_suffix(low, high, column.digits, int(row.get(column.count, 0)))
    return Cell(text, float(value))


def interval_suffix(low: float, high: float, digits: int, runs: int) -> str:
    """Return the text that follows a mean of `runs` runs: its interval, "all alike", or nothing for a single run."""
    if not math.isnan(low):
        return f" [{number_text(low, digits)},{JOINED}{number_text(high, digits)}]"
    return f" (all{JOINED}alike)" if runs > 1 else ""


def render(document: Document) -> str:
    """Return the document as an HTML page that loads nothing from elsewhere; all text is escaped by Jinja2."""
    environment = Environment(
        loader=PackageLoader(PACKAGE, FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_visible,
    )  # fmt: skip
    style, script = _asset("report.css"), _asset("sort.js")
    return environment.get_template("report.html").render(
        document=document, style=style, script=script, policy=_policy(style, script)
    )


def _visible(value: object) -> object:
    """Return what a template prints: in text, control characters and invisible ones are escaped; markup is our own."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return shown(str(value), keep="\n") if is_text else value


def _asset(name: str) -> str:
    return (resources.files(PACKAGE) / FOLDER / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: only this style and script (by their hashes), and pictures in the page itself."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class Outputs:
    """The files of a report, collected first and written together."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        #: Figures by the name of their files, without its ending.
        self.figures: dict[str, Figure] = {}

    @property
    def names(self) -> list[str]:
        """Names of all files, in the order in which they are written."""
        return list(self._files)

    def contents(self, name: str) -> bytes:
        """Return the contents of a file."""
        return self._files[name]

    def add(self, name: str, contents: bytes) -> None:
        """Add a file."""
        self._files[name] = contents

    def add_table(self, name: str, frame: pd.DataFrame) -> None:
        """Add a table as CSV; the same table gives the same bytes."""
        self.add(name, frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n").encode())

    def add_figure(self, name: str, figure: Figure, caption: str, words: str, *tables: str) -> Picture:
        """Add a figure as SVG and PNG, and return it as a block of the page, with the names of its files."""
        drawn = pictures(figure)
        self.figures[name] = figure
        files = [f"{name}.{kind}" for kind in drawn]
        for file, contents in zip(files, drawn.values(), strict=True):
            self.add(file, contents)
        return Picture(drawn["svg"], caption, words, [*files, *tables])

    def write(self, directory: Path) -> list[Path]:
        """Write all files, each completely or not at all; returns their paths."""
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
