"""The likelihood of states known only at inspections, against all paths that could have been."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import CHAINS, records
from strategies import examples

from actmeasure.inspection.estimation import maximise, persistent_start, random_start
from actmeasure.inspection.gaps import find_gaps, run_graph
from actmeasure.inspection.likelihood import Likelihood
from actmeasure.inspection.records import read_records

STATES, ACTIONS = ("a", "b", "c"), ("x", "y")


@st.composite
def tiny_records(draw):
    """A few units with a few records each, in any order and with gaps of any kind."""
    rows = []
    for unit in range(draw(st.integers(1, 3))):
        times = draw(st.lists(st.integers(0, 6), min_size=2, max_size=5, unique=True))
        for time in times:
            rows.append((unit, time, draw(st.sampled_from(["", *STATES])), draw(st.sampled_from(["", *ACTIONS]))))
    rows += [
        (9, 0, "a", "x"),
        (9, 1, "b", "y"),
        (9, 3, "c", "x"),
    ]  # so that there is a gap, a state and an action at least
    return draw(st.permutations(rows))


def chains(seed):
    return np.random.default_rng(seed).dirichlet([1, 1, 1], size=(2, 3))


def by_enumeration(rows, probabilities, noticed=()):
    """The log-likelihood and expected transitions, path by path; the default action is x."""
    total, expected = 0.0, np.zeros_like(probabilities)
    at_once = {STATES.index(name) for name in noticed}
    for unit in {row[0] for row in rows}:
        told = {time: (state, action) for one, time, state, action in rows if one == unit}
        seen = sorted(time for time in told if told[time][0])
        stretches = list(itertools.pairwise(seen))
        if noticed and seen and max(told) > seen[-1]:
            stretches.append((seen[-1], max(told)))
        for begin, end in stretches:
            actions = [ACTIONS.index(told.get(time, ("", ""))[1] or "x") for time in range(begin, end)]
            last = told[end][0]
            paths = []
            for middle in itertools.product(range(3), repeat=end - begin):
                path = (STATES.index(told[begin][0]), *middle)
                unseen_entry = any(
                    there in at_once and here not in at_once and (step < end - begin - 1 or not last)
                    for step, (here, there) in enumerate(itertools.pairwise(path))
                )
                if unseen_entry or (last and path[-1] != STATES.index(last)):
                    continue
                chance = np.prod([probabilities[a, path[i], path[i + 1]] for i, a in enumerate(actions)])
                paths.append((chance, path))
            weight = sum(chance for chance, _ in paths)
            total += np.log(weight)
            for chance, path in paths:
                for step, action in enumerate(actions):
                    expected[action, path[step], path[step + 1]] += chance / weight
    return total, expected


def likelihood_of(rows, noticed=()):
    columns = dict(zip(("unit", "time", "state", "action"), zip(*rows, strict=True), strict=True))
    read = read_records(columns, states=STATES, actions=ACTIONS)
    return Likelihood(find_gaps(read, "x", noticed))


@given(tiny_records(), st.integers(0, 100), st.sampled_from([(), ("c",), ("b", "c")]))
@examples(60)
def test_likelihood_and_expected_transitions_are_those_of_all_paths(rows, seed, noticed):
    likelihood, probabilities = likelihood_of(rows, noticed), chains(seed)
    value, expected = likelihood.expected(probabilities, likelihood.gaps.counts())
    right, counts = by_enumeration(rows, probabilities, noticed)
    assert value == pytest.approx(right, rel=1e-9)
    np.testing.assert_allclose(expected, counts, rtol=1e-8, atol=1e-12)


@given(tiny_records(), st.integers(0, 100))
@examples(40)
def test_no_round_lowers_the_likelihood(rows, seed):
    likelihood = likelihood_of(rows)
    free = np.full((2, 3, 3), np.nan)
    start = random_start(np.ones((2, 3, 3), dtype=bool), free, np.random.default_rng(seed))
    found = maximise(likelihood, likelihood.gaps.counts(), start, free, most_rounds=50)
    assert np.all(np.diff(found.path) >= -1e-9)
    assert found.log_likelihood >= found.path[0] - 1e-3
    np.testing.assert_allclose(found.parameters.sum(axis=2), 1.0)


def test_with_every_period_inspected_the_fit_is_the_frequencies():
    rng = np.random.default_rng(3)
    columns = records(CHAINS, 30, 25, rng, longest_gap=1, repairs=0.3)
    read = read_records(columns)
    likelihood = Likelihood(find_gaps(read, None))
    free = np.full((2, 5, 5), np.nan)
    found = maximise(likelihood, likelihood.gaps.counts(), persistent_start(np.ones((2, 5, 5), dtype=bool), free), free)
    counts = np.zeros((2, 5, 5))
    for unit in np.unique(read.unit):
        states, actions = read.state[read.unit == unit], read.action[read.unit == unit]
        np.add.at(counts, (actions[:-1], states[:-1], states[1:]), 1)
    total = counts.sum(axis=2, keepdims=True)
    assert (total > 0).all()
    np.testing.assert_allclose(found.parameters, counts / total, atol=1e-12)
    np.testing.assert_array_equal(likelihood.gaps.inspected(read), total[:, :, 0])


def test_the_gradient_of_long_runs_is_that_of_powers():
    rows = [(0, 0, "a", "x"), (0, 1000, "b", "x"), (0, 1003, "c", "y"), (0, 1010, "a", "x")]
    likelihood, probabilities = likelihood_of(rows), chains(1)
    value, expected = likelihood.expected(probabilities, likelihood.gaps.counts())
    power = np.linalg.matrix_power
    x, y = probabilities
    right = np.log(power(x, 1000)[0, 1] * power(x, 3)[1, 2] * (y @ power(x, 6))[2, 0])
    assert value == pytest.approx(right)
    assert expected[0].sum() == pytest.approx(1000 + 3 + 6)
    step = 1e-6
    for place in ((0, 0, 1), (1, 2, 0)):
        nudged = probabilities.copy()
        nudged[place] += step
        slope = (likelihood.expected(nudged, likelihood.gaps.counts())[0] - value) / step
        assert expected[place] == pytest.approx(slope * probabilities[place], rel=1e-3)


def test_runs_are_products_of_few_others():
    numbers, letter, left, right = run_graph([(0, 1_000_000), (1, 7), (1, 6)])
    assert len(numbers) < 40
    length = {number: run[1] for run, number in numbers.items()}
    for number, (_, periods) in {number: run for run, number in numbers.items()}.items():
        if letter[number] < 0:
            assert periods == length[left[number]] + length[right[number]]
            assert max(left[number], right[number]) < number
        else:
            assert periods == 1


def test_changes_of_ends_are_their_slopes():
    rng = np.random.default_rng(0)
    columns = records(CHAINS, 20, 20, rng)
    likelihood = Likelihood(find_gaps(read_records(columns, states=list("01234")), None))
    probabilities = 0.9 * CHAINS + 0.02
    direction = rng.normal(size=probabilities.shape)
    groups = np.arange(likelihood.gaps.n_groups)
    step = 1e-6
    slope = (
        likelihood.end_probabilities(probabilities + step * direction)
        - likelihood.end_probabilities(probabilities - step * direction)
    ) / (2 * step)
    np.testing.assert_allclose(
        likelihood.end_derivatives(probabilities, direction, groups), slope, rtol=1e-5, atol=1e-7
    )
