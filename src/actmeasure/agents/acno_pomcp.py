"""ACNO-POMCP: observe while planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import stored_counts
from actmeasure.agents.base import Task
from actmeasure.agents.learned_model import with_prior
from actmeasure.agents.planning import PlanningAgent, PlanningSettings, not_negative
from actmeasure.agents.presets import chosen, settings_signature
from actmeasure.decision import Decision
from actmeasure.errors import AgentError
from actmeasure.kernels import streams
from actmeasure.kernels.learned_model import any_of
from actmeasure.settings import probability

__all__ = ["AcnoPomcpAgent", "AcnoPomcpSettings"]

#: The most entries of a model in which everything may lead everywhere.
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class AcnoPomcpSettings(PlanningSettings):
    """What can be set in ACNO-POMCP: what it starts from, and after `PlanningSettings`, how it plans.

    Attributes
    ----------
    prior : float
        Count with which every transition from state to state, and to the end, starts, with a reward of 0.
    random_decisions : float
        Chance of a random decision at first (epsilon).
    random_decay : float
        By what that chance is multiplied at every step.
    random_least : float
        Below which it does not fall.
    """

    simulations: int = 5_000
    nodes: int = 20_000
    prior: float = 0.01
    random_decisions: float = 0.9
    random_decay: float = 0.999
    random_least: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prior", not_negative(self.prior, "prior"))
        if self.prior == 0:
            raise AgentError(
                "prior is 0, expected a number above 0, such as 1, so that every transition is possible at first"
            )
        for name in ("random_decisions", "random_decay", "random_least"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))


#: What each preset sets differently.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "simulations": 5_000, "depth": 5, "ucb": 3.0, "rollout": "random", "share": False, "prior": 1.0,
        "random_decisions": 0.9, "random_decay": 0.9, "random_least": 0.1,
    },
}  # fmt: skip


class AcnoPomcpAgent(PlanningAgent):
    """ACNO-POMCP (Nam et al., 2021): plan from the start with POMCP, on a model of what was seen in consecutive looks.

    A step is counted if the state was seen before and after it. The model is updated at the beginning of every episode.

    Parameters
    ----------
    preset : str
        `default`: what was found to be good. `paper`: as Nam et al.
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
    types: ClassVar[dict[str, str]] = stored_counts.TYPES | {"random_decisions": "<f8"}
    settings: AcnoPomcpSettings

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings = chosen(AcnoPomcpSettings, PRESETS, preset, settings)
        self._random = np.array([self.settings.random_decisions])
        self._planned_on = -1  # measured transitions in the model of the planner

    def prepare(self, task: Task) -> None:
        entries = task.n_states * task.n_actions * task.n_states
        if entries > MOST_ENTRIES:
            raise AgentError(
                f"acno-pomcp starts from a model in which everything may lead everywhere, which has {entries:,} entries for "
                f"{task.n_states:,} states and {task.n_actions} actions, more than {MOST_ENTRIES:,}; use acno-otp"
            )
        super().prepare(task)

    def begin(self, observation: int | None) -> None:
        super().begin(observation)
        measured, planner = int(self._counts.measured.sum()), self.planner
        if planner is None or measured != self._planned_on:
            model = with_prior(self._counts, self.patient_task(), self.first_belief(), self.settings.prior)
            planner = self.settings.planner(model, self.prepared().discount)
        self._planned_on = measured
        self.begin_planning(planner, observation)

    def decide(self) -> Decision:
        task, chance = self.prepared(), self._random[0]
        if chance > 0 and streams.random(self._stream) < chance:
            action, look = divmod(int(any_of(2 * task.n_actions, self._stream)), 2)
            self._last = Decision(action, look == 1)
        else:
            self._last = self.acting_planner().decide()
        self._random[0] = max(chance * self.settings.random_decay, min(chance, self.settings.random_least))
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        self.count_step(reward, observation, terminated)
        if not terminated:
            self.acting_planner().observe(self._last, observation)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        return super().learned() | {"random_decisions": self._random}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().restore(arrays)
        stored_counts.check_shapes(arrays, {"random_decisions": (1,)})
        chance = float(arrays["random_decisions"][0])
        if not 0 <= chance <= self.settings.random_decisions:
            raise AgentError("its chance of random decisions is out of range; the file is damaged")
        self._random[0] = chance


AcnoPomcpAgent.__signature__ = settings_signature(AcnoPomcpSettings())  # type: ignore[attr-defined]
