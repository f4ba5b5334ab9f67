r"""Planning without a search where looks are not exact: control by Q_MDP, and a choice among measurements along it.

Write Q for the values of actions if the state were always known (Q_MDP), and Q(b, a) for their mean over a belief b. The control
in b is the action with the highest Q(b, a), as in act-then-measure. The methods differ in the measurements that they consider:

* `always`: one measurement at every step; `every-k`: one at every k-th step; `never`: none.
* `atm-qmdp`: the measurement with the largest *measuring value*, if that is above 0. With b_m,o the belief after the control
  action and outcome o of measurement m, of probability p_m(o), and price c_m,

      M(m) = discount * (sum over o of p_m(o) max_a Q(b_m,o , a)  -  sum over o of p_0(o) max_a Q(b_0,o , a))  -  c_m

  where measurement 0 is none (the passive outcome, or nothing).
* `atm`: the same with the values of the policy itself instead of Q_MDP: the best choice of measurements, given the control.

A policy over beliefs becomes a policy graph, whose nodes are the beliefs that come up. Where these are too many, beliefs that
agree to within a resolution are taken as one, so that the graph is closed and keeps to the rule; the solution says so (`merged`).
`atm` also follows the likeliest beliefs as they are, as far as the limit allows, goes on with the graph of `atm-qmdp` behind it,
and keeps the better of the two graphs. A graph's value is exact (a linear solve, see `actmeasure.evaluation`), and so a lower
bound on the optimum; the upper bound is the value of free looks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import Control, repeat_values
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.solution import Plan
from actmeasure.policy import BeliefPolicy
from actmeasure.policy_graph import PolicyGraph

__all__ = ["always_plan", "atm_plan", "atm_qmdp_plan", "every_plan", "measuring_values", "never_plan"]

#: Largest number of beliefs that become nodes of the policy graph, and of those merged at the coarsest resolution.
MOST_NODES, MOST_COARSE = 1_000, 20_000
#: Probabilities of beliefs that are one node differ by less than this; the next is tried where there are too many nodes.
RESOLUTIONS = (1e-10, 0.02, 0.1, 0.34, 1.0)
#: Largest number of (node, state) pairs whose values are kept as an array.
MOST_VALUES = 50_000_000
#: Beliefs of a smaller discounted probability, relative to the start, are not followed.
LEAST_WEIGHT = 1e-9
#: Rounds of value iteration on the graph of beliefs, and the relative change at which they end.
MOST_SWEEPS, SETTLED = 5_000, 1e-11
#: Most rounds in which edges to beliefs that are not expanded are led to the best node for them.
MOST_RELINKINGS = 3
#: Relative gain from which on a measurement or a graph is better than another.
BETTER = 1e-9
#: Value that stands for minus infinity in comparisons.
VERY_LOW = -1e300

#: Decisions that are considered in a belief, a number of steps after the last measurement.
Choices = Callable[[Belief, int], Sequence[Decision]]


def always_plan(model: Model, budget: Budget, measurement: int | str | None = None) -> Plan:
    """Return the plan that makes one measurement at every step at which it can: the given one, or the best of them."""
    numbers = _numbers(model, measurement)

    def choices(control: Control, number: int) -> Choices:
        return lambda belief, _: [_with(model, control(belief), number)]

    return _best(model, budget, choices, numbers)


def every_plan(model: Model, budget: Budget, k: int, measurement: int | str | None = None) -> Plan:
    """Return the plan that makes one measurement at every k-th step: the given one, or the best of them."""
    numbers = _numbers(model, measurement)

    def choices(control: Control, number: int) -> Choices:
        return lambda belief, waited: [_with(model, control(belief), number if waited + 1 >= k else 0)]

    return _best(model, budget, choices, numbers, remembered=k)


def never_plan(model: Model, budget: Budget) -> Plan:
    """Return the plan that makes no measurement, acting by Q_MDP on what is seen for free."""
    return _best(model, budget, lambda control, _: lambda belief, _: [Decision(control(belief), 0)], [0])


def atm_qmdp_plan(model: Model, budget: Budget) -> Plan:
    """Return the plan that makes the measurement of the largest measuring value above 0, estimated by Q_MDP."""
    return _best(model, budget, _estimated, [0])


def _estimated(control: Control, _: int) -> Choices:
    def chosen(belief: Belief, _: int) -> list[Decision]:
        action = control(belief)
        values = measuring_values(control.model, belief, action, control.best_mean)
        return [Decision(action, _largest(values))]

    return chosen


def atm_plan(model: Model, budget: Budget) -> Plan:
    """Return the plan that chooses the best measurements, given the control by Q_MDP, as far as the graph reaches."""

    def choices(control: Control, _: int) -> Choices:
        def all_measurements(belief: Belief, _: int) -> list[Decision]:
            action = control(belief)
            return [Decision(action, int(number)) for number in np.flatnonzero(model.allowed_decisions[action])]

        return all_measurements

    return _best(model, budget, choices, [0], tail_choices=_estimated)


def measuring_values(model: Model, belief: Belief, action: int, value: Callable[[Belief], float]) -> FloatArray:
    """Return the measuring value of each measurement with an action, shape (1 + k,): 0 for none, -infinity where not allowed.

    Parameters
    ----------
    model : Model
    belief : Belief
        Before the action.
    action : int
    value : function from Belief to float
        The value of a belief after the step.
    """
    values = np.full(1 + len(model.measurements), -np.inf)
    running, next_belief = belief.running_probability(model, action), belief.predict(model, action)
    for number in np.flatnonzero(model.allowed_decisions[action]).tolist():
        price = 0.0
        if number:
            prices = model.measurements[number - 1].table(model.n_states, model.n_actions)
            price = float(belief.expected(prices[:, action]))
        seen = _after(model, next_belief, Decision(action, number))
        ahead = sum(chance * value(informed) for _, chance, informed in seen)
        values[number] = model.discount * running * ahead - price
    values -= values[0]
    return values


def _largest(values: FloatArray) -> int:
    """Return the measurement of the largest measuring value, 0 (none) unless that is above 0."""
    best = int(np.argmax(values))
    return best if values[best] > BETTER * (1 + abs(values[best])) else 0


def _numbers(model: Model, measurement: int | str | None) -> list[int]:
    """Return the numbers of the measurements to try."""
    if measurement is not None:
        number = model.measurement_number(measurement)
        if number == 0:
            raise PlanError("the measurement is 0, which is none; use the method never")
        return [number]
    if not model.measurements:
        raise PlanError("the model has no measurements to make; use the method never")
    return list(range(1, 1 + len(model.measurements)))


def _with(model: Model, action: int, measurement: int) -> Decision:
    return Decision(action, measurement if model.allowed_decisions[action, measurement] else 0)


def _best(
    model: Model,
    budget: Budget,
    choices: Callable[[Control, int], Choices],
    numbers: Sequence[int],
    remembered: int = 0,
    tail_choices: Callable[[Control, int], Choices] | None = None,
) -> Plan:
    """Return the best of the plans that `choices` gives for each measurement in `numbers`.

    `remembered` is the number of steps since the last measurement that the choices depend on. With `tail_choices` the graph of
    these is what fine beliefs go on with behind the limit.
    """
    control = Control(model, budget)
    upper = float(model.initial_probabilities @ control.bounds[model.initial_states])
    repeating = _repeating(model, budget)
    budget.note(_best_node(repeating.vectors, Belief.start(model))[1], upper)
    best: Plan | None = None
    for number in numbers:
        chosen = choices(control, number)
        graphs = [_closed_graph(model, chosen, repeating, budget, remembered)]
        if tail_choices is not None:
            graphs += _fine_graphs(model, chosen, tail_choices(control, 0), repeating, budget)
        candidate = max(graphs, key=lambda one: _value(one.evaluation))
        if best is None or _value(candidate.evaluation) > _value(best.evaluation):
            best = Plan(
                None,
                max(upper, _value(candidate.evaluation)),
                stopped=candidate.stopped,
                graph=candidate.graph,
                evaluation=candidate.evaluation,
                policy=None
                if remembered
                else BeliefPolicy(model, _decide_at(model, chosen, candidate.evaluation, repeating)),
                merged=candidate.merged,
            )
    assert best is not None
    return best


@dataclass(frozen=True)
class _EvaluatedGraph:
    """A policy graph with its exact evaluation, the resolution at which beliefs were merged, and why it is not finer."""

    graph: PolicyGraph
    evaluation: Evaluation
    merged: float = 0.0
    stopped: Stopped = "done"


def _closed_graph(model: Model, choices: Choices, tail: _Tail, budget: Budget, remembered: int) -> _EvaluatedGraph:
    """Return a graph that keeps to the best of the choices, at the finest resolution at which its beliefs are few enough.

    Beliefs that the budget, or even the coarsest resolution, leaves out go on with the best node of `tail`.
    """
    for resolution in RESOLUTIONS:
        most = MOST_COARSE if resolution == RESOLUTIONS[-1] else MOST_NODES
        beliefs = _Beliefs(model, choices, remembered, resolution)
        starts = beliefs.begin()
        stopped = beliefs.expand(budget, most)
        if beliefs.is_closed or stopped or resolution == RESOLUTIONS[-1]:
            break
    node_of = beliefs.graph_nodes(tail)
    graph = _linked(beliefs, beliefs.best_choices(tail), node_of, tail, starts)
    merged = 0.0 if resolution == RESOLUTIONS[0] else resolution
    return _EvaluatedGraph(
        graph, evaluate(model, graph), merged, stopped or ("done" if beliefs.is_closed else "memory")
    )


def _fine_graphs(model: Model, choices: Choices, behind: Choices, tail: _Tail, budget: Budget) -> list[_EvaluatedGraph]:
    """Return two graphs: that of the choices `behind`, and one that chooses at unmerged beliefs and then follows the first."""
    rule = _closed_graph(model, behind, tail, budget, 0)
    if len(rule.graph) * model.n_states > MOST_VALUES:
        return [rule]
    goes_on = _Tail(rule.graph, _vectors(rule.evaluation, tail))
    beliefs = _Beliefs(model, choices, 0, RESOLUTIONS[0])
    starts = beliefs.begin()
    stopped = beliefs.expand(budget, MOST_NODES, LEAST_WEIGHT)
    chosen, node_of = beliefs.best_choices(goes_on), beliefs.graph_nodes(goes_on)
    graph = _linked(beliefs, chosen, node_of, goes_on, starts)
    evaluation = evaluate(model, graph)
    for _ in range(0 if beliefs.is_closed or len(graph) * model.n_states > MOST_VALUES else MOST_RELINKINGS):
        # A belief that is not expanded is led to the best node of the whole graph.
        vectors = _vectors(evaluation, goes_on)
        nearer = node_of | {
            number: _best_node(vectors, beliefs.nodes[number].belief)[0] for number in beliefs.unexpanded
        }
        other = _linked(beliefs, chosen, nearer, goes_on, starts)
        result = evaluate(model, other)
        if not _value(result) > _value(evaluation) + BETTER * (1 + abs(_value(evaluation))):
            break
        graph, evaluation = other, result
    return [rule, _EvaluatedGraph(graph, evaluation, stopped=stopped or "done")]


@dataclass(frozen=True)
class _Tail:
    """A policy graph that is followed from beliefs that are not expanded, and lower bounds on its nodes' values, shape (N, S)."""

    graph: PolicyGraph
    vectors: FloatArray


