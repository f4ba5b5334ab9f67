"""Studies from files: TOML, which is data, or Python, which is run."""

from __future__ import annotations

import os
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from actmeasure.errors import ActMeasureError, StudyError, quoted, unknown_name
from actmeasure.file_access import explain
from actmeasure.files.checks import validation_path
from actmeasure.files.toml_lines import KeyLines, KeyPath
from actmeasure.learning.train import task_of
from actmeasure.model import Model
from actmeasure.planning.solve import method_of
from actmeasure.settings import between_0_and_1, is_import_name
from actmeasure.studies.spec import (
    COUNTS,
    AgentSpec,
    Part,
    ProblemSpec,
    Study,
    checked_count,
    checked_label,
    checked_name,
    is_model_file,
    label_of,
)
from actmeasure.studies.sweeps import Sweep
from actmeasure.studies.trial import build_world, new_agent

__all__ = ["read_study", "study_from_python", "study_from_toml"]

#: How `tomllib` ends a message about syntax.
SYNTAX = re.compile(r"(.*) \(at line (\d+), column \d+\)", re.DOTALL)
#: `__name__` of a Python file whose own name is that of another module, or none; never `__main__`, so that it may have lines for
#: when it is run as a script.
NAME = "actmeasure_study"
NO_SWEEP = Sweep("", {})

Spec = TypeVar("Spec", ProblemSpec, AgentSpec)


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a `.toml` or `.py` file.

    A Python file is run, so only give one that you trust; it has to define `study = Study(...)`. Model files that a TOML file
    names are looked for beside it. Whatever is wrong is a `StudyError` with file and line.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    readers = {".toml": study_from_toml, ".py": study_from_python}
    if suffix not in readers:
        raise StudyError(f"{path}: {unknown_name('file ending', path.suffix, readers)}")
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise StudyError(str(explain(error, path, "read"))) from error
    try:
        text = contents.decode()
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{path}, line {line}: this is not UTF-8 text; save the file as UTF-8") from None
    return readers[suffix](text, path)


def study_from_toml(text: str, path: Path) -> Study:
    """Return the study of a TOML text from the file `path`, in whose folder model files are looked for."""
    try:
        data, lines = tomllib.loads(text), KeyLines.of(text, str(path))
    except tomllib.TOMLDecodeError as error:
        match = SYNTAX.fullmatch(str(error))
        said, where = (match[1], f", line {match[2]}") if match else (str(error), "")
        raise StudyError(f"{path}{where}: {said}") from None
    except ValueError:  # of `int`
        raise StudyError(f"{path}: it has a number of too many digits; write it in a shorter way") from None
    except RecursionError:
        raise StudyError(f"{path}: its arrays and tables are nested too deeply; write it in a simpler way") from None
    reader = _StudyReader(path, lines)
    try:
        table = msgspec.convert(data, StudyTable)
    except msgspec.ValidationError as error:
        keys, key = validation_path(error, data)
        with reader.at(*keys, *([] if key is None else [key])):
            raise StudyError(_refusal(data, keys, key)) from None
    folder = str(path.resolve().parent)
    with reader.at("part"):
        _check_modules(_modules(table), Path(folder))
    # As for a script: own modules are looked for beside the file first, also when they are imported later.
    if _modules(table) and folder not in sys.path:
        sys.path.insert(0, folder)
    return reader.study(table)


def _modules(table: StudyTable) -> list[str]:
    """Return the modules that names `package.module:Name` in a study refer to."""
    items = [item for part in table.part for item in (*part.problems, *part.agents, *part.methods)]
    names = [item if isinstance(item, str) else item.name for item in items]
    environments = [item.gymnasium for item in items if isinstance(item, ProblemTable)]
    modules = [name.partition(":")[0] for name in names if is_import_name(name) and not is_model_file(name or "")]
    return modules + [name.partition(":")[0] for name in environments if name is not None and ":" in name]


