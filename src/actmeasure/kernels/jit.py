"""Decorators that compile kernels with Numba, and a clock that does not count compiling."""

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

__all__ = ["compiled", "inlined", "inner", "no_refcount", "running_time", "spent", "timed"]


def running_time() -> float:
    """Return the seconds of a clock that is stopped while this thread compiles kernels, or reads compiled ones from disk.

    Only differences are meaningful. All time limits and reported times use this clock.
    """
    return time.perf_counter() - spent.seconds


class _Spent(threading.local):
    """Seconds that the thread has spent on compiling, and whether it is compiling now."""

    seconds = 0.0
    is_compiling = False


spent = _Spent()


@contextlib.contextmanager
def timed() -> Iterator[None]:
    """Stop the clock of `running_time` for the duration of a `with` block."""
    if spent.is_compiling:
        yield
        return
    spent.is_compiling, begun = True, time.perf_counter()
    # Compiling makes millions of objects that are kept; garbage collection would take a twentieth of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.collect(1)  # of these objects: it would come next, and be counted as running time
            gc.enable()
        spent.is_compiling = False
        spent.seconds += time.perf_counter() - begun


P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with Numba and keep the machine code on disk, so that it is compiled once.

    With NUMBA_DISABLE_JIT=1 the function is not compiled; integer overflow is then silent, as in machine code.
    """
    return _kernel(function)


def no_refcount(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that neither creates nor returns an array, without reference counts of the arrays it is passed.

    Numba counts references at every call, for every array in a named tuple, which takes ten times as long as a simulated step.
    """
    return _kernel(function, {"_nrt": False})


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as `no_refcount` does, and copy the code into the callers: for functions that are called in an innermost loop.

    A call passes every array of a named tuple as seven words, so that calls with several tuples take longer than short functions.
    """
    return _kernel(function, {"_nrt": False, "forceinline": True})


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as `no_refcount` does, for short functions: kernels call them compiled, Python calls them uncompiled."""
    return _kernel(function, {"_nrt": False}, is_inner=True)


def _kernel(function: Callable[P, R], options: dict[str, bool] | None = None, is_inner: bool = False) -> Callable[P, R]:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    kind = _kind(is_inner)
    if kind is None:  # the same code, slower to compile
        try:
            return cast("Callable[P, R]", numba.njit(cache=True)(function))
        except RuntimeError:  # Numba found no folder for its cache
            return cast("Callable[P, R]", numba.njit(function))
    targetoptions = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **(options or {})}
    return cast("Callable[P, R]", kind(function, targetoptions=targetoptions))


@cache
def _kind(is_inner: bool) -> Any:
    """Return the class of `actmeasure.kernels.dispatcher`, or None where this version of Numba lacks a part it needs."""
    try:
        from actmeasure.kernels.dispatcher import InnerKernel, Kernel
    except (ImportError, AttributeError):
        return None
    return InnerKernel if is_inner else Kernel
