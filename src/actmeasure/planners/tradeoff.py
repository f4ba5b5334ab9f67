"""What to do at every price of a look, and under a budget of looks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from actmeasure.errors import PlanError, quoted
from actmeasure.evaluation import LONGEST
from actmeasure.interrupts import deferred_interrupts
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.frontier import Frontier
from actmeasure.planners.price_bounds import PriceBounds
from actmeasure.planners.price_search import PriceSearch, TradeoffProgress
from actmeasure.settings import real, whole

__all__ = ["tradeoff"]


def tradeoff(
    model: Model,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
    progress: bool | Callable[[TradeoffProgress], None] = False,
    *,
    horizon: int = 200,
) -> Frontier:
    """Find the frontier between reward and looks: the best schedules for every price of a look.

    Parameters
    ----------
    model : Model
        Its measuring cost, if a number, is replaced by the price; a table per state and action is multiplied by it.
    tolerance : float
        At every price, the bounds on the optimum are to be so close.
    time_limit : float, optional
        Seconds. When they are over, or Ctrl-C is pressed, the frontier so far is returned, with the gap that is left.
    progress : bool or function
        True prints how the gap closes; a function is called with every `TradeoffProgress`, also while a price is being solved.
    horizon : int
        Steps for the undiscounted figures.

    Returns
    -------
    Frontier

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
    asked = real(tolerance, "tolerance", PlanError, "a number above 0, such as 1e-3")
    if not 0 < asked < math.inf:
        raise PlanError(f"tolerance is {tolerance!r}, expected a finite number above 0, such as 1e-3")
    if time_limit is not None and not real(time_limit, "time_limit", PlanError, "seconds above 0, or None") > 0:
        raise PlanError(f"time_limit is {time_limit!r}, expected seconds above 0, or None for no limit")
    steps = whole(horizon, "horizon", 1, LONGEST, PlanError)
    listener = _print_progress if progress is True else progress or None
    search = PriceSearch(PriceBounds(model, asked, steps), Clock(time_limit), listener)
    with deferred_interrupts() as interrupts:
        search.run(interrupts)
        stopped_by_hand = interrupts.requested
    if progress is True:
        print(file=sys.stderr)
    return search.frontier(stopped_by_hand)


def _print_progress(progress: TradeoffProgress) -> None:
    print(
        f"\r{progress.seconds:7.1f} s   {progress.solved} prices solved   gap {progress.gap:.2g}   ",
        end="",
        file=sys.stderr,
        flush=True,
    )
