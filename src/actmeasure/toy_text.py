"""Read the transition table of Gymnasium's toy-text environments (FrozenLake, Taxi, CliffWalking and their like)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.transitions import FloatArray, Transitions

__all__ = ["initial_distribution", "read_table"]


def read_table(env: Any) -> tuple[Transitions, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Transitions, expected rewards, entry rewards and terminal mask, with one end state added behind the others."""
    table = getattr(env.unwrapped, "P", None)
    if not table:
        raise ModelError(
            f"{type(env.unwrapped).__name__} has no transition table P, so no model can be read from it; "
            "wrap it with ActiveMeasuring to learn on it instead"
        )
    n_states, n_actions = len(table), len(table[0])
    end = n_states
    entries: list[tuple[int, int, float, float]] = []
    for state in range(n_states):
        if set(table.get(state, ())) != set(range(n_actions)):
            raise ModelError(f"P[state {state}] does not list the actions 0..{n_actions - 1}; complete the table")
        for action in range(n_actions):
            row = state * n_actions + action
            entries += [(row, end if done else int(to), p, reward) for p, to, reward, done in table[state][action]]
    rows, successors, probabilities, rewards = (np.array(column) for column in zip(*entries, strict=True))
    terminal = np.arange(n_states + 1) == end
    return (
        *_merged(rows, successors, probabilities.astype(float), rewards.astype(float), terminal, n_actions),
        terminal,
    )


def _merged(
    rows: npt.NDArray[np.int64],
    successors: npt.NDArray[np.int64],
    probabilities: FloatArray,
    rewards: FloatArray,
    terminal: npt.NDArray[np.bool_],
    n_actions: int,
) -> tuple[Transitions, FloatArray, FloatArray]:
    """One entry per (row, successor): probabilities add up, rewards become their mean."""
    n_states = len(terminal)
    possible = probabilities != 0
    keys, group = np.unique(rows[possible] * n_states + successors[possible], return_inverse=True)
    mass: FloatArray = np.bincount(group, weights=probabilities[possible]).astype(np.float64)
    mean = np.bincount(group, weights=(probabilities * rewards)[possible]) / mass
    lowest, highest = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(lowest, group, rewards[possible])
    np.maximum.at(highest, group, rewards[possible])
    entry_rewards = np.where(lowest == highest, lowest, mean)  # keeps equal rewards exact, to the last bit
    if not np.isfinite(entry_rewards).all():
        raise ModelError("the table P has a NaN or infinite reward, expected finite numbers; correct it")
    offsets = np.searchsorted(keys // n_states, np.arange(n_states * n_actions + 1))
    table = Transitions.checked(n_states, n_actions, offsets, keys % n_states, mass, terminal)
    expected: FloatArray = table.stacked(table.probabilities * entry_rewards).sum(axis=1).reshape(n_states, n_actions)
    return table, expected, entry_rewards


def initial_distribution(env: Any) -> FloatArray:
    """The environment's own start, over its states and the added end state."""
    own = getattr(env.unwrapped, "initial_state_distrib", None)
    if own is None:
        raise ModelError(
            f"{type(env.unwrapped).__name__} does not tell where it begins (no initial_state_distrib); pass initial=..."
        )
    return np.append(np.asarray(own, dtype=np.float64), 0.0)