def _check_modules(modules: list[str], folder: Path) -> None:
    """Raise an error if a module of the folder was imported from elsewhere: its code would not be that of the folder."""
    for name in modules:
        first = name.partition(".")[0]
        loaded = getattr(sys.modules.get(first), "__file__", None)
        for path in (folder / f"{first}.py", folder / first / "__init__.py"):
            if loaded is not None and path.is_file() and not path.samefile(loaded):
                raise StudyError(
                    f"the module {first!r} was imported from {loaded}, but the study has another one beside it; rename one of "
                    "them, or run the study in a new process"
                )


class ProblemTable(msgspec.Struct, forbid_unknown_fields=True):
    """A problem of a part: a table with a name or the id of a Gymnasium environment, or its name alone."""

    name: str | None = None
    label: str | None = None
    settings: dict[str, Any] = {}
    gymnasium: str | None = None
    measuring_cost: int | float | list[int | float] | None = None
    discount: int | float | list[int | float] | None = None
    grid: dict[str, Any] | None = None


class AgentTable(msgspec.Struct, forbid_unknown_fields=True):
    """An agent of a part: a table, or its name alone."""

    name: str
    label: str | None = None
    preset: Any = msgspec.UNSET
    settings: dict[str, Any] = {}
    seeds: int | None = None
    episodes: int | None = None


