"""Records of inspections, read from a file or table and checked: unit, time, state and action of each."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, counted, quoted, unknown_name
from actmeasure.inspection.calendars import BrokenLineError, PeriodCalendar
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.table_files import COLUMNS, BrokenTableError, Layout, Table, open_table
from actmeasure.inspection.text import problem_text

__all__ = ["NONE", "NameCodes", "Progress", "Records", "RowCoder", "ignore_progress", "natural", "read_records"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
#: A function that is called with the name of a task, how much of it is done, and the total.
Progress = Callable[[str, int, int], None]

#: The code of an empty cell.
NONE = -1
#: `Records.source` of a table.
ROW = "row"
#: Cells that are empty, in small letters.
MISSING = frozenset({"na", "n/a", "#n/a", "-", "nan", "null"})
#: Errors of formulas of spreadsheets.
CELL_ERRORS = frozenset({"#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!"})
#: Similarity of names (1: equal) from which a default action counts as a misspelt recorded one.
MISSPELT = 0.7
#: Largest number of different states or actions.
MOST_NAMES = 250
#: Largest number of different texts of times that are cached.
MOST_TIMES = 1 << 20
#: Largest number of broken lines that are named in a message.
SHOWN_PROBLEMS = 5


def ignore_progress(task: str, done: int, total: int) -> None:
    """Do nothing: the default of `progress`."""


@dataclass(frozen=True)
class Records:
    """Checked records, sorted by unit and time, one per unit and time.

    Attributes
    ----------
    unit, state, action, line : int64 arrays, shape (N,)
        State and action are -1 where the cell is empty. The line is that of the file, or the row of the table.
    time : int64 or float64 array, shape (N,)
        Periods; in continuous time days, where times are dates, or numbers as they are.
    unit_names, state_names, action_names : tuples of str
    period : str or None
        Unit of the times, such as "year"; None if it was not given.
    source : str
        The text before the number of a line in messages.
    notes, warnings : lists of Diagnostic
        How the records were read, and states that were seen once or never.
    continuous : bool
        Whether time is continuous.
    unit_length : float
        In continuous time: the unit of intensities in that of `time`, such as 365.2425 days.
    has_dates : bool
        Whether times are dates.
    age : float64 array, shape (N,), or None
        Age of the unit at the record, in periods or in the unit of intensities; None if there is no column of ages.
    group_names : tuple of str
    group : int64 array, shape (n_units,), or None
        The group of each unit; None if there are no groups.
    """

    unit: IntArray
    time: npt.NDArray[np.int64] | FloatArray
    state: IntArray
    action: IntArray
    line: IntArray
    unit_names: tuple[str, ...]
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    period: str | None
    source: str
    notes: list[Diagnostic]
    warnings: list[Diagnostic]
    continuous: bool = False
    unit_length: float = 1.0
    has_dates: bool = False
    age: FloatArray | None = None
    group_names: tuple[str, ...] = ()
    group: IntArray | None = None

    def only(self, group: int) -> Records:
        """Return the records of the units of one group."""
        assert self.group is not None
        chosen = self.group[self.unit] == group
        kept = np.flatnonzero(self.group == group)
        arrays = {name: getattr(self, name)[chosen] for name in ("unit", "time", "state", "action", "line")}
        arrays["unit"] = np.searchsorted(kept, arrays["unit"])
        names = tuple(self.unit_names[one] for one in kept)
        age = None if self.age is None else self.age[chosen]
        warnings = [one for one in self.warnings if one.code != "state-never-seen"]
        few = replace(self, **arrays, unit_names=names, age=age, group=self.group[kept], warnings=warnings, notes=[])
        return replace(few, warnings=_odd_states(few))

    def without_inspections(self, chosen: IntArray) -> Records:
        """Return the records with the states of some of them missing, as if there had been no inspection."""
        state = self.state.copy()
        state[chosen] = NONE
        return replace(self, state=state)

    def when(self, record: int, later: int = 0) -> str:
        """Return the time of a record, or a given number of periods later, for messages."""
        if self.continuous and self.has_dates:
            return date.fromordinal(int(self.time[record])).isoformat()
        return f"{self.time[record] + later:g}" if self.continuous else str(self.time[record] + later)

    def location(self, record: int) -> str:
        """Return `records.csv, line 7` for messages."""
        return f"{self.source} {self.line[record]:,}"


def read_records(
    records: Any,
    *,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    default_action: str | None = None,
    untried: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    period: float | str | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    skip_broken: bool = False,
    progress: Progress = ignore_progress,
    continuous: bool = False,
    date_format: str | None = None,
    wide: bool = False,
    header: int = 1,
    sheet: str | None = None,
    skip_contradictions: bool = False,
) -> Records:
    """Read records from a CSV file or table and check them; see `actmeasure.fit` for the parameters.

    The actions are those of the records and of `untried`.
    """
    given_states, given_actions = _given(states, "states"), _given(actions, "actions")
    named = [*untried, *([] if default_action is None else [default_action])]
    for name in named:
        if given_actions is not None and name not in given_actions:
            raise FitError(unknown_name("action", name, given_actions))
    if wide and default_action is None:
        raise FitError(
            "a wide table has no actions; say what was always done with default_action='nothing' (--default-action)"
        )
    layout = Layout(columns or {}, default_action is not None, delimiter, encoding, wide, header, sheet)
    calendar = PeriodCalendar(period, continuous, date_format)
    known = (NameCodes("state", given_states, MOST_NAMES), NameCodes("action", given_actions, MOST_NAMES))
    table = open_table(records, layout, progress)
    coder = RowCoder(table.source, calendar, *known)
    try:
        (_read_wide if wide else _read_long)(table, coder, layout)
    except BrokenTableError as error:
        raise FitError(f"{error}; {len(coder.line):,} records were read before it") from error
    notes = _check_broken(coder, table.source, skip_broken)
    if default_action is not None and given_actions is None:
        notes += _check_default(default_action, tuple(coder.actions.codes))
    return _sorted(coder, table.source, given_states, given_actions, named, notes, skip_contradictions)


def _read_long(table: Table, coder: RowCoder, layout: Layout) -> None:
    """Read a table with a row for each record into the coder."""
    unit, time, state, action = _positions(table, layout, COLUMNS)
    width, more = len(table.names), _more_positions(table, layout)
    for line, row in table.rows:
        if len(row) == width:
            extra = {name: row[position] for name, position in more.items()} if more else None
            coder.add(line, row[unit], row[time], row[state], row[action] if action >= 0 else "", extra)
        else:
            coder.note(
                line, "wrong-width", {"fields": len(row), "expected": width, "delimiter": table.delimiter or ","}
            )


def _read_wide(table: Table, coder: RowCoder, layout: Layout) -> None:
    """Read a table with a row for each unit and a column for each time into the coder; empty cells are no records."""
    (unit,) = _positions(table, layout, ("unit",))
    more = _more_positions(table, layout)
    times, others = [], []
    for position, name in enumerate(table.names):
        if position == unit or position in more.values():
            continue
        try:
            coder.calendar.parse(name.strip())
            times.append(position)
        except BrokenLineError as error:
            others.append(name)
            problem = str(error)
    if not times:
        raise FitError(
            f"{table.where}: no column has a time as its name, as a wide table has" + (f": {problem}" if others else "")
        )
    width = len(table.names)
    for line, row in table.rows:
        if len(row) != width:
            coder.note(
                line, "wrong-width", {"fields": len(row), "expected": width, "delimiter": table.delimiter or ","}
            )
            continue
        extra = {name: row[position] for name, position in more.items()} if more else None
        for position in times:
            if not coder.states.is_missing(row[position]):
                coder.add(line, row[unit], table.names[position], row[position], "", extra)
    if others:
        coder.ignored = tuple(others[:SHOWN_PROBLEMS])


def _check_default(name: str, recorded: Sequence[str]) -> list[Diagnostic]:
    """Raise if the default action is probably a misspelt recorded one; return a diagnostic if no record names it."""
    if not recorded or name in recorded:
        return []
    if get_close_matches(name.lower(), [one.lower() for one in recorded], n=1, cutoff=MISSPELT):
        raise FitError(unknown_name("default action", name, recorded))
    return [diagnostic("default-action-not-recorded", action=name, recorded=tuple(recorded))]


def _given(names: Sequence[str] | None, what: str) -> tuple[str, ...] | None:
    """Return a list of names as a tuple; raise a `FitError` if it is empty, names one twice, or is something else."""
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise FitError(f"{what} is {quoted(names)}, expected a list of names")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice or not names:
        raise FitError(
            f"{what} has {twice[0]!r} twice; name each once" if twice else f"{what} is empty; name at least one"
        )
    return tuple(names)


def _check_broken(coder: RowCoder, source: str, skip_broken: bool) -> list[Diagnostic]:
    """Raise a `FitError` about broken lines, or return diagnostics about those skipped and about how times were read."""
    notes = []
    if coder.broken:
        named = [line for line, _, _ in coder.problems]
        line, problem, details = coder.problems[0]
        if not skip_broken or not coder.line:
            raise FitError(f"{source} {line:,}: {problem_text(problem, details)}; {_what_else(coder, named)}")
        notes.append(diagnostic("lines-skipped", count=coder.broken, lines=named, problem=problem, **details))
    if not coder.line:
        raise FitError(f"{source.removesuffix(', line')} has no records; expected rows below the names of the columns")
    notes += coder.calendar.diagnostics()
    missing = {text for names in (coder.states, coder.actions) for text in names.missing}
    if missing:
        notes.append(diagnostic("cells-missing", texts=tuple(sorted(missing))))
    if coder.ignored:
        notes.append(diagnostic("columns-ignored", columns=coder.ignored))
    return notes


def _what_else(coder: RowCoder, named: list[int]) -> str:
    """Return how many lines are broken, the first of them, and how many records could be read, for a message."""
    lines = ", ".join(f"{line:,}" for line in named) + ", ..." * (coder.broken > len(named))
    more = f"{coder.broken:,} lines are broken ({lines}); " if coder.broken > 1 else ""
    if not coder.line:
        return f"{more}no other line could be read"
    read = f"{counted(len(coder.line), 'other record')} of {counted(len(set(coder.unit)), 'unit')} could be read"
    return f"{more}{read}; correct what is broken, or leave it out with skip_broken=True (--skip-broken)"


def _sorted(
    coder: RowCoder,
    source: str,
    states: tuple[str, ...] | None,
    actions: tuple[str, ...] | None,
    named: Sequence[str],
    notes: list[Diagnostic],
    skip_contradictions: bool,
) -> Records:
    """Return the records sorted, with those of the same unit and time merged."""
    for name in named:
        coder.actions.codes.setdefault(name, len(coder.actions.codes))
    calendar = coder.calendar
    unit, line = (np.array(column, dtype=np.int64) for column in (coder.unit, coder.line))
    times = calendar.resolved(np.array(coder.time, dtype=np.float64))
    time: npt.NDArray[np.int64] | FloatArray = times if calendar.continuous else times.astype(np.int64)
    state_names, state = _ranked(coder.states.codes, np.array(coder.state, dtype=np.int64), states)
    action_names, action = _ranked(coder.actions.codes, np.array(coder.action, dtype=np.int64), actions)
    if states is None and not all(re.fullmatch(r"[-+]?\d+(\.\d+)?", name) for name in state_names):
        notes.append(diagnostic("states-sorted", states=state_names))
    age = None if coder.age is None else np.array(coder.age)
    order = np.lexsort((line, time, unit))
    unit, state, action, line = (column[order] for column in (unit, state, action, line))
    time = time[order]
    records = Records(
        unit=unit,
        time=time,
        state=state,
        action=action,
        line=line,
        unit_names=tuple(coder.units.codes),
        state_names=state_names,
        action_names=action_names,
        period=calendar.name,
        source=source,
        notes=notes,
        warnings=[],
        continuous=calendar.continuous,
        unit_length=calendar.unit_length,
        has_dates=bool(calendar.has_dates),
        age=None if age is None else age[order],
        group_names=tuple(coder.groups.codes),
        group=_unit_groups(coder, source),
    )
    first = np.flatnonzero(np.r_[True, (unit[1:] != unit[:-1]) | (time[1:] != time[:-1])])
    merged = len(unit) - len(first)
    if merged:
        left_out = 0
        for kind, column, names in (("states", state, state_names), ("actions", action, action_names)):
            wrong = _disagreements(column, len(names), first)
            if len(wrong) and not skip_contradictions:
                raise FitError(_disagreement(records, kind, column, names, first, wrong))
            left_out += len(wrong)
            _erase(column, first, wrong)
        if left_out:
            notes.append(diagnostic("contradicted-records-left-out", times=left_out))
        notes.append(diagnostic("records-merged", records=merged))
        state, action = np.maximum.reduceat(state, first), np.maximum.reduceat(action, first)
        age = None if records.age is None else records.age[first]
        records = replace(
            records, unit=unit[first], time=time[first], state=state, action=action, line=line[first], age=age
        )
    return replace(records, warnings=_odd_states(records))


def _unit_groups(coder: RowCoder, source: str) -> IntArray | None:
    """Return the group of each unit, shape (n_units,); None if there are no groups. Raises a `FitError` if a unit is in two."""
    if coder.group is None:
        return None
    group, unit = np.array(coder.group, dtype=np.int64), np.array(coder.unit, dtype=np.int64)
    of_unit = np.full(len(coder.units.codes), NONE)
    np.maximum.at(of_unit, unit, group)
    wrong = np.flatnonzero((group != of_unit[unit]) & (group != NONE))
    names = list(coder.groups.codes)
    if wrong.size:
        number = int(wrong[0])
        raise FitError(
            f"{source} {coder.line[number]:,}: unit {list(coder.units.codes)[unit[number]]!r} is in the groups "
            f"{names[group[number]]!r} and {names[of_unit[unit[number]]]!r}; a unit can be in one"
        )
    if (of_unit == NONE).any():
        name = list(coder.units.codes)[int(np.argmax(of_unit == NONE))]
        raise FitError(
            f"{source.removesuffix(', line')}: unit {name!r} is in no group; fill its cell in the column of groups"
        )
    return of_unit


def _ranked(
    codes: Mapping[str, int], column: IntArray, given: tuple[str, ...] | None
) -> tuple[tuple[str, ...], IntArray]:
    """Return the names in their order, as given or natural, and the column with codes in that order."""
    names = given if given is not None else tuple(sorted(codes, key=natural))
    rank = np.array([names.index(name) for name in codes] + [NONE], dtype=np.int64)
    return names, rank[column]


def natural(name: str) -> list[tuple[int, float, str]]:
    """Return a sorting key in which numbers within names are compared as numbers: 9 before 10, grade 9 before grade 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(0, float(part), "") if number % 2 else (1, 0.0, part) for number, part in enumerate(parts) if part]


