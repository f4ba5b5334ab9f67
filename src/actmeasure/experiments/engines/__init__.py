"""Where trials are run: in processes of this machine, or on a Ray cluster. Both give the same results."""

from actmeasure.experiments.engines.base import Engine, Order, Outcome
from actmeasure.experiments.engines.local import LocalEngine
from actmeasure.experiments.engines.ray import RayEngine

__all__ = ["Engine", "LocalEngine", "Order", "Outcome", "RayEngine"]
