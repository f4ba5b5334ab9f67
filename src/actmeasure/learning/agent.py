"""The contract of agents: what they are told (`Task`), what they implement (`Agent`), and what is checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from actmeasure.belief import Belief
from actmeasure.decision import Decision, expected_decision, is_valid
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, quoted
from actmeasure.kernels import streams
from actmeasure.model import Measurement, Model
from actmeasure.settings import whole

__all__ = ["Agent", "CompiledAgent", "Task", "checked_decision", "checked_state"]

#: What can be done with models on which an agent that needs exact looks cannot act; the end of an error's sentence.
INSTEAD = "use the agent 'acno-pomcp', which learns on it too, or plan on the model with actmeasure.solve"


@dataclass(frozen=True, eq=False)
class Task:
    """The facts that an agent is told before it acts; never the dynamics.

    Attributes
    ----------
    n_states, n_actions : int
    measuring_cost : float, or array of shape (S, A)
        Price of the measurement; a tuple of these unless there is exactly one.
    discount : float
    start : Belief or None
        Distribution of the first state, None if it is not told.
    reveal_start : bool
        Whether the first state of an episode is shown.
    largest_reward : float or None
        The largest reward of a single step, None if it is not known.
    planned_episodes : int or None
        Number of episodes of the whole run, None if it is not known.
    outcomes : tuple of int, length 1 + k
        Number of outcomes without a measurement (0: nothing is seen), and of each measurement; by default those of one exact
        measurement, (0, S).
    looks_are_exact : bool
        Whether there is one measurement, it shows the state, and nothing is seen without it.
    measurements : tuple of Measurement, or None
        Prices, actions and laws of outcomes: what is known of the instruments. None where only the price is told.
    passive : Measurement, or None
        What is seen without a measurement.
    """

    n_states: int
    n_actions: int
    measuring_cost: Any
    discount: float
    start: Belief | None
    reveal_start: bool
    largest_reward: float | None
    planned_episodes: int | None
    outcomes: tuple[int, ...] = ()
    looks_are_exact: bool = True
    measurements: tuple[Measurement, ...] | None = None
    passive: Measurement | None = None

    def __post_init__(self) -> None:
        if not self.outcomes:
            object.__setattr__(self, "outcomes", (0, self.n_states))

    @classmethod
    def of_model(cls, model: Model, planned_episodes: int | None = None) -> Task:
        """Return the task of a model, without its dynamics."""
        prices = tuple(measurement.cost for measurement in model.measurements)
        outcomes = tuple(model.n_outcomes(number) for number in range(1 + len(prices)))
        return cls(
            model.n_states, model.n_actions, prices[0] if len(prices) == 1 else prices, model.discount, Belief.start(model),
            model.reveal_start, model.largest_reward, planned_episodes, outcomes, model.looks_are_exact,
            model.measurements, model.passive,
        )  # fmt: skip

    @property
    def n_measurements(self) -> int:
        """Number of measurements, without *none*."""
        return len(self.outcomes) - 1

    @property
    def shows_states(self) -> bool:
        """Whether looks are exact and can be made with every action."""
        return self.looks_are_exact and (self.measurements is None or self.measurements[0].with_actions is None)

    def same_sizes(self, other: Task) -> bool:
        """Return whether both tasks have the same numbers of states and actions, and measurements with as many outcomes."""
        mine, theirs = ((task.n_states, task.n_actions, task.outcomes, task.looks_are_exact) for task in (self, other))
        return mine == theirs


class Agent(ABC):
    """Acts, and may learn, one episode after the other.

    A subclass implements `begin`, `decide` and `observe`, and extends `prepare` if it needs arrays of the task's sizes.
    `actmeasure.train` calls them in this order:

    1. `prepare(task)`, once, before the first episode;
    2. for each episode `reseed(seed, episode)`, then `begin(observation)`;
    3. for each step `decide()`, then `observe(...)` with the result, also of the last step.

    States and actions are numbers from 0; a state that is not shown is None. Where looks are not exact, an agent observes the
    outcome's number within the measurement that was made (of the passive one if none was). Nothing else is told: if the agent
    does not look, it learns the reward, and whether the episode has ended. What an agent learns must depend on nothing but these
    calls and `rng`: the same seed then gives the same episodes, and a run in parts equals a run in one.
    `actmeasure.testing.check_agent` checks the contract. To save what was learned, inherit from `LearningAgent`; for compiled
    runs, from `CompiledAgent`.

    Attributes
    ----------
    needs_exact_looks : bool
        Whether it acts only where one exact measurement can be made with every action; `train` refuses other models.
    task : Task
        Set by `prepare`.
    rng : numpy.random.Generator
        Set for every episode; the only source of randomness.
    episodes_done : int
        Number of episodes that are over, counted by `train`. The next one has the random numbers of that number.
    """

    needs_exact_looks: ClassVar[bool] = False
    task: Task | None = None
    rng: np.random.Generator
    episodes_done: int = 0

    def prepare(self, task: Task) -> None:
        """Get ready for a task, once, before the first episode; call `super().prepare(task)`, which sets `self.task`."""
        self.task = task

    def check_goes_on_with(self, task: Task) -> None:
        """Raise an `AgentError` if the agent, prepared for another task, cannot be trained further on this one."""
        if self.task is None or self.task.same_sizes(task):
            return
        if (self.task.n_states, self.task.n_actions) == (task.n_states, task.n_actions):
            raise AgentError(
                f"the agent was trained with other measurements, whose numbers of outcomes were {self.task.outcomes} (none "
                f"first), but this task has {task.outcomes}; make a new agent"
            )
        raise AgentError(
            f"the agent was trained with {self.task.n_states} states and {self.task.n_actions} actions, but this task has "
            f"{task.n_states} and {task.n_actions}; make a new agent"
        )

    def check_can_act_on(self, model: Model) -> None:
        """Raise a `ModelError` if the agent needs exact looks and the model has others."""
        if self.needs_exact_looks:
            name = getattr(self, "name", type(self).__name__)
            model.require_exact_looks(f"the agent {name!r}", INSTEAD)

    def reseed(self, seed: int, episode: int) -> None:
        """Set `rng` to the random numbers of an episode."""
        key = np.random.SeedSequence(seed, spawn_key=(episode, streams.AGENT))
        self.rng = np.random.Generator(np.random.PCG64(key))

    @abstractmethod
    def begin(self, observation: int | None) -> None:
        """Begin an episode in the state that is shown, or None."""

    @abstractmethod
    def decide(self) -> Decision:
        """Return the next action, and the measurement to make after it."""

    @abstractmethod
    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        """Learn from the result of the last decision.

        Parameters
        ----------
        reward : float
            Reward of the step, without the measuring cost.
        cost : float
            Measuring cost that was paid, 0 without a look.
        observation : int or None
            The state after the action if the decision was to look, also if the episode ends there. Where looks are not exact: the
            outcome's number within the measurement that was made; None for nothing seen.
        terminated : bool
            Whether the episode has ended; this is known without a look.
        truncated : bool
            Whether it is cut off after this step.
        """


class CompiledAgent(Agent):
    """An agent whose `begin`, `decide` and `observe` call kernel functions, so that whole runs on a model are compiled."""

    @abstractmethod
    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        """Play episodes `first_episode` and on, and write them into `episodes`.

        They must equal, to the last bit, what `begin`, `decide` and `observe` give on the model's environment.
        """


def checked_state(observation: int, n_states: int) -> int:
    """Return a state that is shown to an agent; raise an `AgentError` if there is no such state.

    `train` has checked what environments show. If an agent's methods are called directly, this prevents writing outside its
    arrays.
    """
    if type(observation) is int and 0 <= observation < n_states:
        return observation
    return whole(
        observation, "the state that the agent is shown", 0, n_states - 1, AgentError, "None or a whole number"
    )


def checked_decision(agent: Agent, decision: Any, n_actions: int, n_measurements: int = 1) -> Decision:
    """Return an agent's decision; raise an `AgentError` unless it is a `Decision` with an action and measurement of the task."""
    if is_valid(decision, n_actions, n_measurements):
        return cast("Decision", decision)
    expected = expected_decision(n_actions, n_measurements)
    raise AgentError(f"decide() of {type(agent).__name__} gave {quoted(decision)}, {expected}")
