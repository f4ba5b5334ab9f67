"""Frozen lakes as environments, rendered as text or as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from actmeasure.envs.episode_history import EpisodeHistory
from actmeasure.envs.tabular import ProblemEnv
from actmeasure.errors import MissingExtraError, counted
from actmeasure.model.transitions import FloatArray
from actmeasure.problems.frozen_lake import CharArray, lake_map

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

__all__ = ["FrozenLakeEnv", "LakeWindow", "as_picture", "as_text"]

#: Largest number of rows and columns that are rendered as text, twice beside each other, and as a picture.
TEXT_LIMIT, PICTURE_LIMIT = 16, 24

#: Smallest and largest side of a cell in pixels, and the width of a lake in between.
SMALLEST_CELL, LARGEST_CELL, LAKE_WIDTH = 24, 96, 576
#: Smallest width of a picture, for its text; margin and height of a line, all in pixels.
SMALLEST_WIDTH, MARGIN, LINE = 384, 12, 20

PAPER, INK, ICE, EDGE = (255, 255, 255), (20, 28, 40), (232, 241, 247), (186, 205, 218)
BELIEF, HOLE, YOU, FLAG = (18, 74, 140), (16, 22, 32), (255, 166, 33), (196, 30, 58)


class FrozenLakeEnv(ProblemEnv):
    """A frozen lake: cross the ice to the goal without falling into a hole; seeing the present cell has a price.

    `gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="semi-slippery", measuring_cost=0.05)` makes it.

    Parameters
    ----------
    max_steps, reveal_start
        As in `TabularEnv`.
    render_mode : "ansi" or "rgb_array", optional
        Show the lake with the present state, the belief and the last look, as text or as a picture, a uint8 array of shape
        (height, width, 3), which needs Pillow (the extra `plots`). Of large lakes the part around the present state is shown.
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

    def _render(self, history: EpisodeHistory) -> Any:
        return (as_text if self.render_mode == "ansi" else as_picture)(self.cells, history)


@dataclass(frozen=True)
class LakeWindow:
    """The rendered part of a lake: the cells around the present state, with belief and last look.

    Attributes
    ----------
    cells : str array, shape (rows, columns)
    belief : float64 array, shape (rows, columns)
        Probability of being in each cell, 0 everywhere when the episode is over.
    you : (row, column)
        The present state, counted from the window's first cell.
    looked : (row, column) or None
        The state that was seen last, if it is inside the window.
    corner : (row, column)
        The window's first cell in the lake.
    lake : (rows, columns)
        Size of the whole lake.
    """

    cells: CharArray
    belief: FloatArray
    you: tuple[int, int]
    looked: tuple[int, int] | None
    corner: tuple[int, int]
    lake: tuple[int, int]

    @classmethod
    def around(cls, cells: CharArray, history: EpisodeHistory, limit: int) -> LakeWindow:
        """Return the window of at most `limit` rows and columns with the present state as near to its middle as possible."""
        n_rows, n_columns = cells.shape
        row, column = divmod(history.state, n_columns)
        top, rows = _span(row, n_rows, limit)
        left, columns = _span(column, n_columns, limit)
        belief = np.zeros((rows, columns))
        at_row, at_column = np.divmod(history.belief.states, n_columns)
        inside = (at_row >= top) & (at_row < top + rows) & (at_column >= left) & (at_column < left + columns)
        belief[at_row[inside] - top, at_column[inside] - left] = history.belief.probabilities[inside]
        looked = None
        if history.last_look is not None:
            look_row, look_column = divmod(history.last_look[1], n_columns)
            if top <= look_row < top + rows and left <= look_column < left + columns:
                looked = (look_row - top, look_column - left)
        return cls(
            cells=cells[top : top + rows, left : left + columns],
            belief=belief,
            you=(row - top, column - left),
            looked=looked,
            corner=(top, left),
            lake=(n_rows, n_columns),
        )

    @property
    def excerpt(self) -> str | None:
        """The rows and columns of the window in words, None if it is the whole lake."""
        if self.cells.shape == self.lake:
            return None
        (top, left), (rows, columns) = self.corner, self.cells.shape
        return f"rows {top}-{top + rows - 1}, columns {left}-{left + columns - 1}"


