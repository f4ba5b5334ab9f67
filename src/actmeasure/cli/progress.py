"""How it goes, on the terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from actmeasure.errors import ActMeasureError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.status import Status

    from actmeasure.seeds import SeedProgress

__all__ = ["TimeLimit", "status_line", "training_bar"]

#: Progress is shown when something takes longer than this, in seconds.
PATIENCE = 2.0

TimeLimit = Annotated[float | None, typer.Option(help="Seconds; then the best so far is shown. Ctrl-C does the same.")]


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A line on stderr that says how it goes, once that takes long; nothing where nobody watches.

    What is run inside is expected to take Ctrl-C as a wish for the best so far; if it could not, a sentence says so.
    """
    line = _StatusLine() if sys.stderr.isatty() else None
    try:
        yield (lambda text: None) if line is None else line.show
    except KeyboardInterrupt:
        raise ActMeasureError("stopped before there was anything to show; let it run longer") from None
    finally:
        if line is not None:
            line.stop()


class _StatusLine:
    """A line on stderr that appears after a while."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if time.perf_counter() - self._begun < PATIENCE:
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        self._status.update(f"{text} (Ctrl-C: best so far)")

    def stop(self) -> None:
        if self._status is not None:
            self._status.stop()


@contextmanager
def training_bar() -> Iterator[Callable[[SeedProgress], None]]:
    """A bar on stderr with the current return and the time left, once training takes long; nothing where nobody watches."""
    bar = _TrainingBar() if sys.stderr.isatty() else None
    try:
        yield (lambda now: None) if bar is None else bar.show
    finally:
        if bar is not None:
            bar.stop()


class _TrainingBar:
    """A bar on stderr that appears after a while."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._bar: Progress | None = None
        self._task: TaskID

    def show(self, now: SeedProgress) -> None:
        if time.perf_counter() - self._begun < PATIENCE:
            return
        if self._bar is None:
            self._bar = _new_bar()
            self._task = self._bar.add_task("", total=now.total, completed=now.done, recent="", hint="")
            self._bar.start()
        recent = "?" if math.isnan(now.recent_return) else f"{now.recent_return:.3g}"
        hint = "stopping" if now.stopping else "Ctrl-C: stop"
        self._bar.update(self._task, completed=now.done, recent=recent, hint=hint)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TextColumn("episodes, return {task.fields[recent]},"),
        TimeRemainingColumn(),
        TextColumn("left ({task.fields[hint]})"),
        console=Console(stderr=True),
        transient=True,
    )
