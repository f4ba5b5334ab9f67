"""What the commands print: tables, JSON, remarks and progress; and the paths of pictures."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from actmeasure.errors import ActMeasureError
from actmeasure.errors import shown as escaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.status import Status

    from actmeasure.model import Model
    from actmeasure.schedule import BlindPlan, Schedule
    from actmeasure.studies import SeedProgress, StudyProgress

__all__ = [
    "EXIT_CODES",
    "Json",
    "Plot",
    "TimeLimit",
    "model_json",
    "picture_path",
    "print_json",
    "print_rows",
    "say",
    "schedule_json",
    "status_line",
    "study_bars",
    "training_bar",
    "work_bar",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines; a number that is infinite is null there.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture into this file, such as plans.png or plans.svg.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds; then the best so far is shown. Ctrl-C does the same.")]

#: Exit codes of training and studies: all done, something failed, stopped with Ctrl-C.
EXIT_CODES = {"done": 0, "failed": 1, "interrupted": 130}
#: Seconds after which progress is shown.
SHOW_AFTER_SECONDS = 2.0
#: Seconds between two lines of progress where stderr is a file.
LINE_SECONDS = 60.0


def print_json(found: Any) -> None:
    """Print as JSON, which has no infinite or undefined numbers: they become null."""
    typer.echo(json.dumps(_finite(found), indent=2, allow_nan=False))


def _finite(found: Any) -> Any:
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {name: _finite(value) for name, value in found.items()}
    return [_finite(value) for value in found] if isinstance(found, (list, tuple)) else found


def print_rows(rows: list[dict[str, Any]], as_json: bool, hidden: Collection[str] = ()) -> None:
    """Print rows with equal keys as a table without the `hidden` columns, or all of them as JSON."""
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    shown = [key for key in rows[0] if key not in hidden]
    for key in shown:
        table.add_column(key, justify="right" if isinstance(rows[0][key], int) else "left", no_wrap=key != "what")
    for row in rows:
        table.add_row(
            *(f"{value:,}" if isinstance(value, int) else escaped(str(value)) for value in map(row.get, shown))
        )
    Console().print(table)


def say(text: str) -> None:
    """Print a remark on stderr, so that stdout holds only what was asked for."""
    typer.echo(escaped(text, keep="\n"), err=True)


def picture_path(path: Path | None) -> Path | None:
    """Return the path of a picture after checking that it can be written; called before a long search."""
    if path is None:
        return None
    from actmeasure.drawing import check_path

    return check_path(path)


def model_json(model: Model) -> dict[str, Any]:
    """Return the sizes, discount and measuring cost of a model as JSON data; where looks are not exact, all measurements."""
    sizes = {"states": model.n_states, "actions": model.n_actions, "discount": model.discount}
    prices = [look.cost if isinstance(look.cost, float) else look.cost.tolist() for look in model.measurements]
    if model.looks_are_exact:
        return sizes | {"measuring_cost": prices[0]}
    looks = zip(model.measurements, prices, strict=True)
    return sizes | {"measurements": [{"name": look.name, "cost": price} for look, price in looks]}


def schedule_json(model: Model, schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as JSON data: the plan for a hidden start, or None, and those for the known states."""
    return {
        "start": None if schedule.start is None else _plan_json(model, schedule.start),
        "plans": [
            {"state": state, "name": _name(model.state_names, state)} | _plan_json(model, plan)
            for state, plan in schedule.items()
        ],
    }


def _name(names: Sequence[str] | None, number: int) -> str:
    """Return a name as it is in the data (JSON escapes it), or the number."""
    return str(number) if names is None else names[number]


def _plan_json(model: Model, plan: BlindPlan) -> dict[str, Any]:
    names = [_name(model.action_names, action) for action in plan.actions]
    return {"actions": list(plan.actions), "action_names": names, "then": plan.then, "repeat": plan.repeat}


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
    """A line on stderr with a spinner."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if time.perf_counter() - self._begun < SHOW_AFTER_SECONDS:
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

    A log gets a line every `LINE_SECONDS`, about the last bar.
    """
    display = _Bars(unit) if sys.stderr.isatty() else _Lines(unit)
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

    def __init__(self, unit: str) -> None:
        self._unit, self._begun = unit, time.perf_counter()
        self._last = self._begun

    def show(self, bars: Sequence[Bar], hint: str) -> None:
        now = time.perf_counter()
        if now - self._last < LINE_SECONDS:
            return
        self._last, bar = now, bars[-1]
        by_pace = (now - self._begun) * (bar.total - bar.done) / bar.done if bar.done else math.nan
        left = time_left(by_pace if bar.seconds_left is None else bar.seconds_left)
        text = ", ".join(part for part in (f"{bar.done:,} of {bar.total:,} {self._unit}", bar.remark, left) if part)
        print(text, file=sys.stderr, flush=True)

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
