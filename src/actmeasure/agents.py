"""The former name of `actmeasure.learning`, kept for existing code."""

from actmeasure.learning import *  # noqa: F403
from actmeasure.learning import __all__  # noqa: F401
