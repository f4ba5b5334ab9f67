"""The likelihood of states that are known only at inspections, and what it expects to have happened in between.

A *run* is an action done a number of times in a row, a *word* the runs between two inspections, a *group* all gaps with one word
and one state at their beginning. The matrices of runs are the nodes of a graph in which each is the product of two earlier ones,
so that the cost of a run grows with the logarithm of its length, and gradients go back through the same graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean


class Words(NamedTuple):
    """The words of all gaps; S states, N nodes, G groups.

    `letter` (N,) is the action of a node of length 1 and otherwise -1; `left` and `right` (N,) are the factors of the others.
    `runs` are the nodes of all words, one word after another; those of word `w` begin at `offsets[w]`.
    `word` and `begin` (G,) are the word and the first state of a group.
    """

    letter: Any
    left: Any
    right: Any
    runs: Any
    offsets: Any
    word: Any
    begin: Any


@lean
def run_matrices(words: Words, letters: Any, nodes: Any) -> None:
    """`nodes`, float64 (N, S, S), from the matrices of the letters, float64 (L, S, S)."""
    size = letters.shape[1]
    for node in range(words.letter.shape[0]):
        nodes[node, :, :] = 0.0
        if words.letter[node] >= 0:
            _add(letters, words.letter[node], nodes, node)
            continue
        left, right = words.left[node], words.right[node]
        for i in range(size):
            for k in range(size):
                share = nodes[left, i, k]
                if share != 0.0:
                    for j in range(size):
                        nodes[node, i, j] += share * nodes[right, k, j]


@lean
def _add(matrices: Any, one: int, sums: Any, other: int) -> None:
    """Add a matrix to another."""
    for i in range(matrices.shape[1]):
        for j in range(matrices.shape[2]):
            sums[other, i, j] += matrices[one, i, j]


@lean
def gradient(
    words: Words, nodes: Any, counts: Any, node_gradient: Any, letter_gradient: Any, forward: Any, backward: Any
) -> float:
    """The log-likelihood; its gradient by the matrices of the letters, float64 (L, S, S), goes into `letter_gradient`.

    `counts`, float64 (G, S + 1), tells how often a group ended in each state; its last column, how often it ended unseen, still
    running. `node_gradient` is work space of the shape of `nodes`, `forward` and `backward` of shape (longest word + 1, S).
    Where something was counted that cannot be, the result is minus infinity and the gradient means nothing.
    """
    node_gradient[:] = 0.0
    total = 0.0
    for group in range(words.word.shape[0]):
        first, last = words.offsets[words.word[group]], words.offsets[words.word[group] + 1]
        walk(words, nodes, group, forward)
        total += _at_the_end(counts, group, last - first, forward, backward)
        if total == -np.inf:
            return total
        for run in range(last - 1, first - 1, -1):
            _step_back(nodes, words.runs[run], run - first, forward, backward, node_gradient)
    _back_to_letters(words, nodes, node_gradient, letter_gradient)
    return total


@lean
def _at_the_end(counts: Any, group: int, end: int, forward: Any, backward: Any) -> float:
    """The log-likelihood of a group's ends, and into row `end` of `backward` its gradient by their chances."""
    size = forward.shape[1]
    still, unseen, total = 0.0, counts[group, size], 0.0
    for state in range(size):
        still += forward[end, state]
    if unseen > 0.0:
        if still <= 0.0:
            return -np.inf
        total += unseen * np.log(still)
    for state in range(size):
        backward[end, state] = unseen / still if unseen > 0.0 else 0.0
        count = counts[group, state]
        if count > 0.0:
            if forward[end, state] <= 0.0:
                return -np.inf
            total += count * np.log(forward[end, state])
            backward[end, state] += count / forward[end, state]
    return total


