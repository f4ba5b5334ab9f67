"""Arguments that choose a problem: a name with settings, or a model file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.errors import ModelError

if TYPE_CHECKING:
    from actmeasure.model import Model

__all__ = ["MODEL_FILES", "PROBLEM_HELP", "Cost", "Discount", "Problem", "Settings", "read_model", "read_settings"]

#: Endings of the model files that can be read.
MODEL_FILES = ".json, .npz, .pomdp or .pomdpx"
PROBLEM_HELP = f"Name of a problem (see: actmeasure problems), or a model file: {MODEL_FILES}."

Problem = Annotated[
    str,
    typer.Argument(metavar="PROBLEM_OR_FILE", help=PROBLEM_HELP, show_default=False),
]
Cost = Annotated[float | None, typer.Option(help="Price of a look; by default the problem's own.")]
Discount = Annotated[float | None, typer.Option(help="Discount per step; by default the problem's own.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the problem; may be repeated.")
]

#: Python's words for true, false and null of JSON.
PYTHON_WORDS = {"True": True, "False": False, "None": None}


def read_settings(given: list[str] | None, option: str = "--set", example: str = "size=8") -> dict[str, Any]:
    """Return the settings given with an option: values are JSON, Python's True, False or None, or else text.

    Examples
    --------
    >>> read_settings(["size=8", "variant=slippery", "p=.5", "reveal_start=False"])
    {'size': 8, 'variant': 'slippery', 'p': 0.5, 'reveal_start': False}
    """
    settings: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ModelError(f"{option} {text!r} is not a setting; write it as NAME=VALUE, such as {option} {example}")
        if name in settings:
            raise ModelError(f"the setting {name!r} is given twice; give it once")
        settings[name] = _value(value)
    return settings


def _value(text: str) -> Any:
    if text in PYTHON_WORDS:
        return PYTHON_WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return float(text) if re.fullmatch(r"[+-]?(\d+\.|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE) else text


def read_model(
    problem: str, settings: Mapping[str, Any], cost: float | None = None, discount: float | None = None
) -> Model:
    """Return the model of a named problem with settings, or of a file, with another cost or discount where given."""
    given = {"measuring_cost": cost, "discount": discount}
    changes = {name: value for name, value in given.items() if value is not None}
    for name, option in (("measuring_cost", "--cost"), ("discount", "--discount")):
        if name in settings and name in changes:
            raise ModelError(f"{name} is given twice, with --set and with {option}; give it once")
    model = _load(problem, settings) if _is_file(problem) else _make(problem, settings)
    return model.replace(**changes) if changes else model


def _is_file(problem: str) -> bool:
    """Return whether a file is meant: no problem has a dot or a slash in its name."""
    return bool(Path(problem).suffix) or "/" in problem or "\\" in problem


def _load(path: str, settings: Mapping[str, Any]) -> Model:
    from actmeasure.model import Model

    if settings:
        raise ModelError(f"--set goes with a named problem, but {path!r} is a file; change the file, or leave it out")
    return Model.load(path)


def _make(name: str, settings: Mapping[str, Any]) -> Model:
    from actmeasure.problems import make

    return make(name, **settings)
