"""A tree of histories in flat arrays: what was tried after each, and what it was worth.

An edge leads from one history to the next: a choice, 2 * action + look, and what was then seen, which is the number of states
where that was nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean

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