def _known(evaluation: Evaluation) -> FloatArray:
    """Return the values of nodes, shape (N, S), with `VERY_LOW` for pairs of node and state that are never reached."""
    return np.nan_to_num(evaluation.node_values, nan=VERY_LOW, neginf=VERY_LOW)


def _vectors(evaluation: Evaluation, tail: _Tail) -> FloatArray:
    """Return lower bounds on the values of the nodes of a graph that ends with the nodes of `tail`, shape (N, S)."""
    values = _known(evaluation)
    own = len(values) - len(tail.vectors)
    return np.vstack([values[:own], np.maximum(values[own:], tail.vectors)])


def _value(evaluation: Evaluation | None) -> float:
    value = -np.inf if evaluation is None else evaluation.discounted_return
    return -np.inf if np.isnan(value) else float(value)


def _repeating(model: Model, budget: Budget) -> _Tail:
    """Return the graph that has a node for each action, in which that action is repeated without end."""
    graph = PolicyGraph(
        [Decision(action) for action in range(model.n_actions)], [{None: a} for a in range(model.n_actions)]
    )
    if model.discount < 1:
        return _Tail(graph, repeat_values(model, budget).T)
    values = np.zeros((model.n_actions, model.n_states))
    running = ~model.terminal
    anywhere = model.replace(initial=running / running.sum(), reveal_start=True)
    for action in range(model.n_actions):
        repeated = evaluate(anywhere, PolicyGraph([Decision(action)], [{None: 0}])).node_values[0]
        values[action] = np.where(model.terminal, 0.0, np.nan_to_num(repeated, nan=VERY_LOW, neginf=VERY_LOW))
    return _Tail(graph, values)


