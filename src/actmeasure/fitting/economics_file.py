"""Prices from a TOML file.

currency = "EUR"
period = "year"
interest = "3 %/year"                # or discount = 0.97, per period
inspection = "120 EUR"               # or a table: price, by_state or by_action
terminal = []

[actions]                            # every action has a price, also where it is 0
nothing = "0 EUR"
repair = { "3" = "700 EUR", otherwise = "900 EUR" }

[running]                            # what a period costs that begins in the state
"4" = "50 EUR/year"

[failure]                            # paid once, on entering one of the states
states = ["5"]
price = "20000 EUR"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.fitting.economics import Economics
from actmeasure.fitting.money import amount, discount_of_rate
from actmeasure.fitting.toml_lines import KeyLines

__all__ = ["read_economics"]

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
