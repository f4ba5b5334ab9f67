"""A blind plan as a path: where it leads on average, drawn as arrows with a sign at its end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.planners.drawing import INK
from actmeasure.schedule import BlindPlan
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FAINT", "RARE", "MeanPath", "draw_path", "mean_path"]

#: A repeating plan is drawn for so many rounds at most; most have come to their end long before.
STEPS_DRAWN = 40
#: A plan that is followed less often than this, compared with the most usual one, is drawn thin and grey.
RARE = 0.02
FAINT = "#8a949c"


@dataclass(frozen=True, eq=False)
class MeanPath:
    """Mean places (column, row) along a plan, shape (n + 1, 2), and how the plan ends."""

    places: FloatArray
    ending: str


def mean_path(model: Model, plan: BlindPlan, belief: Belief, columns: int) -> MeanPath:
    places = [_mean_place(belief.states, belief.probabilities, columns)]
    count = len(plan) if plan.then != "repeat" else max(len(plan), STEPS_DRAWN)
    for step in range(count):
        action = plan.decision(step).action
        after = belief.predict(model, action)
        if after.is_over:
            places.append(_mean_place(*_landing(model, belief, action), columns))
            return MeanPath(np.array(places), plan.then if plan.decision(step).measure else "end")
        places.append(_mean_place(after.states, after.probabilities, columns))
        if plan.then == "repeat" and step >= len(plan) and after.is_close(belief, 1e-6):
            break
        belief = after
    return MeanPath(np.array(places), plan.then)


def _landing(model: Model, belief: Belief, action: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """States, terminal ones included, after an action, and their probabilities."""
    rows = model.transitions.stacked()[belief.states * model.n_actions + action]
    weights = np.asarray(belief.probabilities @ rows)
    states = np.flatnonzero(weights)
    return states.astype(np.int64), weights[states]


def _mean_place(states: npt.NDArray[np.int64], probabilities: FloatArray, columns: int) -> tuple[float, float]:
    rows, places = np.divmod(states, columns)
    return float(probabilities @ places), float(probabilities @ rows)


def draw_path(axes: Axes, path: MeanPath, lane: float, often: float, crowd: float) -> None:
    """A plan as a line through its mean places, with a head on every move and a sign at its end."""
    rare = often < RARE
    colour, order = (FAINT, 2.0) if rare else (INK, 3.0 + often)
    width = (0.8 if rare else 1.0 + 1.4 * often**0.5) / crowd**0.5
    size = 6.0 / crowd**0.5 + 2 * width
    places = _beside(path.places, lane)
    axes.plot(*places[:1].T, "o", color=colour, markersize=size / 2, zorder=order)
    for number, (begin, end) in enumerate(pairwise(places), start=2):
        if np.abs(end - begin).max() > 0.02:
            room = 0.8 * size if number == len(places) and path.ending == "measure" else 0.0
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 1.4 * size}
            axes.annotate("", end, begin, arrowprops={**arrow, "shrinkA": 0, "shrinkB": room}, zorder=order)
    last = places[-1]
    if path.ending == "measure":
        axes.plot(*last, "o", markersize=1.7 * size, mfc="white", mec=colour, mew=width + 0.4, zorder=order + 0.1)
        axes.plot(*last, "o", markersize=0.55 * size, color=colour, zorder=order + 0.2)
    elif path.ending == "known":
        axes.plot(*last, "s", markersize=size, mfc="white", mec=colour, mew=width, zorder=order + 0.1)
    elif path.ending == "repeat":
        axes.plot(*last, "x", markersize=size, color=colour, mew=width + 0.6, zorder=order + 0.1)


def _beside(places: FloatArray, lane: float) -> FloatArray:
    """The places moved by `lane` to the right of the way that leads through them, shape (n, 2)."""
    moves = np.diff(places, axis=0)
    lengths = np.hypot(*moves.T)[:, None]
    sides = np.divide(
        np.column_stack([-moves[:, 1], moves[:, 0]]), lengths, out=np.zeros_like(moves), where=lengths > 1e-9
    )
    shift = np.vstack([sides[:1], (sides[:-1] + sides[1:]) / 2, sides[-1:]])
    return np.asarray(places + lane * shift)
