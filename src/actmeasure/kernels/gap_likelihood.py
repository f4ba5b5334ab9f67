"""Likelihood of states that are observed only at inspections, its gradient, and the distribution of the state in between.

Between two inspections a unit takes actions a_1, ..., a_n, and the likelihood of the gap from state i to state j is the entry
(i, j) of the product P[a_1] ... P[a_n]. A *run* is an action repeated a number of times, a *word* the runs of a gap, a *letter*
an action (two for each action if there are noticed states, see `actmeasure.inspection.gaps`), and a *group* all gaps with the
same word and first state. The matrices of runs are the nodes of a directed graph in which each is the product of two earlier
ones, so that the cost of a run grows with the logarithm of its length. The gradient is computed by reverse accumulation through
that graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount


class GapWords(NamedTuple):
    """The words of all gaps as arrays; N nodes, G groups.

    `letter` (N,) is the letter of a node of length 1 and otherwise -1; `left` and `right` (N,) are the factors of the others.
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


class UnitEvents(NamedTuple):
    """What happened to each of U units in order, where recorded states may be wrong.

    `event` are the events of all units, one unit after another; those of unit `u` begin at `offsets[u]`, (U + 1,). An event `n`
    of 0 or more is a run with the matrix of node `n`; `-1 - o` is an inspection that recorded state `o`; and `-1 - S` is the
    end of the records without an inspection. `begin` (U,) is the state recorded first; -1 without any.
    """

    event: Any
    offsets: Any
    begin: Any


@no_refcount
def run_matrices(words: GapWords, letters: Any, nodes: Any) -> None:
    """Compute the matrices of all nodes into `nodes`, float64 (N, S, S), from those of the letters, float64 (L, S, S)."""
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


@no_refcount
def _add(matrices: Any, one: int, sums: Any, other: int) -> None:
    """Add `matrices[one]` to `sums[other]`."""
    for i in range(matrices.shape[1]):
        for j in range(matrices.shape[2]):
            sums[other, i, j] += matrices[one, i, j]


@no_refcount
def gradient(
    words: GapWords, nodes: Any, counts: Any, node_gradient: Any, letter_gradient: Any, forward: Any, backward: Any
) -> float:
    """Return the log-likelihood; compute its gradient by the matrices of the letters, float64 (L, S, S), into `letter_gradient`.

    `counts`, float64 (G, S + 1), is how often a group ended in each state and, in its last column, without an observation. With
    f the distribution of the last state, a group contributes sum_j counts[j] log f[j] + counts[S] log(sum_j f[j]).
    `node_gradient` is work space of the shape of `nodes`, `forward` and `backward` of shape (longest word + 1, S). If an end of
    probability 0 was counted, the result is minus infinity and the gradient is undefined.
    """
    node_gradient[:] = 0.0
    total = 0.0
    for group in range(words.word.shape[0]):
        first, last = words.offsets[words.word[group]], words.offsets[words.word[group] + 1]
        walk(words, nodes, group, forward)
        total += _end_of_group(counts, group, last - first, forward, backward)
        if total == -np.inf:
            return total
        for run in range(last - 1, first - 1, -1):
            _step_back(nodes, words.runs[run], run - first, forward, backward, node_gradient)
    _letters_from_nodes(words, nodes, node_gradient, letter_gradient)
    return total


@no_refcount
def _end_of_group(counts: Any, group: int, end: int, forward: Any, backward: Any) -> float:
    """Return the log-likelihood of a group's ends; compute its gradient by their probabilities into row `end` of `backward`."""
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


@no_refcount
def _step_back(nodes: Any, node: int, here: int, forward: Any, backward: Any, node_gradient: Any) -> None:
    """Compute row `here` of `backward` from row `here + 1`, over a run, and add the run's part to its gradient."""
    size = nodes.shape[1]
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += nodes[node, i, j] * backward[here + 1, j]
        backward[here, i] = total
        probability = forward[here, i]
        if probability != 0.0:
            for j in range(size):
                node_gradient[node, i, j] += probability * backward[here + 1, j]


