"""The display of progress."""

import sys

from actmeasure import progress
from actmeasure.studies import PartProgress, StudyProgress


def test_bars_show_every_part(monkeypatch):
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
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


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    now = StudyProgress((PartProgress("a", "A", 1, 4, 61.0), PartProgress("b", "B", 0, 2, 700.0)), 700.0)
    with progress.study_bars() as show:
        show(now)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
        show(now)
        assert capsys.readouterr().err == "1 of 6 trials, about 12 min left\n"
