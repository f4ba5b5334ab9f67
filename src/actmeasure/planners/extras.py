"""Optional dependencies, imported when they are needed, or a sentence that says how to install them."""

from __future__ import annotations

from typing import Any

from actmeasure.errors import MissingExtraError

__all__ = ["matplotlib_for", "pandas_for"]


def pandas_for(feature: str) -> Any:
    """The module `pandas`."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error
    return pandas


def matplotlib_for(feature: str) -> Any:
    """The module `matplotlib`, with `matplotlib.figure` loaded."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError(feature, "plots") from error
    return matplotlib
