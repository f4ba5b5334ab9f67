"""`tradeoff`: the best schedules for every price of a look, and the search over prices that other trade-offs share.

A schedule with discounted reward r and discounted looks l is worth r - price * l, a line in the price. The optimum is the highest
of all these lines, so it is convex and never rises. Solving at one price gives a line, which is a lower bound at every price, and
an upper bound at that price; between two solved prices the chord through their upper bounds is one too. New prices are solved
where the lines found so far cross, at the crossing with the largest gap, until no gap is above the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

import numpy as np

from actmeasure.errors import PlanError, counted, quoted
from actmeasure.evaluation import LONGEST, Evaluation, evaluate
from actmeasure.model import Measurement, Model, lifetime
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.frontier import Frontier, FrontierPiece
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import Method, method_of, solve
from actmeasure.progress import end_line, rewrite_line
from actmeasure.schedule import Schedule
from actmeasure.settings import amount, real, whole

if TYPE_CHECKING:
    from actmeasure.planning.measurement_tradeoff import MeasurementTradeoff, QualityTradeoff

__all__ = [
    "Piece",
    "PriceLine",
    "PriceSearch",
    "TradeoffProgress",
    "ValueLine",
    "at_price",
    "changed",
    "envelope",
    "envelope_values",
    "frontier_pieces",
    "one_price",
    "price_at_bound",
    "price_at_value",
    "tightened_bounds",
    "tradeoff",
]


@overload
def tradeoff(
    model: Model,
    tolerance: float = ...,
    time_limit: float | None = ...,
    progress: bool | Callable[[TradeoffProgress], None] = ...,
    *,
    method: str | Method = ...,
    horizon: int = ...,
    budget: Budget | None = ...,
    measurement: None = ...,
    quality: Literal[False] = ...,
    relative_tolerance: float | None = ...,
) -> Frontier: ...


@overload
def tradeoff(
    model: Model,
    tolerance: float = ...,
    time_limit: float | None = ...,
    progress: bool | Callable[[TradeoffProgress], None] = ...,
    *,
    method: str | Method = ...,
    horizon: int = ...,
    budget: Budget | None = ...,
    measurement: int | str,
    quality: Literal[False] = ...,
    relative_tolerance: float | None = ...,
) -> MeasurementTradeoff: ...


@overload
def tradeoff(
    model: Model,
    tolerance: float = ...,
    time_limit: float | None = ...,
    progress: bool | Callable[[TradeoffProgress], None] = ...,
    *,
    method: str | Method = ...,
    horizon: int = ...,
    budget: Budget | None = ...,
    measurement: int | str,
    quality: Literal[True] | Sequence[float],
    relative_tolerance: float | None = ...,
) -> QualityTradeoff: ...


def tradeoff(
    model: Model,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
    progress: bool | Callable[[TradeoffProgress], None] = False,
    *,
    method: str | Method = "optimal",
    horizon: int = 200,
    budget: Budget | None = None,
    measurement: int | str | None = None,
    quality: bool | Sequence[float] = False,
    relative_tolerance: float | None = None,
) -> Frontier | MeasurementTradeoff | QualityTradeoff:
    """Find the frontier between reward and looks: the best schedules for every price of a look, or of one measurement.

    Parameters
    ----------
    model : Model
        Its measuring cost, if a number, is replaced by the price; a table per state and action is multiplied by it. Without
        `measurement` its looks have to be exact.
    tolerance : float
        Largest difference of the bounds on the optimum, at every price.
    time_limit : float, optional
        Seconds. When they are over, or Ctrl-C is pressed, the frontier so far is returned, with the gap that is left.
    progress : bool or function
        True prints how the gap closes; a function is called with every `TradeoffProgress`, also while a price is being solved.
    method : str or Method
        How the model is solved at each price, as for `solve`. With other methods than `optimal` the bounds are as sound, but may
        stay further apart.
    horizon : int
        Steps for the undiscounted figures.
    budget : Budget, optional
        Instead of `time_limit`; a limit on work holds for the search at each price. Its clock starts anew.
    measurement : int or str, optional
        Vary the price of this measurement only, on any model.
    quality : bool or sequence of float
        Compare instruments of these qualities instead, factors of the chance of every outcome of the measurement but the first
        (for a detection, of the probability of detection): what each is worth, and what it may cost. True: some qualities up to
        the largest that is possible.
    relative_tolerance : float, optional
        With `measurement`: bounds may also differ by this share of the optimum; by default 0 where looks are exact, and otherwise
        1e-3.

    Returns
    -------
    Frontier, MeasurementTradeoff or QualityTradeoff
        The second with `measurement`, the third also with `quality`.

    Examples
    --------
    >>> import actmeasure as am
    >>> frontier = am.tradeoff(am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=1.0))
    >>> [round(price, 3) for price in frontier.break_even]
    [0.16, 0.16]
    >>> round(frontier.budget(0.5).probability, 2)
    0.4
    """
    if not isinstance(model, Model):
        raise PlanError(f"the model is {quoted(model)}, expected a Model")
    if measurement is None:
        if quality is not False or relative_tolerance is not None:
            raise PlanError("quality and relative_tolerance are those of one measurement; name it with measurement")
        names = " or ".join(f"measurement={look.name!r}" for look in model.measurements) or "a model with measurements"
        model.require_exact_looks("tradeoff, which varies the price of a look,", f"name one measurement: {names}")
    tolerance = amount(tolerance, "tolerance", True, PlanError, "a finite number above 0, such as 1e-3")
    budget = Budget.of(time_limit, budget=budget)
    steps = whole(horizon, "horizon", 1, LONGEST, PlanError)
    listener = (lambda now: rewrite_line(str(now))) if progress is True else progress or None
    method_of(method)  # so that an unknown name is refused now
    if measurement is not None:
        result = _of_measurement(model, measurement, quality, tolerance, relative_tolerance, method, budget, listener)
        if progress is True:
            end_line()
        return result
    search = _ScheduleSearch(model, 1, tolerance, method, budget, listener, horizon=steps)
    with budget.deferred_interrupts():
        search.run()
        if progress is True:
            end_line()
        return search.frontier()


def _of_measurement(
    model: Model, measurement: int | str, quality: bool | Sequence[float], tolerance: float, relative: float | None,
    method: str | Method, budget: Budget, listener: Callable[[TradeoffProgress], None] | None,
) -> MeasurementTradeoff | QualityTradeoff:  # fmt: skip
    """Return the trade-off in the price, or in the quality, of one measurement."""
    from actmeasure.planning.measurement_tradeoff import measurement_tradeoff, quality_tradeoff

    if relative is not None:
        expected = "a share from 0 to 1, such as 1e-3"
        if not 0 <= real(relative, "relative_tolerance", PlanError, expected) <= 1:
            raise PlanError(f"relative_tolerance is {relative!r}, expected {expected}")
        relative = float(relative)
    if quality is False:
        return measurement_tradeoff(model, measurement, tolerance, relative, method, budget, listener)
    if quality is not True and (isinstance(quality, str) or not isinstance(quality, Sequence) or not quality):
        raise PlanError(f"quality is {quoted(quality)}, expected True, or a list of factors such as [0.5, 1.0]")
    chosen = None if quality is True else quality
    return quality_tradeoff(model, measurement, chosen, tolerance, relative, method, budget, listener)


# Lines in the price, and envelopes.

#: Relative difference up to which two prices, or two numbers of looks, are equal.
EQUAL_WITHIN = 1e-12


@dataclass(frozen=True, eq=False)
class ValueLine:
    """The value of a policy, or a lower bound on it, as a line in the price: `reward - price * looks`."""

    reward: float
    looks: float

    def at(self, price: float) -> float:
        return self.reward - price * self.looks


L = TypeVar("L", bound=ValueLine)


@dataclass(frozen=True, eq=False)
class Piece(Generic[L]):
    """A line and the prices between which it is the highest."""

    line: L
    low: float
    high: float


def envelope(lines: list[L], negligible: float) -> list[Piece[L]]:
    """Return the upper envelope of lines for prices from 0 to infinity, without pieces that rise by less than `negligible`."""
    kept = [piece.line for piece in _highest(lines)]
    while len(kept) > 1:
        rises = [_rise(kept, i) for i in range(len(kept) - 1)]
        least = int(np.argmin(rises))
        if rises[least] >= negligible:
            break
        del kept[least]
    return _highest(kept)


def _highest(lines: list[L]) -> list[Piece[L]]:
    if not lines:
        return []
    line, low = max(lines, key=lambda line: (line.reward, -line.looks)), 0.0
    pieces: list[Piece[L]] = []
    while True:
        flatter = [other for other in lines if other.looks < line.looks - EQUAL_WITHIN * (1 + line.looks)]
        if not flatter:
            return [*pieces, Piece(line, low, math.inf)]
        # At a crossing of several, the flattest is the highest afterwards.
        after = min(flatter, key=lambda other: (_crossing(line, other), other.looks))
        high = max(low, _crossing(line, after))
        if high > low:
            pieces.append(Piece(line, low, high))
        line, low = after, high


def _crossing(steep: ValueLine, flat: ValueLine) -> float:
    return (steep.reward - flat.reward) / (steep.looks - flat.looks)


def _rise(lines: Sequence[ValueLine], i: int) -> float:
    """Return how far line `i` of an envelope rises above the others at most; not for the last line, which has no limit."""
    price = 0.0 if i == 0 else _crossing(lines[i - 1], lines[i + 1])
    return lines[i].at(price) - lines[i + 1].at(price)


def tightened_bounds(uppers: dict[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return the solved prices in order and the bounds there, tightened as the optimum is convex and never rises."""
    prices = np.array(sorted(uppers))
    bounds = np.minimum.accumulate([uppers[price] for price in prices])
    hull: list[int] = []
    for i in range(len(prices)):
        while len(hull) > 1 and _is_above(prices, bounds, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return prices, np.interp(prices, prices[hull], bounds[hull])


def _is_above(x: FloatArray, y: FloatArray, left: int, middle: int, right: int) -> bool:
    """Return whether the middle point is on or above the chord between the other two."""
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= (y[right] - y[left]) * (x[middle] - x[left]))