def _decide_at(model: Model, choices: Choices, evaluation: Evaluation, tail: _Tail) -> Callable[[Belief], Decision]:
    """Return the decision in any belief: the only choice, or the best of them by one step of look-ahead to the nodes' values."""
    is_rule = len(choices(Belief.start(model), 0)) == 1 or len(evaluation.node_values) * model.n_states > MOST_VALUES
    vectors = tail.vectors if is_rule else np.vstack([_known(evaluation), tail.vectors])

    def value(belief: Belief) -> float:
        return float((vectors[:, belief.states] @ belief.probabilities).max())

    def decide(belief: Belief) -> Decision:
        considered = choices(belief, 0)
        if len(considered) == 1:
            return considered[0]
        return Decision(considered[0].action, _largest(measuring_values(model, belief, considered[0].action, value)))

    return decide


# Beliefs as nodes of a policy graph


@dataclass
class _ConsideredBelief:
    """A belief that may come up, and what is considered in it: for each decision what it pays and where it leads."""

    belief: Belief
    waited: int
    weight: float
    decisions: list[Decision] = field(default_factory=list)
    payments: list[float] = field(default_factory=list)
    #: For each decision, (outcome or None, discounted probability, number of the node).
    edges: list[list[tuple[int | None, float, int]]] = field(default_factory=list)


