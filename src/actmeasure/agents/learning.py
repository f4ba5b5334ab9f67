"""What learning agents share: they can be saved, and what they learned can be read."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents.base import Agent, Task, checked_state
from actmeasure.agents.learned_model import model_from_counts
from actmeasure.agents.presets import checked_discount
from actmeasure.belief import Belief
from actmeasure.errors import AgentError
from actmeasure.kernels.learned_model import Counts
from actmeasure.model import Model
from actmeasure.transitions import FloatArray

__all__ = ["LearningAgent"]


class LearningAgent(Agent):
    """An agent that learns tables for finitely many states and actions.

    Attributes
    ----------
    name : str
        As in `am.agents.make`.
    settings : dataclass
        All settings, also those that were not given.
    """

    name: ClassVar[str]
    settings: Any
    #: Types of the arrays in which it is saved.
    types: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """The measured transitions."""

    @abstractmethod
    def q_values(self) -> FloatArray:
        """What the agent thinks its actions are worth."""

    @abstractmethod
    def belief(self) -> Belief:
        """Where the agent thinks it is."""

    @abstractmethod
    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that was learned, as the agent's own arrays by name."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `learned` gave; an `AgentError` if that cannot be."""

    def check_goes_on_with(self, task: Task) -> None:
        super().check_goes_on_with(task)
        mine = self.prepared()
        told = {
            "the measuring cost": (mine.measuring_cost, task.measuring_cost),
            "the discount": (mine.discount, task.discount),
            "reveal_start": (mine.reveal_start, task.reveal_start),
        }
        for what, (before, now) in told.items():
            if not np.array_equal(before, now):
                raise AgentError(f"{what} is not what the agent was trained with, and learned for; make a new agent")

    def prepared(self) -> Task:
        """The task, if there is one yet."""
        if self.task is None:
            raise AgentError("the agent has not been trained yet; call actmeasure.train(agent, ...) first")
        return self.task

    def note_start(self, observation: int | None) -> None:
        """Remember where an episode began, where the task does not tell; no state of the task is an `AgentError`."""
        if observation is None:
            return
        task = self.prepared()
        observation = checked_state(observation, task.n_states)
        if task.start is None:
            self.starts[observation] = self.starts.get(observation, 0) + 1

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """The dynamics, rewards and starts as they were measured, as a `Model` that can be solved.

        It has one state more than the task, in which all episodes end. Where an action was never measured, it is taken to
        change nothing, for the smallest reward seen, or 0 if all are positive: a plan on it keeps to what is known. At
        discount 1 it ends the episode instead.

        Parameters
        ----------
        discount : float, optional
            Instead of the task's.
        initial : Belief or int, optional
            Where episodes begin; by default as the task says, or where they were seen to begin.
        """
        return self._learned_model(discount, initial)

    def _learned_model(
        self,
        discount: float | None,
        initial: Belief | int | None,
        ends: FloatArray | None = None,
        counts: Counts | None = None,
    ) -> Model:
        task = self.prepared()
        task = replace(task, discount=checked_discount(discount) or task.discount)
        start = self._start(task) if initial is None else initial
        known = start if isinstance(start, Belief) else Belief.at(start)
        return model_from_counts(self.counts if counts is None else counts, task, known, ends)

    def _start(self, task: Task) -> Belief:
        if task.start is not None:
            return task.start
        if not self.starts:
            raise AgentError(
                "no start of an episode was told or shown, so that the model has none; say where: initial=..."
            )
        states = np.array(sorted(self.starts), dtype=np.int64)
        times = np.array([self.starts[state] for state in states.tolist()], dtype=np.float64)
        return Belief(states, times / times.sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything learned into a file, from which `am.agents.load` makes an agent that goes on as this one would."""
        from actmeasure.agents.saving import save_agent

        save_agent(self, path)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in asdict(self.settings).items())
        return f"{type(self).__name__}({shown})"
