"""Simulation of a model: drawing starts and transitions, recording episodes, and episodes of random decisions."""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.dynamics import Dynamics
from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream

#: Observation: nothing was seen.
NOTHING = -1
#: Entries of `position` in a run that can be continued: the episode in the record, the state of the world, and whether the
#: episode is running.
EPISODE, STATE, RUNNING = 0, 1, 2


class World(NamedTuple):
    """A model as arrays: dynamics, start distribution and rewards of single transitions."""

    dynamics: Dynamics
    entry_rewards: Any  # float64 (n_entries,), or empty where rewards do not depend on the successor
    initial_states: Any  # int64 (n_initial,)
    initial_probabilities: Any  # float64 (n_initial,)
    initial_offsets: Any  # int64 (2,): 0 and n_initial, the start as a table of one row
    reveal_start: bool


class Record(NamedTuple):
    """The results of episodes, written by compiled loops; all of shape (n_episodes,)."""

    scalarized_return: Any
    reward: Any
    measurements: Any
    steps: Any
    terminated: Any


@no_refcount
def pick(offsets: Any, probabilities: Any, row: int, uniform: float) -> int:
    """Return the entry of a row that a uniform number from [0, 1) selects by inversion; the last if rounding leaves a rest."""
    entry = offsets[row]
    last = offsets[row + 1] - 1
    while entry < last:
        uniform -= probabilities[entry]
        if uniform < 0:
            break
        entry += 1
    return entry  # type: ignore[no-any-return]


@no_refcount
def first_state(world: World, stream: Any) -> int:
    """Draw the first state of an episode; a single initial state takes no random number."""
    if world.initial_states.shape[0] == 1:
        return world.initial_states[0]  # type: ignore[no-any-return]
    return world.initial_states[pick(world.initial_offsets, world.initial_probabilities, 0, random(stream))]  # type: ignore[no-any-return]


@no_refcount
def move(world: World, state: int, action: int, stream: Any) -> tuple[int, float, bool]:
    """Draw a transition; return the successor, the reward, and whether the episode has ended."""
    model = world.dynamics
    row = state * model.n_actions + action
    entry = pick(model.offsets, model.probabilities, row, random(stream))
    successor = model.successors[entry]
    reward = world.entry_rewards[entry] if world.entry_rewards.shape[0] > 0 else model.rewards[row]
    return successor, reward, model.terminal[successor]


@no_refcount
def write(record: Record, episode: int, reward: float, cost: float, measure: bool, ended: bool) -> None:
    """Add a step to the record of an episode."""
    record.scalarized_return[episode] += reward - cost
    record.reward[episode] += reward
    record.measurements[episode] += measure
    record.steps[episode] += 1
    record.terminated[episode] = ended


@no_refcount
def begin_episode(world: World, entropy: Any, episode: int, world_stream: Any, agent_stream: Any) -> int:
    """Seed the random numbers of the world and of the agent for an episode, and draw its first state."""
    seed_stream(world_stream, entropy, episode, WORLD)
    seed_stream(agent_stream, entropy, episode, AGENT)
    return first_state(world, world_stream)


@no_refcount
def step(
    world: World, record: Record, episode: int, state: int, action: int, measure: bool, stream: Any
) -> tuple[int, float, float, bool]:
    """Draw the transition of a decision and record it; return the successor, reward, price paid, and whether it has ended."""
    cost = world.dynamics.costs[state * world.dynamics.n_actions + action] if measure else 0.0
    successor, reward, ended = move(world, state, action, stream)
    write(record, episode, reward, cost, measure, ended)
    return successor, reward, cost, ended


@no_refcount
def decide_randomly(n_actions: int, measure_probability: float, stream: Any) -> tuple[int, bool]:
    """Draw an action uniformly, and a look with the given probability."""
    return int(random(stream) * n_actions), random(stream) < measure_probability


@no_refcount
def run_randomly(
    world: World,
    measure_probability: float,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    world_stream: Any,
    agent_stream: Any,
) -> None:
    """Simulate the episodes of random decisions from number `first_episode` on that `record` has room for."""
    n_actions = world.dynamics.n_actions
    for episode in range(record.steps.shape[0]):
        state = begin_episode(world, entropy, first_episode + episode, world_stream, agent_stream)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            action, measure = decide_randomly(n_actions, measure_probability, agent_stream)
            state, _, _, ended = step(world, record, episode, state, action, measure, world_stream)
