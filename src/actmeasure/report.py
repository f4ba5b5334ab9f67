"""The former name of `actmeasure.studies.report`, kept for existing code."""

from actmeasure.studies.report import *  # noqa: F403
from actmeasure.studies.report import __all__  # noqa: F401
