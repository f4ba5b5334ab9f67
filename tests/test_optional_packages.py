"""Optional packages are loaded when they are used, not when a module is imported or tests are collected.

A plain `pip install .` has the dependencies of pyproject.toml, and `make test` has requirements.lock: nothing more may be needed.
"""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Packages that are only imported by whoever uses them, and the extra which that takes.
ROOMS = {
    r"actmeasure\.cli\b": "cli",
    r"actmeasure\.paper\.(deviations|reporting|paper_tables)\b": "report",
    r"actmeasure\.(studies\.)?report\.(?!register\b)[a-z]": "report",
}
DISTRIBUTIONS = packages_distributions()


def name_of(requirement):
    """The name of a distribution, as it is compared: typing_extensions>=4 is typing-extensions."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


CORE = {name_of(requirement) for requirement in PROJECT["dependencies"]}
LOCKED = {name_of(line) for line in re.findall(r"^\w.*==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)}


def module_of(path):
    """The name under which a file of src is imported."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def room_of(module):
    """The extra that a module may need, and the expression that says so; None for all others."""
    return next(((extra, room) for room, extra in ROOMS.items() if re.match(room, module)), (None, None))


def imports(source):
    """The modules that are imported as a module is, with the line: also in classes and branches, but not in functions."""
    waiting = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def foreign(source, allowed, own=frozenset()):
    """Imports of what is neither of Python, nor our own, nor of an allowed distribution."""
    known = sys.stdlib_module_names | own | {"actmeasure"}
    for module, line in imports(source):
        package = module.split(".")[0]
        if package not in known and not allowed & set(map(name_of, DISTRIBUTIONS.get(package, ()))):
            yield f"line {line}: {module}"


def test_the_check_sees_imports_wherever_they_are_run():
    source = (
        "import os, json.decoder\nfrom typing import TYPE_CHECKING\nfrom actmeasure.kernels import jit\n"
        "try:\n    import ray.util\nexcept ImportError:\n    from torch import nn\n"
        "class A:\n    if os.name:\n        import stormpy\n"
        "if TYPE_CHECKING:\n    import pandas\nelse:\n    import polars\n"
        "def f():\n    import playwright\n"
        "import numpy as np, pytest\n"
    )
    found = sorted(foreign(source, {"numpy"}, own={"actmeasure"}))
    assert found == ["line 10: stormpy", "line 14: polars", "line 17: pytest", "line 5: ray.util", "line 7: torch.nn"]


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.name)
def test_tests_are_collected_with_what_is_locked(path):
    own = {other.stem for other in (ROOT / "tests").rglob("*.py")} | {"golden"}
    assert list(foreign(path.read_text(), LOCKED, own)) == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src").rglob("*.py")), ids=lambda path: "/".join(path.relative_to(ROOT / "src").parts[1:])
)
def test_modules_are_imported_with_the_dependencies_alone(path):
    extra, _ = room_of(module_of(path))
    packages = PROJECT["optional-dependencies"].get(extra, [])
    assert list(foreign(path.read_text(), CORE | set(map(name_of, packages)))) == []
    for module, line in imports(path.read_text()):
        entered = room_of(module)[0]
        assert entered in (None, extra) or extra == "cli", f"line {line}: {module}"


def needed(names):
    """Distributions with all they depend on, without extras."""
    found, waiting = set(), set(names)
    while waiting:
        found |= waiting
        further = {name_of(line) for name in waiting for line in requires(name) or () if "extra ==" not in line}
        waiting = {name for name in further - found if name in LOCKED}
    return found


def test_everything_but_the_rooms_is_imported_where_nothing_else_is_installed():
    """Also what our dependencies import is no optional package of theirs that happens to be here."""
    there = needed(CORE)
    missing = {package for package, by in DISTRIBUTIONS.items() if not there & set(map(name_of, by))} - {"actmeasure"}
    modules = [module for path in (ROOT / "src").rglob("*.py") if room_of(module := module_of(path)) == (None, None)]
    code = (
        "import sys, importlib\n"
        "missing, modules = (words.split() for words in sys.stdin.read().splitlines())\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in missing: raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "for module in modules: importlib.import_module(module)\n"
    )
    assert {"pandas", "matplotlib", "pyarrow", "typer", "rich", "jinja2", "pytest"} <= missing
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=f"{' '.join(sorted(missing))}\n{' '.join(sorted(modules))}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_lock_files_agree_and_name_no_package_index():
    pinned = {}
    for path in sorted(ROOT.glob("requirements*.lock")):
        text = path.read_text()
        assert "://" not in text, path.name
        assert not re.search(r"^-", text, re.MULTILINE), f"{path.name} has an option of pip"
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
            assert pinned.setdefault(name_of(name), version) == version, f"{path.name}: {name}"
    wanted = [line for extra in ("test", "tools", "extras") for line in PROJECT["optional-dependencies"][extra]]
    assert {name_of(line) for line in wanted} - {"actmeasure"} <= set(pinned)
    assert CORE <= LOCKED
