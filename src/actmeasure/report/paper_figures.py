"""The figures of the paper: by cost, by episode and by size."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from actmeasure.report.figures import MEASURES, Line, panels
from actmeasure.report.style import LOOKS

__all__ = ["costs_figure", "curves_figure", "scaling_figure"]

#: An agent looks the same in every figure and is called the same, whatever its settings are; panels say which they are.
AGENTS = {
    name: (label, LOOKS[number])
    for number, (name, label) in enumerate(
        {"atmq": "ATMQ", "dyna-atmq": "Dyna-ATMQ", "amrl-q": "AMRL-Q", "acno-otp": "ACNO-OTP", "foresight": "Foresight"}.items()
    )
}  # fmt: skip
#: Panels from left to right: what is above them, and the preset of the agents in them.
PAPER = "in the paper"
PANELS = {"published settings": "published", "default settings": "default"}


def costs_figure(costs: pd.DataFrame) -> Figure:
    """Return and measurements in the measuring value problem, by the cost of a look."""
    return panels(costs, "cost", _columns(costs), "cost of a look")


def curves_figure(curves: pd.DataFrame, best: float | None) -> Figure:
    """Return and measurements while training on the 4x4 semi-slippery lake."""
    table = curves if best is None else curves.assign(optimal_return=best)
    return panels(table, "episode", _columns(table), "episode", markers=False)


def scaling_figure(scaling: pd.DataFrame) -> Figure:
    """Returns on random lakes by size: in the paper, with the published settings, and with our defaults."""
    theirs = scaling[(scaling["preset"] == "published") & scaling["published_return"].notna()]
    paper = theirs.assign(
        agent=theirs["agent"] + " in the paper", scalarized_return=theirs["published_return"], low=float("nan")
    )
    both = pd.concat([scaling, paper], ignore_index=True)
    columns = {PAPER: _lines(paper)} | _columns(scaling)
    # The best known is that of our lakes; that of the paper's is not known.
    return panels(both, "size", columns, "cells along a side", MEASURES[:1], without_best=[PAPER])


def _columns(table: pd.DataFrame) -> dict[str, list[Line]]:
    return {title: _lines(table[table["preset"] == preset]) for title, preset in PANELS.items()}


def _lines(rows: pd.DataFrame) -> list[Line]:
    agents = rows.drop_duplicates("agent")
    return [Line(agent, *AGENTS[name]) for agent, name in zip(agents["agent"], agents["agent_name"], strict=True)]
