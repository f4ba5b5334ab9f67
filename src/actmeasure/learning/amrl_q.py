"""AMRL-Q (Bellinger et al., 2021), as a baseline."""

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
from actmeasure.kernels import amrl_q, streams
from actmeasure.kernels.learned_model import Counts, with_more_room
from actmeasure.learning import saving
from actmeasure.learning.agent import CompiledAgent, Task, checked_state
from actmeasure.learning.atmq import NEVER
from actmeasure.learning.learning_agent import LearningAgent, checked_discount, chosen, finite, settings_signature
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import probability
from actmeasure.world import record, world

__all__ = ["AmrlQAgent", "AmrlQSettings"]

#: Different transitions for which there is room at first.
ROOM = 1 << 10


@dataclass(frozen=True)
class AmrlQSettings:
    """What can be set in AMRL-Q; the values here are those of `preset="default"`, and of the papers.

    Attributes
    ----------
    learning_rate : float
    discount : float or None
        None for the task's own.
    measuring_bias : float
        By how much looking seems better than not looking at first, so that it is tried (beta).
    exploration : float
        Chance of a random decision (epsilon).
    exploring_share : float
        Share of the planned episodes in which it explores; of an unknown number, all.
    """

    learning_rate: float = 0.1
    discount: float | None = None
    measuring_bias: float = 0.1
    exploration: float = 0.1
    exploring_share: float = 0.9

    def __post_init__(self) -> None:
        for name in ("learning_rate", "exploration", "exploring_share"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        object.__setattr__(self, "measuring_bias", finite(self.measuring_bias, "measuring_bias"))
        object.__setattr__(self, "discount", checked_discount(self.discount))


#: What each preset sets differently: the runs behind the paper's table learned faster than its text says.
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "paper": {}, "published": {"learning_rate": 0.3}}


class AmrlQAgent(LearningAgent, CompiledAgent):
    """AMRL-Q (Bellinger et al., 2021): Q-learning over pairs of action and look, believing in the most likely successor.

    Both pairs of an action learn from the same step, the one with a look at its cost, so that it ends up never looking.

    Parameters
    ----------
    preset : str
        `default` and `paper`: as described. `published`: learning rate 0.3, as in the runs behind the paper's table.
    **settings
        Any setting of `AmrlQSettings`, to be used instead of the preset's.
    """

    name = "amrl-q"
    types: ClassVar[dict[str, str]] = saving.TYPES | {"likeliest": "<i8", "values": "<f8"}

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings: AmrlQSettings = chosen(AmrlQSettings, PRESETS, preset, settings)
        self._stream = streams.make_stream()
        self._exploration = 0.0
        self._likely = amrl_q.NOTHING
        self._mind: amrl_q.Mind
        self._rules: amrl_q.Rules

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        share, planned = self.settings.exploring_share, task.planned_episodes
        self._rules = amrl_q.Rules(
            discount=task.discount if self.settings.discount is None else self.settings.discount,
            learning_rate=self.settings.learning_rate,
            exploration=self.settings.exploration,
            exploring_episodes=NEVER if planned is None else min(NEVER, int(np.ceil(share * min(planned, NEVER)))),
        )
        costs = np.array(task.measuring_cost, dtype=np.float64).reshape(-1)
        if costs.size > 1:  # looking where the agent believes in the end by mistake has no price of its own
            costs = np.concatenate([costs, np.full(task.n_actions, costs.mean())])
        self._mind = amrl_q.make_mind(task.n_states, task.n_actions, costs, self.settings.measuring_bias, ROOM)
        if task.start is not None:
            self._likely = int(task.start.states[task.start.probabilities.argmax()])

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        explores = self.episodes_done < self._rules.exploring_episodes
        self._exploration = self._rules.exploration if explores else 0.0
        shown = amrl_q.NOTHING if observation is None else observation
        amrl_q.begin(self._mind, shown, self._likely, self.prepared().n_states, self._stream)

    def decide(self) -> Decision:
        action, measure = amrl_q.decide(self._mind, self.prepared().n_actions, self._exploration, self._stream)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if amrl_q.needs_room(self._mind):
            self._make_room()
        seen = amrl_q.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        n_actions = self.prepared().n_actions
        amrl_q.observe(self._mind, self._rules, n_actions, float(reward), seen, bool(terminated), self._stream)

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream, place = streams.entropy_words(seed), streams.make_stream(), np.zeros(3, np.int64)
        while not amrl_q.run(
            world(model), self._mind, self._rules, self._likely, entropy, first_episode, max_steps, record(episodes),
            place, stream, self._stream,
        ):  # fmt: skip
            self._make_room()

    def _make_room(self) -> None:
        self._mind = self._mind._replace(counts=with_more_room(self._mind.counts))

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._mind.counts

    def q_values(self) -> FloatArray:
        """The values of all pairs of action and look, shape (S, A, 2): without a look, with one."""
        task = self.prepared()
        return self._mind.values.reshape(-1, task.n_actions, 2)[: task.n_states].copy()  # type: ignore[no-any-return]

    def belief(self) -> Belief:
        """The one state it believes to be in; empty if it believes that the episode is over."""
        n_states = self.prepared().n_states
        believed = int(self._mind.memory[amrl_q.BELIEVED])
        over = believed == n_states
        return Belief(np.zeros(0, np.int64), np.zeros(0)) if over else Belief.at(believed)

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        mind = self._mind
        return saving.stored(mind.counts) | {"likeliest": mind.likeliest, "values": mind.values}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, mind = self.prepared(), self._mind
        counts = saving.counts_from(arrays, task.n_states + 1, task.n_actions, task.n_states, ROOM)
        saving.check_shapes(arrays, {name: getattr(mind, name).shape for name in ("likeliest", "values")})
        likeliest = arrays["likeliest"]
        if not saving.are_most_frequent(arrays, likeliest):
            raise AgentError("its likeliest successors are not those counted most often; the file is damaged")
        mind.likeliest[:] = likeliest
        mind.values[:] = arrays["values"]
        self._mind = mind._replace(counts=counts)


AmrlQAgent.__signature__ = settings_signature(AmrlQSettings())  # type: ignore[attr-defined]
