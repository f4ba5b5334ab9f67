"""An agent that plans on a known model."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.agents.base import Agent, Task, checked_state
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import AgentError, PlanError
from actmeasure.model import Model
from actmeasure.planners.pomcp import POMCP

__all__ = ["PomcpAgent"]


class PomcpAgent(Agent):
    """Plans every decision with POMCP on a known model, and learns nothing.

    Parameters
    ----------
    model : Model
    simulations, depth, exploration, particles, discount, rollout, clamp, share, nodes
        As those of `actmeasure.planners.POMCP`.

    Attributes
    ----------
    planner : POMCP
    """

    def __init__(
        self,
        model: Model,
        simulations: int = 25_000,
        depth: int = 25,
        exploration: float | None = None,
        particles: int = 2_000,
        discount: float | None = None,
        rollout: str = "looking",
        clamp: bool = False,
        share: bool = True,
        nodes: int = 100_000,
    ) -> None:
        try:
            self.planner = POMCP(
                model, simulations, depth, exploration, particles, discount, rollout, clamp, share, nodes
            )
        except PlanError as error:
            raise AgentError(str(error)) from error
        self._last = Decision(0, False)

    def prepare(self, task: Task) -> None:
        model = self.planner.model
        # `Model.from_gymnasium` adds an end state behind the environment's own, which the environment never shows.
        ends_behind = bool(model.terminal[-1]) and task.n_states == model.n_states - 1
        if task.n_actions != model.n_actions or not (task.n_states == model.n_states or ends_behind):
            raise AgentError(
                f"the model has {model.n_states} states and {model.n_actions} actions, the task has {task.n_states} and "
                f"{task.n_actions}; plan on the model of the task"
            )
        super().prepare(task)

    def reseed(self, seed: int, episode: int) -> None:
        self.planner.reseed(seed, episode)

    def begin(self, observation: int | None) -> None:
        self.planner.begin(Belief.start(self.planner.model) if observation is None else Belief.at(observation))

    def decide(self) -> Decision:
        self._last = self.planner.decide()
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if terminated:
            return
        if observation is not None:
            model = self.planner.model
            if model.terminal[checked_state(observation, model.n_states)]:
                raise AgentError(
                    f"{model.describe_state(observation)} was shown and the episode goes on, but it ends there in the model that "
                    "the agent plans on; plan on the model of the task"
                )
        self.planner.observe(self._last, observation)

    def q_values(self) -> Any:
        """What each action was found to be worth at the last decision, shape (A, 2): without a look, with one."""
        return np.array(self.planner.q_values())

    def __repr__(self) -> str:
        return f"PomcpAgent({self.planner.model!r}, simulations={self.planner.simulations})"
