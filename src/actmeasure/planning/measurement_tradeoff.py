r"""The value of one measurement: the optimum over its price, and the price up to which another quality pays.

**Price.** Write V(c) for the optimum when the measurement costs c, everything else as it is. A policy with discounted reward r
(other prices subtracted) and l discounted uses of the measurement earns r - c l, so V is the highest of such lines: convex, and
never rising. Solving at a price c0 gives an upper bound at c0, and a policy that earns at least `lower` there: the line lower -
(c - c0) l is a lower bound at every price, and between two solved prices the chord through their upper bounds is an upper
bound. Solving without the measurement gives W, a bound at every price too. The break-even price is where V(c) meets W.

**Quality.** Quality q multiplies the probability of every outcome but the first, which stands for *nothing found*, by q; the
first takes the rest: for a detection, the probability of detection becomes q times what it is. q = 1 is the measurement as it
is, q = 0 shows nothing, and q may be above 1 as long as probabilities stay below 1. An instrument of quality q' > q can imitate
one of quality q, by reporting *nothing found* instead of anything else with probability 1 - q / q'. So the optimum V(q, c)
never falls in q. An instrument of quality q may cost up to the price c at which V(q, c) meets V(1, c0), where c0 is the price
in the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from actmeasure.errors import PlanError, import_extra, quoted, shown
from actmeasure.evaluation import evaluate
from actmeasure.model import Measurement, Model
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget, Stopped, why_open
from actmeasure.planning.outcome_search import RELATIVE_TOLERANCE
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import Method
from actmeasure.planning.tradeoff import (
    TIME_SHARE,
    PriceSearch,
    TradeoffProgress,
    ValueLine,
    at_price,
    changed,
    envelope_values,
    one_price,
    price_at_bound,
    price_at_value,
)
from actmeasure.settings import amount, real
from actmeasure.text import break_even_text, plain_number, text_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MeasurementTradeoff",
    "QualityPoint",
    "QualityTradeoff",
    "largest_quality",
    "measurement_tradeoff",
    "quality_tradeoff",
    "with_quality",
]

#: Qualities that are compared unless others are asked for; the largest that is possible is added where it is above 1.
QUALITIES = (0.25, 0.5, 0.75, 1.0)
#: Largest number of prices that are solved for one quality.
MOST_PRICES = 12
#: Relative margin for rounding in the number of uses of a measurement.
LOOKS_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class MeasurementTradeoff:
    """Bounds on the optimum for every price of one measurement; has `print` and `to_pandas`.

    Where the price of the measurement is a table per state and action, `price` multiplies that table.

    Attributes
    ----------
    model : Model
    measurement : str
    tolerance : float
        The gap that was asked for.
    prices : float64 array, shape (n,)
        Those that were solved, ascending.
    lower, upper : float64 arrays, shape (n,)
        Bounds on the optimum there.
    looks : float64 array, shape (n,)
        Expected discounted number of uses of the measurement by the best policy found for each of these prices.
    without : (float, float)
        Bounds on the optimum without the measurement.
    break_even : (float, float)
        Below the first price the measurement is certified to be worth it; from the second on, it adds at most the tolerance to
        what is found without it. Infinite where that is not known.
    gap : float
        The largest difference of the bounds at any price.
    seconds : float
    stopped : str
        As that of `Frontier`.
    """

    model: Model
    measurement: str
    tolerance: float
    prices: FloatArray
    lower: FloatArray
    upper: FloatArray
    looks: FloatArray
    without: tuple[float, float]
    break_even: tuple[float, float]
    gap: float
    seconds: float
    stopped: Stopped
    lines: tuple[ValueLine, ...] = field(repr=False)

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance at every price."""
        return self.gap <= self.tolerance

    @property
    def note(self) -> str:
        """Why the gap is above the tolerance, and a remedy, as a sentence; empty where it is not."""
        return why_open(self.stopped, self.model.discount)

    def value(self, price: float) -> tuple[float, float]:
        """Return lower and upper bound on the optimum at a price of the measurement."""
        at = amount(price, "price", error=PlanError)
        upper = float(np.interp(at, self.prices, self.upper))
        return max((line.at(at) for line in self.lines), default=-math.inf), upper

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each price that was solved (needs the extra `data`)."""
        pandas = import_extra("pandas", "MeasurementTradeoff.to_pandas", "data")
        columns = {"price": self.prices, "lower": self.lower, "upper": self.upper, "discounted_looks": self.looks}
        frame: pd.DataFrame = pandas.DataFrame(columns)
        return frame

    def __str__(self) -> str:
        is_one_price = one_price(self.model, self.model.measurement_number(self.measurement)) is not None
        price = f"price of {shown(self.measurement)}" if is_one_price else "price (times the costs)"
        rows = [
            tuple(plain_number(value) for value in row)
            for row in zip(self.prices, self.lower, self.upper, self.looks, strict=True)
        ]
        low, high = self.without
        lines = [
            *text_table((price, "worth", "at most", "discounted uses"), rows, ">>>>"),
            "",
            f"Without {shown(self.measurement)}: {plain_number(low)}, at most {plain_number(high)}.",
            break_even_text(*self.break_even, what=shown(self.measurement)),
        ]
        most = f"Nothing is better by more than {self.gap:.2g} at any price"
        if self.closed:
            return "\n".join([*lines, f"{most} ({self.seconds:.2g} s)."])
        left = most if math.isfinite(self.gap) else "How much better something could be is not known for every price"
        return "\n".join(
            [*lines, f"{left}, above the tolerance of {self.tolerance:.2g} ({self.seconds:.2g} s).", self.note]
        )


@dataclass(frozen=True)
class QualityPoint:
    """An instrument of some quality.

    Attributes
    ----------
    quality : float
        Factor of the probability of every outcome but the first.
    lower, upper : float
        Bounds on the optimum with it at the price of the model.
    may_cost : (float, float)
        Up to the first price it is certified to be at least as good as the measurement of the model at its own price; from the
        second on it is better by at most the tolerance. The second is infinite where that is not known.
    """

    quality: float
    lower: float
    upper: float
    may_cost: tuple[float, float]


@dataclass(frozen=True, eq=False)
class QualityTradeoff:
    """The optimum with instruments of other qualities, and the prices up to which they pay; has `print` and `to_pandas`.

    Attributes
    ----------
    model : Model
    measurement : str
    price : float
        Of the measurement in the model; 1 where that is a table, which prices multiply.
    tolerance : float
    points : tuple of QualityPoint
        By quality, ascending; those for which there was no time are missing.
    seconds : float
    stopped : str
        "closed" where all bounds are within the tolerance, otherwise why not.
    """

    model: Model
    measurement: str
    price: float
    tolerance: float
    points: tuple[QualityPoint, ...]
    seconds: float
    stopped: Stopped

    @property
    def note(self) -> str:
        """Why bounds are further apart than the tolerance, as a sentence; empty where they are not."""
        return why_open(self.stopped, self.model.discount)

    def value(self, quality: float) -> tuple[float, float]:
        """Return bounds on the optimum at any quality and the price of the model: the optimum never falls in the quality."""
        at = amount(quality, "quality", error=PlanError)
        lower = max((point.lower for point in self.points if point.quality <= at), default=-math.inf)
        upper = min((point.upper for point in self.points if point.quality >= at), default=math.inf)
        return lower, upper

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each quality (needs the extra `data`)."""
        pandas = import_extra("pandas", "QualityTradeoff.to_pandas", "data")
        rows = [
            {
                "quality": point.quality, "lower": point.lower, "upper": point.upper, "may_cost_low": point.may_cost[0],
                "may_cost_high": point.may_cost[1],
            }
            for point in self.points
        ]  # fmt: skip
        frame: pd.DataFrame = pandas.DataFrame(rows)
        return frame

    def __str__(self) -> str:
        rows = [
            (
                plain_number(point.quality),
                plain_number(point.lower),
                plain_number(point.upper),
                plain_number(point.may_cost[0]),
                plain_number(point.may_cost[1]) if math.isfinite(point.may_cost[1]) else "?",
            )
            for point in self.points
        ]
        head = ("quality", "worth", "at most", "may cost at least", "and at most")
        text = text_table(head, rows, ">>>>>")
        name = shown(self.measurement)
        about = (
            f"Quality multiplies the chance of every outcome of {name} but the first. An instrument that costs less "
            f"than the last columns say is better than {name} at {plain_number(self.price)}."
        )
        return "\n".join([*text, "", about, *([self.note] if self.note else [])])


