"""ACNO-OTP and ACNO-POMCP (Nam et al., 2021): agents that learn a model and plan on it with POMCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import AgentError
from actmeasure.kernels import streams
from actmeasure.kernels.learned_model import Counts, count, is_full, make_counts, with_doubled_capacity
from actmeasure.learning import saving
from actmeasure.learning.agent import Task, checked_state
from actmeasure.learning.exploring import CounterExploration, EulerExploration, Exploration
from actmeasure.learning.hidden_states import HiddenStates, ObservedStep
from actmeasure.learning.learning_agent import (
    NOTHING_KNOWN,
    AgentSettings,
    LearningAgent,
    count_up_to,
    flag,
    fraction,
    model_from_counts,
    not_negative,
    one_of,
    optional,
    own_discount,
    positive,
    setting,
    with_prior,
)
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.pomcp import LARGEST_DISCOUNT, POMCP, ROLLOUTS, least_reward

__all__ = [
    "AcnoPomcpAgent",
    "AcnoPomcpSettings",
    "ObserveThenPlanAgent",
    "ObserveThenPlanSettings",
    "PlanningAgent",
    "PlanningSettings",
]

#: Largest value of a setting that is a whole number.
LARGEST_SETTING = 10**9


@dataclass(frozen=True)
class PlanningSettings(AgentSettings):
    """How an agent plans with `POMCP`.

    Attributes
    ----------
    discount : float or None
        Discount of simulated returns; None for the task's own.
    simulations : int
        Number of simulations for each decision.
    depth : int
        Number of steps of a simulation.
    exploration : float or None
        Weight of the exploration bonus (upper confidence bounds) in the tree; None for one that fits the size of the rewards.
    particles : int
        Number of particles in the belief.
    rollout : str
        `random`, `blind`, `q-mdp` or `looking`.
    clamp : bool
        Whether a negative return of an action without a look is set to 0; ignored where rewards are negative.
    share : bool
        Whether simulations of an action with a look also count for the action without one, and the other way round.
    nodes : int
        Largest number of histories in the tree.
    """

    discount: float | None = setting(None, optional(own_discount))
    simulations: int = setting(25_000, count_up_to(LARGEST_SETTING, least=1))
    depth: int = setting(25, count_up_to(LARGEST_SETTING, least=1))
    exploration: float | None = setting(None, optional(not_negative))
    particles: int = setting(2_000, count_up_to(LARGEST_SETTING, least=1))
    rollout: str = setting("looking", one_of(ROLLOUTS))
    clamp: bool = setting(False, flag)
    share: bool = setting(True, flag)
    nodes: int = setting(100_000, count_up_to(LARGEST_SETTING, least=2))

    def planner(self, model: Model, discount: float) -> POMCP:
        """Return a planner with these settings, and the given discount if they have none; no `clamp` if rewards are negative."""
        return POMCP(
            model, simulations=self.simulations, depth=self.depth, exploration=self.exploration, particles=self.particles,
            discount=self.discount or discount, rollout=self.rollout, clamp=self.clamp and least_reward(model) >= 0,
            share=self.share, nodes=self.nodes,
        )  # fmt: skip


class PlanningAgent(LearningAgent):
    """An agent that counts transitions between known states, and plans on the learned model with POMCP.

    Attributes
    ----------
    planner : POMCP or None
        The planner of the current episode. `planner.deprivations` counts how often no particle agreed with what was seen.
    """

    types: ClassVar[dict[str, str]] = saving.TYPES
    settings: PlanningSettings

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__(preset, **settings)
        self._stream = streams.make_stream()
        self._seeds = 0, 0
        self._counts: Counts
        self._state: int | None = None  # if known
        self._last = Decision(0, False)
        self.planner: POMCP | None = None

    @classmethod
    def present_name(cls, setting: str, value: Any) -> str:
        return "exploration" if setting == "ucb" else setting

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._counts = make_counts(task.n_states, task.n_actions)

    def reseed(self, seed: int, episode: int) -> None:
        self._seeds = seed, episode
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        self._state = observation

    def begin_planning(self, planner: POMCP, observation: int | None) -> None:
        """Begin an episode with the planner, which has random numbers of its own."""
        self.planner = planner
        planner.reseed(*self._seeds)
        planner.start(self.first_belief() if observation is None else Belief.at(observation))

    def discounted_task(self) -> Task:
        """Return the task, with a discount below 1: without one, a model learned from few measurements may have no values."""
        task = self.prepared()
        return replace(task, discount=min(task.discount, LARGEST_DISCOUNT))

    def acting_planner(self) -> POMCP:
        """Return the planner; raise an `AgentError` if no episode has begun."""
        if self.planner is None:
            raise AgentError("no episode has begun yet; call begin(...) first, or actmeasure.train(agent, ...)")
        return self.planner

    def first_belief(self) -> Belief:
        """Return the belief at a start that is not shown: as told or seen, else uniform over the states ever left."""
        task = self.prepared()
        if task.start is not None or self.starts:
            return self._start(task)
        left = self._counts.measured.reshape(task.n_states, task.n_actions).sum(axis=1) > 0
        return Belief.from_distribution(left if left.any() else ~left)

    def count_step(self, reward: float, observation: int | None, terminated: bool) -> bool:
        """Count the last step if the states before and after it are known; return whether they are."""
        task = self.prepared()
        observation = None if observation is None else checked_state(observation, task.n_states)
        known = self._state is not None and observation is not None
        if known:
            if is_full(self._counts):
                self._counts = with_doubled_capacity(self._counts)
            successor = task.n_states if terminated else observation
            count(self._counts, self._state * task.n_actions + self._last.action, successor, float(reward))  # type: ignore[operator, arg-type]
        self._state = observation
        return known

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._counts

    def q_values(self) -> FloatArray:
        """Return the values of all decisions at the last one that was planned, shape (A, 2): without a look, with one.

        All NaN if none has been planned yet.
        """
        task = self.prepared()
        if self.planner is None:
            return np.full((task.n_actions, 2), np.nan)
        return self.planner.q_values()  # type: ignore[no-any-return]

    def belief(self) -> Belief:
        """Return the current state if it is known, else the planner's belief; empty if there is none."""
        self.prepared()
        if self._state is not None:
            return Belief.at(self._state)
        return NOTHING_KNOWN if self.planner is None else self.planner.belief()

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        return saving.stored(self._counts)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task = self.prepared()
        self._counts = saving.counts_from(arrays, task.n_states, task.n_actions, task.n_states)


