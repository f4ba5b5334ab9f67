"""Pictures of planning: plans on the map of a lake, the frontier between reward and looks, and why a plan looks."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.belief import Belief
from actmeasure.drawing import INK, LARGEST, check_path, draw_pair, new_figure, save_figure
from actmeasure.errors import PlanError, quoted
from actmeasure.evaluation import plan_chain
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.schedule import BlindPlan
from actmeasure.text import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from actmeasure.planning.explain import Explanation
    from actmeasure.planning.frontier import Frontier
    from actmeasure.planning.solution import Solution

__all__ = [
    "FAINT",
    "RARE",
    "MeanPath",
    "draw_path",
    "is_lake",
    "mean_path",
    "plot_explanation",
    "plot_frontier",
    "plot_lake",
]

# Plans on the map of a lake

LAKE_ACTIONS = ("left", "down", "right", "up")
#: Smallest width of a picture and largest width of a cell, in inches.
SMALLEST, CELL = 3.6, 1.15
#: Paths are shifted to the right of their direction by a multiple of this width in cells, in one of three lanes.
SIDE, LANES = 0.1, 3
#: Largest number of steps of a repeating plan that are drawn.
STEPS_DRAWN = 40
#: Relative frequency below which a plan is drawn thin and grey.
RARE = 0.02
FAINT = "#8a949c"
ICE, EDGE, DEEP = "#eef3f6", "#b9c6cf", "#3d4650"


def is_lake(model: Model) -> bool:
    """Return whether a model has the four actions of a lake."""
    return model.action_names == LAKE_ACTIONS


def plot_lake(
    solution: Solution, path: str | os.PathLike[str] | None = None, shape: tuple[int, int] | None = None
) -> Figure:
    """Draw the plans of a solution on the map of its lake, and save the picture if a path is given."""
    rows, columns = _lake_shape(solution.model, shape)
    path = None if path is None else check_path(path)
    cell = min(CELL, LARGEST / max(rows, columns))
    width, height = max(columns * cell, SMALLEST), max(rows * cell, 1.0) + 1.0
    figure = new_figure("Solution.plot", width, height)
    axes = figure.add_subplot()
    _draw_map(axes, solution.model, (rows, columns))
    often = _frequencies(solution)
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
    if path is not None:
        save_figure(figure, path)
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
    """Return a mask of the terminal states with a reward for entering them, shape (S,)."""
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


def _frequencies(solution: Solution) -> dict[int, float]:
    """Return the discounted number of times that each plan is followed, relative to the largest; -1 is a hidden start."""
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
    """Draw the legend of the signs that occur in the picture."""
    from matplotlib.lines import Line2D

    def sign(**looks: Any) -> Line2D:
        return Line2D([], [], **{"color": INK, "linestyle": "", **looks})

    eye = (sign(marker="o", mfc="white", markersize=10, mew=1.6), sign(marker="o", markersize=3.5))
    meanings: list[tuple[str, Any, str]] = [
        ("", sign(linestyle="-", marker=">", markersize=6), "moves blindly (mean path)"),
        ("measure", eye, "looks"),
        ("known", sign(marker="s", mfc="white", markersize=7), "known without a look"),
        ("repeat", sign(marker="x", markersize=7, mew=1.6), "repeats forever"),
        ("rare", sign(color=FAINT, linestyle="-", linewidth=0.8), "rarely followed"),
        ("", sign(color=DEEP, marker="o", markersize=9), "hole"),
    ]
    shown = [(handle, text) for ending, handle, text in meanings if ending in signs or not ending]
    handles, texts = zip(*shown, strict=True)
    axes.legend(
        handles, texts, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8,
        handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MeanPath:
    """The mean positions (column, row) along a plan, shape (n + 1, 2), and how the plan ends."""

    positions: FloatArray
    ending: str


def mean_path(model: Model, plan: BlindPlan, belief: Belief, columns: int) -> MeanPath:
    """Return the mean position after each step of a plan from a belief, on a lake with `columns` columns."""
    positions = [_mean_position(belief.states, belief.probabilities, columns)]
    count = len(plan) if plan.then != "repeat" else max(len(plan), STEPS_DRAWN)
    for step in range(count):
        action = plan.decision(step).action
        after = belief.predict(model, action)
        if after.is_over:
            positions.append(_mean_position(*_successors(model, belief, action), columns))
            return MeanPath(np.array(positions), plan.then if plan.decision(step).measure else "end")
        positions.append(_mean_position(after.states, after.probabilities, columns))
        if plan.then == "repeat" and step >= len(plan) and after.is_close(belief, 1e-6):
            break
        belief = after
    return MeanPath(np.array(positions), plan.then)


def _successors(model: Model, belief: Belief, action: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the successors of a belief, terminal ones included, and their probabilities."""
    rows = model.transitions.stacked()[belief.states * model.n_actions + action]
    weights = np.asarray(belief.probabilities @ rows)
    states = np.flatnonzero(weights)
    return states.astype(np.int64), weights[states]