def _after(model: Model, after: Belief, decision: Decision) -> list[tuple[int | None, float, Belief]]:
    """Return what may be seen after a decision if the episode still runs: outcome or None, its probability, and the belief.

    `after` is the belief after the action, before the outcome.
    """
    action, measurement = decision
    if after.is_over:
        return []
    shows = model.shown_by(measurement)
    if shows is None:
        return [(None, 1.0, after)]
    if shows.law is None:
        pairs = zip(after.states.tolist(), after.probabilities.tolist(), strict=True)
        return [(int(state), float(chance), Belief.at(state)) for state, chance in pairs]
    law = shows.law
    rows = after.states + (action * model.n_states if law.by_action else 0)
    sizes = law.offsets[rows + 1] - law.offsets[rows]
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    entries = np.repeat(law.offsets[rows], sizes) + inside
    owners = np.repeat(np.arange(len(rows)), sizes)
    order = np.argsort(law.outcomes[entries], kind="stable")
    outcomes, owners = law.outcomes[entries][order], owners[order]
    weights = after.probabilities[owners] * law.probabilities[entries][order]
    breaks = np.flatnonzero(np.diff(outcomes)) + 1
    branches: list[tuple[int | None, float, Belief]] = []
    for low, high in zip([0, *breaks.tolist()], [*breaks.tolist(), len(outcomes)], strict=True):
        total = float(weights[low:high].sum())
        if total > 0:
            branches.append(
                (int(outcomes[low]), total, Belief(after.states[owners[low:high]], weights[low:high] / total))
            )
    return branches