def envelope_values(pieces: Sequence[Piece[L]], prices: FloatArray) -> FloatArray:
    """Return the values of the inner envelope at some prices."""
    if not pieces:
        return np.full(len(prices), -np.inf)
    rewards, looks = (np.array([getattr(piece.line, name) for piece in pieces]) for name in ("reward", "looks"))
    return np.asarray((rewards - prices[:, None] * looks).max(axis=1))


def price_at_value(pieces: Sequence[Piece[L]], value: float) -> float:
    """Return the price up to which the inner envelope is above a value."""
    for piece in pieces:
        if piece.line.at(piece.low) <= value:
            return piece.low
        meets = math.inf if piece.line.looks == 0 else (piece.line.reward - value) / piece.line.looks
        if meets < piece.high:
            return meets
    return math.inf


def price_at_bound(prices: FloatArray, uppers: FloatArray, value: float) -> float:
    """Return the price from which on the outer envelope is at most a value."""
    below = np.flatnonzero(uppers <= value)
    if not len(below):
        return math.inf
    i = int(below[0])
    # In reverse order the values rise, as `interp` requires.
    return float(np.interp(value, uppers[[i, i - 1]], prices[[i, i - 1]])) if i > 0 else float(prices[0])


# Which prices to solve, and for how long.

#: Tolerance at a single price, as a share of the whole; the rest is left for the chords between prices.
SOLVING_SHARE = 0.25
#: With a time limit, the share of the remaining time that a single price may take, and the least number of seconds.
TIME_SHARE, LEAST_PRICE_SECONDS = 0.25, 1e-3
#: The same when prices with the largest gaps are solved again at the end.
LAST_TIME_SHARE = 0.6
#: A crossing is solved only if its gap exceeds that of the prices around it by this share of the tolerance: otherwise the gap
#: is the solver's, and further prices would not close it.
CROSSING_SHARE = 0.5
#: Largest price tried, as a multiple of the largest reward (divided by the largest cost where costs are a table).
LARGEST_PRICE_RATIO = 1e6