def measurement_tradeoff(
    model: Model,
    measurement: int | str,
    tolerance: float,
    relative: float | None,
    method: str | Method,
    budget: Budget,
    listener: Callable[[TradeoffProgress], None] | None = None,
) -> MeasurementTradeoff:
    """Return bounds on the optimum for every price of one measurement; see `tradeoff`."""
    with budget.deferred_interrupts():
        search = _MeasurementSearch.of(model, measurement, tolerance, relative, method, budget, listener)
        search.run()
        return search.result()


def quality_tradeoff(
    model: Model,
    measurement: int | str,
    qualities: Sequence[float] | None,
    tolerance: float,
    relative: float | None,
    method: str | Method,
    budget: Budget,
    listener: Callable[[TradeoffProgress], None] | None = None,
) -> QualityTradeoff:
    """Return the optimum with instruments of some qualities, and the prices up to which they pay; see `tradeoff`."""
    number = _number(model, measurement)
    largest = largest_quality(model, number)
    if qualities is None:
        chosen = [*QUALITIES, *([largest] if largest > 1 + 1e-9 else [])]
    else:
        chosen = sorted({amount(quality, "quality", error=PlanError) for quality in qualities})
    models = {quality: with_quality(model, number, quality) for quality in chosen}  # refuses what is not possible
    with budget.deferred_interrupts():
        today = _MeasurementSearch.of(model, number, tolerance, relative, method, budget, listener)
        today.solve_at(today.own, 0.5 if chosen else 1.0)
        goal = today.bounds_at(today.own)
        points = []
        searches = [today]
        for position, quality in enumerate(chosen):
            if budget.is_over:
                break
            share = 1 / (len(chosen) - position)
            search = today if quality == 1 else _MeasurementSearch.of(
                models[quality], number, tolerance, relative, method, budget, listener
            )  # fmt: skip
            try:
                if search is not today:
                    search.solve_at(search.own, share / 3)
                may_cost = (search.own, search.own) if search is today else search.price_for(goal, quality > 1, share)
            except PlanError:
                if not budget.is_over:
                    raise
                break
            searches.append(search)
            points.append(QualityPoint(quality, *search.bounds_at(search.own), may_cost))
        stopped: Stopped = next((search.stopped() for search in searches if search.stopped() != "closed"), "closed")
        if len(points) < len(chosen):
            stopped = budget.stops() or stopped
        name = model.measurements[number - 1].name
        return QualityTradeoff(model, name, today.own, today.tolerance, tuple(points), budget.elapsed, stopped)