@lean
def _step_back(nodes: Any, node: int, here: int, forward: Any, backward: Any, node_gradient: Any) -> None:
    """From row `here + 1` of `backward` to row `here`, over a run; what the run has to do with it goes to its gradient."""
    size = nodes.shape[1]
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += nodes[node, i, j] * backward[here + 1, j]
        backward[here, i] = total
        chance = forward[here, i]
        if chance != 0.0:
            for j in range(size):
                node_gradient[node, i, j] += chance * backward[here + 1, j]


@lean
def walk(words: Words, nodes: Any, group: int, forward: Any) -> None:
    """The chances of the states along a group's word, as rows of `forward`: before its first run, and after each."""
    size = nodes.shape[1]
    first, last = words.offsets[words.word[group]], words.offsets[words.word[group] + 1]
    forward[0, :] = 0.0
    forward[0, words.begin[group]] = 1.0
    for run in range(first, last):
        node, here, there = words.runs[run], run - first, run - first + 1
        forward[there, :] = 0.0
        for i in range(size):
            share = forward[here, i]
            if share != 0.0:
                for j in range(size):
                    forward[there, j] += share * nodes[node, i, j]


@lean
def _back_to_letters(words: Words, nodes: Any, node_gradient: Any, letter_gradient: Any) -> None:
    """Carry gradients from products to their factors, down to the letters; products come after their factors."""
    size = nodes.shape[1]
    letter_gradient[:] = 0.0
    for node in range(words.letter.shape[0] - 1, -1, -1):
        if words.letter[node] >= 0:
            _add(node_gradient, node, letter_gradient, words.letter[node])
            continue
        left, right = words.left[node], words.right[node]
        for i in range(size):
            for k in range(size):
                share = 0.0
                factor = nodes[left, i, k]
                for j in range(size):
                    change = node_gradient[node, i, j]
                    share += change * nodes[right, k, j]
                    if factor != 0.0:
                        node_gradient[right, k, j] += factor * change
                node_gradient[left, i, k] += share


@lean
def end_chances(words: Words, nodes: Any, forward: Any, ends: Any) -> None:
    """`ends`, float64 (G, S): where each group is after its word; rows may sum to less than 1."""
    for group in range(words.word.shape[0]):
        walk(words, nodes, group, forward)
        length = words.offsets[words.word[group] + 1] - words.offsets[words.word[group]]
        for state in range(forward.shape[1]):
            ends[group, state] = forward[length, state]


@lean
def end_changes(words: Words, nodes: Any, changes: Any, forward: Any, rates: Any, ends: Any) -> None:
    """`ends`, float64 (G, S): how `end_chances` changes when the nodes change at the rate of `changes`, float64 (N, S, S).

    `rates` is work space of the shape of `forward`.
    """
    size = nodes.shape[1]
    for group in range(words.word.shape[0]):
        first, last = words.offsets[words.word[group]], words.offsets[words.word[group] + 1]
        walk(words, nodes, group, forward)
        rates[0, :] = 0.0
        for run in range(first, last):
            node, here, there = words.runs[run], run - first, run - first + 1
            rates[there, :] = 0.0
            for i in range(size):
                chance, change = forward[here, i], rates[here, i]
                if chance != 0.0 or change != 0.0:
                    for j in range(size):
                        rates[there, j] += chance * changes[node, i, j] + change * nodes[node, i, j]
        for state in range(size):
            ends[group, state] = rates[last - first, state]


@lean
def run_changes(words: Words, nodes: Any, letter_changes: Any, changes: Any) -> None:
    """`changes`, float64 (N, S, S), of the nodes when the letters change at the rate of `letter_changes`, float64 (L, S, S)."""
    size = nodes.shape[1]
    for node in range(words.letter.shape[0]):
        changes[node, :, :] = 0.0
        if words.letter[node] >= 0:
            _add(letter_changes, words.letter[node], changes, node)
            continue
        left, right = words.left[node], words.right[node]
        for i in range(size):
            for k in range(size):
                share, change = nodes[left, i, k], changes[left, i, k]
                if share != 0.0 or change != 0.0:
                    for j in range(size):
                        changes[node, i, j] += change * nodes[right, k, j] + share * changes[right, k, j]
