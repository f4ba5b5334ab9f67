"""Registration of the problems with Gymnasium, as `actmeasure/FrozenLake-v0` and so on.

Only Gymnasium is imported here, and only when environments are registered: entry points are strings, and the names of the
problems are listed once more (a test compares the list with `problems.PROBLEMS`).
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

__all__ = ["PROBLEM_NAMES", "environment_id", "register_environments", "runs_as_command"]

#: The keys of `problems.PROBLEMS`, without importing it.
PROBLEM_NAMES = (
    "measuring-value", "frozen-lake", "most-likely-successor", "two-state-belief", "tight-bound", "chain", "maintenance",
    "sepsis", "snake-maze", "drone", "sewer", "fatigue-crack", "inventory", "inspection",
    "tiger", "pile-selection", "simple-fatigue", "rock-sample", "component-line", "crack-life", "k-out-of-n",
)  # fmt: skip

#: Problems with an environment class of their own; the others share one.
_OWN_CLASS = {"frozen-lake": "actmeasure.envs.lake:FrozenLakeEnv"}


def environment_id(problem: str) -> str:
    """Return the Gymnasium id of a problem.

    Examples
    --------
    >>> environment_id("frozen-lake")
    'actmeasure/FrozenLake-v0'
    """
    return f"actmeasure/{''.join(word.capitalize() for word in problem.split('-'))}-v0"


def register_environments() -> None:
    """Register every problem with Gymnasium; doing it again changes nothing."""
    import gymnasium

    for problem in PROBLEM_NAMES:
        name = environment_id(problem)
        if name in gymnasium.registry:
            continue
        if problem in _OWN_CLASS:
            gymnasium.register(name, entry_point=_OWN_CLASS[problem])
        else:
            gymnasium.register(name, entry_point="actmeasure.envs.tabular:ProblemEnv", kwargs={"problem": problem})


def runs_as_command() -> bool:
    """Return whether this process is the command `actmeasure` or `python -m actmeasure`.

    Importing Gymnasium takes several times as long as `actmeasure --help` does without it, so the command registers the
    environments when it first uses one.
    """
    program = Path(sys.argv[0]).stem if sys.argv else ""
    return program == "actmeasure" or ("-m", "actmeasure") in pairwise(sys.orig_argv)
