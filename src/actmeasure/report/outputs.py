"""The files of a report, collected first and written together."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from actmeasure.errors import StudyError
from actmeasure.files.atomic import explain, replacing
from actmeasure.report.document import Picture
from actmeasure.report.style import pictures

__all__ = ["Outputs"]

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
