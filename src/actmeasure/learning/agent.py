"""What every agent is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, quoted
from actmeasure.kernels import streams
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import whole

__all__ = ["Agent", "CompiledAgent", "Task", "checked_decision", "checked_state"]


@dataclass(frozen=True, eq=False)
class Task:
    """What an agent is told before it acts; never the dynamics.

    Attributes
    ----------
    n_states, n_actions : int
    measuring_cost : float, or array of shape (S, A)
    discount : float
    start : Belief or None
        What is known of the first state before it is shown, if anything.
    reveal_start : bool
        Whether the first state is shown.
    largest_reward : float or None
        The largest reward of a single step, if known.
    planned_episodes : int or None
        How many episodes the run is going to have, if that is known.
    """

    n_states: int
    n_actions: int
    measuring_cost: float | FloatArray
    discount: float
    start: Belief | None
    reveal_start: bool
    largest_reward: float | None
    planned_episodes: int | None

    @classmethod
    def of_model(cls, model: Model, planned_episodes: int | None = None) -> Task:
        """The task that a model poses, without its dynamics."""
        return cls(
            model.n_states, model.n_actions, model.measuring_cost, model.discount, Belief.start(model), model.reveal_start,
            model.largest_reward, planned_episodes,
        )  # fmt: skip

    def same_sizes(self, other: Task) -> bool:
        """Whether an agent that was prepared for one task can go on with the other."""
        return (self.n_states, self.n_actions) == (other.n_states, other.n_actions)


class Agent(ABC):
    """Learns, or just acts, one episode after the other.

    Write your own by overriding `begin`, `decide` and `observe`, and `prepare` where the sizes of the task are needed;
    `actmeasure.testing.check_agent` tells whether it keeps the contract. A state that was not shown is None.

    Attributes
    ----------
    task : Task
        Set by `prepare`.
    rng : numpy.random.Generator
        Set anew for every episode; use no other source of randomness.
    episodes_done : int
        How many episodes were begun so far. A run that goes on continues with the next one's random numbers.
    """

    task: Task | None = None
    rng: np.random.Generator
    episodes_done: int = 0

    def prepare(self, task: Task) -> None:
        """Get ready for a task, once, before the first episode."""
        self.task = task

    def check_goes_on_with(self, task: Task) -> None:
        """Raise an `AgentError` if the agent, prepared for one task, cannot go on with this one."""
        if self.task is not None and not self.task.same_sizes(task):
            raise AgentError(
                f"the agent was trained with {self.task.n_states} states and {self.task.n_actions} actions, but this task has "
                f"{task.n_states} and {task.n_actions}; make a new agent"
            )

    def reseed(self, seed: int, episode: int) -> None:
        """Take the random numbers of an episode."""
        key = np.random.SeedSequence(seed, spawn_key=(episode, streams.AGENT))
        self.rng = np.random.Generator(np.random.PCG64(key))

    @abstractmethod
    def begin(self, observation: int | None) -> None:
        """An episode begins, in the state shown if any."""

    @abstractmethod
    def decide(self) -> Decision:
        """Choose the next action, and whether to look."""

    @abstractmethod
    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        """Take in what came of the decision: reward, measuring cost paid, and the state if it was looked at."""


class CompiledAgent(Agent):
    """An agent whose `begin`, `decide` and `observe` are kernel functions, so that whole runs on a model are compiled."""

    @abstractmethod
    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        """Fill in `episodes`, beginning with number `first_episode`, as the three methods would on the model's environment."""


def checked_state(observation: int, n_states: int) -> int:
    """Return a state that an agent is shown, if there is such a one; otherwise an `AgentError`.

    `train` has checked what environments show. This keeps those who call an agent themselves from writing outside its arrays.
    """
    if type(observation) is int and 0 <= observation < n_states:
        return observation
    return whole(
        observation, "the state that the agent is shown", 0, n_states - 1, AgentError, "None or a whole number"
    )


def checked_decision(agent: Agent, decision: Any, n_actions: int) -> Decision:
    """What an agent decided, if that is a decision that can be carried out; otherwise an `AgentError`."""
    if isinstance(decision, Decision):
        action, measure = decision
        is_whole = isinstance(action, (int, np.integer)) and not isinstance(action, bool)
        if is_whole and 0 <= action < n_actions and isinstance(measure, (bool, np.bool_)):
            return decision
    raise AgentError(
        f"decide() of {type(agent).__name__} gave {quoted(decision)}, expected a Decision with an action from 0 to "
        f"{n_actions - 1} and measure True or False"
    )
