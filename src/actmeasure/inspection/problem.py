"""`Problem`: the decision problem of a fit with prices, with the meaning of its states, costs and failures.

A problem begins as the model of one unit over one period. With components it becomes a system, and with a life the period becomes
a part of the state. Tables of costs by cause and of failures are carried along, so that what a policy costs can be told apart
afterwards. Where the time between inspections is limited, plans are searched on another model, in which the time since the last
inspection is a known part of the state too; what they cost is computed on the model without it, on which any policy can be
followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import FitError, PlanError, quoted, unknown_name
from actmeasure.inspection.economics import Components, Economics, InspectionMethod, RuleStep
from actmeasure.model import Component, Measurement, Model, lifetime, system
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.system import Factors
from actmeasure.model.transitions import FloatArray
from actmeasure.policy_graph import Outcome, PolicyGraph, bind, trace_pairs

__all__ = [
    "FAILURES",
    "INSPECTION",
    "MOBILISATION",
    "LimitedModel",
    "Problem",
    "component_looks",
    "priced_problem",
    "problem_of_model",
    "rule_graph",
]

IntArray = npt.NDArray[np.int64]

#: The name of the only inspection method, where it has none of its own.
INSPECTION = "inspection"
#: Causes of costs other than actions and inspections.
FAILURES, RUNNING, FINAL, DOWN, MOBILISATION = "failures", "running", "end of life", "system down", "mobilisation"
#: The cause of all costs of a model whose prices are not known one by one.
REWARDS = "actions and states"
#: Price of a period that exceeds the longest interval, relative to the largest cost of a period: no plan should pay it.
LATE_PRICE = 100.0


@dataclass(frozen=True, eq=False)
class LimitedModel:
    """A model in which the time since the last inspection is a known part of the state, for a longest interval.

    A transition depends on the action alone, so that an inspection, which sets the clock to 0, has to be part of the action: for
    every measurement and action with which it can be made there is an action that contains both, and its price. The measurement
    itself is then free, and can be made with these actions only.

    Attributes
    ----------
    model : Model
    longest : int
        Largest number of periods between two inspections, and from the start to the first.
    actions : tuple of Decision
        For each action the action and the measurement of the problem's model that it contains.
    late : bool array, shape (S, A)
        Periods that exceed the longest interval. They have a high price; plans that pay it are refused.
    """

    model: Model
    longest: int
    actions: tuple[Decision, ...]
    late: npt.NDArray[np.bool_]

    def followed(self, graph: PolicyGraph) -> PolicyGraph:
        """Return a graph on the problem's model as one on this model."""
        decisions = [Decision(self.actions.index(one), one.measurement) for one in graph.decisions]
        return PolicyGraph(decisions, graph.edges, graph.start)

    def unlimited(self, graph: PolicyGraph) -> PolicyGraph:
        """Return a graph on this model as one on the problem's model, with every inspection that an action contains."""
        return PolicyGraph([self.actions[one.action] for one in graph.decisions], graph.edges, graph.start)

    def is_kept(self, graph: PolicyGraph) -> bool:
        """Return whether a graph on the problem's model never exceeds the longest interval."""
        followed = self.followed(graph)
        bound = bind(followed, self.model)
        pairs = trace_pairs(self.model, bound)
        return not self.late[pairs.states, bound.actions[pairs.nodes]].any()


