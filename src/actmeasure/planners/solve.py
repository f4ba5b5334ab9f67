"""One way in to all planning methods."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import numpy as np

from actmeasure.errors import PlanError, unknown_name
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners import act_then_measure, baselines, certified
from actmeasure.planners.bounds import informed_bounds
from actmeasure.planners.clock import Clock, Progress
from actmeasure.planners.plan import Plan
from actmeasure.planners.solution import Solution
from actmeasure.settings import real

__all__ = ["METHODS", "solve"]

#: Methods by name; `every-k` stands for any number.
METHODS: dict[str, Callable[[Model, float, Clock], Plan]] = {
    "optimal": certified.optimal,
    "atm": act_then_measure.exact,
    "atm-qmdp": act_then_measure.with_q_mdp,
    "atm-linear": act_then_measure.linear,
    "always": baselines.always,
    "never": certified.never,
}
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
        Seconds. `optimal` and `never` then return the best so far with the bounds they have; so does Ctrl-C.
    progress : bool or function
        True prints the closing bounds; a function is called with every `Progress`.

    Returns
    -------
    Solution
        `lower` is the exact value of its schedule, `upper` a sound bound on the optimum, whatever the method.

    Examples
    --------
    >>> import actmeasure as am
    >>> solution = am.solve(am.problems.frozen_lake(4, measuring_cost=0.05))
    >>> round(solution.value, 4)
    0.6805
    """
    plan_with = _method(method)
    if not isinstance(model, Model):
        raise PlanError(f"the model is {model!r:.60}, expected a Model")
    if not real(tolerance, "tolerance", PlanError, "a number above 0, such as 1e-6") > 0:
        raise PlanError(f"tolerance is {tolerance!r}, expected a number above 0, such as 1e-6")
    if time_limit is not None and not real(time_limit, "time_limit", PlanError, "seconds above 0, or None") > 0:
        raise PlanError(f"time_limit is {time_limit!r}, expected seconds above 0, or None for no limit")
    clock = Clock(time_limit, _print_progress if progress is True else progress or None)
    plan = plan_with(model, float(tolerance), clock)
    evaluation = evaluate(model, plan.schedule)
    upper = plan.upper if plan.upper is not None else _upper(model, clock)
    return Solution(
        model=model,
        method=method,
        schedule=plan.schedule,
        evaluation=evaluation,
        lower=evaluation.discounted_return,
        upper=max(upper, evaluation.discounted_return),
        values=np.where(np.isnan(evaluation.values), plan.values, evaluation.values),
        seconds=clock.seconds,
        record=tuple(clock.record),
        claimed=plan.claimed,
        method_upper=plan.method_upper,
    )


def _method(name: str) -> Callable[[Model, float, Clock], Plan]:
    if name in METHODS:
        return METHODS[name]
    every = EVERY.fullmatch(str(name))
    if every is None:
        raise PlanError(unknown_name("method", name, [*METHODS, "every-3"]))
    return lambda model, tolerance, clock: baselines.every(model, int(every[1]), clock)


def _upper(model: Model, clock: Clock) -> float:
    """A quick bound on the optimum: the informed bound at the start."""
    values, vectors = informed_bounds(model, clock)
    if model.start_is_known:
        return float(model.initial_probabilities @ values[model.initial_states])
    return float((model.initial_probabilities @ vectors[model.initial_states]).max())


def _print_progress(progress: Progress) -> None:
    gap = progress.upper - progress.lower
    print(
        f"\r{progress.seconds:7.1f} s   {progress.lower:.6g} <= optimum <= {progress.upper:.6g}   gap {gap:.2g}   ",
        end="",
        file=sys.stderr,
        flush=True,
    )
