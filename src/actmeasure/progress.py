"""How far long computations are, on the terminal: bars and lines on stderr, which is the only place that prints them."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from actmeasure.errors import ActMeasureError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.status import Status

    from actmeasure.studies import SeedProgress, StudyProgress

__all__ = ["Bar", "end_line", "rewrite_line", "status_line", "study_bars", "time_left", "training_bar", "work_bar"]

#: Seconds after which progress is shown.
SHOW_AFTER_SECONDS = 2.0
#: Seconds between two lines of progress where stderr is a file.
LINE_SECONDS = 60.0


#: Length of the line that `rewrite_line` printed last.
_LENGTH = [0]


def rewrite_line(text: str) -> None:
    """Print a line on stderr over the last one; for `progress=True` of functions, which needs nothing but Python."""
    print(f"\r{text.ljust(_LENGTH[0])}", end="", file=sys.stderr, flush=True)
    _LENGTH[0] = len(text)


def end_line() -> None:
    """Begin a new line after `rewrite_line`; without one there is nothing to end."""
    if _LENGTH[0]:
        print(file=sys.stderr)
    _LENGTH[0] = 0


def _is_dumb() -> bool:
    """Return whether the terminal cannot rewrite a line, so that bars would show nothing; it gets lines, as a log does."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows a line of progress on a terminal; the line appears after `SHOW_AFTER_SECONDS`.

    What is run inside is expected to return its best result so far after Ctrl-C; if it cannot, an error says so.
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
    """A line on stderr with a spinner; on a dumb terminal a line every `LINE_SECONDS`."""

    def __init__(self) -> None:
        self._show_at = time.perf_counter() + SHOW_AFTER_SECONDS
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if time.perf_counter() < self._show_at:
            return
        if _is_dumb():
            self._show_at = time.perf_counter() + LINE_SECONDS
            print(f"{text} (Ctrl-C: best so far)", file=sys.stderr, flush=True)
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
    """Give a function that shows the progress of training; see `_display`."""
    with _display("episodes") as show:

        def show_training(now: SeedProgress) -> None:
            recent = "?" if math.isnan(now.recent_return) else f"{now.recent_return:.3g}"
            show([Bar("", now.done, now.total, f"return {recent}")], "stopping" if now.stopping else "Ctrl-C: stop")

        yield show_training


@contextmanager
def study_bars() -> Iterator[Callable[[StudyProgress], None]]:
    """Give a function that shows the progress of a study, part by part; see `_display`."""
    with _display("trials") as show:

        def show_study(now: StudyProgress) -> None:
            parts = [Bar(part.name, part.done, part.total, "", part.seconds_left) for part in now.parts]
            done, total = sum(part.done for part in now.parts), sum(part.total for part in now.parts)
            show([*parts, Bar("all", done, total, "", now.seconds_left)], "Ctrl-C: stop, go on later")

        yield show_study


@contextmanager
def work_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows what is being done (`doing, done, total`); see `_display`."""
    with _display("done") as show:
        yield lambda doing, done, total: show([Bar(doing, done, total)], "Ctrl-C: stop, keep what is done")


class Bar(NamedTuple):
    """One bar of progress: its title, what is done of how much, a remark, and the seconds left (None: by the pace so far)."""

    title: str
    done: int
    total: int
    remark: str = ""
    seconds_left: float | None = None


@contextmanager
def _display(unit: str) -> Iterator[Callable[[Sequence[Bar], str], None]]:
    """Give a function that shows bars and a hint: on a terminal after `SHOW_AFTER_SECONDS`, in a log as lines.

    A log gets a line every `LINE_SECONDS`, about the last bar; a dumb terminal too, the first after `SHOW_AFTER_SECONDS`.
    """
    display: _Bars | _Lines
    if sys.stderr.isatty():
        display = _Lines(unit, SHOW_AFTER_SECONDS, has_hint=True) if _is_dumb() else _Bars(unit)
    else:
        display = _Lines(unit, LINE_SECONDS)
    try:
        yield display.show
    finally:
        display.stop()


class _Bars:
    """Bars on stderr, which begin anew when their titles change."""

    def __init__(self, unit: str) -> None:
        self._unit, self._begun = unit, time.perf_counter()
        self._titles: list[str] = []
        self._bars: Progress | None = None
        self._tasks: list[TaskID] = []

    def show(self, bars: Sequence[Bar], hint: str) -> None:
        if time.perf_counter() - self._begun < SHOW_AFTER_SECONDS:
            return
        titles = [bar.title for bar in bars]
        if self._bars is None or titles != self._titles:
            self.stop()
            self._titles, self._bars = titles, _new_bars()
            texts = [""] * (len(bars) - 1) + [f"({hint})"]
            self._tasks = [
                self._bars.add_task(bar.title, total=bar.total, completed=bar.done, text=text)
                for bar, text in zip(bars, texts, strict=True)
            ]
            self._bars.start()
        for task, bar in zip(self._tasks, bars, strict=True):
            self._bars.update(task, completed=bar.done)
            by_pace = self._bars.tasks[self._bars.task_ids.index(task)].time_remaining
            left = bar.seconds_left if bar.seconds_left is not None else math.nan if by_pace is None else by_pace
            text = ", ".join(part for part in (bar.remark, time_left(left)) if part)
            self._bars.update(task, text=f"{self._unit}, {text} ({hint})" if task == self._tasks[-1] else text)

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()


class _Lines:
    """Lines on stderr, which show in a log whether work goes on."""

    def __init__(self, unit: str, first_seconds: float, has_hint: bool = False) -> None:
        self._unit, self._has_hint, self._begun = unit, has_hint, time.perf_counter()
        self._show_at = self._begun + first_seconds

    def show(self, bars: Sequence[Bar], hint: str) -> None:
        now = time.perf_counter()
        if now < self._show_at:
            return
        self._show_at, bar = now + LINE_SECONDS, bars[-1]
        by_pace = (now - self._begun) * (bar.total - bar.done) / bar.done if bar.done else math.nan
        left = time_left(by_pace if bar.seconds_left is None else bar.seconds_left)
        text = ", ".join(part for part in (f"{bar.done:,} of {bar.total:,} {self._unit}", bar.remark, left) if part)
        print(f"{text} ({hint})" if self._has_hint else text, file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Lines need no end."""


def _new_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


def time_left(seconds: float) -> str:
    """Return in words how many seconds are left, rounded; "" for NaN.

    Examples
    --------
    >>> time_left(0), time_left(42.3), time_left(754), time_left(12_000), time_left(math.nan)
    ('done', 'about 42 s left', 'about 13 min left', 'about 3.3 h left', '')
    """
    if math.isnan(seconds):
        return ""
    if seconds == 0:
        return "done"
    if seconds < 100:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 6000 else f"about {seconds / 3600:.1f} h left"
