"""Frozen lakes as environments that can be watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.envs.problem import ProblemEnv
from actmeasure.envs.story import Story
from actmeasure.model.transitions import FloatArray
from actmeasure.problems.frozen_lake import CharArray, lake_map

__all__ = [
    "GLYPH_HEIGHT",
    "GLYPH_WIDTH",
    "Canvas",
    "Colour",
    "FrozenLakeEnv",
    "LakeWindow",
    "as_picture",
    "as_text",
    "disc",
    "fill",
    "grid",
    "lens",
    "paint",
    "percent",
    "triangle",
    "write",
]


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
        return (as_text if self.render_mode == "ansi" else as_picture)(self.cells, story)


# ----------------------------------------------------------------------------------------------------
# Which part of a lake is shown, and with what in it: what text and picture have in common.
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LakeWindow:
    """The cells around the place where you are, at most `limit` in either direction.

    Attributes
    ----------
    cells : str array, shape (rows, columns)
    belief : float64 array, shape (rows, columns)
        Probability of being in each cell, 0 everywhere when the episode is over.
    you : (row, column)
        Where you are, inside the window.
    looked : (row, column) or None
        Where you looked last, if that is inside the window.
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
    def around(cls, cells: CharArray, story: Story, limit: int) -> LakeWindow:
        """The window that the story's state is in the middle of, as far as the lake allows."""
        n_rows, n_columns = cells.shape
        row, column = divmod(story.state, n_columns)
        top, rows = _span(row, n_rows, limit)
        left, columns = _span(column, n_columns, limit)
        belief = np.zeros((rows, columns))
        at_row, at_column = np.divmod(story.belief.states, n_columns)
        inside = (at_row >= top) & (at_row < top + rows) & (at_column >= left) & (at_column < left + columns)
        belief[at_row[inside] - top, at_column[inside] - left] = story.belief.probabilities[inside]
        looked = None
        if story.last_look is not None:
            look_row, look_column = divmod(story.last_look[1], n_columns)
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
        """Which rows and columns are shown, unless all of them are."""
        if self.cells.shape == self.lake:
            return None
        (top, left), (rows, columns) = self.corner, self.cells.shape
        return f"rows {top}-{top + rows - 1}, columns {left}-{left + columns - 1}"


