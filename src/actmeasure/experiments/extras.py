"""What studies need beyond the core."""

from __future__ import annotations

from typing import Any

from actmeasure.errors import MissingExtraError

__all__ = ["arrow", "pandas", "parquet"]


def arrow(feature: str) -> Any:
    """The module `pyarrow`, or a sentence."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error
    return pyarrow


def parquet(feature: str) -> Any:
    """The module `pyarrow.parquet`, or a sentence."""
    arrow(feature)
    import pyarrow.parquet

    return pyarrow.parquet


def pandas(feature: str) -> Any:
    """The module `pandas`, or a sentence."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(feature, "data") from error
    return pandas
