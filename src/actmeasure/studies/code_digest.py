"""A digest of the code that the results of a trial depend on, so that stored results of other code are recognised.

The digest covers the syntax of the modules that a trial runs: those of its agent or method, of its problem, of training or
planning, and all that they import of this library, of their own package, and of folders in which nothing is installed, such as
that of a study file; found without importing anything. Comments, docstrings, formatting, error classes, model
files, reports and the command line are left out, and so are installed packages: `study.json` holds the versions of NumPy, SciPy
and Numba.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actmeasure import learning, problems
from actmeasure.errors import StudyError, quoted
from actmeasure.learning.agent import Agent
from actmeasure.planning.solve import module_of
from actmeasure.settings import is_import_name
from actmeasure.studies.spec import Trial, import_name

__all__ = ["code_of", "module_digest", "own_code", "own_module", "what_computes"]

PACKAGE = "actmeasure"
#: The module that runs every trial, and modules that belong to trials of training and of planning only.
ROOT, TRAINING, PLANNING = "actmeasure.studies.trial", "actmeasure.learning.train", "actmeasure.studies.planning_trial"
#: Reads model files.
FILES = "actmeasure.files"
#: Wrappers of Gymnasium environments, which only trials on those depend on.
ENVIRONMENTS = ("actmeasure.envs.wrapper", "actmeasure.envs.grid")
#: Modules through which agents and problems of other packages reach everything that computes.
LISTS = (
    PACKAGE,
    "actmeasure.agents",
    "actmeasure.learning",
    "actmeasure.planners",
    "actmeasure.planning",
    "actmeasure.problems",
)
STUDIES = "actmeasure.studies"
#: Modules that no result depends on: packages that list all agents, problems and methods (those of a trial are followed from its
#: specification); the description, storage and running of trials; messages; checks of arguments; Ctrl-C; text and figures.
LEFT_OUT = frozenset(
    {
        PACKAGE,
        "actmeasure.errors",
        "actmeasure.interrupts",
        "actmeasure.progress",
        "actmeasure.settings",
        "actmeasure.statistics",
        "actmeasure.studies",
        "actmeasure.studies.store",
        "actmeasure.studies.spec",
        "actmeasure.planning.solution",
        "actmeasure.text",
        "actmeasure.drawing",
        "actmeasure.planning.plots",
        "actmeasure.planning.frontier",
        "actmeasure.planning.explain",
        "actmeasure.learning.saving",
        "actmeasure.learning",
        "actmeasure.problems",
        "actmeasure.planning",
        *ENVIRONMENTS,
    }
)
#: Syntax that may begin with a docstring.
DOCUMENTED = frozenset({ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef})
#: Hexadecimal digits of a digest, which is part of a file's name.
DIGITS = 16


def code_of(trial: Trial) -> str:
    """Return the digest of the code that computes a trial; found once in a process, so that it stays the same in it.

    Parameters
    ----------
    trial : Trial

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    agent = None if trial.agent is None else trial.agent.name
    problem = trial.problem
    if problem.gymnasium is not None:
        return _code(agent, None, (*_methods_module(trial), *ENVIRONMENTS, *_environment_modules(problem.gymnasium)))
    return _code(agent, None if problem.is_file else problem.name, _methods_module(trial))


def own_module(trial: Trial) -> str | None:
    """Return the module of the planning method of a trial, if that is not part of this library; otherwise None."""
    module = None if trial.agent is not None else module_of(trial.method)
    if module is None or module.partition(".")[0] == PACKAGE:
        return None
    if not _is_importable(module):
        raise StudyError(
            f"the planning method {quoted(trial.method)} is defined in {module!r}, which workers cannot import; define and "
            "register it in a module of its own that is installed, or on the path of Python"
        )
    return module


def _methods_module(trial: Trial) -> tuple[str, ...]:
    module = own_module(trial)
    return () if module is None else (module,)


def own_code(trial: Trial) -> dict[str, Any]:
    """Return what a worker imports before it runs a trial with code from outside of this library.

    Returns
    -------
    dict
        `modules`, a list of names; `agent`, the name `module:Class` of a registered agent, or None; and `path`, folders in which
        modules are found that are not installed.

    Raises
    ------
    StudyError
        If a worker cannot import it.
    """
    modules, registered = list(_methods_module(trial)), None
    if trial.agent is not None:
        kind = learning.class_of(trial.agent.name)
        if kind is not None and kind.__module__.partition(".")[0] != PACKAGE:
            where = import_name(kind, f"the agent {trial.agent.name!r}")
            registered = None if is_import_name(trial.agent.name) else where
            modules += [where.partition(":")[0], *_import_module_of(trial.agent.name)]
    modules += _environment_modules(trial.problem.gymnasium or "") or _import_module_of(trial.problem.name)
    for module in modules:
        if not _is_importable(module):
            raise StudyError(
                f"the module {module!r} of {_whose(trial, module)} cannot be imported by workers; write it into a file that is "
                "installed, on the path of Python, or beside the study file"
            )
    reached = [*modules, *sorted(_reached(modules, LEFT_OUT))] if modules else []
    folders = [str(folder) for module in reached if (folder := _own_folder(module)) is not None]
    return {"modules": list(dict.fromkeys(modules)), "agent": registered, "path": list(dict.fromkeys(folders))}


