"""The tree in flat arrays against dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actmeasure.kernels import pomcp
from actmeasure.kernels.pomcp import NONE, ROOT, add, find, keep_below, make_tree


def grown(steps, most=60, n_choices=4):
    """A tree, and the same as a dictionary, after attempts to add edges to histories."""
    tree, known, rng = make_tree(n_choices, most), {}, np.random.default_rng(len(steps))
    for where, edge in steps:
        parent = where % (len(known) + 1)
        found = find(tree, parent, edge)
        assert found == known.get((parent, edge), NONE)
        if found == NONE:
            made = add(tree, parent, edge)
            if len(known) + 1 == most:
                assert made == NONE
            else:
                assert made == len(known) + 1
                known[parent, edge] = made
    for array in (tree.visits, tree.tries, tree.means, tree.samples):
        array[:] = rng.integers(0, 100, array.shape)
    return tree, known


STEPS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**12)), max_size=120)
NARROW = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 3)), max_size=120)


@given(st.one_of(STEPS, NARROW))
@settings(max_examples=150)
def test_find_and_add_are_those_of_a_dictionary(steps):
    tree, known = grown(steps)
    assert tree.used[0] == len(known) + 1
    for (parent, edge), history in known.items():
        assert find(tree, parent, edge) == history
        assert find(tree, parent, edge + 1) == known.get((parent, edge + 1), NONE)
        assert find(tree, history, edge) == known.get((history, edge), NONE)


def described(tree, history):
    """A history and all that follow it, as nested dictionaries, by recursion."""
    below, following = {}, tree.child[history]
    while following != NONE:
        below[int(tree.edge[following])] = described(tree, following)
        following = tree.sibling[following]
    numbers = [tree.tries[history].tolist(), tree.means[history].tolist(), tree.samples[history].tolist()]
    return int(tree.visits[history]), numbers, below


@given(st.one_of(STEPS, NARROW), st.integers(0, 10**6))
@settings(max_examples=150)
def test_what_is_kept_is_a_copy_of_what_follows(steps, where):
    tree, known = grown(steps)
    root = where % (len(known) + 1)
    target, _ = grown(steps[::-1])  # which has something in it already
    before = described(tree, root)
    keep_below(tree, root, target, np.zeros(60, np.int64))
    assert described(target, ROOT) == before == described(tree, root)
    for history in range(1, int(target.used[0])):
        assert find(target, target.parent[history], target.edge[history]) == history


def test_a_cleared_tree_is_empty():
    tree, known = grown([(i, i) for i in range(50)])
    pomcp.clear(tree)
    assert described(tree, ROOT) == (0, [[0] * 4, [0.0] * 4, [0] * 4], {})
    assert all(find(tree, parent, edge) == NONE for parent, edge in known)


@pytest.mark.parametrize("most", [2, 3, 64, 65, 1000])
def test_the_table_is_never_full(most):
    tree = make_tree(2, most)
    for edge in range(most + 5):
        add(tree, ROOT, edge)
    assert tree.used[0] == most
    assert (tree.table != NONE).sum() == most - 1 <= len(tree.table) // 2
