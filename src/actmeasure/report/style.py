"""How figures look: greys and a few colours, line styles and markers, so that a black-and-white printout says the same."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = [
    "BEST_KNOWN",
    "LOOKS",
    "OPTIMUM",
    "RC",
    "Look",
    "legend",
    "look_of",
    "new_figure",
    "pictures",
    "plain",
    "tidy",
]

#: The same numbers in, the same bytes out: names of parts of a picture are derived from this instead of chance.
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
    """Of one line."""

    color: str
    linestyle: Any
    marker: str


#: Apart in brightness as well as in colour; the colours are those of Okabe and Ito, which the colour-blind can tell apart.
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
#: What legends call the best known, and how it is drawn.
BEST_KNOWN = "best known"
OPTIMUM: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.2}


def look_of(number: int) -> Look:
    """The look of the line of this number; after some they come again."""
    return LOOKS[number % len(LOOKS)]


def new_figure(rows: int, columns: int, width: float = 7.2, height: float = 2.5) -> tuple[Figure, Any]:
    """A figure and its axes, shape (rows, columns), each row so high, in inches."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(axes: Any, across: str, up: str, title: str = "") -> None:
    """Name the axes of a panel; nothing that is not needed."""
    axes.set(xlabel=plain(across), ylabel=plain(up), title=plain(title))
    axes.spines[["top", "right"]].set_visible(False)


def pictures(figure: Figure) -> dict[str, bytes]:
    """A figure as `svg` and `png`, the same bytes every time."""
    found = {}
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # labels in any script; a box is drawn
        for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, **options)
            found[kind] = file.getvalue()
    return found


def plain(label: str, longest: int = 60) -> str:
    """A label for a figure: characters that a picture cannot hold are replaced, and a very long one is cut."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in label)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def legend(figure: Figure, panels: Sequence[Any], columns: int = 4) -> None:
    """One legend below a figure, with every label of its panels once."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if BEST_KNOWN in handles:  # last
        handles[BEST_KNOWN] = handles.pop(BEST_KNOWN)
    with mpl.rc_context(RC):
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=8)
