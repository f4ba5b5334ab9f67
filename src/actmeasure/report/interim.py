"""The former name of `actmeasure.studies.report.interim`, kept for existing code."""

from actmeasure.studies.report.interim import *  # noqa: F403
from actmeasure.studies.report.interim import __all__  # noqa: F401