@dataclass(frozen=True)
class TradeoffProgress:
    """State of the frontier after some seconds: prices solved and the largest gap, infinite before the first.

    `str` gives a line for people.
    """

    seconds: float
    solved: int
    gap: float

    def __str__(self) -> str:
        gap = f", gap {self.gap:.2g}" if math.isfinite(self.gap) else ""
        return f"{counted(self.solved, 'price')} solved{gap}, {self.seconds:.0f} s"


@dataclass(eq=False)
class PriceSearch(Generic[L]):
    """Solve price after price of one measurement until the bounds on the optimum are within the tolerance at every price.

    A subclass says which line in the price a solution gives, and bounds the optimum without the measurement.

    Attributes
    ----------
    model : Model
    number : int
        Of the measurement, counted from 1.
    tolerance : float
    method : str or Method
        How prices are solved.
    budget : Budget
    listener : function, optional
        Called with every `TradeoffProgress`.
    relative : float, optional
        The tolerance is at least this share of the optimum at every price solved; by default it stays as it is.
    negligible : float
        Pieces of the envelope that rise above their neighbours by less than this share of the tolerance are left out.
    lines : list of ValueLine
        Policies found, as lines in the price: the highest is a lower bound on the optimum.
    uppers : dict
        Upper bounds on the optimum at the prices solved.
    stops : dict
        Why the solver stopped at each price solved.
    unsolved : set
        Prices at which the solver found no bound at all.
    reported_gap : float
        The largest gap when it was last reported.
    """

    model: Model
    number: int
    tolerance: float
    method: str | Method
    budget: Budget
    listener: Callable[[TradeoffProgress], None] | None
    relative: float | None = None
    negligible: float = 0.0
    lines: list[L] = field(default_factory=list)
    uppers: dict[float, float] = field(default_factory=dict)
    stops: dict[float, Stopped] = field(default_factory=dict)
    unsolved: set[float] = field(default_factory=set)
    reported_gap: float = math.inf

    def line_of(self, solution: Solution, price: float) -> L:
        """Return a lower bound on what the policy of a solution at a price earns, as a line in the price."""
        raise NotImplementedError

    def solve_without(self) -> None:
        """Bound the optimum without the measurement, and add the line of what is found."""
        raise NotImplementedError

    def run(self) -> None:
        """Solve price after price until the gap is closed or the budget is over."""
        self._solve_first()
        if not self.budget.is_over:
            self.solve_without()
        self._report()
        solved_again: set[float] = set()
        while not self.budget.is_over:
            price, share = self._next_price(), TIME_SHARE
            # Without a time limit, gaps at solved prices have other reasons than a lack of time.
            if price is None and self.budget.seconds is not None:
                price, share = self._most_open(solved_again), LAST_TIME_SHARE
            if price is None:
                break
            if price in self.uppers:
                solved_again.add(price)
            try:
                self.solve_at(price, share)
            except PlanError:
                # There is no bound at this price, in its share of the time or at all. The bounds at other prices still hold, and
                # the gap below their chord counts; so this price is left out, and the search goes on at others.
                self.unsolved.add(price)

    def _solve_first(self) -> None:
        """Solve at price 0, which every bound needs; if its share of the time is too short, with all of the time."""
        try:
            self.solve_at(0.0)
        except PlanError:
            if self.budget.seconds is None or self.budget.is_interrupted:
                raise
        else:
            return
        try:
            self.solve_at(0.0, share=1.0)
        except PlanError as error:
            if not self.budget.is_out_of_time:
                raise
            raise PlanError(
                f"the time limit of {self.budget.seconds:g} s was over before there was a bound at any price; allow more time"
            ) from error

    def solve_at(self, price: float, share: float = TIME_SHARE) -> None:
        """Solve at a price, with a share of the remaining time, and add its line and its upper bound."""
        solution = self.solution(at_price(self.model, self.number, price), self.method, share)
        if self.relative is not None:
            self.tolerance = max(self.tolerance, self.relative * abs(solution.upper))
        self.add_line(self.line_of(solution, price))
        self.uppers[price] = min(solution.upper, self.uppers.get(price, math.inf))
        self.stops[price] = solution.stopped
        self._report()

    def solution(self, model: Model, method: str | Method, share: float, seconds: float = math.inf) -> Solution:
        """Solve a model with a share of the remaining time, and at most `seconds`."""
        budget = self.budget.separate(share, seconds, LEAST_PRICE_SECONDS, progress=lambda _: self._report_again())
        relative = None if self.relative is None else SOLVING_SHARE * self.relative
        return solve(model, method, SOLVING_SHARE * self.tolerance, relative_tolerance=relative, budget=budget)

    def add_line(self, line: L) -> None:
        """Add a line, if it is finite: without discount a policy may look, or lose, without end."""
        if math.isfinite(line.reward) and math.isfinite(line.looks):
            self.lines.append(line)

    def _report(self) -> None:
        """Report the present gap."""
        if self.listener is not None:
            self.reported_gap = self.gap()
            self._report_again()

    def _report_again(self) -> None:
        """Report the last gap again: a single price may take long."""
        if self.listener is not None:
            self.listener(TradeoffProgress(self.budget.elapsed, len(self.uppers), self.reported_gap))

    def _next_price(self) -> float | None:
        """Return the crossing of lines with the largest gap that another solution may close; None if there is none.

        If every policy found has to look, the optimum falls without end, and is followed up to the largest price.
        """
        (prices, uppers), pieces = self.outer(), self.inner()
        largest = self._largest_price()
        has_flat_line = bool(pieces) and pieces[-1].line.looks == 0
        if not has_flat_line and prices[-1] < largest and largest not in self.unsolved:
            return largest
        tried = np.array([*prices, *self.unsolved])
        solved_gaps = uppers - envelope_values(pieces, prices)
        best, widest = None, self.tolerance
        for piece in pieces[1:]:
            price = piece.low
            gap = float(np.interp(price, prices, uppers)) - piece.line.at(price)
            around = float(np.interp(price, prices, solved_gaps))
            is_new = np.abs(tried - price).min() > EQUAL_WITHIN * (1 + price) and price <= largest
            # A price beyond the last has no chord above it: it is always worth solving.
            least = 0.0 if price > prices[-1] else around + CROSSING_SHARE * self.tolerance
            if is_new and gap > max(widest, least):
                best, widest = price, gap
        return best

    def _most_open(self, besides: Collection[float]) -> float | None:
        """Return the solved price with the largest gap, if that is above the tolerance, except those in `besides`."""
        prices, uppers = self.outer()
        gaps = uppers - envelope_values(self.inner(), prices)
        gaps[np.isin(prices, list(besides))] = 0.0
        worst = int(np.argmax(gaps))
        return float(prices[worst]) if gaps[worst] > self.tolerance else None

    def _largest_price(self) -> float:
        unit = 1.0 if self.own_price is not None else float(np.max(self._measurement.cost)) or 1.0
        return LARGEST_PRICE_RATIO * (float(np.abs(self.model.rewards).max()) or 1.0) / unit

    @property
    def _measurement(self) -> Measurement:
        return self.model.measurements[self.number - 1]

    @property
    def own_price(self) -> float | None:
        """The price of the measurement in the model; None where it depends on state, action or period."""
        return one_price(self.model, self.number)

    def gap(self) -> float:
        """Return the largest difference of the bounds, which is at a solved price or at a crossing of lines."""
        pieces = self.inner()
        if not self.uppers or not pieces:
            return math.inf
        prices, uppers = self.outer()
        if pieces[-1].line.looks > 0 and prices[-1] < self._largest_price():
            return math.inf
        crossings = np.array([piece.low for piece in pieces])
        crossings = crossings if pieces[-1].line.looks == 0 else crossings[crossings <= prices[-1]]
        where = np.concatenate([prices, crossings])
        return max(0.0, float((np.interp(where, prices, uppers) - envelope_values(pieces, where)).max()))

    def inner(self) -> list[Piece[L]]:
        """Return the upper envelope of the lines found: a lower bound on the optimum at every price."""
        return envelope(self.lines, self.negligible * self.tolerance)

    def outer(self) -> tuple[FloatArray, FloatArray]:
        """Return the solved prices in order and upper bounds there; the chords between them are upper bounds too."""
        return tightened_bounds(self.uppers)


