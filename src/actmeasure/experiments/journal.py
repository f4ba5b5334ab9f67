"""`study.json`: what is run, with which versions, on which machine, when and for how long."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from actmeasure import __version__
from actmeasure.experiments.memory import total_memory
from actmeasure.experiments.spec import Study
from actmeasure.experiments.store import DamagedError, Store
from actmeasure.experiments.summary import Summary
from actmeasure.processes import available_cores

__all__ = ["Journal"]

LIBRARIES = ("numpy", "scipy", "numba", "gymnasium", "pandas", "pyarrow")


class Journal:
    """Keeps `study.json` of a folder; times of earlier runs of the same study are added to."""

    def __init__(self, store: Store, study: Study) -> None:
        self._store = store
        self._data: dict[str, Any] = {**study.to_json()}
        before = self._before()
        self._earlier = before.get("wall_seconds", 0.0) if before.get("parts") == self._data["parts"] else 0.0
        self._data |= {"started": before["started"] if self._earlier else _now(), "finished": None}

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
