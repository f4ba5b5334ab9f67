"""Pictures of policy graphs: boxes in layers from the start, arrows with the outcomes that lead along them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actmeasure.drawing import INK, LARGEST, check_path, matplotlib_for, new_figure, save_figure
from actmeasure.graph_text import Branch, decision_text, first_states, outcome_list, steps
from actmeasure.model import Model
from actmeasure.policy_graph import PolicyGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_graph"]

#: Distances in inches: between layers, between boxes of a layer, between lanes of arrows that pass by boxes.
LAYER, GAP, LANE = 1.15, 0.45, 0.42
#: Sizes in inches: height of a box per line of text, width per letter, smallest width.
LINE, LETTER, NARROWEST = 0.19, 0.082, 0.9
#: Longest line in a box and in the label of an arrow, in letters.
WRAP, LABEL = 22, 26
#: Size of letters, in points.
LETTERS = 9.0
FILL, MEASURING, GREY = "#f4f6f8", "#dbe7f3", "#4a5560"


@dataclass
class _Box:
    """A step of the graph: text, place and size, in inches."""

    text: str
    layer: int
    measures: bool
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0


@dataclass
class _Arrow:
    source: int
    target: int
    label: str


@dataclass
class _GraphLayout:
    boxes: dict[int, _Box]
    arrows: list[_Arrow]
    layers: list[list[int]] = field(default_factory=list)


def plot_graph(graph: PolicyGraph, model: Model, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a policy graph on a new figure, and save the picture if a path is given."""
    path = None if path is None else check_path(path)
    matplotlib_for("PolicyGraph.plot")
    layout = _placed(_boxes_and_arrows(graph, model))
    boxes = list(layout.boxes.values())
    spans = [layout.boxes[arrow.target].layer - layout.boxes[arrow.source].layer for arrow in layout.arrows]
    left = min(b.x - b.width / 2 for b in boxes) - LANE * sum(span > 1 for span in spans) - 0.6
    right = max(b.x + b.width / 2 for b in boxes) + LANE * sum(span < 0 for span in spans) + 0.4
    bottom, top = min(b.y - b.height / 2 for b in boxes) - 0.45, max(b.y + b.height / 2 for b in boxes) + 0.55
    scale = min(1.0, LARGEST / (right - left), 1.5 * LARGEST / (top - bottom))
    figure = new_figure("PolicyGraph.plot", max(2.0, (right - left) * scale), max(1.5, (top - bottom) * scale))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    _draw_boxes(axes, layout, LETTERS * scale)
    _draw_start(axes, layout, LETTERS * scale)
    _draw_arrows(axes, layout, LETTERS * scale * 0.9)
    if path is not None:
        save_figure(figure, path)
    return figure


def _boxes_and_arrows(graph: PolicyGraph, model: Model) -> _GraphLayout:
    """Return the steps of `PolicyGraph.describe` as boxes, by their number, and what leads from one to another."""
    listed = steps(graph, model)
    number = {step.nodes[0]: position for position, step in enumerate(listed, start=1)}
    boxes, arrows = {}, []
    for position, step in enumerate(listed, start=1):
        action, measurement = graph.decisions[step.nodes[0]]
        times = f" ({len(step.nodes)}x)" if len(step.nodes) > 1 else ""
        lines = textwrap.wrap(f"{position}. {decision_text(model, action, measurement)}{times}", WRAP)
        boxes[position] = _Box("\n".join(lines), 0, measurement > 0)
        for branch in step.leads:
            arrows.append(_Arrow(position, number[branch.target], _label(model, measurement, branch, len(step.leads))))
    _set_layers(boxes, arrows, [number[node] for node in first_states(graph)])
    return _GraphLayout(boxes, arrows)


def _label(model: Model, measurement: int, branch: Branch, n_branches: int) -> str:
    if branch.outcomes is None:
        return "" if n_branches == 1 else "otherwise"
    text = outcome_list(model, measurement, branch.outcomes).replace("'", "")
    return text if len(text) <= LABEL else f"{text[: LABEL - 3]}..."


