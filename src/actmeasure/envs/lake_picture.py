"""A frozen lake as a picture, drawn with NumPy alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.envs import pixels
from actmeasure.envs.lake_window import LakeWindow, percent
from actmeasure.envs.pixels import GLYPH_HEIGHT, GLYPH_WIDTH, Canvas, Colour
from actmeasure.envs.story import Story
from actmeasure.problems.lake_map import CharArray

__all__ = ["show"]

#: So many rows and columns are shown; a larger lake is shown around the place where you are.
LIMIT = 24
#: Size of a cell in pixels, and of the lake if its cells can be as large as that.
SMALLEST_CELL, LARGEST_CELL, COMFORTABLE = 24, 96, 576
#: The lines of text need so much room, whatever the lake's size.
NARROWEST = 384
MARGIN = 12

PAPER, INK, ICE, EDGE = (255, 255, 255), (20, 28, 40), (232, 241, 247), (186, 205, 218)
BELIEF, HOLE, RIM, YOU, FLAG = (18, 74, 140), (16, 22, 32), (120, 140, 156), (255, 166, 33), (196, 30, 58)


def show(cells: CharArray, story: Story) -> npt.NDArray[np.uint8]:
    """The lake with where you are, what may be believed and where you looked last; uint8 (height, width, 3)."""
    window = LakeWindow.around(cells, story, LIMIT)
    rows, columns = window.cells.shape
    cell = int(np.clip(COMFORTABLE // max(rows, columns), SMALLEST_CELL, LARGEST_CELL))
    head = _head(window, story)
    line = 2 * GLYPH_HEIGHT + 2
    top = MARGIN + len(head) * line + 4
    width = max(columns * cell, NARROWEST) + 2 * MARGIN
    canvas = np.empty((top + rows * cell + 2 * MARGIN + 20, width, 3))
    pixels.fill(canvas, PAPER)
    for number, text in enumerate(head):
        pixels.write(canvas, MARGIN + number * line, MARGIN, text, INK, scale=2)
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
    pixels.fill(canvas, ICE)
    if probability > 0:
        # The root makes small probabilities visible; how small they are says the number in the cell.
        pixels.paint(canvas, np.full((size, size), 0.15 + 0.75 * probability**0.5), BELIEF)
    if kind == "H":
        pixels.paint(canvas, pixels.disc(size, 0.78), RIM)
        pixels.paint(canvas, pixels.disc(size, 0.70, down=0.04), HOLE)
    elif kind == "G":
        _draw_flag(canvas)
    ink = PAPER if probability > 0.15 else INK
    scale = max(1, size // 32)
    if kind == "S":
        pixels.write(canvas, 2 + scale, size - 6 * scale - 3, "S", ink, scale)
    _frame(canvas, EDGE, 1)
    if (row, column) == window.looked:
        _frame(canvas, INK, max(2, size // 20))
        _draw_eye(canvas[3:, 3:], max(11, size // 3))
    if (row, column) == window.you:
        # In a small cell it has to make room for the number below and the eye on the left.
        _draw_you(canvas, down=-0.05) if size >= 48 else _draw_you(canvas, down=-0.42, right=0.2)
    number = percent(probability)
    width = len(number) * GLYPH_WIDTH * scale - scale
    pixels.write(canvas, size - 8 * scale - 2 - scale, (size - width) // 2, number, ink, scale)


def _frame(canvas: Canvas, colour: Colour, width: int) -> None:
    for side in (canvas[:width], canvas[-width:], canvas[:, :width], canvas[:, -width:]):
        pixels.fill(side, colour)


def _draw_flag(canvas: Canvas) -> None:
    size = len(canvas)
    pixels.paint(canvas, pixels.triangle(size, -0.62, 0.0, -0.28, 0.55), FLAG)
    pole = slice(int(0.31 * size), int(0.31 * size) + max(1, size // 16))
    pixels.fill(canvas[int(0.17 * size) : int(0.84 * size), pole], INK)


def _draw_you(canvas: Canvas, down: float = 0.0, right: float = 0.0, radius: float = 0.36) -> None:
    """A disc with a dark and a light ring, which stands out on ice, on dark belief and in a hole, in colour or not."""
    size = len(canvas)
    ring = 2.5 / size + 0.02
    for grown, colour in ((2 * ring, PAPER), (ring, INK), (0.0, YOU)):
        pixels.paint(canvas, pixels.disc(size, radius - 0.08 + grown, down, right), colour)


def _draw_eye(canvas: Canvas, size: int) -> None:
    """An eye at the upper left, `size` pixels wide and two thirds as high."""
    cut = size // 6
    corner = canvas[: size - 2 * cut, :size]
    for cover, colour in (
        (pixels.lens(size, 1.0, 0.66), INK),
        (pixels.lens(size, 0.80, 0.48), PAPER),
        (pixels.disc(size, 0.30), INK),
    ):
        pixels.paint(corner, cover[cut : size - cut], colour)


def _draw_legend(canvas: Canvas) -> None:
    """What the signs mean, in a line under the lake."""
    shades = np.broadcast_to(np.linspace(0.05, 0.9, 28), (18, 28))
    _draw_you(canvas[:20, :20], radius=0.8)
    _draw_eye(canvas[3:20, 82:], 22)
    pixels.fill(canvas[1:19, 242:270], ICE)
    pixels.paint(canvas[1:19, 242:270], shades, BELIEF)
    for left, text in ((28, "you"), (112, "last look"), (278, "belief %")):
        pixels.write(canvas, 3, left, text, INK, scale=2)
