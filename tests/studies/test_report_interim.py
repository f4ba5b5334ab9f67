"""Reports while a study runs: soon, marked as what they are, harmless, and without a trace in the last one."""

import os
import shutil
import signal
import time

import pytest
from synthetic import own_study, results_of

from actmeasure.file_access import replacing
from actmeasure.paper import study_spec
from actmeasure.paper.reporting import report as paper_report
from actmeasure.studies import LocalEngine, PartProgress, StudyProgress, report, run_study, runner
from actmeasure.studies.report import common, interim
from actmeasure.studies.report.document import render
from actmeasure.studies.report.interim import InterimReports
from actmeasure.studies.report.study_report import study_report

WAIT = 120.0


def progress(*done, total=4):
    parts = tuple(PartProgress(f"p{number}", f"P{number}", each, total, 1.0) for number, each in enumerate(done))
    return StudyProgress(parts, 1.0)


def files(directory):
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and path.name not in (".lock", "study.json")
    }


def attend_until(reports, now, condition):
    end = time.monotonic() + WAIT
    while not condition():
        reports.attend(now)
        assert time.monotonic() < end, f"what was waited for did not happen within {WAIT:g} s"
        time.sleep(0.02)


@pytest.fixture
def at_once(monkeypatch):
    """Reports as soon as there is a result, and progress after every trial, however fast these are."""
    monkeypatch.setattr(runner, "SHOW_SECONDS", 0.0)
    for name in ("FIRST_SECONDS", "FIRST_SECONDS_AT_MOST", "EVERY_SECONDS", "COMPUTING_TIMES"):
        monkeypatch.setattr(interim, name, 0.0)


@pytest.mark.slow
def test_the_last_report_is_the_same_as_without_others(tmp_path, at_once):
    """Nothing but results is in it; that of when and for how long the study ran is taken over."""
    study, seen = own_study(), []

    def watch(now):
        if seen:
            return
        reports.attend(now)
        done = sum(part.done for part in now.parts)
        if 3 <= done < 18:
            attend_until(reports, now, (tmp_path / "one" / "report.html").exists)
            seen.append((tmp_path / "one" / "report.html").read_text())

    with InterimReports(tmp_path / "one", pytest.fail) as reports:
        run_study(study, tmp_path / "one", LocalEngine(1), watch)
    assert "So far: " in seen[0]
    report.build(tmp_path / "one")
    with_others = files(tmp_path / "one")
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one" / "study.json", tmp_path / "two" / "study.json")
    shutil.copytree(tmp_path / "one" / "trials", tmp_path / "two" / "trials")
    report.build(tmp_path / "two")
    alone = {name: contents.replace(b"/two", b"/one") for name, contents in files(tmp_path / "two").items()}
    assert with_others == alone
    assert b"So far" not in with_others["report.html"]
    assert not list((tmp_path / "one").glob(".actmeasure-*"))


@pytest.mark.slow
def test_a_report_that_fails_is_one_warning_and_nothing_else(tmp_path, at_once):
    said = []
    with InterimReports(tmp_path, said.append) as reports:  # there is no study there
        attend_until(reports, progress(1, 1), lambda: said)
        attend_until(reports, progress(2, 1), lambda: reports._written == 2)
    assert len(said) == 1
    assert said[0].startswith("There is no report while the study runs: there is no study in")


def test_a_process_that_is_killed_is_a_warning(tmp_path, at_once):
    said = []
    with InterimReports(tmp_path, said.append) as reports:
        attend_until(reports, progress(1, 1), lambda: reports._pool and reports._pool.workers[0].pid)
        os.kill(reports._pool.workers[0].pid, signal.SIGKILL)
        attend_until(reports, progress(2, 1), lambda: said)
        reports.attend(progress(3, 2))  # and that is all
        assert reports._pool is None
    assert "was killed" in said[0]


def test_only_what_the_process_itself_had_begun_is_removed(tmp_path, at_once):
    """`actmeasure report` may be writing to the same folder."""
    with InterimReports(tmp_path, lambda trouble: None) as reports:
        attend_until(reports, progress(1, 1), lambda: reports._pool and reports._pool.workers[0].pid)
        worker = reports._pool.workers[0].pid
        for process in (worker, worker + 1, int(f"{worker}0")):
            (tmp_path / f".actmeasure-{process}-0123456789abcdef.tmp").write_bytes(b"half")
    left = {path.name.split("-")[1] for path in tmp_path.glob(".actmeasure-*.tmp")}
    assert left == {str(worker + 1), f"{worker}0"}


def test_the_name_of_a_file_that_is_being_written_has_its_process(tmp_path):
    with replacing(tmp_path / "file"):
        (path,) = tmp_path.iterdir()
    assert path.name.startswith(f".actmeasure-{os.getpid()}-")


