"""Engines run trials: in processes of this machine, or on a Ray cluster. Both give the same results."""

from __future__ import annotations

from actmeasure.studies.engines.base import Engine, Order, Outcome
from actmeasure.studies.engines.local import LocalEngine
from actmeasure.studies.engines.ray import RayEngine

__all__ = ["Engine", "LocalEngine", "Order", "Outcome", "RayEngine"]
