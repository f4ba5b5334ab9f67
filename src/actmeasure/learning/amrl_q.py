"""AMRL-Q (Bellinger et al., 2021), a baseline: Q-learning over decisions (action, look) in the most likely state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.kernel_arrays import record, world
from actmeasure.kernels import amrl_q, streams
from actmeasure.kernels.learned_model import INITIAL_CAPACITY
from actmeasure.learning import saving
from actmeasure.learning.agent import Task, checked_state
from actmeasure.learning.learning_agent import (
    NEVER,
    CompiledLearner,
    checked_discount,
    chosen,
    current_names,
    finite,
    settings_signature,
)
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import probability

__all__ = ["AmrlQAgent", "AmrlQSettings"]


@dataclass(frozen=True)
class AmrlQSettings:
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

    learning_rate: float = 0.1
    discount: float | None = None
    measuring_bias: float = 0.1
    random_decisions: float = 0.1
    exploring_share: float = 0.9

    def __post_init__(self) -> None:
        for name in ("learning_rate", "random_decisions", "exploring_share"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        object.__setattr__(self, "measuring_bias", finite(self.measuring_bias, "measuring_bias"))
        object.__setattr__(self, "discount", checked_discount(self.discount))


#: What each preset changes in `AmrlQSettings`: the runs behind the paper's table learned faster than its text says.
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "paper": {}, "published": {"learning_rate": 0.3}}


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
    former_names: ClassVar[dict[str, str]] = {"exploration": "random_decisions"}
    types: ClassVar[dict[str, str]] = saving.TYPES | {"likeliest": "<i8", "values": "<f8"}

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings: AmrlQSettings = chosen(AmrlQSettings, PRESETS, preset, current_names(type(self), settings))
        self._random_decisions = 0.0
        self._likely = amrl_q.NOTHING
        self._tables: amrl_q.AmrlQTables
        self._parameters: amrl_q.AmrlQParameters

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
        if task.start is not None:
            self._likely = int(task.start.states[task.start.probabilities.argmax()])

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        explores = self.episodes_done < self._parameters.exploring_episodes
        self._random_decisions = self._parameters.random_decisions if explores else 0.0
        shown = amrl_q.NOTHING if observation is None else observation
        amrl_q.begin(self._tables, shown, self._likely, self.prepared().n_states, self._stream)

    def decide(self) -> Decision:
        action, measure = amrl_q.decide(self._tables, self.prepared().n_actions, self._random_decisions, self._stream)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        self._grow_if_full()
        seen = amrl_q.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        n_actions = self.prepared().n_actions
        amrl_q.observe(self._tables, self._parameters, n_actions, float(reward), seen, bool(terminated), self._stream)

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream, position = streams.entropy_words(seed), streams.make_stream(), np.zeros(3, np.int64)
        while not amrl_q.run(
            world(model), self._tables, self._parameters, self._likely, entropy, first_episode, max_steps, record(episodes),
            position, stream, self._stream,
        ):  # fmt: skip
            self._grow_if_full()

    def q_values(self) -> FloatArray:
        """Return the values of all decisions, shape (S, A, 2): without a look, with one."""
        task = self.prepared()
        return self._tables.values.reshape(-1, task.n_actions, 2)[: task.n_states].copy()  # type: ignore[no-any-return]

    def belief(self) -> Belief:
        """Return the state that is taken for the current one; empty if that is the end of the episode."""
        n_states = self.prepared().n_states
        believed = int(self._tables.memory[amrl_q.BELIEVED])
        over = believed == n_states
        return Belief(np.zeros(0, np.int64), np.zeros(0)) if over else Belief.at(believed)

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


AmrlQAgent.__signature__ = settings_signature(AmrlQSettings())  # type: ignore[attr-defined]
