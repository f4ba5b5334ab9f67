"""`study.json`: what is run, with which versions, on which machine, when and for how long."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from actmeasure import __version__
from actmeasure.errors import StudyError
from actmeasure.experiments.code import code_of, what_computes
from actmeasure.experiments.memory import total_memory
from actmeasure.experiments.spec import Study
from actmeasure.experiments.store import DamagedError, Store
from actmeasure.experiments.summary import Summary
from actmeasure.processes import available_cores

__all__ = ["Journal"]

#: While a study runs, `study.json` is kept up to date this often, in seconds: should it be killed, no more time is lost.
KEEP_SECONDS = 5.0
LIBRARIES = ("numpy", "scipy", "numba", "gymnasium", "pandas", "pyarrow")


class Journal:
    """Keeps `study.json` of a folder; times of earlier runs of the same study are added to.

    Parameters
    ----------
    store : Store
    study : Study
    source : dict
        Where the study comes from: `file`, as typed, and whether it is `quick`.
    begun : float
        When the study was begun, as `time.perf_counter` tells.
    keep : bool
        Whether results of other code are kept.
    """

    def __init__(self, store: Store, study: Study, source: dict[str, Any], begun: float, keep: bool) -> None:
        self._store, self._begun, self._kept = store, begun, begun
        codes = {what_computes(trial): code_of(trial) for trial in study.trials()}
        self._data: dict[str, Any] = {**study.to_json(), "source": source, "code": codes, "keep": keep}
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
        """The study begins, or goes on."""
        self._data |= {
            "engine": engine,
            "versions": _versions(),
            "machine": {"system": platform.platform(), "cores": available_cores(), "memory": total_memory()},
            "seconds": {},
            "wall_seconds": self._earlier,
            "failures": [],
        }
        self._store.write_study(self._data)

    def keep(self) -> None:
        """The study is going on: write down for how long, if that was a while ago."""
        if time.perf_counter() - self._kept >= KEEP_SECONDS:
            self._write_time()

    def broken(self) -> None:
        """The study ends with an error, such as a full disk, which is the one to be told."""
        with suppress(StudyError):
            self._write_time()

    def _write_time(self) -> None:
        self._kept = time.perf_counter()
        self._data["wall_seconds"] = self._earlier + self._kept - self._begun
        self._store.write_study(self._data)

    def end(self, summary: Summary) -> None:
        """The study is done, or interrupted."""
        described = summary.to_json()
        self._data |= {
            "finished": None if summary.stopped == "interrupted" else _now(),
            "seconds": {part.name: part.seconds for part in summary.parts},
            "wall_seconds": self._earlier + summary.seconds,
            "failures": described["failures"],
        }
        self._store.write_study(self._data)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "actmeasure": __version__}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
