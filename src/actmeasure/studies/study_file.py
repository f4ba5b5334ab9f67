"""A study from a file: TOML, which is data, or Python, which is run."""

from __future__ import annotations

import os
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from actmeasure.errors import ActMeasureError, StudyError, quoted, unknown_name
from actmeasure.files.atomic import explain
from actmeasure.files.toml_places import Place, toml_lines
from actmeasure.planning.solve import method_of
from actmeasure.studies.spec import (
    COUNTS,
    AgentSpec,
    Part,
    ProblemSpec,
    Study,
    checked_count,
    checked_label,
    checked_name,
    checked_tolerance,
    is_model_file,
)
from actmeasure.studies.trial import build_model, new_agent

__all__ = ["read_study", "study_from_python", "study_from_toml"]

# ----------------------------------------------------------------------------------------------------
# A study from TOML, with the line of whatever is wrong.
# ----------------------------------------------------------------------------------------------------


STUDY = ("name", "title", "part")
PART = ("name", "title", "problems", "agents", "methods", "tolerance", *COUNTS)
PROBLEM = ("name", "label", "settings")
AGENT = ("name", "label", "preset", "settings", "seeds", "episodes")
SYNTAX = re.compile(r"(.*) \(at line (\d+), column \d+\)", re.DOTALL)

Spec = TypeVar("Spec", ProblemSpec, AgentSpec)


def study_from_toml(text: str, place: Path) -> Study:
    """A study from the text of a TOML file at a place, beside which model files are looked for."""
    try:
        data, lines = tomllib.loads(text), toml_lines(text)
    except tomllib.TOMLDecodeError as error:
        found = SYNTAX.fullmatch(str(error))
        said, where = (found[1], f", line {found[2]}") if found else (str(error), "")
        raise StudyError(f"{place}{where}: {said}") from None
    except RecursionError:
        raise StudyError(f"{place}: its arrays and tables are nested too deeply; write it in a simpler way") from None
    return _Reader(place, lines).study(data)


class _PlacedError(StudyError):
    """A sentence that names its line already."""


