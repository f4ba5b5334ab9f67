"""Inspection by the calendar: the best number of periods between two inspections."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from actmeasure.belief import Belief
from actmeasure.inspection.worth import discounted_value
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.control import Control
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Calendars"]


@dataclass
class BlindPath:
    """Where control leads from a belief without a look: actions, and the states possible after each of them."""

    belief: Belief
    actions: list[int] = field(default_factory=list)
    possible: list[list[int]] = field(default_factory=list)


class Calendars:
    """Schedules that look at every k-th step, with act-then-measure's control in between.

    They are those of `solve(model, "every-k")`. The control does not depend on k, so the way from a state is followed once
    for all of them.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._control = Control(model)
        self._paths: dict[int | None, BlindPath] = {}

    def schedule(self, k: int) -> Schedule:
        """Look at every k-th step."""
        model = self.model
        start, found = None, [int(state) for state in model.initial_states]
        if not model.start_is_known:
            start, found = self._plan(None, k)
        plans: dict[int, BlindPlan] = {}
        while found:
            state = found.pop()
            if state not in plans:
                plans[state], further = self._plan(state, k)
                found += further
        return Schedule(plans, model.n_states, start)

    def best(self, longest: int, clock: Clock) -> tuple[int, int]:
        """The best k up to `longest`, and the last k that was tried before time was over."""
        best, most = 1, -math.inf
        for k in range(1, longest + 1):
            value = discounted_value(self.model, self.schedule(k))
            if value > most:
                best, most = k, value
            if clock.is_over:
                break
        return best, k

    def _plan(self, state: int | None, k: int) -> tuple[BlindPlan, list[int]]:
        """The first k steps from a known state (None: the start), and what may be seen then."""
        path = self._paths.get(state)
        if path is None:
            belief = Belief.start(self.model) if state is None else Belief.at(state)
            path = self._paths[state] = BlindPath(belief)
        while len(path.actions) < k and not path.belief.is_over:
            action = self._control(path.belief)
            path.belief = path.belief.predict(self.model, action)
            path.actions.append(action)
            path.possible.append([int(state) for state in path.belief.states])
        if len(path.actions) < k:
            return BlindPlan(tuple(path.actions), then="end"), []
        return BlindPlan(tuple(path.actions[:k]), then="measure"), list(path.possible[k - 1])
