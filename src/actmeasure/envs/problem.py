"""The problems of `actmeasure.problems` as environments."""

from __future__ import annotations

import inspect
from typing import Any

from actmeasure import problems
from actmeasure.envs.tabular import TabularEnv
from actmeasure.errors import ModelError, unknown_name

__all__ = ["ProblemEnv"]


class ProblemEnv(TabularEnv):
    """A problem by name, as `gymnasium.make("actmeasure/MeasuringValue-v0", p=0.9)` makes it.

    Parameters
    ----------
    problem : str
        A name in `problems.PROBLEMS`.
    max_steps, reveal_start, render_mode
        As in `TabularEnv`.
    **settings
        The problem's own, such as its measuring cost. An unknown one is a `ModelError`.
    """

    def __init__(
        self,
        problem: str,
        *,
        max_steps: int = 1000,
        reveal_start: bool | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        _check_names(problem, settings)
        model = problems.make(problem, **settings)
        super().__init__(model, max_steps=max_steps, reveal_start=reveal_start, render_mode=render_mode)


def _check_names(problem: str, settings: dict[str, Any]) -> None:
    """As `problems.make` does, but with the environment's own settings among what may have been meant."""
    if problem not in problems.PROBLEMS:
        return
    known = {*inspect.signature(problems.PROBLEMS[problem]).parameters, "max_steps", "reveal_start", "render_mode"}
    for setting in settings:
        if setting not in known:
            raise ModelError(unknown_name(f"setting of {problem}", setting, known))
