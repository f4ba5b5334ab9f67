"""Compilation of kernels: the decorators, where machine code is kept, and how long compiling took.

Numba compiles every function by itself, with all that it calls: what stands below four others is optimised and translated five
times. Here a function that is called by another kernel is only translated to LLVM's language, and becomes machine code once, as a
part of the kernel that Python calls. That takes a third of the time.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import compiler, event, sigutils, types, typing
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.misc.appdirs import AppDirs

__all__ = ["compiled", "inner", "lean", "running_time"]

P = ParamSpec("P")
R = TypeVar("R")

NOTICE = "Compiling (once per installation) ..."
#: Machine code of other versions is removed when it is that old, in seconds.
OLD = 24 * 3600.0


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with Numba and keep the machine code on disk, so that only the first run ever pays for it.

    With NUMBA_DISABLE_JIT=1 the function runs as it is; integer overflow is then silent, as it is in machine code.
    """
    return _kernel(Kernel, function, {})


def lean(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that neither makes nor returns an array, without counting references to the arrays it is passed.

    Numba counts them at every call, for every array in a named tuple, which takes ten times as long as a step of a simulation.
    """
    return _kernel(Kernel, function, {"_nrt": False})


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """As `lean`, for a function so short that Python runs it as it is, and only kernels call it compiled."""
    return _kernel(_InnerKernel, function, {"_nrt": False})


def running_time() -> float:
    """Return seconds on a clock that stands still while this thread compiles kernels, or reads compiled ones from disk.

    Only differences mean something. Whatever limits or reports the time of a computation uses this clock.
    """
    return time.perf_counter() - _spent.seconds


def _kernel(kind: type[Kernel], function: Callable[P, R], options: dict[str, bool]) -> Callable[P, R]:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(over="ignore")(function)
    targetoptions = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}
    return cast("Callable[P, R]", kind(function, targetoptions=targetoptions))


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled for the types it is called with: with a way in from Python, or into another kernel."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._parts: dict[tuple[types.Type, ...], _Part] = {}
        self._has_cache = False

    def compile(self, signature: Any) -> Any:
        """Return the machine code for a call from Python with these argument types, from disk if it is there."""
        with _timed():
            if not self._has_cache:
                self._cache, self._has_cache = _cache_for(self.py_func), True
            return super().compile(signature)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how Numba types a call from another kernel."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        args = tuple(_widened(argument) for argument in args)
        if args not in self._parts:
            self._parts[args] = _Part(self, args)
        name = self.py_func.__name__
        signatures = [part.signature for part in self._parts.values()]
        return typing.make_concrete_template(f"CallTemplate({name})", name, signatures), signature, args, {}

    def get_overload(self, signature: Any) -> Any:
        """Return what stands for the function in the code of another kernel."""
        args, _ = sigutils.normalize_signature(signature)
        return self._parts[tuple(args)]


class _InnerKernel(Kernel):
    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class _Part:
    """A function in LLVM's language, to be made machine code as a part of the kernels that call it."""

    def __init__(self, kernel: Kernel, args: tuple[types.Type, ...]) -> None:
        context = kernel.targetctx
        flags = compiler.Flags()
        kernel.targetdescr.options.parse_as_flags(flags, kernel.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        with event.trigger_event("numba:compile", data={"dispatcher": kernel, "args": args, "return_type": None}):
            result = compiler.compile_extra(
                kernel.typingctx, context, kernel.py_func, args, None, flags, {},
                library=_PartLibrary(context.codegen(), kernel.py_func.__qualname__),
            )  # fmt: skip
        self.signature = result.signature
        context.insert_user_function(self, result.fndesc, [result.library])


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a `_Part`: linked with what it calls, but neither optimised as a whole nor made machine code."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _widened(argument: types.Type) -> types.Type:
    """The type as which an argument is passed on: one for all signed integers, so that nothing is compiled once for each."""
    plain = types.unliteral(argument)  # type: ignore[attr-defined]
    return types.int64 if isinstance(plain, types.Integer) and plain.signed else plain  # type: ignore[attr-defined]


# How long it took, and the notice


class _Spent(threading.local):
    """Seconds spent on compiling, per thread, and whether it is at it."""

    seconds = 0.0
    is_compiling = False


_spent = _Spent()


@contextlib.contextmanager
def _timed() -> Iterator[None]:
    if _spent.is_compiling:
        yield
        return
    _spent.is_compiling, begun = True, time.perf_counter()
    # Numba makes millions of objects that stay; going over them again and again takes a twentieth of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        _spent.is_compiling = False
        _spent.seconds += time.perf_counter() - begun


class _Notice(event.Listener):  # type: ignore[misc]
    """Says once that kernels are being compiled, since nothing else happens meanwhile; worker processes keep silent."""

    def on_start(self, event: event.Event) -> None:
        if not isinstance(event.data["dispatcher"], Kernel):
            return
        _silence()
        if sys.stderr is not None and multiprocessing.parent_process() is None:
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


_notice = _Notice()


def _silence() -> None:
    """Do not say (again) that kernels are being compiled."""
    with contextlib.suppress(ValueError):  # it is said already
        event.unregister("numba:compile", _notice)


event.register("numba:compile", _notice)


# Where machine code is kept


class _CodeFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The machine code of one function: a file for each combination of argument types and processor.

    Numba's own files are numbered by an index. Two processes that compile at the same time can take the same number for different
    argument types, and the index then leads to code that was compiled for others.
    """

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._name(key), (key, data))

    def load(self, key: Any) -> Any:
        try:
            found, data = self._load_data(self._name(key))
        except FileNotFoundError:
            return None
        return data if found == key else None

    def _name(self, key: Any) -> str:
        return f"{Path(self._index_name).stem}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


class _Locator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, line: int, folder: Path) -> None:
        self._line, self._folder = line, folder

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        folder = _code_folder(Path(file).parent)
        return None if folder is None else cls(function.__code__.co_firstlineno, folder)


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, in a folder that is named after the code of all kernels.

    Numba itself notices a change in the file of a function, but not in those of the functions that are compiled into it. What
    cannot be read is compiled anew, and what cannot be written is not kept.
    """

    _impl_class = _CacheImpl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _CodeFiles(self._cache_path, self._impl.filename_base, None)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception:  # whatever a damaged file leads to
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(signature, result)


def _cache_for(function: Any) -> FunctionCache | NullCache:
    try:
        return _KernelCache(function)
    except (OSError, RuntimeError):  # RuntimeError is Numba's way to say that there is no folder
        return NullCache()


@functools.cache
def _code_folder(kernels: Path) -> Path | None:
    """The folder for the machine code of the kernels in a folder, or None where none can be written to."""
    sources = sorted(kernels.glob("*.py"))
    if not sources:  # in an archive; whether they have changed cannot be seen
        return None
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sources:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    name = f"actmeasure-{digest.hexdigest()[:16]}"
    for place in _places(kernels):
        folder = place / name
        with contextlib.suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _remove_old(place, folder)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _places(kernels: Path) -> list[Path]:
    """Where machine code may be kept, in this order: where NUMBA_CACHE_DIR says, beside the kernels, in the user's cache."""
    if numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        return [Path(numba.config.CACHE_DIR)]  # type: ignore[attr-defined]
    user = Path(AppDirs("actmeasure", appauthor=False).user_cache_dir)
    return [kernels / "__pycache__", *([user] if user.is_absolute() else [])]


def _remove_old(place: Path, new: Path) -> None:
    """Remove the machine code of versions that were last compiled long ago."""
    for folder in place.glob("actmeasure-*"):
        if folder != new and time.time() - folder.stat().st_mtime > OLD:
            shutil.rmtree(folder, ignore_errors=True)