@dataclass(frozen=True)
class ObserveThenPlanSettings(PlanningSettings):
    """Settings of ACNO-OTP: of its exploration, and those of `PlanningSettings`.

    Attributes
    ----------
    exploring_method : str
        `counter`: see `CounterExploration`. `euler`: see `EulerExploration`.
    exploring_episodes : int or None
        Number of exploring episodes; None for all planned ones but the last `exploiting_episodes`.
    exploiting_episodes : int
        Number of episodes that follow the planner.
    learning_rate, exploring_discount : float
        Settings of `CounterExploration`.
    horizon, visits : int
        Settings of `EulerExploration`.
    log_term : float
        Setting of `EulerExploration`.
    """

    exploring_method: str = setting("counter", one_of(("counter", "euler")))
    exploring_episodes: int | None = setting(None, optional(count_up_to(None)))
    exploiting_episodes: int = setting(50, count_up_to(None))
    learning_rate: float = setting(0.3, fraction)
    exploring_discount: float = setting(0.95, own_discount)
    horizon: int = setting(5, count_up_to(10**4, least=1))
    visits: int = setting(10, count_up_to(LARGEST_SETTING, least=1))
    log_term: float = setting(0.01, not_negative)

    def explorer(self, n_states: int, n_actions: int) -> Exploration:
        """Return the exploration of these settings."""
        if self.exploring_method == "counter":
            return CounterExploration(n_states, n_actions, self.learning_rate, self.exploring_discount)
        return EulerExploration(n_states, n_actions, self.horizon, self.visits, self.log_term)


#: Settings that the act-then-measure paper and its runs have in common.
KRALE: dict[str, Any] = {"simulations": 25_000, "exploration": 10.0, "rollout": "blind", "clamp": True, "share": False}


