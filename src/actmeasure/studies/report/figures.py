"""Figures from tables; each function takes a data frame and returns a matplotlib figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from actmeasure.errors import shown

__all__ = [
    "BEST_KNOWN",
    "LOOKS",
    "MEASURES",
    "OPTIMUM",
    "RC",
    "Line",
    "Look",
    "learning_curves",
    "legend",
    "look_of",
    "new_figure",
    "panels",
    "pdf",
    "pictures",
    "plain",
    "profile",
    "sample_efficiency",
    "sensitivity",
    "tidy",
]

#: Rows of panels from top to bottom: the column, those of its interval, the label of the axis, and the column of the optimum.
MEASURES = (
    ("scalarized_return", ("low", "high"), "scalarized return", "optimal_return"),
    ("measurements", ("measurements_low", "measurements_high"), "measurements", "optimal_measurements"),
)


class Line(NamedTuple):
    """An agent of a table, its label in the legend, and its line style."""

    agent: str
    label: str
    look: Look


def panels(
    table: pd.DataFrame,
    across: str,
    columns: Mapping[str, Sequence[Line]],
    label: str,
    measures: Sequence[Any] = MEASURES,
    markers: bool = True,
    without_best: Collection[str] = (),
    one_scale: bool = True,
) -> Figure:
    """Return a figure with a row of panels for each measure and a column for each group of agents.

    Parameters
    ----------
    table : pandas.DataFrame
        With columns `agent`, `across`, those of the measures and, if they are to be drawn, of the optimum.
    across : str
        Column on the horizontal axis.
    columns : mapping
        From titles to the lines in that column of panels.
    label : str
        Label of the horizontal axis.
    measures : sequence
        As `MEASURES`.
    markers : bool
        Whether every point is marked.
    without_best : collection of str
        Titles of panels in which the optimum is not drawn.
    one_scale : bool
        Whether all panels of a row have the same vertical scale.
    """
    with mpl.rc_context(RC):
        figure, axes = new_figure(len(measures), len(columns))
        for row, (measure, interval, up, best) in enumerate(measures):
            for column, (title, lines) in enumerate(columns.items()):
                panel = axes[row, column]
                for line in lines:
                    _draw(panel, line, table[table["agent"] == line.agent], across, measure, interval, markers)
                if best in table and title not in without_best:
                    _optimum(panel, table, across, best)
                last = row == len(measures) - 1
                tidy(panel, label if last else "", up if column == 0 else "", title if row == 0 else "")
            if one_scale:
                _share_limits(axes[row])
        legend(figure, axes.ravel().tolist())
    return figure


def _draw(
    panel: Any, line: Line, rows: pd.DataFrame, across: str, measure: str, interval: tuple[str, str], markers: bool
) -> None:
    """Draw one line, with its interval as a band."""
    if rows.empty:
        return
    rows, look = rows.sort_values(across), line.look
    every = max(1, len(rows) // 8)
    panel.plot(
        rows[across], rows[measure], color=look.color, linestyle=look.linestyle, marker=look.marker,
        markevery=1 if markers else every, markersize=3.2, linewidth=1.3, label=plain(line.label),
    )  # fmt: skip
    if rows[interval[0]].notna().any():
        panel.fill_between(
            rows[across], rows[interval[0]], rows[interval[1]], color=look.color, alpha=0.13, linewidth=0
        )


def _optimum(panel: Any, table: pd.DataFrame, across: str, best: str) -> None:
    known = table.dropna(subset=[best]).drop_duplicates(across).sort_values(across)
    if not known.empty:
        panel.plot(known[across], known[best], label=BEST_KNOWN, **OPTIMUM)


def _share_limits(row: Any) -> None:
    """Give all panels of a row the same scale."""
    low, high = min(panel.get_ylim()[0] for panel in row), max(panel.get_ylim()[1] for panel in row)
    for panel in row:
        panel.set_ylim(low, high)


def learning_curves(curves: pd.DataFrame, best: float | None, title: str) -> Figure:
    """Draw the learning curves of all agents on one problem, return and measurements by episode; returns the figure.

    Parameters
    ----------
    curves : pandas.DataFrame
        Rows of `tables.curves` for one problem.
    best : float or None
        The best known return, if it is to be drawn.
    title : str
    """
    table = curves if best is None else curves.assign(optimal_return=best)
    return panels(table, "episode", {title: _lines(curves["agent"])}, "episode", markers=False)


def profile(profiles: pd.DataFrame, title: str) -> Figure:
    """Draw performance profiles, from the rows of `tables.profiles` for one part; returns the figure."""
    measures = [("share", ("low", "high"), "share of problems above", "none")]
    return panels(
        profiles, "threshold", {title: _lines(profiles["agent"])}, "normalised score", measures, markers=False
    )


def sample_efficiency(curves: pd.DataFrame) -> Figure:
    """Draw the normalised score by episode, from the rows of `tables.efficiency` for one part; returns the figure."""
    measures = [("iqm", ("low", "high"), "normalised score", "none")]
    return panels(curves, "episode", {"sample efficiency": _lines(curves["agent"])}, "episode", measures, markers=False)


def sensitivity(rows: pd.DataFrame, setting: str) -> Figure:
    """Draw return and measurements by the value of a setting, from the rows of `tables.sensitivities` for one sweep.

    Every panel has a vertical scale of its own. Values that are not numbers are spaced evenly, in their order.
    """
    table = rows.rename(columns={"line": "agent"})
    values = list(dict.fromkeys(table["value"]))
    are_numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if not are_numbers:
        table = table.assign(value=[values.index(value) for value in table["value"]])
    table = table.assign(value=table["value"].astype(float))
    lines = {line.agent: line for line in _lines(table["agent"])}
    columns = {
        str(panel): [lines[agent] for agent in dict.fromkeys(of_panel["agent"])]
        for panel, of_panel in table.groupby("panel", sort=False, observed=True)
    }
    drawn = panels(table, "value", columns, setting, one_scale=False)
    for axes in drawn.axes:
        if not are_numbers:
            axes.set_xticks(range(len(values)), [plain(str(value), 20) for value in values])
        elif min(values) > 0 and max(values) >= 20 * min(values):
            axes.set_xscale("log")
    return drawn


def _lines(agents: Iterable[str]) -> list[Line]:
    return [Line(agent, agent, look_of(number)) for number, agent in enumerate(dict.fromkeys(agents))]


#: Style of figures. The salt makes the identifiers in an SVG, and so its bytes, the same every time.
RC: Any = {
    "svg.hashsalt": "actmeasure",
    "svg.fonttype": "path",  # the same on every machine, with its fonts or without
    "text.parse_math": False,  # a label with dollars in it is a label
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
PNG_DPI = 150


class Look(NamedTuple):
    """Style of a line; lines differ in colour, dashes and markers, so that they can be told apart in black and white."""

    color: str
    linestyle: Any
    marker: str


#: Different in brightness as well as in colour; the colours of Okabe and Ito, which colour-blind readers can tell apart.
LOOKS = (
    Look("#0072B2", "-", "o"),
    Look("#D55E00", (0, (5, 1.5)), "s"),
    Look("#009E73", (0, (4, 1.5, 1, 1.5)), "^"),
    Look("#999999", (0, (2, 1)), "D"),
    Look("#000000", "-", "v"),
    Look("#CC79A7", (0, (1, 1)), "P"),
    Look("#56B4E9", (0, (6, 1, 1, 1, 1, 1)), "X"),
    Look("#E69F00", (0, (3, 3)), "*"),
)
#: Label and style of the best known.
BEST_KNOWN = "best known"
OPTIMUM: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.2}


def look_of(number: int) -> Look:
    """Return the style of the line of this number; styles repeat after eight."""
    return LOOKS[number % len(LOOKS)]


def new_figure(rows: int, columns: int, width: float = 7.2, height: float = 2.5) -> tuple[Figure, Any]:
    """Return a figure and its axes, shape (rows, columns); `height` is that of a row, in inches."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(axes: Any, across: str, up: str, title: str = "") -> None:
    """Set the labels and title of a panel and hide its upper and right edges."""
    axes.set(xlabel=plain(across), ylabel=plain(up), title=plain(title))
    axes.spines[["top", "right"]].set_visible(False)


def pictures(figure: Figure) -> dict[str, bytes]:
    """Return a figure as `svg` and `png`, the same bytes every time."""
    files = {}
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # labels in any script; a box is drawn
        for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, **options)
            files[kind] = file.getvalue()
    return files


def pdf(figure: Figure) -> bytes:
    """Return a figure as PDF, the same bytes every time."""
    file = io.BytesIO()
    with mpl.rc_context(RC | {"pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return file.getvalue()


def plain(label: str, longest: int = 60) -> str:
    """Return a label for a figure: control characters and invisible ones are escaped, and a very long label is cut."""
    text = shown(label)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def legend(figure: Figure, panels: Sequence[Any]) -> None:
    """Add one legend below a figure, with every label of its panels once."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if BEST_KNOWN in handles:  # last
        handles[BEST_KNOWN] = handles.pop(BEST_KNOWN)
    with mpl.rc_context(RC):
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=8)