def one_price(model: Model, number: int) -> float | None:
    """Return the price of a measurement; None where it depends on state, action or period."""
    models = model.origin.models if isinstance(model.origin, Lifetime) else (model,)
    costs = [one.measurements[number - 1].cost for one in models]
    first = costs[0]
    return first if isinstance(first, float) and all(isinstance(c, float) and c == first for c in costs) else None


def changed(model: Model, number: int, change: Callable[[Measurement], Measurement | None]) -> Model:
    """Return the model with a changed measurement, or without it where `change` returns None; in all periods of a finite life."""
    origin = model.origin
    if isinstance(origin, Lifetime):
        models = [changed(one, number, change) for one in origin.models]
        once = models[0] if origin.is_stationary else models
        return lifetime(once, origin.periods, origin.final, discount=model.discount)
    before, made, after = (
        model.measurements[: number - 1],
        change(model.measurements[number - 1]),
        model.measurements[number:],
    )
    return model.replace(measurements=[*before, *([] if made is None else [made]), *after])


def at_price(model: Model, number: int, price: float) -> Model:
    """Return the model with this price of a measurement, or with its table of prices multiplied by it."""
    is_one_price = one_price(model, number) is not None
    return changed(model, number, lambda old: replace(old, cost=price if is_one_price else price * old.cost))


