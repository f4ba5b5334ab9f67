"""What agents share that learn a model and plan on it by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import stored_counts
from actmeasure.agents.base import Task, checked_state
from actmeasure.agents.learning import LearningAgent
from actmeasure.agents.presets import checked_discount, finite
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import AgentError, unknown_name
from actmeasure.kernels import streams
from actmeasure.kernels.learned_model import Counts, count, is_full, make_counts, with_more_room
from actmeasure.model import Model
from actmeasure.planners.pomcp import PATIENCE, POMCP, ROLLOUTS, least_reward
from actmeasure.settings import truth, whole
from actmeasure.transitions import FloatArray

__all__ = ["PlanningAgent", "PlanningSettings"]

#: Different transitions for which there is room at first.
ROOM = 1 << 10
#: More than this of anything takes longer than anybody waits, or more memory than there is.
MOST = 10**9


@dataclass(frozen=True)
class PlanningSettings:
    """How an agent plans; see `POMCP`.

    Attributes
    ----------
    discount : float or None
        None for the task's own.
    simulations : int
        For each decision.
    depth : int
        Steps that a simulation looks ahead.
    ucb : float or None
        Weight of the upper confidence bounds; None for one that fits the size of the rewards.
    particles : int
        In the belief.
    rollout : str
        `random`, `blind`, `q-mdp` or `looking`.
    clamp : bool
        Whether a negative return of an action without a look is taken for 0. Where rewards are negative, it is not.
    share : bool
        Whether an action with a look and the same without one learn from each other's simulations.
    nodes : int
        The most histories in the tree.
    """

    discount: float | None = None
    simulations: int = 25_000
    depth: int = 25
    ucb: float | None = None
    particles: int = 2_000
    rollout: str = "looking"
    clamp: bool = False
    share: bool = True
    nodes: int = 100_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", checked_discount(self.discount))
        for name, least in (("simulations", 1), ("depth", 1), ("particles", 1), ("nodes", 2)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least, MOST, AgentError))
        object.__setattr__(self, "ucb", None if self.ucb is None else not_negative(self.ucb, "ucb"))
        if not isinstance(self.rollout, str) or self.rollout not in ROLLOUTS:
            raise AgentError(unknown_name("rollout", self.rollout, ROLLOUTS))
        for name in ("clamp", "share"):
            object.__setattr__(self, name, truth(getattr(self, name), name, AgentError))

    def planner(self, model: Model, discount: float) -> POMCP:
        """A planner with these settings, and a discount if they have none; without clamping where rewards are negative."""
        return POMCP(
            model, simulations=self.simulations, depth=self.depth, exploration=self.ucb, particles=self.particles,
            discount=self.discount or discount, rollout=self.rollout, clamp=self.clamp and least_reward(model) >= 0,
            share=self.share, nodes=self.nodes,
        )  # fmt: skip


def not_negative(value: Any, name: str) -> float:
    """A plain finite number from 0 up."""
    found = finite(value, name)
    if found < 0:
        raise AgentError(f"{name} is {value!r}, expected a number from 0 up")
    return found


class PlanningAgent(LearningAgent):
    """An agent that counts transitions between known states, and plans on what they tell with POMCP.

    Attributes
    ----------
    planner : POMCP or None
        While it plans. `planner.lost` counts how often a belief had died out and was made up.
    """

    types: ClassVar[dict[str, str]] = stored_counts.TYPES
    settings: PlanningSettings

    def __init__(self) -> None:
        super().__init__()
        self._stream = streams.make_stream()
        self._seeds = 0, 0
        self._counts: Counts
        self._state: int | None = None  # if known
        self._last = Decision(0, False)
        self.planner: POMCP | None = None

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._counts = make_counts(task.n_states, task.n_actions, ROOM)

    def reseed(self, seed: int, episode: int) -> None:
        self._seeds = seed, episode
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        self._state = observation

    def begin_planning(self, planner: POMCP, observation: int | None) -> None:
        """Let the planner take up an episode, with random numbers of its own."""
        self.planner = planner
        planner.reseed(*self._seeds)
        planner.begin(self.first_belief() if observation is None else Belief.at(observation))

    def patient_task(self) -> Task:
        """The task, with a discount if it has none: without one, a model of which little is known yet has no values."""
        task = self.prepared()
        return replace(task, discount=min(task.discount, PATIENCE))

    def acting_planner(self) -> POMCP:
        """The planner, while it plans."""
        if self.planner is None:
            raise AgentError("no episode has begun yet; call begin(...) first, or actmeasure.train(agent, ...)")
        return self.planner

    def first_belief(self) -> Belief:
        """Where an episode may begin that does not show it; anywhere that was ever left, if nothing is known of it."""
        task = self.prepared()
        if task.start is not None or self.starts:
            return self._start(task)
        left = self._counts.measured.reshape(task.n_states, task.n_actions).sum(axis=1) > 0
        return Belief.from_distribution(left if left.any() else ~left)

    def count_step(self, reward: float, observation: int | None, terminated: bool) -> bool:
        """Count the last step, if the states before and after it are known."""
        task = self.prepared()
        observation = None if observation is None else checked_state(observation, task.n_states)
        known = self._state is not None and observation is not None
        if known:
            if is_full(self._counts):
                self._counts = with_more_room(self._counts)
            successor = task.n_states if terminated else observation
            count(self._counts, self._state * task.n_actions + self._last.action, successor, float(reward))  # type: ignore[operator, arg-type]
        self._state = observation
        return known

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._counts

    def q_values(self) -> FloatArray:
        """What each action was found to be worth at the last decision that was planned, shape (A, 2): without a look, with one.

        All nan if none has been planned yet.
        """
        task = self.prepared()
        if self.planner is None:
            return np.full((task.n_actions, 2), np.nan)
        return self.planner.q_values()  # type: ignore[no-any-return]

    def belief(self) -> Belief:
        """Where the agent thinks it is; empty if it has no idea."""
        self.prepared()
        if self._state is not None:
            return Belief.at(self._state)
        return Belief(np.zeros(0, np.int64), np.zeros(0)) if self.planner is None else self.planner.belief()

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        return stored_counts.stored(self._counts)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task = self.prepared()
        self._counts = stored_counts.counts_from(arrays, task.n_states, task.n_actions, task.n_states, ROOM)
