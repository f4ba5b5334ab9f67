"""The graph of beliefs in Python: its allocation, the schedule behind its lower bounds, and policy iteration on its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.kernels import belief_graph as kernel
from actmeasure.kernels.belief_graph import NODES, Bounds, Graph, Scratch
from actmeasure.kernels.dynamics import EPSILON, relative_error
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["extract_schedule", "lower_upper_bounds", "make_graph", "make_scratch", "start_nodes", "with_more_room"]

#: Nodes of a new graph, and entries for each of them.
FIRST_CAPACITY, ENTRIES_PER_NODE = 1 << 12, 16
#: Longest blind path that the search follows.
LONGEST_SEARCH_PATH = 20_000
#: A repeated action that surely ends the episode within this many steps is written out in the schedule.
SOON = 20


def make_graph(model: Model) -> Graph:
    """Return an empty graph, with capacity for a node in which each state is known."""
    # A power of two, as the hash table needs it.
    capacity = max(FIRST_CAPACITY, 1 << (model.n_states + model.n_actions).bit_length())
    entries = max(FIRST_CAPACITY * ENTRIES_PER_NODE, 4 * model.n_states * (model.n_actions + 2))
    return _allocate(model.n_states, model.n_actions, capacity, entries)


def _allocate(n_states: int, n_actions: int, capacity: int, entries: int) -> Graph:
    def floats(*shape: int) -> Any:
        return np.empty(shape)

    return Graph(
        counts=np.zeros(4, np.int64),
        offsets=np.zeros(capacity + 1, np.int64),
        states=np.empty(entries, np.int32),
        probabilities=floats(entries),
        known=np.full(capacity, -1, np.int32),
        upper=floats(capacity),
        lower=floats(capacity),
        reveal_upper=floats(capacity),
        reveal_lower=floats(capacity),
        expanded=np.zeros(capacity, np.bool_),
        child=np.full((capacity, n_actions), -1, np.int32),
        running=floats(capacity, n_actions),
        reward=floats(capacity, n_actions),
        cost=floats(capacity, n_actions),
        error=floats(capacity, n_actions),
        margin=floats(capacity, n_actions),
        scale=floats(capacity),
        exit_choice=np.full(capacity, -1, np.int32),
        lower_choice=np.full(capacity, -1, np.int32),
        parent=np.full(capacity, -1, np.int32),
        parent_action=np.zeros(capacity, np.int32),
        mixed_at=np.zeros(capacity, np.int64),
        mark=np.zeros(capacity, np.int64),
        hashes=np.zeros(capacity, np.uint64),
        table=np.full(4 * capacity, -1, np.int32),
        node_of_state=np.full(n_states, -1, np.int32),
    )


def with_more_room(graph: Graph, most_bytes: int) -> Graph | None:
    """Return a copy with twice the capacity for what is nearly full, or None if both would take more than `most_bytes`."""
    capacity, n_actions = graph.child.shape
    n_nodes, n_entries = int(graph.counts[kernel.NODES]), int(graph.counts[kernel.ENTRIES])
    more_nodes = 2 if kernel.is_short_of_nodes(graph) else 1
    more_entries = 2 if kernel.is_short_of_entries(graph) else 1
    for_entries = graph.states.nbytes + graph.probabilities.nbytes
    for_nodes = sum(array.nbytes for array in graph) - for_entries
    if (1 + more_nodes) * for_nodes + (1 + more_entries) * for_entries > most_bytes:
        return None
    larger = _allocate(len(graph.node_of_state), n_actions, more_nodes * capacity, more_entries * len(graph.states))
    used = {"counts": 4, "offsets": n_nodes + 1, "states": n_entries, "probabilities": n_entries, "table": 0}
    for name, array in graph._asdict().items():
        size = len(array) if name == "node_of_state" else used.get(name, n_nodes)
        getattr(larger, name)[:size] = array[:size]
    kernel.fill_table(larger)
    return larger


def make_scratch(n_states: int) -> Scratch:
    """Return the work arrays of the kernels."""
    return Scratch(
        states=np.empty(n_states, np.int64),
        weights=np.empty(n_states),
        position=np.full(n_states, -1, np.int64),
        dense=np.zeros(n_states),
        path=np.empty(LONGEST_SEARCH_PATH, np.int64),
        path_weights=np.empty(LONGEST_SEARCH_PATH),
        cycle_values=np.empty(LONGEST_SEARCH_PATH),
        cycle_rewards=np.empty(LONGEST_SEARCH_PATH),
        cycle_factors=np.empty(LONGEST_SEARCH_PATH),
        leaving=np.empty(LONGEST_SEARCH_PATH),
        free=np.empty(LONGEST_SEARCH_PATH, np.bool_),
        used=np.zeros(n_states, np.bool_),
        met=np.zeros(n_states, np.bool_),
        difference=np.zeros(1),
    )


def start_nodes(model: Model, graph: Graph, bounds: Bounds, scratch: Scratch) -> tuple[npt.NDArray[np.int64], Any]:
    """Return the nodes at which an episode may begin (known states, or one belief) and their probabilities."""
    if model.start_is_known:
        nodes = [_query(graph, bounds, scratch, kernel.NODE_OF_STATE, state) for state in model.initial_states]
        return np.array(nodes, dtype=np.int64), model.initial_probabilities
    count = len(model.initial_states)
    scratch.states[:count] = model.initial_states
    scratch.weights[:count] = model.initial_probabilities
    return np.array([_query(graph, bounds, scratch, kernel.NODE_OF_BELIEF, count)], dtype=np.int64), np.ones(1)


def _query(graph: Graph, bounds: Bounds, scratch: Scratch, what: int, number: int, discount: float = 1.0) -> int:
    """Return the number that `kernel.query` answers."""
    return int(kernel.query(graph, bounds, scratch, discount, what, int(number))[1])


def extract_schedule(
    model: Model, graph: Graph, bounds: Bounds, starts: npt.NDArray[np.int64], scratch: Scratch
) -> Schedule:
    """Return the schedule behind the lower bounds: at every node the choice with the highest lower bound."""
    plans: dict[int, BlindPlan] = {}
    start_plan, waiting = None, []
    for node in starts:
        if graph.known[node] >= 0:
            waiting.append(int(graph.known[node]))
        else:
            start_plan, waiting = _plan(graph, bounds, scratch, model, int(node))
    while waiting:
        state = waiting.pop()
        if state not in plans:
            node = _query(graph, bounds, scratch, kernel.NODE_OF_STATE, state)
            plans[state], further = _plan(graph, bounds, scratch, model, node)
            waiting += further
    return Schedule(plans, model.n_states, start_plan)


def _plan(graph: Graph, bounds: Bounds, scratch: Scratch, model: Model, node: int) -> tuple[BlindPlan, list[int]]:
    """Return the plan behind the lower bound of a node, and the states that it may come to know."""
    actions: list[int] = []
    seen = {node: 0}
    while graph.expanded[node] and (model.discount < 1 or graph.lower_choice[node] >= 0):
        # Without discount, a choice of equal value may lead round in a cycle; the stored choices do not (see `back_up`).
        if model.discount < 1:
            choice = _query(graph, bounds, scratch, kernel.LOWER_CHOICE, node, model.discount)
        else:
            choice = int(graph.lower_choice[node])
        actions.append(choice // 2)
        node = int(graph.child[node, choice // 2])
        if node < 0:
            return BlindPlan(tuple(actions), then="measure" if choice % 2 else "end"), []
        if choice % 2 == 1:
            return BlindPlan(tuple(actions), then="measure"), _support(graph, node)
        if graph.known[node] >= 0:
            return BlindPlan(tuple(actions), then="known"), _support(graph, node)
        if node in seen:
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - seen[node]), []
        seen[node] = len(actions)
    value, column = kernel.query(graph, bounds, scratch, model.discount, kernel.LOWER_VECTOR, node)
    if not np.isfinite(value):
        raise PlanError("no schedule with a finite value was found in time; allow more time, or use a discount below 1")
    if column < model.n_actions:
        actions.append(int(column))
        return BlindPlan(tuple(actions), then="measure"), _successors(graph, model, node, int(column))
    return _repeating(model, _belief(graph, node), actions, int(column) - model.n_actions), []


def _repeating(model: Model, belief: Belief, actions: list[int], action: int) -> BlindPlan:
    """Return the plan that repeats an action without end, or as often as it takes where the episode is soon over."""
    for times in range(1, SOON + 1):
        belief = belief.predict(model, action)
        if belief.is_over:
            return BlindPlan((*actions, *[action] * times), then="end")
    return BlindPlan((*actions, action), then="repeat", repeat=1)


def _belief(graph: Graph, node: int) -> Belief:
    """Return the belief of a node."""
    entries = slice(graph.offsets[node], graph.offsets[node + 1])
    order = np.argsort(graph.states[entries])
    return Belief(graph.states[entries][order].astype(np.int64), graph.probabilities[entries][order])


def _support(graph: Graph, node: int) -> list[int]:
    """Return the states of a node's belief."""
    return [int(state) for state in graph.states[graph.offsets[node] : graph.offsets[node + 1]]]


