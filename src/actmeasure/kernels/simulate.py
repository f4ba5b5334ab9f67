"""Simulation of a model: drawing starts and transitions, and recording episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.blind import Dynamics
from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.streams import random


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
