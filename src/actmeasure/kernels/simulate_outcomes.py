"""Simulation of a model with any measurements: the step with its outcome, and recording episodes.

`kernels.simulate` has the same for models with one exact measurement, whose outcome is the state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.outcomes import LAW, NONE_SEEN, Outcomes, draw_outcome
from actmeasure.kernels.simulate import Record, Run, World, first_state, move, write
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream


class MeasuredWorld(NamedTuple):
    """A model as arrays, with any measurements; the costs of `world.dynamics` are not used."""

    world: World
    outcomes: Outcomes


@no_refcount
def step(
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
def write_step(
    record: Record, looks: Any, episode: int, reward: float, cost: float, measurement: int, ended: bool
) -> None:
    """Add a step to the record of an episode, and its measurement to `looks`, int64 (n_episodes, k)."""
    write(record, episode, reward, cost, measurement > 0, ended)
    if measurement > 0:
        looks[episode, measurement - 1] += 1


@no_refcount
def decide_randomly_among(
    n_actions: int, n_measurements: int, measure_probability: float, stream: Any
) -> tuple[int, int]:
    """Draw an action uniformly, and with the given probability one of several measurements, uniformly; else 0, none.

    As many random numbers are drawn as by `simulate.decide_randomly`.
    """
    action, uniform = int(random(stream) * n_actions), random(stream)
    if n_measurements == 0 or uniform >= measure_probability:
        return action, 0
    return action, 1 + min(int(uniform / measure_probability * n_measurements), n_measurements - 1)


@no_refcount
def run_randomly_among(measured: MeasuredWorld, measure_probability: float, run: Run, looks: Any) -> None:
    """Simulate episodes of random decisions; `looks`, int64 (n_episodes, k), counts each measurement."""
    n_actions, n_measurements = measured.world.dynamics.n_actions, measured.outcomes.kinds.shape[0] - 1
    record = run.record
    for episode in range(record.steps.shape[0]):
        seed_stream(run.world_stream, run.entropy, run.first_episode + episode, WORLD)
        seed_stream(run.agent_stream, run.entropy, run.first_episode + episode, AGENT)
        state = first_state(measured.world, run.world_stream)
        ended = False
        while not ended and record.steps[episode] < run.max_steps:
            action, chosen = decide_randomly_among(n_actions, n_measurements, measure_probability, run.agent_stream)
            state, reward, cost, made, _, ended = step(measured, state, action, chosen, run.world_stream)
            write_step(record, looks, episode, reward, cost, made, ended)