def _set_layers(boxes: Mapping[int, _Box], arrows: list[_Arrow], first: list[int]) -> None:
    """Set the layer of each box to its distance from the start."""
    layer_of = dict.fromkeys(first, 0)
    queue = list(layer_of)
    for box in queue:
        for arrow in arrows:
            if arrow.source == box and arrow.target not in layer_of:
                layer_of[arrow.target] = layer_of[box] + 1
                queue.append(arrow.target)
    for number, layer in layer_of.items():
        boxes[number].layer = layer


def _placed(layout: _GraphLayout) -> _GraphLayout:
    """Return the layout with sizes and places: layers from top to bottom, boxes below those that lead to them."""
    boxes = layout.boxes
    for box in boxes.values():
        lines = box.text.split("\n")
        box.width = max(NARROWEST, LETTER * max(len(line) for line in lines) + 0.2)
        box.height = LINE * len(lines) + 0.16
    for layer in range(1 + max(box.layer for box in boxes.values())):
        members = [number for number, box in boxes.items() if box.layer == layer]
        above = {
            number: [
                boxes[a.source].x for a in layout.arrows if a.target == number and boxes[a.source].layer == layer - 1
            ]
            for number in members
        }
        members.sort(key=lambda number: (sum(above[number]) / max(1, len(above[number])), number))
        total = sum(boxes[number].width for number in members) + GAP * (len(members) - 1)
        x = -total / 2
        for number in members:
            boxes[number].x, boxes[number].y = x + boxes[number].width / 2, -LAYER * layer
            x += boxes[number].width + GAP
        layout.layers.append(members)
    return layout


def _draw_boxes(axes: Axes, layout: _GraphLayout, size: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    for box in layout.boxes.values():
        axes.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2, box.y - box.height / 2), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=MEASURING if box.measures else FILL, edgecolor=INK, linewidth=0.8, zorder=3,
            )
        )  # fmt: skip
        # A dollar sign would begin a formula.
        axes.text(box.x, box.y, box.text, ha="center", va="center", fontsize=size, zorder=4, parse_math=False)


def _draw_start(axes: Axes, layout: _GraphLayout, size: float) -> None:
    for number in layout.layers[0]:
        box = layout.boxes[number]
        top = box.y + box.height / 2
        axes.annotate(
            "start", (box.x, top), (box.x, top + 0.42), ha="center", va="center", fontsize=size, color=GREY,
            arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 0.8},
        )  # fmt: skip


def _draw_arrows(axes: Axes, layout: _GraphLayout, size: float) -> None:
    """Draw straight arrows to the next layer, arcs below a layer, and the others in lanes beside the boxes.

    Arrows to layers above pass on the right, those to layers further below on the left.
    """
    used = {"left": 0, "right": 0}
    by_span = sorted(layout.arrows, key=lambda a: abs(layout.boxes[a.source].layer - layout.boxes[a.target].layer))
    for arrow in by_span:
        source, target = layout.boxes[arrow.source], layout.boxes[arrow.target]
        if arrow.source == arrow.target:
            _draw_loop(axes, source, arrow.label, size)
        elif target.layer == source.layer + 1:
            _draw_straight(axes, layout, arrow, size)
        elif target.layer == source.layer:
            _draw_below(axes, source, target, arrow.label, size)
        else:
            side = "left" if target.layer > source.layer else "right"
            used[side] += 1
            _draw_around(axes, layout, arrow, -1 if side == "left" else 1, used[side], size)


def _draw_straight(axes: Axes, layout: _GraphLayout, arrow: _Arrow, size: float) -> None:
    source, target = layout.boxes[arrow.source], layout.boxes[arrow.target]
    parallel = [
        a for a in layout.arrows if a.source == arrow.source and layout.boxes[a.target].layer == source.layer + 1
    ]
    parallel.sort(key=lambda a: layout.boxes[a.target].x)
    shift = (parallel.index(arrow) - (len(parallel) - 1) / 2) * min(0.3, source.width / (len(parallel) + 1))
    begin = (source.x + shift, source.y - source.height / 2)
    end = (target.x + shift / 2, target.y + target.height / 2)
    _path(axes, [begin, end])
    _write(axes, begin[0] + 0.45 * (end[0] - begin[0]), begin[1] + 0.45 * (end[1] - begin[1]), arrow.label, size)


