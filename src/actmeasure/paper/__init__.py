"""The paper's study: what is run, what was published, and a report on both, which importing this package registers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from actmeasure.paper.study_spec import NAMES, paper_study
from actmeasure.studies.report import register

if TYPE_CHECKING:
    from actmeasure.studies.report.document import Document, Outputs
    from actmeasure.studies.results import Results

__all__ = ["paper_study"]


def _report(results: Results, directory: Path) -> tuple[Document, Outputs] | None:
    """Return the report of the paper's study; None for another study of the same name."""
    from actmeasure.paper import reporting  # which needs pandas and matplotlib

    return reporting.report(results, directory) if reporting.knows(results) else None


for _name in NAMES:
    register(_name, _report)
