"""Line numbers of the keys of a TOML file, which `tomllib` does not give, for error messages.

The text is read a second time, after `tomllib` has found it to be valid, so that nothing is checked here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["KeyLines", "KeyPath", "toml_lines"]

#: The path to a value: keys of tables, and indices of arrays.
KeyPath = tuple[str | int, ...]

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
KEY = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'")
#: Strings that may hold anything, the longest quotes first; then all other values.
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' + r"|'''.*?'{3,5}(?!')" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'", re.DOTALL
)
OTHER = re.compile(r"[^,\]}#\n]+")


def toml_lines(text: str) -> dict[KeyPath, int]:
    r"""Return the line, counted from 1, of every key, table and element of an array in a valid TOML text.

    Examples
    --------
    >>> toml_lines('[[part]]\nagents = [\n "a",\n {name = "b"},\n]\n')[("part", 0, "agents", 1, "name")]
    4
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


@dataclass(frozen=True)
class KeyLines:
    """The line of every key and table of a file.

    Attributes
    ----------
    name : str
        The path of the file; empty if there is none.
    lines : mapping from KeyPath to int
    """

    name: str
    lines: Mapping[KeyPath, int]

    @classmethod
    def of(cls, text: str, name: str) -> KeyLines:
        """Return the lines of a valid TOML text from a file of that name."""
        return cls(name, toml_lines(text))

    def location(self, key: KeyPath) -> str:
        """Return `prices.toml, line 3: ` for the beginning of a message; of a key that is missing, the line of its table."""
        while key and key not in self.lines:
            key = key[:-1]
        if key:
            return f"{self.name}, line {self.lines[key]}: "
        return f"{self.name}: " if self.name else ""


class _Scanner:
    """One pass over a TOML text that notes the line of every key."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}  # of tables in arrays of tables

    def document(self) -> None:
        table: KeyPath = ()
        self._skip(BLANK)
        while self._at < len(self._text):
            if self._sees("[["):
                table = self._array_table()
            elif self._sees("["):
                table = self._table()
            else:
                self._pair(table)
            self._skip(BLANK)

    def _sees(self, begin: str) -> bool:
        return self._text.startswith(begin, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise AssertionError(f"not TOML at {self._text[self._at : self._at + 20]!r}")
        self._at = match.end()
        return match[0]

    def _note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, self._text.count("\n", 0, self._at) + 1)

    def _keys(self) -> list[str]:
        """Scan a dotted key and return its keys."""
        keys = []
        while True:
            self._skip(SPACE)
            text = self._skip(KEY)
            keys.append(next(iter(tomllib.loads(f"{text} = 0"))) if text[0] in "\"'" else text)
            self._skip(SPACE)
            if not self._sees("."):
                return keys
            self._at += 1

    def _inside(self, table: KeyPath, key: str) -> KeyPath:
        """Return the path of a table in a table; of an array of tables, that of its last one."""
        path = (*table, key)
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _table(self) -> KeyPath:
        begin, self._at = self._at, self._at + 1
        path: KeyPath = ()
        for key in self._keys():
            path = self._inside(path, key)
        end, self._at = self._at + 1, begin
        self._note(path)
        self._at = end
        return path

    def _array_table(self) -> KeyPath:
        begin, self._at = self._at, self._at + 2
        *outer, last = self._keys()
        end, self._at = self._at + 2, begin
        path: KeyPath = ()
        for key in outer:
            path = self._inside(path, key)
        path = (*path, last)
        self._note(path)
        number = self._counts.get(path, 0)
        self._counts[path] = number + 1
        self._note((*path, number))
        self._at = end
        return (*path, number)

    def _pair(self, table: KeyPath) -> None:
        """Scan `key = value`."""
        begin = self._at
        keys = self._keys()
        after, self._at = self._at + 1, begin  # behind the equals sign
        path = table
        for key in keys:
            path = (*path, key)
            self._note(path)
        self._at = after
        self._skip(SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._sees("["):
            self._sequence(path, "]", in_table=False)
        elif self._sees("{"):
            self._sequence(path, "}", in_table=True)
        else:
            self._skip(STRING if self._text[self._at] in "\"'" else OTHER)

    def _sequence(self, path: KeyPath, end: str, in_table: bool) -> None:
        """Scan an array, or a table in braces."""
        self._at += 1
        number = 0
        self._skip(BLANK)
        while not self._sees(end):
            if in_table:
                self._pair(path)
            else:
                self._note((*path, number))
                self._value((*path, number))
                number += 1
            self._skip(BLANK)
            if self._sees(","):
                self._at += 1
                self._skip(BLANK)
        self._at += 1
