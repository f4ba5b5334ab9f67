"""What a schedule is worth from every state that it has a plan for."""

from __future__ import annotations

import numpy as np

from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = ["values_of"]


def values_of(model: Model, schedule: Schedule) -> FloatArray:
    """Discounted return from each state once it is known, shape (S,): 0 where terminal, -infinity where there is no plan."""
    planned = schedule.plan_of_state >= 0
    values = np.where(model.terminal, 0.0, -np.inf)
    if planned.any():
        anywhere = model.replace(initial=planned / planned.sum(), reveal_start=True)
        values[planned] = evaluate(anywhere, schedule).values[planned]
    return values
