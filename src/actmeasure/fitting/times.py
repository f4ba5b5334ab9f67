"""Times of records as whole periods."""

from __future__ import annotations

import math
import re
from datetime import date, datetime

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.fitting.money import DAYS

__all__ = ["Clock"]

WHOLE = re.compile(r"\d{1,15}")
#: Larger whole numbers are not exact as floats.
LATEST = 2**53


class Clock:
    """Turns the text of a time into a whole number of periods from 0 up.

    Parameters
    ----------
    period : None, a number, or "day", "week", "month", "quarter", "year"
        Without it times are whole numbers. With a number, times are real numbers that are divided by it and rounded down. With a
        name, times are whole numbers of such periods, or dates (2024-05-31), which fall into the period of the calendar.
    """

    def __init__(self, period: float | str | None = None) -> None:
        self.period = period
        self._dates: bool | None = None
        if isinstance(period, str) and period not in DAYS:
            raise FitError(unknown_name("period", period, DAYS) + "; or a number such as 0.5, in the unit of the times")
        if period is not None and not isinstance(period, str):
            numeric = isinstance(period, (int, float)) and not isinstance(period, bool)
            if not numeric or not math.isfinite(period) or period <= 0:
                raise FitError(f"period is {quoted(period)}, expected a number above 0 or one of: {', '.join(DAYS)}")

    @property
    def name(self) -> str | None:
        """What a period is, if that is known."""
        return self.period if isinstance(self.period, str) else None

    def parse(self, text: str) -> int:
        """The period of a time; a `FitError` says, without its place, what is wrong."""
        if WHOLE.fullmatch(text) and not isinstance(self.period, (int, float)):
            return self._as(int(text), is_date=False)
        try:
            number = float(text)
        except ValueError:
            return self._as(self._of_date(text), is_date=True)
        return self._as(self._of_number(number, text), is_date=False)

    def _of_number(self, number: float, text: str) -> int:
        if not math.isfinite(number) or abs(number) > LATEST:
            raise FitError(f"the time {quoted(text)} is not a usable number; correct it")
        if number < 0:
            raise FitError(f"the time {quoted(text)} is negative; count times from 0 up")
        if isinstance(self.period, (int, float)):
            periods = number / self.period
            # 0.3 / 0.1 is a little less than 3, and means 3.
            return math.floor(periods + 1e-9 * max(1.0, periods))
        if not number.is_integer():
            raise FitError(
                f"the time {quoted(text)} is not a whole number of periods; give the length of a period with period=0.5 "
                "(--period 0.5) to have times divided by it and rounded down"
            )
        return int(number)

    def _of_date(self, text: str) -> int:
        try:
            day = datetime.fromisoformat(text).date()
        except ValueError:
            raise FitError(
                f"the time {quoted(text)} is neither a number nor a date such as 2024-05-31; correct it"
            ) from None
        if not isinstance(self.period, str):
            raise FitError(
                f"the time {quoted(text)} is a date; say what a period is with period='month' (--period month), or one of: "
                f"{', '.join(DAYS)}"
            )
        return _period_of(day, self.period)

    def _as(self, time: int, is_date: bool) -> int:
        if self._dates is None:
            self._dates = is_date
        if self._dates != is_date:
            raise FitError(
                "the time is a date where those before are numbers, or the other way round; use one of the two"
            )
        return time

    def note(self) -> str | None:
        """What was done to the times, in a sentence."""
        if self._dates:
            return (
                f"Dates were put into the {self.period} they fall in: what was seen counts as seen at its beginning, and what "
                "was done as done during it."
            )
        if isinstance(self.period, (int, float)):
            return f"Times were divided by {self.period:g} and rounded down to whole periods."
        return None


def _period_of(day: date, period: str) -> int:
    match period:
        case "day":
            return day.toordinal()
        case "week":  # from Monday on
            return (day.toordinal() - 1) // 7
        case "month":
            return day.year * 12 + day.month - 1
        case "quarter":
            return day.year * 4 + (day.month - 1) // 3
        case _:
            return day.year
