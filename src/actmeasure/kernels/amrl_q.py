"""AMRL-Q: Q-learning over pairs of control action and look, believing in the most likely successor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.learned_model import Counts, any_of, count, is_full, make_counts
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream

#: What is remembered from step to step: the state it believes to be in, and the last decision.
BELIEVED, ACTION = 0, 1
#: Where a run is: the episode in the record, the state of the world, and whether the episode is still running.
EPISODE, STATE, RUNNING = 0, 1, 2
NOTHING = -1


class Rules(NamedTuple):
    """The settings of the learner, as plain numbers."""

    discount: float
    learning_rate: float
    exploration: float
    exploring_episodes: int


class Mind(NamedTuple):
    """Everything the learner knows.

    The state n_states stands for the end of the episode. It is a state like others for those who believe to be there by mistake.
    """

    counts: Counts  # of S + 1 states
    likeliest: Any  # int64 ((S + 1) * A,): the entry of the successor seen most often, 0 if none was
    values: Any  # float64 ((S + 1) * 2 A,): Q without a look, then with one, for each action
    costs: Any  # float64 (1,) or (S * A,): of a measurement
    memory: Any  # int64 (2,)


def make_mind(n_states: int, n_actions: int, costs: Any, bias: float, room: int) -> Mind:
    """Before the first episode: looking seems a little better than not looking."""
    values = np.zeros((n_states + 1, n_actions, 2))
    values[:, :, 1] = bias
    counts = make_counts(n_states + 1, n_actions, room)
    return Mind(counts, np.zeros((n_states + 1) * n_actions, np.int64), values.ravel(), costs, np.zeros(2, np.int64))


@lean
def begin(mind: Mind, observation: int, likely: int, n_states: int, stream: Any) -> None:
    """An episode begins in the state shown, or in the most likely one, or if nothing is known of it, anywhere."""
    if observation != NOTHING:
        mind.memory[BELIEVED] = observation
    elif likely != NOTHING:
        mind.memory[BELIEVED] = likely
    else:
        mind.memory[BELIEVED] = any_of(n_states, stream)


@lean
def decide(mind: Mind, n_actions: int, exploration: float, stream: Any) -> tuple[int, bool]:
    """The best pair of action and look in the believed state, ties broken at random; or, exploring, any pair."""
    if exploration > 0.0 and random(stream) < exploration:
        pair = any_of(2 * n_actions, stream)
    else:
        pair = _best(mind, n_actions, stream)
    mind.memory[ACTION] = pair // 2
    return pair // 2, pair % 2 == 1


@lean
def _best(mind: Mind, n_actions: int, stream: Any) -> int:
    first = mind.memory[BELIEVED] * 2 * n_actions
    best, ties = 0, 1
    for pair in range(1, 2 * n_actions):
        difference = mind.values[first + pair] - mind.values[first + best]
        if difference > 0.0:
            best, ties = pair, 1
        elif difference == 0.0:
            ties += 1
    if ties == 1:
        return best
    largest, skip = mind.values[first + best], any_of(ties, stream)
    for pair in range(best, 2 * n_actions):
        if mind.values[first + pair] == largest:
            if skip == 0:
                return pair
            skip -= 1
    return best


@lean
def observe(
    mind: Mind, rules: Rules, n_actions: int, reward: float, observation: int, terminated: bool, stream: Any
) -> None:
    """Learn from a step, as if the believed state were the true one and the likeliest successor the next."""
    state, action = mind.memory[BELIEVED], mind.memory[ACTION]
    pair, end = state * n_actions + action, mind.likeliest.shape[0] // n_actions - 1
    successor = end if terminated else observation
    if observation != NOTHING:
        entry = count(mind.counts, pair, successor, reward)
        if mind.counts.times[entry] > mind.counts.times[mind.likeliest[pair]]:
            mind.likeliest[pair] = entry
    elif not terminated:
        successor = _likeliest(mind, pair, end, stream)
    future = 0.0 if terminated else _largest(mind, successor, n_actions)
    cost = mind.costs[pair if mind.costs.shape[0] > 1 else 0]
    for look in range(2):
        target = reward - look * cost + rules.discount * future
        mind.values[2 * pair + look] += rules.learning_rate * (target - mind.values[2 * pair + look])
    mind.memory[BELIEVED] = successor


@lean
def _likeliest(mind: Mind, pair: int, end: int, stream: Any) -> int:
    """The successor seen most often, as the episode goes on; anywhere if none was ever seen."""
    if mind.likeliest[pair] == 0:
        return any_of(end, stream)
    return mind.counts.successors[mind.likeliest[pair]]  # type: ignore[no-any-return]


@lean
def _largest(mind: Mind, state: int, n_actions: int) -> float:
    first = state * 2 * n_actions
    largest = mind.values[first]
    for pair in range(1, 2 * n_actions):
        largest = max(largest, mind.values[first + pair])
    return largest  # type: ignore[no-any-return]


@lean
def needs_room(mind: Mind) -> bool:
    """Whether the next step could need more room for transitions than there is."""
    return is_full(mind.counts)


@lean
def run(
    world: World,
    mind: Mind,
    rules: Rules,
    likely: int,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    place: Any,
    world_stream: Any,
    agent_stream: Any,
) -> bool:
    """Episodes `first_episode` and on. False if the mind needs more room; call again with it, and the same place (int64 (3,))."""
    n_actions = world.dynamics.n_actions
    n_states = world.dynamics.terminal.shape[0]
    while place[EPISODE] < record.steps.shape[0]:
        episode = place[EPISODE]
        if not place[RUNNING]:
            seed_stream(world_stream, entropy, first_episode + episode, WORLD)
            seed_stream(agent_stream, entropy, first_episode + episode, AGENT)
            place[STATE] = first_state(world, world_stream)
            begin(mind, place[STATE] if world.reveal_start else NOTHING, likely, n_states, agent_stream)
            place[RUNNING] = True
        exploration = rules.exploration if first_episode + episode < rules.exploring_episodes else 0.0
        while place[RUNNING] and record.steps[episode] < max_steps:
            if needs_room(mind):
                return False
            action, measure = decide(mind, n_actions, exploration, agent_stream)
            cost = world.dynamics.costs[place[STATE] * n_actions + action] if measure else 0.0
            place[STATE], reward, ended = move(world, place[STATE], action, world_stream)
            write(record, episode, reward, cost, measure, ended)
            observe(mind, rules, n_actions, reward, place[STATE] if measure else NOTHING, ended, agent_stream)
            place[RUNNING] = not ended
        place[RUNNING] = False
        place[EPISODE] += 1
    return True
