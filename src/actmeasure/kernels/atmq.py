"""Act-then-measure Q-learning (Krale et al., 2023): control, measuring, and the updates of a step.

The belief is a set of particles, moved by the measured transitions while the agent does not look. Every pair (state, action)
has a value Q and an optimistic value: Q plus an exploration bonus that falls with the number of measurements. Control maximises
the optimistic value in the belief.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import Counts, count, is_full, make_counts
from actmeasure.kernels.particles import Particles, draw, exclude_end, know, make_particles, moved, predict
from actmeasure.kernels.simulate import EPISODE, NOTHING, STATE, Run, World, run_step, start_episode
from actmeasure.kernels.streams import any_of, random

#: Entries of `memory`: which of the two particle sets is the current belief, the last action, the number of states in `ready`.
NOW, ACTION, READY = 0, 1, 2
#: Entries of `sums`: the sum of `best` over all states, and the largest reward so far.
BEST_SUM, LARGEST_REWARD = 0, 1
#: Relative difference of values below which they are ties.
TIE = 1e-12


class AtmqParameters(NamedTuple):
    """The settings of `AtmqSettings` that the kernels need, as plain numbers."""

    discount: float
    learning_rate: float
    optimism: int
    exploratory_measurements: int
    prior_until: int
    most_states: int
    random_measuring: float
    settled_below: float
    knows_it_runs: bool
    own_rewards: bool
    optimistic_measuring: bool
    observed_target: bool
    cost_in_target: bool
    prior_in_rewards: bool
    training_updates: int
    training_greedy: float
    training_needs: int


class AtmqTables(NamedTuple):
    """Counts, belief and value tables of the learner; the state S, of value 0, stands for the end of the episode."""

    counts: Counts
    particles: Particles
    values: Any  # float64 ((S + 1) * A,): Q
    optimistic: Any  # float64 ((S + 1) * A,): Q and the exploration bonus
    best: Any  # float64 (S + 1,): largest optimistic value of each state
    greedy: Any  # int64 (S + 1,): the action of that value
    ready: Any  # int64 (S,): states with a pair that was measured often enough for training, the first memory[READY] entries
    costs: Any  # float64 (1,) or (S * A,): cost of a look
    sums: Any  # float64 (2,)
    memory: Any  # int64 (3,)
    scores: Any  # float64 (A,): scratch space for the values of actions in a belief


def make_tables(
    n_states: int, n_actions: int, costs: Any, largest_reward: float, particles: int, capacity: int
) -> AtmqTables:
    """Return the tables before the first episode: every value is 0, and every optimistic value the largest reward."""
    best, optimistic = np.full(n_states + 1, largest_reward), np.full((n_states + 1) * n_actions, largest_reward)
    best[-1], optimistic[-n_actions:] = 0.0, 0.0
    return AtmqTables(
        make_counts(n_states, n_actions, capacity), make_particles(n_states, particles),
        np.zeros((n_states + 1) * n_actions), optimistic, best, np.zeros(n_states + 1, np.int64), np.zeros(n_states, np.int64),
        costs, np.array([n_states * largest_reward, largest_reward]), np.zeros(3, np.int64), np.zeros(n_actions),
    )  # fmt: skip


@no_refcount
def play(
    world: World, tables: AtmqTables, parameters: AtmqParameters, start_states: Any, start_probabilities: Any, run: Run
) -> bool:
    """Play the episodes of a run; return False if the counts need more capacity: then call it again with larger counts."""
    while run.position[EPISODE] < run.record.steps.shape[0]:
        if start_episode(world, run):
            shown = run.position[STATE] if world.reveal_start else NOTHING
            begin(tables, shown, start_states, start_probabilities, run.agent_stream)
        if is_full(tables.counts):
            return False
        action, measure = decide(tables, parameters, run.agent_stream)
        reward, cost, observation, ended = run_step(world, run, action, measure)
        observe(tables, parameters, reward, cost, observation, ended, run.agent_stream)
    return True


@no_refcount
def begin(tables: AtmqTables, observation: int, states: Any, probabilities: Any, stream: Any) -> None:
    """Begin an episode: in the state that is shown, or else in a distribution over n states, which is unknown if n is 0."""
    now = tables.memory[NOW]
    if observation != NOTHING:
        know(tables.particles, now, observation)
    else:
        draw(tables.particles, now, states, probabilities, stream)


@no_refcount
def decide(tables: AtmqTables, parameters: AtmqParameters, stream: Any) -> tuple[int, bool]:
    """Return the action of the largest optimistic value, and whether to look after it."""
    now = tables.memory[NOW]
    if tables.particles.sizes[now] == 0:  # the belief is empty: the start is unknown, and nothing was seen yet
        action, measure = any_of(tables.scores.shape[0], stream), True
    else:
        action = _control(tables, stream)
        measure = _decide_look(tables, parameters, action, stream)
    tables.memory[ACTION] = action
    return action, measure


@no_refcount
def _control(tables: AtmqTables, stream: Any) -> int:
    """Return the action with the largest optimistic value in the belief, ties broken at random."""
    _score_actions(tables, tables.memory[NOW], True)
    scores = tables.scores
    largest = scores[0]
    for action in range(1, scores.shape[0]):
        largest = max(largest, scores[action])
    enough = largest - TIE * (1.0 + abs(largest))
    ties = 0
    for action in range(scores.shape[0]):
        ties += scores[action] >= enough
    skip = any_of(ties, stream) if ties > 1 else 0
    for action in range(scores.shape[0]):
        if scores[action] >= enough:
            if skip == 0:
                return action
            skip -= 1
    return 0


@no_refcount
def _score_actions(tables: AtmqTables, which: int, optimistic: bool) -> None:
    """Write the value, or optimistic value, of every action in a belief into `scores`."""
    n_actions = tables.scores.shape[0]
    for action in range(n_actions):
        tables.scores[action] = 0.0
    for i in range(tables.particles.sizes[which]):
        state, weight = (
            tables.particles.states[which, i],
            tables.particles.times[which, i] / tables.particles.totals[which],
        )
        if state == tables.ready.shape[0]:
            continue
        for action in range(n_actions):
            pair = state * n_actions + action
            tables.scores[action] += weight * (tables.optimistic[pair] if optimistic else tables.values[pair])


@no_refcount
def _decide_look(tables: AtmqTables, parameters: AtmqParameters, action: int, stream: Any) -> bool:
    """Return whether to look: at an under-sampled pair, at random, in a spread or settled belief, or if it is worth its cost.

    If not, the next belief has been predicted.
    """
    now, then = tables.memory[NOW], 1 - tables.memory[NOW]
    particles, n_actions = tables.particles, tables.scores.shape[0]
    if particles.sizes[now] == 1 and particles.states[now, 0] < tables.ready.shape[0]:
        pair = particles.states[now, 0] * n_actions + action
        if tables.counts.measured[pair] < parameters.exploratory_measurements:
            return True
    if parameters.random_measuring > 0.0 and random(stream) < parameters.random_measuring:
        return True
    predict(particles, now, tables.counts, n_actions, action, parameters.prior_until, stream)
    if particles.sizes[then] > parameters.most_states:
        return True
    if (
        parameters.settled_below > 0.0
        and particles.sizes[then] > 1
        and moved(particles) < parameters.settled_below * particles.totals[now]
    ):
        return True
    return _look_is_worth_its_cost(tables, parameters, action)


@no_refcount
def _look_is_worth_its_cost(tables: AtmqTables, parameters: AtmqParameters, action: int) -> bool:
    """Return whether the value of knowing the state after the action exceeds the cost of the look."""
    now, then = tables.memory[NOW], 1 - tables.memory[NOW]
    worth, cost = 0.0, _cost(tables, now, action)
    _score_actions(tables, then, parameters.optimistic_measuring)
    blind, n_actions = 0, tables.scores.shape[0]
    for other in range(1, n_actions):
        if tables.scores[other] > tables.scores[blind]:
            blind = other
    for i in range(tables.particles.sizes[then]):
        state, weight = (
            tables.particles.states[then, i],
            tables.particles.times[then, i] / tables.particles.totals[then],
        )
        if state < tables.ready.shape[0]:
            gain = _best(tables, parameters, state) - tables.values[state * n_actions + blind]
            worth += weight * max(0.0, gain)
    if parameters.optimistic_measuring:
        return worth > cost
    return parameters.discount * worth >= cost


@no_refcount
def _best(tables: AtmqTables, parameters: AtmqParameters, state: int) -> float:
    """Return the value of the best action in a known state, as the rule for looking takes it."""
    if parameters.optimistic_measuring:
        return tables.best[state]  # type: ignore[no-any-return]
    n_actions = tables.scores.shape[0]
    largest = tables.values[state * n_actions]
    for action in range(1, n_actions):
        largest = max(largest, tables.values[state * n_actions + action])
    return largest  # type: ignore[no-any-return]


@no_refcount
def _cost(tables: AtmqTables, which: int, action: int) -> float:
    """Return the expected cost of a look in a belief."""
    if tables.costs.shape[0] == 1:
        return tables.costs[0]  # type: ignore[no-any-return]
    cost = 0.0
    for i in range(tables.particles.sizes[which]):
        state = tables.particles.states[which, i]
        if state < tables.ready.shape[0]:
            pair = state * tables.scores.shape[0] + action
            cost += tables.particles.times[which, i] / tables.particles.totals[which] * tables.costs[pair]
    return cost


@no_refcount
def observe(
    tables: AtmqTables,
    parameters: AtmqParameters,
    reward: float,
    cost: float,
    observation: int,
    terminated: bool,
    stream: Any,
) -> None:
    """Learn from a step: count the transition if both its states are known, update values in the belief, move it, train."""
    now, action, end = tables.memory[NOW], tables.memory[ACTION], tables.ready.shape[0]
    if reward > tables.sums[LARGEST_REWARD]:
        _raise_largest_reward(tables, parameters, reward)
    measured = observation != NOTHING
    successor = end if terminated else observation
    if measured and tables.particles.sizes[now] == 1 and tables.particles.states[now, 0] < end:
        _learn_transition(tables, parameters, tables.particles.states[now, 0], action, successor, reward)
    _learn_values(
        tables, parameters, reward - cost if parameters.cost_in_target else reward, measured or terminated, successor
    )
    if not terminated:
        _update_belief(tables, parameters, observation)
    train(tables, parameters, stream)


@no_refcount
def _learn_values(tables: AtmqTables, parameters: AtmqParameters, reward: float, seen: bool, successor: int) -> None:
    """Update Q of the last action in every state of the belief, with a learning rate in proportion to the state's probability."""
    now, action, n_actions = tables.memory[NOW], tables.memory[ACTION], tables.scores.shape[0]
    by_model = parameters.own_rewards and tables.particles.sizes[now] > 1
    for i in range(tables.particles.sizes[now]):
        state = tables.particles.states[now, i]
        if state == tables.ready.shape[0]:
            continue
        pair = state * n_actions + action
        rate = parameters.learning_rate * tables.particles.times[now, i] / tables.particles.totals[now]
        if by_model:
            if tables.counts.measured[pair] > 0:
                _update(tables, parameters, state, pair, modelled_target(tables, parameters, pair), rate)
        else:
            direct = parameters.observed_target and seen
            future = tables.best[successor] if direct else expected_best(tables, parameters, pair)
            _update(tables, parameters, state, pair, reward + parameters.discount * future, rate)


