"""Simulation of a model: drawing starts and transitions, recording episodes, and episodes of random decisions."""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.dynamics import Dynamics
from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream

#: Observation: nothing was seen.
NOTHING = -1
#: Entries of `Run.position`.
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


class Run(NamedTuple):
    """Episodes to simulate, their random numbers, and how far they are."""

    record: Record
    entropy: Any
    first_episode: int
    max_steps: int
    position: Any  # int64 (3,), zeros at first: number of the episode in the record, state of the world, whether it is running
    world_stream: Any
    agent_stream: Any


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
def step(
    world: World, record: Record, episode: int, state: int, action: int, measure: bool, stream: Any
) -> tuple[int, float, float, bool]:
    """Draw the transition of a decision and record it; return the successor, reward, price paid, and whether it has ended."""
    cost = world.dynamics.costs[state * world.dynamics.n_actions + action] if measure else 0.0
    successor, reward, ended = move(world, state, action, stream)
    write(record, episode, reward, cost, measure, ended)
    return successor, reward, cost, ended


@no_refcount
def start_episode(world: World, run: Run) -> bool:
    """Begin the next episode of a run, unless one is going on; return whether one was begun."""
    position = run.position
    if position[RUNNING]:
        return False
    episode = run.first_episode + position[EPISODE]
    seed_stream(run.world_stream, run.entropy, episode, WORLD)
    seed_stream(run.agent_stream, run.entropy, episode, AGENT)
    position[STATE] = first_state(world, run.world_stream)
    position[RUNNING] = True
    return True


@no_refcount
def run_step(world: World, run: Run, action: int, measure: bool) -> tuple[float, float, int, bool]:
    """Take a decision in the episode that is going on; return reward, price paid, observation, and whether it has ended."""
    position, episode = run.position, run.position[EPISODE]
    state, reward, cost, ended = step(world, run.record, episode, position[STATE], action, measure, run.world_stream)
    position[STATE] = state
    if ended or run.record.steps[episode] >= run.max_steps:
        position[RUNNING] = False
        position[EPISODE] += 1
    return reward, cost, state if measure else NOTHING, ended


@no_refcount
def decide_randomly(n_actions: int, measure_probability: float, stream: Any) -> tuple[int, bool]:
    """Draw an action uniformly, and a look with the given probability."""
    return int(random(stream) * n_actions), random(stream) < measure_probability


@no_refcount
def run_randomly(world: World, measure_probability: float, run: Run) -> None:
    """Simulate episodes of random decisions."""
    while run.position[EPISODE] < run.record.steps.shape[0]:
        start_episode(world, run)
        action, measure = decide_randomly(world.dynamics.n_actions, measure_probability, run.agent_stream)
        run_step(world, run, action, measure)
