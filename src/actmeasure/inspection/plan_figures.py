"""Costs and failures of a policy, by cause and by period, and a policy graph as the steps that a person follows.

All figures are exact: the pairs of a node of the graph and a state of the model are a Markov chain, whose expected visits are a
linear system, and whose distribution in a period follows from that in the period before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure import markov
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.evaluation import Evaluation, GraphChain, evaluate, graph_chain
from actmeasure.inspection.problem import MOBILISATION, Problem, component_looks
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.system import Factors
from actmeasure.model.transitions import FloatArray
from actmeasure.policy_graph import NO_EDGE, BoundGraph, Outcome, PolicyGraph, bind
from actmeasure.schedule import BlindPlan

__all__ = [
    "CURVE",
    "Figures",
    "HistoryPeriod",
    "PlanStep",
    "StepBranch",
    "figures",
    "likeliest_history",
    "plan_steps",
    "stepwise",
]

#: Periods for which the risk is computed where there is no end of life.
CURVE = 50
#: Without discount and without an end of life, visits are summed until less than this is left, or up to this number of periods.
LITTLE, MOST_PERIODS = 1e-12, 100_000


@dataclass(frozen=True, eq=False)
class Figures:
    """Expected costs, failures and inspections of a policy, exact up to rounding.

    Attributes
    ----------
    evaluation : Evaluation
    costs : dict from cause to float
        Discounted costs; inspections are causes under their own names. They add up to minus the discounted return.
    failures : float
        Expected number of failures over the life, and discounted where there is no end; of a system, of periods that begin with
        it down. NaN where it is not known what a failure is.
    failures_per_period : float
        The mean over the periods of the life or, without an end, in the long run.
    weighted_failures_per_period : float
        The mean in which a period counts as much as money does then: discounted failures over `Problem.discounted_periods`.
    risk : float64 array, shape (T,)
        Expected number of failures in each period of the life or, without an end, in the first `CURVE`.
    looks : float64 array, shape (T, k)
        Expected number of inspections of each kind in these periods.
    failed_share : float
        Share of the discounted periods that begin in a failed state or, without an end of life, of those in the long run if
        that is larger.
    """

    evaluation: Evaluation
    costs: dict[str, float]
    failures: float
    failures_per_period: float
    weighted_failures_per_period: float
    risk: FloatArray
    looks: FloatArray
    failed_share: float


def figures(problem: Problem, graph: PolicyGraph, evaluation: Evaluation | None = None) -> Figures:
    """Return costs and failures of a policy graph on the model of a problem; `evaluation` is given where it is known."""
    model, discount = problem.model, problem.model.discount
    result = evaluate(model, graph) if evaluation is None else evaluation
    chain = graph_chain(model, graph)
    actions = np.array([decision.action for decision in graph.decisions])[chain.nodes]
    failing = problem.failing[chain.states, actions]
    made = np.zeros((len(failing), len(model.measurements)))
    for kind in chain.kinds_made:
        made[chain.kinds == kind, kind - 1] = 1.0
    curve = _course(chain, np.column_stack([failing, made]), problem.periods or CURVE)
    visits = expected_visits(chain, discount, problem.periods)
    costs = {cause: float(visits @ table[chain.states, actions]) for cause, table in problem.costs.items()}
    for number, one in enumerate(model.measurements):
        price = one.table(model.n_states, model.n_actions)[chain.states, actions]
        paid = float(visits @ (price * made[:, number]))
        for cause, cost in _inspection_costs(problem, number, paid, float(visits @ made[:, number])):
            costs[cause] = costs.get(cause, 0.0) + cost
    known = bool(problem.failed.any())
    base = problem.states[chain.states]
    total = float(visits.sum())
    discounted = float(visits @ failing)
    return Figures(
        evaluation=result,
        costs=costs,
        failures=_known(known, float(curve[:, 0].sum()) if problem.periods else discounted),
        failures_per_period=_known(known, _per_period(problem, graph, curve[:, 0])),
        weighted_failures_per_period=_known(known, discounted / problem.discounted_periods),
        risk=curve[:, 0] if known else np.full(len(curve), np.nan),
        looks=curve[:, 1:],
        failed_share=max(float(visits[problem.failed[base]].sum()) / total, _long_run_share(problem, graph)),
    )


def _inspection_costs(problem: Problem, number: int, paid: float, made: float) -> Iterator[tuple[str, float]]:
    """Yield the costs of a measurement by cause.

    In a system whose components have prices that do not vary, the causes are the inspections of components, and mobilisation,
    which the joint measurement contains. `made` is the discounted number of measurements.
    """
    factors = problem.base.origin
    parts = component_looks(factors, number + 1) if isinstance(factors, Factors) else []
    if any(math.isnan(price) for _, price in parts):
        parts = []
    for name, price in parts or [(problem.model.measurements[number].name, math.nan)]:
        cause = f"inspection {name}" if name in problem.costs else name
        yield cause, price * made if parts else paid
    rest = paid - made * sum(price for _, price in parts)
    if parts and rest > 1e-9 * paid:  # not rounding
        yield MOBILISATION, rest


def _known(is_known: bool, value: float) -> float:
    return value if is_known else math.nan


def _per_period(problem: Problem, graph: PolicyGraph, risk: FloatArray) -> float:
    """Return the mean number of failures per period of the life, or in the long run; NaN where every episode ends by itself."""
    if problem.periods is not None:
        return float(risk.sum()) / problem.periods
    counting = problem.counting_failures()
    average = evaluate(counting, graph).average_reward
    return math.nan if average is None else average


def _long_run_share(problem: Problem, graph: PolicyGraph) -> float:
    """Return the share of the periods in the long run that begin in a failed state; 0 where there is no long run."""
    if problem.periods is not None or not problem.failed.any():
        return 0.0
    counting = problem.counting_failures()
    begun = np.broadcast_to(problem.failed[:, None], counting.rewards.shape).astype(np.float64)
    average = evaluate(replace(counting, rewards=begun), graph).average_reward
    return 0.0 if average is None or math.isnan(average) else average


def _course(chain: GraphChain, per_pair: FloatArray, periods: int) -> FloatArray:
    """Return the expected sum of each column, float64 (n_pairs, c), in each of the first periods, shape (periods, c)."""
    sums = np.zeros((periods, per_pair.shape[1]))
    now = chain.start
    for period in range(periods):
        sums[period] = now @ per_pair
        now = np.asarray(now @ chain.moves)
    return sums


def expected_visits(chain: GraphChain, discount: float, periods: int | None) -> FloatArray:
    """Return the discounted number of visits to each pair of node and state, shape (n_pairs,)."""
    if periods is None and discount < 1:
        return markov.discounted_visits(chain.moves, discount, chain.start, chain.krylov)
    now, visits = chain.start, np.zeros_like(chain.start)
    for period in range(MOST_PERIODS if periods is None else periods):
        visits = visits + discount**period * now
        now = np.asarray(now @ chain.moves)
        if now.sum() < LITTLE:
            break
    return visits


# Steps


@dataclass(frozen=True)
class StepBranch:
    """What is reported at the end of a step, and the step that follows.

    Attributes
    ----------
    outcomes : tuple of int
        Numbers of outcomes of the inspection; empty for *whatever is seen*.
    target : int
        Number of the next step, from 0.
    chance : float
        Probability of these outcomes at the end of the step.
    """

    outcomes: tuple[int, ...]
    target: int
    chance: float


@dataclass(frozen=True, eq=False)
class PlanStep:
    """A step of a plan: actions one after the other without seeing anything, then an inspection and what follows each outcome.

    Attributes
    ----------
    number : int
        From 0; the plan begins with 0.
    plan : BlindPlan
        The actions; `then` is "measure" where an inspection follows, "repeat" where the actions go on without one, and "end".
    measurement : int
        The inspection at the end; 0 for none.
    branches : tuple of StepBranch
    times : float
        Expected discounted number of times that the step begins.
    belief : float64 array, shape (S_base,)
        Probabilities of the states when the step begins, over all ways to come there.
    failed : float
        Probability of a failed state at the end of the step, before the inspection shows anything.
    may_be_cut : bool
        Whether life may end before the inspection of the step.
    """

    number: int
    plan: BlindPlan
    measurement: int
    branches: tuple[StepBranch, ...]
    times: float
    belief: FloatArray
    failed: float
    may_be_cut: bool = False


@dataclass(frozen=True)
class _Path:
    """The nodes of a step, and the position to which the last one goes back where they repeat; -1 otherwise."""

    nodes: tuple[int, ...]
    back: int


def stepwise(problem: Problem, graph: PolicyGraph) -> tuple[PolicyGraph, list[tuple[int, ...]]]:
    """Return a graph of the same behaviour in which every node belongs to one step, and the nodes of each step."""
    bound = bind(graph, problem.model)
    starts = list(dict.fromkeys([graph.start] if isinstance(graph.start, int) else graph.start.values()))
    paths = []
    for entry in starts:  # which grows
        path = _path(problem, bound, entry)
        paths.append(path)
        if path.back < 0:
            targets = dict.fromkeys(bound.targets[path.nodes[-1]].tolist())
            starts += [target for target in targets if target not in starts and target != NO_EDGE]
    decisions: list[Decision] = []
    edges: list[dict[Outcome, int]] = []
    offsets = np.cumsum([0, *(len(path.nodes) for path in paths)])
    for path, offset in zip(paths, offsets[:-1].tolist(), strict=True):
        decisions += [graph.decisions[node] for node in path.nodes]
        edges += [{None: offset + place + 1} for place in range(len(path.nodes) - 1)]
        if path.back >= 0:
            edges.append({None: offset + path.back})
            continue
        last = bound.targets[path.nodes[-1]]
        follows: dict[Outcome, int] = {
            seen: int(offsets[starts.index(int(node))]) for seen, node in enumerate(last.tolist()) if node != NO_EDGE
        }
        edges.append(follows)
    steps = [tuple(range(low, high)) for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    if isinstance(graph.start, int):
        return PolicyGraph(decisions, edges), steps
    begin = {state: int(offsets[starts.index(node)]) for state, node in graph.start.items()}
    return PolicyGraph(decisions, edges, begin), steps


def _path(problem: Problem, bound: BoundGraph, entry: int) -> _Path:
    """Return the nodes from an entry to the next node at which something is seen, or where they repeat."""
    nodes = [entry]
    while True:
        node = nodes[-1]
        targets = bound.targets[node]
        if problem.model.shown_by(int(bound.measurements[node])) is not None or targets[0] == NO_EDGE:
            return _Path(tuple(nodes), -1)
        following = int(targets[0])
        if following in nodes:
            return _Path(tuple(nodes), nodes.index(following))
        nodes.append(following)


def plan_steps(problem: Problem, graph: PolicyGraph, nodes: list[tuple[int, ...]]) -> tuple[PlanStep, ...]:
    """Return the steps of a graph that `stepwise` has made, with their probabilities."""
    model = problem.model
    chain = graph_chain(model, graph)
    visits = expected_visits(chain, model.discount, problem.periods)
    bound = bind(graph, model)
    first = [step[0] for step in nodes]
    flows = _flows(chain, visits, first)
    reached = set(chain.nodes[visits > 0].tolist())
    ending = set(chain.nodes[(visits > 0) & (chain.moves.sum(axis=1) <= 0)].tolist())
    steps = []
    for number, members in enumerate(nodes):
        plan = _blind_plan(graph, bound, members, reached)
        last = members[-1]
        leaving = flows.get(last, {}) if plan.then == "measure" else {}
        total = sum(leaving.values())
        targets = bound.targets[last]
        branches = []
        for node in dict.fromkeys(targets.tolist()):
            if node in leaving and node in first:
                outcomes = tuple(np.flatnonzero(targets == node).tolist())
                sees = model.shown_by(graph.decisions[last].measurement) is not None
                branches.append(StepBranch(outcomes if sees else (), first.index(node), leaving[node] / total))
        here, at_end = chain.nodes == members[0], chain.nodes == last
        steps.append(
            PlanStep(
                number=number,
                plan=plan,
                measurement=graph.decisions[last].measurement if plan.then == "measure" else 0,
                branches=tuple(sorted(branches, key=lambda branch: branch.outcomes)),
                times=float(visits[here].sum()),
                belief=_share(np.bincount(problem.states[chain.states[here]], visits[here], problem.base.n_states)),
                failed=_failed_after(problem, chain, graph, visits, at_end),
                may_be_cut=plan.then == "measure" and not ending.isdisjoint(members[:-1]),
            )
        )
    return tuple(steps)


def _share(weights: npt.NDArray[Any]) -> FloatArray:
    total = weights.sum()
    return weights / total if total else weights


def _flows(chain: GraphChain, visits: FloatArray, targets: list[int]) -> dict[int, dict[int, float]]:
    """Return the expected discounted number of moves from each node to each of some nodes."""
    moves = chain.moves.tocoo()
    source, target = chain.nodes[moves.coords[0]], chain.nodes[moves.coords[1]]
    kept = np.isin(target, targets)
    weights = visits[moves.coords[0]] * moves.data
    found: dict[int, dict[int, float]] = {}
    pairs, inverse = np.unique(np.stack([source[kept], target[kept]]), axis=1, return_inverse=True)
    sums = np.bincount(np.ravel(inverse), weights[kept], pairs.shape[1])
    for (begin, end), total in zip(pairs.T.tolist(), sums.tolist(), strict=True):
        found.setdefault(begin, {})[end] = total
    return found


def _failed_after(
    problem: Problem, chain: GraphChain, graph: PolicyGraph, visits: FloatArray, pairs: npt.NDArray[np.bool_]
) -> float:
    """Return the probability of a failed state after the period of some pairs, all of one node."""
    weights = visits[pairs]
    if not problem.failed.any() or not weights.sum():
        return math.nan
    base, states = problem.base, problem.states[chain.states[pairs]]
    action = graph.decisions[int(chain.nodes[pairs][0])].action
    after = np.bincount(states, weights, base.n_states) @ base.transitions.matrix(action)
    return float(after[problem.failed].sum() / weights.sum())


def _blind_plan(graph: PolicyGraph, bound: BoundGraph, members: tuple[int, ...], reached: set[int]) -> BlindPlan:
    """Return the actions of a step; where life always ends before its last one, those before."""
    actions = tuple(graph.decisions[node].action for node in members if node in reached or node == members[0])
    if len(actions) < len(members):
        return BlindPlan(actions, then="end")
    targets = bound.targets[members[-1]]
    if graph.decisions[members[-1]].measurement:
        return BlindPlan(actions, then="measure")
    if len(targets) == 1 and targets[0] in members:
        return BlindPlan(actions, then="repeat", repeat=len(members) - members.index(int(targets[0])))
    return BlindPlan(actions, then="end" if targets[0] == NO_EDGE else "measure")


# What is seen most often


@dataclass(frozen=True, eq=False)
class HistoryPeriod:
    """A period of the course of things in which every inspection reports what is likeliest.

    Attributes
    ----------
    step : int
        Number of the step of the plan.
    action, measurement : int
    outcome : int or None
        What the inspection at the end of the period reports; None without one.
    chance : float
        The probability of that outcome.
    predicted, belief : float64 arrays, shape (S_base,)
        Probabilities of the states at the end of the period, before and after the inspection. At the end of life nothing is
        reported that could be followed, and both are equal.
    """

    step: int
    action: int
    measurement: int
    outcome: int | None
    chance: float
    predicted: FloatArray
    belief: FloatArray


def likeliest_history(
    problem: Problem, graph: PolicyGraph, nodes: list[tuple[int, ...]], periods: int
) -> tuple[HistoryPeriod, ...]:
    """Return the periods of a plan, of `stepwise`, in which every inspection reports what is likeliest."""
    step_of = {node: number for number, members in enumerate(nodes) for node in members}
    return tuple(_history(problem, graph, step_of, periods))


def _history(problem: Problem, graph: PolicyGraph, step_of: dict[int, int], periods: int) -> Iterator[HistoryPeriod]:
    model = problem.model
    bound = bind(graph, model)
    node, belief = int(bound.start[0]), Belief.start(model)
    for period in range(periods):
        action, measurement = graph.decisions[node]
        moved = belief.predict(model, action)
        if moved.is_over:
            at_end = _at_end_of_life(problem, belief, action)
            if period + 1 == problem.periods and at_end.any():
                yield HistoryPeriod(step_of[node], action, measurement, None, 1.0, at_end, at_end)
            return
        outcome, chance, after = None, 1.0, moved
        if model.shown_by(measurement) is not None:
            chances = belief.outcomes(model, action, measurement)
            outcome = int(np.argmax(chances))
            chance = float(chances[outcome])
            after = belief.update(model, action, measurement, outcome)
        yield HistoryPeriod(
            step_of[node],
            action,
            measurement,
            outcome,
            chance,
            problem.belief_on_base(moved),
            problem.belief_on_base(after),
        )
        target = int(bound.targets[node][outcome or 0])
        if target == NO_EDGE:
            return
        node, belief = target, after


def _at_end_of_life(problem: Problem, belief: Belief, action: int) -> FloatArray:
    """Return the probabilities of the states after the last action of a life, given that the unit still runs; 0 if it cannot."""
    life = problem.model.origin
    if not isinstance(life, Lifetime):
        return np.zeros(problem.base.n_states)
    last = life.model(life.periods - 1)
    after = np.asarray(problem.belief_on_base(belief) @ last.transitions.matrix(action))
    return _share(np.where(last.terminal, 0.0, after))
