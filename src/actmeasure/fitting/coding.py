"""Rows of text as columns of numbers, with everything checked that a row tells by itself."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.fitting.times import Clock

__all__ = ["NONE", "Coder", "Names"]

#: The number that stands for an empty cell.
NONE = -1
#: More different values than these are not names of states or actions.
MOST_NAMES = 250
#: Distinct texts of times that are remembered.
MOST_TIMES = 1 << 20
#: So many broken lines are named, the others counted.
SHOWN_PROBLEMS = 5


class HopelessError(FitError):
    """What is wrong with the whole file and not with a line."""


class Names:
    """Names in the order in which they are met, or only the given ones."""

    def __init__(self, kind: str, given: Sequence[str] | None = None, most: int | None = None) -> None:
        self.kind, self.closed, self._most = kind, given is not None, most
        self.codes: dict[str, int] = {}
        #: Number of every text as it stands in a cell, spaces included; empty cells have none.
        self.seen: dict[str, int] = {}
        for name in given or ():
            self.codes[name] = len(self.codes)

    def code(self, text: str) -> int:
        """The number of the name in a cell that has not been met before."""
        name = text.strip()
        if not name:
            number = NONE
        elif name in self.codes:
            number = self.codes[name]
        else:
            number = self._new(name)
        self.seen[text] = number
        return number

    def _new(self, name: str) -> int:
        if "\0" in name or any("\ud800" <= sign <= "\udfff" for sign in name):
            raise FitError(
                f"the {self.kind} {quoted(_shown(name))} is not UTF-8 text; save the file as UTF-8, or give its encoding, such "
                "as encoding='cp1252' (--encoding cp1252)"
            )
        if self.closed:
            raise FitError(unknown_name(self.kind, name, self.codes))
        if self._most is not None and len(self.codes) >= self._most:
            raise HopelessError(
                f"the {self.kind} {quoted(name)} is one of more than {self._most:,} different ones; {self.kind}s are classes "
                "such as 1 to 5, so put measured values into classes first"
            )
        self.codes[name] = len(self.codes)
        return self.codes[name]


@dataclass
class Coder:
    """Columns of numbers, filled row by row; `source` is what stands before the number of a line in messages."""

    source: str
    clock: Clock
    states: Names
    actions: Names
    units: Names = field(default_factory=lambda: Names("unit"))
    unit: array[int] = field(default_factory=lambda: array("q"))
    time: array[int] = field(default_factory=lambda: array("q"))
    state: array[int] = field(default_factory=lambda: array("h"))
    action: array[int] = field(default_factory=lambda: array("h"))
    line: array[int] = field(default_factory=lambda: array("q"))
    problems: list[tuple[int, str]] = field(default_factory=list)
    broken: int = 0

    def __post_init__(self) -> None:
        self._times: dict[str, int] = {}

    def add(self, line: int, unit: str, time: str, state: str, action: str) -> None:
        """Take a row, or note what is wrong with it."""
        try:
            codes = (
                _known(self.units, unit), self._time(time), _known(self.states, state), _known(self.actions, action)
            )  # fmt: skip
            if codes[0] == NONE:
                raise FitError("the unit is empty; name the unit")
        except HopelessError as error:
            raise FitError(f"{self.source} {line:,}: {error}") from None
        except FitError as error:
            self.note(line, str(error))
            return
        self.unit.append(codes[0])
        self.time.append(codes[1])
        self.state.append(codes[2])
        self.action.append(codes[3])
        self.line.append(line)

    def note(self, line: int, problem: str) -> None:
        """Remember that a line is broken."""
        self.broken += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append((line, problem))

    def _time(self, text: str) -> int:
        found = self._times.get(text)
        if found is None:
            stripped = text.strip()
            if not stripped:
                raise FitError("the time is empty; give the period of the record")
            if len(self._times) >= MOST_TIMES:
                self._times.clear()
            found = self._times[text] = self.clock.parse(stripped)
        return found


def _shown(name: str) -> str:
    """A name with a mark for each byte that is no text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _known(names: Names, text: str) -> int:
    found = names.seen.get(text)
    return names.code(text) if found is None else found
