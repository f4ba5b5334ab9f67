"""Tables of episodes as files."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy.typing as npt

from actmeasure.errors import AgentError, MissingExtraError, unknown_name
from actmeasure.files.atomic import explain, replacing
from actmeasure.files.places import check_place

__all__ = ["check_table_path", "save_table"]

SUFFIXES = (".csv", ".parquet")


def check_table_path(path: str | os.PathLike[str]) -> Path:
    """The path of a table that can be written; call it before working long for one."""
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise AgentError(f"the table {str(place)!r} cannot be written: {_unknown_ending(place)}")
    if place.suffix.lower() == ".parquet":
        _parquet()
    check_place(place, "the table", AgentError)
    return place


def _unknown_ending(place: Path) -> str:
    return unknown_name("file ending", place.suffix, SUFFIXES)


def save_table(columns: Mapping[str, npt.NDArray[Any]], place: Path) -> None:
    """Write columns of equal length; the file is there completely or not at all."""
    write = _write_csv if place.suffix.lower() == ".csv" else _write_parquet
    try:
        with replacing(place) as file:
            write(columns, file)
    except OSError as error:
        raise AgentError(str(explain(error, place, "write"))) from error


def _write_csv(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    # Python's own numbers are written so that reading them gives back every bit.
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    text.detach()


def _write_parquet(columns: Mapping[str, npt.NDArray[Any]], file: BinaryIO) -> None:
    arrow, parquet = _parquet()
    parquet.write_table(arrow.table(dict(columns)), file)


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("a .parquet file", "data") from error
    return pyarrow, pyarrow.parquet
