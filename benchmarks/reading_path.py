"""How much of the source a reader follows: files and functions that a call passes through, `python -m benchmarks.reading_path`.

With `--files` they are listed. Counted are functions of the package that Python calls, without their import, and kernels, which
Python does not see, by the files that hold those which were called directly.
"""

from __future__ import annotations

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


def main() -> None:
    """Print one line for each call."""
    files = list(SOURCE.rglob("*.py"))
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    print(f"source: {len(files)} files, {lines:,} lines")
    lake = am.problems.frozen_lake(4)
    calls: dict[str, Callable[[], object]] = {
        "solve": lambda: am.solve(lake),
        "train foresight": lambda: am.train(am.agents.make("foresight"), lake, 60),
        "records to page": records_to_page,
    }
    for name, call in calls.items():
        found = passed(call)
        print(f"{name}: {len(found)} files, {sum(map(len, found.values()))} functions", flush=True)
        if "--files" in sys.argv:
            for file, functions in sorted(found.items()):
                print(f"  {file}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
