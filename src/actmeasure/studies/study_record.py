"""The record of a study that runs: `study.json`, the progress of its parts, and the summary of a run."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from actmeasure.errors import StudyError
from actmeasure.learning.train import DISCOUNT
from actmeasure.studies.code_digest import code_of, what_computes
from actmeasure.studies.machine import processor, total_memory, versions
from actmeasure.studies.pool import available_cores
from actmeasure.studies.spec import ProblemSpec, Study, Trial
from actmeasure.studies.store import DamagedError, Store
from actmeasure.studies.sweeps import unset_settings
from actmeasure.text import text_table

__all__ = ["Failure", "PartProgress", "PartSummary", "StudyProgress", "StudyRecord", "Summary"]


@dataclass(frozen=True)
class PartProgress:
    """Progress of a part of a study.

    Attributes
    ----------
    name, title : str
    done, total : int
        Trials that are finished, stored or failed, and all trials.
    seconds_left : float
        An estimate; NaN while there is none.
    """

    name: str
    title: str
    done: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study: that of its parts, and an estimate of the seconds that are left (NaN while there is none)."""

    parts: tuple[PartProgress, ...]
    seconds_left: float


@dataclass(frozen=True)
class PartSummary:
    """Numbers of trials of a part: done now, found stored, failed and left undone; and the seconds of all stored ones."""

    name: str
    title: str
    done: int
    found: int
    failed: int
    left: int
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A trial that failed, and why."""

    trial: Trial
    why: str


@dataclass(frozen=True)
class Summary:
    """The trials of a study that were run, and those that were not.

    Attributes
    ----------
    study : str
        Name of the study.
    directory : Path
        Folder of the results; see `read_results`.
    parts : tuple of PartSummary
    failures : tuple of Failure
    notes : tuple of str
        What else happened: files that were damaged and set aside, workers that died.
    seconds : float
        Duration of this run.
    stopped : "done", "failed" or "interrupted"
        `failed` if at least one trial did, `interrupted` after Ctrl-C.
    """

    study: str
    directory: Path
    parts: tuple[PartSummary, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    seconds: float
    stopped: Literal["done", "failed", "interrupted"]

    def table(self) -> str:
        """Return a text table with a row for each part. A trial that belongs to two parts is counted in both."""
        header = ("part", "done now", "found", "failed", "left", "computing")
        rows = [
            (part.name, f"{part.done:,}", f"{part.found:,}", f"{part.failed:,}", f"{part.left:,}", f"{part.seconds:,.1f} s")
            for part in self.parts
        ]  # fmt: skip
        return "\n".join(text_table(header, rows, "<>>>>>"))

    def remarks(self) -> list[str]:
        """Return the notes and the failures as sentences."""
        failures = [f"Failed: {failure.trial}: {failure.why}" for failure in self.failures]
        return [*self.notes, *failures]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        failures = [{"trial": str(one.trial), "hash": one.trial.hash, "why": one.why} for one in self.failures]
        return {
            "study": self.study, "directory": str(self.directory), "stopped": self.stopped, "seconds": self.seconds,
            "parts": [asdict(part) for part in self.parts], "failures": failures, "notes": list(self.notes),
        }  # fmt: skip


#: Seconds between two updates of `study.json` while a study runs.
KEEP_SECONDS = 5.0


class StudyRecord:
    """Writes `study.json`; the seconds of earlier runs of the same study are added up.

    Parameters
    ----------
    store : Store
    study : Study
    source : dict
        Where the study comes from: `file`, as typed, and whether it is `quick`.
    begun : float
        Time at which the study was begun, by `time.perf_counter`.
    keep : bool
        Whether results of other code are kept.
    """

    def __init__(self, store: Store, study: Study, source: dict[str, Any], begun: float, keep: bool) -> None:
        self._store, self._begun, self._kept = store, begun, begun
        codes = {what_computes(trial): code_of(trial) for trial in study.trials()}
        self._data: dict[str, Any] = {**study.to_json(), "source": source, "code": codes, "keep": keep}
        self._defaults = _defaults(study)
        before = self._before()
        same = before if before.get("parts") == self._data["parts"] else {}
        self._earlier = float(same.get("wall_seconds") or 0.0)
        self._data |= {"started": same.get("started") or _now(), "finished": None}

    def _before(self) -> dict[str, Any]:
        try:
            return self._store.read_study() or {}
        except DamagedError:
            return {}

    def begin(self, engine: str) -> None:
        """Write that the study begins, or goes on."""
        self._data |= {
            "engine": engine,
            "versions": versions(),
            "machine": {
                "system": platform.platform(),
                "processor": processor(),
                "cores": available_cores(),
                "memory": total_memory(),
            },
            "defaults": self._defaults,
            "seconds": {},
            "wall_seconds": self._earlier,
            "failures": [],
        }
        self._store.write_study(self._data)

    def keep(self) -> None:
        """Update the seconds that the study has taken, every `KEEP_SECONDS`."""
        if time.perf_counter() - self._kept >= KEEP_SECONDS:
            self._write_time()

    def broken(self) -> None:
        """Update the seconds when the study ends with an error, such as a full disk; that error is the one to be raised."""
        with suppress(StudyError):
            self._write_time()

    def _write_time(self) -> None:
        self._kept = time.perf_counter()
        self._data["wall_seconds"] = self._earlier + self._kept - self._begun
        self._store.write_study(self._data)

    def end(self, summary: Summary) -> None:
        """Write that the study is done, or interrupted."""
        described = summary.to_json()
        self._data |= {
            "finished": None if summary.stopped == "interrupted" else _now(),
            "seconds": {part.name: part.seconds for part in summary.parts},
            "wall_seconds": self._earlier + summary.seconds,
            "failures": described["failures"],
        }
        self._store.write_study(self._data)


def _defaults(study: Study) -> dict[str, dict[str, Any]]:
    """Return the settings that were not given, with the values that they have, by part and labels of problems and agents."""
    return {
        part.name: {
            "problems": {one.label: _unset(one) for one in part.problems},
            "agents": {one.label: unset_settings("agent", one.name, one.settings) for one in part.agents},
        }
        for part in study.parts
    }


def _unset(problem: ProblemSpec) -> dict[str, Any]:
    """Return the settings of a problem that were not given; of an environment the limit of its steps and the discount."""
    if problem.gymnasium is None:
        return unset_settings("problem", problem.name, problem.settings)
    import gymnasium

    known = gymnasium.registry.get(problem.gymnasium.rpartition(":")[2])
    limit = None if known is None or "max_episode_steps" in problem.settings else known.max_episode_steps
    return {"discount": DISCOUNT} | ({} if limit is None else {"max_episode_steps": limit})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