def _span(position: int, size: int, limit: int) -> tuple[int, int]:
    """First index and number of those shown around a position."""
    shown = min(size, limit)
    return min(max(position - shown // 2, 0), size - shown), shown


def percent(probability: float) -> str:
    """A probability in at most three characters; empty for 0."""
    if probability == 0:
        return ""
    return "<1" if probability < 0.005 else f"{100 * probability:.0f}"


# ----------------------------------------------------------------------------------------------------
# A frozen lake as text: the map on the left, the belief on the right.
# ----------------------------------------------------------------------------------------------------


#: So many rows and columns fit into a terminal, twice beside each other.
TEXT_LIMIT = 16


def as_text(cells: CharArray, story: Story) -> str:
    """The episode so far, the lake, and what may be believed."""
    window = LakeWindow.around(cells, story, TEXT_LIMIT)
    head = [f"step {story.step}: {story.deed}", f"last look: {_last_look(cells, story)}"]
    head.append(f"return so far: {story.total:.6g} ({story.looks_paid})")
    if story.belief.is_over:
        head.append("the episode is over")
    if window.excerpt is not None:
        head.append(f"shown: {window.excerpt}")
    rows = [f"{_map_row(window, row)}   {_belief_row(window, row)}" for row in range(len(window.cells))]
    return "\n".join([*head, "", *rows, "", "[ ] you, ( ) last look; right: belief in %"])


def _last_look(cells: CharArray, story: Story) -> str:
    if story.last_look is None:
        return "never"
    step, state = story.last_look
    row, column = divmod(state, cells.shape[1])
    return f"at step {step} in row {row}, column {column}"


def _map_row(window: LakeWindow, row: int) -> str:
    marks = []
    for column, cell in enumerate(window.cells[row]):
        place = (row, column)
        left, right = "[]" if place == window.you else "()" if place == window.looked else "  "
        marks.append(f"{left}{_sign(cell)}{right}")
    return "".join(marks)


def _belief_row(window: LakeWindow, row: int) -> str:
    entries = []
    for cell, probability in zip(window.cells[row], window.belief[row], strict=True):
        entries.append(percent(probability) or _sign(cell))
    return "".join(f"{entry:>4}" for entry in entries)


def _sign(cell: str) -> str:
    """Plain ice is a dot, so that the rest stands out."""
    return "." if cell == "F" else cell


# ----------------------------------------------------------------------------------------------------
# A frozen lake as a picture, drawn with NumPy alone.
# ----------------------------------------------------------------------------------------------------


#: So many rows and columns are shown; a larger lake is shown around the place where you are.
PICTURE_LIMIT = 24
#: Size of a cell in pixels, and of the lake if its cells can be as large as that.
SMALLEST_CELL, LARGEST_CELL, COMFORTABLE = 24, 96, 576
#: The lines of text need so much room, whatever the lake's size.
NARROWEST = 384
MARGIN = 12

PAPER, INK, ICE, EDGE = (255, 255, 255), (20, 28, 40), (232, 241, 247), (186, 205, 218)
BELIEF, HOLE, RIM, YOU, FLAG = (18, 74, 140), (16, 22, 32), (120, 140, 156), (255, 166, 33), (196, 30, 58)


def as_picture(cells: CharArray, story: Story) -> npt.NDArray[np.uint8]:
    """The lake with where you are, what may be believed and where you looked last; uint8 (height, width, 3)."""
    window = LakeWindow.around(cells, story, PICTURE_LIMIT)
    rows, columns = window.cells.shape
    cell = int(np.clip(COMFORTABLE // max(rows, columns), SMALLEST_CELL, LARGEST_CELL))
    head = _head(window, story)
    line = 2 * GLYPH_HEIGHT + 2
    top = MARGIN + len(head) * line + 4
    width = max(columns * cell, NARROWEST) + 2 * MARGIN
    canvas = np.empty((top + rows * cell + 2 * MARGIN + 20, width, 3))
    fill(canvas, PAPER)
    for number, text in enumerate(head):
        write(canvas, MARGIN + number * line, MARGIN, text, INK, scale=2)
    left = (width - columns * cell) // 2
    for row in range(rows):
        for column in range(columns):
            y, x = top + row * cell, left + column * cell
            _draw_cell(canvas[y : y + cell, x : x + cell], window, row, column)
    _draw_legend(canvas[-MARGIN - 20 : -MARGIN, MARGIN:])
    return np.round(canvas).astype(np.uint8)


def _head(window: LakeWindow, story: Story) -> list[str]:
    """What is said above the lake."""
    since = "never" if story.last_look is None else _ago(story.step - story.last_look[0])
    lines = [
        f"step {story.step}: {story.deed}",
        f"last look: {since}",
        f"return {story.total:.4g} ({story.looks_paid})" + (", over" if story.belief.is_over else ""),
    ]
    return lines if window.excerpt is None else [*lines, window.excerpt]


def _ago(steps: int) -> str:
    return "now" if steps == 0 else "1 step ago" if steps == 1 else f"{steps} steps ago"


def _draw_cell(canvas: Canvas, window: LakeWindow, row: int, column: int) -> None:
    """One cell of the lake, in its own part of the canvas."""
    kind, probability, size = window.cells[row, column], float(window.belief[row, column]), len(canvas)
    fill(canvas, ICE)
    if probability > 0:
        # The root makes small probabilities visible; how small they are says the number in the cell.
        paint(canvas, np.full((size, size), 0.15 + 0.75 * probability**0.5), BELIEF)
    if kind == "H":
        paint(canvas, disc(size, 0.78), RIM)
        paint(canvas, disc(size, 0.70, down=0.04), HOLE)
    elif kind == "G":
        _draw_flag(canvas)
    ink = PAPER if probability > 0.15 else INK
    scale = max(1, size // 32)
    if kind == "S":
        write(canvas, 2 + scale, size - 6 * scale - 3, "S", ink, scale)
    _frame(canvas, EDGE, 1)
    if (row, column) == window.looked:
        _frame(canvas, INK, max(2, size // 20))
        _draw_eye(canvas[3:, 3:], max(11, size // 3))
    if (row, column) == window.you:
        # In a small cell it has to make room for the number below and the eye on the left.
        _draw_you(canvas, down=-0.05) if size >= 48 else _draw_you(canvas, down=-0.42, right=0.2)
    number = percent(probability)
    width = len(number) * GLYPH_WIDTH * scale - scale
    write(canvas, size - 8 * scale - 2 - scale, (size - width) // 2, number, ink, scale)


def _frame(canvas: Canvas, colour: Colour, width: int) -> None:
    for side in (canvas[:width], canvas[-width:], canvas[:, :width], canvas[:, -width:]):
        fill(side, colour)


def _draw_flag(canvas: Canvas) -> None:
    size = len(canvas)
    paint(canvas, triangle(size, -0.62, 0.0, -0.28, 0.55), FLAG)
    pole = slice(int(0.31 * size), int(0.31 * size) + max(1, size // 16))
    fill(canvas[int(0.17 * size) : int(0.84 * size), pole], INK)


def _draw_you(canvas: Canvas, down: float = 0.0, right: float = 0.0, radius: float = 0.36) -> None:
    """A disc with a dark and a light ring, which stands out on ice, on dark belief and in a hole, in colour or not."""
    size = len(canvas)
    ring = 2.5 / size + 0.02
    for grown, colour in ((2 * ring, PAPER), (ring, INK), (0.0, YOU)):
        paint(canvas, disc(size, radius - 0.08 + grown, down, right), colour)


def _draw_eye(canvas: Canvas, size: int) -> None:
    """An eye at the upper left, `size` pixels wide and two thirds as high."""
    cut = size // 6
    corner = canvas[: size - 2 * cut, :size]
    for cover, colour in (
        (lens(size, 1.0, 0.66), INK),
        (lens(size, 0.80, 0.48), PAPER),
        (disc(size, 0.30), INK),
    ):
        paint(corner, cover[cut : size - cut], colour)


def _draw_legend(canvas: Canvas) -> None:
    """What the signs mean, in a line under the lake."""
    shades = np.broadcast_to(np.linspace(0.05, 0.9, 28), (18, 28))
    _draw_you(canvas[:20, :20], radius=0.8)
    _draw_eye(canvas[3:20, 82:], 22)
    fill(canvas[1:19, 242:270], ICE)
    paint(canvas[1:19, 242:270], shades, BELIEF)
    for left, text in ((28, "you"), (112, "last look"), (278, "belief %")):
        write(canvas, 3, left, text, INK, scale=2)


# ----------------------------------------------------------------------------------------------------
# Drawing with NumPy alone: soft-edged shapes, and text in a font of 5 by 7 dots.
# ----------------------------------------------------------------------------------------------------


Canvas = npt.NDArray[np.float64]
Colour = tuple[int, int, int]

#: Dots from one character to the next, and from one line to the next.
GLYPH_WIDTH, GLYPH_HEIGHT = 6, 9

# Seven rows of five dots each, the dots of a row being the bits of a hexadecimal number: 11 is "#   #".
_FONT = {
    "A": "0e 11 11 1f 11 11 11", "B": "1e 11 11 1e 11 11 1e", "C": "0e 11 10 10 10 11 0e", "D": "1e 11 11 11 11 11 1e",
    "E": "1f 10 10 1e 10 10 1f", "F": "1f 10 10 1e 10 10 10", "G": "0e 11 10 17 11 11 0f", "H": "11 11 11 1f 11 11 11",
    "I": "0e 04 04 04 04 04 0e", "J": "07 02 02 02 02 12 0c", "K": "11 12 14 18 14 12 11", "L": "10 10 10 10 10 10 1f",
    "M": "11 1b 15 15 11 11 11", "N": "11 19 15 13 11 11 11", "O": "0e 11 11 11 11 11 0e", "P": "1e 11 11 1e 10 10 10",
    "Q": "0e 11 11 11 15 12 0d", "R": "1e 11 11 1e 14 12 11", "S": "0f 10 10 0e 01 01 1e", "T": "1f 04 04 04 04 04 04",
    "U": "11 11 11 11 11 11 0e", "V": "11 11 11 11 11 0a 04", "W": "11 11 11 15 15 1b 11", "X": "11 11 0a 04 0a 11 11",
    "Y": "11 11 0a 04 04 04 04", "Z": "1f 01 02 04 08 10 1f", "0": "0e 11 13 15 19 11 0e", "1": "04 0c 04 04 04 04 0e",
    "2": "0e 11 01 02 04 08 1f", "3": "1f 02 04 02 01 11 0e", "4": "02 06 0a 12 1f 02 02", "5": "1f 10 1e 01 01 11 0e",
    "6": "06 08 10 1e 11 11 0e", "7": "1f 01 02 04 08 08 08", "8": "0e 11 11 0e 11 11 0e", "9": "0e 11 11 0f 01 02 0c",
    " ": "00 00 00 00 00 00 00", ".": "00 00 00 00 00 0c 0c", ",": "00 00 00 00 0c 04 08", ":": "00 0c 0c 00 0c 0c 00",
    "-": "00 00 00 1f 00 00 00", "+": "00 04 04 1f 04 04 00", "<": "02 04 08 10 08 04 02", "%": "18 19 02 04 08 13 03",
    "(": "02 04 08 08 08 04 02", ")": "08 04 02 02 02 04 08",
}  # fmt: skip

_DOTS = {
    character: np.array([[int(row, 16) >> (4 - dot) & 1 for dot in range(5)] for row in rows.split()], dtype=np.float64)
    for character, rows in _FONT.items()
}


def write(canvas: Canvas, top: int, left: int, text: str, colour: Colour, scale: int = 1) -> None:
    """Write a line of text, in capitals; characters that the font does not have are left blank."""
    for position, character in enumerate(text.upper()):
        dots = _DOTS.get(character, _DOTS[" "]).repeat(scale, axis=0).repeat(scale, axis=1)
        column = left + position * GLYPH_WIDTH * scale
        # Text that does not fit is cut off at the canvas' edge.
        target = canvas[top : top + dots.shape[0], column : column + dots.shape[1]]
        paint(target, dots[: target.shape[0], : target.shape[1]], colour)


def fill(canvas: Canvas, colour: Colour) -> None:
    """Paint everything in one colour."""
    canvas[:] = colour


def paint(canvas: Canvas, cover: FloatArray, colour: Colour) -> None:
    """Paint a colour where `cover`, shape (height, width), is 1, and mix it in where it is between 0 and 1."""
    canvas += cover[:, :, None] * (np.array(colour, dtype=np.float64) - canvas)


def grid(size: int) -> tuple[FloatArray, FloatArray]:
    """Vertical and horizontal positions of the pixels of a square whose sides go from -1 to 1; shapes (n, 1), (1, n)."""
    line = (np.arange(size, dtype=np.float64) + 0.5) * (2 / size) - 1
    return line[:, None], line[None, :]


def disc(size: int, radius: float, down: float = 0.0, right: float = 0.0) -> FloatArray:
    """Cover of a disc in a square of `size` pixels, with lengths in halves of its side."""
    y, x = grid(size)
    return _soft(np.hypot(y - down, x - right) - radius, size)


def lens(size: int, width: float, height: float) -> FloatArray:
    """Cover of an eye's outline: where two discs, one above the other, overlap."""
    y, x = grid(size)
    radius = (width**2 + height**2) / (2 * height)
    return _soft(np.hypot(np.abs(y) + radius - height, x) - radius, size)


def triangle(size: int, top: float, bottom: float, left: float, right: float) -> FloatArray:
    """Cover of a pennant: full height at its left side, pointed at its right."""
    y, x = grid(size)
    middle, half = (top + bottom) / 2, (bottom - top) / 2
    upper = np.abs(y - middle) - half * (right - x) / (right - left)
    return _soft(np.maximum(upper, left - x), size)


def _soft(distance: FloatArray, size: int) -> FloatArray:
    """1 inside (negative distance), 0 outside, and a pixel's width of both in between."""
    return np.clip(0.5 - distance * size / 2, 0.0, 1.0)
