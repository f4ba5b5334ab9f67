"""An agent that acts at random: the least any other should beat."""

from __future__ import annotations

from actmeasure.agents.base import CompiledAgent, Task
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.kernels import act_randomly, streams
from actmeasure.model import Model
from actmeasure.settings import probability
from actmeasure.world import record, world

__all__ = ["RandomAgent"]


class RandomAgent(CompiledAgent):
    """Acts at random, and looks with a given probability.

    Parameters
    ----------
    measure_probability : float
        Chance of looking at each step.
    """

    def __init__(self, measure_probability: float = 0.5) -> None:
        self.measure_probability = probability(measure_probability, "measure_probability", AgentError)
        self._stream = streams.make_stream()
        self._n_actions = 0

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._n_actions = task.n_actions

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        """Nothing to remember."""

    def decide(self) -> Decision:
        return Decision(*act_randomly.decide(self._n_actions, self.measure_probability, self._stream))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        """Nothing to learn."""

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy = streams.entropy_words(seed)
        act_randomly.run(
            world(model), self.measure_probability, entropy, first_episode, max_steps, record(episodes),
            streams.make_stream(), self._stream,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"RandomAgent(measure_probability={self.measure_probability:g})"
