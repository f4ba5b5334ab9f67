"""Frozen lakes as environments that can be watched."""

from __future__ import annotations

from typing import Any

from actmeasure.envs import lake_picture, lake_text
from actmeasure.envs.problem import ProblemEnv
from actmeasure.envs.story import Story
from actmeasure.problems.lake_map import CharArray, lake_map

__all__ = ["FrozenLakeEnv"]


class FrozenLakeEnv(ProblemEnv):
    """Walk to the goal over ice with holes in it, and pay to see where you are.

    `gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="semi-slippery", measuring_cost=0.05)` makes it.

    Parameters
    ----------
    max_steps, reveal_start
        As in `TabularEnv`.
    render_mode : "ansi" or "rgb_array", optional
        Show the lake with where you are, what you may believe and where you looked last, as text or as a picture, a
        uint8 array of shape (height, width, 3). Large lakes are shown around the place where you are.
    **settings
        `size`, `variant`, `measuring_cost`, `discount`, `map` and `seed` of `problems.frozen_lake`.

    Attributes
    ----------
    cells : str array, shape (rows, columns)
        S start, F frozen, H hole, G goal; states are cells, row by row.

    Examples
    --------
    >>> env = FrozenLakeEnv(map=["SFH", "FFG"], variant="deterministic", render_mode="ansi")
    >>> _ = env.reset(seed=0)
    >>> _ = env.step([2, 0])
    >>> print(env.render())
    step 1: right, blind
    last look: at step 0 in row 0, column 0
    return so far: 0 (0 looks)
    <BLANKLINE>
    (S)[.] H       S 100   H
     .  .  G       .   .   G
    <BLANKLINE>
    [ ] you, ( ) last look; right: belief in %
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        *,
        max_steps: int = 1000,
        reveal_start: bool | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            "frozen-lake", max_steps=max_steps, reveal_start=reveal_start, render_mode=render_mode, **settings
        )
        self.cells: CharArray = lake_map(settings.get("size"), settings.get("map"), settings.get("seed"))

    def _render(self, story: Story) -> Any:
        show = lake_text.show if self.render_mode == "ansi" else lake_picture.show
        return show(self.cells, story)
