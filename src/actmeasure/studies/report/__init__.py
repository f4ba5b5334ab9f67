"""The report of a study: tables, figures and a page, made from stored results only."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from actmeasure import statistics
from actmeasure.errors import MissingExtraError

__all__ = ["build", "is_possible", "statistics"]

#: Packages that a report needs.
NEEDED = ("pandas", "pyarrow", "matplotlib", "jinja2")


def is_possible() -> bool:
    """Return whether all packages are installed that a report needs."""
    return all(find_spec(name) is not None for name in NEEDED)


def build(directory: str | os.PathLike[str]) -> Path:
    """Make the report of a study, finished or not, from what is stored in its folder.

    Written into the folder are tables as CSV, figures as SVG and PNG, and the page, each completely or not at all.

    Parameters
    ----------
    directory : path
        Folder that `actmeasure run` or `actmeasure paper` has written.

    Returns
    -------
    Path
        Path of the page, `report.html`.

    Raises
    ------
    StudyError
        If there is no study in the folder, or nothing can be written to it.
    """
    if not is_possible():
        raise MissingExtraError("a report", "report")
    from actmeasure.studies.report.study_report import build_report

    return build_report(directory)