@dataclass(eq=False)
class _MeasurementSearch(PriceSearch[ValueLine]):
    """The search over the price of a measurement of any kind, with bounds on the optimum without it."""

    without: tuple[float, float] = (-math.inf, math.inf)

    @classmethod
    def of(
        cls, model: Model, measurement: int | str, tolerance: float, relative: float | None, method: str | Method,
        budget: Budget, listener: Callable[[TradeoffProgress], None] | None,
    ) -> _MeasurementSearch:  # fmt: skip
        """Return a search for a measurement, by name or number; `relative` is None for the usual relative tolerance."""
        share = (0.0 if model.looks_are_exact else RELATIVE_TOLERANCE) if relative is None else relative
        return cls(model, _number(model, measurement), tolerance, method, budget, listener, share)

    @property
    def own(self) -> float:
        """The price in the model; 1 where that is a table, which prices multiply."""
        return 1.0 if self.own_price is None else self.own_price

    def line_of(self, solution: Solution, price: float) -> ValueLine:
        """See `PriceSearch.line_of`."""
        model, number, is_one_price = self.model, self.number, self.own_price is not None
        search = solution.search
        if search is not None:
            # Where prices are a table, a use counts what it costs at price 1.
            own = model.origin.models[0] if search.periods and isinstance(model.origin, Lifetime) else model
            table = own.measurements[number - 1].table(own.n_states, own.n_actions)
            looks = search.looks_of(np.ones_like(table) if is_one_price else table, number)
        elif is_one_price:
            looks = float(solution.evaluation.discounted_looks[number - 1])
        else:
            acts = solution.policy_graph() if solution.schedule is None else solution.schedule
            free, paid = (evaluate(at_price(model, number, times), acts).discounted_return for times in (0.0, 1.0))
            looks = free - paid
        looks = max(0.0, looks)
        return ValueLine(solution.lower + price * looks * (1 - LOOKS_ROUNDING), looks)

    def solve_without(self) -> None:
        """Solve the model without the measurement."""
        solution = self.solution(changed(self.model, self.number, lambda _: None), self.method, TIME_SHARE)
        self.without = solution.lower, min(solution.upper, *self.uppers.values())
        self.add_line(ValueLine(solution.lower, 0.0))
        self.stops[math.inf] = solution.stopped

    def price_for(self, goal: tuple[float, float], is_better: bool, share: float) -> tuple[float, float]:
        """Return bounds on the price at which the optimum is that of `goal`, a lower and an upper bound.

        By Newton's method, from below: the line of the best policy at a price meets the goal at a price that is not too high.
        """
        low, high = self._range_for(goal)
        begun = self.budget.elapsed
        limit = share * self.budget.remaining
        for _ in range(MOST_PRICES):
            price = low if is_better or 0.0 in self.uppers else 0.0
            is_done = high <= low + 1e-9 * (1 + abs(low)) or (price in self.uppers and 0.0 in self.uppers)
            if is_done or price in self.uppers or self.budget.is_over or self.budget.elapsed - begun > limit:
                break
            self.solve_at(price, min(1.0, share / 3))
            low, high = self._range_for(goal)
        return low, max(low, high)

    def _range_for(self, goal: tuple[float, float]) -> tuple[float, float]:
        """Return the price up to which some policy is above `goal`, and that from which on none is by more than the tolerance."""
        pieces, (prices, uppers) = self.inner(), self.outer()
        low = price_at_value(pieces, goal[1]) if pieces else 0.0
        high = price_at_bound(prices, uppers, goal[0] + self.tolerance)
        return (low if math.isfinite(low) else float(prices[-1])), high

    def bounds_at(self, price: float) -> tuple[float, float]:
        """Return bounds on the optimum at a solved price."""
        return max((line.at(price) for line in self.lines), default=-math.inf), self.uppers[price]

    def stopped(self) -> Stopped:
        """Return why the bounds are not closer; "closed" where every price was solved closely enough."""
        reasons = [reason for reason in self.stops.values() if reason not in ("closed", "done")]
        return reasons[0] if reasons else "closed"

    def result(self) -> MeasurementTradeoff:
        """Return the bounds at all prices solved so far."""
        pieces, (prices, uppers) = self.inner(), self.outer()
        if not pieces:
            raise PlanError(
                "no policy with a finite value was found that makes the measurement finitely often; allow more time, or use a "
                "discount below 1"
            )
        lower = envelope_values(pieces, prices)
        best = [max(self.lines, key=lambda line: line.at(price)) for price in prices.tolist()]
        gap = self.gap()
        stopped = self.stopped()
        if gap <= self.tolerance:
            stopped = "closed"
        elif self.budget.is_interrupted or (stopped == "closed" and self.budget.is_over):
            stopped = self.budget.stops() or stopped
        elif stopped == "closed":
            stopped = "exhausted"
        low = price_at_value(pieces, max(self.without))
        high = price_at_bound(prices, uppers, self.without[0] + self.tolerance)
        return MeasurementTradeoff(
            model=self.model,
            measurement=self.model.measurements[self.number - 1].name,
            tolerance=self.tolerance,
            prices=prices,
            lower=lower,
            upper=uppers,
            looks=np.array([line.looks for line in best]),
            without=self.without,
            break_even=(low, max(low, high)),
            gap=gap,
            seconds=self.budget.elapsed,
            stopped=stopped,
            lines=tuple(self.lines),
        )


