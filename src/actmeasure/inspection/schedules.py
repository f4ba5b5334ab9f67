"""Operations on schedules: the best of several, plans for unexpected states, and fast discounted values."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from actmeasure import markov
from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, PlanChain, evaluate, plan_chain, values_of
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget
from actmeasure.planning.frontier import Frontier
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.planning.tradeoff import Piece, PriceLine, envelope, envelope_values, frontier_pieces, price_at_bound
from actmeasure.schedule import BlindPlan, Schedule

__all__ = [
    "PricedSchedule",
    "at_price",
    "belief_after",
    "best_of",
    "completed",
    "discounted_value",
    "discounted_values",
    "discounted_visits",
    "is_rounding",
    "own_price",
    "plan_of",
    "priced_schedules",
    "reachable_part",
    "valid_on_other_models",
    "with_schedules",
]

#: Relative difference up to which exact values count as equal.
EQUAL_VALUES = 1e-9
#: Largest number of states for which `completed` adds plans.
MOST_STATES = 500
#: Visits are summed until the remaining weight is below this, or up to this number of plans.
LITTLE, MOST_MOVES = 1e-9, 1_000


def plan_of(schedule: Schedule, state: int | None) -> BlindPlan | None:
    """Return the plan after seeing a state (None: the start); None if there is none."""
    return schedule.start if state is None else schedule.get(state)


def belief_after(model: Model, state: int | None, actions: Iterable[int] = ()) -> Belief:
    """Return the belief after actions without a measurement, from a known state (None: the start)."""
    belief = Belief.start(model) if state is None else Belief.at(state)
    for action in actions:
        belief = belief.predict(model, action)
    return belief


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
        best = replace(best, schedule=reachable_part(model, schedule), evaluated=evaluation, lower=value, upper=bound)
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
    by_state = np.zeros(model.n_states)
    known = np.flatnonzero(chain.states >= 0)
    by_state[chain.states[known]] = visits[known]
    return by_state


def _returns(chain: PlanChain, discount: float) -> FloatArray:
    """Return the discounted return from each node of a chain, shape (n_nodes,)."""
    returns = chain.totals(discount)[:, :1]
    return markov.discounted_sums(chain.moves, np.float64(discount) ** chain.durations, returns)[:, 0]


@dataclass(frozen=True, eq=False)
class PricedSchedule:
    """The best schedule found in a range of prices of an inspection.

    Attributes
    ----------
    low, high : float
        Ends of the range; `high` is infinite for the last one.
    schedule : Schedule
        Also has plans for states that are not observed when it is followed; these are the best at the price `inside`.
    expected : frozenset of int
        States that can be observed when it is followed; their plans are the best in the whole range.
    inside : float
        A price in the range.
    reward, looks : float
        Discounted reward and number of inspections: the value is `reward - price * looks`. If the costs of an inspection are a
        table, `looks` is their discounted sum at price 1.
    evaluation : Evaluation
        At the model's own price.
    """

    low: float
    high: float
    schedule: Schedule
    expected: frozenset[int]
    inside: float
    reward: float
    looks: float
    evaluation: Evaluation

    def value(self, price: float) -> float:
        """Return the discounted return when an inspection costs `price`."""
        return self.reward - price * self.looks


def own_price(model: Model) -> float:
    """Return the model's price of an inspection; 1 if it is a table of costs, which a price multiplies."""
    return model.measuring_cost if isinstance(model.measuring_cost, float) else 1.0


def at_price(model: Model, price: float) -> Model:
    """Return the model with another price of an inspection; a table of costs is multiplied by it."""
    cost = model.measuring_cost
    return model.replace(measuring_cost=price if isinstance(cost, float) else price * cost)