class PartTable(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a study, `[[part]]`; what is not given is as in `Part`."""

    name: str
    title: str | None = None
    problems: list[str | ProblemTable] = []
    agents: list[str | AgentTable] = []
    methods: list[str] = []
    episodes: int | None = None
    seeds: int | None = None
    first_seed: int | None = None
    max_steps: int | None = None
    beliefs: int | None = None
    tolerance: int | float | None = None


class StudyTable(msgspec.Struct, forbid_unknown_fields=True):
    """A study file."""

    name: str
    title: str | None = None
    part: list[PartTable] = []


#: Tables by the last key on the way to them: what a message calls them, an example of a name, and their keys.
TABLES: dict[str, tuple[str, str, type[msgspec.Struct]]] = {
    "": ("the study", "my-study", StudyTable),
    "part": ("a part", "lakes", PartTable),
    "problems": ("a problem", "frozen-lake", ProblemTable),
    "agents": ("an agent", "dyna-atmq", AgentTable),
}


def _refusal(data: Any, where: KeyPath, key: str | None) -> str:
    """Return a sentence on what msgspec refused: the value at `where`, or a key that it lacks or must not have."""
    value, last = data, str(next((step for step in reversed(where) if isinstance(step, str)), ""))
    for step in where:
        value = value[step]
    what, example, table = TABLES.get(last, TABLES[""])
    if key is not None and key in value:
        said = unknown_name(f"key of {what.replace('the ', 'a ')}", key, table.__struct_fields__)
    elif key is not None:
        said = f'{what} has no name; give it one, such as name = "{example}"'
    elif last == "part":
        said = "part is not a list of tables; begin each part with [[part]], in two brackets"
    elif last == "methods" and isinstance(where[-1], int):
        said = f'{quoted(value)} is not a method; give a name, such as "optimal"'
    elif isinstance(where[-1], int):
        said = f'{quoted(value)} is not {what}; give a name, or a table such as {{name = "{example}"}}'
    elif last in TABLES or last == "methods":
        said = f"{last} is {quoted(value)}, expected a list in brackets"
    elif last in ("settings", "grid"):
        said = f"{last} is {quoted(value)}, expected a table, such as {{{'bins' if last == 'grid' else 'size'} = 4}}"
    elif last in ("measuring_cost", "discount"):
        said = f"{last} is {quoted(value)}, expected a number, or a list of numbers for a sweep"
    else:
        owner = str(next((step for step in reversed(where[:-1]) if isinstance(step, str)), ""))
        said = _scalar_refusal(last, value, TABLES[owner][0])
    return said


def _scalar_refusal(key: str, value: Any, owner: str) -> str:
    """Return the sentence with which `spec` refuses a number or text."""
    try:
        if key in COUNTS:
            checked_count(value, key, key)
        elif key == "tolerance":
            between_0_and_1(value, key, StudyError, 1e-3)
        elif key in ("title", "label"):
            checked_label(value, f"{owner}, its title" if key == "title" else owner)
    except StudyError as error:
        return str(error)
    return f"the {key} of {owner} is {quoted(value)}, expected text in quotes"


class _PlacedError(StudyError):
    """An error whose message begins with file and line."""


class _StudyReader:
    """Makes a study from the tables of a file; errors name the line.

    Parameters
    ----------
    path : Path
    lines : KeyLines
    """

    def __init__(self, path: Path, lines: KeyLines) -> None:
        self._place, self._lines = path, lines
        #: Models on which not every agent can act, by the keys of the problem in the file.
        self._with_other_looks: dict[KeyPath, Model] = {}

    def study(self, table: StudyTable) -> Study:
        with self.at("part"):
            if not table.part:
                raise StudyError("the study has no parts; begin one with [[part]]")
        made: list[Part] = []
        for number, part in enumerate(table.part):
            made.append(self._part(part, ("part", number)))
            with self.at("part", number, "name"):
                _check_new(made[-1].name, [one.name for one in made[:-1]], "name", "another part")
        with self.at("name"):
            checked_name(table.name, "the study")
        with self.at("title"):
            return Study(table.name, table.name if table.title is None else table.title, made)

    def _part(self, table: PartTable, where: KeyPath) -> Part:
        with self.at(*where, "name"):
            checked_name(table.name, "a part")
        with self.at(*where, "title"):
            title = checked_label(table.name if table.title is None else table.title, "a part, its title")
        numbers: dict[str, Any] = {
            key: value for key in (*COUNTS, "tolerance") if (value := getattr(table, key)) is not None
        }
        for key, value in numbers.items():
            with self.at(*where, key):
                numbers[key] = (
                    between_0_and_1(value, key, StudyError, 1e-3)
                    if key == "tolerance"
                    else checked_count(value, key, key)
                )
        problems = self._items(table.problems, (*where, "problems"), self._problem)
        agents = self._items(table.agents, (*where, "agents"), self._agent)
        for number, agent in enumerate(agents):
            for problem, model in self._with_other_looks.items():
                if problem[: len(where)] == where:
                    with self.at(*where, "agents", number):
                        new_agent(agent).check_can_act_on(model)
        for number, method in enumerate(table.methods):
            with self.at(*where, "methods", number):
                method_of(method)
                _check_new(method, table.methods[:number], "name", "another of the methods")
        with self.at(*where):
            return Part(table.name, title, problems, agents, methods=table.methods, **numbers)

    def _items(self, items: list[Any], where: KeyPath, make: Callable[[Any, KeyPath], list[Spec]]) -> list[Spec]:
        """Return problems or agents, each of which can be made and has a label of its own; a sweep gives several."""
        made: list[Spec] = []
        for number, item in enumerate(items):
            for one in make(item, (*where, number)):
                with self.at(*where, number, "label"):
                    _check_new(one.label, [other.label for other in made], "label", f"another of the {where[-1]}")
                made.append(one)
        return made

    def _problem(self, item: str | ProblemTable, where: KeyPath) -> list[ProblemSpec]:
        table = ProblemTable(item) if isinstance(item, str) else item
        with self.at(*where):
            if (table.name is None) == (table.gymnasium is None):
                raise StudyError(
                    'a problem has no name; give it one, such as name = "frozen-lake", or gymnasium = "Taxi-v4"'
                    if table.name is None
                    else "a problem has both a name and the id of a Gymnasium environment; give one of them"
                )
        name = table.name or table.gymnasium or ""
        # Model files are looked for beside the study file.
        path = str(self._place.parent / name) if table.gymnasium is None and is_model_file(name) else name
        own = {key: getattr(table, key) for key in ("measuring_cost", "discount", "grid")}
        given = table.settings | {key: value for key, value in own.items() if key in ProblemSpec.swept_fields and value}
        with self._at_named_setting(where, given):
            spec = ProblemSpec(name, "" if table.gymnasium else path, table.settings, gymnasium=table.gymnasium, **own)
            specs = _labelled(spec, name, table.label, given)
            for one in specs:
                world = build_world(one)
                task_of(world, 1)
                if isinstance(world, Model) and not world.is_exact_look_model:
                    self._with_other_looks[where] = world
        return specs

    def _agent(self, item: str | AgentTable, where: KeyPath) -> list[AgentSpec]:
        table = AgentTable(item) if isinstance(item, str) else item
        settings = table.settings
        if table.preset is not msgspec.UNSET:
            with self.at(*where, "preset"):
                _check_new("preset", list(settings), "setting", "settings")
            settings = {"preset": table.preset, **settings}
        for key in ("seeds", "episodes"):
            if getattr(table, key) is not None:
                with self.at(*where, key):
                    checked_count(getattr(table, key), key, key)
        with self._at_named_setting(where, settings):
            spec = AgentSpec(table.name, table.name, settings, table.seeds, table.episodes)
            specs = _labelled(spec, table.name, table.label, settings)
            for one in specs:
                new_agent(one)
        return specs

    @contextmanager
    def _at_named_setting(self, where: KeyPath, settings: Mapping[str, Any]) -> Iterator[None]:
        """Begin the messages of errors with the line of the setting that they name first, or else of the problem or agent."""
        try:
            yield
        except ActMeasureError as error:
            head = str(error).partition(";")[0]
            named = [key for key in settings if re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", head)]
            candidates = [keys for key in named for keys in ((*where, "settings", key), (*where, key))]
            with self.at(*next((keys for keys in candidates if keys in self._lines.lines), where)):
                raise

    @contextmanager
    def at(self, *where: str | int) -> Iterator[None]:
        """Begin the messages of errors with the line of the innermost of these keys that is in the file."""
        try:
            yield
        except _PlacedError:
            raise
        except ActMeasureError as error:
            raise _PlacedError(f"{self._lines.location(where)}{error}") from error


def _check_new(name: str, others: list[str], what: str, whose: str) -> None:
    if name in others:
        raise StudyError(f"{name!r} is already the {what} of {whose}; give each its own")


def _labelled(spec: Spec, name: str, label: str | None, settings: Mapping[str, Any]) -> list[Spec]:
    """Return the problems or agents of a table with their labels; without a given one, all settings are in it."""
    if label is not None:
        return replace(spec, label=label).each()
    fixed = {key: value for key, value in settings.items() if key not in (spec.each()[0].sweep or NO_SWEEP).values}
    return replace(spec, label=label_of(name, fixed)).each()


def study_from_python(text: str, path: Path) -> Study:
    """Run a Python file and return the `study` that it defines; it can import what is beside it.

    Agents and problems that the file itself defines are imported by workers, by the name of the file.
    """
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.stdlib_module_names else NAME
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if name in sys.modules and (loaded is None or not _is_same(Path(loaded), path)):
        name = NAME
    module = ModuleType(name)
    module.__file__ = str(path.resolve())
    before = sys.modules.get(name)
    try:
        code = compile(text, str(path), "exec")
        with _importing(module, path.resolve().parent):
            exec(code, module.__dict__)
    except SyntaxError as error:
        raise StudyError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        said = str(error) if isinstance(error, ActMeasureError) else f"{type(error).__name__}: {error}"
        raise StudyError(f"{path}, line {_line(error, str(path))}: {said}") from error
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        problem = "defines no study" if study is None else f"has a study that is {quoted(study)}"
        raise StudyError(f"{path} {problem}; write study = Study(...) at its end, with actmeasure.studies.Study")
    names = [item.name for part in study.parts for item in (*part.problems, *part.agents)]
    own = [one for one in names if is_import_name(one) and not is_model_file(one)]
    if any(one.partition(":")[0] == name for one in own) and name != NAME:
        sys.modules[name] = module if before is None else before
    if own and str(path.resolve().parent) not in sys.path:
        sys.path.insert(0, str(path.resolve().parent))
    return study


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _line(error: BaseException, file: str) -> int:
    """Return the line of the file in which the error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == file), 1)


@contextmanager
def _importing(module: ModuleType, folder: Path) -> Iterator[None]:
    """Let a file import what is beside it, and be found in `sys.modules`, as dataclasses in it expect."""
    before = sys.modules.get(module.__name__)
    sys.path.insert(0, str(folder))
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        del sys.modules[module.__name__]
        if before is not None:
            sys.modules[module.__name__] = before