def _mean_position(states: npt.NDArray[np.int64], probabilities: FloatArray, columns: int) -> tuple[float, float]:
    rows, across = np.divmod(states, columns)
    return float(probabilities @ across), float(probabilities @ rows)


def draw_path(axes: Axes, path: MeanPath, lane: float, often: float, crowd: float) -> None:
    """Draw a plan as arrows between its mean positions, with a sign at its end."""
    rare = often < RARE
    colour, order = (FAINT, 2.0) if rare else (INK, 3.0 + often)
    width = (0.8 if rare else 1.0 + 1.4 * often**0.5) / crowd**0.5
    size = 6.0 / crowd**0.5 + 2 * width
    positions = _beside(path.positions, lane)
    axes.plot(*positions[:1].T, "o", color=colour, markersize=size / 2, zorder=order)
    for number, (begin, end) in enumerate(pairwise(positions), start=2):
        if np.abs(end - begin).max() > 0.02:
            room = 0.8 * size if number == len(positions) and path.ending == "measure" else 0.0
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 1.4 * size}
            axes.annotate("", end, begin, arrowprops={**arrow, "shrinkA": 0, "shrinkB": room}, zorder=order)
    last = positions[-1]
    if path.ending == "measure":
        axes.plot(*last, "o", markersize=1.7 * size, mfc="white", mec=colour, mew=width + 0.4, zorder=order + 0.1)
        axes.plot(*last, "o", markersize=0.55 * size, color=colour, zorder=order + 0.2)
    elif path.ending == "known":
        axes.plot(*last, "s", markersize=size, mfc="white", mec=colour, mew=width, zorder=order + 0.1)
    elif path.ending == "repeat":
        axes.plot(*last, "x", markersize=size, color=colour, mew=width + 0.6, zorder=order + 0.1)


def _beside(positions: FloatArray, lane: float) -> FloatArray:
    """Return the positions shifted by `lane` to the right of the direction of the path, shape (n, 2)."""
    moves = np.diff(positions, axis=0)
    lengths = np.hypot(*moves.T)[:, None]
    sides = np.divide(
        np.column_stack([-moves[:, 1], moves[:, 0]]), lengths, out=np.zeros_like(moves), where=lengths > 1e-9
    )
    shift = np.vstack([sides[:1], (sides[:-1] + sides[1:]) / 2, sides[-1:]])
    return np.asarray(positions + lane * shift)


# The frontier between reward and looks

BOUND_GREY, BAND_GREY = "0.45", "0.88"
#: Width and height in inches.
FRONTIER_SIZE = (9.0, 3.6)
#: Last price of the picture, as a multiple of the last price at which the schedule changes.
PRICE_MARGIN = 1.3


def plot_frontier(frontier: Frontier, path_or_axes: str | os.PathLike[str] | Sequence[Any] | None = None) -> Any:
    """Draw a frontier on a pair of axes, into a file or on a new figure; returns the axes."""

    def draw(axes: Any) -> None:
        _draw_values(frontier, axes[0])
        _draw_rewards(frontier, axes[1])

    return draw_pair("Frontier.plot", path_or_axes, draw, FRONTIER_SIZE, PlanError, nrows=1, ncols=2)


