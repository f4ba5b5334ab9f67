"""ACNO-OTP: observe, then plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import stored_counts
from actmeasure.agents.base import Task, checked_state
from actmeasure.agents.exploring import CounterExploration, EulerExploration, Exploration
from actmeasure.agents.learned_model import model_from_counts
from actmeasure.agents.planning import MOST, PlanningAgent, PlanningSettings, not_negative
from actmeasure.agents.presets import chosen, own_discount, settings_signature
from actmeasure.decision import Decision
from actmeasure.errors import AgentError, unknown_name
from actmeasure.kernels.learned_model import any_of
from actmeasure.planners.pomcp import POMCP
from actmeasure.settings import probability, whole

__all__ = ["ObserveThenPlanAgent", "ObserveThenPlanSettings"]

EXPLORATIONS = ("counter", "euler")


@dataclass(frozen=True)
class ObserveThenPlanSettings(PlanningSettings):
    """What can be set in ACNO-OTP: how it explores, and after `PlanningSettings`, how it plans.

    Attributes
    ----------
    exploration : str
        `counter`: see `CounterExploration`. `euler`: see `EulerExploration`.
    exploring_episodes : int or None
        How many episodes it explores; None for all planned ones but the last `exploiting_episodes`.
    exploiting_episodes : int
    learning_rate, exploring_discount : float
        Of `counter`.
    horizon, visits : int
        Of `euler`.
    log_term : float
        Of `euler`.
    """

    exploration: str = "counter"
    exploring_episodes: int | None = None
    exploiting_episodes: int = 50
    learning_rate: float = 0.3
    exploring_discount: float = 0.95
    horizon: int = 5
    visits: int = 10
    log_term: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.exploration, str) or self.exploration not in EXPLORATIONS:
            raise AgentError(unknown_name("exploration", self.exploration, EXPLORATIONS))
        if self.exploring_episodes is not None:
            self._set("exploring_episodes", whole(self.exploring_episodes, "exploring_episodes", error=AgentError))
        self._set("exploiting_episodes", whole(self.exploiting_episodes, "exploiting_episodes", error=AgentError))
        self._set("learning_rate", probability(self.learning_rate, "learning_rate", AgentError))
        self._set("exploring_discount", own_discount(self.exploring_discount, "exploring_discount"))
        self._set("horizon", whole(self.horizon, "horizon", 1, 10**4, AgentError))
        self._set("visits", whole(self.visits, "visits", 1, MOST, AgentError))
        self._set("log_term", not_negative(self.log_term, "log_term"))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def explorer(self, n_states: int, n_actions: int) -> Exploration:
        """What explores, by these settings."""
        if self.exploration == "counter":
            return CounterExploration(n_states, n_actions, self.learning_rate, self.exploring_discount)
        return EulerExploration(n_states, n_actions, self.horizon, self.visits, self.log_term)


#: What the act-then-measure paper and its runs have in common.
KRALE: dict[str, Any] = {"simulations": 25_000, "ucb": 10.0, "rollout": "blind", "clamp": True, "share": False}
#: What each preset sets differently: the paper's text, and the runs behind its table.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": KRALE | {"discount": 0.95, "depth": 25},
    "published": KRALE | {"discount": 0.99, "depth": 10},
}


class ObserveThenPlanAgent(PlanningAgent):
    """ACNO-OTP (Nam et al., 2021; Krale et al., 2023): look at every step and learn a model first, then plan on it with POMCP.

    Parameters
    ----------
    preset : str
        `default`: what was found to be good. `paper`: discount 0.95 and depth 25, as the act-then-measure paper says.
        `published`: 0.99 and 10, as the runs behind its table. These two clamp, which is left out where rewards are negative.
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
    types: ClassVar[dict[str, str]] = stored_counts.TYPES | {"exploring": "<f8"}
    settings: ObserveThenPlanSettings

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings = chosen(ObserveThenPlanSettings, PRESETS, preset, settings)
        self._explorer: Exploration
        self._exploring_episodes = 0
        self._plan: POMCP | None = None

    def prepare(self, task: Task) -> None:
        self._exploring_episodes = self._episodes_to_explore(task)
        super().prepare(task)
        self._explorer = self.settings.explorer(task.n_states, task.n_actions)

    def _episodes_to_explore(self, task: Task) -> int:
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
        """Whether it explores in this episode."""
        return self.episodes_done < self._exploring_episodes

    def begin(self, observation: int | None) -> None:
        super().begin(observation)
        if self.explores:
            self._explorer.begin()
            return
        if self._plan is None:
            model = model_from_counts(self._counts, self.patient_task(), self.first_belief())
            self._plan = self.settings.planner(model, self.prepared().discount)
        self.begin_planning(self._plan, observation)

    def decide(self) -> Decision:
        if not self.explores and self._plan is not None:
            self._last = self._plan.decide()
        elif self._state is None:  # only before the first look
            self._last = Decision(int(any_of(self.prepared().n_actions, self._stream)), True)
        else:
            self._last = Decision(self._explorer.decide(self._counts, self._state, self._stream), True)
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if not self.explores and self._plan is not None:
            self._state = None if observation is None else checked_state(observation, self.prepared().n_states)
            if not terminated:
                self._plan.observe(self._last, observation)
            return
        before = self._state
        if self.count_step(reward, observation, terminated) and before is not None:
            self._explorer.observe(self._counts, before, self._last.action)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        return super().learned() | {"exploring": self._explorer.table}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().restore(arrays)
        stored_counts.check_shapes(arrays, {"exploring": self._explorer.table.shape})
        self._explorer.restore(np.asarray(arrays["exploring"]))


ObserveThenPlanAgent.__signature__ = settings_signature(ObserveThenPlanSettings())  # type: ignore[attr-defined]