@no_refcount
def modelled_target(tables: AtmqTables, parameters: AtmqParameters, pair: int) -> float:
    """Return the target of a pair by the learned rewards and dynamics."""
    measured = tables.counts.measured[pair]
    reward = tables.counts.rewards[pair]
    if parameters.prior_in_rewards:
        reward *= measured / (measured + 1.0)
    return reward + parameters.discount * expected_best(tables, parameters, pair)  # type: ignore[no-any-return]


@no_refcount
def _update_belief(tables: AtmqTables, parameters: AtmqParameters, observation: int) -> None:
    """Make the state that was seen, or else the predicted belief, the current belief."""
    now, then = tables.memory[NOW], 1 - tables.memory[NOW]
    if observation != NOTHING:
        know(tables.particles, now, observation)
        return
    tables.memory[NOW] = then
    if parameters.knows_it_runs:
        exclude_end(tables.particles, then)


@no_refcount
def _learn_transition(
    tables: AtmqTables, parameters: AtmqParameters, state: int, action: int, successor: int, reward: float
) -> None:
    """Count a measured transition; the state becomes ready for training with the last measurement that needs."""
    pair = state * tables.scores.shape[0] + action
    if tables.counts.measured[pair] + 1 == parameters.training_needs and not _is_ready(tables, parameters, state):
        tables.ready[tables.memory[READY]] = state
        tables.memory[READY] += 1
    count(tables.counts, pair, successor, reward)
    _update_optimistic(tables, parameters, state, pair)


