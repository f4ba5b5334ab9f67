"""Line numbers of the keys and values of a TOML file, which `tomllib` does not provide.

The text is scanned after `tomllib` has accepted it, so that nothing is validated here.
"""

from __future__ import annotations

import re
import tomllib

__all__ = ["Place", "toml_lines"]

#: Path to a value: keys of tables and indices of arrays.
Place = tuple[str | int, ...]

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
KEY = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'")
#: Strings, with the longest quotes first; `OTHER` matches all other values.
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' + r"|'''.*?'{3,5}(?!')" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'", re.DOTALL
)
OTHER = re.compile(r"[^,\]}#\n]+")


def toml_lines(text: str) -> dict[Place, int]:
    r"""Return the line, counted from 1, of every key, table and array element in a valid TOML text.

    Examples
    --------
    >>> toml_lines('[[part]]\nagents = [\n "a",\n {name = "b"},\n]\n')[("part", 0, "agents", 1, "name")]
    4
    """
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    """A scanner that notes the line of everything it passes."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.lines: dict[Place, int] = {}
        self._counts: dict[Place, int] = {}  # of tables in arrays of tables

    def document(self) -> None:
        table: Place = ()
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
        found = pattern.match(self._text, self._at)
        if found is None:
            raise AssertionError(f"not TOML at {self._text[self._at : self._at + 20]!r}")
        self._at = found.end()
        return found[0]

    def _note(self, place: Place) -> None:
        self.lines.setdefault(place, self._text.count("\n", 0, self._at) + 1)

    def _keys(self) -> list[str]:
        """Read a dotted key and return its parts."""
        keys = []
        while True:
            self._skip(SPACE)
            text = self._skip(KEY)
            keys.append(next(iter(tomllib.loads(f"{text} = 0"))) if text[0] in "\"'" else text)
            self._skip(SPACE)
            if not self._sees("."):
                return keys
            self._at += 1

    def _inside(self, table: Place, key: str) -> Place:
        """Return the path of a table within a table; in an array of tables, of its last element."""
        place = (*table, key)
        return (*place, self._counts[place] - 1) if place in self._counts else place

    def _table(self) -> Place:
        begin, self._at = self._at, self._at + 1
        place: Place = ()
        for key in self._keys():
            place = self._inside(place, key)
        end, self._at = self._at + 1, begin
        self._note(place)
        self._at = end
        return place

    def _array_table(self) -> Place:
        begin, self._at = self._at, self._at + 2
        *outer, last = self._keys()
        end, self._at = self._at + 2, begin
        place: Place = ()
        for key in outer:
            place = self._inside(place, key)
        place = (*place, last)
        self._note(place)
        number = self._counts.get(place, 0)
        self._counts[place] = number + 1
        self._note((*place, number))
        self._at = end
        return (*place, number)

    def _pair(self, table: Place) -> None:
        """Read `key = value`."""
        begin = self._at
        keys = self._keys()
        after, self._at = self._at + 1, begin  # behind the equals sign
        place = table
        for key in keys:
            place = (*place, key)
            self._note(place)
        self._at = after
        self._skip(SPACE)
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._sees("["):
            self._sequence(place, "]", in_table=False)
        elif self._sees("{"):
            self._sequence(place, "}", in_table=True)
        else:
            self._skip(STRING if self._text[self._at] in "\"'" else OTHER)

    def _sequence(self, place: Place, end: str, in_table: bool) -> None:
        """Read an array, or an inline table in braces."""
        self._at += 1
        number = 0
        self._skip(BLANK)
        while not self._sees(end):
            if in_table:
                self._pair(place)
            else:
                self._note((*place, number))
                self._value((*place, number))
                number += 1
            self._skip(BLANK)
            if self._sees(","):
                self._at += 1
                self._skip(BLANK)
        self._at += 1
