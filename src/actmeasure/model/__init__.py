"""The decision model: dynamics, rewards, start distribution and measurements."""

from actmeasure.model.model import Model

__all__ = ["Model"]