def _draw_loop(axes: Axes, box: _Box, label: str, size: float) -> None:
    x, width = box.x - box.width / 2, 0.42
    points = [(x, box.y - 0.1), (x - width, box.y - 0.3), (x - width, box.y + 0.3), (x, box.y + 0.1)]
    _path(axes, points)
    _write(axes, *_middle(points), label, size)


def _draw_below(axes: Axes, source: _Box, target: _Box, label: str, size: float) -> None:
    """Draw an arrow between two boxes of one layer, below the boxes between them."""
    sign = 1 if target.x > source.x else -1
    begin = (source.x + sign * source.width / 4, source.y - source.height / 2)
    end = (target.x - sign * target.width / 4, target.y - target.height / 2)
    depth = source.y - 0.58 * LAYER
    points = [begin, (begin[0], depth), (end[0], depth), end]
    _path(axes, points)
    _write(axes, *_middle(points), label, size)


def _draw_around(axes: Axes, layout: _GraphLayout, arrow: _Arrow, sign: int, lane: int, size: float) -> None:
    """Draw an arrow past all boxes of the layers between its ends."""
    source, target = layout.boxes[arrow.source], layout.boxes[arrow.target]
    low, high = sorted((source.layer, target.layer))
    between = [layout.boxes[number] for layer in layout.layers[low : high + 1] for number in layer]
    outside = max(sign * box.x + box.width / 2 for box in between) + LANE * lane
    lane_x = sign * outside
    # From the side of the outermost box of a layer directly into the lane, from others below the layer; to the target likewise.
    points: list[tuple[float, float]] = []
    if _is_outermost(layout, arrow.source, sign):
        begin = (source.x + sign * source.width / 2, source.y - 0.06)
        points += [begin, (lane_x, begin[1])]
    else:
        begin, y = (source.x + sign * source.width / 4, source.y - source.height / 2), source.y - 0.55 * LAYER
        points += [begin, (begin[0], y), (lane_x, y), (lane_x, y + 0.2 * _sign(target.y - source.y)), (lane_x, y)]
    middle = (lane_x, (source.y + target.y) / 2)
    points += [middle, middle, middle]
    if _is_outermost(layout, arrow.target, sign):
        end = (target.x + sign * target.width / 2, target.y + 0.06)
        points += [(lane_x, end[1]), end]
    else:
        end, y = (target.x + sign * target.width / 4, target.y + target.height / 2), target.y + 0.55 * LAYER
        points += [(lane_x, y), (lane_x, y - 0.2 * _sign(target.y - source.y)), (lane_x, y), (end[0], y), end]
    _path(axes, points)
    _write(axes, *middle, arrow.label, size)


def _is_outermost(layout: _GraphLayout, number: int, sign: int) -> bool:
    members = layout.layers[layout.boxes[number].layer]
    return number == members[-1 if sign > 0 else 0]


def _sign(value: float) -> int:
    return 1 if value > 0 else -1


def _middle(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the middle of a cubic curve."""
    x, y = ((points[0][k] + 3 * points[1][k] + 3 * points[2][k] + points[3][k]) / 8 for k in (0, 1))
    return x, y


def _path(axes: Axes, points: list[tuple[float, float]]) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    codes = [Path.MOVETO, *([Path.LINETO] if len(points) == 2 else [Path.CURVE4] * (len(points) - 1))]
    axes.add_patch(
        FancyArrowPatch(
            path=Path(points, codes), arrowstyle="-|>", mutation_scale=9, color=GREY, linewidth=0.9, zorder=2
        )
    )


def _write(axes: Axes, x: float, y: float, label: str, size: float) -> None:
    if label:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(x, y, label, ha="center", va="center", fontsize=size, color=INK, bbox=box, zorder=5, parse_math=False)
