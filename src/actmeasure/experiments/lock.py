"""A folder that one process at a time writes to."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from actmeasure.errors import StudyError

try:
    import fcntl
except ImportError:  # not on Windows, where files are still written one by one and never half
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked"]

LOCK = ".lock"
TAKEN = (errno.EACCES, errno.EAGAIN)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a folder to this process; the operating system lets go of it when the process ends, however it ends."""
    place = directory / LOCK
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StudyError(f"cannot write to the folder {str(directory)!r}: {error.strerror}; choose another") from error
    try:
        _take(handle, directory)
        yield
    finally:
        os.close(handle)


def _take(handle: int, directory: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in TAKEN:
            raise StudyError(
                f"the folder {str(directory)!r} cannot be locked ({error.strerror}), so that two studies might write to it; "
                "choose one on another disk"
            ) from error
        owner = os.pread(handle, 20, 0).decode(errors="replace").strip()
        who = f" (process {owner})" if owner.isdigit() else ""
        raise StudyError(
            f"another study{who} is writing to {str(directory)!r}; wait until it is done, or choose another folder"
        ) from None
    with suppress(OSError):  # only to say who it is; the disk may be full
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
