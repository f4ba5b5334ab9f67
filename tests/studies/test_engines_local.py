"""Worker processes: the same tables whatever their number, and whatever is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from study_tools import InlineEngine, small_study, stored, tables

import actmeasure as am
from actmeasure.kernels.jit import timed
from actmeasure.studies import (
    AgentSpec,
    LocalEngine,
    Part,
    ProblemSpec,
    Study,
    Trial,
    pool,
    read_results,
    run_study,
    runner,
)
from actmeasure.studies import trial as trial_module
from actmeasure.studies.code_digest import code_of
from actmeasure.studies.engines import local
from actmeasure.studies.engines.base import Order, perform

LAKE = ProblemSpec("4x4", "frozen-lake", {"size": 4})
SOME = Study("some", "Some", [Part("a", "A", [LAKE], ["atmq"], episodes=40_000, seeds=8, methods=["optimal"])])

ENDLESS = Study("endless", "Endless", [Part("a", "A", [LAKE], ["atmq"], episodes=10**8, seeds=2)])

SCRIPT = """
import sys
sys.path[:0] = sys.argv[1], sys.argv[1] + "/.."
import test_engines_local
from actmeasure.studies import LocalEngine, run_study

run_study(getattr(test_engines_local, sys.argv[3]), sys.argv[2], LocalEngine(2), test_engines_local.hold(sys.argv[2]))
"""


def hold(out, trials=2):
    """A function for progress that holds the study up after some trials, however fast they are, until `release(out)`."""
    runner.SHOW_SECONDS = 0.0

    def wait(progress):
        if progress.parts[0].done >= trials:
            until(Path(f"{out}.go").exists)

    return wait


def release(out):
    Path(f"{out}.go").touch()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("uninterrupted")
    run_study(SOME, directory, InlineEngine())
    return tables(directory)


@pytest.fixture
def all_shown(monkeypatch):
    """Progress after every trial, however fast these are."""
    monkeypatch.setattr(runner, "SHOW_SECONDS", 0.0)


def until(condition, seconds=300):
    for _ in range(20 * seconds):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def start(tmp_path, out, study):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen([sys.executable, script, Path(__file__).parent, out, study])


def test_the_number_of_workers_changes_nothing(tmp_path):
    study = small_study()
    run_study(study, tmp_path / "here", InlineEngine())
    engine = LocalEngine(2)
    assert run_study(study, tmp_path / "two", engine).stopped == "done"
    assert engine.at_once == 2
    assert tables(tmp_path / "two") == tables(tmp_path / "here")
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_killed_and_resumed_equals_never_interrupted(uninterrupted, tmp_path):
    """SIGKILL in mid-study: nothing half written, and the same tables byte for byte."""
    out = tmp_path / "out"
    with start(tmp_path, out, "SOME") as process:
        until(lambda: len(stored(out)) >= 2)
        process.kill()
    assert len(stored(out)) == 2
    engine = InlineEngine()
    summary = run_study(SOME, out, engine)
    assert len(engine.ran) == len(SOME.trials()) - 2
    assert not summary.notes
    assert tables(out) == uninterrupted


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """Even if it is killed, and in the middle of a trial that would take hours."""
    with start(tmp_path, tmp_path / "out", "ENDLESS") as process:
        # To load what they need takes them a second or two, so that after four they are at it.
        until(lambda: sum(child.cpu_times().user > 4 for child in psutil.Process(process.pid).children()) == 2)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    _, alive = psutil.wait_procs(children, timeout=300)
    assert not alive


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(uninterrupted, tmp_path, all_shown):
    killed = []

    def kill(progress):
        if not killed and progress.parts[0].done >= 1:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    summary = run_study(SOME, tmp_path, LocalEngine(2), kill)
    assert killed
    assert summary.stopped == "done"
    assert "was killed (signal 9), perhaps for lack of memory; try fewer workers. It is tried again" in summary.notes[0]
    assert tables(tmp_path) == uninterrupted


@pytest.mark.slow
def test_ctrl_c_stops_at_once_and_keeps_what_is_done(uninterrupted, tmp_path, all_shown):
    pressed = []

    def press(progress):
        if not pressed and progress.parts[0].done >= 2:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    summary = run_study(SOME, tmp_path, LocalEngine(2), press)
    assert summary.stopped == "interrupted"
    assert not multiprocessing.active_children()
    done = len(stored(tmp_path))
    assert summary.parts[0].done == done
    assert summary.parts[0].left == len(SOME.trials()) - done > 0
    assert run_study(SOME, tmp_path, InlineEngine()).stopped == "done"
    assert tables(tmp_path) == uninterrupted


def deadly_perform(packed, contents):
    """Dies of one of the trials, and does the others."""
    if '"seed": 1' in packed:
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(packed, contents)


def fail_to_start(lifeline):
    os._exit(3)


@pytest.mark.slow
def test_a_trial_that_kills_its_workers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "perform", deadly_perform)
    monkeypatch.setattr(local, "TRIES", 2)
    study = Study("deadly", "Deadly", [Part("a", "A", [LAKE], ["random"], episodes=5, seeds=3)])
    summary = run_study(study, tmp_path, LocalEngine(1))
    assert summary.stopped == "failed"
    (failure,) = summary.failures
    assert failure.trial.seed == 1
    assert failure.why.endswith("(after 2 tries)")
    assert len(summary.notes) == 1
    assert [trial.seed for trial in read_results(tmp_path).missing] == [1]


@pytest.mark.slow
def test_workers_that_cannot_start_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_end_with_parent", fail_to_start)
    monkeypatch.setattr(local, "TRIES", 2)
    with pytest.raises(am.StudyError, match=r"ended unexpectedly \(exit code 3\)"):
        run_study(small_study(), tmp_path, LocalEngine(1))
    assert not multiprocessing.active_children()


def test_errors_in_a_worker_are_sentences():
    trial = Trial.train(ProblemSpec("x", "no-problem"), AgentSpec("a", "atmq"), 10, 0)
    table, _, why = perform(*Order(trial, None, 0, code_of(trial)).packed())
    assert table is None
    assert "unknown problem 'no-problem'" in why
    table, _, why = perform(*Order(trial, None, 0, "0" * 16).packed())
    assert table is None
    assert "the code that computes it is another where the worker runs" in why
    table, _, why = perform("not JSON", None)
    assert table is None
    assert why.startswith("JSONDecodeError: ")
    assert why.endswith(")")


def test_compiling_is_not_counted_in_the_seconds_of_a_trial(monkeypatch):
    clock = 0.0

    def compile_and_run(trial, contents):
        nonlocal clock
        with timed():
            clock += 50.0
        clock += 2.0
        return run_trial(trial, contents)

    run_trial = trial_module.run_trial
    monkeypatch.setattr(trial_module, "run_trial", compile_and_run)
    monkeypatch.setattr(time, "perf_counter", lambda: clock)
    trial = Trial.train(LAKE, AgentSpec("random", "random"), 5, 0)
    table, seconds, *_ = perform(*Order(trial, None, 0, code_of(trial)).packed())
    assert table is not None
    assert seconds == 2.0


def test_the_number_of_workers_is_checked():
    with pytest.raises(am.StudyError, match="workers is 0"):
        LocalEngine(0)
