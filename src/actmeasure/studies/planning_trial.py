"""Planning trials, which are never ended by the clock, so that the same problem gives the same plan on every machine.

A module of its own, because stored results depend on the code that they import: a change to agents leaves planning trials valid.
"""

from __future__ import annotations

from typing import Any

from actmeasure.evaluation import evaluate
from actmeasure.interrupts import deferred_interrupts
from actmeasure.model import Model
from actmeasure.planning.budget import Budget
from actmeasure.planning.optimal import NEGLIGIBLE_GAP
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import has_setting, method_of, solve
from actmeasure.studies.spec import Trial

__all__ = ["is_search", "plan_by_work", "run_plan"]


def is_search(method: str) -> bool:
    """Return whether a method spends a budget of work, up to a relative tolerance."""
    return has_setting(method_of(method), "relative_tolerance")


def run_plan(trial: Trial, model: Model) -> dict[str, Any]:
    """Return the columns of a planning trial: evaluation over `max_steps` steps, bounds on the optimum, why planning ended."""
    plan = plan_by_work(model, trial.method, trial.settings["tolerance"], trial.settings["beliefs"])
    acts = plan.graph if plan.schedule is None else plan.schedule  # a policy graph where looks are not exact
    assert acts is not None
    result = evaluate(model, acts, horizon=trial.max_steps)
    return {
        "discounted_return": [result.discounted_return],
        "scalarized_return": [result.scalarized_return],
        "reward": [result.reward],
        "measurements": [result.measurements],
        "steps": [result.steps],
        "lower": [plan.value if is_search(trial.method) else plan.lower],
        "upper": [plan.upper],
        "stopped": [plan.stopped],
    }


def plan_by_work(model: Model, method: str, tolerance: float, beliefs: int) -> Solution:
    """Return a solution; searches end at a gap of `tolerance`, relative to the value, or when the budget of beliefs is spent.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    with deferred_interrupts() as interrupts:
        absolute = NEGLIGIBLE_GAP if is_search(method) else tolerance
        solution = solve(model, method, absolute, relative_tolerance=tolerance, budget=Budget(work=beliefs))
        interrupts.check()
    return solution
