"""The plans of a lake drawn on its map."""

from __future__ import annotations

import math
import os
from collections.abc import Set
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.belief import Belief
from actmeasure.chain import plan_chain
from actmeasure.errors import PlanError, quoted
from actmeasure.model import Model
from actmeasure.planners.drawing import INK, LARGEST, check_path, new_figure, save_figure
from actmeasure.planners.lake_path import FAINT, RARE, draw_path, mean_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from actmeasure.planners.solution import Solution

__all__ = ["is_lake", "plot_lake"]

LAKE_ACTIONS = ("left", "down", "right", "up")
#: A picture is at least so wide, and a cell so wide where the lake is small enough, in inches.
SMALLEST, CELL = 3.6, 1.15
#: Paths keep to the right of their way, in one of so many lanes (of a width in cells), so that they lie side by side.
SIDE, LANES = 0.1, 3
ICE, EDGE, DEEP = "#eef3f6", "#b9c6cf", "#3d4650"


def is_lake(model: Model) -> bool:
    """Whether a model has the four actions of a lake."""
    return model.action_names == LAKE_ACTIONS


def plot_lake(
    solution: Solution, path: str | os.PathLike[str] | None = None, shape: tuple[int, int] | None = None
) -> Figure:
    """Draw the plans of a solution on the map of its lake, and save the picture if a path is given."""
    rows, columns = _lake_shape(solution.model, shape)
    place = None if path is None else check_path(path)
    cell = min(CELL, LARGEST / max(rows, columns))
    width, height = max(columns * cell, SMALLEST), max(rows * cell, 1.0) + 1.0
    figure = new_figure("Solution.plot", width, height)
    axes = figure.add_subplot()
    _draw_map(axes, solution.model, (rows, columns))
    often = _how_often(solution)
    signs = set()
    for state in sorted(often, key=lambda state: often[state]):
        plan = solution.schedule[state] if state >= 0 else solution.schedule.start
        if plan is not None:
            belief = Belief.at(state) if state >= 0 else Belief.start(solution.model)
            way = mean_path(solution.model, plan, belief, columns)
            lane = SIDE * (1 + sum(divmod(max(state, 0), columns)) % LANES)
            draw_path(axes, way, lane, often[state], max(1.0, max(rows, columns) / 8))
            signs |= {way.ending} | ({"rare"} if often[state] < RARE else set())
    axes.set_title(_lake_title(solution), fontsize=10, loc="left", wrap=True)
    _draw_legend(axes, signs)
    if place is not None:
        save_figure(figure, place)
    return figure


def _lake_shape(model: Model, shape: tuple[int, int] | None) -> tuple[int, int]:
    if not is_lake(model):
        raise PlanError(
            "only lakes can be drawn as a map, with the actions left, down, right and up; for other models use "
            "solution.explain().plot(), which draws the measuring value along a plan"
        )
    side = math.isqrt(model.n_states)
    if shape is None and side * side != model.n_states:
        raise PlanError(f"the lake has {model.n_states} cells, which is no square; give its shape=(rows, columns)")
    rows, columns = (side, side) if shape is None else _two_numbers(shape)
    if rows * columns != model.n_states:
        raise PlanError(
            f"shape is ({rows}, {columns}), which makes {rows * columns} cells; the lake has {model.n_states}"
        )
    return rows, columns


def _two_numbers(shape: Any) -> tuple[int, int]:
    try:
        rows, columns = shape
        return int(rows), int(columns)
    except (TypeError, ValueError):
        raise PlanError(f"shape is {quoted(shape)}, expected (rows, columns) of the lake, such as (4, 4)") from None


def _goals(model: Model) -> npt.NDArray[np.bool_]:
    """Terminal states that pay on arrival, shape (S,)."""
    table = model.transitions
    sizes = np.diff(table.offsets)
    pays = np.repeat(model.rewards.ravel(), sizes) if model.transition_rewards is None else model.transition_rewards
    goals = np.zeros(model.n_states, np.bool_)
    goals[table.successors[pays > 0]] = True
    return goals & model.terminal


