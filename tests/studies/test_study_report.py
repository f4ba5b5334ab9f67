"""The page and the files beside it: whole, harmless whatever names are in it, and the same every time."""

import base64
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from synthetic import own_study, results_of

from actmeasure.errors import StudyError
from actmeasure.studies import AgentSpec, LocalEngine, Part, ProblemSpec, Study, report, run_study
from actmeasure.studies.report import export, figures, tables
from actmeasure.studies.report import study_report as study_report_module
from actmeasure.studies.report.document import Column, Commands, render, table_of
from actmeasure.studies.report.study_report import study_report
from actmeasure.text import number_text

EVIL = "<script>alert(1)</script> & \"quotes\" 'n' $\\frac{$ 1\x07 a\u202eb =cmd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study that was really run, with its report."""
    place = tmp_path_factory.mktemp("study")
    run_study(own_study(), place, LocalEngine(1))
    report.build(place)
    return place


def page_of(results):
    document, outputs = study_report(results, Path("results/mine"))
    return render(document), outputs


def test_a_report_has_tables_figures_and_a_page(folder):
    names = {path.name for path in folder.iterdir() if path.is_file()} - {".lock", "study.json"}
    drawn = ("curves-first-1", "curves-first-2", "profile-first", "efficiency-first")
    pictures = {f"{name}.{kind}" for name in drawn for kind in ("svg", "png")}
    tables = (
        "results",
        "plans",
        "curves",
        "comparisons",
        "scores",
        "scales",
        "profiles",
        "efficiency",
        "sensitivities",
    )
    assert names == {f"{name}.csv" for name in tables} | {"report.html", "methods.md"} | pictures
    page = (folder / "report.html").read_text()
    for words in ("Two agents", "learner", "best known", "probability that it earns more", "Versions: python"):
        assert words in page


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            {"file": "it's mine.toml", "quick": True},
            ["actmeasure", "run", "it's mine.toml", "--quick", "--out", "a $b"],
        ),
        ({"file": "s.py", "quick": False}, ["actmeasure", "run", "s.py", "--out", "a $b"]),
        ({"file": None, "quick": False}, None),  # a script's
        (None, None),
    ],
)
def test_the_command_that_runs_it_again_can_be_typed(source, shown):
    results = results_of(own_study(), keep=lambda trial: False)
    document, _ = study_report(replace(results, study=results.study | {"source": source}), Path("a $b"))
    (commands,) = (block for block in document.sections[-1].blocks if isinstance(block, Commands))
    wanted = [["actmeasure", "report", "a $b"]]
    assert [shlex.split(line) for line in commands.lines] == ([] if shown is None else [shown]) + wanted


@pytest.mark.slow
def test_a_report_made_again_is_the_same_byte_for_byte(folder):
    def contents():
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    before = contents()
    report.build(folder)
    assert contents() == before


def test_names_are_text_everywhere(without_pictures):
    page, outputs = page_of(results_of(own_study(problem=EVIL, agent=EVIL, title=EVIL)))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script") == 1
    assert b"<script" not in outputs.contents("curves-first-1.svg")


def test_control_characters_and_invisible_ones_are_shown_escaped_everywhere():
    results = results_of(own_study(problem=EVIL, agent=EVIL, title=EVIL))
    document, outputs = study_report(results, Path("results/mine"))
    export.add_latex(document, outputs)
    export.add_markdown(document, outputs)
    outputs.add("methods.md", export.methods_text(results.study).encode())
    outputs.add("report.html", render(document).encode())
    texts = {
        name: outputs.contents(name).decode()
        for name in outputs.names
        if name.endswith((".html", ".md", ".tex", ".svg"))
    }
    assert not [name for name, text in texts.items() if re.search("[\x07\u202e]", text)]
    assert r"1\x07 a\u202eb" in texts["report.html"]
    assert r"1\\x07 a\\u202eb" in texts["methods.md"]


