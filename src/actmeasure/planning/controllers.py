r"""Readable controllers: policy graphs with few nodes, grown one decision at a time, whose value is exact.

A controller has nodes n = 0, 1, ...; node n takes decision d(n), and outcome o leads to node e(n, o). In state s it is worth

    V_n(s) = r(s, d(n)) + g sum over (o, t) of  P(t, o | s, d(n)) V_e(n,o)(t)                                          (1)

and with b the start distribution and n0 the start node, the discounted occupancy x of pairs (node, state) solves

    x_m(t) = [m = n0] b(t) + g sum over n, s, o with e(n, o) = m of  x_n(s) P(t, o | s, d(n)).                          (2)

Both are sparse linear systems. The *flow* along an edge is y(t) = g sum over s of x_n(s) P(t, o | s, d(n)): a belief, times the
discounted number of times that the edge is taken. What follows behind an edge is worth y V_m if it leads to node m, and a new
node there can have

    Q(y, d) = y r(., d) + sum over o of  max over m of  y_o V_m,       y_o(t) = g sum over s of y(s) P(t, o | s, d),    (3)

one point-based backup against the nodes that exist. The controller starts with the best action without looks and grows:

* *Add*: at the edges with the largest loss y (v* - V_m), v* being the value vectors of the search behind the solution, add the
  node of (3), or a tree of a few nodes. A tree takes the decisions of the search's vectors, follows the outcome with the largest
  loss first, and ends in nodes that exist. What gains most per node is added.
* *Improve*: replace decision and edges of a node by the best of (3) at its own occupancy. Because that changes the occupancy, it
  is accepted only if (1) says that the controller as a whole got better.
* *Drop*: let the edges of a node lead to the next best one. Beyond the limit the node is dropped that is missed least, which
  makes room for a better one.

Every controller on the way has an exact value, so stopping early is sound. In a life of a stationary model (`am.lifetime`) V and
x have a layer for each number of periods left, and (1) and (2) are recursions over the layers; nodes do not know the period, but
a chain of them counts it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.evaluation import evaluate
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget
from actmeasure.policy_graph import PolicyGraph

if TYPE_CHECKING:
    from actmeasure.planning.outcome_search import OutcomeSearch

__all__ = ["Controllers", "readable_controller"]

IntArray = npt.NDArray[np.int64]

#: Edges with the largest flow whose loss is computed, edges at which a node is tried, and those at which trees are grown.
MOST_EDGES, MOST_TRIED, MOST_TREES = 300, 12, 4
#: Nodes of the largest tree that is added at once.
LARGEST_TREE = 7
#: Number of additions that are evaluated exactly, of those with the largest estimated gain per node.
EVALUATED = 4
#: Rounds in which all nodes are improved, after an addition.
MOST_ROUNDS = 10
#: Nodes above the limit from which nodes are dropped again, and rounds without a gain after which growing ends.
BEYOND, MOST_STUCK = 3, 4
#: Controllers are also grown to this multiple of the limit, and then shrunk.
BEYOND_LIMIT = 2
#: Relative gain that counts as one, and relative residual of linear systems.
GAIN, RESIDUAL = 1e-7, 1e-11
#: Pairs of node and state, and average number of moves of a pair, up to which linear systems are factored.
FACTORED, FACTORED_ENTRIES = 150, 6
#: At discount 1 without a finite life, controllers are improved at this discount; their evaluation has none.
NEARLY_ONE = 1 - 1e-4


def readable_controller(
    search: OutcomeSearch, nodes: int, budget: Budget, goal: float = math.inf, floor: float = math.inf
) -> PolicyGraph:
    """Return the best controller found with at most `nodes` nodes, with its exact evaluation.

    Parameters
    ----------
    search : OutcomeSearch
        Its value vectors tell where a controller loses most.
    nodes : int
    budget : Budget
    goal : float
        Growing ends at a value that is this high.
    floor : float
        Then nodes are dropped while the value is this high, or does not change.
    """
    grower = Controllers(search, budget)
    with budget.deferred_interrupts():
        best = grower.grow(nodes, goal)
        best = grower.shrink(best, floor)
    graph = grower.graph(best).simplified(search.model)
    return graph.with_evaluation(lambda: evaluate(search.model, graph))


class _Edge(NamedTuple):
    """An edge: its node and the position of the outcome, or -1 and the number of a start; and its flow, shape (layers, S)."""

    node: int
    position: int
    flow: FloatArray


@dataclass(frozen=True, eq=False)
class _Controller:
    """A controller as arrays.

    Attributes
    ----------
    decisions : tuple of int
    targets : tuple of int64 arrays, each of shape (number of outcomes of the decision,)
    starts : int64 array, shape (number of start beliefs,)
    """

    decisions: tuple[int, ...]
    targets: tuple[IntArray, ...]
    starts: IntArray

    def __len__(self) -> int:
        return len(self.decisions)

    def with_node(self, node: int, decision: int, targets: IntArray) -> _Controller:
        """Return the controller with another decision and other edges in a node."""
        decisions, lists = list(self.decisions), list(self.targets)
        decisions[node], lists[node] = decision, targets
        return _Controller(tuple(decisions), tuple(lists), self.starts)

    def with_edge(self, edge: _Edge, target: int) -> _Controller:
        """Return the controller in which an edge leads to another node."""
        if edge.node < 0:
            starts = self.starts.copy()
            starts[edge.position] = target
            return _Controller(self.decisions, self.targets, starts)
        targets = self.targets[edge.node].copy()
        targets[edge.position] = target
        return self.with_node(edge.node, self.decisions[edge.node], targets)

    def with_nodes(self, added: list[tuple[int, IntArray]]) -> _Controller:
        """Return the controller with further nodes."""
        decisions = (*self.decisions, *(decision for decision, _ in added))
        return _Controller(decisions, (*self.targets, *(targets for _, targets in added)), self.starts)

    def target(self, edge: _Edge) -> int:
        """Return where an edge leads."""
        return int(self.starts[edge.position] if edge.node < 0 else self.targets[edge.node][edge.position])

    def without(self, node: int) -> _Controller:
        """Return the controller without a node to which no edge of another leads."""
        kept = [n for n in range(len(self)) if n != node]
        lower = np.arange(len(self)) - (np.arange(len(self)) > node)
        return _Controller(
            tuple(self.decisions[n] for n in kept), tuple(lower[self.targets[n]] for n in kept), lower[self.starts]
        )


class _Valued(NamedTuple):
    """A controller with its values V and occupancy x, shape (layers, N, S) each, and its value from the start."""

    controller: _Controller
    values: FloatArray
    flows: FloatArray
    value: float


class _Backup(NamedTuple):
    """A node that was computed by (3): its value at the flow, decision and edges."""

    value: float
    decision: int
    targets: IntArray


class Controllers:
    """Grows, improves and shrinks controllers for the model of a search.

    Parameters
    ----------
    search : OutcomeSearch
    budget : Budget
    """

    def __init__(self, search: OutcomeSearch, budget: Budget) -> None:
        self.search, self.budget = search, budget
        rows = search.rows
        self.n_states, self.n_decisions = search.base.n_states, rows.n_decisions
        self.layers = search.periods + 1
        discount = search.model.discount
        self.discount = discount if discount < 1 or search.periods else NEARLY_ONE
        self.rewards = np.ascontiguousarray(rows.rewards.reshape(self.n_states, self.n_decisions))
        self._read_moves()
        self.starts = self._starts()
        self.guide = _Guide(search)

    def _read_moves(self) -> None:
        """Number the pairs of decision and outcome (keys) and, for each, the states that are reached (cells)."""
        rows, n, n_states = self.search.rows, self.n_decisions, self.n_states
        row = np.repeat(np.arange(n_states * n), np.diff(rows.offsets))
        group = np.searchsorted(rows.group_slots, rows.slots, side="right") - 1
        outcome = self.search.made.outcomes[group]
        reached = rows.slot_state[rows.slots].astype(np.int64)
        span = int(outcome.max(initial=0)) + 2
        code, key = np.unique((row % n) * span + outcome + 1, return_inverse=True)
        #: Decision and outcome of each key, -1 for nothing seen; the keys of decision d are key_offsets[d] to key_offsets[d + 1].
        self.key_decision, self.key_outcome = code // span, code % span - 1
        self.key_offsets = np.searchsorted(self.key_decision, np.arange(n + 1))
        cell_code, cell = np.unique(key * n_states + reached, return_inverse=True)
        self.cell_state, self.cell_offsets = (
            cell_code % n_states,
            np.searchsorted(cell_code // n_states, np.arange(len(code) + 1)),
        )
        #: Discounted flow into each cell from a flow over states, shape (cells, S).
        self.into = sparse.csr_array(
            (self.discount * rows.probabilities, (cell, row // n)), shape=(len(cell_code), n_states)
        )
        self.blocks = [self._block(decision) for decision in range(n)]

    def _block(self, decision: int) -> tuple[Any, IntArray]:
        """Return the moves of a decision, shape (S, its cells), and the position of the outcome of each of its cells."""
        first, last = self.key_offsets[decision], self.key_offsets[decision + 1]
        begin, end = self.cell_offsets[first], self.cell_offsets[last]
        sizes = np.diff(self.cell_offsets[first : last + 1])
        return sparse.csr_array(self.into[begin:end].T), np.repeat(np.arange(last - first), sizes)

    def _starts(self) -> FloatArray:
        """Return the beliefs in which episodes begin, times their probability, shape (n, S)."""
        base = self.search.base
        beliefs = np.zeros((len(base.initial_states) if base.start_is_known else 1, self.n_states))
        rows = np.arange(len(beliefs)) if base.start_is_known else 0
        beliefs[rows, base.initial_states] = base.initial_probabilities
        return beliefs

    # Values and occupancy: (1) and (2)

    def valued(self, controller: _Controller, guess: _Valued | None = None) -> _Valued:
        """Return values, occupancy and value of a controller; linear systems start from the solution of a similar one."""
        n, n_states = len(controller), self.n_states
        moves, rewards = self._moves(controller), self.rewards[:, list(controller.decisions)].T.ravel()
        begin = np.zeros((n, n_states))
        np.add.at(begin, controller.starts, self.starts)
        values, flows = np.zeros((self.layers, n * n_states)), np.zeros((self.layers, n * n_states))
        if self.search.periods:
            values[0] = np.tile(self.search.final, n)
            for layer in range(1, self.layers):
                values[layer] = rewards + moves @ values[layer - 1]
            flows[-1] = begin.ravel()
            backward = moves.T
            for layer in range(self.layers - 1, 0, -1):
                flows[layer - 1] = backward @ flows[layer]
        else:
            estimates = (None, None) if guess is None else (self._padded(guess.values, n), self._padded(guess.flows, n))
            values[0], flows[0] = self._solve(moves, rewards, begin.ravel(), estimates)
        value = float(begin.ravel() @ values[-1])
        shape = (self.layers, n, n_states)
        return _Valued(controller, values.reshape(shape), flows.reshape(shape), value)

    def _padded(self, known: FloatArray, n: int) -> FloatArray:
        """Return an estimate for n nodes from values or occupancies of some other number of nodes, shape (n * S,)."""
        same = min(n, known.shape[1])
        estimate = np.zeros((n, self.n_states))
        estimate[:same] = known[0, :same]
        return estimate.ravel()

    def _moves(self, controller: _Controller) -> Any:
        """Return the discounted moves between pairs of node and state, shape (N * S, N * S)."""
        data, columns, counts = [], [], []
        for decision, targets in zip(controller.decisions, controller.targets, strict=True):
            block, position = self.blocks[decision]
            begin = self.cell_offsets[self.key_offsets[decision]]
            data.append(block.data)
            cells = block.indices
            columns.append(targets[position[cells]] * self.n_states + self.cell_state[begin + cells])
            counts.append(np.diff(block.indptr))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        size = len(controller) * self.n_states
        return sparse.csr_array((np.concatenate(data), np.concatenate(columns), offsets), shape=(size, size))

    def _solve(
        self, moves: Any, rewards: FloatArray, begin: FloatArray, estimates: tuple[FloatArray | None, FloatArray | None]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the solutions of v = rewards + moves v and of x = begin + moves^T x."""
        size = len(rewards)
        if size > FACTORED and moves.nnz > FACTORED_ENTRIES * size:
            solutions = [
                _iterated(matrix, right, estimate)
                for matrix, right, estimate in zip((moves, moves.T), (rewards, begin), estimates, strict=True)
            ]
            if solutions[0] is not None and solutions[1] is not None:
                return solutions[0], solutions[1]
        factors: Any = linalg.splu(sparse.csc_array(sparse.eye_array(size) - moves))
        return np.asarray(factors.solve(rewards)), np.asarray(factors.solve(begin, "T"))

    # Flows and backups: (3)

    def edges(self, now: _Valued) -> list[_Edge]:
        """Return the edges with the largest flow."""
        edges = [_Edge(-1, number, self._at_start(belief)) for number, belief in enumerate(self.starts)]
        masses, pairs = [], []
        per_node = {}
        for node, decision in enumerate(now.controller.decisions):
            if now.flows[:, node].any():
                flows = per_node[node] = self.into_cells(decision, now.flows[:, node])
                first, last = self.key_offsets[decision], self.key_offsets[decision + 1]
                if last > first:
                    offsets = self.cell_offsets[first:last] - self.cell_offsets[first]
                    masses.append(np.add.reduceat(flows[int(self.search.periods > 0) :].sum(axis=0), offsets))
                    pairs += [(node, position) for position in range(last - first)]
        if not pairs:
            return edges
        mass = np.concatenate(masses)
        order = np.argsort(-mass, kind="stable")[:MOST_EDGES]
        for number in order[mass[order] > 0].tolist():
            node, position = pairs[number]
            edges.append(
                _Edge(node, position, self._key_flow(now.controller.decisions[node], position, per_node[node]))
            )
        return edges

    def _at_start(self, belief: FloatArray) -> FloatArray:
        flow = np.zeros((self.layers, self.n_states))
        flow[-1] = belief
        return flow

    def into_cells(self, decision: int, flow: FloatArray) -> FloatArray:
        """Return the flow into each cell of a decision, by layers in which it arrives, shape (layers, cells of it)."""
        block, _ = self.blocks[decision]
        if not self.search.periods:
            return np.asarray(block.T @ flow[0])[None]
        arrived = np.zeros((self.layers, block.shape[1]))
        arrived[:-1] = np.asarray(block.T @ flow[1:].T).T
        return arrived

    def _key_flow(self, decision: int, position: int, cells: FloatArray) -> FloatArray:
        """Return the flow along one edge, shape (layers, S), from those into all cells of the decision."""
        key = self.key_offsets[decision] + position
        begin, end = self.cell_offsets[key], self.cell_offsets[key + 1]
        first = self.cell_offsets[self.key_offsets[decision]]
        flow = np.zeros((self.layers, self.n_states))
        flow[:, self.cell_state[begin:end]] = cells[:, begin - first : end - first]
        return flow

    def backup(self, flow: FloatArray, values: FloatArray, decision: int | None = None) -> _Backup:
        """Return the best node at a flow whose edges lead to nodes with these values, (3); of one decision if it is given."""
        worth = self._after(flow, values, decision)
        best = worth.max(axis=1) if worth.size else np.zeros(len(worth))
        if decision is None:
            sums = np.zeros(self.n_decisions)
            np.add.at(sums, self.key_decision, best)
            first = 0
        else:
            sums, first = np.array([best.sum()]), decision
        running = flow[1:] if self.search.periods else flow
        gained = running.sum(axis=0) @ self.rewards[:, first : first + len(sums)]
        totals = gained + sums
        chosen = int(np.argmax(totals))
        value = float(totals[chosen])
        if self.search.periods:
            value += float(flow[0] @ self.search.final)
        chosen += first
        keys = slice(self.key_offsets[chosen], self.key_offsets[chosen + 1]) if decision is None else slice(None)
        return _Backup(value, chosen, self._targets(worth[keys]))

    def _targets(self, worth: FloatArray) -> IntArray:
        """Return the best target of each outcome; of those that do not occur, the most frequent one of the others."""
        targets = worth.argmax(axis=1) if worth.size else np.zeros(len(worth), dtype=np.int64)
        idle = ~worth.any(axis=1) if worth.size else np.zeros(0, dtype=bool)
        if idle.any() and not idle.all():
            targets[idle] = np.bincount(targets[~idle]).argmax()
        return targets.astype(np.int64)

    def _after(self, flow: FloatArray, values: FloatArray, decision: int | None) -> FloatArray:
        """Return what each node is worth behind each outcome at a flow, shape (keys, N)."""
        first, last = (0, self.n_decisions) if decision is None else (decision, decision + 1)
        first, last = int(self.key_offsets[first]), int(self.key_offsets[last])
        begin, end = self.cell_offsets[first], self.cell_offsets[last]
        into = self.into if decision is None else self.blocks[decision][0].T
        worth = np.zeros((last - first, values.shape[1]))
        for layer in range(self.search.periods > 0, self.layers):
            if flow[layer].any():
                arriving = sparse.csr_array(
                    (
                        np.asarray(into @ flow[layer]),
                        self.cell_state[begin:end],
                        self.cell_offsets[first : last + 1] - begin,
                    ),
                    shape=(last - first, self.n_states),
                )
                worth += arriving @ values[max(layer - 1, 0)].T
        return worth

    # Growing

    def first(self) -> _Valued:
        """Return the best controller with one node: an action that is repeated without looks."""
        single = []
        for number, decision in enumerate(self.search.made.decisions):
            if decision.measurement == 0:
                count = int(self.key_offsets[number + 1] - self.key_offsets[number])
                starts = np.zeros(len(self.starts), dtype=np.int64)
                single.append(self.valued(_Controller((number,), (np.zeros(count, dtype=np.int64),), starts)))
        return max(single, key=lambda one: one.value)

    def grow(self, nodes: int, goal: float) -> _Valued:
        """Return the best controller found with at most `nodes` nodes; growing ends at a value of `goal`.

        It is grown twice: up to the limit, and beyond it and back, because nodes that are dropped late are chosen better.
        """
        small = self._grown(self.improved(self.first()), nodes, goal)
        if small.value >= goal - self._least(goal) or len(small.controller) < nodes or self.budget.stops():
            return small
        large = self._grown(small, BEYOND_LIMIT * nodes, goal)
        return max(small, self._grown(self._limited(large, nodes), nodes, goal), key=lambda one: one.value)

    def _grown(self, now: _Valued, nodes: int, goal: float) -> _Valued:
        """Return the best controller that is found by adding nodes to this one, and dropping others beyond the limit."""
        best, stuck = now, 0
        while best.value < goal - self._least(goal) and stuck < MOST_STUCK and not self.budget.stops():
            largest = min(LARGEST_TREE * 2**stuck, nodes + BEYOND)
            room = max(nodes - len(best.controller), 0) + BEYOND
            larger = self._added(best, min(largest, room) if stuck == 0 else largest, stuck)
            candidate = best if larger is None else self._limited(self.improved(larger), nodes)
            if candidate.value > best.value + self._least(best.value):
                best, stuck = candidate, 0
            else:
                stuck += 1
        return best

    def _limited(self, now: _Valued, nodes: int) -> _Valued:
        """Return the controller with nodes dropped, the least missed first, until there are at most `nodes`."""
        while len(now.controller) > nodes:
            now = self.improved(self._dropped(now))
        return now

    def shrink(self, now: _Valued, floor: float) -> _Valued:
        """Return the smallest controller found by dropping nodes with a value of `floor`, or of this one if that is lower."""
        least = min(floor, now.value) - self._least(now.value)
        smallest = now
        while len(now.controller) > 1 and not self.budget.is_interrupted:
            now = self.improved(self._dropped(now))
            if now.value >= least:
                smallest = now
            elif len(now.controller) < len(smallest.controller) - BEYOND:
                break
        return smallest

    def _least(self, value: float) -> float:
        """Return the smallest gain that counts."""
        return GAIN * (abs(value) if math.isfinite(value) else 0.0) + 1e-12

    def _added(self, now: _Valued, most: int, stuck: int) -> _Valued | None:
        """Return the controller with at most `most` more nodes that gains most; None if nothing gains.

        At first gains count per node (by its square root); where this got stuck, they count as they are, and at other edges.
        """
        power = 0.5 if stuck == 0 else 0.0
        edges = self.edges(now)
        flows = np.array([edge.flow for edge in edges])
        present = [float((edge.flow * now.values[:, now.controller.target(edge)]).sum()) for edge in edges]
        losses = self.guide.values(flows) - np.array(present)
        order = np.argsort(-losses, kind="stable")[max(stuck - 1, 0) :]
        options: list[tuple[float, int, list[tuple[int, IntArray]]]] = []
        for rank, number in enumerate(order[:MOST_TRIED].tolist()):
            if self.budget.stops() and options:
                break
            one = self.backup(edges[number].flow, now.values)
            gain = one.value - present[number]
            if gain > self._least(now.value):
                options.append((gain, number, [(one.decision, one.targets)]))
            if most > 1 and rank < MOST_TREES:
                for gain, tree in self._trees(edges[number], now, most, present[number]):
                    if gain > self._least(now.value):
                        options.append((gain / len(tree) ** power, number, tree))
        options.sort(key=lambda option: -option[0])
        best: tuple[float, _Valued] | None = None
        for _, number, tree in options[:EVALUATED]:
            larger = now.controller.with_nodes(tree).with_edge(edges[number], len(now.controller))
            candidate = self.valued(larger, now)
            score = (candidate.value - now.value) / len(tree) ** power
            if best is None or score > best[0]:
                best = score, candidate
            if self.budget.stops():
                break
        return None if best is None else best[1]

    def _trees(
        self, edge: _Edge, now: _Valued, most: int, present: float
    ) -> list[tuple[float, list[tuple[int, IntArray]]]]:
        """Return trees of 2, 3, ... nodes behind an edge, each with its gain: one search along the largest losses."""
        n = len(now.controller)
        root = _Leaf.at(self, edge.flow, now.values)
        tree = [root]
        heap: list[tuple[float, int, int, int]] = []
        count = 0

        def follow(position: int) -> None:
            nonlocal count
            for outcome, loss in enumerate(tree[position].losses):
                if loss > self._least(now.value):
                    heapq.heappush(heap, (-loss, count, position, outcome))
                    count += 1

        follow(0)
        trees = []
        while heap and len(tree) < most and not self.budget.stops():
            _, _, position, outcome = heapq.heappop(heap)
            parent = tree[position]
            parent.children[outcome] = len(tree)
            tree.append(_Leaf.at(self, parent.flow_of(self, outcome), now.values))
            follow(len(tree) - 1)
            total, nodes = self._assembled(tree, n)
            trees.append((total - present, nodes))
        return trees

    def _assembled(self, tree: list[_Leaf], n: int) -> tuple[float, list[tuple[int, IntArray]]]:
        """Return the value of a tree at its flow, and its nodes, the root first, numbered from n."""
        values = [0.0] * len(tree)
        guided = [False] * len(tree)
        for position in range(len(tree) - 1, -1, -1):
            leaf = tree[position]
            value = leaf.guided.value + sum(values[c] - leaf.present[o] for o, c in leaf.children.items())
            guided[position] = bool(leaf.children) and value > leaf.best.value
            values[position] = value if guided[position] else leaf.best.value
        kept = [0]
        for position in kept:
            if guided[position]:
                kept += list(tree[position].children.values())
        number = {position: n + place for place, position in enumerate(kept)}
        nodes = []
        for position in kept:
            leaf = tree[position]
            chosen = leaf.guided if guided[position] else leaf.best
            targets = chosen.targets.copy()
            if guided[position]:
                for outcome, child in leaf.children.items():
                    targets[outcome] = number[child]
            nodes.append((chosen.decision, targets))
        return values[0], nodes

    # Improving and dropping

    def improved(self, now: _Valued) -> _Valued:
        """Return the controller after every change of one node, or of all at once, that makes it better as a whole."""
        for _ in range(MOST_ROUNDS):
            if self.budget.stops():
                break
            changes: list[tuple[float, int, _Backup]] = []
            for node in range(len(now.controller)):
                flow = now.flows[:, node]
                if not flow.any():
                    continue
                backup = self.backup(flow, now.values)
                gain = backup.value - float((flow * now.values[:, node]).sum())
                if gain > self._least(now.value):
                    changes.append((gain, node, backup))
            changes.sort(key=lambda change: -change[0])
            before = now.value
            if len(changes) > 1:
                together = now.controller
                for _, node, backup in changes:
                    together = together.with_node(node, backup.decision, backup.targets)
                candidate = self.valued(together, now)
                now = candidate if candidate.value > now.value else now
            if now.value == before:
                for _, node, backup in changes:
                    candidate = self.valued(now.controller.with_node(node, backup.decision, backup.targets), now)
                    now = candidate if candidate.value > now.value else now
                    if self.budget.stops():
                        break
            if now.value <= before + self._least(before):
                break
        return self._without_idle(now)

    def _without_idle(self, now: _Valued) -> _Valued:
        """Return the controller without nodes that are never reached."""
        controller = now.controller
        idle = [node for node in range(len(controller)) if not now.flows[:, node].any()]
        if not idle:
            return now
        kept = np.array([node for node in range(len(controller)) if node not in idle])
        number = np.zeros(len(controller), dtype=np.int64)
        number[kept] = np.arange(len(kept))
        smaller = _Controller(
            tuple(controller.decisions[n] for n in kept), tuple(number[controller.targets[n]] for n in kept),
            number[controller.starts],
        )  # fmt: skip
        return _Valued(smaller, now.values[:, kept], now.flows[:, kept], now.value)

    def _dropped(self, now: _Valued) -> _Valued:
        """Return the controller without the node that is missed least; its edges lead to the best of the others."""
        options = []
        edges_into: dict[int, list[_Edge]] = {}
        for edge in self.edges(now):
            edges_into.setdefault(now.controller.target(edge), []).append(edge)
        for node in range(len(now.controller)):
            controller, loss = now.controller, 0.0
            others = [n for n in range(len(controller)) if n != node]
            for edge in edges_into.get(node, []):
                if edge.node == node:
                    continue
                worth = np.einsum("ls,lns->n", edge.flow, now.values)
                target = others[int(np.argmax(worth[others]))]
                loss += float(worth[node] - worth[target])
                controller = controller.with_edge(edge, target)
            options.append((loss, node, controller, others))
        options.sort(key=lambda option: option[:2])
        best: _Valued | None = None
        for _, node, controller, others in options[:EVALUATED]:
            # Edges whose flow is too small to be listed lead to the first of the others.
            kept = controller
            for other in others:
                if (kept.targets[other] == node).any():
                    targets = np.where(kept.targets[other] == node, others[0], kept.targets[other])
                    kept = kept.with_node(other, kept.decisions[other], targets)
            if (kept.starts == node).any():
                kept = _Controller(kept.decisions, kept.targets, np.where(kept.starts == node, others[0], kept.starts))
            candidate = self.valued(kept.without(node))
            if best is None or candidate.value > best.value:
                best = candidate
        assert best is not None
        return best

    def graph(self, valued: _Valued) -> PolicyGraph:
        """Return a controller as a policy graph."""
        controller = valued.controller
        edges: list[dict[int | str | None, int]] = []
        for node, decision in enumerate(controller.decisions):
            first, last = self.key_offsets[decision], self.key_offsets[decision + 1]
            outcomes = self.key_outcome[first:last]
            targets = controller.targets[node].tolist()
            # Nodes do not know the period, which an exact look at a life shows as well.
            edges.append(
                {
                    None if number < 0 else number: target
                    for layer in range(max(self.search.periods, 1), 0, -1)
                    for number, target in zip(
                        self.search.outcome_numbers(outcomes, self.search.made.decisions[decision], layer).tolist(),
                        targets,
                        strict=True,
                    )
                }
            )
        decisions = [self.search.made.decisions[decision] for decision in controller.decisions]
        if len(controller.starts) == 1:
            return PolicyGraph(decisions, edges, int(controller.starts[0]))
        starts = dict(zip(self.search.model.initial_states.tolist(), controller.starts.tolist(), strict=True))
        return PolicyGraph(decisions, edges, starts)


