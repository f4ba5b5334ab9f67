"""Read Cassandra's POMDP text format, with the whole of its grammar; `pomdp_model` makes a model of what was read.

`read` returns a `Pomdp`: the tables as the lines of the file give them. `tables_of` returns them as compressed rows over (action,
state), checked to be distributions, with expected rewards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.files.checks import decimal_index, unknown
from actmeasure.files.pomdp_writer import COMMENT, RESERVED, LookComment, PairsComment, comment_of
from actmeasure.model.transitions import ACCEPTED_ERROR, ROUNDING_ERROR, FloatArray, normalised

__all__ = [
    "ENTRY_ERROR",
    "ROW_ERROR",
    "CompressedRows",
    "IndexArray",
    "Pomdp",
    "ProbabilityTable",
    "RewardTable",
    "Tables",
    "Tokens",
    "Words",
    "read",
    "tables_of",
]  # fmt: skip

IndexArray = npt.NDArray[np.int64]

#: Largest accepted difference of a distribution's sum from 1, as in pomdp-solve; in long ones this much for every entry, because
#: many files have six digits.
ROW_ERROR, ENTRY_ERROR = 1e-5, 1e-6
#: More table entries than this are refused: text is not the format for them, and a damaged count may ask for any number.
MOST_ENTRIES = 5_000_000
#: Memory of a row besides its entries, counted in entries.
ROW = 8
PREAMBLE = ("discount", "values", "states", "actions", "observations")
#: Names, numbers, and single characters, of which the grammar has ':', '*', '+' and '-'.
TOKEN = re.compile(
    r"[A-Za-z][A-Za-z0-9_-]*|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[^\s]",
    re.ASCII,
)
#: Token after the last one of the file.
END = ""
#: First characters of numbers without a sign that the tokeniser does not also take for something else.
DIGITS = frozenset("0123456789")
#: First characters of what may follow an entry that is read in one step: a section, or the end of the file.
AFTER_ENTRY = frozenset(("T", "O", "R", "s", END))
#: Numbers of which more than this many are tried to be read at once.
FEW = 8
#: Largest number of rewards by observation that are averaged at once.
CHUNK = 2_000_000


def read(contents: bytes) -> Pomdp:
    """Return the tables in the bytes of a `.pomdp` file; a `ModelError` names the line that is wrong."""
    # Only comments may have other characters than ASCII, in any encoding; elsewhere they are unexpected tokens.
    text = contents.decode("utf-8-sig", errors="replace")
    return _Reader(Tokens(text), text).read()


@dataclass
class Pomdp:
    """A POMDP as a file describes it, not yet checked to be complete.

    Attributes
    ----------
    start : float64 array, shape (S,)
    sign : 1.0, or -1.0 where the file gives costs in place of rewards
    statements : int
        Number of T, O and R statements in the file.
    comment : LookComment, PairsComment or None
        The contents of the comment line `# actmeasure`, if the file has one.
    text : str
        The file itself.
    """

    discount: float
    sign: float
    states: Words
    actions: Words
    observations: Words
    start: FloatArray
    transitions: ProbabilityTable
    shown: ProbabilityTable
    rewards: RewardTable
    statements: int
    comment: LookComment | PairsComment | None
    text: str

    def reward(self, action: int, state: int, successor: int, observation: int) -> float:
        """Return the reward of a step."""
        point = (np.array([index]) for index in (action, state, successor, observation))
        return float(self.rewards_at(*point)[0])

    def rewards_at(
        self, actions: IndexArray, states: IndexArray, successors: IndexArray, observations: IndexArray
    ) -> FloatArray:
        """Return the rewards of steps, given as arrays of one length."""
        sizes = (self.actions.count, self.states.count, self.states.count, self.observations.count)
        return self.sign * self.rewards.at((actions, states, successors, observations), sizes) + 0.0  # without -0.0

    def uniform_start(self) -> bool:
        """Return whether the start is uniform over all states, as it is where the file has no `start`."""
        return bool(np.all(self.start == self.start[0]))


@dataclass
class Words:
    """The states, actions or observations of a file: a count, and names if the file gives any."""

    kind: str
    count: int = 0
    names: list[str] | None = None
    index_of: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, index: int) -> str:
        return str(index) if self.names is None else self.names[index]

    def find(self, word: str) -> int:
        """Return the number that a name or a plain decimal stands for, or -1; decimals are kept with the names."""
        index = self.index_of.get(word, -1)
        if index < 0 and 0 <= (index := decimal_index(word)) < self.count:
            self.index_of[word] = index
        return index if index < self.count else -1


class _Reader:
    """The parser: one method per rule of the grammar, which moves the cursor `tokens` and fills the tables."""

    def __init__(self, tokens: Tokens, text: str) -> None:
        self.tokens, self.text = tokens, text
        self.discount: float | None = None
        self.sign: float | None = None
        self.words = {kind: Words(kind) for kind in ("state", "action", "observation")}
        self.start: FloatArray | None = None
        self.has_reset = False
        self.transitions = ProbabilityTable(0, 0)
        self.shown = ProbabilityTable(0, 0)
        self.rewards = RewardTable()
        self.statements = 0

    def read(self) -> Pomdp:
        tokens = self.tokens
        while tokens.peek() in (*PREAMBLE, "start"):
            self._read_preamble(tokens.take())
        self._finish_preamble()
        sections: dict[str, Callable[[], None]] = {
            "T": partial(self._read_table, self.transitions, "state", "transition"),
            "O": partial(self._read_table, self.shown, "observation", "observation"),
            "R": self._read_rewards,
        }
        while tokens.peek():
            word = tokens.peek()
            if word == "start":
                tokens.take()
                self._read_start()
                continue
            if word not in sections:
                raise tokens.error(f"expected a line that begins with 'T:', 'O:' or 'R:', got {tokens.got()}")
            if not self._read_plain_entry(word):
                tokens.take()
                tokens.expect(":", repr(word))
                sections[word]()
            self.statements += 1
        return self._pomdp()

    def _read_plain_entry(self, section: str) -> bool:
        """Read an entry such as `T: a : s : t 0.5` and return whether it was one, without `*`; most lines of most files are."""
        if section == "R":
            return False
        columns, table = ("state", self.transitions) if section == "T" else ("observation", self.shown)
        words = self.tokens.ahead(9)
        if len(words) < 9 or not words[1] == words[3] == words[5] == ":" or words[7][0] not in DIGITS:
            return False
        action, state = self.words["action"].find(words[2]), self.words["state"].find(words[4])
        column, value = self.words[columns].find(words[6]), float(words[7])
        if min(action, state, column) < 0 or value > 1 or words[8][:1] not in AFTER_ENTRY:
            return False
        table.set_entry(action, state, column, value)
        self.tokens.skip(8)
        return True

    def _pomdp(self) -> Pomdp:
        n_states = self.words["state"].count
        if self.discount is None or self.sign is None:
            raise ModelError("the file has no 'discount:' or no 'values:' line; add it")
        return Pomdp(
            self.discount, self.sign, self.words["state"], self.words["action"], self.words["observation"],
            np.full(n_states, 1 / n_states) if self.start is None else self.start,
            self.transitions, self.shown, self.rewards, self.statements, self.tokens.comment, self.text,
        )  # fmt: skip

    def _read_preamble(self, keyword: str) -> None:
        tokens = self.tokens
        if keyword == "start":
            self._read_start()
            return
        tokens.expect(":", repr(keyword))
        given = {"discount": self.discount is not None, "values": self.sign is not None}
        if given.get(keyword, keyword[:-1] in self.words and self.words[keyword[:-1]].count > 0):
            raise tokens.error(f"{keyword!r} is given a second time; remove one of the two", back=1)
        if keyword == "discount":
            self.discount = tokens.number("the discount")
        elif keyword == "values":
            if tokens.peek() not in ("reward", "cost"):
                raise tokens.error(f"expected 'reward' or 'cost' after 'values:', got {tokens.got()}")
            self.sign = 1.0 if tokens.take() == "reward" else -1.0
        else:
            self._read_words(self.words[keyword[:-1]])

    def _read_words(self, words: Words) -> None:
        """Read the states, actions or observations: a count, or names."""
        tokens = self.tokens
        if tokens.is_number():
            words.count = decimal_index(tokens.peek())
            if not 1 <= words.count <= MOST_ENTRIES:
                raise tokens.error(f"the number of {words.kind}s is {tokens.got()}, expected 1 to {MOST_ENTRIES}")
            tokens.take()
            return
        names: list[str] = []
        while tokens.is_name():
            name = tokens.take()
            if name in words.index_of:
                raise tokens.error(f"the {words.kind} {name!r} is listed twice; give each a name of its own", back=1)
            words.index_of[name] = len(names)
            names.append(name)
        if not names:
            raise tokens.error(f"expected a number of {words.kind}s or their names, got {tokens.got()}")
        words.names = names
        words.count = len(names)

    def _finish_preamble(self) -> None:
        missing = [f"{kind}s" for kind, words in self.words.items() if words.count == 0]
        missing += ["discount"] * (self.discount is None) + ["values"] * (self.sign is None)
        if missing:
            hint = ", or it is no .pomdp file"
            if self.tokens.is_name() and not self.tokens.peek(1).isalpha():
                hint = f"; {unknown('keyword', self.tokens.peek(), PREAMBLE)}"
            raise self.tokens.error(f"expected {missing[0]!r} in the preamble, got {self.tokens.got()}{hint}")
        n_states, n_actions = self.words["state"].count, self.words["action"].count
        if n_states * n_actions > MOST_ENTRIES:
            raise ModelError(
                f"{n_states} states and {n_actions} actions are too many for a text file; use the .npz format"
            )
        self.transitions = ProbabilityTable(n_states, n_states)
        self.shown = ProbabilityTable(n_states, self.words["observation"].count)

    def _reference(self, kind: str) -> range:
        return self.tokens.reference(self.words[kind])

    def _read_start(self) -> None:
        """Read `start:` with a distribution, `uniform` or a state, or `start include:` / `start exclude:` with states."""
        tokens = self.tokens
        n_states = self.words["state"].count
        if n_states == 0:
            raise tokens.error("'start' comes before 'states'; put it after the preamble", back=1)
        if self.start is not None:
            raise tokens.error("'start' is given a second time; remove one of the two", back=1)
        if self.has_reset:
            raise tokens.error("'start' comes after a 'reset', which leads there; put it after the preamble", back=1)
        mode = tokens.take() if tokens.peek() in ("include", "exclude") else "start"
        tokens.expect(":", repr(mode))
        self.start = np.zeros(n_states)
        if mode == "start":
            self._read_belief(self.start)
            return
        if mode == "exclude":
            self.start[:] = 1.0
        self.start[self._reference("state")] = float(mode == "include")
        while tokens.is_name() or tokens.is_number() or tokens.peek() == "*":
            self.start[self._reference("state")] = float(mode == "include")
        if not self.start.any():
            raise tokens.error("'start exclude:' leaves no state to start in; exclude fewer", back=1)
        self.start /= self.start.sum()

    def _read_belief(self, belief: FloatArray) -> None:
        tokens = self.tokens
        if tokens.accept("uniform"):
            belief[:] = 1 / len(belief)
            return
        if tokens.is_name():
            belief[self._reference("state")] = 1.0
            return
        line = tokens.line
        word = tokens.peek()
        values = [tokens.number("the start")]
        if tokens.is_number():
            values += tokens.numbers(len(belief) - 1, "the rest of the start distribution")
        elif len(belief) > 1 or values == [0.0]:  # a single number is a state, except the only state's probability
            state = decimal_index(word)
            if not 0 <= state < len(belief):
                raise ModelError(
                    f"line {line}: the start is state {word}, expected a number from 0 to {len(belief) - 1}"
                )
            belief[state] = 1.0
            return
        belief[:] = values
        if belief.min() < 0 or abs(belief.sum() - 1) > max(ROW_ERROR, ENTRY_ERROR * np.count_nonzero(belief)):
            raise ModelError(
                f"line {line}: the start distribution sums to {belief.sum():.6g} and has the least entry {belief.min():.6g}, "
                "expected probabilities with the sum 1; correct it"
            )
        belief[:] = normalised(belief)

    def _probabilities(self, count: int, what: str) -> list[float]:
        line = self.tokens.line
        values = self.tokens.numbers(count, what)
        for value in values:
            if not 0 <= value <= 1 + ACCEPTED_ERROR:
                raise ModelError(f"line {line}: {what} has the entry {value}, expected a probability between 0 and 1")
        return values

    def _read_table(self, table: ProbabilityTable, columns: str, what: str) -> None:
        """Read an entry, a row or a matrix.

        Also `uniform` for rows and matrices, `identity` for square matrices, and `reset` for the transitions of a state.
        """
        tokens = self.tokens
        n_states, n_columns = self.words["state"].count, self.words[columns].count
        actions = self._reference("action")
        if not tokens.accept(":"):
            if tokens.accept("uniform"):
                table.set_uniform(actions, range(n_states))
            elif n_columns == n_states and tokens.accept("identity"):
                table.set_identity(actions)
            else:
                values = self._probabilities(n_states * n_columns, f"the {what} matrix")
                for state in range(n_states):
                    table.set_rows(
                        actions, range(state, state + 1), values[state * n_columns : (state + 1) * n_columns]
                    )
            return
        states = self._reference("state")
        if tokens.accept(":"):
            entries = self._reference(columns)
            (value,) = self._probabilities(1, f"the {what} probability")
            table.set_entries(actions, states, entries, value)
        elif tokens.accept("uniform"):
            table.set_uniform(actions, states)
        elif what == "transition" and tokens.accept("reset"):
            self.has_reset = True
            start = np.full(n_states, 1 / n_states) if self.start is None else self.start
            table.set_rows(actions, states, start.tolist())
        else:
            table.set_rows(actions, states, self._probabilities(n_columns, f"the {what} row"))

    def _read_rewards(self) -> None:
        """Read an entry, a row over observations, or a matrix of successors and observations."""
        tokens = self.tokens
        n_states, n_observations = self.words["state"].count, self.words["observation"].count
        action = self._one_or_all("action")
        tokens.expect(":", "the action of a reward")
        state = self._one_or_all("state")
        if not tokens.accept(":"):
            values = tokens.numbers(n_states * n_observations, "the reward matrix")
            for index, value in enumerate(values):
                self.rewards.set((action, state, *divmod(index, n_observations)), value)
            return
        successor = self._one_or_all("state")
        if tokens.accept(":"):
            observation = self._one_or_all("observation")
            self.rewards.set((action, state, successor, observation), tokens.number("the reward"))
            return
        for index, value in enumerate(tokens.numbers(n_observations, "the reward row")):
            self.rewards.set((action, state, successor, index), value)

    def _one_or_all(self, kind: str) -> int | None:
        everything = self.tokens.peek() == "*"
        range_of = self._reference(kind)
        return None if everything else range_of.start


class ProbabilityTable:
    """Distributions over columns for every action and state, without zeros; later lines of a file override earlier ones.

    Attributes
    ----------
    rows : dict from action * n_states + state to dict from column to probability
    """

    def __init__(self, n_states: int, n_columns: int) -> None:
        self.rows: dict[int, dict[int, float]] = {}
        self._n_states = n_states
        self._n_columns = n_columns
        self._work = 0  # entries set so far, to refuse files whose few lines stand for millions of entries

    def row(self, action: int, state: int) -> dict[int, float]:
        """Return the distribution of an action and state; empty where the file has none."""
        return self.rows.get(action * self._n_states + state, {})

    def _selected(self, actions: range, states: range, width: int) -> list[int]:
        selected = len(actions) * len(states)
        self._work += selected * width
        if self._work > MOST_ENTRIES or ROW * (len(self.rows) + selected) > MOST_ENTRIES:
            raise ModelError(
                f"the tables have more than {MOST_ENTRIES:,} entries; use the .npz format for a model this large"
            )
        return [action * self._n_states + state for action in actions for state in states]

    def set_entry(self, action: int, state: int, column: int, value: float) -> None:
        """Set one probability."""
        (number,) = self._selected(range(action, action + 1), range(state, state + 1), 1)
        row = self.rows.setdefault(number, {})
        if value != 0:
            row[column] = value
        else:
            row.pop(column, None)

    def set_entries(self, actions: range, states: range, columns: range, value: float) -> None:
        """Set one probability for all combinations of actions, states and columns."""
        everything = len(columns) == self._n_columns
        for number in self._selected(actions, states, 1 if value == 0 and everything else len(columns)):
            row = self.rows.setdefault(number, {})
            if value != 0:
                row.update(dict.fromkeys(columns, value))
            elif everything:
                row.clear()
            else:
                for column in columns:
                    row.pop(column, None)

    def set_rows(self, actions: range, states: range, values: Sequence[float]) -> None:
        """Set one distribution for all combinations of actions and states."""
        kept = {column: value for column, value in enumerate(values) if value != 0}
        for number in self._selected(actions, states, max(len(kept), 1)):
            self.rows[number] = dict(kept)

    def set_uniform(self, actions: range, states: range) -> None:
        """Set the uniform distribution for all combinations of actions and states."""
        for number in self._selected(actions, states, self._n_columns):
            self.rows[number] = dict.fromkeys(range(self._n_columns), 1 / self._n_columns)

    def set_identity(self, actions: range) -> None:
        """Make every state its own successor under the actions."""
        for number in self._selected(actions, range(self._n_states), 1):
            self.rows[number] = {number % self._n_states: 1.0}


class RewardTable:
    """Rewards by action, state, successor and observation, kept as the lines of the file.

    The full table would have a billion entries for a few hundred states. Instead the lines are grouped by which of the
    four positions have a `*`, and `at` takes the latest line among the at most 16 that match.
    """

    def __init__(self) -> None:
        self._by_places: dict[tuple[bool, ...], dict[tuple[int, ...], tuple[int, float]]] = {}
        self._count = 0
        self._sorted: dict[tuple[bool, ...], tuple[IndexArray, IndexArray, FloatArray]] = {}

    def set(self, indices: tuple[int | None, ...], value: float) -> None:
        """Set the reward of (action, state, successor, observation), where None stands for all."""
        given = tuple(index is not None for index in indices)
        key = tuple(index for index in indices if index is not None)
        self._count += 1
        self._sorted.clear()
        self._by_places.setdefault(given, {})[key] = (self._count, value)

    @property
    def by_observation(self) -> bool:
        """Whether a line of the file gives the reward of one observation."""
        return any(given[3] for given in self._by_places)

    def at(self, points: tuple[IndexArray, ...], sizes: tuple[int, ...]) -> FloatArray:
        """Return for each point the reward of the last line of the file that matches, or 0.

        Parameters
        ----------
        points : four arrays of one length
        sizes : four ints
            Numbers of actions, states, successors and observations.
        """
        latest, rewards = np.zeros(len(points[0]), dtype=np.int64), np.zeros(len(points[0]))
        for given in self._by_places:
            known, counts, values = self._lines(given, sizes)
            asked = _joint([points[position] for position in range(4) if given[position]], given, sizes, len(latest))
            nearest = np.minimum(np.searchsorted(known, asked), len(known) - 1)
            later = (known[nearest] == asked) & (counts[nearest] > latest)
            latest[later], rewards[later] = counts[nearest][later], values[nearest][later]
        return rewards

    def _lines(self, given: tuple[bool, ...], sizes: tuple[int, ...]) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Return the lines of a group as arrays: what they are about as one number each, ascending, their order, and rewards."""
        if given not in self._sorted:
            lines = self._by_places[given]
            keys = np.array(list(lines), dtype=np.int64).reshape(len(lines), sum(given))
            known = _joint(list(keys.T), given, sizes, len(lines))
            order = np.argsort(known)
            counts, values = (np.array(part)[order] for part in zip(*lines.values(), strict=True))
            self._sorted[given] = known[order], counts, values
        return self._sorted[given]


