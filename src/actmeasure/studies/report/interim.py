"""Reports of a study while it is run, with the results that there are by then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from actmeasure.errors import ActMeasureError
from actmeasure.file_access import remove_leftovers
from actmeasure.studies.pool import WorkerDiedError, WorkerPool
from actmeasure.studies.report import REPORTS, build
from actmeasure.studies.study_record import StudyProgress

if TYPE_CHECKING:
    from actmeasure.studies.report import ReportMaker

__all__ = ["InterimReports"]

#: Seconds until the first report, if every part has a result (short studies are over by then), and if not.
FIRST_SECONDS, FIRST_SECONDS_AT_MOST = 4.0, 20.0
#: Seconds between two reports, and how many times the computing time of a report that is at least.
EVERY_SECONDS, COMPUTING_TIMES = 60.0, 10.0
#: Niceness of the process once the first report is written: later ones give way to the study.
NICENESS = 5


class InterimReports:
    """Writes the report of a study at intervals while it is run, in a process of its own.

    The study neither waits for a report nor fails with it, and nothing is lost when it is stopped meanwhile: every file is
    written completely or not at all, and the last report is the same as without these.

    Parameters
    ----------
    directory : path
        Of the study.
    warn : function, optional
        Called once, with a sentence, if reports cannot be written.

    Examples
    --------
    >>> with InterimReports("results/mine") as reports:  # doctest: +SKIP
    ...     run_study(study, "results/mine", progress=reports.attend)
    """

    def __init__(self, directory: str | os.PathLike[str], warn: Callable[[str], None] | None = None) -> None:
        self._directory, self._warn = Path(directory), warn
        self._last = time.perf_counter()
        self._pool: WorkerPool | None = None
        self._is_broken = False
        self._written = 0
        self._wait, self._seen = 0.0, 0

    def __enter__(self) -> InterimReports:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end()

    def attend(self, now: StudyProgress) -> None:
        """Have a report written if it is time for one; returns at once. Give it to `run_study` as `progress`."""
        if self._pool is not None and self._pool.wait(0):
            self._take_in(self._pool)
        if self._is_broken:
            return
        done = sum(part.done for part in now.parts)
        is_over = all(part.done == part.total for part in now.parts)  # then the last report is made
        if not self._is_busy and not is_over and done > self._seen and self._is_time(now):
            self._seen = done
            if self._pool is None:
                self._pool = WorkerPool(1)  # which is given the report to write when it has started
            else:
                self._pool.workers[0].submit(_write_report, str(self._directory), REPORTS)

    @property
    def _is_busy(self) -> bool:
        return self._pool is not None and self._pool.workers[0].future is not None

    def end(self) -> None:
        """Stop at once, whatever is being written."""
        if self._pool is not None:
            process = self._pool.workers[0].pid
            self._pool.end()
            self._pool = None
            if process is not None:
                remove_leftovers(self._directory, process)
        self._is_broken = True

    def _is_time(self, now: StudyProgress) -> bool:
        passed = time.perf_counter() - self._last
        if self._written:
            return passed >= self._wait
        return passed >= FIRST_SECONDS_AT_MOST or (passed >= FIRST_SECONDS and all(part.done for part in now.parts))

    def _take_in(self, pool: WorkerPool) -> None:
        """Record that the process has started, has written a report, or has died."""
        worker = pool.workers[0]
        has_started = worker.pid is not None
        try:
            said = worker.result()
        except WorkerDiedError as error:
            self._say(str(error))
            self.end()
            return
        if not has_started:
            worker.submit(_write_report, str(self._directory), REPORTS)
            return
        seconds, trouble = said
        self._written += 1
        self._last, self._wait = time.perf_counter(), max(EVERY_SECONDS, COMPUTING_TIMES * seconds)
        if trouble:
            self._say(trouble)

    def _say(self, trouble: str) -> None:
        if self._warn is not None:
            self._warn(f"There is no report while the study runs: {trouble}")
            self._warn = None


def _write_report(directory: str, reports: dict[str, ReportMaker]) -> tuple[float, str]:
    """Write a report, knowing these registered ones; returns the seconds of computing that it took and what went wrong."""
    begun = time.process_time()
    REPORTS.update(reports)
    trouble = _build(directory)
    with suppress(OSError, AttributeError):  # there is no niceness on Windows
        os.nice(max(0, NICENESS - os.nice(0)))
    return time.process_time() - begun, trouble


def _build(directory: str) -> str:
    try:
        build(directory)
    except ActMeasureError as error:
        return str(error)
    except Exception as error:  # a report that fails must not end the study
        return f"{type(error).__name__}: {error}"
    return ""