@dataclass(frozen=True, eq=False)
class Problem:
    """A model that is planned for, with the meaning of its states and costs.

    Attributes
    ----------
    model : Model
        With S states and A actions.
    base : Model
        One period of a unit, or of a system of components: the model itself, unless there is a life.
    states : int64 array, shape (S,)
        The state of `base` that each state stands for; -1 for the end of life.
    failed : bool array, shape (S_base,)
        The states that are failures; of a system, those in which it is down. All false where that is not known.
    failing : float64 array, shape (S, A)
        Expected number of failures in a period: of entering a failed state. For a system: 1 in a period that begins with it down.
    costs : dict from cause to float64 array, shape (S, A)
        Costs of a period, without inspections.
    waiting : int
        The action that is taken when nothing is to be done: the one with the lowest costs.
    periods : int or None
        The life.
    components : int
        Number of components; 1 without a system.
    limited : LimitedModel or None
        The model on which plans are searched where there is a longest interval.
    """

    model: Model
    base: Model
    states: IntArray
    failed: npt.NDArray[np.bool_]
    failing: FloatArray
    costs: dict[str, FloatArray]
    waiting: int
    periods: int | None = None
    components: int = 1
    limited: LimitedModel | None = None
    #: Returns the problem with other prices; None where it was not made from prices.
    at_prices: Callable[[Economics], Problem] | None = field(default=None, repr=False)

    @property
    def search_model(self) -> Model:
        """The model on which plans are searched."""
        return self.model if self.limited is None else self.limited.model

    @property
    def discounted_periods(self) -> float:
        """The sum of the discount factors of all periods; infinite without discount and end."""
        discount = self.model.discount
        if discount == 1:
            return math.inf if self.periods is None else float(self.periods)
        return (1 - (0.0 if self.periods is None else discount**self.periods)) / (1 - discount)

    def methods(self) -> dict[str, FloatArray]:
        """Return how many inspections of each method a measurement of the model consists of, shape (k,).

        In a system, a measurement may inspect several components.
        """
        model, factors = self.base, self.base.origin
        if not isinstance(factors, Factors):
            return dict(zip([one.name for one in model.measurements], np.eye(len(model.measurements)), strict=True))
        found: dict[str, FloatArray] = {}
        for number in range(len(model.measurements)):
            for name, _ in component_looks(factors, number + 1):
                found.setdefault(name, np.zeros(len(model.measurements)))[number] += 1
        return found

    def counting_failures(self) -> Model:
        """Return the model whose rewards are the failures, with inspections for free: `evaluate` then counts failures."""
        free = tuple(replace(one, cost=0.0) for one in self.model.measurements)
        return replace(self.model, rewards=self.failing, transition_rewards=None, measurements=free, origin=None)

    def belief_on_base(self, belief: Belief) -> FloatArray:
        """Return a belief on `model` as probabilities of the states of `base`, shape (S_base,)."""
        where = self.states[belief.states]
        found = np.bincount(where[where >= 0], weights=belief.probabilities[where >= 0], minlength=self.base.n_states)
        return found.astype(np.float64)


def component_looks(factors: Factors, measurement: int) -> list[tuple[str, float]]:
    """Return name and price of each inspection of a component in a measurement of a system; NaN for a price that varies."""
    found = []
    for part, choices, chosen in zip(
        factors.components, factors.choices, np.argwhere(factors.decisions[..., 1] == measurement)[0], strict=True
    ):
        _, look = choices[chosen]
        if look:
            one = part.model.measurements[look - 1]
            prices = one.table(part.model.n_states, part.model.n_actions)
            found.append((one.name, float(prices.flat[0]) if (prices == prices.flat[0]).all() else math.nan))
    return found


def problem_of_model(model: Model, failures: Sequence[str | int] = ()) -> Problem:
    """Return the problem of a model, whose costs are not known by cause.

    `failures` are states by name or number, of the model of a period where this is one over a finite life.
    """
    life = model.origin if isinstance(model.origin, Lifetime) else None
    one = model if life is None else life.models[0]
    failed = np.zeros(one.n_states, dtype=bool)
    for state in failures:
        failed[_state_number(one, state)] = True
    unit = _plain(one, failed, {REWARDS: -one.rewards})
    if life is None:
        return unit
    rates = [_entering(life.model(period), failed) for period in range(life.periods)]
    over = _over_life(unit, model, life.periods)
    running = np.flatnonzero(~one.terminal)
    failing = np.zeros(model.rewards.shape)
    failing[: life.periods * len(running)] = np.concatenate([rate[running] for rate in rates])
    return replace(over, failing=failing, costs={REWARDS: -model.rewards})


def _plain(
    model: Model, failed: npt.NDArray[np.bool_], costs: dict[str, FloatArray], failing: FloatArray | None = None
) -> Problem:
    """Return the problem of one period."""
    return Problem(
        model=model,
        base=model,
        states=np.arange(model.n_states),
        failed=failed,
        failing=_entering(model, failed) if failing is None else failing,
        costs={cause: table for cause, table in costs.items() if table.any()},
        waiting=int(np.argmax(model.rewards.sum(axis=0))),
    )


def _state_number(model: Model, state: str | int) -> int:
    if isinstance(state, str):
        names = model.state_names or ()
        if state not in names:
            raise PlanError(unknown_name("failure state", state, names))
        return names.index(state)
    if isinstance(state, bool) or not isinstance(state, (int, np.integer)) or not 0 <= state < model.n_states:
        raise PlanError(
            f"a failure state is {quoted(state)}, expected a name, or a number from 0 to {model.n_states - 1}"
        )
    return int(state)


