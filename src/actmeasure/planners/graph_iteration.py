"""Policy iteration on a part of the graph of beliefs, where backing up one node after the other takes too long.

Near discount 1 the bounds of known states hold each other up: a plan looks, comes to know a state whose plan looks, and so on,
and every round of backing up takes only the share 1 - g off a gap. Some expanded nodes, all of them or those that the
best-looking schedule passes, are a decision problem of their own, in which every other node is worth its present bound, or what
it were worth if the state there were shown for nothing, if that is less. With T the back-up of these nodes,

    T u <= u + d in every node  proves that  u + d / (1 - g)  are upper bounds,

so `u` may come from anywhere; here it comes from policy iteration, a sparse linear solve a step. T is rounded upwards as in
`kernels/belief_graph.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.kernels.belief_graph import NODES, Bounds, Graph
from actmeasure.kernels.blind import ROUNDING, relative_error
from actmeasure.transitions import FloatArray

__all__ = ["lower_upper_bounds"]

IntArray = npt.NDArray[np.int64]

#: Steps of policy iteration, and how often it is begun again with other bounds for blind choices; both take a handful.
MOST_STEPS, MOST_ROUNDS = 50, 5
#: Relative change of the values that ends policy iteration.
SETTLED = 1e-14
#: A part of the graph with more entries of beliefs than this is left to backing up.
MOST_ENTRIES = 200_000


def lower_upper_bounds(graph: Graph, bounds: Bounds, discount: float, on_the_way: IntArray) -> None:
    """Lower upper bounds to what follows from those of all expanded nodes together, or of some, shape (n,), if all are too many.

    The discount is below 1.
    """
    n_nodes = int(graph.counts[NODES])
    for nodes in (np.flatnonzero(graph.expanded[:n_nodes]), on_the_way):
        part = _Part.of(graph, bounds, discount, nodes)
        if part is not None:
            break
    else:
        return
    proved = graph.upper[nodes].copy()
    for _ in range(MOST_ROUNDS):
        part.choose_shown(proved)
        found = part.solve(proved, discount)
        lowered = float(np.max(proved - found))
        proved = np.minimum(proved, found)
        if lowered <= SETTLED * float(np.abs(proved).max()):
            break
    graph.upper[nodes] = np.minimum(graph.upper[nodes], proved)
    known = nodes[graph.known[nodes] >= 0]
    bounds.upper[graph.known[known]] = graph.upper[known]


class _Part:
    """The equations of some nodes: blind choices lead to a node, looks to all states that are possible there."""

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
    def of(cls, graph: Graph, bounds: Bounds, discount: float, nodes: IntArray) -> _Part | None:
        """Return the equations of expanded nodes, or None if they are too many."""
        position = np.full(int(graph.counts[NODES]), -1)
        position[nodes] = np.arange(len(nodes))
        children = graph.child[nodes].astype(np.int64)
        running = children >= 0
        unique, numbers = np.unique(children[running], return_inverse=True)
        sizes = graph.offsets[unique + 1] - graph.offsets[unique]
        if sizes.sum() > MOST_ENTRIES:
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
        """Return what the belief after each action is worth if its state is shown, rounded upwards, shape (n, A)."""
        mean = self.shown_constants + self.shown @ values
        shown = mean + self.roundings * (2 * self.scales + np.abs(mean))
        return np.where(self.beliefs >= 0, shown[self.beliefs], 0.0)

    def _unseen(self, values: FloatArray) -> FloatArray:
        """Return the bound of the node that each action leads to, shape (n, A)."""
        return np.where(self.blind >= 0, values[self.blind], self.blind_constants)

    def choose_shown(self, values: FloatArray) -> None:
        """Bound blind choices by what a free look is worth from now on where that is less at these values; either is sound."""
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
            above = excess / (1 - discount) * (1 + 1e-9) + ROUNDING * np.abs(values) * (excess > 0)
            proved = np.minimum(proved, values + above)
            if excess <= SETTLED * float(np.abs(values).max()) or np.array_equal(choices, before):
                break
        return proved

    def back_up(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the best value of each node from values of all, rounded upwards, and the choice: 2 a blind, 2 a + 1 looking."""
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
