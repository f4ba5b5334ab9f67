"""A real browser for the tests of pages, shared by all of them: two at once in one process do not get along."""

import shutil
from contextlib import contextmanager

import pytest


@pytest.fixture(scope="session")
def chromium():
    """A real browser; tests that need one have the marker `extras` by that (see conftest.py)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(chromium, place, width=1000):
    """A page of a file, open; what goes wrong in it, and whatever else it asks for, fails the test."""
    context = chromium.new_context(viewport={"width": width, "height": 900})
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: _is_own(request.url, place) or wrong.append(request.url))
    page.goto(place.as_uri())
    yield page
    context.close()
    assert wrong == []


def _is_own(url, place):
    """Whether it is the page itself, or part of it."""
    return url == place.as_uri() or url.startswith("data:")
