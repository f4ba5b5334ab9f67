"""Models from the transition tables of Gymnasium's toy-text environments (FrozenLake, Taxi, CliffWalking and others)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.model.transitions import ACCEPTED_ERROR, FloatArray, Transitions
from actmeasure.settings import real, whole

__all__ = ["initial_distribution", "read_table"]


def read_table(env: Any) -> tuple[Transitions, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Return transitions, expected rewards, entry rewards and terminal mask, with one terminal state added after the others."""
    table = _listed(_table(env), "P", "state")
    n_states, n_actions = len(table), len(_listed(table[0], "P[state 0]", "action"))
    end = n_states
    entries: list[tuple[int, int, float, float]] = []
    for state in range(n_states):
        actions = _listed(table[state], f"P[state {state}]", "action", n_actions)
        for action in range(n_actions):
            row = state * n_actions + action
            for p, to, reward, done in _outcomes(actions[action], f"P[state {state}, action {action}]", n_states):
                entries.append((row, end if done else to, p, reward))
    rows, successors, probabilities, rewards = (np.array(column) for column in zip(*entries, strict=True))
    terminal = np.arange(n_states + 1) == end
    return (*_merged(rows, successors, probabilities, rewards, terminal, n_actions), terminal)


def _table(env: Any) -> Any:
    if not hasattr(env, "unwrapped"):
        raise ModelError(f"env is {quoted(env)}, expected a Gymnasium environment, such as gymnasium.make('Taxi-v4')")
    table = getattr(env.unwrapped, "P", None)
    if table is None:
        raise ModelError(
            f"{type(env.unwrapped).__name__} has no transition table P, so no model can be read from it; "
            "wrap it with ActiveMeasuring to learn on it instead"
        )
    return table


def _listed(value: Any, location: str, kind: str, count: int | None = None) -> Any:
    """Return a value, if it is a dictionary or list with an entry for every state or action, from 0 up."""
    if not isinstance(value, (Mapping, list, tuple)):
        raise ModelError(f"{location} is {quoted(value)}, expected a dictionary or list with an entry for every {kind}")
    expected = max(1, len(value)) if count is None else count
    keys = set(value) if isinstance(value, Mapping) else set(range(len(value)))
    if keys != set(range(expected)):
        raise ModelError(f"{location} does not list the {kind}s 0..{expected - 1}; complete the table")
    return value


def _outcomes(value: Any, location: str, n_states: int) -> list[tuple[float, int, float, bool]]:
    """Return the checked outcomes of an action: (probability, successor, reward, terminated), as plain numbers."""
    if not isinstance(value, (list, tuple)) or not value:
        raise ModelError(
            f"{location} is {quoted(value)}, expected a list of (probability, next state, reward, terminated)"
        )
    outcomes = []
    for outcome in value:
        if not isinstance(outcome, (list, tuple)) or len(outcome) != 4:
            raise ModelError(
                f"{location} has {quoted(outcome)}, expected (probability, next state, reward, terminated)"
            )
        p, to, reward, done = outcome
        chance, paid = real(p, f"{location}: the probability"), real(reward, f"{location}: the reward")
        if not 0 <= chance <= 1 + ACCEPTED_ERROR:
            raise ModelError(f"{location}: the probability is {p!r}, expected a number from 0 to 1; correct the table")
        if not math.isfinite(paid):
            raise ModelError(f"{location}: the reward is {paid}, expected a finite number; correct the table")
        if not isinstance(done, (bool, int, np.bool_, np.integer)) or done not in (0, 1):
            raise ModelError(f"{location}: terminated is {quoted(done)}, expected True or False; correct the table")
        outcomes.append((chance, whole(to, f"{location}: the next state", 0, n_states - 1), paid, bool(done)))
    return outcomes


def _merged(
    rows: npt.NDArray[np.int64],
    successors: npt.NDArray[np.int64],
    probabilities: FloatArray,
    rewards: FloatArray,
    terminal: npt.NDArray[np.bool_],
    n_actions: int,
) -> tuple[Transitions, FloatArray, FloatArray]:
    """Return tables with one entry per (row, successor): probabilities are added, rewards averaged."""
    n_states = len(terminal)
    possible = probabilities != 0
    keys, group = np.unique(rows[possible] * n_states + successors[possible], return_inverse=True)
    mass: FloatArray = np.bincount(group, weights=probabilities[possible]).astype(np.float64)
    mean = np.bincount(group, weights=(probabilities * rewards)[possible]) / mass
    lowest, highest = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(lowest, group, rewards[possible])
    np.maximum.at(highest, group, rewards[possible])
    entry_rewards = np.where(lowest == highest, lowest, mean)  # keeps equal rewards exact, to the last bit
    offsets = np.searchsorted(keys // n_states, np.arange(n_states * n_actions + 1))
    table = Transitions.checked(n_states, n_actions, offsets, keys % n_states, mass, terminal)
    expected: FloatArray = table.stacked(table.probabilities * entry_rewards).sum(axis=1).reshape(n_states, n_actions)
    return table, expected, entry_rewards


def initial_distribution(env: Any) -> FloatArray:
    """Return the environment's own start distribution over its states and the added terminal state, shape (S + 1,)."""
    own = getattr(env.unwrapped, "initial_state_distrib", None)
    if own is None:
        raise ModelError(
            f"{type(env.unwrapped).__name__} does not tell where it begins (no initial_state_distrib); pass initial=..."
        )
    try:
        return np.append(np.asarray(own, dtype=np.float64), 0.0)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"initial_state_distrib is {quoted(own)}, expected a distribution; pass initial=..."
        ) from error
