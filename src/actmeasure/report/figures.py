"""Figures from tables; each function takes a data frame and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from actmeasure.report.style import BEST_KNOWN, OPTIMUM, RC, Look, legend, look_of, new_figure, plain, tidy

__all__ = ["MEASURES", "Line", "learning_curves", "panels"]

#: What is drawn, from top to bottom: the column, those of its interval, what the axis says, and the column of the optimum.
MEASURES = (
    ("scalarized_return", ("low", "high"), "scalarized return", "optimal_return"),
    ("measurements", ("measurements_low", "measurements_high"), "measurements", "optimal_measurements"),
)


class Line(NamedTuple):
    """An agent of a table, what the legend calls it, and what it looks like."""

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
) -> Figure:
    """A row of panels for each measure and a column for each group of agents.

    Parameters
    ----------
    table : pandas.DataFrame
        With columns `agent`, `across`, those of the measures and, if they are to be drawn, of the optimum.
    across : str
        The column that goes to the right.
    columns : mapping
        From titles to the lines in that column of panels.
    label : str
        What the axis to the right says.
    measures : sequence
        As `MEASURES`.
    markers : bool
        Whether every point is marked.
    without_best : collection of str
        Titles of panels in which the optimum is not drawn.
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
            _share_limits(axes[row])
        legend(figure, axes.ravel().tolist())
    return figure


def _draw(
    panel: Any, line: Line, rows: pd.DataFrame, across: str, measure: str, interval: tuple[str, str], markers: bool
) -> None:
    """One line, with its interval as a band."""
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
    """The same scale in all panels of a row."""
    low, high = min(panel.get_ylim()[0] for panel in row), max(panel.get_ylim()[1] for panel in row)
    for panel in row:
        panel.set_ylim(low, high)


def learning_curves(curves: pd.DataFrame, best: float | None, title: str) -> Figure:
    """Return and measurements of all agents on one problem, by episode.

    Parameters
    ----------
    curves : pandas.DataFrame
        Rows of `tables.curves` for one problem.
    best : float or None
        The best known return, if it is to be drawn.
    title : str
    """
    agents = list(dict.fromkeys(curves["agent"]))
    table = curves if best is None else curves.assign(optimal_return=best)
    lines = [Line(agent, agent, look_of(number)) for number, agent in enumerate(agents)]
    return panels(table, "episode", {title: lines}, "episode", markers=False)
