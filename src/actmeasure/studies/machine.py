"""The machine that a study runs on: its memory, how many workers that suffices for, and the versions of what is installed."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from actmeasure import __version__
from actmeasure.errors import import_extra

__all__ = ["available_memory", "processor", "total_memory", "versions", "workers_that_fit"]

#: Files with the memory limit of a container and what is used of it (cgroups 2 and 1), which psutil does not tell.
LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
LIBRARIES = ("numpy", "scipy", "numba", "gymnasium", "pandas", "pyarrow")


def total_memory() -> int:
    """Return the bytes of memory of this machine."""
    return _memory()[0]


def available_memory() -> int:
    """Return the bytes of memory that can still be used: those of the machine, or of the container if it has fewer."""
    limits = [_memory()[1]]
    for limit, used in LIMITS:
        with suppress(OSError, ValueError):  # "max" where there is no limit
            limits.append(max(0, int(Path(limit).read_text()) - int(Path(used).read_text())))
    return min(limits)


def _memory() -> tuple[int, int]:
    """Return all memory of this machine and what is available of it, in bytes."""
    memory = import_extra("psutil", "running a study", "report").virtual_memory()
    return int(memory.total), int(memory.available)


def workers_that_fit(needs: Sequence[int], most: int, available: int) -> int:
    """Return the largest number of workers, from 1 to `most`, whose trials fit into memory, the largest ones at the same time.

    Parameters
    ----------
    needs : sequence of int
        Bytes that a worker takes for each trial.
    most : int
    available : int
        Bytes.

    Examples
    --------
    >>> workers_that_fit([300, 100, 200, 100], 4, available=600)
    3
    """
    largest = sorted(needs, reverse=True)[:most]
    fitting = len(largest)
    while fitting > 1 and sum(largest[:fitting]) > available:
        fitting -= 1
    return max(1, fitting)


def processor() -> str:
    """Return the name of the processor, "" if it is not known."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, colon, value = line.partition(":")
            if colon and name.strip() == "model name":
                return value.strip()
    return platform.processor()


def versions() -> dict[str, str]:
    """Return the versions of Python, actmeasure and the libraries that results may depend on, by name."""
    installed = {"python": platform.python_version(), "actmeasure": __version__}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            installed[library] = version(library)
    return installed