def _joint(columns: list[IndexArray], positions: tuple[bool, ...], sizes: tuple[int, ...], count: int) -> IndexArray:
    """Return one number for each combination of the indices at some of the four places of a reward."""
    joint = np.zeros(count, dtype=np.int64)
    given = (size for size, is_given in zip(sizes, positions, strict=True) if is_given)
    for column, size in zip(columns, given, strict=True):
        joint = joint * size + column
    return joint


class Tokens:
    """A cursor over the tokens of a file, with the line of each.

    Attributes
    ----------
    comment : LookComment, PairsComment or None
        The contents of the comment line `# actmeasure`, if the file has one.
    """

    def __init__(self, text: str) -> None:
        self.comment: LookComment | PairsComment | None = None
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
            self.comment = comment_of(remark[len(COMMENT) - 1 :])
        except ModelError as error:
            raise ModelError(f"line {line}, the comment '# actmeasure': {error}") from error

    def error(self, message: str, back: int = 0) -> ModelError:
        """Return a `ModelError` that names the line of the current token, or of the one `back` tokens before it."""
        return ModelError(f"line {self._lines[max(self._position - back, 0)]}: {message}")

    @property
    def line(self) -> int:
        """The line of the current token, counted from 1."""
        return self._lines[self._position]

    def peek(self, ahead: int = 0) -> str:
        """Return the current token, or one `ahead`; empty at the end of the file."""
        position = self._position + ahead
        return self._words[position] if position < len(self._words) else END

    def ahead(self, count: int) -> list[str]:
        """Return the current token and those after it, `count` in all, fewer at the end of the file."""
        return self._words[self._position : self._position + count]

    def skip(self, count: int) -> None:
        """Move the cursor past tokens that `ahead` has returned."""
        self._position += count

    def take(self) -> str:
        """Return the current token and move the cursor to the next."""
        word = self.peek()
        if word != END:
            self._position += 1
        return word

    def accept(self, word: str) -> bool:
        """Return whether the current token is `word`, and if so move to the next."""
        if self.peek() == word:
            self.take()
            return True
        return False

    def expect(self, word: str, after: str) -> None:
        """Move past a token that has to be here; a `ModelError` if it is another."""
        if not self.accept(word):
            raise self.error(f"expected {word!r} after {after}, got {self.got()}{self._reserved_hint()}")

    def _reserved_hint(self) -> str:
        word = self._words[max(self._position - 1, 0)]
        return f" ({word!r} is a keyword of the format and cannot be a name)" if word in RESERVED else ""

    def got(self) -> str:
        """Return the current token, quoted for messages."""
        return quoted(self.peek()) if self.peek() else "the end of the file; it is incomplete"

    def is_name(self) -> bool:
        """Return whether the current token can be a name."""
        word = self.peek()
        return word[:1].isalpha() and word.isascii() and word not in RESERVED

    def is_number(self) -> bool:
        """Return whether a number begins here, with or without a sign."""
        word = self.peek(1) if self.peek() in ("+", "-") else self.peek()
        return word.isascii() and (word[:1].isdigit() or (word[:1] == "." and len(word) > 1))

    def number(self, what: str) -> float:
        """Read a number, with or without a sign."""
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
        """Read exactly `count` numbers, on one or several lines."""
        words = self.ahead(count)
        if len(words) > FEW and all(word[:1] in DIGITS for word in words):  # no signs: convert all of them at once
            self._position += count
            if not self.is_number() and math.isfinite(sum(values := list(map(float, words)))):
                return values
            self._position -= count
        numbers: list[float] = []
        while self.is_number():
            if len(numbers) == count:
                raise self.error(f"{what} has more than the expected {count} numbers; remove the rest")
            numbers.append(self.number(what))
        if len(numbers) < count:
            raise self.error(f"{what} has {len(numbers)} numbers, expected {count}, then got {self.got()}")
        return numbers

    def reference(self, words: Words) -> range:
        """Read a state, action or observation, by name or number, or all of them given as '*'."""
        word = self.peek()
        if word == "*":
            self.take()
            return range(words.count)
        index = words.find(word)
        if index < 0 and self.is_name():
            listed = words.names
            raise self.error(
                unknown(words.kind, word, listed) if listed else f"the {words.kind}s have no names, got {word!r}"
            )
        if index < 0:
            raise self.error(
                f"expected {words.kind}, as a name, a number from 0 to {words.count - 1} or '*', got {self.got()}"
            )
        self.take()
        return range(index, index + 1)


