"""The readable format: a model as JSON, with one transition to a line.

    {
      "format": "actmeasure model",
      "version": 1,
      "discount": 0.95,
      "measuring_cost": 0.1,
      "states": ["s0", "s+", "s-", "end"],
      "actions": ["a0", "a1"],
      "terminal": ["end"],
      "start": {"s0": 1.0},
      "reveal_start": true,
      "transitions": [
        {"state": "s0", "action": "a0", "to": {"s0": 1.0}, "reward": 0.0},
        {"state": "s0", "action": "a1", "to": {"s+": 0.8, "s-": 0.2}, "reward": 0.0},
        ...
      ]
    }

Where states or actions have no names, `states` and `actions` are counts, and a state is its number. A reward that depends
on the successor is an object such as `{"s+": 1.0, "s-": 0.0}`. A measuring cost per state and action stands with the
transition instead of at the top. Python writes a float with as many digits as it takes to read the same one back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.files.checks import FORMAT, VERSION
from actmeasure.model import Model
from actmeasure.transitions import FloatArray

__all__ = ["lines"]


def lines(model: Model) -> Iterator[str]:
    """The lines of the file, one after the other, with their line ends."""
    names = (*(model.state_names or ()), *(model.action_names or ()))
    # Letters of all scripts stay readable; half a surrogate pair, which UTF-8 cannot hold, has to be escaped.
    encoder = json.JSONEncoder(ensure_ascii=any(_has_surrogate(name) for name in names), allow_nan=False)
    yield "{\n"
    for key, value in _head(model).items():
        yield f"  {encoder.encode(key)}: {encoder.encode(value)},\n"
    yield '  "transitions": [\n'
    before = ""
    for line in _transitions(model):
        yield f"{before}    {encoder.encode(line)}"
        before = ",\n"
    yield "\n  ]\n}\n"


def _has_surrogate(name: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in name)


def _head(model: Model) -> dict[str, Any]:
    cost = {"measuring_cost": model.measuring_cost} if isinstance(model.measuring_cost, float) else {}
    starts = zip(model.initial_states.tolist(), model.initial_probabilities.tolist(), strict=True)
    return {
        "format": FORMAT,
        "version": VERSION,
        "discount": model.discount,
        **cost,
        "states": model.n_states if model.state_names is None else list(model.state_names),
        "actions": model.n_actions if model.action_names is None else list(model.action_names),
        "terminal": [_state(model, state) for state in np.flatnonzero(model.terminal).tolist()],
        "start": {str(_state(model, state)): probability for state, probability in starts},
        "reveal_start": model.reveal_start,
    }


def _state(model: Model, state: int) -> str | int:
    return state if model.state_names is None else model.state_names[state]


def _transitions(model: Model) -> Iterator[dict[str, Any]]:
    """One object for every state that is not terminal and every action."""
    table = model.transitions
    expected, uniform = _reward_summary(model)
    for state in np.flatnonzero(~model.terminal).tolist():
        for action in range(model.n_actions):
            row = state * model.n_actions + action
            entries = slice(int(table.offsets[row]), int(table.offsets[row + 1]))
            successors = [str(_state(model, successor)) for successor in table.successors[entries].tolist()]
            line: dict[str, Any] = {
                "state": _state(model, state),
                "action": action if model.action_names is None else model.action_names[action],
                "to": dict(zip(successors, table.probabilities[entries].tolist(), strict=True)),
            }
            if model.transition_rewards is None:
                line["reward"] = float(model.rewards[state, action])
            elif uniform[row]:
                line["reward"] = float(model.transition_rewards[entries.start])
            else:
                rewards = model.transition_rewards[entries].tolist()
                line["reward"] = dict(zip(successors, rewards, strict=True))
            if model.rewards[state, action] != expected[state, action]:  # only where somebody summed in another order
                line["expected_reward"] = float(model.rewards[state, action])
            if not isinstance(model.measuring_cost, float):
                line["measuring_cost"] = float(model.measuring_cost[state, action])
            yield line


def _reward_summary(model: Model) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The expected rewards that a reader will find, shape (S, A), and the rows in which one number is reward enough."""
    table = model.transitions
    rewards = model.transition_rewards
    if rewards is None:
        return model.rewards, np.ones(len(table.offsets) - 1, dtype=bool)
    expected: FloatArray = table.stacked(table.probabilities * rewards).sum(axis=1).reshape(model.rewards.shape)
    bits = rewards.view(np.int64)
    changes = np.zeros(len(bits) + 1, dtype=np.int64)
    changes[1:-1] = np.cumsum(bits[1:] != bits[:-1])
    changes[-1] = changes[-2]
    # Equal all along a row: no change between its first and its last entry. Empty rows are not written.
    last = np.maximum(table.offsets[1:] - 1, table.offsets[:-1])
    uniform = changes[last] == changes[table.offsets[:-1]]
    if uniform.all():
        uniform[~np.repeat(model.terminal, model.n_actions)] = (
            False  # or nothing would say that rewards are per successor
        )
    return expected, uniform
