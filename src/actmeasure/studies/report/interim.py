"""Reports of a study while it is run, so that there is something to see long before all of it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from actmeasure.errors import ActMeasureError
from actmeasure.files.atomic import remove_leftovers
from actmeasure.studies.processes import WorkerProcess, end_with_parent
from actmeasure.studies.progress import StudyProgress

__all__ = ["InterimReports"]

#: The first report is written when every part has something, but not sooner than this, in seconds, for short studies are over by
#: then; and when this much longer has passed whatever is there.
FIRST_SECONDS, PATIENCE_SECONDS = 4.0, 20.0
#: It is renewed this often, in seconds, or at least so many times the computing that it takes apart, if that is more.
EVERY_SECONDS, APART = 60.0, 10.0
#: How far later reports give way to the study, as Unix counts.
NICE = 5


class InterimReports:
    """Writes the report of a study now and then while it is run, in a process of its own.

    The study neither waits for a report nor fails with it, and nothing is lost when it is stopped meanwhile: every file is
    written completely or not at all, and the last report is the same as without
    these.

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
        self._begun = self._last = time.perf_counter()
        self._worker: WorkerProcess | None = None
        self._is_busy, self._is_broken = False, False
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
        if self._is_broken:
            return
        if self._is_busy:
            self._listen()
        done = sum(part.done for part in now.parts)
        is_over = all(part.done == part.total for part in now.parts)  # then the last report is made
        if not self._is_busy and not is_over and done > self._seen and self._is_time(now):
            self._seen, self._is_busy = done, True
            if self._worker is None:
                self._worker = WorkerProcess(_write_reports, str(self._directory))
            self._worker.say(None)

    def end(self) -> None:
        """Stop at once, whatever is being written."""
        if self._worker is not None:
            process = self._worker.process.pid
            self._worker.kill()
            self._worker.end()
            self._worker = None
            if process is not None:
                remove_leftovers(self._directory, process)
        self._is_broken = True

    def _is_time(self, now: StudyProgress) -> bool:
        passed = time.perf_counter() - self._last
        if self._written:
            return passed >= self._wait
        return passed >= PATIENCE_SECONDS or (passed >= FIRST_SECONDS and all(part.done for part in now.parts))

    def _listen(self) -> None:
        """Hear from the process, if it has something to say."""
        assert self._worker is not None
        try:
            if not self._worker.connection.poll():
                return
            seconds, trouble = self._worker.connection.recv()
        except (EOFError, OSError):
            self._say(self._worker.obituary())
            self.end()
            return
        self._is_busy = False
        self._written += 1
        self._last, self._wait = time.perf_counter(), max(EVERY_SECONDS, APART * seconds)
        if trouble:
            self._say(trouble)

    def _say(self, trouble: str) -> None:
        if self._warn is not None:
            self._warn(f"There is no report while the study runs: {trouble}")
            self._warn = None


def _write_reports(connection: Connection, directory: str) -> None:
    """Write a report whenever asked to, and say how many seconds of computing it took and what went wrong."""
    end_with_parent()
    with suppress(EOFError, OSError):  # the process that started this one has let go of it
        while True:
            connection.recv()
            begun = time.process_time()
            trouble = _build(directory)
            connection.send((time.process_time() - begun, trouble))
            with suppress(OSError, AttributeError):  # the first is wanted soon, the others can wait
                os.nice(max(0, NICE - os.nice(0)))


def _build(directory: str) -> str:
    from actmeasure.studies.report import build

    try:
        build(directory)
    except ActMeasureError as error:
        return str(error)
    except Exception as error:  # which must not end the study
        return f"{type(error).__name__}: {error}"
    return ""
