"""A study from a Python file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from actmeasure.errors import ActMeasureError, StudyError, quoted
from actmeasure.experiments.spec import Study

__all__ = ["study_from_python"]

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
        raise StudyError(f"{place} {found}; write study = Study(...) at its end, with actmeasure.experiments.Study")
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
