"""AMRL-Q (Bellinger et al., 2021), a baseline: Q-learning over decisions (action, look) in the most likely state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import AgentError
from actmeasure.kernels import amrl_q
from actmeasure.kernels.learned_model import INITIAL_CAPACITY
from actmeasure.kernels.simulate import NOTHING
from actmeasure.learning import saving
from actmeasure.learning.agent import Task, checked_state
from actmeasure.learning.learning_agent import (
    NEVER,
    NOTHING_KNOWN,
    AgentSettings,
    CompiledLearner,
    finite,
    fraction,
    optional,
    own_discount,
    setting,
)
from actmeasure.model.transitions import FloatArray

__all__ = ["AmrlQAgent", "AmrlQSettings"]


@dataclass(frozen=True)
class AmrlQSettings(AgentSettings):
    """Settings of AMRL-Q; the defaults are those of `preset="default"`, and of the papers.

    Attributes
    ----------
    learning_rate : float
        Fraction by which a value moves towards its target.
    discount : float or None
        Discount of values; None for the task's own.
    measuring_bias : float
        Initial value of decisions with a look, above that of those without, so that looks are tried (beta).
    random_decisions : float
        Probability of a random decision (epsilon).
    exploring_share : float
        Fraction of the planned episodes with random decisions; all, if no number is planned.
    """

    learning_rate: float = setting(0.1, fraction)
    discount: float | None = setting(None, optional(own_discount))
    measuring_bias: float = setting(0.1, finite)
    random_decisions: float = setting(0.1, fraction)
    exploring_share: float = setting(0.9, fraction)


class AmrlQAgent(CompiledLearner):
    """AMRL-Q (Bellinger et al., 2021): Q-learning over decisions (action, look), in the most likely state.

    Both decisions for an action learn from the same step, the one with a look minus its cost, so that in the end it never looks.

    Parameters
    ----------
    preset : str
        `default` and `paper`: as described. `published`: learning rate 0.3, as in the runs behind the paper's table.
    **settings
        Any setting of `AmrlQSettings`, to be used instead of the preset's.
    """

    name = "amrl-q"
    kernel: ClassVar[Any] = amrl_q
    types: ClassVar[dict[str, str]] = saving.TYPES | {"likeliest": "<i8", "values": "<f8"}
    defaults: ClassVar[AmrlQSettings] = AmrlQSettings()
    #: The runs behind the paper's table learned faster than its text says.
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "published": {"learning_rate": 0.3}}
    settings: AmrlQSettings
    _random_decisions = 0.0
    _tables: amrl_q.AmrlQTables
    _parameters: amrl_q.AmrlQParameters
    _first: tuple[int]

    @classmethod
    def present_name(cls, setting: str, value: Any) -> str:
        return "random_decisions" if setting == "exploration" else setting

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        share, planned = self.settings.exploring_share, task.planned_episodes
        self._parameters = amrl_q.AmrlQParameters(
            discount=task.discount if self.settings.discount is None else self.settings.discount,
            learning_rate=self.settings.learning_rate,
            random_decisions=self.settings.random_decisions,
            exploring_episodes=NEVER if planned is None else min(NEVER, int(np.ceil(share * min(planned, NEVER)))),
        )
        costs = np.array(task.measuring_cost, dtype=np.float64).reshape(-1)
        if costs.size > 1:  # the end, which may be taken for the current state by mistake, has no cost of its own
            costs = np.concatenate([costs, np.full(task.n_actions, costs.mean())])
        self._tables = amrl_q.make_tables(
            task.n_states, task.n_actions, costs, self.settings.measuring_bias, INITIAL_CAPACITY
        )
        likeliest = None if task.start is None else int(task.start.states[task.start.probabilities.argmax()])
        self._first = (NOTHING if likeliest is None else likeliest,)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        explores = self.episodes_done < self._parameters.exploring_episodes
        self._random_decisions = self._parameters.random_decisions if explores else 0.0
        shown = NOTHING if observation is None else observation
        amrl_q.begin(self._tables, shown, *self._first, self.prepared().n_states, self._stream)

    def decide(self) -> Decision:
        action, measure = amrl_q.decide(self._tables, self.prepared().n_actions, self._random_decisions, self._stream)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        self._grow_if_full()
        seen = NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        n_actions = self.prepared().n_actions
        amrl_q.observe(self._tables, self._parameters, n_actions, float(reward), seen, bool(terminated), self._stream)

    def q_values(self) -> FloatArray:
        """Return the values of all decisions, shape (S, A, 2): without a look, with one."""
        task = self.prepared()
        return self._tables.values.reshape(-1, task.n_actions, 2)[: task.n_states].copy()  # type: ignore[no-any-return]

    def belief(self) -> Belief:
        """Return the state that is taken for the current one; empty if that is the end of the episode."""
        n_states = self.prepared().n_states
        believed = int(self._tables.memory[amrl_q.BELIEVED])
        return NOTHING_KNOWN if believed == n_states else Belief.at(believed)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        tables = self._tables
        return saving.stored(tables.counts) | {"likeliest": tables.likeliest, "values": tables.values}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, tables = self.prepared(), self._tables
        counts = saving.counts_from(arrays, task.n_states + 1, task.n_actions, task.n_states)
        saving.check_shapes(arrays, {name: getattr(tables, name).shape for name in ("likeliest", "values")})
        likeliest = arrays["likeliest"]
        if not saving.are_most_frequent(arrays, likeliest):
            raise AgentError("its likeliest successors are not those counted most often; the file is damaged")
        tables.likeliest[:] = likeliest
        tables.values[:] = arrays["values"]
        self._tables = tables._replace(counts=counts)
