"""Overhead of studies: milliseconds for each trial, trials a second, the gain of a second worker, and the quick paper study.

Run it alone with `python -m benchmarks.experiments`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from actmeasure.paper.study_spec import paper_study
from actmeasure.studies import LocalEngine, Part, ProblemSpec, Study, StudyProgress, Summary, run_study
from actmeasure.studies.report import build
from benchmarks.goals import Goal

#: A study of very short trials, and one of longer ones.
TINY = Study("tiny", "Tiny", [Part("a", "A", ["chain"], ["random"], episodes=5, seeds=600)])
LAKE = ProblemSpec("4x4", "frozen-lake", {"size": 4})
LONG = Study("long", "Long", [Part("a", "A", [LAKE], ["atmq"], episodes=60_000, seeds=24)])
#: Largest overhead of a trial in milliseconds; and largest ratio of the time of two workers to that of one, relative to the same
#: ratio for processes that only count (a half on two idle cores, more on a machine that others use).
OVERHEAD, WORSE = 20.0, 1.25
#: Seconds that the quick paper study may take, its report included.
QUICK = 60.0


class _Watch:
    """Records when trials were done, from the first ones on: before them workers are started and kernels loaded."""

    def __init__(self) -> None:
        self.record: list[tuple[float, int]] = []

    def __call__(self, now: StudyProgress) -> None:
        self.record.append((time.perf_counter(), sum(part.done for part in now.parts)))

    @property
    def seconds_a_trial(self) -> float:
        begun = [(seconds, done) for seconds, done in self.record if done]
        (first, some), (last, done) = begun[0], begun[-1]
        return (last - first) / (done - some)


def experiments() -> list[Goal]:
    """Return the times of studies and their goals; the names give trials a second."""
    tiny, summary = _timed(TINY, workers=1)
    own = summary.parts[0].seconds / len(TINY.trials())
    both, _ = _timed(TINY, workers=2)
    one, two, counting = _timed(LONG, workers=1)[0], _timed(LONG, workers=2)[0], _counting(2) / _counting(1) / 2
    what = (
        f"two workers ({1 / two:.1f} trials/s) against one ({1 / one:.1f}), of what the machine gives ({counting:.2f})"
    )
    return [
        Goal(f"a study's overhead for each trial ({1 / both:,.0f} trials/s)", 1e3 * (tiny - own), OVERHEAD, "ms"),
        Goal(what, two / one / counting, WORSE, "x"),
        _quick_paper(),
    ]


def _timed(study: Study, workers: int) -> tuple[float, Summary]:
    """Return the seconds per trial, and the summary."""
    watch = _Watch()
    with tempfile.TemporaryDirectory() as directory:
        summary = run_study(study, directory, LocalEngine(workers), watch)
    return watch.seconds_a_trial, summary


def _counting(processes: int) -> float:
    """Return the seconds that a number of processes take to count at the same time."""
    command = [sys.executable, "-c", "for i in range(60_000_000): pass"]
    begin = time.perf_counter()
    for process in [subprocess.Popen(command) for _ in range(processes)]:
        process.wait()
    return time.perf_counter() - begin


def _quick_paper() -> Goal:
    study = paper_study(quick=True)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        run_study(study, directory)
        build(directory)
    return Goal(f"quick paper study, {len(study.trials())} trials and report", time.perf_counter() - begin, QUICK, "s")


if __name__ == "__main__":
    print(*experiments(), sep="\n")