def _successors(graph: Graph, model: Model, node: int, action: int) -> list[int]:
    """Return the non-terminal states that an action may lead to from a node that has not been expanded."""
    reached = {int(to) for state in _support(graph, node) for to in model.transitions.row(state, action)[0]}
    return [state for state in reached if not model.terminal[state]]


# Policy iteration on a part of the graph.
#
# Near discount 1 the upper bounds of known states rest on each other: a plan looks, comes to know a state whose plan looks, and
# so on, and a round of backing up takes only the fraction 1 - g off a gap. Some expanded nodes, all of them or those on the way
# of the schedule with the highest bounds, are a decision problem of their own, in which the value of every other node is its
# present upper bound, or that of its `reveal` if that is less. With T the back-up of these nodes, monotone and a contraction with
# factor g,
#
#     T u <= u + d in every node  implies  V <= u + d / (1 - g),
#
# so `u` may come from anywhere. Here it comes from policy iteration, a sparse linear solve a step. T is rounded upwards as in
# `kernels/belief_graph.py`, and so is u + d / (1 - g).

IntArray = npt.NDArray[np.int64]

#: Most steps of policy iteration, and most restarts with other bounds for blind choices; usually a handful of each.
MOST_STEPS, MOST_ROUNDS = 50, 5
#: Relative change of the values that ends policy iteration.
SETTLED = 1e-14
#: A part of the graph with more entries of beliefs than this is left to backing up.
MOST_BELIEF_ENTRIES = 200_000


