"""Where the keys of a TOML file stand, which `tomllib` does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KeyLines"]

Key = tuple[str, ...]


@dataclass(frozen=True)
class KeyLines:
    """The line of every key and table of a file; keys inside inline tables have their table's."""

    name: str
    lines: Mapping[Key, int]

    @classmethod
    def of(cls, text: str, name: str) -> KeyLines:
        """The lines of a valid TOML text from a file of that name."""
        lines: dict[Key, int] = {}
        table: Key = ()
        for number, line in enumerate(text.splitlines(), start=1):
            begin = line.strip()
            if begin.startswith("["):
                header = _keys(line)
                if header:
                    table = header
                    lines.setdefault(table, number)
            elif "=" in begin and not begin.startswith("#"):
                key = _keys(f"{line.split('=')[0]} = 0")
                if key:
                    lines.setdefault(table + key, number)
        return cls(name, lines)

    def place(self, key: Key) -> str:
        """`prices.toml, line 3: ` for the beginning of a message; of a key that is not there, its table."""
        while key and key not in self.lines:
            key = key[:-1]
        if key:
            return f"{self.name}, line {self.lines[key]}: "
        return f"{self.name}: " if self.name else ""


def _keys(line: str) -> Key:
    """The keys that a line nests, or none if it is in the middle of something."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(found, dict) and found:
        ((key, found),) = found.items()
        keys.append(key)
    return tuple(keys)