def _disagreements(column: IntArray, n_names: int, first: IntArray) -> IntArray:
    """Return the numbers of units and times at which records have different codes; `first` is the first record of each."""
    largest = np.maximum.reduceat(column, first)
    smallest = np.minimum.reduceat(np.where(column == NONE, n_names, column), first)
    return np.flatnonzero(smallest < largest)


def _erase(column: IntArray, first: IntArray, wrong: IntArray) -> None:
    """Set the codes of all records of some units and times to those of empty cells."""
    ends = np.r_[first[1:], len(column)]
    for one in wrong:
        column[first[one] : ends[one]] = NONE


def _disagreement(
    records: Records, kind: str, column: IntArray, names: Sequence[str], first: IntArray, wrong: IntArray
) -> str:
    """Return the message about two records of the same unit and time with different states or actions."""
    begin = int(first[wrong[0]])
    end = int(np.r_[first, len(column)][wrong[0] + 1])
    codes = column[begin:end]
    low = begin + int(np.argmin(np.where(codes == NONE, len(names), codes)))
    high = begin + int(np.argmax(codes))
    one, other = sorted((low, high), key=lambda record: records.line[record])
    times = f"; {len(wrong):,} times and units are contradicted in all" if len(wrong) > 1 else ""
    return (
        f"{records.location(other)}: unit {records.unit_names[records.unit[one]]!r} has two {kind} at time {records.when(one)}, "
        f"{names[column[one]]!r} (line {records.line[one]:,}) and {names[column[other]]!r}{times}; correct one, use shorter "
        "periods if both are right, or leave such records out with skip_contradictions=True (--skip-contradictions)"
    )


