"""A clock that stands still while kernels are compiled."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator

__all__ = ["running_time", "spent", "timed"]


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
