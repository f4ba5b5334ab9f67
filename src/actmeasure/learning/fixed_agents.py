"""Agents that learn nothing: they follow a policy or a schedule, plan on a known model, or act at random."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, PlanError, quoted
from actmeasure.kernel_arrays import measured_world, new_run, record, world
from actmeasure.kernels import follow_schedule, simulate, streams
from actmeasure.learning.agent import Agent, CompiledAgent, Task, checked_state
from actmeasure.model import Model
from actmeasure.planning.pomcp import POMCP
from actmeasure.policy import Policy, SchedulePolicy
from actmeasure.schedule import Schedule
from actmeasure.settings import probability

__all__ = ["PolicyAgent", "PomcpAgent", "RandomAgent", "ScheduleAgent"]


class PolicyAgent(Agent):
    """Follows a policy, and learns nothing.

    Parameters
    ----------
    policy : Policy
        If it has a method `reseed(seed, episode)`, that is called before every episode.
    model : Model
        The model that the policy was made for: its start is the belief of an episode whose first state is not shown.
    """

    #: What is followed, in messages.
    what: ClassVar[str] = "the policy"

    def __init__(self, policy: Policy, model: Model) -> None:
        if not isinstance(policy, Policy):
            raise AgentError(
                f"policy is {quoted(policy)}, expected a Policy, with the methods start, decide and observe"
            )
        if not isinstance(model, Model):
            raise AgentError(f"model is {quoted(model)}, expected the Model that the policy was made for")
        self.policy, self.model = policy, model
        self._observes_states = model.looks_are_exact

    def prepare(self, task: Task) -> None:
        model = self.model
        # `Model.from_gymnasium` adds an end state behind the environment's own, which the environment never shows.
        ends_behind = bool(model.terminal[-1]) and task.n_states == model.n_states - 1
        if task.n_actions != model.n_actions or not (task.n_states == model.n_states or ends_behind):
            raise AgentError(
                f"{self.what} is for {model.n_states} states and {model.n_actions} actions, the task has {task.n_states} and "
                f"{task.n_actions}; use it on the model it was made for"
            )
        own = Task.of_model(model)
        if own.looks_are_exact != task.looks_are_exact or (not own.looks_are_exact and own.outcomes != task.outcomes):
            raise AgentError(
                f"{self.what} is for other measurements, whose numbers of outcomes are {own.outcomes} (none first), the task has "
                f"{task.outcomes}; use it on the model it was made for"
            )
        super().prepare(task)

    def reseed(self, seed: int, episode: int) -> None:
        if hasattr(self.policy, "reseed"):
            self.policy.reseed(seed, episode)

    def begin(self, observation: int | None) -> None:
        shown = self._shown(observation)
        self.policy.start(Belief.start(self.model) if shown is None else Belief.at(shown))

    def decide(self) -> Decision:
        return self.policy.decide()

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if terminated:
            return
        if observation is not None and self._observes_states:
            observation = self._shown(observation)
        self.policy.observe(observation)

    def _shown(self, observation: int | None) -> int | None:
        return None if observation is None else checked_state(observation, self.model.n_states)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.policy!r})"


class PomcpAgent(PolicyAgent):
    """Plans every decision with POMCP on a known model, and learns nothing.

    Parameters
    ----------
    model : Model
    settings
        Those of `actmeasure.planning.POMCP` but for `seed`, with the same defaults.

    Attributes
    ----------
    policy, planner : POMCP
    """

    policy: POMCP

    def __init__(self, model: Model, **settings: Any) -> None:
        try:
            planner = POMCP(model, **settings)
        except PlanError as error:
            raise AgentError(str(error)) from error
        super().__init__(planner, model)

    @property
    def planner(self) -> POMCP:
        """The POMCP planner; the same object as `policy`."""
        return self.policy

    def q_values(self) -> Any:
        """Return the mean return of each action at the last decision, shape (A, 2): without a look, with one."""
        return np.array(self.policy.q_values())

    def __repr__(self) -> str:
        return f"PomcpAgent({self.model!r}, simulations={self.policy.simulations})"


_signature = inspect.signature(POMCP)
PomcpAgent.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[parameter for name, parameter in _signature.parameters.items() if name != "seed"]
)


class ScheduleAgent(PolicyAgent, CompiledAgent):
    """Follows a schedule, and learns nothing.

    Parameters
    ----------
    schedule : Schedule
    model : Model
        The model that the schedule was made for: it tells where plans lead that end in a known state without a look.

    Attributes
    ----------
    policy : SchedulePolicy
    """

    policy: SchedulePolicy
    what = "the schedule"
    needs_exact_looks: ClassVar[bool] = True

    def __init__(self, schedule: Schedule, model: Model) -> None:
        if not isinstance(schedule, Schedule):
            raise AgentError(f"schedule is {quoted(schedule)}, expected a Schedule")
        if not isinstance(model, Model):
            raise AgentError(f"model is {quoted(model)}, expected the Model that the schedule was made for")
        self.check_can_act_on(model)
        super().__init__(schedule.policy(model), model)
        self.schedule = schedule

    def begin(self, observation: int | None) -> None:
        self.policy.start_at(self._shown(observation))

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        played = follow_schedule.run(
            world(model), self.policy.guide, self.policy.progress, streams.entropy_words(seed), first_episode, max_steps,
            record(episodes), streams.make_stream(),
        )  # fmt: skip
        if not played:
            raise self.policy.no_decision()

    def __repr__(self) -> str:
        return f"ScheduleAgent({self.schedule!r})"


class RandomAgent(CompiledAgent):
    """Acts at random and measures with a given probability: the least that another agent should earn.

    Parameters
    ----------
    measure_probability : float
        Probability of measuring at each step; where there are several measurements, each is as likely.
    """

    def __init__(self, measure_probability: float = 0.5) -> None:
        self.measure_probability = probability(measure_probability, "measure_probability", AgentError)
        self._stream = streams.make_stream()
        self._n_actions, self._n_measurements = 0, 1

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._n_actions, self._n_measurements = task.n_actions, task.n_measurements

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        """Do nothing: every step is decided alike."""

    def decide(self) -> Decision:
        sizes = self._n_actions, self._n_measurements
        return Decision(*simulate.decide_randomly(*sizes, self.measure_probability, self._stream))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        """Do nothing: outcomes are not used."""

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        run = new_run(episodes, seed, first_episode, max_steps, self._stream)
        looks = np.zeros_like(episodes.looks) if episodes.by_kind is None else episodes.by_kind
        simulate.run_randomly(measured_world(model), self.measure_probability, run, looks)

    def __repr__(self) -> str:
        return f"RandomAgent(measure_probability={self.measure_probability:g})"
