"""Read Cassandra's POMDP text format, in all the forms its grammar has; what the tables mean is left to `acno_form`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from actmeasure.errors import ModelError
from actmeasure.files.checks import decimal_index, unknown
from actmeasure.files.pomdp_tables import MOST_ENTRIES, Pomdp, ProbabilityTable, RewardTable, Words
from actmeasure.files.pomdp_tokens import Tokens
from actmeasure.transitions import ACCEPTED_ERROR, FloatArray

__all__ = ["ROW_ERROR", "read"]

#: Probabilities may miss a sum of 1 by this much, as in pomdp-solve: many files have six digits.
ROW_ERROR = 1e-5
PREAMBLE = ("discount", "values", "states", "actions", "observations")


def read(contents: bytes) -> Pomdp:
    """The tables of a file, from its bytes; a `ModelError` names the line at which it cannot be understood."""
    # Only comments may hold other letters than ASCII, in whatever encoding; elsewhere they are unexpected words.
    return _Reader(Tokens(contents.decode("utf-8-sig", errors="replace"))).read()


class _Reader:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.discount: float | None = None
        self.sign: float | None = None
        self.words = {kind: Words(kind) for kind in ("state", "action", "observation")}
        self.start: FloatArray | None = None
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
            "T": self._read_transitions, "O": self._read_observations, "R": self._read_rewards
        }  # fmt: skip
        while tokens.peek():
            word = tokens.peek()
            if word == "start":
                tokens.take()
                self._read_start()
                continue
            if word not in sections:
                raise tokens.error(f"expected a line that begins with 'T:', 'O:' or 'R:', got {tokens.got()}")
            tokens.take()
            tokens.expect(":", repr(word))
            sections[word]()
            self.statements += 1
        return self._pomdp()

    def _pomdp(self) -> Pomdp:
        n_states = self.words["state"].count
        if self.discount is None or self.sign is None:
            raise ModelError("the file has no 'discount:' or no 'values:' line; add it")
        return Pomdp(
            self.discount, self.sign, self.words["state"], self.words["action"], self.words["observation"],
            np.full(n_states, 1 / n_states) if self.start is None else self.start,
            self.transitions, self.shown, self.rewards, self.statements, self.tokens.comment,
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
        """A count, or names."""
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
        words = self.words[kind]
        return self.tokens.reference(kind, words.names, words.index_of, words.count)

    def _read_start(self) -> None:
        """`start:` with a distribution, `uniform` or a state, or `start include:` / `start exclude:` with states."""
        tokens = self.tokens
        n_states = self.words["state"].count
        if n_states == 0:
            raise tokens.error("'start' comes before 'states'; put it after the preamble", back=1)
        if self.start is not None:
            raise tokens.error("'start' is given a second time; remove one of the two", back=1)
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
            raise tokens.error("'start exclude:' leaves no state to begin in; exclude fewer", back=1)
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
        if belief.min() < 0 or abs(belief.sum() - 1) > ROW_ERROR:
            raise ModelError(
                f"line {line}: the start distribution sums to {belief.sum():.6g} and has the least entry {belief.min():.6g}, "
                "expected probabilities with the sum 1; correct it"
            )

    def _probabilities(self, count: int, what: str) -> list[float]:
        line = self.tokens.line
        values = self.tokens.numbers(count, what)
        for value in values:
            if not 0 <= value <= 1 + ACCEPTED_ERROR:
                raise ModelError(f"line {line}: {what} has the entry {value}, expected a probability between 0 and 1")
        return values

    def _read_transitions(self) -> None:
        self._read_table(self.transitions, "state", "transition")

    def _read_observations(self) -> None:
        self._read_table(self.shown, "observation", "observation")

    def _read_table(self, table: ProbabilityTable, columns: str, what: str) -> None:
        """A single entry, a row or a matrix; `uniform` for rows and matrices, `identity` and `reset` for transitions."""
        tokens = self.tokens
        n_states, n_columns = self.words["state"].count, self.words[columns].count
        actions = self._reference("action")
        if not tokens.accept(":"):
            if tokens.accept("uniform"):
                table.set_uniform(actions, range(n_states))
            elif what == "transition" and tokens.accept("identity"):
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
            start = np.full(n_states, 1 / n_states) if self.start is None else self.start
            table.set_rows(actions, states, start.tolist())
        else:
            table.set_rows(actions, states, self._probabilities(n_columns, f"the {what} row"))

    def _read_rewards(self) -> None:
        """A single entry, a row over observations, or a matrix of successors and observations."""
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
        found = self._reference(kind)
        return None if everything else found.start