def _span(position: int, size: int, limit: int) -> tuple[int, int]:
    """Return the first index and the number of rows, or columns, around a position."""
    shown = min(size, limit)
    return min(max(position - shown // 2, 0), size - shown), shown


def _percent(probability: float) -> str:
    """Return a probability as a percentage of at most three characters; empty for 0."""
    if probability == 0:
        return ""
    return "<1" if probability < 0.005 else f"{100 * probability:.0f}"


def as_text(cells: CharArray, history: EpisodeHistory) -> str:
    """Return the episode so far in words, the map of the lake and, on its right, the belief."""
    window = LakeWindow.around(cells, history, TEXT_LIMIT)
    head = [f"step {history.step}: {history.last_step}", f"last look: {_last_look(cells, history)}"]
    head.append(f"return so far: {history.total:.6g} ({history.looks_paid})")
    if history.belief.is_over:
        head.append("the episode is over")
    if window.excerpt is not None:
        head.append(f"shown: {window.excerpt}")
    rows = [f"{_map_row(window, row)}   {_belief_row(window, row)}" for row in range(len(window.cells))]
    return "\n".join([*head, "", *rows, "", "[ ] you, ( ) last look; right: belief in %"])


def _last_look(cells: CharArray, history: EpisodeHistory) -> str:
    if history.last_look is None:
        return "never"
    step, state = history.last_look
    row, column = divmod(state, cells.shape[1])
    return f"at step {step} in row {row}, column {column}"


def _map_row(window: LakeWindow, row: int) -> str:
    marks = []
    for column, cell in enumerate(window.cells[row]):
        at = (row, column)
        left, right = "[]" if at == window.you else "()" if at == window.looked else "  "
        marks.append(f"{left}{_sign(cell)}{right}")
    return "".join(marks)


def _belief_row(window: LakeWindow, row: int) -> str:
    entries = []
    for cell, probability in zip(window.cells[row], window.belief[row], strict=True):
        entries.append(_percent(probability) or _sign(cell))
    return "".join(f"{entry:>4}" for entry in entries)


def _sign(cell: str) -> str:
    """Return the character of a cell; ice is a dot, so that other cells stand out."""
    return "." if cell == "F" else cell


def as_picture(cells: CharArray, history: EpisodeHistory) -> npt.NDArray[np.uint8]:
    """Return a picture of the lake with the present state, the belief and the last look; uint8 (height, width, 3)."""
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise MissingExtraError("a picture of the lake", "plots") from error
    window = LakeWindow.around(cells, history, PICTURE_LIMIT)
    rows, columns = window.cells.shape
    size = int(np.clip(LAKE_WIDTH // max(rows, columns), SMALLEST_CELL, LARGEST_CELL))
    head = _head(window, history)
    top = MARGIN + len(head) * LINE + 4
    width, height = max(columns * size, SMALLEST_WIDTH) + 2 * MARGIN, top + rows * size + 2 * MARGIN + LINE
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(head):
        draw.text((MARGIN, MARGIN + number * LINE), line, INK, font_size=15)
    left = (width - columns * size) // 2
    for row in range(rows):
        for column in range(columns):
            _draw_cell(draw, (left + column * size, top + row * size), size, window, (row, column))
    _draw_legend(draw, MARGIN, height - MARGIN - LINE)
    return np.array(image)


def _head(window: LakeWindow, history: EpisodeHistory) -> list[str]:
    """Return the lines above the lake."""
    ago = None if history.last_look is None else history.step - history.last_look[0]
    since = "never" if ago is None else "now" if ago == 0 else f"{counted(ago, 'step')} ago"
    over = ", the episode is over" if history.belief.is_over else ""
    lines = [
        f"step {history.step}: {history.last_step}",
        f"last look: {since}",
        f"return so far: {history.total:.4g} ({history.looks_paid}){over}",
    ]
    return lines if window.excerpt is None else [*lines, window.excerpt]


def _draw_cell(draw: ImageDraw, corner: tuple[int, int], size: int, window: LakeWindow, cell: tuple[int, int]) -> None:
    """Draw one cell, `size` pixels wide: ice darkened by the belief, what is on it, and the probability in percent."""
    kind, probability = window.cells[cell], float(window.belief[cell])
    x, y = corner

    def box(left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
        """Return a rectangle in pixels, from fractions of the cell."""
        return x + left * size, y + top * size, x + right * size, y + bottom * size

    # The root makes small probabilities visible; how small they are says the number in the cell.
    darkness = 0.15 + 0.75 * probability**0.5 if probability > 0 else 0.0
    shade = tuple(round(ice + darkness * (dark - ice)) for ice, dark in zip(ICE, BELIEF, strict=True))
    looked = cell == window.looked
    draw.rectangle(box(0, 0, 1, 1), shade, INK if looked else EDGE, width=max(2, size // 20) if looked else 1)
    if kind == "H":
        draw.ellipse(box(0.12, 0.12, 0.88, 0.88), HOLE)
    elif kind == "G":
        draw.polygon([box(0.36, 0.19, 0, 0)[:2], box(0.78, 0.34, 0, 0)[:2], box(0.36, 0.5, 0, 0)[:2]], FLAG)
        draw.rectangle(box(0.31, 0.17, 0.37, 0.84), INK)
    if looked:
        _draw_eye(draw, (x + 3, y + 3), max(10, size // 3))
    if cell == window.you:
        draw.ellipse(box(0.36, 0.28, 0.72, 0.64), YOU, INK, width=max(1, size // 24))
    ink = PAPER if probability > 0.15 else INK
    if kind == "S":
        draw.text((x + size - 3, y + 2), "S", ink, anchor="ra", font_size=max(8, size // 6))
    draw.text((x + size / 2, y + size - 2), _percent(probability), ink, anchor="md", font_size=max(8, size // 5))


def _draw_eye(draw: ImageDraw, corner: tuple[int, int], width: int) -> None:
    """Draw the sign of the last look, two thirds as high as wide."""
    x, y = corner
    height = 2 * width // 3
    draw.ellipse((x, y, x + width, y + height), PAPER, INK, width=max(1, width // 12))
    draw.ellipse((x + width / 2 - height / 4, y + height / 4, x + width / 2 + height / 4, y + 3 * height / 4), INK)


def _draw_legend(draw: ImageDraw, x: int, y: int) -> None:
    """Draw what the signs mean, in a line."""
    draw.ellipse((x + 2, y + 2, x + 16, y + 16), YOU, INK)
    _draw_eye(draw, (x + 72, y + 2), 21)
    draw.rectangle((x + 204, y + 2, x + 228, y + 16), BELIEF)
    for left, label in ((24, "you"), (102, "last look"), (236, "belief in %")):
        draw.text((x + left, y), label, INK, font_size=15)
