"""`Economics`: prices and discount of an inspection problem, in Python or from a TOML file.

currency = "EUR"
period = "year"
interest = "3 %/year"                # or discount = 0.97, per period
inspection = "120 EUR"               # or a table: price, by_state or by_action
terminal = []

[actions]                            # every action has a price, also where it is 0
nothing = "0 EUR"
repair = { "3" = "700 EUR", otherwise = "900 EUR" }

[running]                            # cost of a period that begins in the state
"4" = "50 EUR/year"

[failure]                            # paid once, on entering one of the states
states = ["5"]
price = "20000 EUR"
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.files.checks import validation_path
from actmeasure.files.toml_lines import KeyLines, KeyPath
from actmeasure.model import Model
from actmeasure.settings import discount_factor
from actmeasure.text import plain_number

__all__ = ["DAYS", "OTHERWISE", "Economics", "Units", "read_economics"]

FloatArray = npt.NDArray[np.float64]
Table = TypeVar("Table", bound=msgspec.Struct)
#: The key of a table of prices per state for the states that it does not name.
OTHERWISE = "otherwise"
#: Largest size of a file of prices.
MOST_BYTES = 1 << 20
#: Keys of a file for the attributes that have another name there.
FILE_KEYS = {
    "inspection_by_state": ("inspection", "by_state"),
    "inspection_by_action": ("inspection", "by_action"),
    "failure_states": ("failure", "states"),
}
#: Length in days of the periods that can be converted into each other; a year is the mean one of the calendar.
DAYS = {"day": 1.0, "week": 7.0, "month": 365.2425 / 12, "quarter": 365.2425 / 4, "year": 365.2425}
AMOUNT = re.compile(r"\s*([+-]?[\d.,_'eE+-]*\d)\s*([^\d\s/%]+|%)?\s*(?:(?:/|per\s)\s*(\S+))?\s*")
#: Averages of at least this many periods are rounded to whole periods.
ROUGH = 100


@dataclass(frozen=True)
class Economics:
    """Prices of an inspection problem as positive numbers, all in one currency; a model has them as negative rewards.

    Read it from a TOML file with `Economics.load`.

    Attributes
    ----------
    currency : str
        Such as "EUR".
    period : str
        Length of a step of the model, such as "year".
    discount : float
        Discount factor per period, above 0 and at most 1.
    inspection : float
        Price of an inspection, for states and actions that the next two do not name.
    inspection_by_state, inspection_by_action : mappings from name to price
        At most one of them. The state is that at the beginning of the period at the end of which the unit is inspected.
    actions : mapping from the name of an action to its price
        A price, or a mapping from states to prices; there, "otherwise" stands for the states that are not named.
    running : mapping from the name of a state to its cost per period
        Cost of a period that begins in the state; 0 for states that are not named.
    failure_states : tuple of str
    failure_price : float
        Paid once, when a unit goes from a state that is not a failure to one that is.
    terminal : tuple of str
        States in which an episode ends, which is noticed without an inspection.
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
    #: The file it was read from and the line of every key, for messages.
    source: KeyLines = field(default_factory=lambda: KeyLines("", {}), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("currency", "period"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise FitError(f"{name} is {quoted(getattr(self, name))}, expected its name, such as EUR or year")
        discount_factor(self.discount, "discount", FitError)
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

    def per(self, period: str) -> Economics:
        """Return the prices for another period: running costs and the discount are converted, prices for one time stay."""
        if period == self.period:
            return self
        share = _days(period, "period") / _days(self.period, "period")
        running = {state: share * price for state, price in self.running.items()}
        return replace(self, period=period, running=running, discount=self.discount**share)

    def check_names(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str] = ()) -> None:
        """Raise a `FitError` if a name is not that of a state or action (also a dropped one), or an action has no price."""
        for key in ("running", "inspection_by_state"):
            self._known("state", getattr(self, key), states, key)
        self._known("state", self.failure_states, states, "failure_states")
        self._known("state", self.terminal, states, "terminal")
        self._known("action", self.inspection_by_action, [*actions, *dropped], "inspection_by_action")
        for action in self.actions:
            if action not in (*actions, *dropped):
                raise FitError(
                    f"{self.location(('actions', action))}{unknown_name('action', action, [*actions, *dropped])}; if the records "
                    f"contain none, say what it does when fitting: assume={{{action!r}: {states[0]!r}}} (actmeasure fit --assume "
                    f"{action}:{states[0]}), or leave its price out"
                )
        for action in actions:
            if action not in self.actions:
                raise FitError(
                    f"{self.location(('actions',))}the action {action!r} has no price; add it to the prices of actions, "
                    f"with 0 if it costs nothing"
                )
            prices = self.actions[action]
            if isinstance(prices, Mapping):
                self._known("state", [name for name in prices if name != OTHERWISE], states, "actions", action)
                missing = [state for state in states if state not in prices]
                if missing and OTHERWISE not in prices and set(missing) - set(self.terminal):
                    raise FitError(
                        f"{self.location(('actions', action))}the action {action!r} has no price in state {missing[0]!r}; "
                        f"add it, or {OTHERWISE} = ... for all others"
                    )
        for state in self.terminal:
            if self.running.get(state):
                raise FitError(
                    f"{self.location(('running', state))}the state {state!r} has running costs, but it is terminal: "
                    "episodes end there, so they are never paid; give the end a price with [failure]"
                )

    def location(self, key: tuple[str, ...]) -> str:
        """Return file and line of a key, for the beginning of a message; empty if the prices were not read from a file."""
        return self.source.location(FILE_KEYS.get(key[0], (key[0],)) + key[1:])

    def _known(self, kind: str, names: Collection[str], choices: Sequence[str], *key: str) -> None:
        for name in names:
            if name not in choices:
                raise FitError(f"{self.location((*key, name))}{unknown_name(kind, name, choices)}")

    def measuring_costs(self, states: Sequence[str], actions: Sequence[str]) -> float | FloatArray:
        """Return the price of an inspection: a number, or an array of shape (S, A)."""
        if not self.inspection_by_state and not self.inspection_by_action:
            return float(self.inspection)
        by_state, by_action = self.inspection_by_state, self.inspection_by_action
        return np.array(
            [[by_state.get(s, by_action.get(a, self.inspection)) for a in actions] for s in states], dtype=np.float64
        )

    def rewards(self, states: Sequence[str], actions: Sequence[str]) -> FloatArray:
        """Return the rewards of transitions, shape (S, A, S): minus the costs of a period without an inspection."""
        running = np.array([self.running.get(state, 0.0) for state in states])
        doing = np.array([[self.price(action, state) for action in actions] for state in states])
        failed = np.isin(states, list(self.failure_states))
        failing = self.failure_price * (~failed[:, None] & failed[None, :])
        rewards: FloatArray = -(running[:, None, None] + doing[:, :, None] + failing[:, None, :])
        rewards[np.isin(states, list(self.terminal))] = 0.0
        return rewards

    def price(self, action: str, state: str) -> float:
        """Return the price of an action in a state."""
        prices = self.actions[action]
        if isinstance(prices, Mapping):
            # In terminal states no action is taken, so that they need no price.
            return float(prices.get(state, prices.get(OTHERWISE, 0.0)))
        return float(prices)


class _InspectionTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table `inspection` of a file; prices are checked by `amount`."""

    price: Any
    by_state: dict[str, Any] = {}
    by_action: dict[str, Any] = {}


class _FailureTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table `failure` of a file."""

    states: tuple[str, ...]
    price: Any


class _PricesFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a file; prices are checked by `amount`, with the currency and period."""

    currency: Annotated[str, msgspec.Meta(pattern=r"\S")]
    period: Annotated[str, msgspec.Meta(pattern=r"\S")]
    inspection: Any
    discount: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    interest: Any = None
    terminal: tuple[str, ...] = ()
    actions: dict[str, Any] = {}
    running: dict[str, Any] = {}
    failure: _FailureTable | None = None


#: The struct of every table with fixed keys.
TABLES: dict[KeyPath, type[msgspec.Struct]] = {
    (): _PricesFile,
    ("inspection",): _InspectionTable,
    ("failure",): _FailureTable,
}
#: What is expected as the value of a key, for messages.
EXPECTED: dict[KeyPath, str] = {
    ("currency",): 'text such as "EUR"',
    ("period",): 'text such as "year"',
    ("discount",): "a number above 0 and at most 1, such as 0.97",
    ("terminal",): 'a list of states such as ["5"]',
    ("failure", "states"): 'a list of states such as ["5"]',
}
#: What to do about a key that is missing.
MISSING: dict[KeyPath, str] = {
    ("currency",): 'there is no currency, so that the prices have no unit; add currency = "EUR" at the top',
    ("period",): 'there is no period, so that the prices have no unit; add period = "year" at the top',
    ("inspection",): 'there is no price of an inspection; add inspection = "120 EUR" at the top',
    ("inspection", "price"): "the inspection has no price; add price = ... to its table",
    ("failure", "states"): "a failure has states and a price; give both",
    ("failure", "price"): "a failure has states and a price; give both",
}


def read_economics(path: str | os.PathLike[str]) -> Economics:
    """Read and check a file of prices; anything wrong is a `FitError` that names the line."""
    file_path = Path(path)
    try:
        with file_path.open("rb") as file:
            contents = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise FitError(str(explain(error, file_path, "read"))) from error
    if len(contents) > MOST_BYTES:
        raise FitError(
            f"{file_path} is larger than {MOST_BYTES >> 20} MiB, too large for a file of prices; check the path"
        )
    try:
        text = contents.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise FitError(f"{file_path}, line {line}: this is not UTF-8 text; save the file as UTF-8") from error
    except RecursionError as error:
        raise FitError(f"{file_path} is nested too deeply for a file of prices; check the path") from error
    except tomllib.TOMLDecodeError as error:
        raise FitError(
            f"{file_path} is not valid TOML: {error}; names with other signs than letters, digits, - and _ go in quotes"
        ) from error
    return _economics(table, KeyLines.of(text, str(file_path)))


def _economics(table: dict[str, Any], lines: KeyLines) -> Economics:
    """Return the prices of a parsed file."""
    file = _converted(table, _PricesFile, (), lines)
    currency, period = file.currency.strip(), file.period.strip()

    def price(value: Any, *key: str, per: str | None = None) -> float:
        return amount(value, f"{lines.location(key)}{'.'.join(key)}", currency, per)

    def prices(table: Mapping[str, Any], *key: str, per: str | None = None) -> dict[str, float]:
        return {name: price(value, *key, name, per=per) for name, value in table.items()}

    is_table = isinstance(file.inspection, dict)
    inspection = _InspectionTable(file.inspection)
    if is_table:
        inspection = _converted(file.inspection, _InspectionTable, ("inspection",), lines)
    if inspection.by_state and inspection.by_action:
        raise FitError(f"{lines.location(('inspection',))}the inspection has prices by_state and by_action; give one")
    return Economics(
        currency=currency,
        period=period,
        discount=_discount(file, period, lines),
        inspection=price(inspection.price, "inspection", *(["price"] if is_table else [])),
        inspection_by_state=prices(inspection.by_state, "inspection", "by_state"),
        inspection_by_action=prices(inspection.by_action, "inspection", "by_action"),
        actions={
            name: prices(value, "actions", name) if isinstance(value, dict) else price(value, "actions", name)
            for name, value in file.actions.items()
        },
        running=prices(file.running, "running", per=period),
        failure_states=() if file.failure is None else file.failure.states,
        failure_price=0.0 if file.failure is None else price(file.failure.price, "failure", "price"),
        terminal=file.terminal,
        source=lines,
    )


def _discount(file: _PricesFile, period: str, lines: KeyLines) -> float:
    """Return the discount per period, as given or from the interest rate."""
    if (file.discount is None) == (file.interest is None):
        given = "neither discount nor interest" if file.discount is None else "both discount and interest"
        raise FitError(
            f'{lines.location(())}it has {given}; give one of the two, such as interest = "3 %/year" or discount = 0.97 '
            "(per period)"
        )
    if file.discount is not None:
        return file.discount
    return discount_of_rate(file.interest, f"{lines.location(('interest',))}interest", period)


def _converted(contents: dict[str, Any], kind: type[Table], table: tuple[str, ...], lines: KeyLines) -> Table:
    """Return a table of the file as a struct; raise a `FitError` with the line of what does not fit.

    Parameters
    ----------
    contents : dict
    kind : subclass of msgspec.Struct
    table : tuple of str
        The keys that lead to the table.
    lines : KeyLines
    """
    try:
        return msgspec.convert(contents, kind)
    except msgspec.ValidationError as error:
        at, key = validation_path(error, contents)
        value: Any = contents
        for part in at:
            value = value[part]
        at = (*table, *at)
        if key is None:
            names = tuple(part for part in at if isinstance(part, str))
            expected = EXPECTED.get(names, "a table of names and prices")
            index = ""
            if isinstance(at[-1], int):  # an element of a list of states
                expected, index = 'the name of a state in quotes, such as "5"', f"[{at[-1]}]"
            problem = f"{'.'.join(names)}{index} is {quoted(value)}, expected {expected}"
        elif key in value:
            at = (*at, key)
            problem = unknown_name("key", key, TABLES[at[:-1]].__struct_fields__)
        else:
            problem = MISSING[(*at, key)]
        raise FitError(f"{lines.location(at)}{problem}") from error


def amount(value: Any, what: str, currency: str, period: str | None = None) -> float:
    """Return an amount of money, 0 or more, in the currency, or in the currency per period if a `period` is given.

    A number is in these units already. Text has to name them: "50 EUR", or "600 EUR/year", which with a period of a month is 50.
    Raises a `FitError` if the price is negative, in another currency, or per period where none is expected.
    """
    expected = f'"50 {currency}"' if period is None else f'"50 {currency}/{period}"'
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FitError(f"{what} is {quoted(value)}, expected a price such as {expected}")
    if isinstance(value, str):
        price, unit, each = _split(value, what, expected)
        expected = expected.replace("50", f"{price:.15g}", 1)  # the remedy is about the price that was given
        if unit != currency:
            raise FitError(f"{what} is {quoted(value)}, but the currency of the file is {currency}; write {expected}")
        price *= _per(each, period, what, value, expected)
    else:
        price = float(value)
    if not math.isfinite(price) or price < 0:
        raise FitError(
            f"{what} is {quoted(value)}, expected a price that is 0 or more; costs are written as positive numbers"
        )
    return price


def discount_of_rate(value: Any, what: str, period: str) -> float:
    """Return the discount per period of an interest rate such as "3 %/year"."""
    expected = f'a rate such as "3 %/{period}"'
    if not isinstance(value, str):
        raise FitError(f"{what} is {quoted(value)}, which has no unit; expected {expected}")
    rate, unit, each = _split(value, what, expected)
    if unit != "%" or each is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    if not 0 <= rate < 1000:
        raise FitError(f"{what} is {quoted(value)}, expected {expected} from 0 up")
    share = 1.0 if each == period else _days(period, what) / _days(each, what)
    return float((1 + rate / 100) ** -share)


def _split(value: str, what: str, expected: str) -> tuple[float, str, str | None]:
    """Return the number of an amount, its unit, and the period after the slash."""
    match = AMOUNT.fullmatch(value)
    if match is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    try:
        number = float(match[1])
    except ValueError:
        raise FitError(
            f"{what} is {quoted(value)}, and {quoted(match[1])} is not a number; write it without separators of thousands "
            f"and with a decimal point, expected {expected}"
        ) from None
    if match[2] is None:
        raise FitError(f"{what} is {quoted(value)}, which has no unit; expected {expected}")
    return number, match[2], match[3]


def _per(each: str | None, period: str | None, what: str, value: str, expected: str) -> float:
    """Return the factor that converts a price per `each` into one per `period`."""
    if period is None and each is not None:
        raise FitError(
            f"{what} is {quoted(value)}, a price per {each}, expected a price for one time such as {expected}"
        )
    if period is not None and each is None:
        raise FitError(f"{what} is {quoted(value)}, expected a price per {period} such as {expected}")
    if each is None or period is None or each == period:
        return 1.0
    return _days(period, what) / _days(each, what)


def _days(period: str, what: str) -> float:
    """Return the length of a period in days."""
    if period not in DAYS:
        raise FitError(f"{what}: {unknown_name('period', period, DAYS)}; only these can be converted")
    return DAYS[period]


@dataclass(frozen=True)
class Units:
    """Currency and period of results, and whether they are shown as costs.

    Attributes
    ----------
    currency : str
        Such as EUR; empty if it is not known.
    period : str
        The name of a step, such as year.
    is_cost : bool
        Whether no reward is positive: then figures are shown as costs, with the opposite sign.
    """

    currency: str = ""
    period: str = "period"
    is_cost: bool = False

    @classmethod
    def of(cls, model: Model, currency: str = "", period: str = "period") -> Units:
        """Return the units of a model: costs if no reward is above 0 and some are below."""
        return cls(shown(currency), shown(period), bool(model.rewards.max() <= 0 > model.rewards.min()))

    @property
    def figure(self) -> str:
        """The word for a sum of money: cost or value."""
        return "cost" if self.is_cost else "value"

    def shown(self, value: float) -> float:
        """Return a discounted return as it is shown: with the opposite sign for costs."""
        return (-value if self.is_cost else value) + 0.0

    def money(self, value: float) -> str:
        """Return a discounted return in words, such as `1,234 EUR`."""
        return self.amount(self.shown(value))

    def amount(self, value: float) -> str:
        """Return a sum of money in words, with its sign."""
        if math.isinf(value) or math.isnan(value):
            return "infinite" if math.isinf(value) else "unknown"
        return f"{plain_number(value)} {self.currency}".rstrip()

    def periods(self, count: float) -> str:
        """Return `1 year` or `2.5 years`."""
        text = plain_number(count)
        return f"{text} {self.period}{'' if text == '1' else 's'}"

    def about(self, count: float) -> str:
        """Return an average time with one decimal, or none if it is long: `5.9 years`."""
        return self.periods(round(count, 1) if count < ROUGH else round(count))
