"""What many schedules are worth, discounted: all that a search over rules needs, at a part of the price of `evaluate`."""

from __future__ import annotations

import numpy as np

from actmeasure import markov
from actmeasure.chain import PlanChain, plan_chain
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.planners.values import values_of
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = ["discounted_value", "discounted_values", "discounted_visits"]

#: Visits are added up until so little is left, or for so many moves.
LITTLE, MOST_MOVES = 1e-9, 1_000


def discounted_value(model: Model, schedule: Schedule) -> float:
    """Discounted return from the start; minus infinity where, without discount, it has no sum."""
    if model.discount == 1:
        value = evaluate(model, schedule).discounted_return
        return -np.inf if np.isnan(value) else value
    chain = plan_chain(model, schedule)
    return float(chain.start @ _returns(chain, model.discount))


def discounted_values(model: Model, schedule: Schedule) -> FloatArray:
    """Discounted return from each state of a schedule that has a plan for all of them, shape (S,); 0 where terminal."""
    if model.discount == 1:
        return values_of(model, schedule)
    running = ~model.terminal
    chain = plan_chain(model.replace(initial=running / running.sum(), reveal_start=True), schedule)
    values = np.zeros(model.n_states)
    known = np.flatnonzero(chain.states >= 0)
    values[chain.states[known]] = _returns(chain, model.discount)[known]
    return values


def discounted_visits(model: Model, schedule: Schedule) -> FloatArray:
    """About how often each state is seen, discounted, shape (S,): good enough to say which ones come first."""
    chain = plan_chain(model, schedule)
    factors = np.float64(model.discount) ** chain.durations
    weights, visits = chain.start, np.zeros_like(chain.start)
    for _ in range(MOST_MOVES):
        visits = visits + weights
        weights = np.asarray((weights * factors) @ chain.moves)
        if weights.sum() < LITTLE:
            break
    found = np.zeros(model.n_states)
    known = np.flatnonzero(chain.states >= 0)
    found[chain.states[known]] = visits[known]
    return found


def _returns(chain: PlanChain, discount: float) -> FloatArray:
    """Discounted return from each node, shape (n_nodes,)."""
    returns = chain.totals(discount)[:, :1]
    return markov.discounted_sums(chain.moves, np.float64(discount) ** chain.durations, returns)[:, 0]
