"""The frontier between reward and number of looks: the result of `tradeoff`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import PlanError, counted, import_extra
from actmeasure.evaluation import Evaluation
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Stopped, why_open
from actmeasure.schedule import Schedule
from actmeasure.settings import amount

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BudgetPlan", "Frontier", "FrontierPiece"]

#: Columns of `Frontier.to_pandas`.
COLUMNS = (
    *("low", "high", "discounted_reward", "discounted_looks"),
    *("reward", "measurements", "steps", "scalarized_return"),
)


@dataclass(frozen=True, eq=False)
class FrontierPiece:
    """A schedule and the interval of prices at which it is the best found.

    Attributes
    ----------
    low, high : float
        Ends of the interval; `high` is infinite for the last piece.
    schedule : Schedule
    discounted_looks : float
        Expected discounted number of looks; where costs are a table, the expected discounted cost at price 1.
    evaluation : Evaluation
        With the model's own measuring cost; the undiscounted figures are over its `horizon`.
    """

    low: float
    high: float
    schedule: Schedule
    discounted_looks: float
    evaluation: Evaluation

    @property
    def discounted_reward(self) -> float:
        """Expected discounted reward, the price of looking not subtracted."""
        return self.evaluation.discounted_reward

    @property
    def reward(self) -> float:
        """Expected undiscounted reward over the horizon."""
        return self.evaluation.reward

    @property
    def measurements(self) -> float:
        """Expected undiscounted number of looks over the horizon."""
        return self.evaluation.measurements

    @property
    def steps(self) -> float:
        """Expected number of steps over the horizon."""
        return self.evaluation.steps

    @property
    def scalarized_return(self) -> float:
        """Expected undiscounted reward minus the cost of looking, at the model's own cost, over the horizon."""
        return self.evaluation.scalarized_return

    def value(self, price: float) -> float:
        """Return the exact discounted return of the schedule when a look costs `price`."""
        return self.discounted_reward - price * self.discounted_looks

    def __repr__(self) -> str:
        return (
            f"FrontierPiece(prices {self.low:.4g} to {self.high:.4g}: discounted reward {self.discounted_reward:.6g}, "
            f"looks {self.discounted_looks:.6g}; undiscounted {self.reward:.6g}, {self.measurements:.6g})"
        )


@dataclass(frozen=True, eq=False)
class BudgetPlan:
    """The best plan found with limited expected discounted looks: a schedule, or a random choice between two.

    Attributes
    ----------
    budget : float
    pieces : tuple of FrontierPiece
        One, or two neighbours on the frontier, the one that looks more first.
    probability : float
        Of following the first piece; the choice is made once, at the start of the episode.
    reward, looks : float
        Expected discounted reward and looks (or cost at price 1, where costs are a table).
    upper : float
        No schedule or mixture of schedules within the budget has a higher expected discounted reward.
    """

    budget: float
    pieces: tuple[FrontierPiece, ...]
    probability: float
    reward: float
    looks: float
    upper: float

    def __repr__(self) -> str:
        toss = f"with probability {self.probability:.4g} " if len(self.pieces) > 1 else ""
        first = f"{toss}the schedule with {self.pieces[0].discounted_looks:.6g} looks"
        other = f", else the one with {self.pieces[1].discounted_looks:.6g}" if len(self.pieces) > 1 else ""
        return (
            f"BudgetPlan({first}{other}: reward {self.reward:.6g} of at most {self.upper:.6g}, looks {self.looks:.6g})"
        )


