"""A model as rows over (state, decision): where each decision leads and what is seen there, by slices of what is always known.

A *decision* d is an action with a measurement that is allowed with it. Its row in state s has an entry for every pair (o, t) of
an outcome and a state that is reached and not terminal, with probability T(s, a, t) Z(o | t, a).

A *slice* is a set of states such that a belief whose support lies in it has its support, after any decision and outcome, in one
slice again: the part of the state that is always known (the year, the age, visible components) never mixes. Value vectors and
beliefs are kept per slice. For slice x and decision d the possible pairs (o, t) are numbered: a pair is a *slot*, and the slots
of one outcome are a *group*, which leads to one slice. Adding up entries by slot gives all beliefs after d at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.dynamics import EPSILON
from actmeasure.kernels.jit import compiled, no_refcount

__all__ = ["Rows", "informed_sweep", "merge_slices"]


class Rows(NamedTuple):
    """The rows of a model; D decisions, S states, X slices. Row (s, d) has number `s * D + d`, (x, d) has `x * D + d`."""

    n_decisions: int
    discount: float
    #: 1 where the number of decisions left is counted down by the layers of bounds, 0 for an unlimited horizon.
    shift: int
    #: Added to a bound that is computed from others: covers rounding and merged beliefs.
    slack: float
    rewards: Any  # float64 (S * D,)
    offsets: Any  # int64 (S * D + 1,)
    slots: Any  # int64 (n_entries,), ascending in a row
    probabilities: Any  # float64 (n_entries,)
    groups: Any  # int64 (X * D + 1,): the groups of (x, d) are groups[i] to groups[i + 1]
    group_slots: Any  # int64 (n_groups + 1,): the slots of a group
    group_slice: Any  # int64 (n_groups,)
    slot_state: Any  # int32 (n_slots,)
    slice_of: Any  # int32 (S,), -1 for states that no belief comes to
    position: Any  # int32 (S,): of a state in its slice
    slice_offsets: Any  # int64 (X + 1,)
    slice_states: Any  # int32 (n_reached,): the states of each slice, ascending
    #: Upper bounds per layer, state and decision: on the value of a decision in a belief, linear in the belief.
    informed: Any  # float64 (layers, S * D)


@no_refcount
def _root(parents: Any, state: int) -> int:
    while parents[state] != state:
        parents[state] = parents[parents[state]]
        state = parents[state]
    return state


@compiled
def merge_slices(
    n_decisions: int, offsets: Any, outcomes: Any, successors: Any, parents: Any, following: Any, last: Any, size: Any,
    queue: Any, keys: Any, values: Any, queued: int,
) -> int:  # fmt: skip
    """Merge states until beliefs never leave their class; returns the number of states reached, -1 if the hash table is full.

    Parameters
    ----------
    n_decisions : int
    offsets, outcomes, successors : int64 arrays
        Rows over (state, decision): for each entry the outcome and the state reached.
    parents, following, last, size : int64 arrays, shape (S,)
        Disjoint sets of states as trees, and as linked lists; `following` and `last` describe the list of the root.
    queue : int64 array, shape (capacity,)
        The first `queued` entries are the states to begin with, already merged where a belief mixes them. A state is queued when
        it is reached, and again when its class was merged into a larger one: so at most log2(S) + 1 times.
    keys, values : int64 arrays, a power of 2 long
        A hash table from (class, decision, outcome) to a state that is reached; keys are -1 before.
    queued : int
    """
    mask = keys.shape[0] - 1
    n_outcomes = 2
    for entry in range(outcomes.shape[0]):
        n_outcomes = max(n_outcomes, outcomes[entry] + 2)
    reached, done, n_keys = queued, 0, 0
    while done < queued:
        state = queue[done % queue.shape[0]]
        done += 1
        for decision in range(n_decisions):
            row = state * n_decisions + decision
            for entry in range(offsets[row], offsets[row + 1]):
                successor = successors[entry]
                if size[successor] == 0:
                    size[successor] = 1
                    queue[queued % queue.shape[0]] = successor
                    queued += 1
                    reached += 1
                # The class may have changed in the meantime.
                key = (_root(parents, state) * n_decisions + decision) * n_outcomes + outcomes[entry] + 1
                place = (key * 0x9E3779B97F4A7C1) & mask
                while keys[place] != -1 and keys[place] != key:
                    place = (place + 1) & mask
                if keys[place] == -1:
                    keys[place], values[place] = key, successor
                    n_keys += 1
                    if 4 * n_keys > 3 * keys.shape[0]:
                        return -1
                    continue
                one, two = _root(parents, values[place]), _root(parents, successor)
                if one == two:
                    continue
                if size[one] < size[two]:
                    one, two = two, one
                member = two
                while member >= 0:  # what the smaller class leads to is compared with what the larger one leads to
                    queue[queued % queue.shape[0]] = member
                    queued += 1
                    member = following[member]
                parents[two] = one
                following[last[one]] = two
                last[one] = last[two]
                size[one] += size[two]
    return reached


@compiled
def informed_sweep(rows: Rows, n_states: int, layer: int, before: int, scale: float, sums: Any) -> float:
    """Replace the bounds of a layer by one step of the fast informed bound from layer `before`; returns the largest change.

    With Q a bound on every decision in every belief, linear in the belief, so is

        Q'(s, d) = r(s, d) + discount * sum over o of max over d' of sum over t of T(s, a, t) Z(o | t, a) Q(t, d')

    because the state s before the decision is shown for free. Bounds only fall. `scale` is the largest absolute value of Q, for
    rounding upwards; `sums` is scratch, float64 (D,).
    """
    n, change = rows.n_decisions, 0.0
    for state in range(n_states):
        if rows.slice_of[state] < 0:
            continue
        for decision in range(n):
            row = state * n + decision
            total = 0.0
            group = rows.groups[rows.slice_of[state] * n + decision]
            entry, stop = rows.offsets[row], rows.offsets[row + 1]
            while entry < stop:
                while rows.group_slots[group + 1] <= rows.slots[entry]:
                    group += 1
                for other in range(n):
                    sums[other] = 0.0
                while entry < stop and rows.slots[entry] < rows.group_slots[group + 1]:
                    first, chance = rows.slot_state[rows.slots[entry]] * n, rows.probabilities[entry]
                    for other in range(n):
                        sums[other] += chance * rows.informed[before, first + other]
                    entry += 1
                best = sums[0]
                for other in range(1, n):
                    best = max(best, sums[other])
                total += best
            terms = rows.offsets[row + 1] - rows.offsets[row] + 16
            value = rows.rewards[row] + rows.discount * total
            value += EPSILON * terms * (abs(rows.rewards[row]) + scale)
            if value < rows.informed[layer, row]:
                change = max(change, rows.informed[layer, row] - value)
                rows.informed[layer, row] = value
    return change
