"""Agents: what acts, and may learn by acting."""

from __future__ import annotations

from typing import Any

from actmeasure.agents.base import Agent, CompiledAgent, Task
from actmeasure.agents.random import RandomAgent
from actmeasure.agents.schedule import ScheduleAgent
from actmeasure.errors import AgentError
from actmeasure.registry import make_by_name

__all__ = ["AGENTS", "Agent", "CompiledAgent", "RandomAgent", "ScheduleAgent", "Task", "make"]

#: All agents by name.
AGENTS: dict[str, type[Agent]] = {
    "random": RandomAgent,
    "schedule": ScheduleAgent,
}


def make(name: str, **settings: Any) -> Agent:
    """Make an agent by name; an unknown name or setting is an `AgentError` that says what was probably meant.

    Examples
    --------
    >>> make("random", measure_probability=0.2)
    RandomAgent(measure_probability=0.2)
    """
    return make_by_name("agent", name, AGENTS, settings, AgentError)