class ObserveThenPlanAgent(PlanningAgent):
    """ACNO-OTP (Nam et al., 2021; Krale et al., 2023): look at every step and learn a model first, then plan on it with POMCP.

    Parameters
    ----------
    preset : str
        `default`: settings that did well in our runs. `paper`: discount 0.95 and depth 25, as the act-then-measure paper says.
        `published`: 0.99 and 10, as the runs behind its table. These two have `clamp`, which negative rewards switch off.
    **settings
        Any setting of `ObserveThenPlanSettings`, to be used instead of the preset's.

    Examples
    --------
    >>> import actmeasure as am
    >>> agent = am.agents.make("acno-otp", simulations=500)
    >>> model = am.problems.measuring_value(measuring_cost=0.05)
    >>> episodes = am.train(agent, model, episodes=150)
    >>> bool((episodes.measurements[:100] == episodes.steps[:100]).all())
    True
    """

    name = "acno-otp"
    types: ClassVar[dict[str, str]] = saving.TYPES | {"exploring": "<f8"}
    defaults: ClassVar[ObserveThenPlanSettings] = ObserveThenPlanSettings()
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": KRALE | {"discount": 0.95, "depth": 25},
        "published": KRALE | {"discount": 0.99, "depth": 10},
    }
    settings: ObserveThenPlanSettings
    _explorer: Exploration
    _exploring_episodes = 0
    _plan: POMCP | None = None

    @classmethod
    def present_name(cls, setting: str, value: Any) -> str:
        # Text is the former name of `exploring_method`, a number is the weight of the exploration bonus.
        is_method = setting == "exploration" and isinstance(value, str)
        return "exploring_method" if is_method else super().present_name(setting, value)

    def prepare(self, task: Task) -> None:
        self._exploring_episodes = self._episodes_to_explore(task)
        super().prepare(task)
        self._explorer = self.settings.explorer(task.n_states, task.n_actions)

    def _episodes_to_explore(self, task: Task) -> int:
        """Return the number of exploring episodes."""
        wanted, last = self.settings.exploring_episodes, self.settings.exploiting_episodes
        if wanted is not None:
            return wanted
        if task.planned_episodes is None:
            raise AgentError(
                "acno-otp explores all planned episodes but the last ones, but the task does not say how many are planned; set "
                "exploring_episodes"
            )
        if task.planned_episodes <= last:
            raise AgentError(
                f"acno-otp explores all planned episodes but the last {last}, but {task.planned_episodes} are planned; train for "
                "more, or set exploiting_episodes or exploring_episodes"
            )
        return task.planned_episodes - last

    @property
    def explores(self) -> bool:
        """Whether the current episode explores."""
        return self.episodes_done < self._exploring_episodes

    def begin(self, observation: int | None) -> None:
        super().begin(observation)
        if self.explores:
            self._explorer.begin()
            return
        if self._plan is None:
            model = model_from_counts(self._counts, self.discounted_task(), self.first_belief())
            self._plan = self.settings.planner(model, self.prepared().discount)
        self.begin_planning(self._plan, observation)

    def decide(self) -> Decision:
        if not self.explores and self._plan is not None:
            self._last = self._plan.decide()
        elif self._state is None:  # before the first look of the episode
            self._last = Decision(int(streams.any_of(self.prepared().n_actions, self._stream)), True)
        else:
            self._last = Decision(self._explorer.decide(self._counts, self._state, self._stream), True)
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if not self.explores and self._plan is not None:
            self._state = None if observation is None else checked_state(observation, self.prepared().n_states)
            if not terminated:
                self._plan.observe(observation, self._last)
            return
        before = self._state
        if self.count_step(reward, observation, terminated) and before is not None:
            self._explorer.observe(self._counts, before, self._last.action)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        return super().learned() | {"exploring": self._explorer.table}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().restore(arrays)
        saving.check_shapes(arrays, {"exploring": self._explorer.table.shape})
        self._explorer.restore(np.asarray(arrays["exploring"]))


#: Largest number of entries of a model in which every transition is possible.
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class AcnoPomcpSettings(PlanningSettings):
    """Settings of ACNO-POMCP: its prior, its random decisions, and those of `PlanningSettings`.

    Attributes
    ----------
    prior : float
        Prior count of every transition from state to state, and to the end, with a reward of 0.
    random_decisions : float
        Initial probability of a random decision (epsilon).
    random_decay : float
        Factor of that probability at every step.
    random_least : float
        Smallest probability of a random decision.
    """

    simulations: int = setting(5_000, count_up_to(LARGEST_SETTING, least=1))
    nodes: int = setting(20_000, count_up_to(LARGEST_SETTING, least=2))
    prior: float = setting(0.01, positive)
    random_decisions: float = setting(0.9, fraction)
    random_decay: float = setting(0.999, fraction)
    random_least: float = setting(0.02, fraction)


