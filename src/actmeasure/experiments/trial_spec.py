"""The specification of a trial, which is all that its results depend on, and the hash that they are stored under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from actmeasure.experiments.ingredients import AgentSpec, ProblemSpec
from actmeasure.experiments.plain import canonical, digest

__all__ = ["FORMAT", "Trial"]

#: Raise it when the same specification gives other results or other columns than before: all trials are then new.
FORMAT = 3


@dataclass(frozen=True)
class Trial:
    """One agent with one seed on one problem (`train`), or one plan for it (`plan`); make it with the method of that name.

    Attributes
    ----------
    kind : "train" or "plan"
    problem : ProblemSpec
    max_steps : int
        An episode is cut off after so many steps; the plan is evaluated over as many.
    agent, episodes, seed : AgentSpec, int, int
        Of a training.
    method, settings : str, mapping
        Of a plan: `tolerance` and `beliefs`.
    """

    kind: Literal["train", "plan"]
    problem: ProblemSpec
    max_steps: int
    agent: AgentSpec | None = None
    episodes: int = 0
    seed: int = 0
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def train(cls, problem: ProblemSpec, agent: AgentSpec, episodes: int, seed: int, max_steps: int = 1000) -> Trial:
        """Train an agent."""
        return cls("train", problem, max_steps, agent=agent, episodes=episodes, seed=seed)

    @classmethod
    def plan(
        cls, problem: ProblemSpec, method: str, max_steps: int = 1000, tolerance: float = 1e-6, beliefs: int = 1_000_000
    ) -> Trial:
        """Plan, and evaluate the plan over `max_steps` steps."""
        return cls("plan", problem, max_steps, method=method, settings={"tolerance": tolerance, "beliefs": beliefs})

    def identity(self) -> dict[str, Any]:
        """All that results depend on, and nothing else: no labels, no parts, no paths."""
        common = {"format": FORMAT, "kind": self.kind, "problem": self.problem.identity()}
        if self.agent is None:
            return common | {"method": self.method, "settings": {**self.settings, "horizon": self.max_steps}}
        own = {"episodes": self.episodes, "seed": self.seed, "max_steps": self.max_steps}
        return common | {"agent": self.agent.identity()} | own

    @cached_property
    def specification(self) -> str:
        """The identity as JSON that is the same for equal trials."""
        return canonical(self.identity())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the specification: 64 hexadecimal digits."""
        return digest(self.specification.encode())

    def to_json(self) -> dict[str, Any]:
        """As plain data, with labels and paths."""
        return {
            "kind": self.kind, "problem": self.problem.to_json(), "max_steps": self.max_steps,
            "agent": None if self.agent is None else self.agent.to_json(), "episodes": self.episodes, "seed": self.seed,
            "method": self.method, "settings": dict(self.settings),
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """From what `to_json` gives."""
        agent = None if data["agent"] is None else AgentSpec.from_json(data["agent"])
        others = ("kind", "max_steps", "episodes", "seed", "method", "settings")
        return cls(problem=ProblemSpec.from_json(data["problem"]), agent=agent, **{name: data[name] for name in others})

    def __str__(self) -> str:
        """What it is, in words."""
        if self.agent is None:
            return f"{self.method} on {self.problem.label}"
        return f"{self.agent.label} on {self.problem.label}, seed {self.seed}"
