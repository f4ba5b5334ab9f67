"""Money and time: the `Units` in which results are written, and amounts with units that are read, such as "50 EUR/month"."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.model import Model

__all__ = ["DAYS", "Units", "amount", "discount_of_rate"]

#: Length in days of the periods that can be converted into each other; a year is the mean one of the calendar.
DAYS = {"day": 1.0, "week": 7.0, "month": 365.2425 / 12, "quarter": 365.2425 / 4, "year": 365.2425}
AMOUNT = re.compile(r"\s*([+-]?[\d.,_'eE+-]*\d)\s*([^\d\s/%]+|%)?\s*(?:(?:/|per\s)\s*(\S+))?\s*")
#: Averages of at least this many periods are rounded to whole periods.
ROUGH = 100


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
            return "without end" if math.isinf(value) else "unknown"
        return f"{plain_number(value)} {self.currency}".rstrip()

    def periods(self, count: float) -> str:
        """Return `1 year` or `2.5 years`."""
        text = plain_number(count)
        return f"{text} {self.period}{'' if text == '1' else 's'}"

    def about(self, count: float) -> str:
        """Return an average time with one decimal, or none if it is long: `5.9 years`."""
        return self.periods(round(count, 1) if count < ROUGH else round(count))


def plain_number(value: float) -> str:
    """Return a number with four significant digits, or all digits of its whole part, and without -0.

    Examples
    --------
    >>> [plain_number(x) for x in (1234567.8, 12.3456, 0.012345678, 0.5, -0.0, 3)]
    ['1,234,568', '12.35', '0.01235', '0.5', '0', '3']
    """
    if value == 0 or abs(value) < 1e-12:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: Any, what: str, currency: str, period: str | None = None) -> float:
    """Return an amount of money, 0 or more, in the currency, or in the currency per period if a `period` is given.

    A number is in these units already. Text has to name them: "50 EUR", or "600 EUR/year", which with a period of a month is 50.
    Raises a `FitError` if the price is negative, in another currency, or per period where none is expected.
    """
    expected = f'"50 {currency}"' if period is None else f'"50 {currency}/{period}"'
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FitError(f"{what} is {quoted(value)}, expected a price such as {expected}")
    if isinstance(value, str):
        found, unit, each = _split(value, what, expected)
        expected = expected.replace("50", f"{found:.15g}", 1)  # the remedy is about the price that was given
        if unit != currency:
            raise FitError(f"{what} is {quoted(value)}, but the currency of the file is {currency}; write {expected}")
        found *= _per(each, period, what, value, expected)
    else:
        found = float(value)
    if not math.isfinite(found) or found < 0:
        raise FitError(
            f"{what} is {quoted(value)}, expected a price that is 0 or more; costs are written as positive numbers"
        )
    return found


def discount_of_rate(value: Any, what: str, period: str) -> float:
    """Return the discount per period of an interest rate such as "3 %/year"."""
    expected = f'a rate such as "3 %/{period}"'
    if not isinstance(value, str):
        raise FitError(f"{what} is {quoted(value)}, which has no unit; expected {expected}")
    found, unit, each = _split(value, what, expected)
    if unit != "%" or each is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    if not 0 <= found < 1000:
        raise FitError(f"{what} is {quoted(value)}, expected {expected} from 0 up")
    share = 1.0 if each == period else _days(period, what) / _days(each, what)
    return float((1 + found / 100) ** -share)


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
