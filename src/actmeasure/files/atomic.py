"""Write a file so that it is there completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from actmeasure.errors import ModelError

__all__ = ["explain", "remove_leftovers", "replacing"]


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` once it is written and on disk; on any failure `path` stays as it was.

    If it is not to be `durable`, the operating system puts it on disk when it likes, which is much faster: nothing is lost when
    the process is killed, but when the power fails the file may be damaged or not there.

    Raises
    ------
    OSError
        Where the operating system refuses; nothing is left behind.
    """
    target = Path(os.path.realpath(path))  # through a symbolic link, as a plain write would go
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not os.access(target, os.W_OK):  # replacing needs no right to the file, only to its folder
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".actmeasure-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    complete = False
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
        complete = True
    finally:
        if not complete:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    if durable:
        _settle(target.parent)


def remove_leftovers(folder: Path, process: int) -> None:
    """Remove what a process that was killed had begun to write in a folder; files of other processes stay."""
    for leftover in folder.glob(f".actmeasure-{process}-*.tmp"):
        with suppress(OSError):
            leftover.unlink()


def _settle(folder: Path) -> None:
    """Have the new name on disk too, where the system can do that for folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def explain(error: OSError, path: Path, doing: str) -> ModelError:
    """Say in a sentence why a file cannot be read or written (`doing`), and what to do."""
    match error.errno:
        case errno.ENOENT if doing == "read":
            reason = "there is no such file; check the path"
        case errno.ENOENT | errno.ENOTDIR:
            reason = "its folder does not exist; create it first"
        case errno.EISDIR:
            reason = "it is a folder; give the name of a file in it"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            reason = f"there is no permission to {doing} it; change the permissions or choose another place"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            reason = "the disk is full; make room or choose another place"
        case errno.ENAMETOOLONG:
            reason = "its name is too long; choose a shorter one"
        case _:
            reason = f"the operating system says {error.strerror or error!s}; check the disk or choose another place"
    return ModelError(f"cannot {doing} {path}: {reason}")
