"""A Numba dispatcher that compiles each function once, and keeps machine code under a digest of all kernels.

Numba compiles every function by itself with all that it calls: a function at the bottom of four others is optimised and
translated five times. Here a function that another kernel calls is only translated to LLVM IR, and becomes machine code once,
as a part of the kernel that Python calls, which takes a third of the time. This uses internals of Numba: where a version
lacks them, `jit` does without this module.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import multiprocessing
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
from numba.core import compiler, event, sigutils, types, typing
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.misc.appdirs import AppDirs

from actmeasure.kernels.jit import timed

__all__ = ["InnerKernel", "Kernel"]

NOTICE = "Compiling (once per installation) ..."
#: Age in seconds at which machine code of other versions is removed.
OLD = 24 * 3600.0


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled for the argument types of each call, from Python or from another kernel."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._parts: dict[tuple[types.Type, ...], _InnerFunction] = {}
        self._has_cache = False
        _digest_at_import(Path(self.py_func.__code__.co_filename).parent)

    def compile(self, signature: Any) -> Any:
        """Return the machine code for a call from Python with these argument types, read from disk if it is there."""
        with timed():
            if not self._has_cache:
                self._cache, self._has_cache = _cache_for(self.py_func), True
            return super().compile(signature)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template with which Numba types a call from another kernel."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        args = tuple(_widened(argument) for argument in args)
        if args not in self._parts:
            self._parts[args] = _InnerFunction(self, args)
        name = self.py_func.__name__
        signatures = [part.signature for part in self._parts.values()]
        return typing.make_concrete_template(f"CallTemplate({name})", name, signatures), signature, args, {}

    def get_overload(self, signature: Any) -> Any:
        """Return the part that is linked into another kernel which calls this function."""
        args, _ = sigutils.normalize_signature(signature)
        return self._parts[tuple(args)]


class InnerKernel(Kernel):
    """A kernel that is not compiled when Python calls it."""

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


class _InnerFunction:
    """A function as LLVM IR, to become machine code as a part of the kernels that call it."""

    def __init__(self, kernel: Kernel, args: tuple[types.Type, ...]) -> None:
        context, flags = kernel.targetctx, _part_flags(kernel.targetdescr.options, tuple(kernel.targetoptions.items()))
        with event.trigger_event("numba:compile", data={"dispatcher": kernel, "args": args, "return_type": None}):
            result = compiler.compile_extra(
                kernel.typingctx, context, kernel.py_func, args, None, flags, {},
                library=_PartLibrary(context.codegen(), kernel.py_func.__qualname__),
            )  # fmt: skip
        self.signature = result.signature
        context.insert_user_function(self, result.fndesc, [result.library])


class _Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags with the same hash, which depends on their names only and is computed once in place of 30,000 times."""

    __slots__ = ()
    _hash = hash(compiler.Flags())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


@functools.cache
def _part_flags(options: Any, targetoptions: tuple[tuple[str, Any], ...]) -> _Flags:
    """Return the flags of parts with these options of the decorator, one object for all of them, which is compared faster."""
    flags = _Flags()
    options.parse_as_flags(flags, dict(targetoptions))
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a `_InnerFunction`: linked with what it calls, but neither optimised nor translated to machine code."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _widened(argument: types.Type) -> types.Type:
    """Return the type of an argument in calls between kernels: int64 for all signed integers, so that each is compiled once."""
    plain = types.unliteral(argument)  # type: ignore[attr-defined]
    return types.int64 if isinstance(plain, types.Integer) and plain.signed else plain  # type: ignore[attr-defined]


class _Notice(event.Listener):  # type: ignore[misc]
    """Prints once that kernels are being compiled, which can take a minute; worker processes print nothing."""

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
    """Turn the notice off."""
    with contextlib.suppress(ValueError):  # it is off already
        event.unregister("numba:compile", _notice)


event.register("numba:compile", _notice)


class _CodeFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The machine code of one function: a file for each combination of argument types and processor.

    Numba's own files are numbered by an index. Two processes that compile at the same time can take the same number for different
    argument types, and the index then leads to code that was compiled for others.
    """

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._name(key), (key, data))

    def load(self, key: Any) -> Any:
        try:
            stored, data = self._load_data(self._name(key))
        except FileNotFoundError:
            return None
        return data if stored == key else None

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
    """Numba's cache, in a folder named after a digest of all kernels.

    Numba itself notices a change in the file of a function, but not in the files of functions that are compiled into it. Code
    that cannot be read is compiled again, and code that cannot be written is not kept.
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
    except (OSError, RuntimeError):  # RuntimeError: Numba found no folder
        return NullCache()


@functools.cache
def _digest_at_import(kernels: Path) -> str | None:
    """Return the digest of the kernels in a folder when the first of them was imported."""
    return _digest(kernels)


def _digest(kernels: Path) -> str | None:
    """Return a digest of the sources of the kernels in a folder, and of Numba's version; None where there are no sources."""
    try:
        sources = {path.name: path.read_bytes() for path in sorted(kernels.glob("*.py"))}
    except OSError:
        return None
    if not sources:  # as in an archive
        return None
    digest = hashlib.sha256(numba.__version__.encode())
    for name, source in sources.items():
        digest.update(f"\0{name}\0".encode() + source)
    return digest.hexdigest()[:16]


def _code_folder(kernels: Path) -> Path | None:
    """Return the folder for the machine code of the kernels in a folder, or None if none can be written to.

    It is None also where kernels were edited after they were imported: modules imported later are of the new version, and
    machine code of both is that of neither.
    """
    digest = _digest_at_import(kernels)
    return None if digest is None or _digest(kernels) != digest else _folder(kernels, f"actmeasure-{digest}")


@functools.cache
def _folder(kernels: Path, name: str) -> Path | None:
    for parent in _candidate_folders(kernels):
        folder = parent / name
        with contextlib.suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _remove_old(parent, folder)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _candidate_folders(kernels: Path) -> list[Path]:
    """Return the folders to try in this order: NUMBA_CACHE_DIR, or beside the kernels, then the user's cache folder."""
    if numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        return [Path(numba.config.CACHE_DIR)]  # type: ignore[attr-defined]
    user = Path(AppDirs("actmeasure", appauthor=False).user_cache_dir)
    return [kernels / "__pycache__", *([user] if user.is_absolute() else [])]


def _remove_old(parent: Path, new: Path) -> None:
    """Remove the machine code of other versions that is older than `OLD`."""
    with contextlib.suppress(OSError):
        for folder in parent.glob("actmeasure-*"):
            with contextlib.suppress(OSError):  # another process may be removing it too
                if folder != new and time.time() - folder.stat().st_mtime > OLD:
                    shutil.rmtree(folder, ignore_errors=True)