@no_refcount
def _is_ready(tables: AtmqTables, parameters: AtmqParameters, state: int) -> bool:
    """Return whether some action of the state was measured often enough for training."""
    first, often = state * tables.scores.shape[0], 0
    for action in range(tables.scores.shape[0]):
        often = max(often, tables.counts.measured[first + action])
    return often >= parameters.training_needs


@no_refcount
def expected_best(tables: AtmqTables, parameters: AtmqParameters, pair: int) -> float:
    """Return the expected optimistic value of the successor of a pair, by the counts and, if they are few, a uniform prior."""
    counts = tables.counts
    total, entry = 0.0, counts.first[pair]
    while entry != 0:
        total += counts.times[entry] * tables.best[counts.successors[entry]]
        entry = counts.following[entry]
    measured = counts.measured[pair]
    if measured > parameters.prior_until:
        return total / measured  # type: ignore[no-any-return]
    return (total + tables.sums[BEST_SUM] / tables.ready.shape[0]) / (measured + 1.0)  # type: ignore[no-any-return]


@no_refcount
def _update(tables: AtmqTables, parameters: AtmqParameters, state: int, pair: int, target: float, rate: float) -> None:
    """Move Q of a pair towards a target."""
    tables.values[pair] += rate * (target - tables.values[pair])
    _update_optimistic(tables, parameters, state, pair)


