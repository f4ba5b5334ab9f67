"""The former name of `actmeasure.studies`, kept for existing code."""

from actmeasure.studies import *  # noqa: F403
from actmeasure.studies import __all__  # noqa: F401
