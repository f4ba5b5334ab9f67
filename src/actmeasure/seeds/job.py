"""One seed's training: what every process does, the only one as well as each of several."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from actmeasure import agents
from actmeasure.agents.base import Agent
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, quoted
from actmeasure.model import Model
from actmeasure.training import train

__all__ = ["AgentMaker", "Job", "run_seed"]

#: Finished episodes are delivered at most this often, in seconds.
DELIVERY_SECONDS = 0.1

AgentMaker = str | Callable[..., Agent]


@dataclass(frozen=True)
class Job:
    """What is the same for all seeds, apart from the model."""

    agent: AgentMaker
    settings: Mapping[str, Any]
    episodes: int
    max_steps: int
    planned_episodes: int | None = None

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self.agent if isinstance(self.agent, str) else getattr(self.agent, "__name__", repr(self.agent))

    def new_agent(self) -> Agent:
        """A fresh agent, which has learned nothing yet."""
        if isinstance(self.agent, str):
            return agents.make(self.agent, **self.settings)
        made = self.agent(**self.settings) if callable(self.agent) else None
        if not isinstance(made, Agent) or made.task is not None:
            raise AgentError(
                f"the agent is {quoted(self.agent)}, expected a name (see actmeasure.agents.AGENTS) or a function that makes "
                "a new agent at every call"
            )
        return made


def run_seed(
    job: Job,
    agent: Agent,
    model: Model,
    seed: int,
    deliver: Callable[[Episodes], None],
    stops: Callable[[], bool] = lambda: False,
) -> None:
    """Train an agent, and deliver finished episodes now and then, until all are done, or `stops()`, or Ctrl-C."""
    delivered, last = 0, time.perf_counter()

    def progress(done: int, so_far: Episodes) -> None:
        nonlocal delivered, last
        if done < job.episodes and time.perf_counter() - last < DELIVERY_SECONDS:
            return
        deliver(so_far.part(delivered, done))
        delivered, last = done, time.perf_counter()
        if done < job.episodes and stops():
            raise KeyboardInterrupt  # which training takes as a wish to end well

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted after", RuntimeWarning)  # whoever called is going to say so
        results = train(
            agent, model, job.episodes, seed, job.max_steps, planned_episodes=job.planned_episodes, progress=progress
        )
    if len(results) > delivered:
        deliver(results.part(delivered, len(results)))
