"""One way in to all planning methods."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable

import numpy as np

from actmeasure.errors import PlanError, quoted, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.markov import RoundingError
from actmeasure.model import Model
from actmeasure.planning import act_then_measure, baselines, optimal
from actmeasure.planning.budget import Clock, Progress
from actmeasure.planning.solution import Plan, Solution
from actmeasure.settings import real

__all__ = ["METHODS", "method_of", "solve"]

#: Methods by name; `every-k` stands for any number.
METHODS: dict[str, Callable[[Model, float, Clock], Plan]] = {
    "optimal": optimal.optimal,
    "atm": act_then_measure.exact,
    "atm-qmdp": act_then_measure.with_q_mdp,
    "atm-linear": act_then_measure.linear,
    "always": baselines.always,
    "never": optimal.never,
}
#: How far the value of a schedule may be above the bound, relatively.
ROUNDING = 1e-7
#: A calendar with longer pauses is as good as none.
LARGEST_K = 10_000
EVERY = re.compile(r"every-([1-9][0-9]*)")


def solve(
    model: Model,
    method: str = "optimal",
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] = False,
) -> Solution:
    """Plan: what to do, when to look, and how good that provably is.

    Parameters
    ----------
    model : Model
    method : str
        `optimal`: bounds on the optimum within `tolerance`, or as close as the time allows. `atm`: act-then-measure, with the
        best moment to look along its control. `atm-qmdp`: as the paper runs it, which can walk in circles for ever.
        `atm-linear`: the paper's equations as printed, whose claimed value is not what the schedule earns. `always`: look at
        every step. `never`: the best plan that never looks. `every-3` (any number): look at every third step.
    tolerance : float
    time_limit : float, optional
        Seconds. `optimal`, `never` and `atm` then return the best so far with the bounds they have; so does Ctrl-C. The other
        methods have nothing to return before they are done.
    progress : bool or function
        True prints the closing bounds; a function is called with every `Progress`.

    Returns
    -------
    Solution
        `lower` is the exact value of its schedule, `upper` a sound bound on the optimum, whatever the method; `stopped` says
        why planning stopped.

    Examples
    --------
    >>> import actmeasure as am
    >>> solution = am.solve(am.problems.frozen_lake(4, measuring_cost=0.05))
    >>> round(solution.value, 4)
    0.6805
    """
    plan_with = method_of(method)
    if not isinstance(model, Model):
        raise PlanError(f"the model is {quoted(model)}, expected a Model")
    if not 0 < real(tolerance, "tolerance", PlanError, "a number above 0, such as 1e-6") < math.inf:
        raise PlanError(f"tolerance is {tolerance!r}, expected a number above 0, such as 1e-6")
    if time_limit is not None and not real(time_limit, "time_limit", PlanError, "seconds above 0, or None") > 0:
        raise PlanError(f"time_limit is {time_limit!r}, expected seconds above 0, or None for no limit")
    if not isinstance(progress, bool) and not callable(progress):
        raise PlanError(f"progress is {quoted(progress)}, expected True, False or a function")
    clock = Clock(time_limit, _print_progress if progress is True else progress or None)
    plan = plan_with(model, float(tolerance), clock)
    try:
        evaluation = evaluate(model, plan.schedule)
    except RoundingError as error:
        raise PlanError(
            "part of the problem is left with a chance so small that what a schedule earns is lost in rounding; use a discount "
            "below 1"
        ) from error
    # Without discount, gains and losses that alternate for ever have no sum; nothing finite is certain then.
    value = -math.inf if math.isnan(evaluation.discounted_return) else evaluation.discounted_return
    _check_bound(model, value, plan.upper)
    return Solution(
        model=model,
        method=method,
        schedule=plan.schedule,
        evaluation=evaluation,
        lower=value - evaluation.discounted_error,
        upper=max(plan.upper, value),
        values=np.where(np.isnan(evaluation.values), plan.values, evaluation.values),
        seconds=clock.seconds,
        stopped=plan.stopped,
        record=tuple(clock.record),
        claimed=plan.claimed,
        method_upper=plan.method_upper,
    )


def method_of(name: str) -> Callable[[Model, float, Clock], Plan]:
    """The function behind a method's name; an unknown one is a `PlanError` that says what was probably meant."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    every = EVERY.fullmatch(str(name))
    if every is not None and len(every[1]) <= len(str(LARGEST_K)) and int(every[1]) <= LARGEST_K:
        return lambda model, tolerance, clock: baselines.every(model, int(every[1]), clock)
    if every is not None:
        raise PlanError(
            f"the method is {quoted(name)}, but nobody looks so rarely; use never, or every-k with k up to {LARGEST_K}"
        )
    if str(name).startswith("every-"):
        raise PlanError(
            f"the method is {quoted(name)}, expected every-k with k a whole number from 1 up, such as every-3"
        )
    raise PlanError(unknown_name("method", name, [*METHODS, "every-3"]))


def _check_bound(model: Model, value: float, upper: float) -> None:
    """A value may exceed the bound by rounding only."""
    scale = 1 + abs(upper) + float(np.abs(model.rewards).max())
    if value <= upper + ROUNDING * scale:
        return
    if model.discount == 1:
        raise PlanError(
            "without discount, the schedule goes round for ever in a circle of gains and losses, which have no sum, or what it "
            "earns is lost in rounding because ends are too unlikely; use a discount below 1"
        )
    raise RuntimeError(
        f"the schedule earns {value!r}, above the bound {upper!r} on every schedule; this is an error in actmeasure, not in "
        "your model: please report it with the model (model.save writes it to a file)"
    )


def _print_progress(progress: Progress) -> None:
    gap = progress.upper - progress.lower
    print(
        f"\r{progress.seconds:7.1f} s   {progress.lower:.6g} <= optimum <= {progress.upper:.6g}   gap {gap:.2g}   ",
        end="",
        file=sys.stderr,
        flush=True,
    )