class AcnoPomcpAgent(PlanningAgent):
    """ACNO-POMCP (Nam et al., 2021): plans from the first episode on with POMCP, on a model of the transitions measured so far.

    A step is counted if the state was seen before and after it. The model is updated at the beginning of every episode.

    Where looks are not exact, it is told the probability of each outcome in each state, and counts expected transitions given all
    outcomes of an episode (`actmeasure.learning.hidden_states`).

    Parameters
    ----------
    preset : str
        `default`: settings that did well in our runs. `paper`: as Nam et al.
    **settings
        Any setting of `AcnoPomcpSettings`, to be used instead of the preset's.

    Examples
    --------
    >>> import actmeasure as am
    >>> agent = am.agents.make("acno-pomcp", simulations=100)
    >>> len(am.train(agent, am.problems.measuring_value(), episodes=20))
    20
    """

    name = "acno-pomcp"
    needs_exact_looks: ClassVar[bool] = False
    types: ClassVar[dict[str, str]] = saving.TYPES | {"random_decisions": "<f8"}
    hidden_types: ClassVar[dict[str, str]] = HiddenStates.TYPES
    defaults: ClassVar[AcnoPomcpSettings] = AcnoPomcpSettings()
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "simulations": 5_000, "depth": 5, "exploration": 3.0, "rollout": "random", "share": False, "prior": 1.0,
            "random_decisions": 0.9, "random_decay": 0.9, "random_least": 0.1,
        },
    }  # fmt: skip
    settings: AcnoPomcpSettings

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__(preset, **settings)
        self._random = np.array([self.settings.random_decisions])
        self._planned_on = -1  # number of measured transitions in the planner's model
        self._hidden: HiddenStates | None = None  # where looks are not exact
        self._first, self._steps = NOTHING_KNOWN, list[ObservedStep]()

    def prepare(self, task: Task) -> None:
        entries = task.n_states * task.n_actions * task.n_states
        if entries > MOST_ENTRIES:
            raise AgentError(
                f"acno-pomcp starts from a model in which every transition is possible, which has {entries:,} entries for "
                f"{task.n_states:,} states and {task.n_actions} actions, more than {MOST_ENTRIES:,}; use acno-otp"
            )
        super().prepare(task)
        if not task.shows_states:
            self._hidden = HiddenStates(task, self.settings.prior)
            self._decisions = [
                Decision(action, number)
                for action in range(task.n_actions)
                for number, one in enumerate((None, *(task.measurements or ())))
                if one is None or one.with_actions is None or action in one.with_actions
            ]

    def begin(self, observation: int | None) -> None:
        super().begin(observation)
        if self._hidden is not None:
            self._state = None
            self._first = self.first_belief() if observation is None else Belief.at(observation)
            self._steps = []
            model = self._hidden.model(self.discounted_task().discount, self.first_belief())
            self.begin_planning(self.settings.planner(model, self.prepared().discount), observation)
            return
        measured, planner = int(self._counts.measured.sum()), self.planner
        if planner is None or measured != self._planned_on:
            model = with_prior(self._counts, self.discounted_task(), self.first_belief(), self.settings.prior)
            planner = self.settings.planner(model, self.prepared().discount)
        self._planned_on = measured
        self.begin_planning(planner, observation)

    def decide(self) -> Decision:
        task, chance = self.prepared(), self._random[0]
        if chance > 0 and streams.random(self._stream) < chance:
            if self._hidden is not None:
                self._last = self._decisions[int(streams.any_of(len(self._decisions), self._stream))]
                return self._after_decision(chance)
            action, look = divmod(int(streams.any_of(2 * task.n_actions, self._stream)), 2)
            self._last = Decision(action, look == 1)
        else:
            self._last = self.acting_planner().decide()
        return self._after_decision(chance)

    def _after_decision(self, chance: float) -> Decision:
        """Lower the probability of random decisions, and return the decision."""
        self._random[0] = max(chance * self.settings.random_decay, min(chance, self.settings.random_least))
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if self._hidden is None:
            self.count_step(reward, observation, terminated)
        else:
            self._steps.append(
                ObservedStep(*self._last, None if terminated else observation, float(reward), terminated)
            )
            if terminated or truncated:
                self._hidden.add(self._first, self._steps)
        if not terminated:
            self.acting_planner().observe(observation, self._last)

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """Return the learned model; where looks are not exact the one that is planned on, which includes the prior."""
        if self._hidden is None:
            return super().model(discount, initial)
        known = (
            self.first_belief() if initial is None else initial if isinstance(initial, Belief) else Belief.at(initial)
        )
        task = self.prepared()
        return self._hidden.model(task.discount if discount is None else own_discount(discount, "discount"), known)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        hidden = {} if self._hidden is None else self._hidden.stored()
        return super().learned() | {"random_decisions": self._random} | hidden

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().restore(arrays)
        saving.check_shapes(arrays, {"random_decisions": (1,)})
        chance = float(arrays["random_decisions"][0])
        if not 0 <= chance <= self.settings.random_decisions:
            raise AgentError("its probability of random decisions is out of range; the file is damaged")
        self._random[0] = chance
        if self._hidden is not None:
            self._hidden.restore(arrays)
