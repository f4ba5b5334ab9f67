"""The former name of `actmeasure.inspection.page`, kept for existing code."""

from actmeasure.inspection.page import *  # noqa: F403
from actmeasure.inspection.page import __all__  # noqa: F401
