"""What the figures are in: a currency, a period, and costs or gains."""

from __future__ import annotations

import math
from dataclasses import dataclass

from actmeasure.errors import shown
from actmeasure.model import Model

__all__ = ["Units"]

#: Average times from here on are in whole periods.
ROUGH = 100


@dataclass(frozen=True)
class Units:
    """How money and time are written.

    Attributes
    ----------
    currency : str
        Such as EUR; empty where it is not known.
    period : str
        What a step is called, such as year.
    is_cost : bool
        Whether nothing ever pays: then figures are costs, above 0, and less is better.
    """

    currency: str = ""
    period: str = "period"
    is_cost: bool = False

    @classmethod
    def of(cls, model: Model, currency: str = "", period: str = "period") -> Units:
        """The units of a model: costs where no reward is above 0 and some are below."""
        return cls(shown(currency), shown(period), bool(model.rewards.max() <= 0 > model.rewards.min()))

    @property
    def figure(self) -> str:
        """What a sum of money is called."""
        return "cost" if self.is_cost else "value"

    def shown(self, value: float) -> float:
        """A return as it is shown: a cost is above 0."""
        return (-value if self.is_cost else value) + 0.0

    def money(self, value: float) -> str:
        """A return in words, such as `1,234 EUR`."""
        return self.amount(self.shown(value))

    def amount(self, value: float) -> str:
        """A sum of money in words, as it is."""
        if math.isinf(value) or math.isnan(value):
            return "without end" if math.isinf(value) else "unknown"
        return f"{plain_number(value)} {self.currency}".rstrip()

    def periods(self, count: float) -> str:
        """`1 year`, `2.5 years`."""
        text = plain_number(count)
        return f"{text} {self.period}{'' if text == '1' else 's'}"

    def about(self, count: float) -> str:
        """A time that is an average, without digits that say nothing: `5.9 years`."""
        return self.periods(round(count, 1) if count < ROUGH else round(count))


def plain_number(value: float) -> str:
    """Four digits that count, never fewer than the whole part has, and no -0.

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