@no_refcount
def walk(words: GapWords, nodes: Any, group: int, forward: Any) -> None:
    """Compute the distributions along a group's word into the rows of `forward`: before its first run, and after each run."""
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


@no_refcount
def _letters_from_nodes(words: GapWords, nodes: Any, node_gradient: Any, letter_gradient: Any) -> None:
    """Compute the gradient of the letters from that of the nodes, from products to factors; products come after factors."""
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


@no_refcount
def end_probabilities(words: GapWords, nodes: Any, forward: Any, ends: Any) -> None:
    """Compute the distribution of each group's last state into `ends`, float64 (G, S); rows may sum to less than 1."""
    for group in range(words.word.shape[0]):
        walk(words, nodes, group, forward)
        length = words.offsets[words.word[group] + 1] - words.offsets[words.word[group]]
        for state in range(forward.shape[1]):
            ends[group, state] = forward[length, state]


@no_refcount
def end_derivatives(words: GapWords, nodes: Any, changes: Any, forward: Any, rates: Any, ends: Any) -> None:
    """Compute the derivative of `end_probabilities` into `ends`, float64 (G, S), for the nodes' derivatives, `changes` (N, S, S).

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
                probability, change = forward[here, i], rates[here, i]
                if probability != 0.0 or change != 0.0:
                    for j in range(size):
                        rates[there, j] += probability * changes[node, i, j] + change * nodes[node, i, j]
        for state in range(size):
            ends[group, state] = rates[last - first, state]


@no_refcount
def run_derivatives(words: GapWords, nodes: Any, letter_changes: Any, changes: Any) -> None:
    """Compute the derivatives of the nodes into `changes`, float64 (N, S, S), for those of the letters, float64 (L, S, S)."""
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


@no_refcount
def hidden_gradient(
    words: GapWords,
    events: UnitEvents,
    nodes: Any,
    errors: Any,
    initial: Any,
    weights: Any,
    node_gradient: Any,
    letter_gradient: Any,
    error_gradient: Any,
    initial_gradient: Any,
    forward: Any,
    backward: Any,
) -> float:
    """Return the log-likelihood of records with errors by the forward algorithm; compute its gradient by reverse accumulation.

    Parameters
    ----------
    errors : float64 array, shape (S, S)
        Probability of each recorded state (column) given the state.
    initial : float64 array, shape (U, S)
        Distribution of the state at the first event of each unit.
    weights : float64 array, shape (U,)
    node_gradient, letter_gradient, error_gradient, initial_gradient
        Results, of the shapes of `nodes`, the letters, `errors` and `initial`. If a record has probability 0, the result is minus
        infinity and they are undefined.
    forward : float64 array, shape (most events of a unit + 1, S)
        Work space, and so is `backward`, of at least two rows.
    """
    size = errors.shape[0]
    node_gradient[:] = 0.0
    error_gradient[:] = 0.0
    initial_gradient[:] = 0.0
    total = 0.0
    for unit in range(weights.shape[0]):
        first, last = events.offsets[unit], events.offsets[unit + 1]
        if first == last or weights[unit] == 0.0:
            continue
        value = filter_unit(events, unit, nodes, errors, initial, forward)
        if value == -np.inf:
            return value
        total += weights[unit] * value
        backward[0, :] = 0.0
        for number in range(last - 1, first - 1, -1):
            event, here = events.event[number], number - first
            if event >= 0:
                for i in range(size):
                    share = 0.0
                    for j in range(size):
                        share += nodes[event, i, j] * backward[0, j]
                        node_gradient[event, i, j] += forward[here, i] * backward[0, j]
                    backward[1, i] = share
            else:
                # After the event f' = u / c with u[s] = f[s] e[s] and c = sum u, of which the logarithm is in the likelihood.
                seen = -1 - event
                chance, common = 0.0, 0.0
                for s in range(size):
                    chance += forward[here, s] * (1.0 if seen == size else errors[s, seen])
                    common += backward[0, s] * forward[here + 1, s]
                for s in range(size):
                    rate = (weights[unit] + backward[0, s] - common) / chance
                    if seen == size:
                        backward[1, s] = rate
                    else:
                        backward[1, s] = rate * errors[s, seen]
                        error_gradient[s, seen] += rate * forward[here, s]
            for s in range(size):
                backward[0, s] = backward[1, s]
        for s in range(size):
            initial_gradient[unit, s] = backward[0, s]
    _letters_from_nodes(words, nodes, node_gradient, letter_gradient)
    return total


@no_refcount
def filter_unit(events: UnitEvents, unit: int, nodes: Any, errors: Any, initial: Any, forward: Any) -> float:
    """Return the log-likelihood of a unit; compute the distributions of the state after each event into rows of `forward`.

    Row 0 is the distribution before the first event. If a record has probability 0, the result is minus infinity.
    """
    size = errors.shape[0]
    first, last = events.offsets[unit], events.offsets[unit + 1]
    total = 0.0
    for s in range(size):
        forward[0, s] = initial[unit, s]
    for number in range(first, last):
        event, here, there = events.event[number], number - first, number - first + 1
        forward[there, :] = 0.0
        if event >= 0:
            for i in range(size):
                share = forward[here, i]
                if share != 0.0:
                    for j in range(size):
                        forward[there, j] += share * nodes[event, i, j]
            continue
        seen, chance = -1 - event, 0.0
        for s in range(size):
            forward[there, s] = forward[here, s] * (1.0 if seen == size else errors[s, seen])
            chance += forward[there, s]
        if chance <= 0.0:
            return -np.inf
        for s in range(size):
            forward[there, s] /= chance
        total += np.log(chance)
    return total


@no_refcount
def predictions(events: UnitEvents, nodes: Any, errors: Any, initial: Any, forward: Any, chances: Any) -> None:
    """Compute the distribution of each recorded state given the unit's earlier records into `chances`, float64 (n_events, S).

    Rows of events that are not inspections are 0. A row sums to less than 1 where a noticed state could have ended the gap.
    """
    size = errors.shape[0]
    chances[:] = 0.0
    for unit in range(initial.shape[0]):
        first, last = events.offsets[unit], events.offsets[unit + 1]
        filter_unit(events, unit, nodes, errors, initial, forward)
        for number in range(first, last):
            if events.event[number] < 0:
                for s in range(size):
                    for seen in range(size):
                        chances[number, seen] += forward[number - first, s] * errors[s, seen]


@no_refcount
def simulate_records(
    events: UnitEvents, nodes: Any, errors: Any, initial: Any, noticed: Any, drawn: Any, simulated: Any, forward: Any
) -> None:
    """Compute events with simulated records into `simulated`, from uniform random numbers `drawn`, float64 (n_events, 2).

    Runs stay as they are, and so do records of noticed states and ends without an inspection: they say when a gap ended.
    """
    size = errors.shape[0]
    state = 0
    for unit in range(initial.shape[0]):
        first, last = events.offsets[unit], events.offsets[unit + 1]
        for s in range(size):
            forward[0, s] = initial[unit, s]
        for number in range(first, last):
            event = events.event[number]
            simulated[number] = event
            if event >= 0:
                forward[1, :] = 0.0
                for i in range(size):
                    for j in range(size):
                        forward[1, j] += forward[0, i] * nodes[event, i, j]
                for s in range(size):
                    forward[0, s] = forward[1, s]
                continue
            seen = -1 - event
            if seen == size:
                continue
            if noticed[seen]:
                forward[0, :] = 0.0
                forward[0, seen] = 1.0
                continue
            total = 0.0
            for s in range(size):
                total += 0.0 if noticed[s] else forward[0, s]
            left, state = drawn[number, 0] * total, -1
            for s in range(size):
                if not noticed[s] and forward[0, s] > 0.0:
                    state = s
                    left -= forward[0, s]
                    if left < 0.0:
                        break
            if state < 0:
                continue
            left = drawn[number, 1]
            for o in range(size):
                if errors[state, o] > 0.0:
                    simulated[number] = -1 - o
                    left -= errors[state, o]
                    if left < 0.0:
                        break
            forward[0, :] = 0.0
            forward[0, state] = 1.0
