"""Gymnasium environments in which measuring the state has a price.

Importing `actmeasure`, and with it this package, registers `actmeasure/FrozenLake-v0` and the other problems with Gymnasium, in
which other packages are registered by being imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from actmeasure.envs.registration import register_environments, runs_as_command

if TYPE_CHECKING:
    from actmeasure.envs.grid import Grid
    from actmeasure.envs.lake import FrozenLakeEnv
    from actmeasure.envs.look_statistics import LookStatistics, monitored
    from actmeasure.envs.tabular import ProblemEnv, TabularEnv
    from actmeasure.envs.wrapper import ActiveMeasuring

__all__ = [
    "ActiveMeasuring",
    "FrozenLakeEnv",
    "Grid",
    "LookStatistics",
    "ProblemEnv",
    "TabularEnv",
    "monitored",
    "register_environments",
]

# Imported when first used: the classes need Numba, registering does not.
_HOME = {
    "ActiveMeasuring": "wrapper",
    "FrozenLakeEnv": "lake",
    "Grid": "grid",
    "LookStatistics": "look_statistics",
    "ProblemEnv": "tabular",
    "TabularEnv": "tabular",
    "monitored": "look_statistics",
}

if not runs_as_command():
    register_environments()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"actmeasure.envs.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'actmeasure.envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
