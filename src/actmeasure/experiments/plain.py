"""Settings as plain data, which JSON can hold and a hash can be taken of."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from actmeasure.errors import StudyError, quoted

__all__ = ["canonical", "checked_label", "checked_name", "digest", "plain_settings"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def plain_settings(settings: Any, whose: str) -> dict[str, Any]:
    """Settings as numbers, text, truth values and lists of them; tuples and arrays become lists."""
    if not isinstance(settings, Mapping):
        raise StudyError(f"the settings of {whose} are {quoted(settings)}, expected names and values")
    plain = {}
    for name, value in settings.items():
        if not isinstance(name, str):
            raise StudyError(f"a setting of {whose} is called {quoted(name)}, expected text")
        plain[name] = _plain(value, f"the setting {name!r} of {whose}")
    return plain


def _plain(value: Any, what: str) -> Any:
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one, what) for one in value]
    if isinstance(value, Mapping):
        return plain_settings(value, what)
    if isinstance(value, float) and not math.isfinite(value):
        raise StudyError(f"{what} is {value!r}, expected a finite number")
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise StudyError(f"{what} is {quoted(value)}, expected a number, text, a truth value or a list of these")
    return value


def canonical(data: Any) -> str:
    """JSON that is the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(contents: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(contents).hexdigest()


def checked_name(name: Any, what: str) -> str:
    """A name that files can be called by."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StudyError(
            f"the name of {what} is {quoted(name)}, expected letters, digits, '-', '_' and '.', such as 'my-study'"
        )
    return name


def checked_label(label: Any, what: str) -> str:
    """Text that something is shown by."""
    if not isinstance(label, str) or not label.strip():
        raise StudyError(f"the label of {what} is {quoted(label)}, expected text")
    try:
        label.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which no file can hold
        raise StudyError(f"the label of {what} is {quoted(label)}, which is not valid Unicode; change it") from None
    return label