def _draw_map(axes: Axes, model: Model, shape: tuple[int, int]) -> None:
    from matplotlib.patches import Circle, Rectangle

    rows, columns = shape
    goals = _goals(model)
    large = max(shape) <= 12
    axes.add_patch(Rectangle((-0.5, -0.5), columns, rows, facecolor=ICE, edgecolor=INK, linewidth=1.2, zorder=0))
    axes.hlines(np.arange(rows - 1) + 0.5, -0.5, columns - 0.5, color=EDGE, linewidth=0.7, zorder=0.5)
    axes.vlines(np.arange(columns - 1) + 0.5, -0.5, rows - 0.5, color=EDGE, linewidth=0.7, zorder=0.5)
    for state in np.flatnonzero(model.terminal):
        row, column = divmod(int(state), columns)
        if goals[state]:
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="white", hatch="////", edgecolor=EDGE))
            _letter(axes, row, column, "G", large)
        else:
            axes.add_patch(Circle((column, row), 0.38, facecolor=DEEP, edgecolor=INK, linewidth=0.8, zorder=1))
    for state in model.initial_states:
        row, column = divmod(int(state), columns)
        _letter(axes, row, column, "S", large)
    for state in np.flatnonzero(~model.terminal) if large else ():
        row, column = divmod(int(state), columns)
        axes.text(column + 0.46, row + 0.46, str(state), ha="right", va="bottom", fontsize=7, color=DEEP, zorder=1)
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.axis("off")


def _letter(axes: Axes, row: int, column: int, letter: str, large: bool) -> None:
    size = 13 if large else 7
    axes.text(column - 0.42, row - 0.42, letter, ha="left", va="top", fontsize=size, fontweight="bold", zorder=5)


def _how_often(solution: Solution) -> dict[int, float]:
    """Discounted number of times each plan is followed, the most usual being 1; -1 is a start that is not shown."""
    model = solution.model
    chain = plan_chain(model, solution.schedule)
    decay = sparse.diags_array(np.minimum(model.discount, 0.999) ** chain.durations.astype(float))
    balance = sparse.eye_array(len(chain.start)) - (decay @ chain.moves).T
    visits = np.atleast_1d(linalg.spsolve(balance.tocsc(), chain.start))[: len(chain.states)]
    most = max(float(visits.max()), 1e-300)
    return {int(state): float(count) / most for state, count in zip(chain.states, visits, strict=True)}


def _lake_title(solution: Solution) -> str:
    cost = solution.model.measuring_cost
    price = f"a look costs {cost:g}" if isinstance(cost, float) else "the price of a look varies"
    return f"{solution.method}: worth {solution.value:.4f}, at most {solution.upper:.4f}; {price}"


def _draw_legend(axes: Axes, signs: Set[str]) -> None:
    """What the signs that occur in the picture mean."""
    from matplotlib.lines import Line2D

    def sign(**looks: Any) -> Line2D:
        return Line2D([], [], **{"color": INK, "linestyle": "", **looks})

    eye = (sign(marker="o", mfc="white", markersize=10, mew=1.6), sign(marker="o", markersize=3.5))
    meanings: list[tuple[str, Any, str]] = [
        ("", sign(linestyle="-", marker=">", markersize=6), "moves blind (mean way)"),
        ("measure", eye, "looks"),
        ("known", sign(marker="s", mfc="white", markersize=7), "known for free"),
        ("repeat", sign(marker="x", markersize=7, mew=1.6), "goes on so for ever"),
        ("rare", sign(color=FAINT, linestyle="-", linewidth=0.8), "rarely met"),
        ("", sign(color=DEEP, marker="o", markersize=9), "hole"),
    ]
    shown = [(handle, text) for ending, handle, text in meanings if ending in signs or not ending]
    handles, texts = zip(*shown, strict=True)
    axes.legend(
        handles, texts, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8,
        handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip
