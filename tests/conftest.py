"""For all tests: hypothesis draws the same cases every time, what needs extras is skipped without them, one browser."""

import os
import shutil
import signal
from importlib.util import find_spec

import pytest
from browser import chromium  # noqa: F401
from hypothesis import HealthCheck, settings
from machines import advice, fitted  # noqa: F401

SAME = {"derandomize": True, "deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("short", max_examples=25, **SAME)
settings.register_profile("all", **SAME)  # chosen by `make test-all`: see `strategies.examples`
settings.load_profile("short")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs in the background: tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Set where extras are installed (.ci/run): that one is missing is then a failure.
REQUIRED = "ACTMEASURE_REQUIRE_EXTRAS"


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items):
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.extras("playwright", "chromium"))
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.more_examples)


def pytest_runtest_setup(item):
    """Skip a test whose extras are missing: packages, or a program."""
    names = {name for mark in item.iter_markers("extras") for name in mark.args}
    if missing := sorted(name for name in names if not (find_spec(name) or shutil.which(name))):
        end = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        end(f"{', '.join(missing)} missing; `make extras` installs what tests marked `extras` need, but for chromium")


@pytest.fixture
def without_pictures(monkeypatch):
    """Reports with figures of no size: drawing them takes most of the time, and only some tests look at them."""
    from actmeasure.studies.report import document

    monkeypatch.setattr(document, "pictures", lambda figure: {"svg": b"<svg/>", "png": b""})
