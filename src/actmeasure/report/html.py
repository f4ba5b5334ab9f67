"""The page: one file that needs nothing else and can load nothing.

Everything is escaped by Jinja2. The page forbids itself everything but its own style, its own script (both known by their
hashes) and pictures that are part of it.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from actmeasure.report.document import Document

__all__ = ["render"]

PACKAGE, FOLDER = "actmeasure.report", "templates"


def render(document: Document) -> str:
    """The document as HTML."""
    environment = Environment(
        loader=PackageLoader(PACKAGE, FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # fmt: skip
    style, script = _asset("report.css"), _asset("sort.js")
    return environment.get_template("report.html").render(
        document=document, style=style, script=script, policy=_policy(style, script)
    )


def _asset(name: str) -> str:
    return (resources.files(PACKAGE) / FOLDER / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing from anywhere, except what has these hashes, and pictures in the page."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
