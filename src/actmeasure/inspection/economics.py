"""What things cost: prices and discount of a problem of inspection."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.files.toml_places import Place, toml_lines
from actmeasure.inspection.money import amount, discount_of_rate

__all__ = ["OTHERWISE", "Economics", "KeyLines", "read_economics"]

FloatArray = npt.NDArray[np.float64]
#: The key of a table of prices per state that holds for the states it does not name.
OTHERWISE = "otherwise"
#: Where in a file those attributes stand that have another name there.
FILE_KEYS = {
    "inspection_by_state": ("inspection", "by_state"),
    "inspection_by_action": ("inspection", "by_action"),
    "failure_states": ("failure", "states"),
}


@dataclass(frozen=True)
class Economics:
    """Prices, all in one currency, as positive numbers; a model has them as negative rewards.

    Read it from a TOML file with `Economics.load`.

    Attributes
    ----------
    currency : str
        Such as "EUR".
    period : str
        What a step of the model stands for, such as "year".
    discount : float
        Worth of 1 a period later, above 0 and at most 1.
    inspection : float
        Price of an inspection, where the next two do not name another.
    inspection_by_state, inspection_by_action : mappings from name to price
        At most one of them. The state is that at the beginning of the period at whose end the inspection takes place.
    actions : mapping from the name of an action to its price
        A price, or a mapping from states to prices; there, "otherwise" stands for the states that are not named.
    running : mapping from the name of a state to its cost per period
        What a period costs that begins in the state; 0 for states that are not named.
    failure_states : tuple of str
    failure_price : float
        Paid once, when a unit goes from a state that is not a failure to one that is.
    terminal : tuple of str
        States that end the story of a unit, which is noticed without an inspection.
    """

    currency: str
    period: str
    discount: float
    inspection: float
    inspection_by_state: Mapping[str, float] = field(default_factory=dict)
    inspection_by_action: Mapping[str, float] = field(default_factory=dict)
    actions: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)
    failure_states: tuple[str, ...] = ()
    failure_price: float = 0.0
    terminal: tuple[str, ...] = ()
    #: Where it was read from, and the line of every key there, for messages.
    source: KeyLines = field(default_factory=lambda: KeyLines("", {}), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("currency", "period"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise FitError(f"{name} is {quoted(getattr(self, name))}, expected its name, such as EUR or year")
        if isinstance(self.discount, bool) or not isinstance(self.discount, (int, float)) or not 0 < self.discount <= 1:
            raise FitError(
                f"discount is {quoted(self.discount)}, expected a number above 0 and at most 1, such as 0.97"
            )
        if self.inspection_by_state and self.inspection_by_action:
            raise FitError("the inspection has prices by state and by action; give only one of the two")
        for what, prices in (
            ("inspection", self.inspection), ("inspection_by_state", self.inspection_by_state),
            ("inspection_by_action", self.inspection_by_action), ("actions", self.actions),
            ("running", self.running), ("failure_price", self.failure_price),
        ):  # fmt: skip
            self._check_prices(prices, what)

    def _check_prices(self, prices: Any, what: str) -> None:
        if isinstance(prices, Mapping):
            for name, price in prices.items():
                self._check_prices(price, f"{what}[{name!r}]")
        elif isinstance(prices, str):
            raise FitError(f"{what} is {quoted(prices)}, expected a number; prices with units go in a file")
        else:
            amount(prices, what, self.currency)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Economics:
        """Read prices from a TOML file; anything wrong is a `FitError` that names the line."""
        return read_economics(path)

    def check_names(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str] = ()) -> None:
        """Raise a `FitError` if a name is not that of a state or action, dropped or not, or an action has no price."""
        for key in ("running", "inspection_by_state"):
            self._known("state", getattr(self, key), states, key)
        self._known("state", self.failure_states, states, "failure_states")
        self._known("state", self.terminal, states, "terminal")
        self._known("action", self.inspection_by_action, [*actions, *dropped], "inspection_by_action")
        self._known("action", self.actions, [*actions, *dropped], "actions")
        for action in actions:
            if action not in self.actions:
                raise FitError(
                    f"{self.place(('actions',))}the action {action!r} has no price; add it to the prices of actions, "
                    f"with 0 if it costs nothing"
                )
            prices = self.actions[action]
            if isinstance(prices, Mapping):
                self._known("state", [name for name in prices if name != OTHERWISE], states, "actions", action)
                missing = [state for state in states if state not in prices]
                if missing and OTHERWISE not in prices and set(missing) - set(self.terminal):
                    raise FitError(
                        f"{self.place(('actions', action))}the action {action!r} has no price in state {missing[0]!r}; "
                        f"add it, or {OTHERWISE} = ... for all others"
                    )
        for state in self.terminal:
            if self.running.get(state):
                raise FitError(
                    f"{self.place(('running', state))}the state {state!r} has running costs, but it is terminal: the "
                    "story ends there and they are never paid; give the end a price with [failure]"
                )

    def place(self, key: tuple[str, ...]) -> str:
        """Where a key stands in the file, for the beginning of a message."""
        return self.source.place(FILE_KEYS.get(key[0], (key[0],)) + key[1:])

    def _known(self, kind: str, names: Collection[str], choices: Sequence[str], *key: str) -> None:
        for name in names:
            if name not in choices:
                raise FitError(f"{self.place((*key, name))}{unknown_name(kind, name, choices)}")

    def measuring_costs(self, states: Sequence[str], actions: Sequence[str]) -> float | FloatArray:
        """The price of an inspection: a number, or an array of shape (S, A)."""
        if not self.inspection_by_state and not self.inspection_by_action:
            return float(self.inspection)
        by_state, by_action = self.inspection_by_state, self.inspection_by_action
        return np.array(
            [[by_state.get(s, by_action.get(a, self.inspection)) for a in actions] for s in states], dtype=np.float64
        )

    def rewards(self, states: Sequence[str], actions: Sequence[str]) -> FloatArray:
        """Minus what a period costs without an inspection, shape (S, A, S)."""
        running = np.array([self.running.get(state, 0.0) for state in states])
        doing = np.array([[self.price(action, state) for action in actions] for state in states])
        failed = np.isin(states, list(self.failure_states))
        failing = self.failure_price * (~failed[:, None] & failed[None, :])
        rewards: FloatArray = -(running[:, None, None] + doing[:, :, None] + failing[:, None, :])
        rewards[np.isin(states, list(self.terminal))] = 0.0
        return rewards

    def price(self, action: str, state: str) -> float:
        """What an action costs in a state."""
        prices = self.actions[action]
        if isinstance(prices, Mapping):
            # In terminal states no action is taken, so that they need no price.
            return float(prices.get(state, prices.get(OTHERWISE, 0.0)))
        return float(prices)


# ----------------------------------------------------------------------------------------------------
# Prices from a TOML file.
#
# currency = "EUR"
# period = "year"
# interest = "3 %/year"                # or discount = 0.97, per period
# inspection = "120 EUR"               # or a table: price, by_state or by_action
# terminal = []
#
# [actions]                            # every action has a price, also where it is 0
# nothing = "0 EUR"
# repair = { "3" = "700 EUR", otherwise = "900 EUR" }
#
# [running]                            # what a period costs that begins in the state
# "4" = "50 EUR/year"
#
# [failure]                            # paid once, on entering one of the states
# states = ["5"]
# price = "20000 EUR"
# ----------------------------------------------------------------------------------------------------


KEYS = ("currency", "period", "discount", "interest", "inspection", "terminal", "actions", "running", "failure")
MOST_BYTES = 1 << 20


def read_economics(path: str | os.PathLike[str]) -> Economics:
    """Read and check a file of prices."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            contents = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise FitError(str(explain(error, place, "read"))) from error
    if len(contents) > MOST_BYTES:
        raise FitError(f"{place} is larger than {MOST_BYTES >> 20} MiB, which no file of prices is; check the path")
    try:
        text = contents.decode("utf-8-sig")
        found = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise FitError(f"{place}, line {line}: this is not UTF-8 text; save the file as UTF-8") from error
    except RecursionError as error:
        raise FitError(f"{place} is nested too deeply to be a file of prices; check the path") from error
    except tomllib.TOMLDecodeError as error:
        raise FitError(
            f"{place} is not valid TOML: {error}; names with other signs than letters, digits, - and _ go in quotes"
        ) from error
    return _Reader(place, found, KeyLines.of(text, str(place))).economics()


