"""Act-then-measure Q-learning, with and without training on the learned model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import stored_counts
from actmeasure.agents.atmq_settings import ATMQ, DYNA_ATMQ, AtmqSettings
from actmeasure.agents.base import CompiledAgent, Task, checked_state
from actmeasure.agents.learning import LearningAgent
from actmeasure.agents.presets import chosen, settings_signature
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.kernels import atmq, learn_atmq, streams
from actmeasure.kernels.learned_model import Counts, with_more_room
from actmeasure.model import Model
from actmeasure.transitions import FloatArray
from actmeasure.world import record, world

__all__ = ["AtmqAgent", "DynaAtmqAgent"]

#: Different transitions for which there is room at first.
ROOM = 1 << 10


class AtmqAgent(LearningAgent, CompiledAgent):
    """Act-then-measure Q-learning (Krale et al., 2023): act as if the state will be known, then look if that is worth it.

    It counts the transitions it measures, believes in what they predict while it is blind, and learns values for all states
    of its belief.

    Parameters
    ----------
    preset : str
        `default`: does not get stuck in a belief that it cannot leave. `published`: as the runs behind the paper's table.
        `paper`: the equations of the paper's main text.
    **settings
        Any setting of `AtmqSettings`, to be used instead of the preset's.

    Examples
    --------
    >>> import actmeasure as am
    >>> agent = am.agents.make("atmq", preset="published", learning_rate=0.2)
    >>> agent.settings.measure_when_settled
    0.0
    """

    name = "atmq"
    types: ClassVar[dict[str, str]] = stored_counts.TYPES | {
        "values": "<f8", "optimistic": "<f8", "best": "<f8", "greedy": "<i8", "ready": "<i8", "sums": "<f8"
    }  # fmt: skip
    presets: ClassVar[dict[str, dict[str, Any]]] = ATMQ

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings: AtmqSettings = chosen(AtmqSettings, self.presets, preset, settings)
        self._stream = streams.make_stream()
        self._mind: atmq.Mind
        self._rules: atmq.Rules

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._rules = self.settings.rules(task)
        # Copies: arrays that can be read only are another type to Numba, for which it would compile everything once more.
        costs = np.array(task.measuring_cost, dtype=np.float64).reshape(-1)
        hope = self.settings.largest_reward
        if hope is None:
            hope = 1.0 if task.largest_reward is None else task.largest_reward
        particles = self.settings.particles
        self._mind = atmq.make_mind(task.n_states, task.n_actions, costs, float(hope), particles, ROOM)
        start = Belief(np.zeros(0, np.int64), np.zeros(0)) if task.start is None else task.start
        self._first = np.array(start.states, dtype=np.int64), np.array(start.probabilities, dtype=np.float64)

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        shown = atmq.NOTHING if observation is None else observation
        atmq.begin(self._mind, shown, *self._first, self._stream)

    def decide(self) -> Decision:
        action, measure = atmq.decide(self._mind, self._rules, self._stream)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if atmq.needs_room(self._mind):
            self._make_room()
        seen = atmq.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        atmq.observe(self._mind, self._rules, float(reward), float(cost), seen, bool(terminated), self._stream)

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream, place = streams.entropy_words(seed), streams.make_stream(), np.zeros(3, np.int64)
        while not learn_atmq.run(
            world(model), self._mind, self._rules, *self._first, entropy, first_episode, max_steps, record(episodes),
            place, stream, self._stream,
        ):  # fmt: skip
            self._make_room()

    def _make_room(self) -> None:
        self._mind = self._mind._replace(counts=with_more_room(self._mind.counts))

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._mind.counts

    def q_values(self, optimistic: bool = False) -> FloatArray:
        """The values of all actions, shape (S, A); with `optimistic`, as control sees them."""
        task = self.prepared()
        values: FloatArray = self._mind.optimistic if optimistic else self._mind.values
        return values.reshape(-1, task.n_actions)[: task.n_states].copy()

    def belief(self) -> Belief:
        """Where the agent thinks it is, among the states in which an episode runs; empty if it has no idea."""
        task = self.prepared()
        particles, now = self._mind.particles, self._mind.memory[atmq.NOW]
        size = particles.sizes[now]
        dense = np.zeros(task.n_states + 1)
        dense[particles.states[now, :size]] = particles.times[now, :size]
        running = dense[:-1]
        return Belief.from_distribution(running) if running.sum() > 0 else Belief(np.zeros(0, np.int64), np.zeros(0))

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        mind = self._mind
        ready = mind.ready[: mind.memory[atmq.READY]]
        return stored_counts.stored(mind.counts) | {
            "values": mind.values, "optimistic": mind.optimistic, "best": mind.best, "greedy": mind.greedy,
            "ready": ready, "sums": mind.sums,
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, mind, ready = self.prepared(), self._mind, arrays["ready"]
        counts = stored_counts.counts_from(arrays, task.n_states, task.n_actions, task.n_states, ROOM)
        copied = {name: getattr(mind, name) for name in ("values", "optimistic", "best", "greedy", "sums")}
        stored_counts.check_shapes(
            arrays, {name: values.shape for name, values in copied.items()} | {"ready": (ready.size,)}
        )
        optimistic, greedy = arrays["optimistic"].reshape(-1, task.n_actions), arrays["greedy"][:, None]
        if (
            arrays["values"][-task.n_actions :].any()
            or optimistic[-1].any()
            or not np.array_equal(arrays["best"], optimistic.max(axis=1))
            or (greedy < 0).any()
            or (greedy >= task.n_actions).any()
            or not np.array_equal(arrays["best"], np.take_along_axis(optimistic, greedy, axis=1)[:, 0])
        ):
            raise AgentError("its tables of values contradict each other; the file is damaged")
        if not np.array_equal(np.sort(ready), self._trainable(counts)):
            raise AgentError("the states it trains are not those measured often enough; the file is damaged")
        for name, values in copied.items():
            values[:] = arrays[name]
        mind.ready[: ready.size] = ready
        mind.memory[atmq.READY] = ready.size
        self._mind = mind._replace(counts=counts)

    def _trainable(self, counts: Counts) -> npt.NDArray[np.int64]:
        """The states with an action that was measured often enough; none where all are trained anyway."""
        needs = self._rules.training_needs
        often = counts.measured.reshape(-1, self.prepared().n_actions).max(axis=1)
        return np.flatnonzero(often >= needs) if needs > 0 else np.zeros(0, np.int64)


class DynaAtmqAgent(AtmqAgent):
    """Dyna-ATMQ (Krale et al., 2023): act-then-measure Q-learning that also trains on the model it learns, at every step.

    Parameters
    ----------
    preset : str
        `default`, `published` (625 training updates a step, as the runs behind the paper's table) or `paper` (25).
    **settings
        Any setting of `AtmqSettings`, to be used instead of the preset's.
    """

    name = "dyna-atmq"
    presets: ClassVar[dict[str, dict[str, Any]]] = DYNA_ATMQ


AtmqAgent.__signature__ = settings_signature(AtmqAgent().settings)  # type: ignore[attr-defined]
DynaAtmqAgent.__signature__ = settings_signature(DynaAtmqAgent().settings)  # type: ignore[attr-defined]
