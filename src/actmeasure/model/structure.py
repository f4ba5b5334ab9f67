"""Checks that the values of a model exist and can be represented: size of rewards, and episodes that end where discount is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse
from scipy.sparse import csgraph

from actmeasure.errors import ModelError
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import LARGEST_PRICE, LARGEST_RETURN

if TYPE_CHECKING:
    from actmeasure.model.model import Model

__all__ = ["check_returns", "check_undiscounted", "end_components", "states_that_can_end"]

BoolArray = npt.NDArray[np.bool_]

#: Smallest long-run average reward of a cycle that counts as positive, relative to its largest reward.
PAYING_AVERAGE = 1e-8
#: Number of steps in which rewards must not add up to too much at discount 1: more than 1 / (1 - `planning.bounds.ALMOST_ONE`).
UNDISCOUNTED_STEPS = 1001.0


def check_returns(model: Model) -> None:
    """Raise a `ModelError` if returns or prices can exceed the limits of `actmeasure.settings`.

    With a discount below 1, a return is at most the largest reward divided by 1 - discount; prices likewise. Planning at
    discount 1 begins with a discount slightly below, so that `UNDISCOUNTED_STEPS` count there.
    """
    paid = model.rewards if model.transition_rewards is None else model.transition_rewards
    steps = 1 / (1 - model.discount) if model.discount < 1 else UNDISCOUNTED_STEPS
    prices = np.array([np.max(measurement.cost) for measurement in model.measurements])
    for what, values, limit in (("reward", paid, LARGEST_RETURN), ("price of a look", prices, LARGEST_PRICE)):
        largest = float(np.abs(values).max(initial=0.0))
        # A file may also hold expected rewards that are larger than those of the successors.
        largest = max(largest, float(np.abs(model.rewards).max())) if values is paid else largest
        if not largest * steps <= limit:
            together = f"{largest * steps:.3g}" if np.isfinite(largest * steps) else "more than 1e308"
            over = f"at discount {float(model.discount)!r}" if model.discount < 1 else f"in {steps:,.0f} steps"
            adds_up = f", which adds up to {together} {over}" * (steps > 1)
            raise ModelError(
                f"the largest {what} is {largest:.6g} in size{adds_up}, expected at most {limit:g}: larger values cannot be "
                "computed with; divide all rewards and prices by the same number"
            )


def _check_longest(model: Model) -> None:
    """Raise a `ModelError` where, at discount 1, an episode may last so long that its return cannot be represented."""
    largest = float(np.abs(model.rewards).max())
    if not largest:
        return
    table, n_states = model.transitions, model.n_states
    # The likeliest path to an end from each state: in n_states steps the episode ends with at least that probability, so that a
    # policy along such paths takes at most n_states / probability steps. Shortest paths by logarithms, which cannot underflow.
    # A weight of 0 would be no edge, hence the small number.
    weights = 1e-12 - np.log(np.minimum(table.probabilities, 1.0))
    ends = model.terminal[table.successors]
    heads = np.where(ends, n_states, table.successors)
    tails = table.entry_rows() // model.n_actions
    order = np.lexsort((weights, heads, tails))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(tails[order]) != 0) | (np.diff(heads[order]) != 0)
    kept = order[first]
    backward = sparse.csr_array((weights[kept], (heads[kept], tails[kept])), shape=(n_states + 1,) * 2)
    paths = csgraph.dijkstra(backward, indices=[n_states])[0, :n_states][~model.terminal]
    longest = float((np.log(n_states) + paths.max()) / np.log(10))
    if longest + np.log10(largest) > np.log10(LARGEST_RETURN):
        raise ModelError(
            f"discount is 1, and to be sure of an end can take as many as 1e{longest:.0f} steps, because some probabilities are "
            f"so small: with rewards of up to {largest:.6g} the values may be larger than {LARGEST_RETURN:g}, and cannot be "
            "computed with; use a discount below 1, or leave the smallest probabilities out"
        )


def check_undiscounted(model: Model) -> None:
    """Raise a `ModelError` unless from every state some policy surely ends and no cycle has a positive average reward."""
    can_end = states_that_can_end(model.transitions, model.terminal)
    if not can_end.all():
        state = int(np.argmin(can_end))
        raise ModelError(
            f"discount is 1, but from {model.describe_state(state)} no policy is sure to end the episode, so its value is "
            "undefined; use a discount below 1, or mark the states in which the episode ends as terminal"
        )
    for states, rows in end_components(model.transitions, model.terminal):
        rewards = model.rewards.ravel()[rows]
        scale = np.abs(rewards).max()
        if rewards.max() > 0 and _best_average(model.transitions, states, rows, rewards / scale) > PAYING_AVERAGE:
            raise ModelError(
                f"discount is 1, but a cycle through {model.describe_state(int(states[0]))} earns a positive reward on average, "
                "so that its value is infinite; use a discount below 1"
            )
    _check_longest(model)


def states_that_can_end(transitions: Transitions, terminal: BoolArray) -> BoolArray:
    """Return a mask of the states from which some policy ends the episode with probability 1, shape (S,).

    It is the largest set X from which a terminal state can be reached by actions that cannot leave X.
    """
    n_states, n_actions = transitions.n_states, transitions.n_actions
    rows = transitions.entry_rows()
    candidates = np.ones(n_states, dtype=bool)
    while True:
        leaves = np.zeros(n_states * n_actions, dtype=bool)
        leaves[rows[~candidates[transitions.successors]]] = True
        allowed = ~leaves[rows]
        sources = rows[allowed] // n_actions
        reached = _reaching(sources, transitions.successors[allowed], terminal)
        if np.array_equal(reached, candidates):
            return candidates
        candidates = reached


def _reaching(sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int32], goal: BoolArray) -> BoolArray:
    """Return a mask of the states from which `goal` can be reached along the edges sources -> targets, shape (S,)."""
    n_states = len(goal)
    goal_states = np.flatnonzero(goal)
    root = n_states  # an extra node from which all goal states are one backward step away
    heads = np.concatenate([targets, np.full(len(goal_states), root)])
    tails = np.concatenate([sources, goal_states])
    backward = sparse.csr_array((np.ones(len(heads), dtype=np.int8), (heads, tails)), shape=(n_states + 1,) * 2)
    order = csgraph.breadth_first_order(backward, root, directed=True, return_predecessors=False)
    reached = np.zeros(n_states + 1, dtype=bool)
    reached[order] = True
    return reached[:n_states]


def end_components(
    transitions: Transitions, terminal: BoolArray, allowed: BoolArray | None = None
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return the maximal end components: sets of states that some policy never leaves.

    Parameters
    ----------
    transitions : Transitions
    terminal : bool array, shape (S,)
    allowed : bool array, shape (S * A,), optional
        The (state, action) rows that may be used; all by default.

    Returns
    -------
    list of (states, rows)
        `rows` are the (state, action) rows that stay inside the component.
    """
    n_states, n_actions = transitions.n_states, transitions.n_actions
    rows = transitions.entry_rows()
    row_state = np.repeat(np.arange(n_states), n_actions)
    inside = ~np.repeat(terminal, n_actions)
    if allowed is not None:
        inside &= allowed
    while True:
        used = inside[rows]
        edges = (np.ones(int(used.sum()), dtype=np.int8), (rows[used] // n_actions, transitions.successors[used]))
        graph = sparse.csr_array(edges, shape=(n_states, n_states))
        _, component = csgraph.connected_components(graph, directed=True, connection="strong")
        leaves = np.zeros(len(inside), dtype=bool)
        leaves[rows[component[transitions.successors] != component[rows // n_actions]]] = True
        has_action = np.zeros(n_states, dtype=bool)
        staying = inside & ~leaves
        has_action[row_state[staying]] = True
        # A state without an action that stays is no part of a component, and an action that leads to it leaves.
        leaves[rows[~has_action[transitions.successors]]] = True
        staying &= ~leaves
        if np.array_equal(staying, inside):
            break
        inside = staying
    kept_rows = np.flatnonzero(inside)
    order = np.argsort(component[row_state[kept_rows]], kind="stable")
    kept_rows = kept_rows[order]
    breaks = np.flatnonzero(np.diff(component[row_state[kept_rows]])) + 1
    return [(np.unique(row_state[part]), part) for part in np.split(kept_rows, breaks) if part.size]


def _best_average(
    transitions: Transitions,
    states: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    rewards: FloatArray,
) -> float:
    """Return the highest long-run average reward inside an end component.

    By linear programming: the smallest g for which some h has g + h(s) >= r(s, a) + sum_t P(s, a, t) h(t) for all rows.
    """
    stay = transitions.stacked()[rows][:, states]
    here = np.searchsorted(states, rows // transitions.n_actions)
    own = sparse.csr_array((np.ones(len(rows)), (np.arange(len(rows)), here)), shape=stay.shape)
    ones = sparse.csr_array(np.ones((len(rows), 1)))
    objective = np.zeros(len(states) + 1)
    objective[0] = 1.0
    bias: Any = sparse.hstack([-ones, stay - own]).tocsr()
    result = optimize.linprog(objective, A_ub=bias, b_ub=-rewards, bounds=(None, None), method="highs")
    return float(np.inf if result.fun is None else result.fun)
