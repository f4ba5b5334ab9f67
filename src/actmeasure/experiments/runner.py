"""Running a study: what is stored is kept, what is missing is run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from actmeasure import __version__
from actmeasure.errors import ActMeasureError, StudyError
from actmeasure.experiments.engines import Engine, LocalEngine, Order
from actmeasure.experiments.engines.base import unpacked
from actmeasure.experiments.expense import Appraiser, Expense
from actmeasure.experiments.journal import Journal
from actmeasure.experiments.progress import Pace, PartProgress, StudyProgress
from actmeasure.experiments.spec import Study, Trial
from actmeasure.experiments.store import DamagedError, Store, open_store
from actmeasure.experiments.summary import Failure, PartSummary, Summary
from actmeasure.interrupts import Interrupts, deferred_interrupts

__all__ = ["check_study", "run_study"]

#: Progress is told this often at most, in seconds.
SHOW_SECONDS = 0.1

Progress = Callable[[StudyProgress], None]


def run_study(
    study: Study,
    directory: str | os.PathLike[str],
    engine: Engine | None = None,
    progress: Progress | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Summary:
    """Run all trials of a study that are not stored yet.

    Each trial's results are written as soon as it is done, so that whatever stops the study loses at most the trials in flight;
    running it again does what is missing, and gives the same tables. A script that calls this needs
    `if __name__ == "__main__":` before what it does.

    Parameters
    ----------
    study : Study
    directory : path
        Of the results; made if it is not there. One study at a time can write to it, and only one of the same name.
    engine : Engine, optional
        `LocalEngine()` by default: processes on this machine. `RayEngine(...)` for a cluster.
    progress : function, optional
        Called now and then with a `StudyProgress`.
    file : path, optional
        That the study was read from; the report says how to run it again.
    quick : bool
        Whether it is the study of that file in small.

    Returns
    -------
    Summary
        Also after Ctrl-C, and if trials failed; see `Summary.stopped`.

    Raises
    ------
    StudyError
        If the study or the folder cannot be used, or the disk is full. What is stored stays.
    """
    if not isinstance(study, Study):
        raise StudyError(f"the study is {study!r:.60}, expected a Study; see actmeasure.experiments")
    begun = time.perf_counter()
    place = Path(directory)
    contents = _file_contents(study)
    expenses = check_study(study, contents)
    with open_store(place, study.name) as store, deferred_interrupts() as interrupts:
        source = {"file": None if file is None else os.fspath(file), "quick": quick}
        journal = Journal(store, study, source, begun)
        run = _Run(study, store, expenses, interrupts, progress, journal)
        chosen = engine or LocalEngine()
        journal.begin(chosen.name)
        try:
            run.look()
            run.work(chosen, contents)
        except BaseException:
            journal.broken()
            raise
        summary = run.summary(time.perf_counter() - begun)
        journal.end(summary)
    return summary


def check_study(study: Study, contents: dict[str, bytes] | None = None) -> dict[str, Expense]:
    """What each trial is expected to cost, by hash; a problem, agent or method that cannot be made is a `StudyError`."""
    found = _file_contents(study) if contents is None else contents
    appraiser, expenses = Appraiser(), {}
    for part in study.parts:
        for trial in part.trials():
            try:
                expenses[trial.hash] = appraiser.appraise(trial, found.get(trial.problem.content or ""))
            except ActMeasureError as error:
                raise StudyError(f"part {part.name!r}, {trial}: {error}") from error
    return expenses


def _file_contents(study: Study) -> dict[str, bytes]:
    """Contents of all model files, by their SHA-256: workers may be where the files are not."""
    problems = [problem for part in study.parts for problem in part.problems]
    return {problem.content: problem.read() for problem in problems if problem.content is not None}


class _Run:
    """A study while it is run."""

    def __init__(
        self,
        study: Study,
        store: Store,
        expenses: dict[str, Expense],
        interrupts: Interrupts,
        progress: Progress | None,
        journal: Journal,
    ) -> None:
        self._study, self._store, self._interrupts, self._journal = study, store, interrupts, journal
        self._expenses, self._pace = expenses, Pace(expenses)
        self._progress, self._shown = progress, -SHOW_SECONDS
        self._members = {part.name: [trial.hash for trial in part.trials()] for part in study.parts}
        self._missing: dict[str, Trial] = {}
        self._done: set[str] = set()
        self._found: set[str] = set()
        self._failures: dict[str, Failure] = {}
        self._seconds: dict[str, float] = {}
        self._notes: list[str] = []

    def look(self) -> None:
        """See what is stored; damaged files are set aside."""
        others = set()
        for trial in self._study.trials():
            try:
                stored = self._store.read(trial)
            except DamagedError as error:
                where = self._store.set_aside(self._store.path(trial))
                self._notes.append(
                    f"The file of {trial} was damaged, {error}; it was moved to {where} and is done again."
                )
                stored = None
            if stored is None:
                self._missing[trial.hash] = trial
                continue
            self._found.add(trial.hash)
            self._seconds[trial.hash] = stored.seconds
            self._pace.note(trial, stored.seconds)
            if stored.version != __version__:
                others.add(stored.version)
        if others:
            versions = " and ".join(sorted(others))
            self._notes.append(
                f"Some stored trials were made by actmeasure {versions}, this is {__version__}; choose another folder to "
                "have all made anew."
            )

    def work(self, engine: Engine, contents: dict[str, bytes]) -> None:
        """Run what is missing, the longest first, so that no worker is left with a long one at the end."""
        longest_first = sorted(self._missing.values(), key=lambda trial: -self._expenses[trial.hash].work)
        orders = [
            Order(trial, contents.get(trial.problem.content or ""), self._expenses[trial.hash].memory)
            for trial in longest_first
        ]
        self._missing = {trial.hash: trial for trial in longest_first}
        self._show(1)
        if not orders:
            return
        outcomes = engine.run(orders, self._interrupts, self._notes.append)
        try:
            for outcome in outcomes:
                if outcome is not None:
                    self._take_in(outcome.trial, outcome.table, outcome.seconds, outcome.failure)
                self._show(engine.at_once)
        finally:
            outcomes.close()  # type: ignore[attr-defined]

    def _take_in(self, trial: Trial, table: bytes | None, seconds: float, failure: str) -> None:
        del self._missing[trial.hash]
        if table is None:
            self._failures[trial.hash] = Failure(trial, failure)
            return
        self._store.write(trial, unpacked(table), seconds)
        self._journal.keep()
        self._done.add(trial.hash)
        self._seconds[trial.hash] = seconds
        self._pace.note(trial, seconds)

    def _show(self, at_once: int) -> None:
        now = time.perf_counter()
        if self._progress is None or (now - self._shown < SHOW_SECONDS and self._missing):
            return
        self._shown = now
        finishing = self._pace.finishing(list(self._missing.values()), at_once)
        parts = tuple(
            PartProgress(
                part.name, part.title, sum(name not in finishing for name in members), len(members),
                max((finishing[name] for name in members if name in finishing), default=0.0),
            )
            for part, members in zip(self._study.parts, self._members.values(), strict=True)
        )  # fmt: skip
        self._progress(StudyProgress(parts, max((part.seconds_left for part in parts), default=0.0)))

    def summary(self, seconds: float) -> Summary:
        """What became of it."""
        parts = tuple(
            PartSummary(
                part.name, part.title, len(self._done.intersection(members)), len(self._found.intersection(members)),
                len(self._failures.keys() & set(members)), len(self._missing.keys() & set(members)),
                sum(self._seconds.get(name, 0.0) for name in members),
            )
            for part, members in zip(self._study.parts, self._members.values(), strict=True)
        )  # fmt: skip
        stopped = "interrupted" if self._missing else "failed" if self._failures else "done"
        return Summary(
            self._study.name, self._store.directory, parts, tuple(self._failures.values()), tuple(self._notes), seconds,
            stopped,  # type: ignore[arg-type]
        )  # fmt: skip