@dataclass(frozen=True)
class CompressedRows:
    """Compressed rows: that of action `a` and state `s` is number `a * S + s`; columns ascend, values are not 0."""

    offsets: IndexArray
    columns: IndexArray
    values: FloatArray

    def sizes(self) -> IndexArray:
        """Return the number of entries of every row."""
        return np.diff(self.offsets)

    def row_of_entry(self) -> IndexArray:
        """Return the row of every entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes())

    def part(self, first: int, last: int) -> CompressedRows:
        """Return the rows from `first` to before `last`."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        return CompressedRows(self.offsets[first : last + 1] - begin, self.columns[begin:end], self.values[begin:end])


@dataclass(frozen=True)
class Tables:
    """What a file says, as arrays.

    Attributes
    ----------
    moves : CompressedRows
        Transition probabilities; columns are successors.
    shown : CompressedRows
        Probabilities of observations; row `a * S + t` is for state `t` reached by action `a`.
    rewards : float64 array, one for each entry of `moves`
        Rewards that depend on the observation are expectations over it, given action and successor.
    """

    moves: CompressedRows
    shown: CompressedRows
    rewards: FloatArray

    def rewards_of(self, first: int, last: int) -> FloatArray:
        """Return the rewards of the entries of `moves` in the rows from `first` to before `last`."""
        return self.rewards[int(self.moves.offsets[first]) : int(self.moves.offsets[last])]