def test_when_reports_are_written(monkeypatch):
    """When every part has something, or after a while; then once a minute, or less often if they take long."""
    asked, clock = [], [100.0]

    class Pool:
        """A worker that has started at once, and is done when it has an answer."""

        def __init__(self, count):
            self.workers, self.future, self.pid, self.answers = [self], "starting", None, [1]

        def wait(self, seconds):
            return self.workers if self.future and self.answers else []

        def result(self):
            self.future, self.pid = None, 1
            return self.answers.pop()

        def submit(self, function, directory, reports):
            self.future = "writing"
            asked.append(clock[0])

    monkeypatch.setattr(interim, "WorkerPool", Pool)
    monkeypatch.setattr(interim.time, "perf_counter", lambda: clock[0])
    reports = InterimReports("nowhere")

    def at(seconds, *done):
        clock[0] = 100.0 + seconds
        reports.attend(progress(*done))
        return [time - 100.0 for time in asked]

    assert at(1, 1, 1) == []  # short studies need none
    assert at(5, 1, 0) == []
    at(6, 1, 1)
    assert at(6, 1, 1) == [6]
    assert at(30, 2, 2) == [6]  # still being written
    reports._pool.answers.append((2.0, ""))
    assert at(31, 2, 2) == [6]
    assert at(90, 2, 2) == [6]
    assert at(91, 2, 2) == [6, 91]
    reports._pool.answers.append((15.0, ""))
    at(92, 3, 3)
    assert at(200, 3, 3) == [6, 91]
    assert at(242, 3, 3) == [6, 91, 242]
    reports._pool.answers.append((1.0, ""))
    at(243, 3, 3)
    assert at(400, 3, 3) == [6, 91, 242]  # nothing is new
    assert at(401, 4, 4) == [6, 91, 242]  # all is done, and the last report is made by others
    late = InterimReports("nowhere")
    asked.clear()
    clock[0] += 21
    late.attend(progress(1, 0))
    late.attend(progress(1, 0))
    assert len(asked) == 1


def test_how_far_a_study_is():
    study = own_study()
    page = render(study_report(results_of(study, keep=lambda trial: trial.kind == "plan" or trial.seed < 3), "x")[0])
    assert page.count("So far: 3 of 4 seeds.") == 2  # at the top, and in the part
    some = results_of(
        study, keep=lambda trial: trial.kind == "train" and trial.agent.name == "atmq" and trial.seed == 0
    )
    assert common.so_far(some) == {"first": "2 of 4 cells have the first of 4 seeds and 0 of 2 plans"}
    assert common.so_far(results_of(study)) == {}


def test_the_first_report_of_the_paper_has_dashes_where_nothing_is_yet(without_pictures):
    """One run of each agent, as after the first seconds, and then nothing at all."""
    study = study_spec.paper_study(quick=True)
    wanted = {}
    for part in study.parts:
        for _, agent, trial in part.runs():
            wanted.setdefault((part.name, agent.label), trial.hash)
    keep = set(wanted.values())
    document, outputs = paper_report(results_of(study, keep=lambda trial: trial.hash in keep), "x")
    page = render(document)
    table = next(section for section in document.sections if section.title == "Table 1").blocks[-2]
    assert [len(row) for row in table.rows] == [7] * 10
    row = next(row for row in table.rows if row[0].text == "ATMQ (published)")
    assert [cell.text == "\N{EN DASH}" for cell in row[1:]] == [False, True, True, False, True, True]
    assert row[2].below == "published 0.76"
    assert "figure-costs.svg" in outputs.names
    assert "With default settings the paper" not in page  # nothing is said about all of it
    nothing, _ = paper_report(results_of(study, keep=lambda trial: False), "x")
    assert "There are no results of this part yet." in render(nothing)


def test_table_1_has_the_shape_of_the_papers(without_pictures):
    study = study_spec.paper_study(quick=True)
    earned = results_of(study, earn=lambda problem, agent, seed: 0.45 + 0.01 * seed, plan=lambda problem: 0.91)
    document, _ = paper_report(earned, "x")
    returns, looks = next(section for section in document.sections if section.title == "Table 1").blocks[-2:]
    assert [title for title, _ in returns.groups] == ["", "measuring value, at a cost of a look of", "4x4 frozen lake"]
    assert list(returns.titles)[1:] == [
        "c = 0.05",
        "c = 0.10",
        "c = 0.20",
        "deterministic",
        "semi-slippery",
        "slippery",
    ]
    assert [cell.text for cell in returns.rows[0]] == ["Best known"] + ["0.91"] * 6
    names = [row[0].text for row in returns.rows[1:]]
    assert names[:4] == ["ATMQ (published)", "Dyna-ATMQ (published)", "AMRL-Q (published)", "ACNO-OTP (published)"]
    assert set(names[4:]) == {"ATMQ", "Dyna-ATMQ", "AMRL-Q", "ACNO-OTP", "Foresight"}
    cell = returns.rows[1][1]
    assert cell.text.replace("\N{NO-BREAK SPACE}", " ") == "0.46 [0.39, 0.52]"
    assert cell.below == "published 0.94"
    assert cell.shade == 2  # half of what could be earned, and less than three quarters
    assert len(returns.legend) == 6
    assert returns.rows[5][1].below == ""
    assert looks.rows[1][1].below == "published 1.30"
    assert looks.rows[1][1].shade is None
    assert looks.legend == ()
