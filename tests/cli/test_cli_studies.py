"""`actmeasure run`, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from study_tools import InlineEngine, stored
from terminal import Terminal

import actmeasure as am
from actmeasure.cli import app, studies
from actmeasure.studies import code_digest, read_study, report

STUDY = """\
name = "mine"
[[part]]
name = "lakes"
episodes = 20
seeds = 2
problems = ["chain"]
agents = ["random", {name = "amrl-q", label = "[b]learner"}]
methods = ["optimal"]
"""
COMMAND = (sys.executable, "-m", "actmeasure", "run")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    return "study.toml"


@pytest.fixture
def inline(monkeypatch):
    """No processes, and trials that fail where wished."""
    engine = InlineEngine()
    monkeypatch.setattr(studies, "_make_engine", lambda *arguments: engine)
    return engine


def call(*arguments):
    """The exit code of the command in this process."""
    try:
        result = app(["run", *map(str, arguments)], standalone_mode=False)
    except typer.Exit as left:
        return left.exit_code
    return result or 0


def test_run_stores_shows_and_goes_on(study, capsys):
    done = subprocess.run([*COMMAND, study, "--no-report"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[2].split()[:5] == ["lakes", "5", "0", "0", "0"]
    assert done.stderr.splitlines()[-1] == "Results: results/mine"  # after progress, on a busy machine
    assert len(stored(Path("results/mine"))) == 5
    assert call(study, "--no-report", "--json", "--workers", "1") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["study"], found["stopped"], found["report"], found["failures"]) == ("mine", "done", None, [])
    assert (found["parts"][0]["done"], found["parts"][0]["found"]) == (0, 5)


def test_quick_is_another_study(study, inline, capsys):
    Path(study).write_text(STUDY.replace("episodes = 20", "episodes = 300").replace("seeds = 2", "seeds = 5"))
    assert call(study, "--quick", "--no-report", "--out", "small") == 0
    assert {trial.episodes for trial in inline.ran if trial.agent} == {100}
    assert len(inline.ran) == 5
    assert json.loads(Path("small/study.json").read_text())["name"] == "mine-quick"
    assert "lakes" in capsys.readouterr().out


def test_the_report_is_written_or_said_to_be_missing(study, inline, capsys, monkeypatch):
    monkeypatch.setattr(report, "build", lambda directory: directory / "report.html", raising=False)
    assert call(study, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["report"] == "results/mine/report.html"
    first = "Report: results/mine/report.html, from the first results on; renewed about once a minute\n"
    assert err == first + "Report: results/mine/report.html\n"

    def refuse(directory):
        raise am.MissingExtraError("a report", "report")

    monkeypatch.setattr(report, "build", refuse)
    assert call(study) == 1
    assert call(study, "--json") == 1
    out, err = capsys.readouterr()
    assert err.count("There is no report: a report needs the optional extra") == 2
    assert out.startswith("part")
    assert json.loads(out[out.index("{") :])["report"] is None


def test_no_report_is_promised_where_none_can_be_made(study, inline, capsys, monkeypatch):
    monkeypatch.setattr(report, "NEEDED", ("a_package_that_is_not_there",))
    assert call(study) == 1
    err = capsys.readouterr().err
    assert err.startswith(
        "There will be no report: a report needs the optional extra 'report', which is not installed;"
    )
    assert "report.html" not in err


def test_the_summary_is_shown_whatever_becomes_of_the_report(study, inline, capsys, monkeypatch):
    def break_down(directory):
        raise ZeroDivisionError

    monkeypatch.setattr(report, "build", break_down)
    for more in ([], ["--json"]):
        with pytest.raises(ZeroDivisionError):
            call(study, *more)
        assert "lakes" in capsys.readouterr().out


def test_the_study_says_which_file_it_is_from(study, inline):
    assert call(study, "--quick", "--no-report", "--out", "small") == 0
    assert json.loads(Path("small/study.json").read_text())["source"] == {"file": "study.toml", "quick": True}


def test_other_code_is_told_at_once_and_can_be_kept(study, inline, capsys, monkeypatch):
    assert call(study, "--no-report") == 0
    monkeypatch.setattr(code_digest, "_code", lambda agent, problem, own: "0" * 16)  # as if all of it had been edited
    capsys.readouterr()
    kept = "5 of 5 trials were computed by other code (amrl-q, plans, random) and are kept; the report says so.\n"
    assert call(study, "--no-report", "--keep") == 0
    assert capsys.readouterr().err == kept + "Results: results/mine\n"
    assert len(inline.ran) == 5
    assert call(study, "--no-report") == 0
    assert "5 of 5 trials were computed by other code" in capsys.readouterr().err
    assert len(inline.ran) == 10
    assert call(study, "--no-report") == 0
    assert capsys.readouterr().err == "Results: results/mine\n"


def test_failed_trials_are_told(study, inline, capsys):
    inline._fails = lambda trial: "no luck" if trial.seed == 1 and trial.agent.name == "amrl-q" else ""
    assert call(study, "--no-report") == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[2].split()[:5] == ["lakes", "4", "0", "1", "0"]
    assert err == (
        "Failed: [b]learner on chain, seed 1: no luck\n"
        "1 trial failed; run the same again to try them once more. Results: results/mine\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.toml"], "cannot read none.toml: there is no such file"),
        (["study.toml", "--engine", "rey"], "unknown engine 'rey'; did you mean 'ray'?"),
        (["study.toml", "--address", "h:1"], "--address is of a Ray cluster"),
        (["study.toml", "--workers", "0"], "--workers is 0"),
        (["study.toml", "--out", "study.toml"], "is, or is below, a file"),
        (["typo.toml"], "typo.toml, line 4: unknown key of a part 'episods'; did you mean 'episodes'?"),
    ],
)
def test_bad_input_is_a_sentence(study, arguments, sentence):
    Path("typo.toml").write_text(STUDY.replace("episodes", "episods"))
    with pytest.raises(am.StudyError) as caught:
        call(*arguments)
    assert sentence in str(caught.value)
    assert sorted(path.name for path in Path().iterdir()) == ["study.toml", "typo.toml"]


def test_bad_input_ends_with_code_2_and_one_line(study):
    done = subprocess.run([*COMMAND, study, "--engine", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "actmeasure: unknown engine 'x'; choose one of: local, ray\n"


@pytest.mark.slow
def test_ctrl_c_on_a_terminal(study):
    """A bar for the part, and what Ctrl-C does."""
    Path(study).write_text(STUDY.replace("episodes = 20", "episodes = 50_000_000").replace("random", "atmq"))
    terminal = Terminal([*COMMAND, study, "--no-report"])
    terminal.wait_until(lambda shown: "lakes" in shown and "Ctrl-C" in shown, "a bar and what Ctrl-C does")
    terminal.press_ctrl_c()
    text, shown = terminal.end()
    assert terminal.process.returncode == 130
    assert text.splitlines()[2].split()[4] != "0"
    assert "Stopped with Ctrl-C; run the same again to do what is left." in shown


def test_a_python_study_is_run_too(study, inline):
    Path("study.py").write_text(
        'from actmeasure.studies import Part, Study\nstudy = Study("py", "Py", [Part("a", "A", "chain", "random", 5, 1)])'
    )
    assert call("study.py", "--no-report") == 0
    assert [trial.hash for trial in inline.ran] == [trial.hash for trial in read_study("study.py").trials()]