def _draw_values(frontier: Frontier, axes: Any) -> None:
    end = _last_price(frontier)
    crossings = [piece.low for piece in frontier.pieces if piece.low < end]
    prices = np.unique([*crossings, *frontier.prices[frontier.prices <= end], end])
    lower, upper = np.array([frontier.value(price) for price in prices]).T
    low, high = frontier.break_even
    if low < end:
        # With an edge, an interval that has closed to a point is still visible.
        axes.axvspan(
            low, min(high, end), facecolor=BAND_GREY, edgecolor=BOUND_GREY, linewidth=1, label="looking breaks even"
        )
    axes.plot(prices, upper, color=BOUND_GREY, linestyle="--", linewidth=1, label="at most")
    axes.plot(prices, lower, color=INK, linewidth=1.5, label="achieved")
    axes.plot(crossings[1:], [frontier.value(p)[0] for p in crossings[1:]], "o", color=INK, markersize=3)
    _label_axes(axes, "price of a look" if _is_number(frontier) else "price (times the cost table)", "discounted value")


def _draw_rewards(frontier: Frontier, axes: Any) -> None:
    looks = np.array([piece.discounted_looks for piece in frontier.pieces])
    rewards = np.array([piece.discounted_reward for piece in frontier.pieces])
    budgets = np.linspace(looks.min(), looks.max(), 201)
    upper = [frontier.budget(float(budget)).upper for budget in budgets]
    axes.plot(budgets, upper, color=BOUND_GREY, linestyle="--", linewidth=1, label="at most")
    axes.plot(looks, rewards, color=INK, linewidth=1.5, marker="o", markersize=3, label="schedules and coin tosses")
    _label_axes(axes, "discounted looks" if _is_number(frontier) else "discounted cost at price 1", "discounted reward")


def _label_axes(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _last_price(frontier: Frontier) -> float:
    """Return the last price of the picture, beyond the last change of schedule."""
    interesting = [frontier.pieces[-1].low, *(price for price in frontier.break_even if math.isfinite(price))]
    return PRICE_MARGIN * max(interesting) or PRICE_MARGIN * (float(frontier.prices[-1]) or 1.0)


def _is_number(frontier: Frontier) -> bool:
    return isinstance(frontier.model.measuring_cost, float)


# Why a plan looks

BLIND_GREY = "#c9d1d6"
#: Most characters of a title.
TITLE_WIDTH = 150


def plot_explanation(explanation: Explanation, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the measuring value along a plan, and save the picture if a path is given; returns the figure."""
    path = None if path is None else check_path(path)
    steps = explanation.steps
    names = [explanation.model.action_name(step.action) for step in steps]
    values = np.array([step.measuring_value for step in steps])
    numbers = np.arange(1, len(steps) + 1)
    figure = new_figure("Explanation.plot", min(LARGEST, max(4.8, 1.2 + 0.55 * len(steps))), 3.6)
    axes = figure.add_subplot()
    looks = np.array([step.looks for step in steps])
    shown = np.isfinite(values)
    axes.bar(
        numbers[shown & ~looks], values[shown & ~looks], 0.6, color=BLIND_GREY, edgecolor=INK, label="goes on blind"
    )
    axes.bar(numbers[shown & looks], values[shown & looks], 0.6, color=INK, edgecolor=INK, label="looks")
    axes.axhline(0, color=INK, linewidth=1)
    for number in numbers[~shown]:
        axes.annotate("?", (number, 0), (0, 4), textcoords="offset points", ha="center", fontsize=12)
    axes.margins(y=0.22)
    for number in numbers[looks & shown]:
        value = values[number - 1]
        axes.annotate(
            "look", (number, value), (0, 4 if value >= 0 else -4), textcoords="offset points", ha="center",
            va="bottom" if value >= 0 else "top", fontweight="bold",
        )  # fmt: skip
    _label_steps(axes, numbers, names)
    axes.set_xlim(0.2, len(steps) + 0.8)
    axes.set_ylabel("measuring value\n(above 0: look)")
    axes.set_title(shortened(explanation.title, TITLE_WIDTH), fontsize=10, loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        save_figure(figure, path)
    return figure


def _label_steps(axes: Axes, numbers: npt.NDArray[np.int64], names: list[str]) -> None:
    """Label the bars with step and action, some of them only where there are many."""
    stride = max(1, math.ceil(len(numbers) / 18))
    axes.set_xticks(
        numbers[::stride], [f"{number}\n{name}" for number, name in zip(numbers, names, strict=True)][::stride]
    )
    axes.set_xlabel("step and its action")
