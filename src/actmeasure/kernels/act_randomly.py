"""Random decisions, and episodes with them."""

from __future__ import annotations

from typing import Any

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.simulate_outcomes import MeasuredWorld, step, write_step
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream


@no_refcount
def decide(n_actions: int, measure_probability: float, stream: Any) -> tuple[int, bool]:
    """Draw an action uniformly, and a look with the given probability."""
    return int(random(stream) * n_actions), random(stream) < measure_probability


@no_refcount
def decide_among(n_actions: int, n_measurements: int, measure_probability: float, stream: Any) -> tuple[int, int]:
    """Draw an action uniformly, and with the given probability one of several measurements, uniformly; else 0, none.

    As many random numbers are drawn as by `decide`.
    """
    action, uniform = int(random(stream) * n_actions), random(stream)
    if n_measurements == 0 or uniform >= measure_probability:
        return action, 0
    return action, 1 + min(int(uniform / measure_probability * n_measurements), n_measurements - 1)


@no_refcount
def run(
    world: World,
    measure_probability: float,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    world_stream: Any,
    agent_stream: Any,
) -> None:
    """Simulate the episodes from number `first_episode` on that `record` has room for."""
    n_actions = world.dynamics.n_actions
    for episode in range(record.steps.shape[0]):
        seed_stream(world_stream, entropy, first_episode + episode, WORLD)
        seed_stream(agent_stream, entropy, first_episode + episode, AGENT)
        state = first_state(world, world_stream)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            action, measure = decide(n_actions, measure_probability, agent_stream)
            cost = world.dynamics.costs[state * n_actions + action] if measure else 0.0
            state, reward, ended = move(world, state, action, world_stream)
            write(record, episode, reward, cost, measure, ended)


@no_refcount
def run_among(
    measured: MeasuredWorld,
    measure_probability: float,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    looks: Any,
    world_stream: Any,
    agent_stream: Any,
) -> None:
    """As `run`, on a model with any measurements; `looks`, int64 (n_episodes, k), counts each of them."""
    n_actions, n_measurements = measured.world.dynamics.n_actions, measured.outcomes.kinds.shape[0] - 1
    for episode in range(record.steps.shape[0]):
        seed_stream(world_stream, entropy, first_episode + episode, WORLD)
        seed_stream(agent_stream, entropy, first_episode + episode, AGENT)
        state = first_state(measured.world, world_stream)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            action, chosen = decide_among(n_actions, n_measurements, measure_probability, agent_stream)
            state, reward, cost, made, _, ended = step(measured, state, action, chosen, world_stream)
            write_step(record, looks, episode, reward, cost, made, ended)