# The frontier of schedules.

#: Time for the best schedule that never looks: the larger of these seconds and this multiple of the time of the first price.
NEVER_SECONDS, NEVER_TIMES = 60.0, 5.0


@dataclass(frozen=True, eq=False)
class PriceLine(ValueLine):
    """A schedule and its value as a line in the price."""

    schedule: Schedule
    evaluation: Evaluation


def frontier_pieces(pieces: Sequence[Piece[PriceLine]]) -> tuple[FrontierPiece, ...]:
    """Return the pieces of an envelope of schedules as a frontier has them."""
    return tuple(
        FrontierPiece(piece.low, piece.high, piece.line.schedule, piece.line.looks, piece.line.evaluation)
        for piece in pieces
    )


@dataclass(eq=False)
class _ScheduleSearch(PriceSearch[PriceLine]):
    """The search over the price of the only measurement, which is exact.

    Attributes
    ----------
    horizon : int
        Steps for the undiscounted figures.
    never_upper : float
        Upper bound on schedules that never look.
    """

    negligible: float = 0.01
    horizon: int = 1
    never_upper: float = math.inf

    def line_of(self, solution: Solution, price: float) -> PriceLine:
        """See `PriceSearch.line_of`; it does not depend on the price."""
        assert solution.schedule is not None  # looks are exact
        evaluation = evaluate(self.model, solution.schedule, self.horizon)
        reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
        if self.own_price is None:
            looks = reward - evaluation.discounted_return
            # A difference of equal sums is rounding, and no look.
            looks = 0.0 if looks <= EQUAL_WITHIN * (1 + abs(reward)) else looks
        return PriceLine(reward, looks, solution.schedule, evaluation)

    def solve_without(self) -> None:
        """Find the best schedule that never looks."""
        # Without this solution only the break-even price is less precise, as bounds on the optimum hold for it too.
        with suppress(PlanError):
            limit = max(NEVER_SECONDS, NEVER_TIMES * self.budget.elapsed)
            solution = self.solution(self.model, "never", TIME_SHARE, limit)
            self.add_line(self.line_of(solution, 0.0))
            if solution.method_upper is not None:
                self.never_upper = solution.method_upper

    def frontier(self) -> Frontier:
        """Return the frontier so far."""
        pieces = self.inner()
        if not pieces:
            raise PlanError(
                "no schedule with a finite reward and finitely many looks was found; allow more time, or use a discount below 1"
            )
        prices, uppers = self.outer()
        lowers = envelope_values(pieces, prices)
        for array in (prices, lowers, uppers):
            array.setflags(write=False)
        return Frontier(
            model=self.model,
            tolerance=self.tolerance,
            pieces=frontier_pieces(pieces),
            prices=prices,
            lower=lowers,
            upper=uppers,
            gap=self.gap(),
            break_even=self._break_even(pieces, prices, uppers),
            seconds=self.budget.elapsed,
            stopped=self._stopped(),
        )

    def _break_even(
        self, pieces: list[Piece[PriceLine]], prices: FloatArray, uppers: FloatArray
    ) -> tuple[float, float]:
        blind = max(
            (line.reward for line in self.lines if line.evaluation.discounted_measurements == 0), default=-math.inf
        )
        # Never looking is one way to behave at any price, so the bounds on the optimum hold for it as well.
        low = price_at_value(pieces, max(blind, min(self.never_upper, float(uppers.min()))))
        # Never looking is the best found from `high` on; that is enough only where the bound confirms it.
        high = max(price_at_value(pieces, blind), price_at_bound(prices, uppers, blind + self.tolerance))
        return low, high

    def _stopped(self) -> Stopped:
        reasons = set(self.stops.values())
        is_short = self.budget.seconds is not None and (
            self.budget.is_out_of_time or bool(self.unsolved) or "time" in reasons
        )
        if self.gap() <= self.tolerance:
            return "closed"
        if self.budget.is_interrupted:
            return "interrupted"
        if is_short:
            return "time"
        return next((reason for reason in ("beliefs", "memory") if reason in reasons), "exhausted")
