"""Write files atomically, explain errors of the operating system, and check paths before long work begins."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from actmeasure.errors import ActMeasureError, ModelError, quoted

__all__ = ["check_suffix", "check_writable", "explain", "path_of", "remove_leftovers", "replacing", "usable_path"]


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends; on any failure `path` stays unchanged.

    With `durable` the contents are flushed to disk before the file is replaced. Without it writing is much faster and still
    safe when the process is killed, but after a power failure the file may be damaged or missing.

    Raises
    ------
    OSError
        If the operating system refuses; the temporary file is removed.
    """
    target = Path(os.path.realpath(path))  # follow a symbolic link, as an ordinary write does
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():  # a device or a pipe would be gone
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(path))
    if target.exists() and not os.access(target, os.W_OK):  # replacing a file needs permission for its folder only
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
    """Remove the temporary files that a killed process left in a folder; those of other processes stay."""
    for leftover in folder.glob(f".actmeasure-{process}-*.tmp"):
        with suppress(OSError):
            leftover.unlink()


def _settle(folder: Path) -> None:
    """Flush a folder's entries to disk, on systems that can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def explain(error: OSError, path: Path, doing: str) -> ModelError:
    """Return a `ModelError` that tells why a file cannot be read or written (`doing`), and what to do."""
    match error.errno:
        case errno.ENOENT if doing == "read":
            reason = "there is no such file; check the path"
        case errno.ENOENT | errno.ENOTDIR:
            reason = "its folder does not exist; create it first"
        case errno.EISDIR:
            reason = "it is a folder; give the name of a file in it"
        case errno.EOPNOTSUPP:
            reason = "it is a device or a pipe, which only a whole file could replace; give the name of a file"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            reason = f"there is no permission to {doing} it; change the permissions or choose another place"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            reason = "the disk is full; make room or choose another place"
        case errno.ENAMETOOLONG:
            reason = "its name is too long; choose a shorter one"
        case _:
            reason = f"the operating system says {error.strerror or error!s}; check the disk or choose another place"
    return ModelError(f"cannot {doing} {path}: {reason}")


def usable_path(path: object) -> Path | None:
    """Return a path, or None if it is not one: of another type, or with characters that no file name has."""
    try:
        usable = Path(path)  # type: ignore[arg-type]
        return None if b"\0" in os.fsencode(usable) else usable
    except (TypeError, UnicodeEncodeError):
        return None


def path_of(path: object, suffix: str, error: type[ActMeasureError]) -> Path:
    """Return a path that ends in `suffix`, or raise `error`."""
    usable = usable_path(path)
    if usable is None or usable.suffix.lower() != suffix:
        raise error(f"the path is {quoted(path)}, expected the name of a file that ends in {suffix}")
    return usable


def check_suffix(path: Path, what: str, suffixes: Sequence[str], error: type[ActMeasureError]) -> None:
    """Raise `error` if a file name does not end in one of `suffixes`, the formats of `what`, such as "the picture"."""
    if path.suffix.lower() not in suffixes:
        raise error(
            f"{what} {str(path)!r} cannot be written with the ending {path.suffix!r}, only as {' or '.join(suffixes)}; "
            f"choose a name such as {path.stem or 'plan'}{suffixes[0]}"
        )


def check_writable(path: Path, what: str, error: type[ActMeasureError]) -> None:
    """Raise `error` if `what`, such as "the picture", cannot be written to a path."""
    if path.is_dir():
        raise error(f"{what} {str(path)!r} cannot be written, it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise error(f"{what} {str(path)!r} cannot be written, it is a device or a pipe; give the name of a file")
    if not path.parent.is_dir():
        raise error(f"{what} {str(path)!r} cannot be written, there is no folder {str(path.parent)!r}; make it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise error(f"{what} {str(path)!r} cannot be written, there is no permission to; choose another place")
