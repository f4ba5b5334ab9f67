"""A frozen lake as text: the map on the left, the belief on the right."""

from __future__ import annotations

from actmeasure.envs.lake_window import LakeWindow, percent
from actmeasure.envs.story import Story
from actmeasure.problems.lake_map import CharArray

__all__ = ["show"]

#: So many rows and columns fit into a terminal, twice beside each other.
LIMIT = 16


def show(cells: CharArray, story: Story) -> str:
    """The episode so far, the lake, and what may be believed."""
    window = LakeWindow.around(cells, story, LIMIT)
    head = [f"step {story.step}: {story.deed}", f"last look: {_last_look(cells, story)}"]
    head.append(f"return so far: {story.total:.6g} ({story.looks_paid})")
    if story.belief.is_over:
        head.append("the episode is over")
    if window.excerpt is not None:
        head.append(f"shown: {window.excerpt}")
    rows = [f"{_map_row(window, row)}   {_belief_row(window, row)}" for row in range(len(window.cells))]
    return "\n".join([*head, "", *rows, "", "[ ] you, ( ) last look; right: belief in %"])


def _last_look(cells: CharArray, story: Story) -> str:
    if story.last_look is None:
        return "never"
    step, state = story.last_look
    row, column = divmod(state, cells.shape[1])
    return f"at step {step} in row {row}, column {column}"


def _map_row(window: LakeWindow, row: int) -> str:
    marks = []
    for column, cell in enumerate(window.cells[row]):
        place = (row, column)
        left, right = "[]" if place == window.you else "()" if place == window.looked else "  "
        marks.append(f"{left}{_sign(cell)}{right}")
    return "".join(marks)


def _belief_row(window: LakeWindow, row: int) -> str:
    entries = []
    for cell, probability in zip(window.cells[row], window.belief[row], strict=True):
        entries.append(percent(probability) or _sign(cell))
    return "".join(f"{entry:>4}" for entry in entries)


def _sign(cell: str) -> str:
    """Plain ice is a dot, so that the rest stands out."""
    return "." if cell == "F" else cell