def _entering(model: Model, failed: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the probability that a period ends in a failed state and did not begin in one, shape (S, A)."""
    chance = np.asarray(model.transitions.stacked() @ failed.astype(np.float64)).reshape(model.rewards.shape)
    return np.where(failed[:, None], 0.0, chance)


# From prices


def priced_problem(
    probabilities: FloatArray,
    prices: Economics,
    state_names: tuple[str, ...],
    action_names: tuple[str, ...],
    initial: FloatArray,
    errors: FloatArray | None = None,
    ages: int = 1,
) -> Problem:
    """Return the problem of transition probabilities with prices.

    Parameters
    ----------
    probabilities : float64 array, shape (A, ages * S, ages * S)
    prices : Economics
    state_names, action_names : tuple of str
        Of the prices; with ages, states of the model are named `3, age 12`.
    initial : float64 array, shape (S,)
        Distribution of the state at the first inspections.
    errors : float64 array, shape (S, S), or None
        Probability of each recorded state; None where records are right.
    ages : int
        Number of ages.
    """

    def make(prices: Economics) -> Problem:
        unit = _unit(probabilities, prices, state_names, action_names, initial, errors, ages)
        if prices.components is not None:
            unit = _system(unit, prices, prices.components)
        limited = None if prices.longest_interval is None else _limited(unit.model, prices.longest_interval)
        if prices.life is not None:
            final = _final_costs(
                np.tile([prices.final.get(state, 0.0) for state in state_names], ages), unit.components
            )
            model = lifetime(unit.model, prices.life, -final if final.any() else None)
            unit = _over_life(unit, model, prices.life, final)
            limited = None if limited is None else _limited_life(limited, prices.life, final)
        return replace(unit, limited=limited, at_prices=make)

    return make(prices)


def _unit(
    probabilities: FloatArray,
    prices: Economics,
    names: tuple[str, ...],
    actions: tuple[str, ...],
    initial: FloatArray,
    errors: FloatArray | None,
    ages: int,
) -> Problem:
    """Return the problem of one unit over one period."""
    terminal = np.isin(names, prices.terminal)
    start = _start(prices, names, np.where(terminal, 0.0, initial))
    if not start.sum():
        raise FitError("every unit was first inspected in a terminal state; leave some states non-terminal")
    looks = _looks(prices, names, actions, terminal, errors, ages)
    every = names if ages == 1 else tuple(f"{name}, age {age:g}" for age in range(ages) for name in names)
    model = Model.from_arrays(
        probabilities.transpose(1, 0, 2),
        np.tile(prices.rewards(names, actions), (ages, 1, ages)),
        discount=prices.discount,
        initial=np.r_[start / start.sum(), np.zeros(len(start) * (ages - 1))],
        terminal=np.tile(terminal, ages),
        state_names=every,
        action_names=actions,
        **looks,
    )
    failed = np.isin(names, list(prices.failure_states))
    failing = _entering(model, np.tile(failed, ages))
    running = np.where(terminal, 0.0, [prices.running.get(state, 0.0) for state in names])
    doing = np.array(
        [[0.0 if ended else prices.price(a, s) for a in actions] for s, ended in zip(names, terminal, strict=True)]
    )
    costs = {FAILURES: prices.failure_price * failing, RUNNING: np.repeat(running[:, None], len(actions), axis=1)}
    for number, action in enumerate(actions):
        costs[action if action not in costs else f"action {action}"] = doing * (np.arange(len(actions)) == number)
    tables = {name: table if len(table) == len(every) else np.tile(table, (ages, 1)) for name, table in costs.items()}
    return _plain(model, np.tile(failed, ages), tables, failing)


def _start(prices: Economics, names: tuple[str, ...], recorded: FloatArray) -> FloatArray:
    """Return the distribution of the first state, shape (S,): as told, or as recorded."""
    if prices.start is None:
        return recorded
    told: Mapping[str, float] = {prices.start: 1.0} if isinstance(prices.start, str) else prices.start
    start = np.array([told.get(name, 0.0) for name in names])
    for name in prices.terminal:
        if told.get(name, 0.0):
            raise FitError(
                f"{prices.location(('start',))}units cannot start in {name!r}, which is terminal; choose another state"
            )
    return start


def _looks(
    prices: Economics,
    names: tuple[str, ...],
    actions: tuple[str, ...],
    terminal: npt.NDArray[np.bool_],
    errors: FloatArray | None,
    ages: int,
) -> dict[str, Any]:
    """Return the measurements as arguments of `Model.from_arrays`."""
    cost = prices.measuring_costs(names, actions)
    cost = cost if isinstance(cost, float) else np.tile(cost, (ages, 1))
    if not prices.needs_policy_graph and errors is None:
        return {"measuring_cost": cost}
    methods = dict(prices.inspections) or {INSPECTION: InspectionMethod(0.0, from_fit=errors is not None)}
    measurements = []
    for name, method in methods.items():
        outcomes, rows = method.law(names, errors, prices.location(("inspections", name)))
        # No outcome for states that end an episode, if nothing else is reported as one.
        seen = np.asarray((rows[~terminal] > 0).any(axis=0))
        rows = np.where(terminal[:, None], seen / seen.sum(), rows)[:, seen]
        measurements.append(
            Measurement.noisy(
                name,
                cost=method.price if prices.inspections else cost,
                outcomes=tuple(one for one, possible in zip(outcomes, seen, strict=True) if possible),
                probabilities=np.tile(rows, (ages, 1)),
                with_actions=None
                if method.with_actions is None
                else [one for one in method.with_actions if one in actions],
            )
        )
    return {"measurements": measurements}


# Systems


def _system(unit: Problem, prices: Economics, parts: Components) -> Problem:
    """Return the problem of several equal units, of which some are needed."""
    model, number = unit.model, parts.number
    cheapest = int(np.argmin(-model.rewards.sum(axis=0)))  # that of leaving a component alone
    order = [cheapest, *(action for action in range(model.n_actions) if action != cheapest)]
    names = [model.action_name(action) for action in order]
    matrices = model.transitions.dense()
    part = Component(
        {name: matrices[:, action] for name, action in zip(names, order, strict=True)},
        {name: -model.rewards[:, action] for name, action in zip(names, order, strict=True)},
        start=model.initial_distribution,
        measurements=model.measurements,
        state_names=model.state_names,
    )
    failed = np.isin(np.array(model.state_names), list(prices.failure_states))
    is_down = np.array([sum(not failed[state] for state in states) < parts.needed for states in _joint(failed, number)])
    joint = system(
        [part] * number,
        penalty=lambda states: parts.down * (sum(not failed[state] for state in states) < parts.needed),
        mobilisation=parts.mobilisation,
        discount=model.discount,
    )
    costs = {cause: _joint_sum(table[:, order], number) for cause, table in unit.costs.items()}
    idle = np.zeros(joint.n_actions, dtype=bool)
    idle[0] = True
    shape = joint.rewards.shape
    if parts.down:
        costs[DOWN] = np.broadcast_to(parts.down * is_down[:, None], shape)
    if parts.mobilisation:
        costs[MOBILISATION] = np.broadcast_to(parts.mobilisation * ~idle, shape)
    down = np.broadcast_to(is_down[:, None].astype(np.float64), shape)
    return replace(_plain(joint, is_down, costs, down), waiting=0, components=number)


def _joint(of_one: npt.NDArray[Any], number: int) -> list[tuple[int, ...]]:
    """Return the tuples of state numbers of a system, the last changing fastest."""
    return list(product(range(len(of_one)), repeat=number))


def _joint_sum(table: FloatArray, number: int) -> FloatArray:
    """Return the sum over components of a table by state and action, shape (S ** number, A ** number)."""

    def add(one: FloatArray, two: FloatArray) -> FloatArray:
        both = one[:, None, :, None] + two[None, :, None, :]
        return both.reshape(one.shape[0] * two.shape[0], -1)

    return reduce(add, [table] * number)


# Time since the last inspection


def _limited(base: Model, longest: int) -> LimitedModel:
    """Return the model with the time since the last inspection; states come in the order of that time."""
    size = base.n_states
    actions = [Decision(action) for action in range(base.n_actions)]
    for number in range(1, len(base.measurements) + 1):
        actions += [Decision(a, number) for a in range(base.n_actions) if base.allowed_decisions[a, number]]
    later = sparse.csr_array(np.eye(longest, k=1) + np.diag(np.arange(longest) == longest - 1))
    at_once = sparse.csr_array(np.outer(np.ones(longest), np.arange(longest) == 0))
    matrices = [
        sparse.csr_array(sparse.kron(at_once if inspection else later, base.transitions.matrix(action), format="csr"))
        for action, inspection in actions
    ]
    late = np.zeros((longest * size, len(actions)), dtype=bool)
    late[-size:, : base.n_actions] = ~base.terminal[:, None]
    rewards = np.stack(
        [
            base.rewards[:, a] - (base.measurements[m - 1].table(size, base.n_actions)[:, a] if m else 0.0)
            for a, m in actions
        ],
        axis=1,
    )
    contained = np.array([inspection for _, inspection in actions])
    measurements = []
    for number, one in enumerate(base.measurements, start=1):
        assert one.law is not None  # exact methods are written as laws
        measurements.append(
            Measurement.noisy(
                one.name,
                outcomes=one.outcomes,
                probabilities=sparse.csr_array(sparse.vstack([one.law.matrix()] * longest, format="csr")),
                with_actions=np.flatnonzero(contained == number).tolist(),
            )
        )
    model = Model.from_arrays(
        matrices,
        np.tile(rewards, (longest, 1)) - LATE_PRICE * (float(np.abs(rewards).max()) or 1.0) * late,
        measurements=measurements,
        discount=base.discount,
        initial=np.r_[base.initial_distribution, np.zeros(size * (longest - 1))],
        terminal=np.tile(base.terminal, longest),
        reveal_start=False,
        state_names=[
            f"{base.state_name(s)}, {since} since inspection" for since in range(longest) for s in range(size)
        ],
    )
    return LimitedModel(model, longest, tuple(actions), late)


# Life


def _final_costs(of_unit: FloatArray, components: int) -> FloatArray:
    """Return the cost of each state at the end of life, of a unit or of a system of several, from those of a unit's states."""
    if components == 1:
        return of_unit
    return np.array([of_unit[list(states)].sum() for states in _joint(of_unit, components)])


def _tiled(table: npt.NDArray[Any], inner: Model, model: Model, periods: int) -> npt.NDArray[Any]:
    """Return a table by state and action of a period's model as one of a model over several; nothing in states of the end."""
    running = table[~inner.terminal]
    behind = model.n_states - periods * len(running)
    return np.concatenate([np.tile(running, (periods, 1)), np.zeros((behind, table.shape[1]), table.dtype)])


def _over_life(unit: Problem, model: Model, periods: int, final: FloatArray | None = None) -> Problem:
    """Return the problem over a number of periods on a model of `lifetime`, with the costs of states at the end, shape (S,)."""
    inner = unit.model
    running = np.flatnonzero(~inner.terminal)
    costs = {cause: _tiled(table, inner, model, periods) for cause, table in unit.costs.items()}
    if final is not None and final.any():
        at_end = np.zeros((model.n_states, inner.n_actions))
        paid = model.discount * np.asarray(inner.transitions.stacked() @ np.where(inner.terminal, 0.0, final))
        last = slice((periods - 1) * len(running), periods * len(running))
        at_end[last] = paid.reshape(inner.rewards.shape)[running]
        costs[FINAL] = at_end
    return replace(
        unit,
        model=model,
        states=np.concatenate([np.tile(running, periods), np.flatnonzero(inner.terminal), [-1]]),
        failing=_tiled(unit.failing, inner, model, periods),
        costs=costs,
        periods=periods,
    )


def _limited_life(limited: LimitedModel, periods: int, final: FloatArray) -> LimitedModel:
    """Return the model with the time since the last inspection over a number of periods."""
    ending = -np.tile(final, limited.longest) if final.any() else None
    model = lifetime(limited.model, periods, ending)
    return replace(limited, model=model, late=_tiled(limited.late, limited.model, model, periods))


# Present rules


def rule_graph(base: Model, steps: Sequence[RuleStep], where: Callable[[tuple[str, ...]], str]) -> PolicyGraph:
    """Return the policy graph of a rule on the base of a problem; `where` gives the place of a key, for messages."""
    first: dict[str, int] = {}
    count = 0
    for step in steps:
        first[step.name] = count
        count += step.periods
    methods = [one.name for one in base.measurements]
    decisions: list[Decision] = []
    edges: list[dict[Outcome, int]] = []
    for step in steps:
        if step.inspection is not None and step.inspection not in methods:
            place = where(("rule", step.name, "inspect"))
            raise FitError(f"{place}{unknown_name('inspection method', step.inspection, methods)}")
        action = (base.action_names or ()).index(step.action)
        look = 0 if step.inspection is None else 1 + methods.index(step.inspection)
        shows = base.shown_by(look)
        possible = () if shows is None else tuple(base.outcome_name(look, one) for one in range(base.n_outcomes(look)))
        for outcome in step.branches:
            if outcome not in possible:
                raise FitError(
                    f"{where(('rule', step.name, 'if', outcome))}{unknown_name('outcome', outcome, possible)}"
                )
        decisions += [Decision(action)] * (step.periods - 1) + [Decision(action, look)]
        edges += [{None: len(edges) + number + 1} for number in range(step.periods - 1)]
        edges.append(
            {None: first[step.then], **{possible.index(seen): first[to] for seen, to in step.branches.items()}}
        )
    return PolicyGraph(decisions, edges)
