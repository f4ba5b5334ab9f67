"""Agents, which act and may learn by acting: the contract, the agents by name, `make` and `load`."""

from __future__ import annotations

import os
from typing import Any

from actmeasure.errors import AgentError
from actmeasure.learning.acno import AcnoPomcpAgent, ObserveThenPlanAgent
from actmeasure.learning.agent import Agent, CompiledAgent, Task
from actmeasure.learning.amrl_q import AmrlQAgent
from actmeasure.learning.atmq import AtmqAgent, DynaAtmqAgent
from actmeasure.learning.fixed_agents import PolicyAgent, PomcpAgent, RandomAgent, ScheduleAgent
from actmeasure.learning.foresight import ForesightAgent
from actmeasure.learning.learning_agent import LearningAgent, current_names
from actmeasure.learning.saving import load_agent
from actmeasure.settings import make_by_name

__all__ = [
    "AGENTS",
    "AcnoPomcpAgent",
    "Agent",
    "AmrlQAgent",
    "AtmqAgent",
    "CompiledAgent",
    "DynaAtmqAgent",
    "ForesightAgent",
    "LearningAgent",
    "ObserveThenPlanAgent",
    "PolicyAgent",
    "PomcpAgent",
    "RandomAgent",
    "ScheduleAgent",
    "Task",
    "load",
    "make",
]

#: The class of each agent by name.
AGENTS: dict[str, type[Agent]] = {
    "atmq": AtmqAgent,
    "dyna-atmq": DynaAtmqAgent,
    "amrl-q": AmrlQAgent,
    "foresight": ForesightAgent,
    "acno-otp": ObserveThenPlanAgent,
    "acno-pomcp": AcnoPomcpAgent,
    "random": RandomAgent,
    "schedule": ScheduleAgent,
    "pomcp": PomcpAgent,
}


def make(name: str, **settings: Any) -> Agent:
    """Return a new agent by name; an unknown name or setting is an `AgentError` that suggests a known one.

    Examples
    --------
    >>> make("random", measure_probability=0.2)
    RandomAgent(measure_probability=0.2)
    """
    if isinstance(name, str) and name in AGENTS:
        settings = current_names(AGENTS[name], settings)
    return make_by_name("agent", name, AGENTS, settings, AgentError)


def load(path: str | os.PathLike[str]) -> LearningAgent:
    """Return the agent that was saved with `agent.save(path)`; trained further, it continues as if it had not been saved.

    A file that is damaged, or of another kind, is an `AgentError`.
    """
    kinds = {name: kind for name, kind in AGENTS.items() if issubclass(kind, LearningAgent)}
    return load_agent(path, kinds)
