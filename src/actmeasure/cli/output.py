"""What the commands print: tables, JSON and remarks; and where pictures go."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    """A remark on stderr, so that what is printed stays what was asked for."""
    typer.echo(escaped(text, keep="\n"), err=True)


def picture_path(path: Path | None) -> Path | None:
    """The path of a picture, if it can be drawn to; better to know now than after a long search."""
    if path is None:
        return None
    from actmeasure.drawing import check_path

    return check_path(path)


def model_json(model: Model) -> dict[str, Any]:
    """The figures of a model, without its tables of transitions and rewards."""
    cost = model.measuring_cost
    return {
        "states": model.n_states,
        "actions": model.n_actions,
        "discount": model.discount,
        "measuring_cost": cost if isinstance(cost, float) else cost.tolist(),
    }


def schedule_json(model: Model, schedule: Schedule) -> dict[str, Any]:
    """The plan for a start that is not shown, or None, and those for the known states."""
    return {
        "start": None if schedule.start is None else _plan_json(model, schedule.start),
        "plans": [
            {"state": state, "name": _name(model.state_names, state)} | _plan_json(model, plan)
            for state, plan in schedule.items()
        ],
    }


def _name(names: Sequence[str] | None, number: int) -> str:
    """A name as it is in the data, which JSON escapes by itself, or the number."""
    return str(number) if names is None else names[number]


def _plan_json(model: Model, plan: BlindPlan) -> dict[str, Any]:
    names = [_name(model.action_names, action) for action in plan.actions]
    return {"actions": list(plan.actions), "action_names": names, "then": plan.then, "repeat": plan.repeat}


# ----------------------------------------------------------------------------------------------------
# How it goes, on the terminal.
# ----------------------------------------------------------------------------------------------------


#: Progress is shown when something takes longer than this, in seconds.
PATIENCE = 2.0
#: Seconds between two lines in a log.
BETWEEN_LINES = 60.0

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


@contextmanager
def study_bars() -> Iterator[Callable[[StudyProgress], None]]:
    """A bar on stderr for each part of a study, with the time left, once it takes long; in a log, a line now and then."""
    if not sys.stderr.isatty():
        yield _StudyLines().show
        return
    bars = _StudyBars()
    try:
        yield bars.show
    finally:
        bars.stop()


class _StudyLines:
    """Lines on stderr, for those who look into a log to see whether it goes on."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def show(self, now: StudyProgress) -> None:
        if time.perf_counter() - self._last < BETWEEN_LINES:
            return
        self._last = time.perf_counter()
        done, total = sum(part.done for part in now.parts), sum(part.total for part in now.parts)
        print(f"{done:,} of {total:,} trials, {_time_left(now.seconds_left)}", file=sys.stderr, flush=True)


class _StudyBars:
    """Bars on stderr that appear after a while."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._bars: Progress | None = None
        self._tasks: list[TaskID] = []

    def show(self, now: StudyProgress) -> None:
        if time.perf_counter() - self._begun < PATIENCE:
            return
        if self._bars is None:
            self._bars = _new_study_bars()
            self._tasks = [self._bars.add_task(part.name, total=part.total, left="") for part in now.parts]
            self._tasks.append(self._bars.add_task("all", total=sum(part.total for part in now.parts), left=""))
            self._bars.start()
        *tasks, whole = self._tasks
        for task, part in zip(tasks, now.parts, strict=True):
            self._bars.update(task, completed=part.done, left=_time_left(part.seconds_left))
        done = sum(part.done for part in now.parts)
        self._bars.update(whole, completed=done, left=f"{_time_left(now.seconds_left)} (Ctrl-C: stop, go on later)")

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()


def _new_study_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


def _time_left(seconds: float) -> str:
    """How long something is still going to take, roughly.

    Examples
    --------
    >>> _time_left(0), _time_left(42.3), _time_left(754), _time_left(12_000), _time_left(math.nan)
    ('done', 'about 42 s left', 'about 13 min left', 'about 3.3 h left', '')
    """
    if math.isnan(seconds):
        return ""
    if seconds == 0:
        return "done"
    if seconds < 100:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 6000 else f"about {seconds / 3600:.1f} h left"


@contextmanager
def work_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr with what is being done and the time left, once it takes long; nothing where nobody watches."""
    bar = _WorkBar() if sys.stderr.isatty() else None
    try:
        yield (lambda doing, done, total: None) if bar is None else bar.show
    finally:
        if bar is not None:
            bar.stop()


class _WorkBar:
    """A bar on stderr that appears after a while and begins anew with every kind of work."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._doing = ""
        self._bar: Progress | None = None
        self._task: TaskID

    def show(self, doing: str, done: int, total: int) -> None:
        if time.perf_counter() - self._begun < PATIENCE:
            return
        if self._bar is None or self._doing != doing:
            self.stop()
            self._doing, self._bar = doing, _new_work_bar()
            self._task = self._bar.add_task(doing, total=total, completed=done)
            self._bar.start()
        self._bar.update(self._task, completed=done)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _new_work_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left (Ctrl-C: stop, keep what is done)"),
        console=Console(stderr=True),
        transient=True,
    )