@dataclass(frozen=True, eq=False)
class Frontier:
    """Lower and upper bounds on the optimum at every price of a look, and the schedules behind the lower ones.

    Where the model's measuring cost is a number, the price takes its place; where it is a table per state and action, the
    price multiplies that table.

    Attributes
    ----------
    model : Model
    tolerance : float
        The gap that was asked for.
    pieces : tuple of FrontierPiece
        The schedules found, in order of the price, from 0 up.
    prices : float64 array, shape (n,)
        Those that were solved, from 0 up.
    lower, upper : float64 arrays, shape (n,)
        Bounds on the optimum there. Between the prices the optimum is at most on the chord, beyond the last at most `upper[-1]`.
    gap : float
        The largest difference of the bounds at any price (up to `prices[-1]` where every schedule found has to look). At most
        the tolerance, unless time ran out, Ctrl-C was pressed, or a price could not be solved closely enough.
    break_even : (float, float)
        Below the first price some schedule that looks is certified to be better than every one that never looks; from the
        second on, never looking is the best found and within the tolerance of the optimum. Infinite where looking is worth it
        at every price tried.
    seconds : float
    stopped : str
        Why the search ended: "closed" where the gap is within the tolerance, else "time", "interrupted" (Ctrl-C), "beliefs"
        (the limit on the work at some price), "memory" or "exhausted" (there are prices at which more work would not bring the
        bounds closer).
    """

    model: Model
    tolerance: float
    pieces: tuple[FrontierPiece, ...]
    prices: FloatArray
    lower: FloatArray
    upper: FloatArray
    gap: float
    break_even: tuple[float, float]
    seconds: float
    stopped: Stopped

    @property
    def closed(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.gap <= self.tolerance

    @property
    def note(self) -> str:
        """Why the gap is above the tolerance, and a remedy, as a sentence; empty where it is not."""
        return why_open(self.stopped, self.model.discount)

    def value(self, price: float) -> tuple[float, float]:
        """Return lower and upper bound on the optimum at a price; the lower one is the value of `schedule(price)`."""
        upper = float(np.interp(amount(price, "price", error=PlanError), self.prices, self.upper))
        return self.piece(price).value(price), upper

    def schedule(self, price: float) -> Schedule:
        """Return the best schedule found for a price."""
        return self.piece(price).schedule

    def piece(self, price: float) -> FrontierPiece:
        """Return the best piece for a price."""
        at = amount(price, "price", error=PlanError)
        return next(piece for piece in self.pieces if at <= piece.high)

    def budget(self, looks: float) -> BudgetPlan:
        """Return the best plan found with at most this many expected discounted looks (cost at price 1, if costs are a table).

        Its reward is within `gap` of the best possible: for every price, reward is at most the optimum plus price times looks.
        """
        allowed = amount(looks, "budget", error=PlanError)
        first, second, probability = self._neighbours(allowed)
        return BudgetPlan(
            budget=allowed,
            pieces=(first,) if first is second else (first, second),
            probability=probability,
            reward=_mix(probability, first.discounted_reward, second.discounted_reward),
            looks=_mix(probability, first.discounted_looks, second.discounted_looks),
            upper=float((self.upper + self.prices * allowed).min()),
        )

    def _neighbours(self, allowed: float) -> tuple[FrontierPiece, FrontierPiece, float]:
        """Return the pieces with the next more and fewer looks than allowed, and the probability of the first."""
        if self.pieces[-1].discounted_looks > allowed:
            raise PlanError(
                f"budget is {allowed:g}, but every schedule found looks {self.pieces[-1].discounted_looks:g} times or more "
                "(discounted); allow at least that"
            )
        after = next(i for i, piece in enumerate(self.pieces) if piece.discounted_looks <= allowed)
        fewer = self.pieces[after]
        if after == 0 or fewer.discounted_looks == allowed:
            return fewer, fewer, 1.0
        more = self.pieces[after - 1]
        return more, fewer, (allowed - fewer.discounted_looks) / (more.discounted_looks - fewer.discounted_looks)

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row per piece: its prices, discounted and undiscounted figures."""
        pandas = import_extra("pandas", "Frontier.to_pandas", "data")
        columns = {name: [getattr(piece, name) for piece in self.pieces] for name in COLUMNS}
        frame: pd.DataFrame = pandas.DataFrame(columns)
        return frame

    def plot(self, path_or_axes: str | os.PathLike[str] | Sequence[Any] | None = None) -> Any:
        """Draw the value over the price (left) and the reward over the looks (right); returns the two axes.

        Parameters
        ----------
        path_or_axes : path, pair of matplotlib axes, or None
            A file to write, axes to draw on, or a new figure.
        """
        from actmeasure.planning.plots import plot_frontier

        return plot_frontier(self, path_or_axes)

    def __repr__(self) -> str:
        low, high = self.break_even
        left = "" if self.closed else f", above the tolerance of {self.tolerance:.2g}"
        return (
            f"Frontier({counted(len(self.pieces), 'schedule')}, {counted(len(self.prices), 'price')} solved, "
            f"gap {self.gap:.2g}{left}; looking breaks even at a price from {low:.4g} to {high:.4g}; {self.seconds:.2g} s)"
        )


def _mix(probability: float, first: float, second: float) -> float:
    return probability * first + (1 - probability) * second
