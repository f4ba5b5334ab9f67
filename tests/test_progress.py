"""The display of progress."""

import sys

import actmeasure as am
from actmeasure import progress
from actmeasure.progress import end_line, rewrite_line
from actmeasure.studies import PartProgress, StudyProgress


def test_bars_show_every_part(monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    drawn = []
    monkeypatch.setattr(progress, "_new_bars", lambda make=progress._new_bars: drawn.append(make()) or drawn[0])
    now = StudyProgress((PartProgress("a", "A", 1, 4, 61.0), PartProgress("b", "[b]B", 0, 2, 700.0)), 700.0)
    with progress.study_bars() as show:
        show(now)
    left = [(task.description, task.completed, task.total, task.fields["text"]) for task in drawn[0].tasks]
    assert left == [
        ("a", 1, 4, "about 61 s left"),
        ("b", 0, 2, "about 12 min left"),
        ("all", 1, 6, "trials, about 12 min left (Ctrl-C: stop, go on later)"),
    ]


NOW = StudyProgress((PartProgress("a", "A", 1, 4, 61.0), PartProgress("b", "B", 0, 2, 700.0)), 700.0)


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    for seconds, shown in ((60.0, ""), (0.0, "1 of 6 trials, about 12 min left\n")):
        monkeypatch.setattr(progress, "LINE_SECONDS", seconds)
        with progress.study_bars() as show:
            show(NOW)
        assert capsys.readouterr().err == shown


def test_a_dumb_terminal_gets_lines_with_what_ctrl_c_does(capsys, monkeypatch):
    """Bars and spinners show nothing there until they end."""
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    with progress.study_bars() as show, progress.status_line() as say:
        for _ in range(2):
            show(NOW)
            say("gap 0.1")
    assert capsys.readouterr().err == (
        "1 of 6 trials, about 12 min left (Ctrl-C: stop, go on later)\ngap 0.1 (Ctrl-C: best so far)\n"
    )


def test_progress_true_rewrites_a_line_and_ends_it(capsys):
    lake = am.problems.frozen_lake(4)
    for call, words in ((am.solve, " <= optimum <= "), (am.tradeoff, " solved, gap ")):
        call(lake, progress=True)
        shown = capsys.readouterr().err
        assert words in shown
        assert shown.endswith(" s\n")


def test_a_shorter_line_covers_a_longer_one(capsys):
    for text in ("long line", "short"):
        rewrite_line(text)
    end_line()
    end_line()
    assert capsys.readouterr().err == "\rlong line\rshort    \n"
