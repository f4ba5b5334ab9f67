"""Ctrl-C that is held back until a computation can stop in a consistent state."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts", "deferred_interrupts"]


class Interrupts:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.requested = False

    def note(self, signum: int, frame: FrameType | None) -> None:
        """Record the first Ctrl-C; a second one raises `KeyboardInterrupt` at once."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed."""
        if self.requested:
            raise KeyboardInterrupt


@contextmanager
def deferred_interrupts() -> Iterator[Interrupts]:
    """Record Ctrl-C for the duration of a `with` block; it takes effect where `check` is called or `requested` is read.

    A signal that arrives inside a kernel would otherwise be raised between the kernel's work and the bookkeeping after it. Nested
    blocks share what was recorded. Outside the main thread, where Python delivers no signals, the block has no effect.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.note)
    outer = getattr(before, "__self__", None)
    if isinstance(outer, Interrupts):
        interrupts.requested = outer.requested
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
        if isinstance(outer, Interrupts):
            outer.requested |= interrupts.requested