class _Beliefs:
    """The graph of beliefs that come up under some choices of decisions, the likeliest expanded first.

    Parameters
    ----------
    model : Model
    choices : Choices
    remembered : int
        Number of steps since the last measurement that the choices depend on.
    resolution : float
        Beliefs whose probabilities, divided by this, are the same whole numbers are one node, that of the first of them.
    """

    def __init__(self, model: Model, choices: Choices, remembered: int, resolution: float) -> None:
        self.model, self.choices, self.remembered, self.resolution = model, choices, remembered, resolution
        self.nodes: list[_ConsideredBelief] = []
        self.expanded: list[int] = []
        self._number: dict[tuple[bytes, bytes, int], int] = {}
        self._waiting: list[tuple[float, int]] = []

    @property
    def unexpanded(self) -> list[int]:
        """The nodes that are not expanded."""
        return [number for number, node in enumerate(self.nodes) if not node.decisions]

    @property
    def is_closed(self) -> bool:
        """Whether every node is expanded."""
        return len(self.expanded) == len(self.nodes)

    def begin(self) -> int | dict[int, int]:
        """Add the beliefs with which episodes begin; returns the number of the node, or one for every state that is shown."""
        model = self.model
        if model.reveal_start and len(model.initial_states) > 1:
            return {int(state): self.add(Belief.at(int(state)), 0, 1.0) for state in model.initial_states}
        return self.add(Belief.start(model), 0, 1.0)

    def add(self, belief: Belief, waited: int, weight: float) -> int:
        """Return the number of the node of a belief, which is made if it is new."""
        waited = min(waited, self.remembered - 1) if self.remembered else 0
        steps = np.round(belief.probabilities / self.resolution)
        likely = steps > 0 if steps.any() else belief.probabilities == belief.probabilities.max()
        key = (belief.states[likely].tobytes(), steps[likely].tobytes(), waited)
        number = self._number.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(_ConsideredBelief(belief, waited, weight))
            heapq.heappush(self._waiting, (-weight, number))
        elif weight > self.nodes[number].weight and not self.nodes[number].decisions:
            self.nodes[number].weight = weight
            heapq.heappush(self._waiting, (-weight, number))
        return number

    def expand(self, budget: Budget, most: int, least_weight: float = 0.0) -> Stopped | None:
        """Expand beliefs, the likeliest first, up to `most` of them; returns why the budget stopped it, if it did."""
        while self._waiting and len(self.expanded) < most and -self._waiting[0][0] >= least_weight:
            number = heapq.heappop(self._waiting)[1]
            if self.nodes[number].decisions:
                continue
            if self.expanded and (why := budget.stops()):
                return why
            self._expand(number)
        return None

    def graph_nodes(self, tail: _Tail) -> dict[int, int]:
        """Return the number in the policy graph of every belief: expanded ones first, others as the best node of the tail."""
        node_of = {number: position for position, number in enumerate(self.expanded)}
        for number in self.unexpanded:
            node_of[number] = len(self.expanded) + _best_node(tail.vectors, self.nodes[number].belief)[0]
        return node_of

    def _expand(self, number: int) -> None:
        node, model = self.nodes[number], self.model
        self.expanded.append(number)
        predicted: dict[int, tuple[float, Belief]] = {}
        for decision in self.choices(node.belief, node.waited):
            action, measurement = decision
            if action not in predicted:
                still = node.belief.running_probability(model, action)
                predicted[action] = still, node.belief.predict(model, action)
            still, after = predicted[action]
            paid = float(node.belief.expected(model.rewards[:, action]))
            if measurement:
                prices = model.measurements[measurement - 1].table(model.n_states, model.n_actions)
                paid -= float(node.belief.expected(prices[:, action]))
            running = model.discount * still
            edges: list[tuple[int | None, float, int]] = []
            for outcome, chance, belief in _after(model, after, decision):
                waited = 0 if measurement else node.waited + 1
                weight = running * chance * node.weight
                edges.append((outcome, running * chance, self.add(belief, waited, weight)))
            node.decisions.append(decision)
            node.payments.append(paid)
            node.edges.append(edges)

    def best_choices(self, tail: _Tail) -> npt.NDArray[np.int64]:
        """Return the best decision of each expanded node, by value iteration with lower bounds behind the limit."""
        owners: list[int] = []
        payments: list[float] = []
        rows: list[int] = []
        columns: list[int] = []
        weights: list[float] = []
        for position, number in enumerate(self.expanded):
            node = self.nodes[number]
            for payment, edges in zip(node.payments, node.edges, strict=True):
                for _, weight, child in edges:
                    rows.append(len(owners))
                    columns.append(child)
                    weights.append(weight)
                owners.append(position)
                payments.append(payment)
        shape = (len(owners), len(self.nodes))
        moves = sparse.csr_array((weights, (rows, columns)), shape=shape)
        first = np.searchsorted(owners, np.arange(len(self.expanded)))
        paid, graph_nodes = np.array(payments), np.array(self.expanded)
        values = np.array([_best_node(tail.vectors, node.belief)[1] for node in self.nodes])
        ahead = paid
        for _ in range(MOST_SWEEPS):
            ahead = paid + moves @ values
            best = np.maximum.reduceat(ahead, first)
            change = np.abs(best - values[graph_nodes]).max()
            values[graph_nodes] = best
            if change <= SETTLED * (1 + np.abs(best).max()):
                break
        last = np.append(first[1:], len(owners))
        return np.array([int(np.argmax(ahead[low:high])) for low, high in zip(first, last, strict=True)])


