"""The graph of beliefs from Python's side: room for it, and the schedule that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.kernels import belief_graph as kernel
from actmeasure.kernels.belief_graph import Bounds, Graph, Scratch
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["extract_schedule", "make_graph", "make_scratch", "start_nodes", "with_more_room"]

FIRST_CAPACITY = 1 << 12
ENTRIES_PER_NODE = 16
LONGEST_PATH = 20_000
#: A repeated action that surely ends the episode within so many steps is written out.
SOON = 20


def make_graph(model: Model) -> Graph:
    """An empty graph, with room for a node in which each state is known."""
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
        way_out=np.full(capacity, -1, np.int32),
        promise=np.full(capacity, -1, np.int32),
        mark=np.zeros(capacity, np.int64),
        hashes=np.zeros(capacity, np.uint64),
        table=np.full(4 * capacity, -1, np.int32),
        node_of_state=np.full(n_states, -1, np.int32),
    )


def with_more_room(graph: Graph, most_bytes: int) -> Graph | None:
    """A copy with twice the room for what is running short, or None if the two would take more than `most_bytes`."""
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
    """Room for the kernels to work in."""
    return Scratch(
        states=np.empty(n_states, np.int64),
        weights=np.empty(n_states),
        position=np.full(n_states, -1, np.int64),
        dense=np.zeros(n_states),
        path=np.empty(LONGEST_PATH, np.int64),
        path_weights=np.empty(LONGEST_PATH),
        circle_values=np.empty(LONGEST_PATH),
        circle_rewards=np.empty(LONGEST_PATH),
        circle_factors=np.empty(LONGEST_PATH),
        leaving=np.empty(LONGEST_PATH),
        free=np.empty(LONGEST_PATH, np.bool_),
        used=np.zeros(n_states, np.bool_),
        met=np.zeros(n_states, np.bool_),
        difference=np.zeros(1),
    )


def start_nodes(model: Model, graph: Graph, bounds: Bounds, scratch: Scratch) -> tuple[npt.NDArray[np.int64], Any]:
    """The nodes at which an episode may begin, and their probabilities: known states, or one belief if none is shown."""
    if model.start_is_known:
        nodes = [kernel.node_of(graph, bounds, scratch, int(state)) for state in model.initial_states]
        return np.array(nodes, dtype=np.int64), model.initial_probabilities
    count = len(model.initial_states)
    scratch.states[:count] = model.initial_states
    scratch.weights[:count] = model.initial_probabilities
    return np.array([kernel.find_or_add(graph, bounds, scratch, count)], dtype=np.int64), np.ones(1)


def extract_schedule(
    model: Model, graph: Graph, bounds: Bounds, starts: npt.NDArray[np.int64], scratch: Scratch
) -> Schedule:
    """The schedule behind the lower bounds: at every node the choice that guarantees most."""
    plans: dict[int, BlindPlan] = {}
    start_plan, waiting = None, []
    for node in starts:
        if graph.known[node] >= 0:
            waiting.append(int(graph.known[node]))
        else:
            start_plan, waiting = _plan(graph, bounds, model, int(node))
    while waiting:
        state = waiting.pop()
        if state not in plans:
            node = kernel.node_of(graph, bounds, scratch, state)
            plans[state], further = _plan(graph, bounds, model, node)
            waiting += further
    return Schedule(plans, model.n_states, start_plan)


def _plan(graph: Graph, bounds: Bounds, model: Model, node: int) -> tuple[BlindPlan, list[int]]:
    """The plan that the lower bounds promise from a node, and the states that it may come to know."""
    actions: list[int] = []
    seen = {node: 0}
    while graph.expanded[node] and (model.discount < 1 or graph.promise[node] >= 0):
        # Without discount, a choice that looks as good as another may lead round in a circle; a promise does not.
        discounted = model.discount < 1
        choice = int(
            kernel.best_lower_choice(graph, bounds, model.discount, node) if discounted else graph.promise[node]
        )
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
    value, column = kernel.best_mean(graph, node, bounds.lower_vectors)
    if not np.isfinite(value):
        raise PlanError("no schedule with a finite value was found in time; allow more time, or use a discount below 1")
    if column < model.n_actions:
        actions.append(int(column))
        return BlindPlan(tuple(actions), then="measure"), _successors(graph, model, node, int(column))
    return _repeating(model, _belief(graph, node), actions, int(column) - model.n_actions), []


def _repeating(model: Model, belief: Belief, actions: list[int], action: int) -> BlindPlan:
    """Repeat an action for ever, or say how often where the episode is over after a few times."""
    for times in range(1, SOON + 1):
        belief = belief.predict(model, action)
        if belief.is_over:
            return BlindPlan((*actions, *[action] * times), then="end")
    return BlindPlan((*actions, action), then="repeat", repeat=1)


def _belief(graph: Graph, node: int) -> Belief:
    entries = slice(graph.offsets[node], graph.offsets[node + 1])
    order = np.argsort(graph.states[entries])
    return Belief(graph.states[entries][order].astype(np.int64), graph.probabilities[entries][order])


def _support(graph: Graph, node: int) -> list[int]:
    return [int(state) for state in graph.states[graph.offsets[node] : graph.offsets[node + 1]]]


def _successors(graph: Graph, model: Model, node: int, action: int) -> list[int]:
    """The non-terminal states that an action may lead to from a node that has not been expanded."""
    reached = {int(to) for state in _support(graph, node) for to in model.transitions.row(state, action)[0]}
    return [state for state in reached if not model.terminal[state]]