def _whose(trial: Trial, module: str) -> str:
    is_agents = trial.agent is not None and module not in (trial.problem.name, *_import_module_of(trial.problem.name))
    return (
        f"the agent {trial.agent.label!r}"
        if is_agents and trial.agent is not None
        else f"the problem {trial.problem.label!r}"
    )


def _import_module_of(name: str) -> list[str]:
    """Return the module of a name `package.module:Name`, in a list; nothing for other names."""
    return [name.partition(":")[0]] if is_import_name(name) else []


def _environment_modules(environment: str) -> list[str]:
    """Return the modules outside of Gymnasium that an environment comes from: that of its id, and that of its class."""
    import gymnasium

    module, colon, _ = environment.partition(":")
    known = gymnasium.registry.get(environment.partition(":")[2] if colon else environment)
    point = None if known is None else known.entry_point
    if point is None:
        home = ""
    elif isinstance(point, str):
        home = point.partition(":")[0]
    else:
        home = getattr(point, "__module__", "")
    modules = [module] * bool(colon) + [home] * bool(home)
    return [name for name in dict.fromkeys(modules) if name.partition(".")[0] != "gymnasium"]


def _own_folder(module: str) -> Path | None:
    """Return the folder that has to be on the path for a module; None if it is installed, or part of Python."""
    file = _source_file(module)
    if file is None:
        return None
    folder = file.resolve().parents[module.count(".") + (file.name == "__init__.py")]
    return None if folder in _installed() else folder


@cache
def _installed() -> frozenset[Path]:
    """Return the folders of Python itself and of installed packages."""
    named = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    return frozenset(Path(folder).resolve() for folder in named) | {Path(__file__).resolve().parents[2]}


def _is_importable(module: str) -> bool:
    """Return whether another process can import a module: not the main program, nor what was made without a file."""
    if module in sys.modules and getattr(sys.modules[module], "__file__", None) is None:
        return False
    try:
        return module != "__main__" and (module in sys.modules or find_spec(module) is not None)
    except (ImportError, ValueError):
        return False


def what_computes(trial: Trial) -> str:
    """Return what the digest of a trial's code depends on, in words: trials with the same words have the same digest."""
    what = trial.agent.name if trial.agent is not None else "plans" if own_module(trial) is None else trial.method
    return f"{what} on {'a model file' if trial.problem.is_file else trial.problem.name}"


@cache
def _code(agent: str | None, problem: str | None, own: tuple[str, ...]) -> str:
    """Return the digest for an agent (a plan, if None) on a problem (a model file or environment, if None).

    `own` has further modules: of a method from outside, or of an environment.
    """
    roots = [ROOT, *own]
    kind = None if agent is None else learning.class_of(agent)
    if agent is not None and kind is not None:
        family = [kind] if _is_ours(kind) else [each for each in kind.__mro__ if issubclass(each, Agent)]
        roots += [*map(_home_of, family), *_import_module_of(agent)]
    if problem in problems.PROBLEMS:
        roots.append(problems.PROBLEMS[problem].__module__)
    elif problem is not None:
        roots += _import_module_of(problem)
    is_file = problem is None and ENVIRONMENTS[0] not in own
    left_out = LEFT_OUT | ({PLANNING} if agent is not None else {TRAINING}) | (set() if is_file else {FILES})
    if problem is not None and _import_module_of(problem):
        left_out = left_out - set(ENVIRONMENTS)
    digest = hashlib.sha256()
    for name in sorted(_reached(roots, left_out)):
        digest.update(f"{name} {module_digest(name)}\n".encode())
    return digest.hexdigest()[:DIGITS]


def _home_of(kind: type[Any]) -> str:
    """Return the module of a class, as a worker imports it: the main program by the name of its file."""
    is_main = kind.__module__ == "__main__" and getattr(sys.modules["__main__"], "__file__", None) is not None
    return import_name(kind, "the agent").partition(":")[0] if is_main else kind.__module__


def _is_ours(kind: type[Any]) -> bool:
    return kind.__module__.partition(".")[0] == PACKAGE


def _reached(roots: list[str], left_out: frozenset[str]) -> set[str]:
    """Return the modules that these import, directly or not.

    Followed are our package, the packages that the roots are from, and, from outside of our package, what is not installed.
    """
    packages = {PACKAGE, *(root.partition(".")[0] for root in roots)}
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in reached or (name in left_out and name not in roots):
            continue
        reached.add(name)
        is_ours = name.partition(".")[0] == PACKAGE
        if "." in name and not is_ours:
            waiting.append(name.rpartition(".")[0])  # a package is imported before its modules
        for other in _module(name)[1]:
            if other.partition(".")[0] in packages or (not is_ours and other and _own_folder(other) is not None):
                waiting.append(other)
    return reached