def _best_node(vectors: FloatArray, belief: Belief) -> tuple[int, float]:
    """Return the node with the highest value in a belief, and that value; `vectors` has shape (N, S)."""
    values = vectors[:, belief.states] @ belief.probabilities
    best = int(np.argmax(values))
    return best, float(values[best])


def _linked(
    beliefs: _Beliefs,
    chosen: npt.NDArray[np.int64],
    node_of: dict[int, int],
    tail: _Tail,
    starts: int | dict[int, int],
) -> PolicyGraph:
    """Return the policy graph of expanded beliefs and their chosen decisions, followed by the nodes of `tail`.

    `node_of` has the number in the graph of every belief.
    """
    decisions: list[Decision] = []
    edges: list[dict[int | str | None, int]] = []
    n_expanded = len(beliefs.expanded)
    for position, number in enumerate(beliefs.expanded):
        node, choice = beliefs.nodes[number], int(chosen[position])
        to: dict[int | str | None, int] = {outcome: node_of[child] for outcome, _, child in node.edges[choice]}
        # Outcomes that rounding hid: as after the likeliest one.
        likeliest = max(node.edges[choice], key=lambda edge: edge[1], default=None)
        to.setdefault(None, n_expanded if likeliest is None else to[likeliest[0]])
        decisions.append(node.decisions[choice])
        edges.append(to)
    decisions += tail.graph.decisions
    edges += [{outcome: target + n_expanded for outcome, target in mapping.items()} for mapping in tail.graph.edges]
    if isinstance(starts, int):
        return PolicyGraph(decisions, edges, node_of[starts])
    return PolicyGraph(decisions, edges, {state: node_of[number] for state, number in starts.items()})