def with_schedules(frontier: Frontier, schedules: Iterable[Schedule]) -> Frontier:
    """Return the frontier with other schedules where they are better than its own; its upper bounds do not change."""
    model, horizon = frontier.model, frontier.pieces[0].evaluation.horizon
    lines = _lines(frontier)
    for schedule in schedules:
        line = _line(model, reachable_part(model, schedule), evaluate(model, schedule, horizon))
        is_finite = math.isfinite(line.reward) and math.isfinite(line.looks)
        if is_finite and not any(_is_same(line, one) for one in lines):
            lines.append(line)
    pieces = envelope(lines, 0.0)
    prices, upper = frontier.prices, frontier.upper
    where = np.concatenate(
        [prices, [piece.low for piece in pieces if piece.low <= prices[-1] or pieces[-1].line.looks == 0]]
    )
    gap = max(0.0, float((np.interp(where, prices, upper) - envelope_values(pieces, where)).max()))
    gap = min(gap, frontier.gap) if math.isfinite(frontier.gap) else frontier.gap
    return replace(
        frontier,
        pieces=frontier_pieces(pieces),
        lower=envelope_values(pieces, prices),
        gap=gap,
        break_even=_break_even(frontier, pieces),
        stopped="closed" if gap <= frontier.tolerance else frontier.stopped,
    )


def _break_even(frontier: Frontier, pieces: list[Piece[PriceLine]]) -> tuple[float, float]:
    """Return the range of the break-even price: its lower end is the frontier's, its upper end may be lower than before."""
    low, high = frontier.break_even
    if pieces[-1].line.looks > 0:
        return low, high
    blind = pieces[-1].line.reward
    confirmed = price_at_bound(frontier.prices, frontier.upper, blind + frontier.tolerance)
    return low, max(low, pieces[-1].low, confirmed)


def _is_same(one: PriceLine, other: PriceLine) -> bool:
    """Return whether two schedules have the same value at every price, up to rounding."""
    return is_rounding(one.reward - other.reward, one.reward) and is_rounding(one.looks - other.looks, one.looks)


def _lines(frontier: Frontier) -> list[PriceLine]:
    """Return the values of the frontier's schedules as lines in the price."""
    return [
        PriceLine(piece.discounted_reward, piece.discounted_looks, piece.schedule, piece.evaluation)
        for piece in frontier.pieces
    ]


def priced_schedules(
    frontier: Frontier, own: Solution, tolerance: float, budget: Budget
) -> tuple[tuple[PricedSchedule, ...], bool]:
    """Return the best schedule of every price range, of the frontier's and the plan, and whether there was time for all.

    The plan `own` is solved to a smaller tolerance than the frontier; with it, the schedule at the own price is the plan.
    """
    model = own.model
    line = _line(model, own.schedule, own.evaluation)
    lines = [line, *(one for one in _lines(frontier) if not _is_same(one, line))]
    schedules, in_time = [], True
    for piece in envelope(lines, 0.0):
        inside = _inside(piece.low, piece.high, own_price(model))
        schedule = piece.line.schedule
        if budget.is_over:
            in_time = False
        else:
            schedule = completed(at_price(model, inside), schedule, tolerance, budget.separate())
        schedules.append(
            PricedSchedule(
                piece.low, piece.high, schedule, frozenset(piece.line.schedule), inside,
                piece.line.reward, piece.line.looks, piece.line.evaluation,
            )
        )  # fmt: skip
    return tuple(schedules), in_time


def _line(model: Model, schedule: Schedule, evaluation: Evaluation) -> PriceLine:
    """Return the value of a schedule as a line in the price."""
    reward, looks = evaluation.discounted_reward, evaluation.discounted_measurements
    if not isinstance(model.measuring_cost, float):
        looks = max(0.0, reward - evaluation.discounted_return)
        looks = 0.0 if is_rounding(looks, reward) else looks
    return PriceLine(reward, looks, schedule, evaluation)


def _inside(low: float, high: float, own: float) -> float:
    """Return a price in a range: the own one if it is there, otherwise the middle, or a price above an infinite range's low."""
    if low <= own <= high:
        return own
    return (low + high) / 2 if high < float("inf") else 1.25 * low or 1.0
