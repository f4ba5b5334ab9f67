"""Agents, which act and may learn by acting: the contract, the agents by name, `register`, `make` and `load`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from actmeasure.errors import AgentError, quoted, unknown_name
from actmeasure.learning.acno import AcnoPomcpAgent, ObserveThenPlanAgent
from actmeasure.learning.agent import Agent, CompiledAgent, Task
from actmeasure.learning.amrl_q import AmrlQAgent
from actmeasure.learning.atmq import AtmqAgent, DynaAtmqAgent
from actmeasure.learning.fixed_agents import PolicyAgent, PomcpAgent, RandomAgent, ScheduleAgent
from actmeasure.learning.foresight import ForesightAgent
from actmeasure.learning.learning_agent import LearningAgent, current_names
from actmeasure.learning.logs import CsvLog, TensorBoardLog, log_to
from actmeasure.learning.saving import load_agent
from actmeasure.settings import imported, is_import_name, make_by_name

__all__ = [
    "AGENTS",
    "ENTRY_POINTS",
    "AcnoPomcpAgent",
    "Agent",
    "AmrlQAgent",
    "AtmqAgent",
    "CompiledAgent",
    "CsvLog",
    "DynaAtmqAgent",
    "ForesightAgent",
    "LearningAgent",
    "ObserveThenPlanAgent",
    "PolicyAgent",
    "PomcpAgent",
    "RandomAgent",
    "ScheduleAgent",
    "Task",
    "TensorBoardLog",
    "class_of",
    "installed_names",
    "load",
    "log_to",
    "make",
    "register",
]

#: Group of the entry points with which installed packages offer agents by name.
ENTRY_POINTS = "actmeasure.agents"
#: The class of each agent by name: those of the library, and those that were registered.
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


def register(name: str, kind: Callable[..., Agent]) -> None:
    """Give an agent of your own a name, for `make`, `train_seeds`, studies and the command line.

    A registration lasts as long as the process. Workers of a study import the module in which the class is defined. An installed
    package offers an agent to every process with an entry point of the group `actmeasure.agents`. Without any of that
    `package.module:Class` is a name, too.

    Parameters
    ----------
    name : str
        Neither the name of another agent, nor with a colon.
    kind : class
        A subclass of `Agent`; arguments of its constructor are its settings.

    Examples
    --------
    >>> class Careful(RandomAgent):
    ...     def __init__(self, measure_probability=1.0):
    ...         super().__init__(measure_probability)
    >>> register("careful", Careful)
    >>> make("careful").measure_probability
    1.0
    >>> del AGENTS["careful"]
    """
    if not isinstance(name, str) or not name.strip() or ":" in name:
        raise AgentError(f"the name of an agent is {quoted(name)}, expected some text without a colon")
    if AGENTS.get(name) is kind:
        return
    if name in AGENTS:
        raise AgentError(f"the agent {name!r} exists already; choose another name")
    AGENTS[name] = _checked_class(kind, name)


def class_of(name: str) -> type[Agent] | None:
    """Return the class of an agent: shipped, registered, of an entry point, or `package.module:Class`; None if unknown."""
    if name in AGENTS:
        return AGENTS[name]
    if is_import_name(name):
        return _checked_class(imported("agent", name, AgentError), name)
    points = entry_points(group=ENTRY_POINTS, name=name)
    for point in points:
        try:
            loaded = point.load()
        except (Exception, SystemExit) as error:  # whatever a module raises when it is imported
            raise AgentError(
                f"the agent {name!r} of the entry point {point.value!r} cannot be imported: {type(error).__name__}: {error}; "
                "repair or remove that package"
            ) from error
        AGENTS[name] = _checked_class(loaded, name)
        return AGENTS[name]
    return None


def installed_names() -> list[str]:
    """Return the names of agents that installed packages offer with entry points, but for those that were made already."""
    return sorted(set(entry_points(group=ENTRY_POINTS).names) - set(AGENTS))


def _checked_class(kind: Any, name: str) -> type[Agent]:
    if not isinstance(kind, type) or not issubclass(kind, Agent):
        raise AgentError(f"the agent {name!r} is {quoted(kind)}, expected a subclass of actmeasure.agents.Agent")
    return kind


def make(name: str, **settings: Any) -> Agent:
    """Return a new agent by name; an unknown name or setting is an `AgentError` that suggests a known one.

    Names are those of the library (`actmeasure agents` lists them), of `register`, of entry points `actmeasure.agents` of
    installed packages, and `package.module:Class`.

    Examples
    --------
    >>> make("random", measure_probability=0.2)
    RandomAgent(measure_probability=0.2)
    """
    kind = class_of(name) if isinstance(name, str) else None
    if kind is None:
        raise AgentError(unknown_name("agent", name, [*AGENTS, *installed_names()]))
    return make_by_name("agent", name, {name: kind}, current_names(kind, settings), AgentError)


def load(path: str | os.PathLike[str]) -> LearningAgent:
    """Return the agent that was saved with `agent.save(path)`; trained further, it continues as if it had not been saved.

    A file that is damaged, or of another kind, is an `AgentError`.
    """
    kinds = {name: kind for name, kind in AGENTS.items() if issubclass(kind, LearningAgent)}
    return load_agent(path, kinds)
