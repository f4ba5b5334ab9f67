"""What a benchmark reports."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A measured value beside the most it may be."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def met(self) -> bool:
        return self.value <= self.most

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        return f"{self.name:<64} {self.value:>9.3g} {self.unit:<4} goal <= {self.most:g} {self.unit:<4} {verdict}"


def in_fresh_process(code: str) -> dict[str, float]:
    """Run code that sets `result`, a dict of numbers, in a new interpreter, and add the peak memory in GiB as `memory`."""
    report = """
import json, resource
result["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps(result))
"""
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return {key: float(value) for key, value in json.loads(done.stdout.splitlines()[-1]).items()}
