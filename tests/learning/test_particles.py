"""Beliefs of particles: they are moved as often one way as the learned dynamics say, and none is lost."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from actmeasure.kernels import particles, streams
from actmeasure.kernels.learned_model import count, make_counts
from actmeasure.kernels.streams import any_of

UNLIKELY = 1e-6


def stream_for(seed):
    stream = streams.make_stream()
    streams.seed_stream(stream, streams.entropy_words(seed), 0, streams.AGENT)
    return stream


def fits(seen, chances):
    """Whether numbers of events, shape (n,), may come from these chances; rare ones are taken together."""
    seen, expected = np.asarray(seen, dtype=float), np.asarray(chances) * np.sum(seen)
    assert seen[expected == 0].sum() == 0, "something impossible has happened"
    order = np.argsort(expected)
    seen, expected = seen[order], expected[order]
    rare = max(1, int(np.searchsorted(np.cumsum(expected), 20)) + 1)
    seen = np.append(seen[:rare].sum(), seen[rare:])
    expected = np.append(expected[:rare].sum(), expected[rare:])
    if len(seen) == 1:
        return True
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > UNLIKELY


@pytest.mark.parametrize("number", [1, 2, 10, 100, 256, 257, 700])
@pytest.mark.parametrize("chance", [0.002, 0.1, 1 / 3, 0.5, 0.9, 0.999])
def test_binomial_numbers(number, chance):
    stream = stream_for(number)
    drawn = np.bincount([particles.binomial(number, chance, stream) for _ in range(5000)], minlength=number + 1)
    assert len(drawn) == number + 1
    assert fits(drawn, stats.binom.pmf(np.arange(number + 1), number, chance))


@pytest.mark.parametrize("number", [0, 1, 100, 10**4])
def test_what_is_certain_needs_no_luck(number):
    stream = stream_for(0)
    assert particles.binomial(number, 1.0, stream) == number
    assert particles.binomial(number, 1.0 + 1e-12, stream) == number
    assert particles.binomial(number, 0.0, stream) == 0
    assert particles.binomial(0, 0.5, stream) == 0


def test_numbers_below_a_bound_are_equally_likely():
    stream = stream_for(1)
    assert fits(np.bincount([any_of(7, stream) for _ in range(7000)], minlength=7), np.full(7, 1 / 7))


def held(room, which, n_states):
    """A belief as numbers of particles, shape (S + 1,)."""
    dense = np.zeros(n_states + 1, np.int64)
    size = room.sizes[which]
    assert len(set(room.states[which, :size])) == size, "a state is in the belief twice"
    assert (room.times[which, :size] > 0).all()
    dense[room.states[which, :size]] = room.times[which, :size]
    assert dense.sum() == room.totals[which]
    assert (room.position == -1).all()
    return dense


def put(room, which, numbers):
    """Make a belief with these numbers of particles."""
    states = np.flatnonzero(numbers)
    room.sizes[which], room.totals[which] = len(states), np.sum(numbers)
    room.states[which, : len(states)] = states
    room.times[which, : len(states)] = np.asarray(numbers)[states]


def learned(n_states, seen):
    """Counts with one action, from lists of successors by state."""
    counts = make_counts(n_states, 1, 50)
    for state, successors in seen.items():
        for successor in successors:
            count(counts, state, successor, 0.0)
    return counts


def chances_of(n_states, successors, prior_until):
    alpha = np.bincount(np.array(successors, dtype=int), minlength=n_states + 1).astype(float)
    if len(successors) <= prior_until:
        alpha[:n_states] += 1 / n_states
    return alpha / alpha.sum()


@pytest.mark.parametrize("prior_until", [0, 4, 100])
@pytest.mark.parametrize("successors", [[0, 1, 1, 2], [2], [0, 1, 2, 3, 3, 3, 3, 3, 3], [3, 3]])
def test_particles_of_one_state_are_multinomially_distributed(successors, prior_until):
    """Every outcome of five particles, with its exact chance; state 3 is the end."""
    counts, room, stream = learned(3, {1: successors}), particles.make_particles(3, 5), stream_for(2)
    chances = chances_of(3, successors, prior_until)
    outcomes = [o for o in itertools.product(range(6), repeat=4) if sum(o) == 5]
    place = {outcome: i for i, outcome in enumerate(outcomes)}
    seen = np.zeros(len(outcomes))
    for _ in range(8000):
        particles.know(room, 0, 1)
        particles.predict(room, 0, counts, 1, 0, prior_until, stream)
        seen[place[tuple(held(room, 1, 3).tolist())]] += 1
    assert fits(seen, stats.multinomial.pmf(outcomes, 5, chances))


def test_particles_of_several_states_move_on_their_own():
    """The number that arrive in a state is the sum of binomial numbers; those at the end stay there."""
    seen = {0: [0, 1, 1, 4], 1: [2] * 9, 2: [], 3: [1, 1, 1, 0, 0, 2, 2, 2, 4, 4]}
    counts, room, stream = learned(4, seen), particles.make_particles(4, 100), stream_for(5)
    start, until, times = np.array([20, 30, 10, 30, 10]), 7, 4000
    arrived = np.zeros((times, 5), np.int64)
    for i in range(times):
        put(room, 1, start)
        particles.predict(room, 1, counts, 1, 0, until, stream)
        arrived[i] = held(room, 0, 4)
    assert (arrived.sum(axis=1) == 100).all()
    for state in range(5):
        exact = np.ones(1)
        for source in range(4):
            chance = chances_of(4, seen[source], until)[state]
            exact = np.convolve(exact, stats.binom.pmf(np.arange(start[source] + 1), start[source], chance))
        if state == 4:
            exact = np.append(np.zeros(10), exact)
        numbers = np.bincount(arrived[:, state], minlength=len(exact))
        assert fits(numbers[: len(exact)], exact), f"state {state}"
        assert numbers[len(exact) :].sum() == 0


def test_a_belief_drawn_from_a_distribution():
    room, stream, states = particles.make_particles(9, 4), stream_for(7), np.array([1, 4, 6])
    chances = np.array([0.2, 0.7, 0.1])
    outcomes = [o for o in itertools.product(range(5), repeat=3) if sum(o) == 4]
    seen = np.zeros(len(outcomes))
    for _ in range(8000):
        particles.draw(room, 0, states, chances, stream)
        seen[outcomes.index(tuple(held(room, 0, 9)[states].tolist()))] += 1
    assert fits(seen, stats.multinomial.pmf(outcomes, 4, chances))


@pytest.mark.parametrize("chances", [[0.5, 0.5, 1e-12, 1e-12], [0.5, 0.5 + 1e-10, 1e-12, 1e-12], [1.0, 1e-17, 1e-17]])
def test_chances_that_sum_to_one_only_roughly(chances):
    room, stream = particles.make_particles(9, 100), stream_for(7)
    particles.draw(room, 0, np.arange(len(chances)), np.array(chances), stream)
    assert held(room, 0, 9)[:2].sum() == 100


def test_nothing_is_known_of_a_distribution_without_states():
    room = particles.make_particles(3, 100)
    particles.know(room, 0, 2)
    particles.draw(room, 0, np.zeros(0, np.int64), np.zeros(0), stream_for(0))
    assert room.sizes[0] == 0


beliefs = st.lists(st.integers(0, 12), min_size=5, max_size=5).filter(any)


@given(beliefs, st.integers(0, 60))
def test_the_end_is_excluded(numbers, more):
    """What remains keeps its proportions, doubled while there is room."""
    room = particles.make_particles(4, sum(numbers) + more)
    put(room, 1, numbers)
    particles.exclude_end(room, 1)
    after, running = held(room, 1, 4), np.array([*numbers[:4], 0])
    assert after[4] == 0
    if not running.any():
        assert room.sizes[1] == 0
        return
    factor = after.sum() // running.sum()
    assert (after == factor * running).all()
    assert factor & (factor - 1) == 0, "a power of two"
    most = room.states.shape[1]
    assert after.sum() <= most < 2 * after.sum()


@given(beliefs, st.randoms(use_true_random=False))
def test_how_many_particles_moved(numbers, luck):
    """Half of the absolute differences, however the states are ordered."""
    other = list(numbers)
    luck.shuffle(other)
    room = particles.make_particles(4, sum(numbers))
    put(room, 0, numbers)
    put(room, 1, other)
    difference = np.abs(np.subtract(numbers, other)).sum()
    assert particles.moved(room) == difference // 2
    held(room, 0, 4)
    order = list(range(room.sizes[1]))
    luck.shuffle(order)
    room.states[1, : len(order)], room.times[1, : len(order)] = room.states[1, order], room.times[1, order]
    assert particles.moved(room) == difference // 2


@given(
    beliefs,
    st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=4, max_size=4),
    st.sampled_from([0, 3, 2**62]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=100)
def test_no_particle_is_lost_or_goes_where_none_can(numbers, successors, prior_until, seed):
    counts, room = learned(4, dict(enumerate(successors))), particles.make_particles(4, sum(numbers))
    put(room, 0, numbers)
    particles.predict(room, 0, counts, 1, 0, prior_until, stream_for(seed))
    after = held(room, 1, 4)
    assert after.sum() == sum(numbers)
    possible = np.zeros(5, bool)
    for state in np.flatnonzero(numbers[:4]):
        possible |= chances_of(4, successors[state], prior_until) > 0
    possible[4] |= numbers[4] > 0
    assert not after[~possible].any()
