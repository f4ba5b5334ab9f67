"""What became of a study that was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from actmeasure.experiments.spec import Trial

__all__ = ["Failure", "PartSummary", "Summary"]


@dataclass(frozen=True)
class PartSummary:
    """Trials of a part: done now, found stored, failed and left undone; and the seconds that all its stored ones took."""

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
    """What became of a study.

    Attributes
    ----------
    study : str
        Its name.
    directory : Path
        Where the results are; see `read_results`.
    parts : tuple of PartSummary
    failures : tuple of Failure
    notes : tuple of str
        What else happened: files that were damaged and set aside, workers that died.
    seconds : float
        Time that all took now.
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
        """Part by part, as a table for the terminal. A trial that belongs to two parts is counted in both."""
        header = ("part", "done now", "found", "failed", "left", "computing")
        rows = [
            (part.name, f"{part.done:,}", f"{part.found:,}", f"{part.failed:,}", f"{part.left:,}", f"{part.seconds:,.1f} s")
            for part in self.parts
        ]  # fmt: skip
        return "\n".join(_aligned([header, *rows]))

    def remarks(self) -> list[str]:
        """What else happened and what failed, in sentences."""
        failures = [f"Failed: {failure.trial}: {failure.why}" for failure in self.failures]
        return [*self.notes, *failures]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        failures = [{"trial": str(one.trial), "hash": one.trial.hash, "why": one.why} for one in self.failures]
        return {
            "study": self.study, "directory": str(self.directory), "stopped": self.stopped, "seconds": self.seconds,
            "parts": [asdict(part) for part in self.parts], "failures": failures, "notes": list(self.notes),
        }  # fmt: skip


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns of equal width: text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
