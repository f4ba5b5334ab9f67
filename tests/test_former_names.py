"""Module names of earlier versions, and what the package lists."""

import subprocess
import sys
from importlib import import_module

import pytest

import actmeasure as am

FORMER = {
    "agents": "learning",
    "experiments": "studies",
    "fitting": "inspection",
    "planners": "planning",
    "report": "studies.report",
    "report.inspection_page": "inspection.page",
    "report.interim": "studies.report.interim",
    "seeds": "studies",
}


@pytest.mark.parametrize("name", FORMER)
def test_former_modules_have_the_objects_of_the_present_ones(name):
    former, present = import_module(f"actmeasure.{name}"), import_module(f"actmeasure.{FORMER[name]}")
    assert former.__all__
    for each in former.__all__:
        assert getattr(former, each) is getattr(present, each)


def test_all_rooms_are_listed():
    rooms = {"envs", "files", "inspection", "learning", "paper", "planning", "problems", "studies", "testing"}
    assert rooms <= set(dir(am))
    assert {name for name in am.__all__ if not hasattr(am, name)} == set()


def test_the_paper_has_its_report_under_the_former_name():
    """Nothing but `actmeasure.report` is imported."""
    code = "from actmeasure.report import REPORTS; print(sorted(REPORTS))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['paper', 'paper-quick']"
