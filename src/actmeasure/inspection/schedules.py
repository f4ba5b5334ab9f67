"""Operations on schedules: the best of several, plans for unexpected states, and fast discounted values."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from actmeasure import markov
from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.evaluation import PlanChain, evaluate, plan_chain
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.baselines import values_of
from actmeasure.planning.budget import Budget
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = [
    "best_of",
    "completed",
    "discounted_value",
    "discounted_values",
    "discounted_visits",
    "is_rounding",
    "reachable_part",
    "valid_on_other_models",
]

#: Relative difference up to which exact values count as equal.
EQUAL_VALUES = 1e-9
#: Largest number of states for which `completed` adds plans.
MOST_STATES = 500
#: Visits are summed until the remaining weight is below this, or up to this number of plans.
LITTLE, MOST_MOVES = 1e-9, 1_000


def is_rounding(difference: float, value: float) -> bool:
    """Return whether a difference between exact values may come from rounding alone."""
    return abs(difference) <= EQUAL_VALUES * (1 + abs(value))


def best_of(solution: Solution, others: Iterable[tuple[str, Schedule]], upper: float) -> tuple[Solution, str]:
    """Return the solution with the best of its own and other schedules, and the name of that; empty for its own.

    Parameters
    ----------
    solution : Solution
    others : pairs of name and schedule
    upper : float
        An upper bound on the optimum; the smaller one of it and the solution's is kept.
    """
    model = solution.model
    best, name = replace(solution, upper=max(min(solution.upper, upper), solution.value)), ""
    for other, schedule in others:
        evaluation = evaluate(model, schedule)
        value = evaluation.discounted_return
        if math.isnan(value) or value <= best.value or is_rounding(value - best.value, value):
            continue
        bound = max(best.upper, value)
        best = replace(best, schedule=reachable_part(model, schedule), evaluation=evaluation, lower=value, upper=bound)
        name = other
    return best, name


def reachable_part(model: Model, schedule: Schedule) -> Schedule:
    """Return the schedule with plans only for the states that can be observed when it is followed."""
    states = np.unique(plan_chain(model, schedule).states)
    plans = {int(state): schedule[int(state)] for state in states if state >= 0 and int(state) in schedule}
    return Schedule(plans, schedule.n_states, schedule.start)


def completed(model: Model, schedule: Schedule, tolerance: float, budget: Budget) -> Schedule:
    """Return the schedule with plans also for states that are not observed when it is followed, if there is time to find them.

    The best plan from a known state does not depend on the start, so they are those of the model with a uniform start.
    """
    running = ~model.terminal
    if model.n_states > MOST_STATES or len(schedule) >= np.count_nonzero(running):
        return schedule
    anywhere = model.replace(initial=running / running.sum(), reveal_start=True)
    plans: dict[int, BlindPlan] = {}
    with contextlib.suppress(PlanError):  # without discount, some states may have no finite value
        plans = dict(solve(anywhere, "optimal", tolerance / running.sum(), budget=budget).schedule)
    return Schedule(plans | dict(schedule), model.n_states, schedule.start)


def valid_on_other_models(model: Model, schedule: Schedule) -> Schedule:
    """Return a schedule with the same behaviour on the model, whose plans can be followed on another model as well.

    That a state is known without a measurement, or that the episode has ended, may be true on one model only. So the plan of a
    known state is appended, and a plan that ends repeats its last action.
    """
    plans = {state: _endless(model, schedule, plan, Belief.at(state)) for state, plan in schedule.items()}
    start = None if schedule.start is None else _endless(model, schedule, schedule.start, Belief.start(model))
    return Schedule(plans, schedule.n_states, start)


def _endless(model: Model, schedule: Schedule, plan: BlindPlan, belief: Belief) -> BlindPlan:
    """Return a plan from a belief that does not end with a known state or the end of the episode."""
    actions: list[int] = []
    begun: dict[int, int] = {}  # index of the first action of a known state's plan
    while plan.then == "known":
        for action in plan.actions:
            belief = belief.predict(model, action)
        actions += plan.actions
        state = belief.known
        if state is None or state not in schedule:  # not known after all, or without a plan
            return BlindPlan(tuple(actions), then="measure")
        if state in begun:
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - begun[state])
        begun[state] = len(actions)
        plan = schedule[state]
    actions += plan.actions
    if plan.then == "end":
        return BlindPlan(tuple(actions), then="repeat", repeat=1)
    return BlindPlan(tuple(actions), then=plan.then, repeat=plan.repeat)


def discounted_value(model: Model, schedule: Schedule) -> float:
    """Return the discounted return from the start, faster than `evaluate`; minus infinity if the sum does not exist."""
    if model.discount == 1:
        value = evaluate(model, schedule).discounted_return
        return -np.inf if np.isnan(value) else value
    chain = plan_chain(model, schedule)
    return float(chain.start @ _returns(chain, model.discount))


def discounted_values(model: Model, schedule: Schedule) -> FloatArray:
    """Return the discounted return from each state, shape (S,), of a schedule with plans for all; 0 for terminal states."""
    if model.discount == 1:
        return values_of(model, schedule)
    running = ~model.terminal
    chain = plan_chain(model.replace(initial=running / running.sum(), reveal_start=True), schedule)
    values = np.zeros(model.n_states)
    known = np.flatnonzero(chain.states >= 0)
    values[chain.states[known]] = _returns(chain, model.discount)[known]
    return values


def discounted_visits(model: Model, schedule: Schedule) -> FloatArray:
    """Return the approximate discounted number of observations of each state, shape (S,), for sorting states."""
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
    """Return the discounted return from each node of a chain, shape (n_nodes,)."""
    returns = chain.totals(discount)[:, :1]
    return markov.discounted_sums(chain.moves, np.float64(discount) ** chain.durations, returns)[:, 0]