class _Reader:
    """Makes a study from what a file says.

    Parameters
    ----------
    place : Path
    lines : dict from the way to a value to its line
    """

    def __init__(self, place: Path, lines: Mapping[Place, int]) -> None:
        self._place, self._lines = place, lines

    def study(self, data: Mapping[str, Any]) -> Study:
        self._check_keys(data, (), STUDY, "a study")
        name = self._name(data, (), "the study", "my-study")
        parts = data.get("part", [])
        with self._at("part"):
            if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
                raise StudyError("part is not a list of tables; begin each part with [[part]], in two brackets")
            if not parts:
                raise StudyError("the study has no parts; begin one with [[part]]")
        made: list[Part] = []
        for number, part in enumerate(parts):
            made.append(self._part(part, ("part", number)))
            with self._at("part", number, "name"):
                self._check_new(made[-1].name, [one.name for one in made[:-1]], "name", "another part")
        with self._at("name"):
            checked_name(name, "the study")
        with self._at("title"):
            return Study(name, data.get("title", name), made)

    def _part(self, data: Mapping[str, Any], where: Place) -> Part:
        self._check_keys(data, where, PART, "a part")
        name = self._name(data, where, "a part", "lakes")
        with self._at(*where, "name"):
            checked_name(name, "a part")
        with self._at(*where, "title"):
            title = checked_label(data.get("title", name), "the part, its title")
        numbers: dict[str, Any] = {}
        for key in (key for key in COUNTS if key in data):
            with self._at(*where, key):
                numbers[key] = checked_count(data[key], key, key)
        if "tolerance" in data:
            with self._at(*where, "tolerance"):
                numbers["tolerance"] = checked_tolerance(data["tolerance"], "tolerance")
        problems = self._items(data, (*where, "problems"), self._problem)
        agents = self._items(data, (*where, "agents"), self._agent)
        methods = self._list(data, (*where, "methods"))
        for number, method in enumerate(methods):
            with self._at(*where, "methods", number):
                method_of(method)
                self._check_new(method, methods[:number], "name", "another of the methods")
        with self._at(*where):
            return Part(name, title, problems, agents, methods=methods, **numbers)

    def _items(self, data: Mapping[str, Any], where: Place, make: Callable[[Any, Place], Spec]) -> list[Spec]:
        """Problems or agents, each of which can be made and has a label of its own."""
        made: list[Spec] = []
        for number, item in enumerate(self._list(data, where)):
            one = make(item, (*where, number))
            with self._at(*where, number, "label"):
                self._check_new(one.label, [other.label for other in made], "label", f"another of the {where[-1]}")
            made.append(one)
        return made

    def _problem(self, item: Any, where: Place) -> ProblemSpec:
        data = self._table(item, where, PROBLEM, "a problem", "frozen-lake")
        name, settings = data["name"], self._settings(data, where)
        with self._blaming(where, settings):
            spec = ProblemSpec(data.get("label", _label(name, settings)), self._beside(name), settings)
            build_model(spec)
        return spec

    def _beside(self, name: str) -> str:
        """The path of a model file from where we are; a name of the catalogue stays what it is."""
        return str(self._place.parent / name) if is_model_file(name) else name

    def _agent(self, item: Any, where: Place) -> AgentSpec:
        data = self._table(item, where, AGENT, "an agent", "dyna-atmq")
        name, settings = data["name"], self._settings(data, where)
        if "preset" in data:
            with self._at(*where, "preset"):
                self._check_new("preset", list(settings), "setting", "settings")
            settings = {"preset": data["preset"], **settings}
        own = {}
        for key in (key for key in ("seeds", "episodes") if key in data):
            with self._at(*where, key):
                own[key] = checked_count(data[key], key, key)
        with self._blaming(where, settings):
            spec = AgentSpec(data.get("label", _label(name, settings)), name, settings, **own)
            new_agent(spec)
        return spec

    def _table(self, item: Any, where: Place, known: Iterable[str], what: str, example: str) -> Mapping[str, Any]:
        """A problem or an agent as a table, also where only its name is given."""
        with self._at(*where):
            if isinstance(item, str):
                return {"name": item}
            if not isinstance(item, dict):
                raise StudyError(
                    f'{quoted(item)} is not {what}; give a name, or a table such as {{name = "{example}"}}'
                )
        self._check_keys(item, where, known, what)
        self._name(item, where, what, example)
        return item

    def _settings(self, data: Mapping[str, Any], where: Place) -> dict[str, Any]:
        with self._at(*where, "settings"):
            settings = data.get("settings", {})
            if not isinstance(settings, dict):
                raise StudyError(f"settings is {quoted(settings)}, expected a table, such as {{size = 4}}")
            return settings

    def _list(self, data: Mapping[str, Any], where: Place) -> list[Any]:
        with self._at(*where):
            found = data.get(str(where[-1]), [])
            if not isinstance(found, list):
                raise StudyError(f"{where[-1]} is {quoted(found)}, expected a list in brackets")
            return found

    def _name(self, data: Mapping[str, Any], where: Place, what: str, example: str) -> str:
        with self._at(*where, "name"):
            if "name" not in data:
                raise StudyError(f'{what} has no name; give it one, such as name = "{example}"')
            if not isinstance(data["name"], str):
                raise StudyError(f"the name of {what} is {quoted(data['name'])}, expected text in quotes")
            return data["name"]

    def _check_keys(self, data: Mapping[str, Any], where: Place, known: Iterable[str], what: str) -> None:
        for key in data:
            if key not in known:
                with self._at(*where, key):
                    raise StudyError(unknown_name(f"key of {what}", key, known))

    def _check_new(self, name: str, others: list[str], what: str, whose: str) -> None:
        if name in others:
            raise StudyError(f"{name!r} is already the {what} of {whose}; give each its own")

    @contextmanager
    def _blaming(self, where: Place, settings: Mapping[str, Any]) -> Iterator[None]:
        """Place errors at the setting that they name first, or else at the problem or agent."""
        try:
            yield
        except ActMeasureError as error:
            head = str(error).partition(";")[0]
            named = [key for key in settings if re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", head)]
            places = [place for key in named for place in ((*where, "settings", key), (*where, key))]
            with self._at(*next((place for place in places if place in self._lines), where)):
                raise

    @contextmanager
    def _at(self, *where: str | int) -> Iterator[None]:
        """Place errors at a line: that of the innermost of these keys that is there."""
        try:
            yield
        except _PlacedError:
            raise
        except ActMeasureError as error:
            known = next((where[:count] for count in range(len(where), 0, -1) if where[:count] in self._lines), None)
            line = f", line {self._lines[known]}" if known else ""
            raise _PlacedError(f"{self._place}{line}: {error}") from error


def _label(name: str, settings: Mapping[str, Any]) -> str:
    """What a problem or agent is called without a label.

    Examples
    --------
    >>> _label("frozen-lake", {"size": 8, "variant": "slippery"})
    'frozen-lake size=8 variant=slippery'
    """
    return " ".join([name, *(f"{key}={value}" for key, value in settings.items())])


# ----------------------------------------------------------------------------------------------------
# A study from a Python file.
# ----------------------------------------------------------------------------------------------------


#: What the file's own `__name__` is: not `__main__`, so that it may have parts for when it is run as a script.
NAME = "actmeasure_study"


def study_from_python(text: str, place: Path) -> Study:
    """The `study` that a Python file defines; it is run for that, from its own folder as far as imports go."""
    module = ModuleType(NAME)
    module.__file__ = str(place)
    try:
        code = compile(text, str(place), "exec")
        with _importing(module, place.resolve().parent):
            exec(code, module.__dict__)
    except SyntaxError as error:
        raise StudyError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        said = str(error) if isinstance(error, ActMeasureError) else f"{type(error).__name__}: {error}"
        raise StudyError(f"{place}, line {_line(error, str(place))}: {said}") from error
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        found = "defines no study" if study is None else f"has a study that is {quoted(study)}"
        raise StudyError(f"{place} {found}; write study = Study(...) at its end, with actmeasure.studies.Study")
    return study


def _line(error: BaseException, file: str) -> int:
    """The line of the file in which the error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == file), 1)


@contextmanager
def _importing(module: ModuleType, folder: Path) -> Iterator[None]:
    """Have what is beside the file imported from there, and the file itself known, as dataclasses in it expect."""
    sys.path.insert(0, str(folder))
    sys.modules[NAME] = module
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        del sys.modules[NAME]


READERS = {".toml": study_from_toml, ".py": study_from_python}


def read_study(path: str | os.PathLike[str]) -> Study:
    """A study from a `.toml` or `.py` file.

    A Python file is run, so only give one that you trust; it has to define `study = Study(...)`. Model files that a TOML file
    names are looked for beside it. Whatever is wrong is a `StudyError` with file and line.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix not in READERS:
        raise StudyError(f"{place}: {unknown_name('file ending', place.suffix, READERS)}")
    try:
        contents = place.read_bytes()
    except OSError as error:
        raise StudyError(str(explain(error, place, "read"))) from error
    try:
        text = contents.decode()
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{place}, line {line}: this is not UTF-8 text; save the file as UTF-8") from None
    return READERS[suffix](text, place)
