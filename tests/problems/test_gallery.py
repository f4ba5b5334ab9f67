"""The gallery has every problem of the field, each with a picture that is small, an example, and a way to build it."""

from pathlib import Path

import pytest

import actmeasure as am

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "problems.md").read_text()
#: The paper's own problems have pages of their own.
OF_THE_PAPER = {"measuring-value", "frozen-lake", "most-likely-successor", "two-state-belief", "tight-bound"}


@pytest.mark.parametrize("name", sorted(set(am.problems.PROBLEMS) - OF_THE_PAPER))
def test_every_problem_of_the_field_is_shown(name):
    assert f"pictures/problem-{name}.png" in PAGE
    assert (ROOT / "docs" / "pictures" / f"problem-{name}.png").stat().st_size < 60 * 1024
    function = name.replace("-", "_")
    assert f"`examples/{function}.py`" in PAGE
    assert (ROOT / "examples" / f"{function}.py").exists()
    assert f"`am.problems.{function}(" in PAGE
    assert f"::: actmeasure.problems.{function}\n" in (ROOT / "docs" / "reference" / "problems.md").read_text()
