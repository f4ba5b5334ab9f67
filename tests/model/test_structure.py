"""End components and sure endings against brute force over all subsets and policies."""

from itertools import chain, combinations, product

import numpy as np
from hypothesis import given, settings
from strategies import models

from actmeasure.model.structure import end_components, states_that_can_end


def subsets(items):
    return chain.from_iterable(combinations(items, k) for k in range(1, len(items) + 1))


@given(models(max_states=4, max_actions=2))
@settings(max_examples=100)
def test_end_components_are_the_largest_sets_one_can_stay_in(model):
    P = model.transitions.dense() > 0
    running = [s for s in range(model.n_states) if not model.terminal[s]]

    def stays(states):
        """Whether some policy never leaves the set and can go from each of its states to each other."""
        inside = np.zeros(model.n_states, dtype=bool)
        inside[list(states)] = True
        edges = np.zeros((model.n_states,) * 2, dtype=bool)
        for s in states:
            rows = [P[s, a] for a in range(model.n_actions) if not (P[s, a] & ~inside).any()]
            if not rows:
                return False
            edges[s] = np.any(rows, axis=0)
        reach = np.linalg.matrix_power(np.eye(model.n_states) + edges, model.n_states) > 0
        return all(reach[s, t] for s in states for t in states)

    possible = [set(states) for states in subsets(running) if stays(states)]
    largest = [states for states in possible if not any(states < other for other in possible)]
    found = [set(states.tolist()) for states, _ in end_components(model.transitions, model.terminal)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, largest))


@given(models(max_states=4, max_actions=2, may_end=(True,)))
@settings(max_examples=100)
def test_states_that_can_end_are_those_from_which_some_policy_surely_does(model):
    P = model.transitions.dense()
    surely = model.terminal.copy()
    for policy in product(range(model.n_actions), repeat=model.n_states):
        chain_of_policy = P[np.arange(model.n_states), policy]
        chain_of_policy[model.terminal] = np.eye(model.n_states)[model.terminal]
        far = np.linalg.matrix_power(chain_of_policy, 2**40)
        surely |= far[:, model.terminal].sum(axis=1) > 1 - 1e-6
    assert states_that_can_end(model.transitions, model.terminal).tolist() == surely.tolist()
