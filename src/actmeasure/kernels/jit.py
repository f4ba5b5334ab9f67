"""The one decorator that compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba and keep the machine code on disk, so that only the first run ever pays for it."""
    return cast("Callable[P, R]", numba.njit(cache=True)(function))
