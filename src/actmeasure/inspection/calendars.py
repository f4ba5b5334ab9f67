"""Times of records: whole numbers of periods, real numbers, and dates as they are written in many places."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import DAYS
from actmeasure.inspection.text import problem_text

__all__ = ["LONGEST_DETAIL", "BrokenLineError", "PeriodCalendar"]

FloatArray = npt.NDArray[np.float64]

#: Largest number of characters of a cell that are kept in a diagnostic.
LONGEST_DETAIL = 100
WHOLE = re.compile(r"\d{1,15}")
#: Largest time; larger whole numbers are not exact as floats.
LATEST = 2**53
#: The unit of intensities where times are dates.
DATE_UNIT = "year"
#: The day that stands for a month.
MIDDLE_OF_MONTH = 15
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: 13.4.2012
DOTTED = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
#: 04/13/2012 and 13/04/2012, also with dashes
SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
#: 2012/04/13
YEAR_FIRST = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
#: 13 Apr 2012, Apr 13, 2012, Apr 2012, April 2012, 2012 Apr
WORDED = re.compile(
    r"(?:(\d{1,2})[.\s-]*)?([A-Za-z]{3,9})\.?[\s-]*(?:(\d{1,2}),?\s+)?(\d{4})|(\d{4})[\s-]+([A-Za-z]{3,9})\.?"
)
#: 2012-04, and 04/2012
YEAR_MONTH = re.compile(r"(\d{4})-(\d{1,2})|(\d{1,2})/(\d{4})")
#: The two readings of dates such as 03/04/2012.
MONTH_FIRST, DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"


class BrokenLineError(FitError):
    """A problem of a line, as data: a key of `text.PROBLEMS`, and its details."""

    def __init__(self, problem: str, **details: str | Sequence[str]) -> None:
        cut = {name: value[:LONGEST_DETAIL] if isinstance(value, str) else value for name, value in details.items()}
        super().__init__(problem_text(problem, cut))
        self.problem, self.details = problem, cut


class PeriodCalendar:
    """Conversion of the text of a time into a number, 0 or more: a whole number of periods or, in continuous time, any.

    Dates in which day and month could be exchanged, such as 03/04/2012, are read as the other dates of the records tell; `parse`
    returns a negative number for them, which `resolved` replaces.

    Parameters
    ----------
    period : None, a number, or "day", "week", "month", "quarter", "year"
        Without it, times are whole numbers. With a number, times are real numbers that are divided by it and rounded down. With
        a name, times are whole numbers of such periods, or dates, which are assigned to calendar periods.
    continuous : bool
        Times are real numbers, or dates, as days; nothing is rounded. A period is the unit of intensities.
    date_format : str, optional
        How dates are written, in the notation of `datetime.strptime`.
    """

    def __init__(
        self, period: float | str | None = None, continuous: bool = False, date_format: str | None = None
    ) -> None:
        self.period, self.continuous, self.date_format = period, continuous, date_format
        self.has_dates: bool | None = None
        self._months = False
        #: Dates with two readings, and the readings that other dates prove, each with an example.
        self._pending: dict[tuple[int, int, int], int] = {}
        self._readings: dict[str, str] = {}
        if isinstance(period, str) and period not in DAYS:
            raise FitError(unknown_name("period", period, DAYS) + "; or a number such as 0.5, in the unit of the times")
        if period is not None and not isinstance(period, str):
            numeric = isinstance(period, (int, float)) and not isinstance(period, bool)
            if not numeric or not math.isfinite(period) or period <= 0:
                raise FitError(f"period is {quoted(period)}, expected a number above 0 or one of: {', '.join(DAYS)}")
        if date_format is not None and not _is_format(date_format):
            raise FitError(
                f"date_format is {quoted(date_format)}, expected a format with a year such as {DAY_FIRST} or %d.%m.%y, in "
                "the notation of Python's strptime"
            )

    @property
    def name(self) -> str | None:
        """The name of the period, or of the unit of intensities, if it has one."""
        if self.continuous and self.has_dates and self.period is None:
            return DATE_UNIT
        return self.period if isinstance(self.period, str) else None

    @property
    def unit_length(self) -> float:
        """The unit of intensities, in that of the times: days for dates."""
        if not self.continuous:
            return 1.0
        if self.has_dates:
            return DAYS[self.period if isinstance(self.period, str) else DATE_UNIT]
        return float(self.period) if isinstance(self.period, (int, float)) else 1.0

    def parse(self, text: str) -> float:
        """Return the time, or a negative number for a date with two readings; raise a `BrokenLineError` if it is not valid."""
        if self.date_format is not None:
            return self._as(self._of_day(self._formatted(text)), is_date=True)
        if WHOLE.fullmatch(text) and not isinstance(self.period, (int, float)):
            return self._as(int(text), is_date=False)
        try:
            number = float(text)
        except ValueError:
            return self._as(self._of_date(text), is_date=True)
        return self._as(self._of_number(number, text), is_date=False)

    def _formatted(self, text: str) -> date:
        try:
            return datetime.strptime(text, str(self.date_format)).date()
        except ValueError:
            raise BrokenLineError("date-not-in-format", time=text, format=str(self.date_format)) from None

    def _of_number(self, number: float, text: str) -> float:
        if not math.isfinite(number) or abs(number) > LATEST:
            raise BrokenLineError("time-unusable", time=text)
        if number < 0:
            raise BrokenLineError("time-negative", time=text)
        if self.continuous:
            return number
        if isinstance(self.period, (int, float)):
            periods = number / self.period
            # In floating point 0.3 / 0.1 is less than 3.
            return math.floor(periods + 1e-9 * max(1.0, periods))
        if not number.is_integer():
            raise BrokenLineError("time-not-whole", time=text)
        return int(number)

    def _of_date(self, text: str) -> float:
        """Return the time of a date in any of the known ways of writing it."""
        try:
            day = datetime.fromisoformat(text).date()
        except ValueError:
            try:
                day = self._written(text)
            except _TwoReadingsError as two:
                return self._two_readings(two.parts, text)
            except ValueError:
                raise BrokenLineError("time-not-read", time=text) from None
        return self._of_day(day)

    def _written(self, text: str) -> date:
        """Return a date that is not written as 2012-04-13; raise a `ValueError` if it is none."""
        if match := DOTTED.fullmatch(text):
            return date(int(match[3]), int(match[2]), int(match[1]))
        if match := YEAR_FIRST.fullmatch(text):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := SLASHED.fullmatch(text):
            first, second, year = (int(part) for part in match.groups())
            if first <= 12 and second <= 12 and first != second and date(year, first, second):
                raise _TwoReadingsError((first, second, year))
            if first != second:
                self._readings.setdefault(DAY_FIRST if first > 12 else MONTH_FIRST, text)
            return date(year, second, first) if first > 12 else date(year, first, second)
        if match := YEAR_MONTH.fullmatch(text):
            self._months = True
            return date(int(match[1] or match[4]), int(match[2] or match[3]), MIDDLE_OF_MONTH)
        if match := WORDED.fullmatch(text):
            written_year, word, day = match[4] or match[5], match[2] or match[6], match[1] or match[3]
            month = MONTHS.index(word[:3].lower()) + 1
            self._months |= day is None
            return date(int(written_year), month, MIDDLE_OF_MONTH if day is None else int(day))
        raise ValueError(text)

    def _two_readings(self, parts: tuple[int, int, int], text: str) -> float:
        """Return the negative number that stands for a date with two readings."""
        if not self.continuous and not isinstance(self.period, str):
            raise BrokenLineError("date-without-period", time=text)
        number = self._pending.setdefault(parts, len(self._pending))
        return -1.0 - number

    def _of_day(self, day: date) -> float:
        if self.continuous:
            return day.toordinal()
        if not isinstance(self.period, str):
            raise BrokenLineError("date-without-period", time=day.isoformat())
        return _period_of(day, self.period)

    def _as(self, time: float, is_date: bool) -> float:
        """Return the time; raise a `BrokenLineError` if some times are dates and others numbers."""
        if self.has_dates is None:
            self.has_dates = is_date
        if self.has_dates != is_date:
            raise BrokenLineError("dates-and-numbers")
        return time

    def resolved(self, times: FloatArray) -> FloatArray:
        """Return the times with those of dates with two readings; raise a `FitError` if nothing tells which one is meant."""
        if not self._pending:
            return times
        month_first = self._month_first()
        days = [date(y, a, b) if month_first else date(y, b, a) for a, b, y in self._pending]
        values = np.array([self._of_day(day) for day in days])
        return np.where(times < 0, values[np.minimum(-1 - times, len(values) - 1).astype(np.int64).clip(0)], times)

    def _month_first(self) -> bool:
        """Return whether dates with two readings begin with the month; raise a `FitError` if nothing tells."""
        if len(self._readings) != 1:
            first, second, year = next(iter(self._pending))
            written = f"{first:02d}/{second:02d}/{year}"
            one, other = (date(year, first, second), date(year, second, first))
            proof = f", and others prove both ({' and '.join(self._readings.values())})" if self._readings else ""
            raise FitError(
                f"{len(self._pending):,} dates such as {written} can be read as {one.isoformat()} or as {other.isoformat()}"
                f"{proof}; say which with date_format={MONTH_FIRST!r} or {DAY_FIRST!r} "
                f"(--date-format {MONTH_FIRST} or {DAY_FIRST})"
            )
        return MONTH_FIRST in self._readings

    def diagnostics(self) -> list[Diagnostic]:
        """Return how the times were converted; nothing if they were whole numbers of periods.

        Raises a `FitError` if a date has two readings and nothing tells which one is meant.
        """
        found = []
        if self.has_dates and not self.continuous and isinstance(self.period, str):
            found.append(diagnostic("dates-to-periods", period=self.period))
        elif isinstance(self.period, (int, float)) and not self.continuous:
            found.append(diagnostic("times-divided", length=self.period))
        if self._pending:
            first = "month" if self._month_first() else "day"
            (example,) = self._readings.values()
            found.append(diagnostic("dates-with-two-readings", dates=len(self._pending), first=first, example=example))
        if self._months and (self.continuous or self.period in ("day", "week")):
            found.append(diagnostic("months-without-day", day=MIDDLE_OF_MONTH))
        return found


def _is_format(text: object) -> bool:
    """Return whether a text is a format of dates that tells the year."""
    example = datetime(2012, 4, 13)
    try:
        found = datetime.strptime(example.strftime(str(text)), str(text))
    except (ValueError, re.error):
        return False
    return found.year == example.year


class _TwoReadingsError(Exception):
    """A date in which day and month could be exchanged."""

    def __init__(self, parts: tuple[int, int, int]) -> None:
        super().__init__(parts)
        self.parts = parts


def _period_of(day: date, period: str) -> int:
    """Return the number of the calendar period that contains a day."""
    match period:
        case "day":
            return day.toordinal()
        case "week":  # weeks begin on Monday
            return (day.toordinal() - 1) // 7
        case "month":
            return day.year * 12 + day.month - 1
        case "quarter":
            return day.year * 4 + (day.month - 1) // 3
        case _:
            return day.year


def as_cell(value: Any) -> str:
    """Return a cell of a table as text: empty for missing values, and 3 for 3.0, as pandas has for whole numbers."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return "" if text in ("NaT", "<NA>") else text
