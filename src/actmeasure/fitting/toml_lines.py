"""Places in a TOML file, for the beginning of a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actmeasure.files.toml_places import Place, toml_lines

__all__ = ["KeyLines"]


@dataclass(frozen=True)
class KeyLines:
    """The line of every key and table of a file."""

    name: str
    lines: Mapping[Place, int]

    @classmethod
    def of(cls, text: str, name: str) -> KeyLines:
        """The lines of a valid TOML text from a file of that name."""
        return cls(name, toml_lines(text))

    def place(self, key: Place) -> str:
        """`prices.toml, line 3: ` for the beginning of a message; of a key that is not there, its table."""
        while key and key not in self.lines:
            key = key[:-1]
        if key:
            return f"{self.name}, line {self.lines[key]}: "
        return f"{self.name}: " if self.name else ""
