"""The transitions that a page needs to draw what is believed along its plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan

__all__ = ["Moves", "steps_shown"]

#: A page has so many transitions at most.
MOST_ENTRIES = 100_000
#: A plan that goes on for ever is drawn for so many steps at least and at most; one that looks, for some steps more.
ENDLESS_LEAST, ENDLESS_MOST, MORE_SHARE = 12, 80, 0.3


def steps_shown(plan: BlindPlan) -> int:
    """How many steps of a plan are drawn: one that looks is followed a little further, as if nobody had looked."""
    if plan.then == "repeat":
        return int(np.clip(len(plan) + plan.repeat, ENDLESS_LEAST, ENDLESS_MOST))
    return len(plan) + (max(1, round(MORE_SHARE * len(plan))) if plan.then == "measure" else 0)


def action_at(plan: BlindPlan, step: int) -> int:
    """The action of a step, also after the look: then the last one goes on."""
    is_after = plan.then != "repeat" and step >= len(plan)
    return plan.actions[-1] if is_after else plan.decision(step).action


class Moves:
    """Rows of the transition table, collected plan by plan."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._rows: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self._entries = 0

    def add(self, state: int | None, plan: BlindPlan) -> bool:
        """Collect what is needed to follow a plan from a known state (None: the start); False if the page is full."""
        belief = Belief.start(self.model) if state is None else Belief.at(state)
        for step in range(steps_shown(plan)):
            action = action_at(plan, step)
            if not all(self._add_row(int(one), action) for one in belief.states):
                return False
            belief = belief.predict(self.model, action)
        return True

    def _add_row(self, state: int, action: int) -> bool:
        if (state, action) in self._rows:
            return True
        table = self.model.transitions
        row = state * self.model.n_actions + action
        entries = slice(int(table.offsets[row]), int(table.offsets[row + 1]))
        self._entries += entries.stop - entries.start
        if self._entries > MOST_ENTRIES:
            return False
        found = zip(table.successors[entries].tolist(), table.probabilities[entries].tolist(), strict=True)
        self._rows[state, action] = [(one, chance) for one, chance in found if not self.model.terminal[one]]
        return True

    def data(self) -> dict[str, Any]:
        """What the page needs, its states numbered anew and in order.

        `names` and `numbers` (in the model) of its states; `rows`, for `state,action`, the successors and their probabilities, of
        which what is missing to 1 is over; `start`, states and probabilities of a start that is not shown.
        """
        met = {*(state for state, _ in self._rows), *(one for row in self._rows.values() for one, _ in row)}
        belief = Belief.start(self.model)
        states = sorted(met | (set() if self.model.start_is_known else set(belief.states.tolist())))
        number = {state: position for position, state in enumerate(states)}
        rows = {
            f"{number[state]},{action}": [[number[one] for one, _ in row], [chance for _, chance in row]]
            for (state, action), row in self._rows.items()
        }
        start = None
        if not self.model.start_is_known:
            start = [[number[state] for state in belief.states.tolist()], belief.probabilities.tolist()]
        names = [self.model.state_name(state) for state in states]
        return {"names": names, "numbers": states, "rows": rows, "start": start}
