"""Compilation of kernels: the decorators."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np

__all__ = ["compiled", "inner", "lean", "running_time", "spent", "timed"]

# ----------------------------------------------------------------------------------------------------
# A clock that stands still while kernels are compiled.
# ----------------------------------------------------------------------------------------------------


def running_time() -> float:
    """Return seconds on a clock that stands still while this thread compiles kernels, or reads compiled ones from disk.

    Only differences mean something. Whatever limits or reports the time of a computation uses this clock.
    """
    return time.perf_counter() - spent.seconds


class _Spent(threading.local):
    """Seconds spent on compiling, per thread, and whether it is at it."""

    seconds = 0.0
    is_compiling = False


spent = _Spent()


@contextlib.contextmanager
def timed() -> Iterator[None]:
    """Have the clock stand still meanwhile."""
    if spent.is_compiling:
        yield
        return
    spent.is_compiling, begun = True, time.perf_counter()
    # Numba makes millions of objects that stay; going over them again and again takes a twentieth of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        spent.is_compiling = False
        spent.seconds += time.perf_counter() - begun


P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba and keep the machine code on disk, so that only the first run ever pays for it.

    With NUMBA_DISABLE_JIT=1 the function runs as it is; integer overflow is then silent, as it is in machine code.
    """
    return _kernel(function)


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that neither makes nor returns an array, without counting references to the arrays it is passed.

    Numba counts them at every call, for every array in a named tuple, which takes ten times as long as a step of a simulation.
    """
    return _kernel(function, {"_nrt": False})


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """As `lean`, for a function so short that Python runs it as it is, and only kernels call it compiled."""
    return _kernel(function, {"_nrt": False}, is_inner=True)


def _kernel(function: Callable[P, R], options: dict[str, bool] | None = None, is_inner: bool = False) -> Callable[P, R]:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    kind = _kind(is_inner)
    if kind is None:  # slower to compile, which is then timed, but the same code
        try:
            return cast("Callable[P, R]", numba.njit(cache=True)(function))
        except RuntimeError:  # Numba's way to say that there is no folder to keep it in
            return cast("Callable[P, R]", numba.njit(function))
    targetoptions = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **(options or {})}
    return cast("Callable[P, R]", kind(function, targetoptions=targetoptions))


@cache
def _kind(is_inner: bool) -> Any:
    """Our own kind of dispatcher, or None where Numba's parts that it is made of are not as expected."""
    try:
        from actmeasure.kernels.dispatcher import InnerKernel, Kernel
    except (ImportError, AttributeError):
        return None
    return InnerKernel if is_inner else Kernel
