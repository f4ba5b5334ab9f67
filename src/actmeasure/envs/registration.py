"""Our problems under Gymnasium's names, `actmeasure/FrozenLake-v0` and so on.

Nothing heavy is imported here: the entry points are strings, and the problems' names are listed again (a test holds the
list equal to `problems.PROBLEMS`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["PROBLEM_NAMES", "environment_id", "register_environments", "register_once_loaded"]

#: The keys of `problems.PROBLEMS`, without importing it.
PROBLEM_NAMES = (
    "measuring-value", "frozen-lake", "most-likely-successor", "two-state-belief", "tight-bound", "chain", "maintenance",
    "sepsis", "snake-maze", "drone", "sewer", "fatigue-crack", "inventory",
)  # fmt: skip

#: Problems with an environment class of their own; the others share one.
_OWN_CLASS = {"frozen-lake": "actmeasure.envs.lake:FrozenLakeEnv"}


def environment_id(problem: str) -> str:
    """Gymnasium's name for a problem.

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
            gymnasium.register(name, entry_point="actmeasure.envs.problem:ProblemEnv", kwargs={"problem": problem})


def register_once_loaded() -> None:
    """Register now if Gymnasium is loaded, otherwise as soon as it is.

    Gymnasium 1.0 gave up loading environments of other packages by itself, and importing it takes longer than the rest of
    `import actmeasure`. So it is not imported for the sake of registering, and still the order of the imports is free.
    """
    if hasattr(sys.modules.get("gymnasium"), "make"):
        register_environments()
    elif not any(isinstance(finder, _WaitForGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WaitForGymnasium())


class _WaitForGymnasium:
    """Finds nothing itself; sees Gymnasium being imported, registers our environments after it, and is gone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            register_environments()

        # Finding is not importing (`importlib.util.find_spec` only asks), so the registration waits for the execution.
        loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
