"""Running a study: trials that are stored are kept, those that are missing are run."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from actmeasure.errors import ActMeasureError, StudyError, quoted
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.studies.code_digest import code_of, own_code
from actmeasure.studies.engines import Engine, LocalEngine, Order
from actmeasure.studies.engines.base import Outcome, is_importing, unpacked
from actmeasure.studies.resources import Pace, ResourceEstimator, Resources
from actmeasure.studies.spec import Study, Trial
from actmeasure.studies.store import DamagedError, Store, StoredTrial, open_store
from actmeasure.studies.study_record import Failure, PartProgress, PartSummary, StudyProgress, StudyRecord, Summary

__all__ = ["check_study", "in_order", "run_study"]

#: Least number of seconds between two calls of `progress`, and between two estimates of the time left.
SHOW_SECONDS, ESTIMATE_SECONDS = 0.1, 1.0

Progress = Callable[[StudyProgress], None]


def run_study(
    study: Study,
    directory: str | os.PathLike[str],
    engine: Engine | None = None,
    progress: Progress | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    quick: bool = False,
    keep: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Summary:
    """Run all trials of a study that are not stored yet.

    Each trial's results are written as soon as it is done, so that whatever stops the study loses at most the trials in flight;
    running it again does what is missing, and gives the same tables. Trials whose code has changed are run again. All problems
    and agents have their first seed before any has a second one.

    Parameters
    ----------
    study : Study
    directory : path
        Folder of the results, created if it is not there. One study at a time can write to it, and only one of the same name.
    engine : Engine, optional
        `LocalEngine()` by default: processes on this machine. `RayEngine(...)` for a cluster.
    progress : function, optional
        Called now and then with a `StudyProgress`.
    file : path, optional
        File that the study was read from; the report says how to run it again.
    quick : bool
        Whether it is the quick version of the study in that file.
    keep : bool
        Keep stored results that other code has computed, instead of running these trials again; the report says how many.
    tell : function, optional
        Called at once with each sentence of `Summary.notes`.

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
        raise StudyError(f"the study is {quoted(study)}, expected a Study; see actmeasure.studies")
    if is_importing():
        raise StudyError(
            "the study was started once more as a worker imported the script that defines an agent or problem; put run_study "
            "below the line: if __name__ == '__main__':"
        )
    begun = time.perf_counter()
    folder = Path(directory)
    contents = _file_contents(study)
    resources = check_study(study, contents)
    with open_store(folder, study.name) as store, deferred_interrupts() as interrupts:
        source = {"file": None if file is None else os.fspath(file), "quick": quick}
        record = StudyRecord(store, study, source, begun, keep)
        run = _Run(study, store, resources, interrupts, progress, record, keep, tell)
        chosen = engine or LocalEngine()
        record.begin(chosen.name)
        try:
            run.read_stored()
            run.run_missing(chosen, contents)
        except BaseException:
            record.broken()
            raise
        summary = run.summary(time.perf_counter() - begun)
        record.end(summary)
    return summary


def check_study(study: Study, contents: dict[str, bytes] | None = None) -> dict[str, Resources]:
    """Return the expected time and memory of each trial, by hash; what cannot be made is a `StudyError` with a reason."""
    found = _file_contents(study) if contents is None else contents
    estimator, resources = ResourceEstimator(), {}
    for part in study.parts:
        for trial in part.trials():
            try:
                resources[trial.hash] = estimator.estimate(trial, found.get(trial.problem.content or ""))
                own_code(trial)
            except ActMeasureError as error:
                raise StudyError(f"part {part.name!r}, {trial}: {error}") from error
    return resources


def _file_contents(study: Study) -> dict[str, bytes]:
    """Return the contents of all model files, by their SHA-256: workers on other machines do not have the files."""
    problems = [problem for part in study.parts for problem in part.problems]
    return {problem.content: problem.read() for problem in problems if problem.content is not None}


def in_order(study: Study, missing: Mapping[str, Trial], expected: Callable[[Trial], float]) -> list[Trial]:
    """Return trials in the order in which they are run.

    First comes the shortest trial of each agent and method of each part, so that there are early results of all; then round by
    round all first seeds (and plans), all second ones and so on. A round has its shortest trials first, but the last one its
    longest, so that no worker is left with a long one at the end.

    Parameters
    ----------
    study : Study
    missing : mapping
        The trials that are to be run, by hash.
    expected : function
        From a trial to the seconds that it is expected to take.
    """
    rounds: dict[str, int] = {}
    shortest: dict[tuple[str, str], Trial] = {}
    for part in study.parts:
        runs = [(agent.label, trial, trial.seed - part.first_seed) for _, agent, trial in part.runs()]
        for name, trial, number in [*runs, *((f"plan {method}", trial, 0) for _, method, trial in part.plans())]:
            rounds[trial.hash] = min(number, rounds.get(trial.hash, number))
            group = part.name, name
            if number == 0 and (group not in shortest or expected(trial) < expected(shortest[group])):
                shortest[group] = trial
    first = {trial.hash for trial in shortest.values()}
    last = max((rounds[name] for name in missing if name not in first), default=0)

    def key(trial: Trial) -> tuple[bool, int, float]:
        number, seconds = rounds[trial.hash], expected(trial)
        late = trial.hash not in first
        return late, number * late, -seconds if late and number == last else seconds

    return sorted(missing.values(), key=key)