def test_the_page_can_load_nothing(folder):
    page = (folder / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src &#39;none&#39;; img-src data:;")
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", page.split("<main>")[0])
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = hashlib.sha256(inside.encode()).digest()
        assert base64.b64encode(digest).decode() in policy.replace("&#43;", "+")


def test_an_unfinished_study_says_so(without_pictures):
    study = own_study()
    gone = {trial.hash for trial in study.trials()[:7]}
    page, _ = page_of(results_of(study, keep=lambda trial: trial.hash not in gone))
    assert "not finished: 7 trials missing (" in page
    assert "; and 2 more" in page
    page, _ = page_of(results_of(study, keep=lambda trial: False))
    assert "There are no results of this part yet." in page


def test_failures_are_said(without_pictures):
    results = results_of(own_study())
    results.study["failures"] = [{"trial": "learner on lake, seed 0", "hash": "0", "why": "it broke <b>badly</b>"}]
    page, _ = page_of(results)
    assert "1 trial failed the last time" in page
    assert "it broke &lt;b&gt;badly&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.125, 2, "0.12"), (-0.5, 2, "\N{MINUS SIGN}0.50"), (-0.001, 2, "0.00"), (1234567.0, 0, "1,234,567")],
)
def test_numbers_as_text(value, digits, text):
    assert number_text(value, digits) == text


def test_what_is_not_there_is_a_dash_and_sorts_last():
    frame = results_of(own_study()).plans.assign(lower=np.nan)
    cell = table_of(frame, "", [Column("lower", "lower")]).rows[0][0]
    assert (cell.text, cell.number) == ("\N{EN DASH}", None)


def test_figures_are_the_same_bytes_whatever_was_drawn_before():
    curves = _curves()
    first = figures.pictures(figures.learning_curves(curves, 0.9, "lake"))
    with mpl.rc_context({"font.size": 30, "axes.grid": False, "svg.hashsalt": "other"}):
        again = figures.pictures(figures.learning_curves(curves, 0.9, "lake"))
    assert first == again
    assert b"<dc:date>" not in first["svg"]


def test_lines_can_be_told_apart_without_colour():
    figure = figures.learning_curves(_curves(agents=8), None, "lake")
    lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata())]
    looks = {(str(line.get_linestyle()), str(line._unscaled_dash_pattern), line.get_marker()) for line in lines}
    assert len(lines) == len(looks) == 8


def _curves(agents=2):
    specs = [AgentSpec(f"agent {number}", "atmq", {"optimism": number + 1}) for number in range(agents)]
    study = Study("s", "s", [Part("p", "p", [ProblemSpec("lake", "frozen-lake")], specs, episodes=40, seeds=2)])
    return tables.curves(results_of(study).episodes)


def test_many_problems_have_curves_for_some_and_a_table_for_all(monkeypatch, without_pictures):
    monkeypatch.setattr(study_report_module, "MOST_CURVES", 2)
    problems = [ProblemSpec(f"p{number}", "chain", {"n": number}) for number in range(10, 14)]
    study = Study("s", "s", [Part("p", "p", problems, [AgentSpec("a", "atmq")], episodes=10, seeds=1)])
    page, outputs = page_of(results_of(study))
    assert page.count("<img ") == 2
    assert "Curves of the other 2 problems are in curves.csv." in page
    assert {line.split(",")[1] for line in outputs.contents("curves.csv").decode().splitlines()[1:]} == {
        problem.label for problem in problems
    }


def test_no_study_no_report(tmp_path):
    with pytest.raises(StudyError, match="there is no study in"):
        report.build(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(StudyError, match="is damaged"):
        report.build(tmp_path)


def test_a_damaged_trial_is_missing_in_the_report(folder, tmp_path, without_pictures):
    shutil.copytree(folder, tmp_path / "copy")
    victim = next((tmp_path / "copy" / "trials").glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-40])
    page = report.build(tmp_path / "copy").read_text()
    assert "not finished: 1 trial missing (" in page


def test_what_cannot_be_written_is_said(folder, tmp_path, without_pictures):
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    (place / "results.csv").unlink()
    (place / "results.csv").mkdir()
    with pytest.raises(StudyError, match=r"cannot write .*results.csv: it is a folder"):
        report.build(place)


def test_json_of_the_study_is_not_changed(folder, without_pictures):
    before = json.loads((folder / "study.json").read_text())
    report.build(folder)
    assert json.loads((folder / "study.json").read_text()) == before


def test_templates_are_in_the_wheel(tmp_path):
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    templates = root / "src" / "actmeasure" / "studies" / "report" / "templates"
    assert {f"actmeasure/studies/report/templates/{path.name}" for path in templates.iterdir()} <= inside
