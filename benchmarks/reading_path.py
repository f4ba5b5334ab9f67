"""How much of the source a reader follows: files and functions that a call passes through, `python -m benchmarks.reading_path`.

With `--files` they are listed. Counted are functions of the package that Python calls, without their import, and kernels, which
Python does not see, by the files that hold those which were called directly.
"""

from __future__ import annotations

import ast
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import actmeasure as am
from actmeasure.inspection.page import write_page

SOURCE = Path(am.__file__).parent
#: Lines below which a module with one importer has to justify itself.
SMALL = 60


def passed(call: Callable[[], object]) -> dict[str, set[str]]:
    """Return the files of the package that a call passes through, each with the names of the functions."""
    call()  # imports and compiles
    seen: dict[str, set[str]] = defaultdict(set)

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            seen[str(Path(code.co_filename).relative_to(SOURCE))].add(code.co_qualname)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def records_to_page() -> None:
    """Fit records, advise, and write the page."""
    seen = {
        "unit": [1, 1, 1, 2, 2, 2],
        "time": [0, 1, 3, 0, 2, 3],
        "state": ["good", "good", "worn", "good", "worn", "failed"],
    }
    fitted = am.fit(
        seen,
        states=["good", "worn", "failed"],
        default_action="wait",
        assume={"wait": "stay", "renew": "good"},
        bootstrap=5,
    )
    prices = am.Economics(
        currency="EUR",
        period="year",
        discount=0.95,
        inspection=10.0,
        actions={"wait": 0.0, "renew": 100.0},
        running={"failed": 50.0},
    )
    with tempfile.TemporaryDirectory() as folder:
        write_page(am.inspection.advise(fitted, prices), Path(folder, "plan.html"))


def importers(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules of the package that import each of its modules, also in functions and for types only."""
    by_module: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    by_module[module if module in trees else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    by_module[alias.name].add(name)
    return by_module


def sizes() -> str:
    """Return the number of files and lines of the source, and of small modules that a single other one imports."""
    lines: dict[str, int] = {}
    trees: dict[str, ast.Module] = {}
    for file in SOURCE.rglob("*.py"):
        parts = [SOURCE.name, *file.relative_to(SOURCE).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text(encoding="utf-8")
        lines[name], trees[name] = len(text.splitlines()), ast.parse(text)
    imported = importers(trees)
    alone = sum(len(imported[name]) == 1 and count < SMALL for name, count in lines.items())
    return (
        f"{len(lines)} files, {sum(lines.values()):,} lines, median {statistics.median(lines.values()):.0f}; {alone} modules "
        f"with one importer and under {SMALL} lines"
    )


def main() -> None:
    """Print the sizes, and one line for each call."""
    print(f"source: {sizes()}")
    lake = am.problems.frozen_lake(4)
    calls: dict[str, Callable[[], object]] = {
        "solve": lambda: am.solve(lake),
        "train foresight": lambda: am.train(am.agents.make("foresight"), lake, 60),
        "records to page": records_to_page,
    }
    for name, call in calls.items():
        files = passed(call)
        print(f"{name}: {len(files)} files, {sum(map(len, files.values()))} functions", flush=True)
        if "--files" in sys.argv:
            for file, functions in sorted(files.items()):
                print(f"  {file}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
