"""The interactive page of an inspection plan: one file, no network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actmeasure.errors import MissingExtraError, PlanError, shown
from actmeasure.files.atomic import explain, replacing
from actmeasure.files.places import check_place, check_suffix
from actmeasure.inspection.advice import Advice
from actmeasure.report.inspection_data import page_data
from actmeasure.report.inspection_words import page_words

__all__ = ["check_page_path", "page_html", "write_page"]

SUFFIXES = (".html", ".htm")

FOLDER = "inspection_templates"
#: In the order in which the page runs them.
SCRIPTS = ("numbers.js", "beliefs.js", "drawing.js", "belief_chart.js", "price_charts.js", "page.js")


def check_page_path(path: str | os.PathLike[str]) -> Path:
    """The path of a page that can be written; call it before working long for one."""
    place = Path(path)
    check_place(place, "the page", PlanError)
    check_suffix(place, "the page", SUFFIXES, PlanError)
    if find_spec("jinja2") is None:
        raise MissingExtraError("the page of an inspection plan", "report")
    return place


def write_page(advice: Advice, path: str | os.PathLike[str]) -> None:
    """Write the page of an advice as one HTML file (needs the extra `report`).

    The file needs no network and no other file: style, scripts and figures are inside, and its security policy allows nothing
    else. An existing file is replaced in one step. Names that end in anything but `.html` or `.htm` are refused.
    """
    place = Path(path)
    check_suffix(place, "the page", SUFFIXES, PlanError)
    contents = page_html(advice).encode()
    try:
        with replacing(place) as file:
            file.write(contents)
    except OSError as error:
        raise PlanError(str(explain(error, place, "write"))) from error


def page_html(advice: Advice) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError("the page of an inspection plan", "report") from error
    style, script = _text("page.css"), "\n".join(["'use strict';", "{", *map(_text, SCRIPTS), "}"])
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_text("page.html"))
    return template.render(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=Markup(style),  # our own files are no one else's markup
        script=Markup(script),
        data=Markup(embedded_json(_shown(page_data(advice)))),  # escaped there
        **_shown(page_words(advice)),
    )


def _shown(found: Any) -> Any:
    """The same with all text as it can be shown; names are anybody's."""
    if isinstance(found, str):
        return shown(found)
    if isinstance(found, Mapping):
        return {_shown(name): _shown(value) for name, value in found.items()}
    return [_shown(value) for value in found] if isinstance(found, list | tuple) else found


def _text(name: str) -> str:
    return (resources.files("actmeasure.report") / FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy calls an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded_json(found: Any) -> str:
    r"""JSON that can stand inside a script element, whatever names are in it.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)  # ASCII: line separators are escaped as well
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
