"""Beliefs as numbers of particles in each state.

The cost of moving them grows with the number of different states, not of particles: those in one state are split between its
successors with binomially distributed numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import Counts
from actmeasure.kernels.streams import any_of, random

#: Largest number of trials of a binomial draw; more are drawn in parts, so that the probability of 0 does not underflow.
AT_ONCE = 256


class Particles(NamedTuple):
    """Two beliefs, the current and the predicted one; the state S stands for the end of the episode."""

    states: Any  # int64 (2, capacity): the states that have particles
    times: Any  # int64 (2, capacity): number of particles in each
    sizes: Any  # int64 (2,): number of states
    totals: Any  # int64 (2,): number of particles
    position: Any  # int64 (S + 1,): index of a state in the belief that is being made, -1 if it is not in it


def make_particles(n_states: int, capacity: int) -> Particles:
    """Return empty beliefs of at most `capacity` particles."""
    return Particles(
        np.zeros((2, capacity), np.int64),
        np.zeros((2, capacity), np.int64),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.full(n_states + 1, -1, np.int64),
    )


@no_refcount
def know(particles: Particles, which: int, state: int) -> None:
    """Put all particles into one state."""
    capacity = particles.states.shape[1]
    particles.states[which, 0] = state
    particles.times[which, 0] = capacity
    particles.sizes[which] = 1
    particles.totals[which] = capacity


@no_refcount
def draw(particles: Particles, which: int, states: Any, probabilities: Any, stream: Any) -> None:
    """Draw a belief from a distribution: states int64 (n,), probabilities float64 (n,); it is empty if n is 0."""
    left, mass = particles.states.shape[1], 1.0
    particles.sizes[which] = 0
    particles.totals[which] = left
    for i in range(states.shape[0]):
        rest = i == states.shape[0] - 1 or probabilities[i] >= mass  # rounding may leave nothing of the mass
        share = left if rest else binomial(left, probabilities[i] / mass, stream)
        _add(particles, which, states[i], share)
        left -= share
        mass -= probabilities[i]
    _forget_positions(particles, which)


@no_refcount
def predict(
    particles: Particles, now: int, counts: Counts, n_actions: int, action: int, prior_until: int, stream: Any
) -> None:
    """Move the particles of belief `now` one step, by the learned dynamics, into the other belief.

    Pairs measured at most `prior_until` times have a uniform prior over all states, with the weight of one transition.
    """
    n_states = particles.position.shape[0] - 1
    then = 1 - now
    particles.sizes[then] = 0
    particles.totals[then] = particles.totals[now]
    for i in range(particles.sizes[now]):
        state, left = particles.states[now, i], particles.times[now, i]
        if state == n_states:
            _add(particles, then, state, left)
            continue
        pair = state * n_actions + action
        mass = counts.measured[pair]
        if mass <= prior_until:
            by_prior = binomial(left, 1.0 / (mass + 1.0), stream)
            for _ in range(by_prior):
                _add(particles, then, any_of(n_states, stream), 1)
            left -= by_prior
        entry = counts.first[pair]
        while left > 0:
            times = counts.times[entry]
            share = left if times == mass else binomial(left, times / mass, stream)
            _add(particles, then, counts.successors[entry], share)
            left -= share
            mass -= times
            entry = counts.following[entry]
    _forget_positions(particles, then)


@no_refcount
def moved(particles: Particles) -> int:
    """Return how many particles are in other states in one belief than in the other."""
    for i in range(particles.sizes[0]):
        particles.position[particles.states[0, i]] = i
    stayed = 0
    for i in range(particles.sizes[1]):
        index = particles.position[particles.states[1, i]]
        if index >= 0:
            stayed += min(particles.times[0, index], particles.times[1, i])
    _forget_positions(particles, 0)
    return particles.totals[0] - stayed  # type: ignore[no-any-return]


@no_refcount
def exclude_end(particles: Particles, which: int) -> None:
    """Remove the particles at the end of the episode; those that remain are doubled while the capacity allows it."""
    end, last = particles.position.shape[0] - 1, particles.sizes[which] - 1
    for i in range(last + 1):
        if particles.states[which, i] == end:
            particles.totals[which] -= particles.times[which, i]
            particles.states[which, i] = particles.states[which, last]
            particles.times[which, i] = particles.times[which, last]
            particles.sizes[which] = last
            break
    while 0 < 2 * particles.totals[which] <= particles.states.shape[1]:
        particles.totals[which] *= 2
        for i in range(particles.sizes[which]):
            particles.times[which, i] *= 2


@no_refcount
def _add(particles: Particles, which: int, state: int, number: int) -> None:
    """Add particles in a state to the belief that is being made."""
    if number == 0:
        return
    index = particles.position[state]
    if index < 0:
        index = particles.sizes[which]
        particles.sizes[which] += 1
        particles.position[state] = index
        particles.states[which, index] = state
        particles.times[which, index] = 0
    particles.times[which, index] += number


@no_refcount
def _forget_positions(particles: Particles, which: int) -> None:
    """Reset `position` after a belief was made."""
    for i in range(particles.sizes[which]):
        particles.position[particles.states[which, i]] = -1


@no_refcount
def binomial(number: int, probability: float, stream: Any) -> int:
    """Draw from the binomial distribution: the number of successes in `number` trials, of the given probability each."""
    if probability >= 1.0:
        return number
    rare = min(probability, 1.0 - probability)
    happen = 0
    for begin in range(0, number, AT_ONCE):
        happen += _few(min(AT_ONCE, number - begin), rare, stream)
    return happen if rare == probability else number - happen


@no_refcount
def _few(number: int, probability: float, stream: Any) -> int:
    """Draw as `binomial` does, by inverting the distribution function; for a probability of at most 1/2."""
    mass = _power(1.0 - probability, number)
    odds = probability / (1.0 - probability)
    left, happen = random(stream), 0
    while left >= mass and happen < number:
        left -= mass
        happen += 1
        mass *= odds * (number - happen + 1) / happen
    return happen


@no_refcount
def _power(base: float, exponent: int) -> float:
    """Return a power by repeated squaring, which rounds the same with and without Numba."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
