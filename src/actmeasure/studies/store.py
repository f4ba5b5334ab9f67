"""The trial store: a folder with one Parquet file per trial, named by the hashes of its specification and of the code it ran.

Results of other code stay where they are, and are used again when that code is back.

A file is written under a temporary name and renamed, so that it is there completely or not at all. It holds the specification
and a checksum of the data; a file that is damaged, or not what its name says, is noticed when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from actmeasure import __version__
from actmeasure.errors import StudyError, first_line, import_extra, quoted
from actmeasure.file_access import explain, replacing
from actmeasure.studies.spec import Trial, canonical

if TYPE_CHECKING:
    import pyarrow

__all__ = ["DamagedError", "Store", "StoredTrial", "arrow", "locked", "open_store", "parquet"]

TRIALS, DAMAGED, STUDY, LOCK = "trials", "damaged", "study.json", ".lock"
#: Entry of the Parquet metadata with specification, checksum, seconds, version and code.
ABOUT = b"actmeasure"
FEATURE = "a folder of results"


class DamagedError(Exception):
    """A stored file is damaged, or not what its name says; the message says why."""


class StoredTrial(NamedTuple):
    """The table of a trial, the seconds that it took, and the version of actmeasure and digest of the code that computed it."""

    table: pyarrow.Table
    seconds: float
    version: str
    code: str


class Store:
    """The folder of a study, for reading; `open_store` gives one for writing.

    Parameters
    ----------
    directory : Path
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._names: dict[str, list[str]] | None = None

    def path(self, trial: Trial, code: str) -> Path:
        """Return the path of a trial's table as computed by the code with this digest ("" for tables of older versions)."""
        return self.directory / TRIALS / f"{trial.hash}{'-' * bool(code)}{code}.parquet"

    def read(self, trial: Trial, code: str) -> StoredTrial | None:
        """Return a trial's table as computed by the code with this digest, or None if it is not there.

        Raises
        ------
        DamagedError
            If there is a file, but not one of this trial.
        """
        return self._read(self.path(trial, code), trial)

    def read_other(self, trial: Trial, code: str) -> StoredTrial | None:
        """Return the newest readable table of a trial that other code has computed, or None."""
        if self._names is None:  # once, before anything is written
            self._names = defaultdict(list)
            for path in sorted((self.directory / TRIALS).glob("*.parquet")):
                self._names[path.stem.partition("-")[0]].append(path.name)
        places = [self.directory / TRIALS / name for name in self._names.get(trial.hash, ())]
        for path in sorted(places, key=_age):
            if path != self.path(trial, code):
                with suppress(DamagedError):
                    return self._read(path, trial)
        return None

    def _read(self, path: Path, trial: Trial) -> StoredTrial | None:
        try:
            contents = path.read_bytes()
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise DamagedError("it is a folder") from None
        except OSError as error:
            raise StudyError(str(explain(error, path, "read"))) from error
        return _parsed(contents, trial)

    def write(self, trial: Trial, table: pyarrow.Table, seconds: float, code: str) -> None:
        """Store a trial's table, computed by the code with this digest."""
        about = {
            "specification": trial.specification, "sha256": _checksum(table), "seconds": seconds, "version": __version__,
            "code": code,
        }  # fmt: skip
        path = self.path(trial, code)
        try:
            # Should the power fail before this is on disk, the checksum tells, and the trial is done again.
            with replacing(path, durable=False) as file:
                stamped = table.replace_schema_metadata({ABOUT: canonical(about).encode()})
                parquet(FEATURE).write_table(stamped, file, compression="zstd")
        except OSError as error:
            raise StudyError(
                f"{explain(error, path, 'write')}; what is stored already is safe, and running again does what is missing"
            ) from error

    def set_aside(self, path: Path) -> Path:
        """Move a damaged file to the folder `damaged`, under a free name, which is returned."""
        folder = self.directory / DAMAGED
        try:
            folder.mkdir(exist_ok=True)
            number = 1
            while (target := folder / f"{path.stem}-{number}{path.suffix}").exists():
                number += 1
            path.rename(target)
        except OSError as error:
            raise StudyError(str(explain(error, path, "move"))) from error
        return target

    def read_study(self) -> dict[str, Any] | None:
        """Return the contents of `study.json`, or None if there is none.

        Raises
        ------
        DamagedError
            If it cannot be read.
        """
        path = self.directory / STUDY
        try:
            study = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StudyError(str(explain(error, path, "read"))) from error
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"it is no JSON ({error})") from error
        if not isinstance(study, dict) or not isinstance(study.get("name"), str):
            raise DamagedError("it names no study")
        return study

    def write_study(self, data: dict[str, Any]) -> None:
        """Write `study.json`."""
        path = self.directory / STUDY
        try:
            with replacing(path) as file:
                file.write((json.dumps(data, indent=1, allow_nan=False) + "\n").encode())
        except OSError as error:
            raise StudyError(str(explain(error, path, "write"))) from error


