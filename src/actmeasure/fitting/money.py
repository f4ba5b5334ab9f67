"""Amounts with units: "120 EUR", "50 EUR/month", "3 %/year"."""

from __future__ import annotations

import math
import re
from typing import Any

from actmeasure.errors import FitError, quoted, unknown_name

__all__ = ["DAYS", "amount", "discount_of_rate"]

#: Length of the periods that can be converted into one another, in days; a year is the mean one of the calendar.
DAYS = {"day": 1.0, "week": 7.0, "month": 365.2425 / 12, "quarter": 365.2425 / 4, "year": 365.2425}
AMOUNT = re.compile(r"\s*([+-]?[\d.,_'eE+-]*\d)\s*([^\d\s/%]+|%)?\s*(?:(?:/|per\s)\s*(\S+))?\s*")


def amount(value: Any, what: str, currency: str, period: str | None = None) -> float:
    """An amount of money, 0 or more, in the currency, and in it per period where a `period` is given.

    A bare number is in these units already. Text has to name them: "50 EUR", or "600 EUR/year", which with a period of a
    month is 50. A price per period where one in all is expected, another currency and a negative price are a `FitError`.
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
    """The discount of a period, from an interest rate such as "3 %/year"."""
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
    """Number, unit and "per" of an amount."""
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
    """What turns a price "per each" into one per period."""
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
    if period not in DAYS:
        raise FitError(f"{what}: {unknown_name('period', period, DAYS)}; only these can be converted")
    return DAYS[period]
