"""Simulation of a model: drawing starts, transitions and outcomes, recording episodes, and episodes of random decisions.

`step` is for models with one exact measurement, whose outcome is the state; `measured_step` for any measurements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.dynamics import Dynamics
from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.outcomes import LAW, NONE_SEEN, Outcomes, draw_outcome
from actmeasure.kernels.streams import AGENT, WORLD, pick, random, seed_stream

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


class MeasuredWorld(NamedTuple):
    """A model as arrays, with any measurements; the costs of `world.dynamics` are not used."""

    world: World
    outcomes: Outcomes


class Record(NamedTuple):
    """The results of episodes, written by compiled loops; all of shape (n_episodes,)."""

    scalarized_return: Any
    reward: Any
    measurements: Any
    steps: Any
    terminated: Any


class Run(NamedTuple):
    """Episodes to simulate, their random numbers, and the state of the one that is going on."""

    record: Record
    entropy: Any
    first_episode: int
    max_steps: int
    position: Any  # int64 (3,), zeros at first: number of the episode in the record, state of the world, whether it is running
    world_stream: Any
    agent_stream: Any


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
def measured_step(
    measured: MeasuredWorld, state: int, action: int, measurement: int, stream: Any
) -> tuple[int, float, float, int, int, bool]:
    """Draw a transition and an outcome.

    Returns the successor, the reward, the price, the measurement that was made (0 where it is not allowed with the action), the
    outcome (-1 for nothing seen) and whether the episode has ended. One random number is drawn for the transition, and a second
    one only for the outcome of a law in a running episode.
    """
    laws = measured.outcomes
    made = measurement if laws.allowed[measurement, action] else 0
    cost = laws.costs[made, state * measured.world.dynamics.n_actions + action]
    successor, reward, ended = move(measured.world, state, action, stream)
    if laws.kinds[made] != LAW:
        outcome = draw_outcome(laws, made, action, successor, 0.0)
    elif ended:
        outcome = NONE_SEEN
    else:
        outcome = draw_outcome(laws, made, action, successor, random(stream))
    return successor, reward, cost, made, outcome, ended


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
def decide_randomly(n_actions: int, n_measurements: int, measure_probability: float, stream: Any) -> tuple[int, int]:
    """Draw an action uniformly, and with the given probability one of the measurements, uniformly; else 0, none."""
    action, uniform = int(random(stream) * n_actions), random(stream)
    if n_measurements == 0 or uniform >= measure_probability:
        return action, 0
    return action, 1 + min(int(uniform / measure_probability * n_measurements), n_measurements - 1)


@no_refcount
def run_randomly(measured: MeasuredWorld, measure_probability: float, run: Run, looks: Any) -> None:
    """Simulate episodes of random decisions; `looks`, int64 (n_episodes, k), counts each measurement."""
    n_actions, n_measurements = measured.world.dynamics.n_actions, measured.outcomes.kinds.shape[0] - 1
    record = run.record
    for episode in range(record.steps.shape[0]):
        seed_stream(run.world_stream, run.entropy, run.first_episode + episode, WORLD)
        seed_stream(run.agent_stream, run.entropy, run.first_episode + episode, AGENT)
        state = first_state(measured.world, run.world_stream)
        ended = False
        while not ended and record.steps[episode] < run.max_steps:
            action, chosen = decide_randomly(n_actions, n_measurements, measure_probability, run.agent_stream)
            state, reward, cost, made, _, ended = measured_step(measured, state, action, chosen, run.world_stream)
            write(record, episode, reward, cost, made > 0, ended)
            if made > 0:
                looks[episode, made - 1] += 1
