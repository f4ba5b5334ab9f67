"""The one decorator that compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba and keep the machine code on disk, so that only the first run ever pays for it.

    With NUMBA_DISABLE_JIT=1 the function runs as it is; integer overflow is then silent, as it is in machine code.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    return cast("Callable[P, R]", numba.njit(cache=True)(function))