def tables_of(pomdp: Pomdp) -> Tables:
    """Return the tables of a file; a `ModelError` names a row that is not a distribution."""
    shown = _distributions(pomdp, pomdp.shown, "observation")
    moves = _distributions(pomdp, pomdp.transitions, "transition")
    return Tables(moves, shown, _expected_rewards(pomdp, moves, shown))


def _distributions(pomdp: Pomdp, table: ProbabilityTable, what: str) -> CompressedRows:
    """Return the rows of a table, divided by their sums where these differ from 1 by more than rounding."""
    n_states = pomdp.states.count
    n_rows = pomdp.actions.count * n_states
    sizes = np.zeros(n_rows, dtype=np.int64)
    numbers = sorted(table.rows)
    sizes[numbers] = [len(table.rows[number]) for number in numbers]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(np.arange(n_rows), sizes)
    columns = np.array([column for number in numbers for column in table.rows[number]], dtype=np.int64)
    values = np.array([value for number in numbers for value in table.rows[number].values()], dtype=np.float64)
    order = np.lexsort((columns, rows))
    columns, values = columns[order], values[order]
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    error = np.abs(sums - 1)
    wrong = error > np.maximum(ROW_ERROR, ENTRY_ERROR * sizes)
    if wrong.any():
        action, state = divmod(int(np.argmax(wrong)), n_states)
        raise ModelError(
            f"the {what} probabilities of action {pomdp.actions[action]!r} in state {pomdp.states[state]!r} sum to "
            f"{sums[action * n_states + state]:.6g}, expected 1; complete them"
        )
    rescaled = error > ROUNDING_ERROR * np.maximum(4, sizes)
    return CompressedRows(offsets, columns, values / np.where(rescaled, sums, 1.0)[rows] if rescaled.any() else values)


def _expected_rewards(pomdp: Pomdp, moves: CompressedRows, shown: CompressedRows) -> FloatArray:
    """Return the reward of every entry of `moves`: the mean over observations where it depends on them."""
    n_states = pomdp.states.count
    actions, states = np.divmod(moves.row_of_entry(), n_states)
    successors = moves.columns
    if not pomdp.rewards.by_observation:
        return pomdp.rewards_at(actions, states, successors, np.zeros_like(successors))
    expected = np.empty(len(successors))
    rows = actions * n_states + successors
    ends = np.cumsum(shown.sizes()[rows])
    first = 0
    while first < len(rows):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        some = slice(first, last)
        sizes = shown.sizes()[rows[some]]
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        entry = np.repeat(np.arange(first, last), sizes)
        at = shown.offsets[rows[entry]] + np.arange(len(entry)) - np.repeat(begins, sizes)
        paid = pomdp.rewards_at(actions[entry], states[entry], successors[entry], shown.columns[at])
        least, most = np.minimum.reduceat(paid, begins), np.maximum.reduceat(paid, begins)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is refused later
            mean = np.add.reduceat(shown.values[at] * paid, begins)
        expected[some] = np.where(least == most, least, mean)  # where they are equal, without rounding
        first = last
    return expected
