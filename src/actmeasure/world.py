"""A model as the plain arrays that kernels take."""

from __future__ import annotations

import numpy as np

from actmeasure.episodes import Episodes
from actmeasure.kernels.blind import Dynamics
from actmeasure.kernels.simulate import Record, World
from actmeasure.model import Model

__all__ = ["dynamics", "record", "world"]


def dynamics(model: Model) -> Dynamics:
    """Transitions, expected rewards and measuring costs."""
    table = model.transitions
    return Dynamics(
        table.offsets, table.successors, table.probabilities, model.terminal,
        model.rewards.ravel(), np.ascontiguousarray(model.measuring_costs).ravel(), model.n_actions,
    )  # fmt: skip


def world(model: Model) -> World:
    """Everything that is needed to simulate the model."""
    return World(
        dynamics(model), np.zeros(0) if model.transition_rewards is None else model.transition_rewards,
        model.initial_states, model.initial_probabilities, np.array([0, len(model.initial_states)]), model.reveal_start,
    )  # fmt: skip


def record(episodes: Episodes) -> Record:
    """The arrays of `episodes`, for a kernel to fill in."""
    return Record(
        episodes.scalarized_return, episodes.reward, episodes.measurements, episodes.steps, episodes.terminated
    )
