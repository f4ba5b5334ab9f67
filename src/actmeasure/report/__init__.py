"""The former name of `actmeasure.studies.report`, kept for existing code."""

import actmeasure.paper  # noqa: F401  (registers its report, which was always known under this name)
from actmeasure.studies.report import *  # noqa: F403
from actmeasure.studies.report import __all__  # noqa: F401
