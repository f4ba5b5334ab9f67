"""A study from a file: TOML, which is data, or Python, which is run."""

from __future__ import annotations

import os
from pathlib import Path

from actmeasure.errors import StudyError, unknown_name
from actmeasure.experiments.python_study import study_from_python
from actmeasure.experiments.spec import Study
from actmeasure.experiments.toml_study import study_from_toml
from actmeasure.files.atomic import explain

__all__ = ["read_study"]

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