def lower_upper_bounds(graph: Graph, bounds: Bounds, discount: float, on_the_way: IntArray) -> None:
    """Lower the upper bounds of all expanded nodes by policy iteration, or of some, shape (n,), if all are too many.

    The discount is below 1.
    """
    n_nodes = int(graph.counts[NODES])
    for nodes in (np.flatnonzero(graph.expanded[:n_nodes]), on_the_way):
        equations = _OptimalityEquations.of(graph, bounds, discount, nodes)
        if equations is not None:
            break
    else:
        return
    proved = graph.upper[nodes].copy()
    for _ in range(MOST_ROUNDS):
        equations.choose_shown(proved)
        found = equations.solve(proved, discount)
        lowered = float(np.max(proved - found))
        proved = np.minimum(proved, found)
        if lowered <= SETTLED * float(np.abs(proved).max()):
            break
    graph.upper[nodes] = np.minimum(graph.upper[nodes], proved)
    known = nodes[graph.known[nodes] >= 0]
    bounds.upper[graph.known[known]] = graph.upper[known]


class _OptimalityEquations:
    """The optimality equations of some nodes: blind choices lead to one node, looks to all states that are possible there."""

    def __init__(
        self, rewards: FloatArray, costs: FloatArray, factors: FloatArray, blind: IntArray, blind_constants: FloatArray,
        shown: sparse.csr_array[np.float64], shown_constants: FloatArray, roundings: FloatArray, scales: FloatArray,
        beliefs: IntArray,
    ) -> None:  # fmt: skip
        self.rewards, self.costs, self.factors = rewards, costs, factors  # (n, A)
        self.blind, self.blind_constants = blind, blind_constants  # (n, A): the part's node, or -1 and its bound
        self.shown, self.shown_constants = shown, shown_constants  # (m, n), (m,): mean over the states of a belief
        self.roundings, self.scales = roundings, scales  # (m,)
        self.beliefs = beliefs  # (n, A): the belief's number, or -1 where the episode is over
        self.counts_as_shown = np.zeros(beliefs.shape, dtype=bool)

    @classmethod
    def of(cls, graph: Graph, bounds: Bounds, discount: float, nodes: IntArray) -> _OptimalityEquations | None:
        """Return the equations of expanded nodes, or None if they are too many."""
        position = np.full(int(graph.counts[NODES]), -1)
        position[nodes] = np.arange(len(nodes))
        children = graph.child[nodes].astype(np.int64)
        running = children >= 0
        unique, numbers = np.unique(children[running], return_inverse=True)
        sizes = graph.offsets[unique + 1] - graph.offsets[unique]
        if sizes.sum() > MOST_BELIEF_ENTRIES:
            return None
        beliefs = np.full(children.shape, -1)
        beliefs[running] = numbers
        rows = np.repeat(np.arange(len(unique)), sizes)
        entries = np.arange(sizes.sum()) + np.repeat(graph.offsets[unique] - np.cumsum(sizes) + sizes, sizes)
        states, probabilities = graph.states[entries], graph.probabilities[entries]
        own = graph.node_of_state[states]
        own = np.where(own >= 0, position[own], -1)
        inside = own >= 0
        shape = (len(unique), len(nodes))
        shown = sparse.csr_array((probabilities[inside], (rows[inside], own[inside])), shape=shape)
        outside = np.where(inside, 0.0, probabilities * bounds.upper[states])
        blind = np.where(running, position[children], -1)
        return cls(
            rewards=graph.reward[nodes] + graph.margin[nodes],
            costs=graph.cost[nodes],
            factors=discount * graph.running[nodes],
            blind=blind,
            blind_constants=np.where(running & (blind < 0), graph.upper[children], 0.0),
            shown=shown,
            shown_constants=np.bincount(rows, weights=outside, minlength=len(unique)).astype(np.float64),
            roundings=relative_error(sizes) * (sizes > 1),
            scales=graph.scale[unique],
            beliefs=beliefs,
        )

    def _if_shown(self, values: FloatArray) -> FloatArray:
        """Return the value of `reveal` at the belief after each action, rounded upwards, shape (n, A)."""
        mean = self.shown_constants + self.shown @ values
        shown = mean + self.roundings * (2 * self.scales + np.abs(mean))
        return np.where(self.beliefs >= 0, shown[self.beliefs], 0.0)

    def _unseen(self, values: FloatArray) -> FloatArray:
        """Return the bound of the node that each action leads to, shape (n, A)."""
        return np.where(self.blind >= 0, values[self.blind], self.blind_constants)

    def choose_shown(self, values: FloatArray) -> None:
        """Bound blind choices by `reveal` of their child from now on, where that is less at these values; either is sound."""
        self.counts_as_shown = self._if_shown(values) < self._unseen(values)

    def solve(self, values: FloatArray, discount: float) -> FloatArray:
        """Return upper bounds from policy iteration, which begins with the best choices at `values`, both of shape (n,)."""
        proved = np.full(len(values), np.inf)
        _, choices = self.back_up(values)
        for _ in range(MOST_STEPS):
            before, values = choices, self.evaluate(choices)
            if not np.isfinite(values).all():
                break
            backed_up, choices = self.back_up(values)
            excess = max(0.0, float(np.max(backed_up - values)))
            above = excess / (1 - discount) * (1 + 1e-9) + EPSILON * np.abs(values) * (excess > 0)
            proved = np.minimum(proved, values + above)
            if excess <= SETTLED * float(np.abs(values).max()) or np.array_equal(choices, before):
                break
        return proved

    def back_up(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return T u, rounded upwards, shape (n,), and the best choices: 2 a blind, 2 a + 1 with a look."""
        if_shown = self._if_shown(values)
        blind = self.rewards + self.factors * np.where(self.counts_as_shown, if_shown, self._unseen(values))
        looking = self.rewards - self.costs + self.factors * if_shown
        both = np.stack([blind, looking], axis=2).reshape(len(values), -1)
        choices = both.argmax(axis=1)
        return both[np.arange(len(values)), choices], choices

    def evaluate(self, choices: IntArray) -> FloatArray:
        """Return the values of the nodes, shape (n,), if these choices are always made; NaN where rounding leaves none."""
        n_nodes = len(choices)
        every, actions, pays = np.arange(n_nodes), choices // 2, choices % 2 == 1
        looks = pays | self.counts_as_shown[every, actions]
        factors, beliefs, blind = self.factors[every, actions], self.beliefs[every, actions], self.blind[every, actions]
        constants = self.rewards[every, actions] - np.where(pays, self.costs[every, actions], 0.0)
        constants += np.where(looks, 0.0, factors * self.blind_constants[every, actions])
        going = np.flatnonzero(~looks & (blind >= 0))
        moves = sparse.csr_array((factors[going], (going, blind[going])), shape=(n_nodes, n_nodes))
        looking = np.flatnonzero(looks & (beliefs >= 0))
        constants[looking] += factors[looking] * self.shown_constants[beliefs[looking]]
        spread = sparse.csr_array((factors[looking], (looking, beliefs[looking])), shape=(n_nodes, self.shown.shape[0]))
        matrix = sparse.eye_array(n_nodes) - moves - spread @ self.shown
        try:
            return np.asarray(linalg.splu(sparse.csc_array(matrix)).solve(constants))
        except RuntimeError:  # "exactly singular", by rounding
            return np.full(n_nodes, np.nan)
