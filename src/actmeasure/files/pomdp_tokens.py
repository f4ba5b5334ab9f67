"""The words of a `.pomdp` file, with the line each stands in."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from actmeasure.errors import ModelError
from actmeasure.files.checks import decimal_index, quote, unknown
from actmeasure.files.pomdp_text import COMMENT, RESERVED, Comment

__all__ = ["Tokens"]

#: Names, numbers, and single characters, of which the grammar knows ':', '*', '+' and '-'.
TOKEN = re.compile(
    r"[A-Za-z][A-Za-z0-9_-]*|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[^\s]",
    re.ASCII,
)
END = ""


class Tokens:
    """A cursor over the words of a file.

    Attributes
    ----------
    comment : Comment or None
        What our own comment line says, if the file has one.
    """

    def __init__(self, text: str) -> None:
        self.comment: Comment | None = None
        self._words: list[str] = []
        self._lines: list[int] = []
        self._position = 0
        for line, content in enumerate(text.split("\n"), start=1):
            code, hash_sign, remark = content.partition("#")
            if hash_sign and remark.startswith(COMMENT):
                self._read_comment(remark, line)
            words = TOKEN.findall(code)
            self._words += words
            self._lines += [line] * len(words)
        self._lines.append(text.count("\n") + 1)
        self._words.append(END)

    def _read_comment(self, remark: str, line: int) -> None:
        if self.comment is not None:
            raise ModelError(f"line {line}: the comment '# actmeasure' is there twice; remove one of the two")
        try:
            self.comment = Comment.parse(remark[len(COMMENT) - 1 :])
        except ModelError as error:
            raise ModelError(f"line {line}, the comment '# actmeasure': {error}") from error

    def error(self, message: str, back: int = 0) -> ModelError:
        """A `ModelError` that names the line of the current word, or of one `back` words before it."""
        return ModelError(f"line {self._lines[max(self._position - back, 0)]}: {message}")

    @property
    def line(self) -> int:
        """The line of the current word."""
        return self._lines[self._position]

    def peek(self, ahead: int = 0) -> str:
        """The current word, or one further on; empty at the end of the file."""
        position = self._position + ahead
        return self._words[position] if position < len(self._words) else END

    def take(self) -> str:
        """The current word, once; the cursor moves on."""
        word = self.peek()
        if word != END:
            self._position += 1
        return word

    def accept(self, word: str) -> bool:
        """Move on if the current word is this one."""
        if self.peek() == word:
            self.take()
            return True
        return False

    def expect(self, word: str, after: str) -> None:
        """Move on past a word that has to be here."""
        if not self.accept(word):
            raise self.error(f"expected {word!r} after {after}, got {self.got()}{self._reserved_hint()}")

    def _reserved_hint(self) -> str:
        word = self._words[max(self._position - 1, 0)]
        return f" ({word!r} has a meaning of its own in the format and cannot be a name)" if word in RESERVED else ""

    def got(self) -> str:
        """The current word, for messages."""
        return quote(self.peek()) if self.peek() else "the end of the file; it is incomplete"

    def is_name(self) -> bool:
        """Whether the current word can be a name."""
        word = self.peek()
        return word[:1].isalpha() and word.isascii() and word not in RESERVED

    def is_number(self) -> bool:
        """Whether a number begins here, perhaps with its sign."""
        word = self.peek(1) if self.peek() in ("+", "-") else self.peek()
        return word.isascii() and (word[:1].isdigit() or (word[:1] == "." and len(word) > 1))

    def number(self, what: str) -> float:
        """A number with or without a sign."""
        if not self.is_number():
            raise self.error(f"expected {what}, got {self.got()}")
        sign = -1.0 if self.peek() == "-" else 1.0
        if self.peek() in ("+", "-"):
            self.take()
        value = sign * float(self.take())
        if not math.isfinite(value):
            raise self.error(f"{what} is {value}, expected a finite number", back=1)
        return value

    def numbers(self, count: int, what: str) -> list[float]:
        """Exactly so many numbers, over as many lines as they take."""
        found: list[float] = []
        while self.is_number():
            if len(found) == count:
                raise self.error(f"{what} has more than the expected {count} numbers; remove the rest")
            found.append(self.number(what))
        if len(found) < count:
            raise self.error(f"{what} has {len(found)} numbers, expected {count}, then got {self.got()}")
        return found

    def reference(self, kind: str, names: Sequence[str] | None, index_of: dict[str, int], count: int) -> range:
        """A state, action or observation, by name or number, or all of them where there is a '*'."""
        if self.accept("*"):
            return range(count)
        word = self.peek()
        if self.is_name():
            found = index_of.get(word, -1)
            if found < 0:
                raise self.error(
                    unknown(kind, word, names or ()) if names else f"the {kind}s have no names, got {word!r}"
                )
        else:
            found = decimal_index(word)
            if not 0 <= found < count:
                raise self.error(f"expected {kind}, as a name, a number from 0 to {count - 1} or '*', got {self.got()}")
        self.take()
        return range(found, found + 1)
