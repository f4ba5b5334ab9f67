"""A tree of histories in flat arrays: what was tried after each, and what it was worth.

An edge leads from one history to the next: a choice, 2 * action + look, and what was then seen, which is the number of states
where that was nothing.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.learned_model import any_of
from actmeasure.kernels.simulate import World, move

NONE = -1
ROOT = 0
#: Multiplies keys, so that neighbours are spread over the table; the golden ratio of 64 bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Tree(NamedTuple):
    """Histories are numbered from the root, 0; there is room for `most` of them."""

    visits: Any  # int64 (most,)
    tries: Any  # int64 (most, 2 A): of each choice
    means: Any  # float64 (most, 2 A): of what came after a choice, itself included
    samples: (
        Any  # int64 (most, 2 A): how many samples are in each mean, also such that were not tries of the choice itself
    )
    parent: Any  # int64 (most,)
    edge: Any  # int64 (most,): how the history follows from its parent, choice * (S + 1) + observation
    child: Any  # int64 (most,): the latest history that follows, -1 if none
    sibling: Any  # int64 (most,): the one before it with the same parent, -1 if none
    table: Any  # int64 (a power of two,): histories by parent and edge, -1 where free
    used: Any  # int64 (1,)


def make_tree(n_choices: int, most: int) -> Tree:
    """A tree that has room for so many histories, and has only the root."""
    size = 1 << int(2 * most - 1).bit_length()
    tree = Tree(
        np.zeros(most, np.int64), np.zeros((most, n_choices), np.int64), np.zeros((most, n_choices)),
        np.zeros((most, n_choices), np.int64), np.full(most, NONE), np.full(most, NONE), np.full(most, NONE),
        np.full(most, NONE), np.full(size, NONE), np.zeros(1, np.int64),
    )  # fmt: skip
    clear(tree)
    return tree


@lean
def clear(tree: Tree) -> None:
    """Only the root is left."""
    for slot in range(tree.table.shape[0]):
        tree.table[slot] = NONE
    tree.used[0] = 0
    add(tree, NONE, NONE)


@lean
def _slot(tree: Tree, parent: int, edge: int) -> Any:
    """Where the search for a history begins in the table."""
    key = np.uint64(parent) * SPREAD + np.uint64(edge)
    key = (key ^ (key >> np.uint64(29))) * SPREAD
    return (key ^ (key >> np.uint64(32))) & np.uint64(tree.table.shape[0] - 1)


@lean
def find(tree: Tree, parent: int, edge: int) -> int:
    """The history that follows from another by an edge, -1 if it is not in the tree."""
    slot = _slot(tree, parent, edge)
    history = tree.table[slot]
    while history != NONE and (tree.parent[history] != parent or tree.edge[history] != edge):
        slot = (slot + np.uint64(1)) & np.uint64(tree.table.shape[0] - 1)
        history = tree.table[slot]
    return history  # type: ignore[no-any-return]


@lean
def add(tree: Tree, parent: int, edge: int) -> int:
    """Add a history that is not in the tree; -1 if there is no room."""
    history = tree.used[0]
    if history == tree.visits.shape[0]:
        return NONE
    tree.used[0] += 1
    tree.visits[history] = 0
    for choice in range(tree.tries.shape[1]):
        tree.tries[history, choice] = 0
        tree.means[history, choice] = 0.0
        tree.samples[history, choice] = 0
    tree.parent[history], tree.edge[history] = parent, edge
    tree.child[history], tree.sibling[history] = NONE, NONE
    if parent != NONE:
        tree.sibling[history] = tree.child[parent]
        tree.child[parent] = history
        slot = _slot(tree, parent, edge)
        while tree.table[slot] != NONE:
            slot = (slot + np.uint64(1)) & np.uint64(tree.table.shape[0] - 1)
        tree.table[slot] = history
    return history  # type: ignore[no-any-return]


@lean
def keep_below(tree: Tree, root: int, target: Tree, origin: Any) -> None:
    """Copy what follows from a history into another tree of the same size, in which it is the root.

    `origin`, int64 (most,), is room for the number that each had.
    """
    clear(target)
    origin[ROOT] = root
    new = 0
    while new < target.used[0]:
        old = origin[new]
        target.visits[new] = tree.visits[old]
        for choice in range(tree.tries.shape[1]):
            target.tries[new, choice] = tree.tries[old, choice]
            target.means[new, choice] = tree.means[old, choice]
            target.samples[new, choice] = tree.samples[old, choice]
        following = tree.child[old]
        while following != NONE:
            origin[add(target, new, tree.edge[following])] = following
            following = tree.sibling[following]
        new += 1


# ----------------------------------------------------------------------------------------------------
# Monte-Carlo planning under partial observability: simulate, expand, back up.
# ----------------------------------------------------------------------------------------------------


#: Rollouts: any action, with or without a look; any without looks; the given action of each state, without and with a look.
RANDOM, BLIND, GIVEN, LOOKING = 0, 1, 2, 3
#: How often particles are moved anew if all of them end, before they are put anywhere.
ATTEMPTS = 10


class Rules(NamedTuple):
    """The settings of the planner, as plain numbers."""

    discount: float
    depth: int
    exploration: float
    rollout: int
    clamp: bool
    share: bool


class Path(NamedTuple):
    """The way of one simulation through the tree, all of shape (depth,), and what each step paid."""

    histories: Any  # int64
    choices: Any  # int64
    gains: Any  # float64


def make_path(depth: int) -> Path:
    """Room for a simulation."""
    return Path(np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth))


@lean
def search(
    world: World, tree: Tree, rules: Rules, particles: Any, simulations: int, actions: Any, path: Path, stream: Any
) -> None:
    """Simulate so often from particles of the root's belief, int64 (n,); `actions`, int64 (S,), are for given rollouts."""
    for _ in range(simulations):
        state = particles[any_of(particles.shape[0], stream)]
        length, tail = _simulate(world, tree, rules, state, actions, path, stream)
        _back_up(tree, rules, path, length, tail)


