"""Drawing with NumPy alone: soft-edged shapes, and text in a font of 5 by 7 dots."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.transitions import FloatArray

__all__ = [
    "GLYPH_HEIGHT",
    "GLYPH_WIDTH",
    "Canvas",
    "Colour",
    "disc",
    "fill",
    "grid",
    "lens",
    "paint",
    "triangle",
    "write",
]

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
