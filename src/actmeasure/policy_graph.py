"""Policy graphs: finite-state controllers, with a decision in every node and an edge for each outcome."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.decision import Decision, expected_decision, is_valid
from actmeasure.errors import ScheduleError, counted, quoted, unknown_name
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.policy import guide_for
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from actmeasure.evaluation import Evaluation

__all__ = ["BoundGraph", "GraphPolicy", "Outcome", "Pairs", "PolicyGraph", "bind", "from_schedule", "trace_pairs"]

IntArray = npt.NDArray[np.int64]
#: Key of an edge: the number or name of an outcome, or None for nothing seen and for outcomes without an edge of their own.
Outcome = int | str | None

#: Largest number of (node, state) pairs, of which those that can be reached are stored.
MOST_PAIRS = 2_000_000_000
#: Number of moves that are computed at a time.
MOVES_AT_A_TIME = 2_000_000
#: Target of an outcome that has no edge.
NO_EDGE = -1


class PolicyGraph:
    """A finite-state controller: in each node a decision, and for each outcome of its measurement the next node.

    Parameters
    ----------
    decisions : sequence of Decision
        The decision of each node; nodes are numbered from 0.
    edges : sequence of mappings from outcome to node
        One mapping for every node. A key is the number of an outcome within the measurement of the node's decision (within the
        passive measurement of the model where the decision makes none) or its name. Outcomes of an exact measurement are states.
        The key None is the edge for *nothing seen*, that is for decisions without a measurement where the model shows nothing for
        free, and it is also the edge for all outcomes that have no key of their own. Outcomes that cannot occur need no edge; no
        edge is taken after the step with which an episode ends.
    start : int, or mapping from state to node
        The node in which an episode begins. Where the first state is shown, it may depend on that state, by number or name.

    Attributes
    ----------
    decisions : tuple of Decision
    edges : tuple of read-only mappings
    start : int, or read-only mapping
    evaluation : Evaluation
        Of graphs that `Solution.policy_graph` returns: exact, on the solution's model. Others are evaluated by `am.evaluate`.

    Examples
    --------
    A crack may be there; look every second year, and repair after a hit:

    >>> import numpy as np
    >>> import actmeasure as am
    >>> P = np.array([[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])     # sound, cracked; wait, repair
    >>> R = np.array([[0.0, -5.0], [-2.0, -5.0]])
    >>> visual = am.Measurement.detection("visual", cost=0.1, pod=[0.05, 0.7])
    >>> model = am.Model.from_arrays(P, R, measurements=[visual], action_names=["wait", "repair"])
    >>> wait, look, repair = am.Decision(0), am.Decision(0, 1), am.Decision(1)
    >>> graph = am.PolicyGraph([wait, look, repair], edges=[{None: 1}, {"hit": 2, None: 0}, {None: 0}])
    >>> print(graph.describe(model, period="year"))
    1. wait. Then go to 2.
    2. wait, with visual. If 'hit': go to 3. Otherwise: go to 1.
    3. repair. Then go to 1.
    >>> result = am.evaluate(model, graph, horizon=30)
    >>> print(round(result.discounted_return, 3), result.looks.round(2))
    -13.742 [13.42]
    """

    decisions: tuple[Decision, ...]
    edges: tuple[Mapping[Outcome, int], ...]
    start: int | Mapping[int | str, int]
    #: Of graphs that were found for a model: what they do there, or a function that computes it.
    _evaluation: Evaluation | Callable[[], Evaluation] | None = None

    def __init__(
        self,
        decisions: Sequence[Decision],
        edges: Sequence[Mapping[Outcome, int]],
        start: int | Mapping[int | str, int] = 0,
    ) -> None:
        self.decisions = _checked_decisions(decisions)
        self.edges = _checked_edges(edges, len(self.decisions))
        self.start = _checked_start(start, len(self.decisions))

    def with_evaluation(self, compute: Callable[[], Evaluation]) -> PolicyGraph:
        """Return this graph, with a function that is called when its `evaluation` is first asked for."""
        self._evaluation = compute
        return self

    @property
    def evaluation(self) -> Evaluation:
        """What the graph does from the start of the model that it was found for; exact."""
        if self._evaluation is None:
            raise ScheduleError(
                "this graph was not found for a model, so that there is nothing to evaluate it on; call am.evaluate(model, graph)"
            )
        if callable(self._evaluation):
            self._evaluation = self._evaluation()
        return self._evaluation

    @property
    def n_nodes(self) -> int:
        """Number of nodes; so is `len(graph)`."""
        return len(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        return self.decisions == other.decisions and self.edges == other.edges and self.start == other.start

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        n_edges = sum(len(edges) for edges in self.edges)
        start = f"start {self.start}" if isinstance(self.start, int) else "start by state"
        return f"PolicyGraph({counted(len(self), 'node')}, {counted(n_edges, 'edge')}, {start})"

    def __getstate__(self) -> dict[str, Any]:
        start = self.start if isinstance(self.start, int) else dict(self.start)
        return {"decisions": self.decisions, "edges": [dict(edges) for edges in self.edges], "start": start}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def policy(self, model: Model) -> GraphPolicy:
        """Return the policy that follows this graph on a model; a `ScheduleError` says what does not fit."""
        return GraphPolicy(self, model)

    def simplified(self, model: Model | None = None) -> PolicyGraph:
        """Return a smaller graph of the same value: without nodes that cannot be reached, equivalent nodes merged.

        Two nodes are equivalent if they have the same decision and their edges lead to equivalent nodes (partition refinement).
        Nodes are numbered in the order in which they are reached from the start, breadth first. Edges that the edge None
        replaces are left out.

        Parameters
        ----------
        model : Model, optional
            With it, nodes that no episode of the model reaches and edges of outcomes that cannot occur there are left out too;
            the graph is then for this model and its start only.
        """
        graph = _merged(_numbered(self))
        return graph if model is None else _numbered(_merged(_pruned(graph, model)))

    def describe(self, model: Model, period: str = "period") -> str:
        """Return the graph as numbered steps that a person can follow, with the model's names.

        Steps are numbered from 1 in the order in which they are reached from the start. Nodes that take the same action one after
        the other, without a measurement and without a choice, are one step: "wait for 4 periods".

        Parameters
        ----------
        model : Model
        period : str
            What a step of the model is called: "year".
        """
        from actmeasure.graph_text import describe

        return describe(self, model, period)

    def to_pandas(self, model: Model | None = None) -> pd.DataFrame:
        """Return a table with a row for every edge: node, action, measurement, outcome, next node.

        With a model, actions, measurements and outcomes are names. The outcome of the edge None is empty, and so are outcome and
        next node of a node without edges. Needs the extra `data`.
        """
        from actmeasure.graph_text import to_pandas

        return to_pandas(self, model)

    def plot(self, model: Model, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the graph, in layers from the start, with the outcomes on its edges (needs the extra `plots`).

        Readable up to 20 nodes or so; draw `graph.simplified(model)` where there are more.

        Parameters
        ----------
        model : Model
        path : str or path, optional
            Where to save the picture, such as `rule.png` or `rule.svg`.
        """
        from actmeasure.graph_drawing import plot_graph

        return plot_graph(self, model, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as a `.json` file."""
        from actmeasure.files import graph_json

        graph_json.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PolicyGraph:
        """Read a graph from a `.json` file that `save` has written; its contents are checked."""
        from actmeasure.files import graph_json

        return graph_json.load(path)


# What is checked without a model


def _checked_decisions(decisions: Any) -> tuple[Decision, ...]:
    is_sequence = isinstance(decisions, Sequence) and not isinstance(decisions, (str, bytes, Decision))
    if not is_sequence or not len(decisions):
        raise ScheduleError(
            f"decisions are {quoted(decisions)}, expected a list with a Decision for every node, at least one"
        )
    return tuple(_checked_decision(decision, node) for node, decision in enumerate(decisions))


def _checked_decision(decision: Any, node: int) -> Decision:
    try:
        action, measurement = Decision(*decision)
        if not isinstance(decision, tuple) or not is_valid(Decision(action, measurement), 2**31, 2**31):
            raise ValueError
    except (TypeError, ValueError):
        raise ScheduleError(
            f"the decision of node {node} is {quoted(decision)}, expected a Decision with the number of an action and of a "
            "measurement, such as Decision(0, 1); 0 is no measurement"
        ) from None
    return Decision(int(action), int(measurement))


def _checked_edges(edges: Any, n_nodes: int) -> tuple[Mapping[Outcome, int], ...]:
    if isinstance(edges, (str, bytes, Mapping)) or not isinstance(edges, Sequence):
        raise ScheduleError(
            f"edges are {quoted(edges)}, expected a list with a mapping for every node, such as [{{'hit': 1, None: 0}}, ...]"
        )
    if len(edges) != n_nodes:
        raise ScheduleError(
            f"there are {n_nodes} decisions, but edges of {len(edges)} nodes; give each node a decision and a mapping from "
            "outcome to node, {} where the episode surely ends"
        )
    checked: dict[int, Mapping[Outcome, int]] = {}  # many nodes may share one mapping
    for node, mapping in enumerate(edges):
        if id(mapping) not in checked:
            checked[id(mapping)] = _checked_mapping(mapping, node, n_nodes)
    return tuple(checked[id(mapping)] for mapping in edges)


def _checked_mapping(mapping: Any, node: int, n_nodes: int) -> Mapping[Outcome, int]:
    if not isinstance(mapping, Mapping):
        raise ScheduleError(
            f"the edges of node {node} are {quoted(mapping)}, expected a mapping from outcome to node, such as "
            "{'hit': 1, None: 0}"
        )
    targets: dict[Outcome, int] = {}
    for key, target in mapping.items():
        outcome = key
        if key is not None and not isinstance(key, str):
            expected = "a name, None, or a whole number"
            outcome = whole(key, f"an outcome of node {node}", 0, 2**31 - 1, ScheduleError, expected)
        where = f"the edge of node {node} for {'None' if outcome is None else repr(outcome)}"
        targets[outcome] = whole(target, where, 0, n_nodes - 1, ScheduleError, "the number of a node,")
    return MappingProxyType(targets)


def _checked_start(start: Any, n_nodes: int) -> int | Mapping[int | str, int]:
    if not isinstance(start, Mapping):
        return whole(start, "start", 0, n_nodes - 1, ScheduleError, "a mapping from state to node, or a node")
    if not start:
        raise ScheduleError("start is an empty mapping, expected a node for every state in which an episode may begin")
    nodes_by_state: dict[int | str, int] = {}
    for key, node in start.items():
        state = key
        if not isinstance(key, str):
            state = whole(
                key, "a state of start", 0, 2**31 - 1, ScheduleError, "the name of a state, or a whole number"
            )
        nodes_by_state[state] = whole(
            node, f"the start in state {state!r}", 0, n_nodes - 1, ScheduleError, "the number of a node,"
        )
    return MappingProxyType(nodes_by_state)


# On a model


@dataclass(frozen=True, eq=False)
class BoundGraph:
    """A policy graph on a model, as arrays.

    Attributes
    ----------
    actions, measurements : int64 arrays, shape (N,)
    targets : tuple of N int64 arrays, each of shape (O,)
        The next node after each outcome of the node's measurement, -1 where there is no edge. Where nothing is seen, O is 1.
    start : int64 array, shape (n_initial,)
        The node in which an episode begins, for each of `model.initial_states`.
    """

    actions: IntArray
    measurements: IntArray
    targets: tuple[IntArray, ...]
    start: IntArray


def bind(graph: PolicyGraph, model: Model) -> BoundGraph:
    """Return a graph as arrays for a model; a `ScheduleError` names the node whose decision or edges do not fit."""
    if not isinstance(graph, PolicyGraph):
        raise ScheduleError(f"the graph is {quoted(graph)}, expected a PolicyGraph")
    if not isinstance(model, Model):
        raise ScheduleError(f"the model is {quoted(model)}, expected a Model")
    _check_decisions_fit(graph, model)
    names = _OutcomeNames(model)
    shared: dict[tuple[int, int], IntArray] = {}
    targets = []
    for node, (decision, edges) in enumerate(zip(graph.decisions, graph.edges, strict=True)):
        key = (id(edges), decision.measurement)
        if key not in shared:
            shared[key] = _targets(model, names, node, decision.measurement, edges)
        targets.append(shared[key])
    return BoundGraph(
        actions=np.array([decision.action for decision in graph.decisions], dtype=np.int64),
        measurements=np.array([decision.measurement for decision in graph.decisions], dtype=np.int64),
        targets=tuple(targets),
        start=_start_nodes(graph, model),
    )


def _check_decisions_fit(graph: PolicyGraph, model: Model) -> None:
    n_measurements = len(model.measurements)
    for node, decision in enumerate(graph.decisions):
        if not is_valid(decision, model.n_actions, n_measurements):
            raise ScheduleError(
                f"the decision of node {node} is {decision}, {expected_decision(model.n_actions, n_measurements)}"
            )
        if not model.allowed_decisions[decision.action, decision.measurement]:
            name = model.measurements[decision.measurement - 1].name
            allowed = np.flatnonzero(model.allowed_decisions[:, decision.measurement]).tolist()
            raise ScheduleError(
                f"node {node} makes the measurement {name!r} with action {model.action_name(decision.action)!r}, but it can only "
                f"be made with {', '.join(repr(model.action_name(action)) for action in allowed)}; change the decision"
            )


class _OutcomeNames:
    """The numbers of outcomes by name, for each measurement of a model, built when they are first asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.known: dict[int, dict[str, int]] = {}

    def of(self, measurement: int) -> dict[str, int]:
        if measurement not in self.known:
            shows, count = self.model.shown_by(measurement), self.model.n_outcomes(measurement)
            names = (
                self.model.state_names if shows is not None and shows.law is None else getattr(shows, "outcomes", None)
            )
            listed = [str(number) for number in range(count)] if names is None else names
            self.known[measurement] = {name: number for number, name in enumerate(listed)}
        return self.known[measurement]


def _targets(model: Model, names: _OutcomeNames, node: int, measurement: int, edges: Mapping[Outcome, int]) -> IntArray:
    """Return the next node after each outcome, shape (O,)."""
    shows, count = model.shown_by(measurement), model.n_outcomes(measurement)
    default = edges.get(None, NO_EDGE)
    targets = np.full(count if shows is not None else 1, default, dtype=np.int64)
    keys: dict[int, Outcome] = {}
    for outcome, target in edges.items():
        if outcome is None:
            continue
        if shows is None:
            raise ScheduleError(
                f"node {node} has an edge for the outcome {quoted(outcome)}, but its decision makes no measurement and nothing "
                "is seen without one; keep the edge None only"
            )
        if isinstance(outcome, str):
            known = names.of(measurement)
            if outcome not in known:
                message = unknown_name(f"outcome of {shows.name!r}", outcome, list(known)[:50])
                raise ScheduleError(f"the edges of node {node}: {message}")
            number = known[outcome]
        else:
            number = whole(
                outcome, f"an outcome in the edges of node {node}", 0, count - 1, ScheduleError,
                f"a name, or the number of an outcome of {shows.name!r},",
            )  # fmt: skip
        if number in keys:
            raise ScheduleError(
                f"node {node} has two edges for one outcome, as {quoted(keys[number])} and as {quoted(outcome)}; remove one"
            )
        keys[number] = outcome
        targets[number] = target
    targets.setflags(write=False)
    return targets


def _start_nodes(graph: PolicyGraph, model: Model) -> IntArray:
    """Return the first node for each of the model's initial states, shape (n_initial,)."""
    if isinstance(graph.start, int):
        return np.full(len(model.initial_states), graph.start, dtype=np.int64)
    if not model.start_is_known:
        raise ScheduleError(
            "start is a mapping from state to node, but the model's first state is not shown; give one node, start=0"
        )
    node_of_state = _start_by_state(graph.start, model)
    missing = [state for state in model.initial_states.tolist() if state not in node_of_state]
    if missing:
        raise ScheduleError(
            f"start has no node for {model.describe_state(missing[0])}, in which an episode may begin; add it"
        )
    return np.array([node_of_state[state] for state in model.initial_states.tolist()], dtype=np.int64)


def _start_by_state(start: Mapping[int | str, int], model: Model) -> dict[int, int]:
    """Return the first node of each state of a mapping, with numbers for names."""
    numbers = {name: number for number, name in enumerate(model.state_names or ())}
    nodes_by_state: dict[int, int] = {}
    for key, node in start.items():
        if isinstance(key, str) and key not in numbers:
            raise ScheduleError(
                f"start: {unknown_name('state', key, list(numbers)[:50] or ['(states have no names)'])}"
            )
        state = numbers[key] if isinstance(key, str) else key
        if not 0 <= state < model.n_states:
            raise ScheduleError(f"start has state {state}, expected states from 0 to {model.n_states - 1}")
        if state in nodes_by_state:
            raise ScheduleError(f"start has {model.describe_state(state)} twice, by name and by number; remove one")
        nodes_by_state[state] = node
    return nodes_by_state


class GraphPolicy:
    """Follows a policy graph on a model; `graph.policy(model)` returns one.

    Parameters
    ----------
    graph : PolicyGraph
    model : Model
        Its measurements tell which outcomes there are.

    Attributes
    ----------
    graph : PolicyGraph
    model : Model
    node : int
        The node of the next decision; -1 before an episode has begun.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.measuring_value(measuring_cost=0.05)
    >>> graph = am.solve(model).schedule.policy_graph(model)
    >>> policy = graph.policy(model)
    >>> policy.start(am.Belief.at(0))
    >>> graph.decisions[policy.node] == policy.decide()
    True
    """

    def __init__(self, graph: PolicyGraph, model: Model) -> None:
        self._bound = bind(graph, model)
        self._start = graph.start if isinstance(graph.start, int) else _start_by_state(graph.start, model)
        self.graph, self.model = graph, model
        self.node = NO_EDGE

    def start(self, belief: Belief) -> None:
        """Begin in the start node; where that depends on the first state, the belief must know it."""
        if isinstance(self._start, int):
            self.node = self._start
            return
        known = belief.known
        if known not in self._start:
            raise ScheduleError(
                f"the belief is {belief!r}, and the graph has no start node for it; start it with Belief.at(state), with one of "
                f"the {len(self._start)} states of its start"
            )
        self.node = self._start[known]

    def decide(self) -> Decision:
        """Return the decision of the node."""
        if self.node < 0:
            raise ScheduleError("no episode has begun, or it is over; call start(belief) first")
        return self.graph.decisions[self.node]

    def observe(self, outcome: int | None) -> None:
        """Go to the next node: along the edge of the outcome, or with None along that of nothing seen."""
        decision = self.decide()
        targets = self._bound.targets[self.node]
        shows = self.model.shown_by(decision.measurement)
        if outcome is None:
            target = int(targets[0]) if shows is None else self.graph.edges[self.node].get(None, NO_EDGE)
        elif shows is None:
            raise ScheduleError(
                f"the outcome is {quoted(outcome)}, but node {self.node} makes no measurement, and nothing is seen; pass None"
            )
        else:
            target = int(targets[whole(outcome, f"the outcome of {shows.name!r}", 0, len(targets) - 1, ScheduleError)])
        if target < 0:
            seen = "nothing seen" if outcome is None else self.model.outcome_name(decision.measurement, int(outcome))
            raise _no_edge(self.node, seen, "which came up")
        self.node = target

    def __repr__(self) -> str:
        return f"GraphPolicy({self.graph!r})"


def _no_edge(node: int, seen: str, where: str) -> ScheduleError:
    what = seen if seen == "nothing seen" else f"the outcome {seen!r}"
    return ScheduleError(
        f"node {node} has no edge for {what}, {where}; add one, or the edge None for all other outcomes"
    )


# The (node, state) pairs that episodes reach


@dataclass(frozen=True, eq=False)
class Pairs:
    """The (node, state) pairs that episodes of a model reach under a policy graph, and the moves between them.

    Attributes
    ----------
    nodes, states : int64 arrays, shape (n_pairs,)
        In ascending order of node, then state.
    start : float64 array, shape (n_pairs,)
        Probability of beginning in each pair.
    moves : sparse array, shape (n_pairs, n_pairs)
        Probability of the next pair; the rest has ended.
    ending : float64 array, shape (n_pairs,)
        Probability that the episode ends after the pair.
    """

    nodes: IntArray
    states: IntArray
    start: FloatArray
    moves: sparse.csr_array[np.float64]
    ending: FloatArray


@dataclass(frozen=True, eq=False)
class _NextNodes:
    """Probability of the next node given the state that was reached, as compressed rows; a node may occur twice in a row.

    The row of node `n` and state `t` is `first[n] + stride[n] * t`. The stride is 0 where all outcomes lead to one node, so that
    there is one row for all states. Missing edges lead to node N.
    """

    first: IntArray
    stride: IntArray
    offsets: IntArray
    nodes: IntArray
    probabilities: FloatArray


def trace_pairs(model: Model, bound: BoundGraph) -> Pairs:
    """Return the (node, state) pairs that can be reached from the model's start; a `ScheduleError` where an edge is missing."""
    n_nodes, n_states = len(bound.actions), model.n_states
    if n_nodes * n_states > MOST_PAIRS:
        raise ScheduleError(
            f"the graph has {n_nodes:,} nodes and the model {n_states:,} states, which are too many pairs; call "
            "graph.simplified() first, or simulate"
        )
    follows = _next_nodes(model, bound)
    start_keys = bound.start * n_states + model.initial_states
    reached = np.zeros(n_nodes * n_states, dtype=bool)
    frontier = np.unique(start_keys)
    reached[frontier] = True
    keys, sources, targets, weights, ends = [frontier], [], [], [], []
    while frontier.size:
        unvisited = []
        for part in _pieces(model, bound, frontier):
            from_pair, to_pair, weight, ending = _moves(model, bound, follows, part)
            sources.append(part[from_pair])
            targets.append(to_pair)
            weights.append(weight)
            ends.append((part, ending))
            unvisited.append(to_pair[~reached[to_pair]])
        frontier = np.unique(np.concatenate(unvisited))
        reached[frontier] = True
        keys.append(frontier)
    all_keys = np.sort(np.concatenate(keys))
    size = len(all_keys)

    def position(parts: list[IntArray]) -> IntArray:
        return np.searchsorted(all_keys, np.concatenate(parts)).astype(np.int64)

    ending = np.zeros(size)
    ending[position([part for part, _ in ends])] = np.concatenate([chances for _, chances in ends])
    coordinates = (position(sources), position(targets))
    moves = sparse.csr_array((np.concatenate(weights), coordinates), shape=(size, size))
    start = np.bincount(position([start_keys]), weights=model.initial_probabilities, minlength=size)
    return Pairs(all_keys // n_states, all_keys % n_states, start.astype(np.float64), moves, ending)


def _pieces(model: Model, bound: BoundGraph, frontier: IntArray) -> Iterator[IntArray]:
    """Yield pairs in pieces with a limited number of transitions each."""
    nodes, states = np.divmod(frontier, model.n_states)
    rows = states * model.n_actions + bound.actions[nodes]
    before = np.cumsum(np.diff(model.transitions.offsets)[rows])
    cuts = np.searchsorted(before, np.arange(MOVES_AT_A_TIME, int(before[-1]), MOVES_AT_A_TIME))
    for part in np.split(frontier, np.unique(cuts)):
        if part.size:
            yield part


def _moves(
    model: Model, bound: BoundGraph, follows: _NextNodes, pairs: IntArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return all moves from some pairs: position in `pairs`, next pair and probability; and the probability of an end."""
    table, n_states = model.transitions, model.n_states
    nodes, states = np.divmod(pairs, n_states)
    rows = states * model.n_actions + bound.actions[nodes]
    entry, source = _entries(table.offsets, rows)
    successor, chance = table.successors[entry].astype(np.int64), table.probabilities[entry]
    over = model.terminal[successor]
    ending = np.bincount(source[over], weights=chance[over], minlength=len(pairs)).astype(np.float64)
    source, successor, chance = source[~over], successor[~over], chance[~over]
    following = follows.first[nodes[source]] + follows.stride[nodes[source]] * successor
    entry, transition = _entries(follows.offsets, following)
    target = follows.nodes[entry]
    missing = target == len(bound.actions)
    if missing.any():
        first = transition[int(np.argmax(missing))]
        raise _missing_edge(model, bound, int(nodes[source[first]]), int(states[source[first]]), int(successor[first]))
    return (
        source[transition],
        target * n_states + successor[transition],
        chance[transition] * follows.probabilities[entry],
        ending,
    )


def _entries(offsets: npt.NDArray[np.integer], rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the entries of some compressed rows, one row after the other, and for each the position of its row in `rows`."""
    begin = offsets[rows].astype(np.int64)
    counts = offsets[rows + 1].astype(np.int64) - begin
    position = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(len(position)) - np.repeat(np.cumsum(counts) - counts, counts)
    return begin[position] + within, position


def _missing_edge(model: Model, bound: BoundGraph, node: int, state: int, successor: int) -> ScheduleError:
    """Return the error that an outcome of positive probability has no edge."""
    measurement, action = int(bound.measurements[node]), int(bound.actions[node])
    shows, seen = model.shown_by(measurement), "nothing seen"
    if shows is not None:
        possible = np.array([successor])
        if shows.law is not None:
            possible = shows.law.of_action(action, model.n_states)[[successor]].indices
        without = possible[bound.targets[node][possible] == NO_EDGE]
        seen = model.outcome_name(measurement, int(without[0]))
    where = (
        f"which can come up after action {model.action_name(action)!r} in {model.describe_state(state)} leads to "
        f"{model.describe_state(successor)}"
    )
    return _no_edge(node, seen, where)


def _next_nodes(model: Model, bound: BoundGraph) -> _NextNodes:
    n_nodes, n_states = len(bound.actions), model.n_states
    first, stride = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    known: dict[tuple[int, int, int], tuple[int, int]] = {}
    counts: list[IntArray] = []  # entries of each row
    nodes: list[IntArray] = []
    chances: list[FloatArray] = []
    n_rows = 0
    for node in range(n_nodes):
        targets, measurement = bound.targets[node], int(bound.measurements[node])
        shows = model.shown_by(measurement)
        law = None if shows is None else shows.law
        action = int(bound.actions[node]) if law is not None and law.by_action else 0
        key = (id(targets), measurement, action)
        if key not in known:
            columns = np.where(targets == NO_EDGE, n_nodes, targets).astype(np.int64)
            is_one = bool((columns == columns[0]).all())
            if is_one or law is None:  # the same node after every outcome, or an edge for every state
                columns = columns[:1] if is_one else columns
                rows, chance = np.ones(len(columns), dtype=np.int64), np.ones(len(columns))
            else:
                offsets = law.offsets[action * n_states : (action + 1) * n_states + 1]
                rows, entries = np.diff(offsets), slice(int(offsets[0]), int(offsets[-1]))
                columns, chance = columns[law.outcomes[entries]], law.probabilities[entries]
            known[key] = (n_rows, int(not is_one))
            counts.append(rows)
            nodes.append(columns)
            chances.append(chance)
            n_rows += len(rows)
        first[node], stride[node] = known[key]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    return _NextNodes(first, stride, offsets, np.concatenate(nodes), np.concatenate(chances))


# Simpler graphs


def _first_nodes(graph: PolicyGraph) -> list[int]:
    return [graph.start] if isinstance(graph.start, int) else list(graph.start.values())


def _numbered(graph: PolicyGraph) -> PolicyGraph:
    """Return the graph without nodes that cannot be reached, the others in the order in which they are, breadth first."""
    order = list(dict.fromkeys(_first_nodes(graph)))
    seen, shared = set(order), set()
    for node in order:
        if id(graph.edges[node]) in shared:
            continue
        shared.add(id(graph.edges[node]))
        for target in graph.edges[node].values():
            if target not in seen:
                seen.add(target)
                order.append(target)
    number = {node: position for position, node in enumerate(order)}
    return _renamed(graph, order, number)


def _renamed(graph: PolicyGraph, kept: list[int], number: Mapping[int, int]) -> PolicyGraph:
    """Return the graph of some nodes, with edges to the new number of every node and without those that None replaces."""
    renamed: dict[int, dict[Outcome, int]] = {}
    for node in kept:
        edges = graph.edges[node]
        if id(edges) not in renamed:
            default = number[edges[None]] if None in edges else None
            new = {outcome: number[target] for outcome, target in edges.items()}
            renamed[id(edges)] = {o: target for o, target in new.items() if o is None or target != default}
    start = graph.start
    return PolicyGraph(
        [graph.decisions[node] for node in kept],
        [renamed[id(graph.edges[node])] for node in kept],
        number[start] if isinstance(start, int) else {state: number[node] for state, node in start.items()},
    )


def _merged(graph: PolicyGraph) -> PolicyGraph:
    """Return the graph with one node for every class of equivalent nodes, by partition refinement."""
    class_of = _class_numbers(list(graph.decisions))
    while True:
        shared: dict[int, frozenset[tuple[Outcome, int]]] = {}
        for edges in graph.edges:
            if id(edges) not in shared:
                default = class_of[edges[None]] if None in edges else NO_EDGE
                pairs = ((outcome, class_of[target]) for outcome, target in edges.items())
                shared[id(edges)] = frozenset(pair for pair in pairs if pair[0] is None or pair[1] != default)
        # Edges that are equal share one number, so that large mappings are hashed once.
        number_of = dict(zip(shared, _class_numbers(list(shared.values())), strict=True))
        signatures = [(class_of[node], number_of[id(edges)]) for node, edges in enumerate(graph.edges)]
        finer = _class_numbers(signatures)
        if max(finer) == max(class_of):
            break
        class_of = finer
    kept = [class_of.index(number) for number in range(max(class_of) + 1)]
    return _renamed(graph, kept, dict(enumerate(class_of)))


def _class_numbers(values: list[Any]) -> list[int]:
    """Return equal numbers for equal values, counted from 0 in order of first appearance."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _pruned(graph: PolicyGraph, model: Model) -> PolicyGraph:
    """Return the graph with the nodes that episodes reach and the edges of outcomes that can occur there."""
    bound = bind(graph, model)
    pairs = trace_pairs(model, bound)
    names = _OutcomeNames(model)
    nodes, begin = np.unique(pairs.nodes, return_index=True)
    edges: list[dict[Outcome, int]] = []
    for node, states in zip(nodes.tolist(), np.split(pairs.states, begin[1:]), strict=True):
        possible = _possible_outcomes(model, int(bound.actions[node]), int(bound.measurements[node]), states)
        edges.append(_edges_of(graph.edges[node], int(bound.measurements[node]), possible, names))
    number = {node: position for position, node in enumerate(nodes.tolist())}
    start: int | dict[int | str, int] = 0
    if isinstance(graph.start, int):
        start = number[graph.start]
    else:
        initial = set(model.initial_states.tolist())
        state_numbers = {name: position for position, name in enumerate(model.state_names or ())}
        by_state = {
            key: number[node]
            for key, node in graph.start.items()
            if (state_numbers[key] if isinstance(key, str) else key) in initial
        }
        start = next(iter(by_state.values())) if len(set(by_state.values())) == 1 else by_state
    renumbered = [{outcome: number[target] for outcome, target in mapping.items()} for mapping in edges]
    return PolicyGraph([graph.decisions[node] for node in nodes.tolist()], renumbered, start)


def _possible_outcomes(model: Model, action: int, measurement: int, states: IntArray) -> IntArray:
    """Return the outcomes that can come up after an action in some states, -1 for nothing seen; empty if it surely ends."""
    table = model.transitions
    entry, _ = _entries(table.offsets, states * model.n_actions + action)
    reached = np.unique(table.successors[entry]).astype(np.int64)
    reached = reached[~model.terminal[reached]]
    shows = model.shown_by(measurement)
    if shows is None:
        return np.full(min(1, reached.size), -1, dtype=np.int64)
    if shows.law is None:
        return reached
    return np.unique(shows.law.of_action(action, model.n_states)[reached].indices).astype(np.int64)


def _edges_of(
    edges: Mapping[Outcome, int], measurement: int, possible: IntArray, names: _OutcomeNames
) -> dict[Outcome, int]:
    """Return the edges of possible outcomes, with the keys that they had."""
    left = set(possible.tolist())
    kept: dict[Outcome, int] = {}
    for outcome, target in edges.items():
        number = names.of(measurement)[outcome] if isinstance(outcome, str) else outcome
        if number in left:
            left.remove(number)
            kept[outcome] = target
    if left and None in edges:
        kept[None] = edges[None]
    return kept


# Schedules as graphs


def from_schedule(schedule: Schedule, model: Model) -> PolicyGraph:
    """Return the policy graph of a schedule on a model with exact looks; `schedule.policy_graph(model)` calls it.

    There is a node for every step of every plan; states that share a plan share its nodes, but where a plan leads to a known
    state there is a copy for each of these.
    """
    model.require_exact_looks("a Schedule", "write the rule as a PolicyGraph")
    schedule.check_fits(model)
    return _ScheduleNodes(schedule, model).graph()


class _ScheduleNodes:
    """Adds the nodes of the plans of a schedule, each plan once for every node that may follow it."""

    def __init__(self, schedule: Schedule, model: Model) -> None:
        self.schedule, self.model = schedule, model
        self.guide = guide_for(schedule, model)
        self.decisions: list[Decision] = []
        self.edges: list[dict[Outcome, int]] = []
        self.after_look: dict[Outcome, int] = {}  # one mapping, which all nodes with a look share
        self.first_node: dict[tuple[int, int], int] = {}
        self.last_nodes: list[tuple[int, int]] = []  # of plans that lead to a known state

    def graph(self) -> PolicyGraph:
        for state in self.schedule:
            if not self.model.terminal[state]:
                number, known = int(self.schedule.plan_of_state[state]), int(self.guide.known_after[state])
                self.after_look[state] = self._node_of(number, self.schedule[state], known)
        start: int | dict[int | str, int]
        hidden = None if self.model.reveal_start else self.schedule.start_plan(self.model)
        if hidden is not None:
            start = self._node_of(len(self.schedule.plans), hidden, int(self.guide.known_after[-1]))
        elif self.model.reveal_start:
            start = {state: node for state, node in self.after_look.items() if isinstance(state, int)}
        elif self.model.start_is_known and int(self.model.initial_states[0]) in self.after_look:
            start = self.after_look[int(self.model.initial_states[0])]
        else:
            raise ScheduleError(
                "the model's first state is not shown, but the schedule has no plan for that; give it start=BlindPlan(...)"
            )
        for node, state in self.last_nodes:
            if state not in self.after_look:
                raise ScheduleError(
                    f"the schedule comes to know {self.model.describe_state(state)}, but has no plan for it; add a BlindPlan"
                )
            self.edges[node] = {None: self.after_look[state]}
        return PolicyGraph(self.decisions, self.edges, start)

    def _node_of(self, number: int, plan: BlindPlan, known_after: int) -> int:
        """Return the first node of a plan, after adding its nodes unless they are there."""
        key = (number, known_after if plan.then == "known" else -1)
        if key in self.first_node:
            return self.first_node[key]
        first = self.first_node[key] = len(self.decisions)
        last = first + len(plan) - 1
        self.decisions += [plan.decision(step) for step in range(len(plan))]
        self.edges += [{None: node + 1} for node in range(first, last)]
        match plan.then:
            case "measure":
                self.edges.append(self.after_look)
            case "repeat":
                self.edges.append({None: last + 1 - plan.repeat})
            case _:
                self.edges.append({})
                if plan.then == "known" and known_after >= 0:
                    self.last_nodes.append((last, known_after))
        return first