@lean
def _simulate(
    world: World, tree: Tree, rules: Rules, state: int, actions: Any, path: Path, stream: Any
) -> tuple[int, float]:
    """Go down the tree to its edge, expand it there, and play on; returns the steps in the tree and the worth of the rest."""
    n_actions, n_states = world.dynamics.n_actions, world.dynamics.terminal.shape[0]
    history = ROOT
    for step in range(rules.depth):
        choice = _choose(tree, rules, history, stream)
        action, look = choice // 2, choice % 2
        cost = world.dynamics.costs[state * n_actions + action]
        state, reward, ended = move(world, state, action, stream)
        path.histories[step], path.choices[step] = history, choice
        path.gains[step] = reward - cost if look else reward
        if rules.share:
            _tell_twin(tree, rules, history, choice, reward if look else reward - cost, state, n_states, ended)
        if ended:
            return step + 1, 0.0
        edge = choice * (n_states + 1) + (state if look else n_states)
        following = find(tree, history, edge)
        if following == NONE:
            add(tree, history, edge)
            return step + 1, _roll_out(world, rules, state, rules.depth - step - 1, actions, stream)
        history = following
    return rules.depth, 0.0


@lean
def _choose(tree: Tree, rules: Rules, history: int, stream: Any) -> int:
    """A choice that was never tried, any of them; else the one with the highest upper confidence bound."""
    n_choices, untried = tree.tries.shape[1], 0
    for choice in range(n_choices):
        untried += tree.tries[history, choice] == 0
    if untried > 0:
        skip = any_of(untried, stream)
        for choice in range(n_choices):
            if tree.tries[history, choice] == 0:
                if skip == 0:
                    return choice
                skip -= 1
    width = rules.exploration * sqrt(log(float(tree.visits[history])))
    best, chosen = -np.inf, 0
    for choice in range(n_choices):
        bound = tree.means[history, choice] + width / sqrt(float(tree.tries[history, choice]))
        if bound > best:
            best, chosen = bound, choice
    return chosen


