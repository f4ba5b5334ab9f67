"""The report of a study: tables, figures and a page, made from stored results only."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from actmeasure import statistics
from actmeasure.errors import MissingExtraError

if TYPE_CHECKING:
    from actmeasure.studies.report.document import Document, Outputs
    from actmeasure.studies.results import Results

    ReportMaker = Callable[[Results, Path], tuple[Document, Outputs] | None]

__all__ = ["REPORTS", "build", "is_possible", "register", "statistics"]

#: Packages that a report needs.
NEEDED = ("pandas", "pyarrow", "matplotlib", "jinja2")
#: Functions that make the reports of particular studies, by the name of the study; see `register`.
REPORTS: dict[str, ReportMaker] = {}


def register(study: str, report: ReportMaker) -> None:
    """Have `build` make the report of a study with a function of its own.

    Parameters
    ----------
    study : str
        Name of the study.
    report : function of (results, directory)
        Returns the page and the files beside it, or None, upon which the report is that of all other studies. Interim reports
        are made in another process, which imports the function's module.
    """
    REPORTS[study] = report


def is_possible() -> bool:
    """Return whether all packages are installed that a report needs."""
    return all(find_spec(name) is not None for name in NEEDED)


def build(directory: str | os.PathLike[str], latex: bool = False, markdown: bool = False) -> Path:
    """Make the report of a study, finished or not, from what is stored in its folder.

    The paper's study has a report of its own once `actmeasure.paper` is imported.

    Written into the folder are tables as CSV, figures as SVG and PNG, the page, and `methods.md` with all settings, seeds,
    versions and the machine, for an appendix; each completely or not at all.

    Parameters
    ----------
    directory : path
        Folder that `actmeasure run` or `actmeasure paper` has written.
    latex : bool
        Also write every table of the page as `table-N.tex`, and every figure as PDF.
    markdown : bool
        Also write every table as `table-N.md`.

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

    return build_report(directory, latex, markdown)
