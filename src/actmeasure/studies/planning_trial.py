"""Planning trials, which are never ended by the clock, so that the same problem gives the same plan on every machine.

A module of its own, because stored results depend on the code that they import: a change to agents leaves planning trials valid.
"""

from __future__ import annotations

from typing import Any

from actmeasure.evaluation import evaluate
from actmeasure.interrupts import deferred_interrupts
from actmeasure.model import Model
from actmeasure.planning.solve import is_search, solve_by_work
from actmeasure.studies.spec import Trial

__all__ = ["run_plan"]


def run_plan(trial: Trial, model: Model) -> dict[str, Any]:
    """Return the columns of a planning trial: evaluation over `max_steps` steps, bounds on the optimum, why planning ended.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    with deferred_interrupts() as interrupts:
        plan = solve_by_work(model, trial.settings["tolerance"], trial.settings["beliefs"], trial.method)
        interrupts.check()
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
