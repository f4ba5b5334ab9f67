"""The best of all schedules in hand: no plan is advised while a better one is known."""

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
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = [
    "best_in_hand",
    "completed",
    "discounted_value",
    "discounted_values",
    "discounted_visits",
    "is_rounding",
    "schedule_met",
    "without_claims",
]

#: Exact values that differ by less than this, relatively, are the same up to rounding.
ROUNDING = 1e-9


def is_rounding(difference: float, value: float) -> bool:
    """Whether a difference between exact values may come from rounding alone."""
    return abs(difference) <= ROUNDING * (1 + abs(value))


def best_in_hand(solution: Solution, others: Iterable[tuple[str, Schedule]], upper: float) -> tuple[Solution, str]:
    """The solution, or the best of other schedules if that is better, and its name; empty for the solution itself.

    Parameters
    ----------
    solution : Solution
    others : pairs of name and schedule
    upper : float
        Another bound on the optimum; the tighter one is kept.
    """
    model = solution.model
    best, name = replace(solution, upper=max(min(solution.upper, upper), solution.value)), ""
    for other, schedule in others:
        evaluation = evaluate(model, schedule)
        value = evaluation.discounted_return
        if math.isnan(value) or value <= best.value or is_rounding(value - best.value, value):
            continue
        bound = max(best.upper, value)
        best = replace(best, schedule=schedule_met(model, schedule), evaluation=evaluation, lower=value, upper=bound)
        name = other
    return best, name


def schedule_met(model: Model, schedule: Schedule) -> Schedule:
    """The schedule with plans only for the states that someone who follows it may come to know."""
    states = np.unique(plan_chain(model, schedule).states)
    plans = {int(state): schedule[int(state)] for state in states if state >= 0 and int(state) in schedule}
    return Schedule(plans, schedule.n_states, schedule.start)


# ----------------------------------------------------------------------------------------------------
# Plans for the states that a schedule does not expect to see, and plans that hold in other models.
# ----------------------------------------------------------------------------------------------------


#: A model with more states gets plans for the states that its schedule comes to know only.
MOST_STATES = 500


def completed(model: Model, schedule: Schedule, tolerance: float, time_limit: float | None) -> Schedule:
    """The schedule with plans also for the states that it never comes to know, if those can be found in the time.

    What is best once a state is known does not depend on the start, so they are those of the model begun in any state.
    """
    running = ~model.terminal
    if model.n_states > MOST_STATES or len(schedule) >= np.count_nonzero(running):
        return schedule
    anywhere = model.replace(initial=running / running.sum(), reveal_start=True)
    plans: dict[int, BlindPlan] = {}
    with contextlib.suppress(PlanError):  # without discount, there may be states from which nothing finite can be had
        plans = dict(solve(anywhere, "optimal", tolerance / running.sum(), time_limit).schedule)
    return Schedule(plans | dict(schedule), model.n_states, schedule.start)


def without_claims(model: Model, schedule: Schedule) -> Schedule:
    """The same behaviour on the model, in plans that can be followed on another one as well.

    That a state is known, or that it is over, may be true on one model only. So what follows on a known state is appended,
    and where it should be over, the last action goes on.
    """
    plans = {state: _endless(model, schedule, plan, Belief.at(state)) for state, plan in schedule.items()}
    start = None if schedule.start is None else _endless(model, schedule, schedule.start, Belief.start(model))
    return Schedule(plans, schedule.n_states, start)


def _endless(model: Model, schedule: Schedule, plan: BlindPlan, belief: Belief) -> BlindPlan:
    actions: list[int] = []
    begun: dict[int, int] = {}  # where in the actions the plan of a known state begins
    while plan.then == "known":
        for action in plan.actions:
            belief = belief.predict(model, action)
        actions += plan.actions
        state = belief.known
        if state is None or state not in schedule:  # the claim is not true even here, or nothing follows on it
            return BlindPlan(tuple(actions), then="measure")
        if state in begun:
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - begun[state])
        begun[state] = len(actions)
        plan = schedule[state]
    actions += plan.actions
    if plan.then == "end":
        return BlindPlan(tuple(actions), then="repeat", repeat=1)
    return BlindPlan(tuple(actions), then=plan.then, repeat=plan.repeat)


# ----------------------------------------------------------------------------------------------------
# What many schedules are worth, discounted: all that a search over rules needs, at a part of the price of `evaluate`.
# ----------------------------------------------------------------------------------------------------


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
