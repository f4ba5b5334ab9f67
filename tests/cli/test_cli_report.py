"""`actmeasure paper` and `actmeasure report`, as a user types them."""

import pytest
from command_line import actmeasure
from synthetic import own_study
from typer.testing import CliRunner

from actmeasure.cli import app
from actmeasure.cli import studies as study_commands
from actmeasure.errors import StudyError
from actmeasure.paper import study_spec
from actmeasure.studies import LocalEngine, run_study


def test_report_makes_the_page_anew_and_prints_its_path(tmp_path, without_pictures):
    run_study(own_study(), tmp_path / "mine", LocalEngine(1))
    done = CliRunner().invoke(app, ["report", str(tmp_path / "mine")])
    assert done.exit_code == 0
    assert done.output == f"{tmp_path / 'mine' / 'report.html'}\n"
    assert (tmp_path / "mine" / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_folder_without_a_study_is_a_sentence_and_exit_code_2(tmp_path):
    done = actmeasure("report", tmp_path, code=2)
    assert done.stderr.startswith(f"actmeasure: there is no study in '{tmp_path}'")
    assert done.stderr.count("\n") == 1


def test_paper_runs_the_study_in_full_or_in_small(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(study_commands, "_run_and_report", lambda *arguments: asked.append(arguments))
    for arguments in (["paper"], ["paper", "--quick", "--out", str(tmp_path), "--workers", "1", "--json"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    (full, nowhere, _, _, plain, *_), (quick, where, engine, report, as_json, file, in_small, keep) = asked
    assert keep is False
    assert (file, in_small) == (None, True)
    assert [full, quick] == [study_spec.paper_study(), study_spec.paper_study(quick=True)]
    assert (nowhere, plain, where, report, as_json) == (None, False, tmp_path, True, True)
    assert isinstance(engine, LocalEngine)


def test_paper_refuses_engines_that_are_not_there():
    done = CliRunner().invoke(app, ["paper", "--quick", "--engine", "rai"])
    assert isinstance(done.exception, StudyError)
    assert "did you mean 'ray'" in str(done.exception)


@pytest.mark.parametrize("command", ["paper", "report"])
def test_help_has_examples(command):
    assert "Examples:" in CliRunner().invoke(app, [command, "--help"]).output