class _Run:
    """The state of a study while it is run."""

    def __init__(
        self,
        study: Study,
        store: Store,
        resources: dict[str, Resources],
        interrupts: Interrupts,
        progress: Progress | None,
        record: StudyRecord,
        keep: bool,
        tell: Callable[[str], None] | None,
    ) -> None:
        self._study, self._store, self._interrupts, self._record = study, store, interrupts, record
        self._resources, self._pace = resources, Pace(resources)
        self._progress, self._shown = progress, -math.inf
        self._finishing: dict[str, float] = {}
        self._estimated = -math.inf
        self._begun: dict[str, float] = {}
        self._keep, self._tell = keep, tell
        self._members = {part.name: [trial.hash for trial in part.trials()] for part in study.parts}
        self._missing: dict[str, Trial] = {}
        self._done: set[str] = set()
        self._found: set[str] = set()
        self._failures: dict[str, Failure] = {}
        self._seconds: dict[str, float] = {}
        self._notes: list[str] = []

    def read_stored(self) -> None:
        """Read what is stored; damaged files are set aside, and results of other code are used only with `keep`."""
        trials, others = self._study.trials(), []
        for trial in trials:
            stored = self._stored(trial)
            if stored is None and (old := self._store.read_other(trial, code_of(trial))) is not None:
                others.append(trial)
                self._pace.note(trial, old.seconds)
                stored = old if self._keep else None
            elif stored is not None:
                self._pace.note(trial, stored.seconds)
            if stored is None:
                self._missing[trial.hash] = trial
                continue
            self._found.add(trial.hash)
            self._seconds[trial.hash] = stored.seconds
        if others:
            whose = ", ".join(sorted({"plans" if trial.agent is None else trial.agent.name for trial in others}))
            self._note(
                f"{len(others):,} of {len(trials):,} trials were computed by other code ({whose}) and are "
                + (
                    "kept; the report says so."
                    if self._keep
                    else "run again; --keep (keep=True) keeps the old results."
                )
            )

    def _stored(self, trial: Trial) -> StoredTrial | None:
        """Return the stored results of a trial by the present code, None if there are none."""
        try:
            return self._store.read(trial, code_of(trial))
        except DamagedError as error:
            where = self._store.set_aside(self._store.path(trial, code_of(trial)))
            self._note(f"The file of {trial} was damaged, {error}; it was moved to {where} and is done again.")
            return None

    def _note(self, sentence: str) -> None:
        self._notes.append(sentence)
        if self._tell is not None:
            self._tell(sentence)

    def run_missing(self, engine: Engine, contents: dict[str, bytes]) -> None:
        """Run the trials that are not stored."""
        self._missing = {trial.hash: trial for trial in in_order(self._study, self._missing, self._pace.expected)}
        orders = [
            Order(trial, contents.get(trial.problem.content or ""), self._resources[trial.hash].memory, code_of(trial))
            for trial in self._missing.values()
        ]
        self._show(1)
        if not orders:
            return
        outcomes = engine.run(orders, self._interrupts, self._note)
        try:
            for outcome in outcomes:
                if outcome is not None:
                    self._take_in(outcome)
                self._show(engine.at_once)
        finally:
            outcomes.close()  # type: ignore[attr-defined]

    def _take_in(self, outcome: Outcome) -> None:
        trial, seconds = outcome.trial, outcome.seconds
        del self._missing[trial.hash]
        if outcome.table is None:
            self._failures[trial.hash] = Failure(trial, outcome.failure)
            return
        self._store.write(trial, unpacked(outcome.table), seconds, code_of(trial))
        self._record.keep()
        self._done.add(trial.hash)
        self._seconds[trial.hash] = seconds
        self._pace.note(trial, seconds, outcome.has_loaded)

    def _show(self, at_once: int) -> None:
        now = time.perf_counter()
        if self._progress is None or (now - self._shown < SHOW_SECONDS and self._missing):
            return
        self._shown = now
        self._estimate(now, at_once)
        parts = tuple(
            PartProgress(
                part.name, part.title, sum(name not in self._missing for name in members), len(members),
                max((self._finishing[name] for name in members if name in self._missing), default=0.0),
            )
            for part, members in zip(self._study.parts, self._members.values(), strict=True)
        )  # fmt: skip
        self._progress(StudyProgress(parts, max((part.seconds_left for part in parts), default=0.0)))

    def _estimate(self, now: float, at_once: int) -> None:
        """Estimate, every `ESTIMATE_SECONDS`, when each trial is going to be done."""
        for name in itertools.islice(self._missing, at_once):  # trials are handed out in order
            self._begun.setdefault(name, now)
        if now - self._estimated < ESTIMATE_SECONDS:
            return
        self._estimated = now
        if not self._pace.knows:
            self._finishing = dict.fromkeys(self._missing, math.nan)
            return
        running = {name: now - self._begun[name] for name in itertools.islice(self._missing, at_once)}
        self._finishing = self._pace.finishing(list(self._missing.values()), at_once, running)

    def summary(self, seconds: float) -> Summary:
        """Return what was run, found stored, failed and left undone."""
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
