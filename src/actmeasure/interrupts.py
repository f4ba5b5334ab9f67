"""Ctrl-C that waits until nothing is half done."""

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
        """Remember the first Ctrl-C; a second one stops at once, for those in a hurry."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed; call it where stopping loses nothing."""
        if self.requested:
            raise KeyboardInterrupt


@contextmanager
def deferred_interrupts() -> Iterator[Interrupts]:
    """Hold Ctrl-C back until `check` is called or `requested` is looked at.

    A signal that arrives inside a kernel would otherwise strike between the kernel's work and its bookkeeping. Inside another
    such block, what either has noticed holds for both. Outside the main thread, where Python delivers no signals, nothing
    changes.
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
