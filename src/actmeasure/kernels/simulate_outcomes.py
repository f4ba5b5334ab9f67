"""Simulation of a model with any measurements: the step with its outcome, and recording episodes.

`kernels.simulate` has the same for models with one exact measurement, whose outcome is the state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.outcomes import LAW, NONE_SEEN, Outcomes, draw_outcome
from actmeasure.kernels.simulate import Record, World, move, write
from actmeasure.kernels.streams import random


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