def _iterated(moves: Any, right: FloatArray, estimate: FloatArray | None) -> FloatArray | None:
    """Return the solution of v = right + moves v by BiCGSTAB, None if it does not converge."""
    size = len(right)
    operator = linalg.LinearOperator((size, size), matvec=lambda v: v - moves @ v, dtype=np.float64)
    with np.errstate(all="ignore"):
        solution, problem = linalg.bicgstab(operator, right, x0=estimate, rtol=RESIDUAL, atol=0.0, maxiter=400)
    return np.asarray(solution) if problem == 0 and np.isfinite(solution).all() else None


@dataclass(eq=False)
class _Leaf:
    """A node of a tree: the best node of (3), and the one with the guide's decision, whose outcomes may be followed.

    Attributes
    ----------
    flow : float64 array, shape (layers, S)
    best, guided : _Backup
    cells : float64 array, shape (layers, cells of the guide's decision)
    present : float64 array, shape (outcomes,)
        What the best node that exists is worth behind each outcome of the guide's decision.
    losses : float64 array, shape (outcomes,)
    children : dict from outcome to position in the tree
    """

    flow: FloatArray
    best: _Backup
    guided: _Backup
    cells: FloatArray
    present: FloatArray
    losses: FloatArray
    children: dict[int, int]

    @classmethod
    def at(cls, controllers: Controllers, flow: FloatArray, values: FloatArray) -> _Leaf:
        """Return the leaf at a flow."""
        decision = controllers.guide.decision(flow)
        worth = controllers._after(flow, values, decision)
        guided = controllers.backup(flow, values, decision)
        present = worth.max(axis=1) if worth.size else np.zeros(0)
        cells = controllers.into_cells(decision, flow)
        count = len(present)
        flows = np.array([controllers._key_flow(decision, position, cells) for position in range(count)])
        aims = controllers.guide.values(flows) if count else np.zeros(0)
        return cls(flow, controllers.backup(flow, values), guided, cells, present, aims - present, {})

    def flow_of(self, controllers: Controllers, outcome: int) -> FloatArray:
        """Return the flow behind an outcome of the guide's decision."""
        return controllers._key_flow(self.guided.decision, outcome, self.cells)