@contextmanager
def open_store(directory: Path, name: str) -> Iterator[Store]:
    """Open a folder of results for writing, locked against other processes.

    Parameters
    ----------
    directory : Path
        Created if it is not there. One that holds something else than results is a `StudyError`: reports are written to it.
    name : str
        Name of the study. The folder of another study is a `StudyError`.
    """
    _create(directory)
    _refuse_other_contents(directory)
    with locked(directory):
        store = Store(directory)
        _check_study(store, name)
        _create(directory / TRIALS)
        for leftover in (directory / TRIALS).glob(".actmeasure-*.tmp"):  # of a process that was killed
            with suppress(OSError):
                leftover.unlink()
        yield store


def _create(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StudyError(f"the folder of results {str(directory)!r} is, or is below, a file; choose another") from None
    except OSError as error:
        raise StudyError(
            f"the folder of results {str(directory)!r} cannot be made: {error.strerror}; choose another"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StudyError(f"there is no permission to write to {str(directory)!r}; change it or choose another folder")


def _refuse_other_contents(directory: Path) -> None:
    """Raise an error for a folder of something else, whose files a report might replace; hidden files are never replaced."""
    try:
        others = sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise StudyError(str(explain(error, directory, "read"))) from error
    if others and not {STUDY, TRIALS} & set(others):
        raise StudyError(
            f"the folder {str(directory)!r} holds something else than results of a study ({quoted(others[0])}), which might be "
            "written over; choose an empty folder"
        )


def _check_study(store: Store, name: str) -> None:
    """Raise an error for the folder of another study; a damaged `study.json` beside trials is set aside and written anew."""
    path = store.directory / STUDY
    try:
        before = store.read_study()
    except DamagedError as error:
        if not (store.directory / TRIALS).is_dir():
            raise StudyError(f"{path} is not of a study, {error}; choose another folder") from None
        store.set_aside(path)
        return
    if before is not None and before["name"] != name:
        raise StudyError(
            f"{str(store.directory)!r} holds the study {quoted(before['name'])}, not {name!r}; choose another folder, or rename "
            "the study"
        )


def _parsed(contents: bytes, trial: Trial) -> StoredTrial:
    """Return the table of a file after all checks: readable, of this trial, checksum."""
    errors = (arrow(FEATURE).ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError)
    try:
        table = parquet(FEATURE).read_table(io.BytesIO(contents))
        about = json.loads(table.schema.metadata[ABOUT])
        specification, checksum = about["specification"], about["sha256"]
        seconds, version, code = float(about["seconds"]), str(about["version"]), str(about.get("code", ""))
        actual = _checksum(table)
    except errors as error:
        raise DamagedError(f"it cannot be read ({first_line(error):.200})") from error
    if specification != trial.specification:
        raise DamagedError("it is of another trial")
    if actual != checksum:
        raise DamagedError("its checksum is wrong")
    return StoredTrial(table.replace_schema_metadata(None), seconds, version, code)


def _age(path: Path) -> float:
    """Return a key that sorts the newest files first."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _checksum(table: pyarrow.Table) -> str:
    """Return the SHA-256 of names, types and values, which is the same in every version of the Parquet format."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name} {column.type} {len(column)} {column.null_count}\n".encode())
        is_text = str(column.type) == "string"
        digest.update(json.dumps(column.to_pylist()).encode() if is_text else column.to_numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a folder to this process; the operating system releases the lock when the process ends, however it ends."""
    filelock = import_extra("filelock", FEATURE, "report")
    path = directory / LOCK
    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        owner = _owner(path)
        who = f" (process {owner})" if owner.isdigit() else ""
        raise StudyError(
            f"another study{who} is writing to {str(directory)!r}; wait until it is done, or choose another folder"
        ) from None
    except (OSError, NotImplementedError) as error:
        raise StudyError(
            f"the folder {str(directory)!r} cannot be locked ({first_line(error):.200}), so that two studies might write to it; "
            "choose one on another disk"
        ) from error
    try:
        with suppress(OSError):  # the number only serves the message above; the disk may be full
            path.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def _owner(path: Path) -> str:
    """Return what a lock file says about the process that holds the lock."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def arrow(feature: str) -> Any:
    """Return the module `pyarrow`; an error says how to install it, for `feature`."""
    return import_extra("pyarrow", feature, "report")


def parquet(feature: str) -> Any:
    """Return the module `pyarrow.parquet`, likewise."""
    return import_extra("pyarrow.parquet", feature, "report")