def _odd_states(records: Records) -> list[Diagnostic]:
    """Return diagnostics about states that were seen once, or never although they were named."""
    counts = np.bincount(records.state[records.state != NONE], minlength=len(records.state_names))
    file = {"file": records.source.removesuffix(", line")} if records.source != ROW else {}
    odd = []
    for number, name in enumerate(records.state_names):
        if counts[number] == 1:
            line = int(records.line[np.argmax(records.state == number)])
            odd.append(diagnostic("state-seen-once", state=name, line=line, **file))
        elif not counts[number]:
            odd.append(diagnostic("state-never-seen", state=name))
    return odd


def _positions(table: Table, layout: Layout, wanted: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of columns; -1 for an optional action that is missing."""
    names, positions = table.names, []
    for column in wanted:
        name = layout.columns.get(column, column)
        if names.count(name) > 1:
            raise FitError(f"{table.where}: the column {name!r} is there {names.count(name)} times; rename all but one")
        if name in names:
            positions.append(names.index(name))
        elif column == "action" and layout.action_is_optional and column not in layout.columns:
            positions.append(-1)
        else:
            raise FitError(f"{table.where}: {_missing(column, name, names, table.delimiter or ',')}")
    return tuple(positions)


def _more_positions(table: Table, layout: Layout) -> dict[str, int]:
    """Return the positions of the columns of ages and groups, if they are named."""
    named = [column for column in layout.columns if column not in COLUMNS]
    return dict(zip(named, _positions(table, layout, named), strict=True))


def _missing(column: str, name: str, names: Sequence[str], delimiter: str) -> str:
    """Return the problem of a missing column and its remedy."""
    other = [sign for sign in (";", "\t", ",", "|") if sign != delimiter and len(names) == 1 and sign in names[0]]
    if other:
        return (
            f"there is no column {name!r}, as the columns are separated by {other[0]!r}; give delimiter={other[0]!r} "
            f"(--delimiter {other[0]!r})"
        )
    remedy = f"name the column that holds it with columns={{{column!r}: '...'}} (--column {column}=...)"
    if column == "by":
        remedy = "name the column of the groups, or leave it out (--by)"
    if column == "action":
        remedy += ", or say what was always done with default_action='nothing' (--default-action nothing)"
    meant = unknown_name("column", name, names).partition("; did you mean ")[2].partition("?")[0]
    hint = f"; did you mean {meant}?" if meant else ";"
    listed = ", ".join(repr(name) for name in names[:12])
    return f"there is no column {name!r} among {listed}{hint} {remedy}"


class NameCodes:
    """Codes of names: of the given ones only, or of all names in the order of their first appearance."""

    def __init__(self, kind: str, given: Sequence[str] | None = None, most: int | None = None) -> None:
        self.kind, self.closed, self._most = kind, given is not None, most
        self.codes: dict[str, int] = {}
        #: Code of every text of a cell, with its spaces.
        self.seen: dict[str, int] = {}
        #: Texts of cells that count as empty.
        self.missing: set[str] = set()
        for name in given or ():
            self.codes[name] = len(self.codes)

    def is_missing(self, text: str) -> bool:
        """Return whether a cell is empty, or says so."""
        name = text.strip()
        return not name or (name not in self.codes and name.lower() in MISSING)

    def code(self, text: str) -> int:
        """Return the code of the name in a cell whose text is not in `seen`, and add it there."""
        name = text.strip()
        if self.is_missing(text):
            number = NONE
            if name:
                self.missing.add(name)
        elif name in self.codes:
            number = self.codes[name]
        else:
            number = self._new(name)
        self.seen[text] = number
        return number

    def _new(self, name: str) -> int:
        if name in CELL_ERRORS:
            raise BrokenLineError("cell-error", kind=self.kind, name=name)
        if "\0" in name or any("\ud800" <= sign <= "\udfff" for sign in name):
            raise BrokenLineError("not-text", kind=self.kind, name=_shown(name))
        if self.closed:
            raise BrokenLineError("unknown-name", kind=self.kind, name=name, choices=tuple(self.codes))
        if self._most is not None and len(self.codes) >= self._most:
            raise FitError(
                f"the {self.kind} {quoted(name)} is one of more than {self._most:,} different ones; {self.kind}s are classes "
                "such as 1 to 5, so put measured values into classes first"
            )
        self.codes[name] = len(self.codes)
        return self.codes[name]


@dataclass
class RowCoder:
    """Columns of codes, filled row by row; `source` is the text before the number of a line in messages."""

    source: str
    calendar: PeriodCalendar
    states: NameCodes
    actions: NameCodes
    units: NameCodes = field(default_factory=lambda: NameCodes("unit"))
    unit: array[int] = field(default_factory=lambda: array("q"))
    time: array[float] = field(default_factory=lambda: array("d"))
    state: array[int] = field(default_factory=lambda: array("h"))
    action: array[int] = field(default_factory=lambda: array("h"))
    line: array[int] = field(default_factory=lambda: array("q"))
    groups: NameCodes = field(default_factory=lambda: NameCodes("group", most=MOST_NAMES))
    group: array[int] | None = None
    age: array[float] | None = None
    ignored: tuple[str, ...] = ()
    problems: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    broken: int = 0

    def __post_init__(self) -> None:
        self._times: dict[str, float] = {}

    def add(
        self, line: int, unit: str, time: str, state: str, action: str, more: Mapping[str, str] | None = None
    ) -> None:
        """Append a row, or note the problem of a broken one; `more` has the cells of ages and groups."""
        age, group = 0.0, NONE
        try:
            codes = (
                _known(self.units, unit), self._time(time), _known(self.states, state), _known(self.actions, action)
            )  # fmt: skip
            if codes[0] == NONE:
                raise BrokenLineError("unit-empty")
            if more and "age" in more:
                age = _number(more["age"])
            if more and "by" in more:
                group = _known(self.groups, more["by"])
        except BrokenLineError as error:
            self.note(line, error.problem, error.details)
            return
        except FitError as error:  # a problem of the whole file
            raise FitError(f"{self.source} {line:,}: {error}") from None
        self.unit.append(codes[0])
        self.time.append(codes[1])
        self.state.append(codes[2])
        self.action.append(codes[3])
        self.line.append(line)
        if more and "age" in more:
            self.age = array("d") if self.age is None else self.age
            self.age.append(age)
        if more and "by" in more:
            self.group = array("h") if self.group is None else self.group
            self.group.append(group)

    def note(self, line: int, problem: str, details: dict[str, Any]) -> None:
        """Count a broken line and keep its problem, if it is one of the first."""
        self.broken += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append((line, problem, details))

    def _time(self, text: str) -> float:
        period = self._times.get(text)
        if period is None:
            stripped = text.strip()
            if not stripped or stripped.lower() in MISSING - {"nan"}:
                raise BrokenLineError("time-empty")
            if len(self._times) >= MOST_TIMES:
                self._times.clear()
            period = self._times[text] = self.calendar.parse(stripped)
        return period


def _shown(name: str) -> str:
    """Return a name with a replacement character for each byte that is not text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _known(names: NameCodes, text: str) -> int:
    code = names.seen.get(text)
    return names.code(text) if code is None else code


def _number(text: str) -> float:
    """Return an age; raise a `BrokenLineError` if it is none."""
    try:
        age = float(text)
    except ValueError:
        age = -1.0
    if not 0 <= age < float("inf"):
        raise BrokenLineError("age-unusable", age=text.strip())
    return age
