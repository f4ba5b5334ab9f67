"""How much memory there is, and how many workers it suffices for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory", "total_memory", "workers_that_fit"]

MEMINFO = Path("/proc/meminfo")
#: Where containers have their limit, and what they use.
LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def total_memory() -> int | None:
    """Bytes of memory of this machine, or None if it does not tell."""
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def available_memory() -> int | None:
    """Bytes that can still be used here, or None if the machine does not tell."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) << 10)
    for limit, used in LIMITS:
        with suppress(OSError, ValueError):  # "max" where there is none
            found.append(max(0, int(Path(limit).read_text()) - int(Path(used).read_text())))
    return min(found, default=total_memory())


def workers_that_fit(needs: Sequence[int], most: int, available: int | None) -> int:
    """The largest number of workers, from 1 to `most`, that fit even if the hungriest trials meet.

    Parameters
    ----------
    needs : sequence of int
        Bytes that a worker takes for each trial.
    most : int
    available : int or None
        Bytes.

    Examples
    --------
    >>> workers_that_fit([300, 100, 200, 100], 4, available=600)
    3
    """
    hungriest = sorted(needs, reverse=True)[:most]
    fitting = len(hungriest)
    while available is not None and fitting > 1 and sum(hungriest[:fitting]) > available:
        fitting -= 1
    return max(1, fitting)
