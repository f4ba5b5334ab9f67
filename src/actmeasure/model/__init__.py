"""The decision model: dynamics, rewards, start distribution and measurements."""

from actmeasure.model.finite_life import lifetime
from actmeasure.model.measurement import Measurement
from actmeasure.model.model import Model
from actmeasure.model.system import Component, system

__all__ = ["Component", "Measurement", "Model", "lifetime", "system"]