class _Reader:
    """A parsed file, with the line of every key for messages."""

    def __init__(self, path: Path, found: Mapping[str, Any], lines: KeyLines) -> None:
        self._path, self._found, self._lines = path, found, lines
        self._currency = self._period = ""

    def economics(self) -> Economics:
        self._check_keys((), self._found, KEYS)
        self._currency, self._period = self._text("currency", "EUR"), self._text("period", "year")
        inspection, by_state, by_action = self._inspection()
        failure = self._table("failure")
        self._check_keys(("failure",), failure, ("states", "price"))
        if failure and ("states" not in failure or "price" not in failure):
            raise FitError(f"{self._lines.place(('failure',))}a failure has states and a price; give both")
        try:
            return Economics(
                currency=self._currency,
                period=self._period,
                discount=self._discount(),
                inspection=inspection,
                inspection_by_state=by_state,
                inspection_by_action=by_action,
                actions={name: self._action(name, price) for name, price in self._table("actions").items()},
                running=self._prices(("running",), self._table("running"), self._period),
                failure_states=self._names(("failure", "states"), failure.get("states", [])),
                failure_price=self._price(("failure", "price"), failure.get("price", 0)),
                terminal=self._names(("terminal",), self._found.get("terminal", [])),
                source=self._lines,
            )
        except FitError as error:
            text = str(error)
            raise (error if text.startswith(str(self._path)) else FitError(f"{self._path}: {text}")) from None

    def _check_keys(self, table: tuple[str, ...], found: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in found:
            if key not in known:
                raise FitError(f"{self._lines.place((*table, key))}{unknown_name('key', key, known)}")

    def _text(self, key: str, example: str) -> str:
        if key not in self._found:
            raise FitError(
                f'{self._path}: there is no {key}, so that the prices have no unit; add {key} = "{example}" at the top'
            )
        value = self._found[key]
        if not isinstance(value, str) or not value.strip():
            raise FitError(f'{self._lines.place((key,))}{key} is {quoted(value)}, expected text such as "{example}"')
        return value.strip()

    def _discount(self) -> float:
        given = [key for key in ("discount", "interest") if key in self._found]
        if len(given) != 1:
            raise FitError(
                f"{self._path}: it has {'both discount and interest' if given else 'neither discount nor interest'}; give "
                f'one of the two, such as interest = "3 %/year" or discount = 0.97 (per period)'
            )
        where = self._lines.place((given[0],))
        value = self._found[given[0]]
        if given == ["interest"]:
            return discount_of_rate(value, f"{where}interest", self._period)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise FitError(f"{where}discount is {quoted(value)}, expected a number above 0 and at most 1, such as 0.97")
        return float(value)

    def _inspection(self) -> tuple[float, Mapping[str, float], Mapping[str, float]]:
        if "inspection" not in self._found:
            raise FitError(
                f'{self._path}: there is no price of an inspection; add inspection = "120 {self._currency}" at the top'
            )
        value = self._found["inspection"]
        if not isinstance(value, dict):
            return self._price(("inspection",), value), {}, {}
        self._check_keys(("inspection",), value, ("price", "by_state", "by_action"))
        if "price" not in value:
            raise FitError(
                f"{self._lines.place(('inspection',))}the inspection has no price; add price = ... to its table"
            )
        by_state, by_action = (
            self._prices(("inspection", name), self._as_table(("inspection", name), value.get(name, {})), None)
            for name in ("by_state", "by_action")
        )
        if by_state and by_action:
            raise FitError(
                f"{self._lines.place(('inspection',))}the inspection has prices by_state and by_action; give one"
            )
        return self._price(("inspection", "price"), value["price"]), by_state, by_action

    def _action(self, name: str, value: Any) -> float | Mapping[str, float]:
        key = ("actions", name)
        return self._prices(key, value, None) if isinstance(value, dict) else self._price(key, value)

    def _prices(self, key: tuple[str, ...], found: Mapping[str, Any], period: str | None) -> dict[str, float]:
        return {name: self._price((*key, name), value, period) for name, value in found.items()}

    def _price(self, key: tuple[str, ...], value: Any, period: str | None = None) -> float:
        return amount(value, f"{self._lines.place(key)}{'.'.join(key)}", self._currency, period)

    def _names(self, key: tuple[str, ...], value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise FitError(
                f'{self._lines.place(key)}{".".join(key)} is {quoted(value)}, expected a list of states such as ["5"]'
            )
        return tuple(value)

    def _table(self, key: str) -> Mapping[str, Any]:
        return self._as_table((key,), self._found.get(key, {}))

    def _as_table(self, key: tuple[str, ...], value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise FitError(
                f"{self._lines.place(key)}{'.'.join(key)} is {quoted(value)}, expected a table of names and prices"
            )
        return value


# ----------------------------------------------------------------------------------------------------
# Places in a TOML file, for the beginning of a message.
# ----------------------------------------------------------------------------------------------------


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