# Measurements of another quality


def _number(model: Model, measurement: int | str) -> int:
    number = model.measurement_number(measurement)
    if number == 0:
        raise PlanError("the measurement is 0, which is none; give the name or number of a measurement of the model")
    return number


def largest_quality(model: Model, measurement: int | str) -> float:
    """Return the largest quality of a measurement: the chance of the first outcome is then 0 in some state."""
    law = _law(model, _number(model, measurement))
    first = np.zeros(law.shape[0])
    columns = law[:, [0]].toarray().ravel()
    rows = np.diff(law.indptr) > 0
    first[rows] = 1 - columns[rows]
    return math.inf if first.max(initial=0.0) <= 0 else float(1 / first.max())


def with_quality(model: Model, measurement: int | str, quality: float) -> Model:
    """Return the model in which the probability of every outcome of a measurement but the first is multiplied by `quality`.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.inspection()
    >>> better = am.planning.with_quality(model, "visual", 1.02)
    >>> [round(float(m.measurements[0].law.matrix().toarray()[2, 1]), 3) for m in (model, better)]
    [0.4, 0.408]
    """
    number = _number(model, measurement)
    factor = real(quality, "quality", PlanError, "a number that is 0 or more")
    name, largest = model.measurements[number - 1].name, largest_quality(model, number)
    if not 0 <= factor <= largest * (1 + 1e-12):
        raise PlanError(
            f"the quality of {name!r} is {factor:g}, expected a number from 0 to {largest:.6g}, where some outcome other than "
            "the first is certain in some state"
        )

    def change(old: Measurement) -> Measurement:
        law = old.law
        if law is None:
            raise PlanError(_exact(name))
        parts = range(law.n_rows // law.n_states)  # actions, or one part for all of them
        scaled = [_scaled(law.of_action(action, law.n_states), factor) for action in parts]
        return Measurement.noisy(
            old.name, old.cost, probabilities=scaled if law.by_action else scaled[0], outcomes=old.outcomes,
            with_actions=old.with_actions,
        )  # fmt: skip

    return model if factor == 1 else changed(model, number, change)


def _scaled(law: sparse.csr_array[np.float64], factor: float) -> sparse.csr_array[np.float64]:
    """Return a law in which all outcomes but the first have `factor` times their probability; empty rows stay empty."""
    rest = sparse.lil_array(law * factor)
    rest[:, [0]] = 0.0
    rows = np.diff(law.indptr) > 0
    left = np.where(rows, np.maximum(0.0, 1 - np.asarray(rest.sum(axis=1)).ravel()), 0.0)
    rest[:, [0]] = left[:, None]
    return sparse.csr_array(rest)


def _law(model: Model, number: int) -> sparse.csr_array[np.float64]:
    measurement = model.measurements[number - 1]
    if measurement.law is None:
        raise PlanError(_exact(measurement.name))
    return measurement.law.matrix()


def _exact(name: str) -> str:
    return (
        f"the measurement {quoted(name)} is exact, so no outcome stands for nothing found, and it has no quality that could be "
        "scaled; write it as Measurement.noisy with that outcome first"
    )
