"""What to take for true where the records tell nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, unknown_name
from actmeasure.fitting.likelihood import FloatArray

__all__ = ["STAY", "assumed_rows", "check_assumptions"]

#: The word for an action that changes nothing.
STAY = "stay"


def check_assumptions(assume: Mapping[str, str], states: Sequence[str]) -> None:
    """Raise a `FitError` if an assumption does not name a state."""
    for action, target in assume.items():
        if target not in states and target != STAY:
            raise FitError(f"assume {action!r}: {unknown_name('state', target, [*states, STAY])}")


def assumed_rows(
    unknown: npt.NDArray[np.bool_], assume: Mapping[str, str], actions: Sequence[str], states: Sequence[str]
) -> tuple[FloatArray, npt.NDArray[np.bool_], list[str]]:
    """Rows given by assumptions, shape (A, S, S) with NaN in all others; which these are, (A, S); and a note for each action."""
    fixed = np.full((len(actions), len(states), len(states)), np.nan)
    assumed = np.zeros_like(unknown)
    notes = []
    for action, target in assume.items():
        number = list(actions).index(action)
        rows = np.flatnonzero(unknown[number]).tolist()
        told = f"Assumed, as asked for: {action!r} "
        told += f"leads to {target}" if target in states else "changes nothing"
        if not rows:
            notes.append(
                f"{told} where the records tell nothing; but they tell about all states, so nothing was assumed."
            )
            continue
        ends = np.full(len(rows), list(states).index(target)) if target in states else np.array(rows)
        fixed[number, rows] = 0.0
        fixed[number, rows, ends] = 1.0
        assumed[number, rows] = True
        notes.append(f"{told}, from {', '.join(states[row] for row in rows)}; the records tell nothing about that.")
    return fixed, assumed, notes