class _Guide:
    """The value vectors of a search: what can be achieved at a flow, and by which decision."""

    def __init__(self, search: OutcomeSearch) -> None:
        self.search = search
        vectors, rows = search.vectors, search.rows
        count = int(vectors.counts[0])
        self.n_layers = search.periods + 1
        group = vectors.slice_of[:count].astype(np.int64) * self.n_layers + vectors.layer[:count]
        self.order = np.argsort(group, kind="stable")
        self.offsets = np.searchsorted(group[self.order], np.arange(search.made.n_slices * self.n_layers + 1))
        self.members = [
            rows.slice_states[rows.slice_offsets[x] : rows.slice_offsets[x + 1]].astype(np.int64)
            for x in range(search.made.n_slices)
        ]
        self.known: dict[int, tuple[FloatArray, IntArray]] = {}

    def table(self, x: int, layer: int) -> tuple[FloatArray, IntArray]:
        """Return the vectors of a slice and layer, shape (n, states of the slice), and their decisions, shape (n,)."""
        group = x * self.n_layers + layer
        if group not in self.known:
            vectors = self.search.vectors
            numbers = self.order[self.offsets[group] : self.offsets[group + 1]]
            span = np.arange(len(self.members[x]))
            self.known[group] = (
                vectors.values[vectors.begin[numbers][:, None] + span],
                vectors.decision[numbers].astype(np.int64),
            )
        return self.known[group]

    def values(self, flows: FloatArray) -> FloatArray:
        """Return what can be achieved at flows of shape (n, layers, S) if slice and layer are known, shape (n,)."""
        total = np.zeros(len(flows))
        for layer in range(self.n_layers):
            used = flows[:, layer].any(axis=0)
            for x in np.unique(self.search.rows.slice_of[np.flatnonzero(used)]).tolist():
                some = flows[:, layer][:, self.members[x]]
                table, _ = self.table(x, layer)
                total += (some @ table.T).max(axis=1)
        return total

    def decision(self, flow: FloatArray) -> int:
        """Return the decision of the best vectors, by the largest part of the flow."""
        votes = np.zeros(self.search.rows.n_decisions)
        for layer in range(int(self.search.periods > 0), self.n_layers):
            for x in np.unique(self.search.rows.slice_of[np.flatnonzero(flow[layer])]).tolist():
                some = flow[layer][self.members[x]]
                table, decisions = self.table(x, layer)
                votes[decisions[int(np.argmax(table @ some))]] += some.sum()
        return int(np.argmax(votes))