def module_digest(name: str) -> str:
    """Return the digest of a module's syntax, without docstrings; or of its name if the source is unavailable."""
    return _module(name)[0]


@cache
def _module(name: str) -> tuple[str, frozenset[str]]:
    """Return a module's digest and the modules that it imports."""
    source = _source(name)
    if source is None:
        return hashlib.sha256(name.encode()).hexdigest(), frozenset()
    collects = gc.isenabled()
    gc.disable()  # of the many objects here none is garbage, and looking for it takes as long again
    try:
        tree = ast.parse(source)
        parts: list[str] = []
        _write(tree, parts)
    finally:
        if collects:
            gc.enable()
    digest = hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return digest, frozenset(_imports(tree, name, _is_package(name)))


def _source(name: str) -> bytes | None:
    """Return the source of a module, found by its name without importing it."""
    file = _source_file(name)
    try:
        return None if file is None else file.read_bytes()
    except OSError:
        return None


@cache
def _source_file(name: str) -> Path | None:
    """Return the source file of a module, None if there is none."""
    head, _, last = name.rpartition(".")
    if head.partition(".")[0] == PACKAGE:  # ours are beside this file, and looked up often
        folder = Path(__file__).parents[1].joinpath(*name.split(".")[1:])
        for file in (folder.with_suffix(".py"), folder / "__init__.py"):
            if file.is_file():
                return file
        return None
    known = getattr(sys.modules.get(name), "__file__", None)
    if known is None:
        try:
            spec = find_spec(name) if last else None
        except (ImportError, ValueError, AttributeError):  # a name that is no module's
            spec = None
        known = None if spec is None else spec.origin
    return Path(known) if known is not None and known.endswith(".py") else None


def _is_package(name: str) -> bool:
    file = _source_file(name)
    return file is not None and file.name == "__init__.py"


def _imports(tree: ast.Module, name: str, is_package: bool) -> Iterator[str]:
    """Return the modules that a module imports, at its top or in functions, but not for type hints alone."""
    is_ours = name.partition(".")[0] == PACKAGE
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
            if not is_ours and any(one.name.partition(".")[0] == PACKAGE for one in node.names):
                yield from _everything()  # as `am.solve(...)`: all can be reached from there, under any name
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name, is_package)
            yield base
            yield from (found for one in node.names for found in _home(base, one.name))
            if not is_ours and any(_is_list(base, one.name) for one in node.names):
                yield from _everything()
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case | ast.Module):
            waiting += ast.iter_child_nodes(node)  # expressions import nothing


def _absolute(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    """Return the name of the module that something is imported from."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    folder = parts[: len(parts) - node.level + is_package]
    return ".".join([*folder, *([node.module] if node.module else [])])


def _home(base: str, name: str) -> Iterator[str]:
    """Return the module that a name of a package is: a module in it, or the one that the package has the name from."""
    if not _is_package(base):
        return
    if _source_file(f"{base}.{name}") is not None:
        yield f"{base}.{name}"
    if base in LEFT_OUT:
        yield from _exported(base).get(name, ())


@cache
def _exported(package: str) -> dict[str, tuple[str, ...]]:
    """Return where a package has its names from; what it imports when first used is told to type checkers."""
    source = _source(package)
    tree = ast.parse(source or b"")
    return {
        one.asname or one.name: (_absolute(node, package, True),)
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names
    }  # fmt: skip


def _is_list(base: str, name: str) -> bool:
    """Return whether other names are reached through a name imported from our package: `agents`, `learning.make`, `*`."""
    if base not in LISTS:
        return False
    return (
        f"{base}.{name}" in LISTS
        or name == "*"
        or (name not in _exported(base) and _source_file(f"{base}.{name}") is None)
    )


@cache
def _everything() -> frozenset[str]:
    """Return the modules of all public names that compute something."""
    homes = {home for package in LISTS for found in _exported(package).values() for home in found}
    return frozenset(home for home in homes if not home.startswith(STUDIES))


def _write(node: ast.AST, parts: list[str]) -> None:
    """Write syntax as text, without positions and docstrings, and the same in all versions of Python that have it."""
    kind = type(node)
    parts.append("(" + kind.__name__)
    for field in kind._fields:
        value = getattr(node, field, None)
        if value is None or field == "ctx":  # whether something is read or written is told by where it is
            continue
        if isinstance(value, list):
            if not value:  # newer versions have more of those
                continue
            parts.append(field)
            for one in value[1:] if field == "body" and kind in DOCUMENTED and _is_text(value[0]) else value:
                if isinstance(one, ast.AST):
                    _write(one, parts)
                else:
                    parts.append(repr(one))
        elif isinstance(value, ast.AST):
            parts.append(field)
            _write(value, parts)
        else:
            parts.append(field + repr(value))
    parts.append(")")


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is nothing but text, as a docstring is."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
