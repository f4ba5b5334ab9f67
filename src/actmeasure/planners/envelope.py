"""Lines in the price of a look, and the envelopes that they and the bounds on the optimum form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from actmeasure.evaluation import Evaluation
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

__all__ = [
    "Line",
    "Piece",
    "crossing",
    "envelope",
    "envelope_values",
    "price_at_bound",
    "price_at_value",
    "tightened_bounds",
]

#: Looks that differ by less than this, relatively, are the same up to rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Line:
    """A schedule as a line in the price: `reward - price * looks`."""

    schedule: Schedule
    evaluation: Evaluation
    reward: float
    looks: float

    def at(self, price: float) -> float:
        return self.reward - price * self.looks


@dataclass(frozen=True, eq=False)
class Piece:
    """A line and the prices between which it is the highest."""

    line: Line
    low: float
    high: float


def envelope(lines: list[Line], negligible: float) -> list[Piece]:
    """The highest of the lines at every price from 0 to infinity, without pieces that hardly rise above their neighbours."""
    kept = [piece.line for piece in _highest(lines)]
    while len(kept) > 1:
        rises = [_rise(kept, i) for i in range(len(kept) - 1)]
        least = int(np.argmin(rises))
        if rises[least] >= negligible:
            break
        del kept[least]
    return _highest(kept)


def _highest(lines: list[Line]) -> list[Piece]:
    if not lines:
        return []
    line, low = max(lines, key=lambda line: (line.reward, -line.looks)), 0.0
    pieces: list[Piece] = []
    while True:
        flatter = [other for other in lines if other.looks < line.looks - ROUNDING * (1 + line.looks)]
        if not flatter:
            return [*pieces, Piece(line, low, math.inf)]
        # At a crossing of several, the flattest is the highest afterwards.
        after = min(flatter, key=lambda other: (crossing(line, other), other.looks))
        high = max(low, crossing(line, after))
        if high > low:
            pieces.append(Piece(line, low, high))
        line, low = after, high


def crossing(steep: Line, flat: Line) -> float:
    return (steep.reward - flat.reward) / (steep.looks - flat.looks)


def _rise(lines: list[Line], i: int) -> float:
    """How far line `i` of an envelope rises above the others, at most; not for the last line, which rises without end."""
    price = 0.0 if i == 0 else crossing(lines[i - 1], lines[i + 1])
    return lines[i].at(price) - lines[i + 1].at(price)


def tightened_bounds(uppers: dict[float, float]) -> tuple[FloatArray, FloatArray]:
    """Solved prices in order and the bounds there, made tighter: the optimum never rises with the price, and is convex."""
    prices = np.array(sorted(uppers))
    bounds = np.minimum.accumulate([uppers[price] for price in prices])
    hull: list[int] = []
    for i in range(len(prices)):
        while len(hull) > 1 and _is_above(prices, bounds, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return prices, np.interp(prices, prices[hull], bounds[hull])


def _is_above(x: FloatArray, y: FloatArray, left: int, middle: int, right: int) -> bool:
    """Whether the middle point is on or above the chord of the others."""
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= (y[right] - y[left]) * (x[middle] - x[left]))


def envelope_values(pieces: list[Piece], prices: FloatArray) -> FloatArray:
    """The inner envelope at some prices."""
    if not pieces:
        return np.full(len(prices), -np.inf)
    rewards, looks = (np.array([getattr(piece.line, name) for piece in pieces]) for name in ("reward", "looks"))
    return np.asarray((rewards - prices[:, None] * looks).max(axis=1))


def price_at_value(pieces: list[Piece], value: float) -> float:
    """The price up to which the inner envelope is above a value."""
    for piece in pieces:
        if piece.line.at(piece.low) <= value:
            return piece.low
        meets = math.inf if piece.line.looks == 0 else (piece.line.reward - value) / piece.line.looks
        if meets < piece.high:
            return meets
    return math.inf


def price_at_bound(prices: FloatArray, uppers: FloatArray, value: float) -> float:
    """The price from which on the outer envelope is at most a value."""
    below = np.flatnonzero(uppers <= value)
    if not len(below):
        return math.inf
    i = int(below[0])
    # Turned around, a falling stretch of the envelope rises, as interpolation wants it.
    return float(np.interp(value, uppers[[i, i - 1]], prices[[i, i - 1]])) if i > 0 else float(prices[0])
