"""The former name of `actmeasure.planning`, kept for existing code."""

from actmeasure.planning import *  # noqa: F403
from actmeasure.planning import __all__  # noqa: F401