@no_refcount
def _update_optimistic(tables: AtmqTables, parameters: AtmqParameters, state: int, pair: int) -> None:
    """Update the optimistic value of a pair, and the best action of its state.

    A pair measured often enough gets no bonus. By the paper's formula one whose value is above the largest reward of a step, as
    it is where rewards add up, would get one that grows with every measurement, and values would grow without end.
    """
    value, missing = tables.values[pair], parameters.optimism - 1.0 - tables.counts.measured[pair]
    bonus = missing / parameters.optimism * (tables.sums[LARGEST_REWARD] - value)
    tables.optimistic[pair] = value + bonus if missing > 0.0 and bonus > 0.0 else value
    _update_best(tables, state)


@no_refcount
def _update_best(tables: AtmqTables, state: int) -> None:
    """Update the best action of a state, in a loop without branches that depend on values, which is faster."""
    n_actions, old = tables.scores.shape[0], tables.best[state]
    first = state * n_actions
    best, greedy = tables.optimistic[first], 0
    for action in range(1, n_actions):
        value = tables.optimistic[first + action]
        greedy = action if value > best else greedy
        best = max(best, value)
    tables.greedy[state] = greedy
    tables.best[state] = best
    tables.sums[BEST_SUM] += best - old


@no_refcount
def _raise_largest_reward(tables: AtmqTables, parameters: AtmqParameters, reward: float) -> None:
    """Set a larger largest reward, and update all optimistic values."""
    tables.sums[LARGEST_REWARD] = reward
    for state in range(tables.ready.shape[0]):
        for action in range(tables.scores.shape[0]):
            _update_optimistic(tables, parameters, state, state * tables.scores.shape[0] + action)


@no_refcount
def train(tables: AtmqTables, parameters: AtmqParameters, stream: Any) -> None:
    """Update the values of random pairs by the learned dynamics: of the greedy action with probability `training_greedy`.

    One random number gives both the state (by its integer part) and the action (by its fraction).
    """
    n_actions, everywhere = tables.scores.shape[0], parameters.training_needs == 0
    states = tables.ready.shape[0] if everywhere else tables.memory[READY]
    if states == 0:
        return
    for _ in range(parameters.training_updates):
        number = random(stream) * states
        index = int(number)
        state = index if everywhere else tables.ready[index]
        action = _trained_action(tables.greedy[state], n_actions, number - index, parameters.training_greedy)
        pair = state * n_actions + action
        if tables.counts.measured[pair] >= parameters.training_needs:
            _update(
                tables, parameters, state, pair, modelled_target(tables, parameters, pair), parameters.learning_rate
            )


@no_refcount
def _trained_action(greedy: int, n_actions: int, uniform: float, probability: float) -> int:
    """Return the greedy action with the given probability, otherwise any other, for a uniform random number."""
    if uniform < probability or n_actions == 1:
        return greedy
    other = int((uniform - probability) / (1.0 - probability) * (n_actions - 1))
    other = min(other, n_actions - 2)
    return other + (other >= greedy)
