"""The problems of `actmeasure.problems` as environments."""

from __future__ import annotations

from typing import Any

from actmeasure import problems
from actmeasure.envs.tabular import TabularEnv
from actmeasure.errors import ModelError
from actmeasure.settings import make_by_name

__all__ = ["ProblemEnv"]


class ProblemEnv(TabularEnv):
    """The environment of a problem by name, as `gymnasium.make("actmeasure/MeasuringValue-v0", p=0.9)` returns it.

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
        own = ("max_steps", "reveal_start", "render_mode")
        model = make_by_name("problem", problem, problems.PROBLEMS, settings, ModelError, also=own)
        super().__init__(model, max_steps=max_steps, reveal_start=reveal_start, render_mode=render_mode)
