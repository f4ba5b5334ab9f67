"""The two decorators that compile a kernel."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba and keep the machine code on disk, so that only the first run ever pays for it.

    With NUMBA_DISABLE_JIT=1 the function runs as it is; integer overflow is then silent, as it is in machine code.
    """
    return _compiled(function, {})


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that neither makes nor returns an array, without counting references to the arrays it is passed.

    Numba counts them at every call, for every array in a named tuple, which takes ten times as long as a step of a simulation.
    """
    return _compiled(function, {"_nrt": False})


def _compiled(function: Callable[P, R], options: dict[str, bool]) -> Callable[P, R]:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    return cast("Callable[P, R]", numba.njit(cache=True, **options)(function))  # type: ignore[call-overload]


def _forget_old_code(folder: Path) -> None:
    """Remove kept machine code if any kernel has changed.

    Numba notices a change in the file of a function, but not in those of the functions that it calls and has compiled into it.
    """
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()
    kept = folder / "__pycache__"
    stamp = kept / "kernels.sha256"
    with contextlib.suppress(OSError):  # an installation that cannot be written to keeps no machine code here either
        if stamp.exists() and stamp.read_text() == digest:
            return
        for path in kept.glob("*.nb[ic]"):
            path.unlink(missing_ok=True)
        kept.mkdir(exist_ok=True)
        stamp.write_text(digest)


_forget_old_code(Path(__file__).parent)
