"""From a folder of results to its report."""

from __future__ import annotations

import os
from pathlib import Path

from actmeasure.experiments.results import read_results
from actmeasure.report.html import render
from actmeasure.report.paper_report import is_paper, paper_report
from actmeasure.report.study_report import study_report

__all__ = ["build_report"]

PAGE = "report.html"


def build_report(directory: str | os.PathLike[str]) -> Path:
    """Make the report of a study; see `actmeasure.report.build`."""
    place = Path(directory)
    results = read_results(place)
    document, outputs = (paper_report if is_paper(results) else study_report)(results, place)
    outputs.add(PAGE, render(document).encode())
    outputs.write(place)
    return place / PAGE