@lean
def _tell_twin(
    tree: Tree, rules: Rules, history: int, choice: int, gain: float, state: int, n_states: int, ended: bool
) -> None:
    """The same action with and without a look leads to the same state, so what the other would have paid is known too.

    What comes after it is taken from the tree, where the other has been tried already. It does not count as a try, or else
    the other would never be explored further.
    """
    twin = choice ^ 1
    future = 0.0
    if not ended:
        following = find(tree, history, twin * (n_states + 1) + (state if twin % 2 else n_states))
        if following == NONE or tree.visits[following] == 0:
            return
        future = best_mean(tree, following)
    _sample(tree, history, twin, gain + rules.discount * future)


@lean
def best_mean(tree: Tree, history: int) -> float:
    """The highest mean of the choices tried, 0 if none was."""
    best, chosen = 0.0, NONE
    for choice in range(tree.tries.shape[1]):
        if tree.tries[history, choice] > 0 and (chosen == NONE or tree.means[history, choice] > best):
            best, chosen = tree.means[history, choice], choice
    return best


@lean
def best_choice(tree: Tree, history: int, stream: Any) -> int:
    """The choice with the highest mean, of several any: where nothing is known, all are worth the same. -1 if none was tried."""
    best, ties = best_mean(tree, history), 0
    for choice in range(tree.tries.shape[1]):
        ties += tree.tries[history, choice] > 0 and tree.means[history, choice] == best
    skip = any_of(ties, stream) if ties > 1 else 0
    for choice in range(tree.tries.shape[1]):
        if tree.tries[history, choice] > 0 and tree.means[history, choice] == best:
            if skip == 0:
                return choice
            skip -= 1
    return NONE


@lean
def _roll_out(world: World, rules: Rules, state: int, steps: int, actions: Any, stream: Any) -> float:
    """What playing on from a state without a tree is worth."""
    n_actions = world.dynamics.n_actions
    total, factor = 0.0, 1.0
    for _ in range(steps):
        action = actions[state] if rules.rollout >= GIVEN else any_of(n_actions, stream)
        if rules.rollout == LOOKING or (rules.rollout == RANDOM and any_of(2, stream) == 1):
            total -= factor * world.dynamics.costs[state * n_actions + action]
        state, reward, ended = move(world, state, action, stream)
        total += factor * reward
        if ended:
            break
        factor *= rules.discount
    return total


@lean
def _back_up(tree: Tree, rules: Rules, path: Path, length: int, tail: float) -> None:
    """Take what a simulation was worth into the means of all choices on its way."""
    worth = tail
    for step in range(length - 1, -1, -1):
        worth = path.gains[step] + rules.discount * worth
        if rules.clamp and path.choices[step] % 2 == 0 and worth < 0.0:
            worth = 0.0
        history, choice = path.histories[step], path.choices[step]
        tree.visits[history] += 1
        tree.tries[history, choice] += 1
        _sample(tree, history, choice, worth)


@lean
def _sample(tree: Tree, history: int, choice: int, worth: float) -> None:
    tree.samples[history, choice] += 1
    tree.means[history, choice] += (worth - tree.means[history, choice]) / tree.samples[history, choice]


@lean
def move_particles(world: World, particles: Any, action: int, stream: Any) -> int:
    """Move particles, int64 (n,), one blind step, after which the episode is still running; returns how many had to be made up.

    Those that end are replaced by copies of others. If all end, also after several attempts, they are put anywhere: the world
    is then not as the model has it.
    """
    size, n_states = particles.shape[0], world.dynamics.terminal.shape[0]
    alive = 0
    for _ in range(ATTEMPTS):
        for i in range(size - 1, -1, -1):
            state, _, ended = move(world, particles[i], action, stream)
            if not ended:  # kept at the end of the array, where all have been moved already
                alive += 1
                particles[size - alive] = state
        if alive > 0:
            break
    missing: int = size - alive
    for i in range(missing):
        if alive > 0:
            particles[i] = particles[size - 1 - any_of(alive, stream)]
        else:
            particles[i] = _anywhere(world, n_states, stream)
    return missing


@lean
def _anywhere(world: World, n_states: int, stream: Any) -> int:
    """Any state in which the episode runs."""
    state = any_of(n_states, stream)
    while world.dynamics.terminal[state]:
        state = any_of(n_states, stream)
    return state
