"""The episode so far and the belief in it, which environments render."""

from __future__ import annotations

import numpy as np

from actmeasure.belief import Belief
from actmeasure.errors import counted
from actmeasure.model import Model

__all__ = ["EpisodeHistory"]

#: Number of likeliest states that are named in a text.
NAMED_STATES = 6


class EpisodeHistory:
    """The history of an episode so far, kept only by environments that have a render mode.

    Attributes
    ----------
    state : int
        The present state, also where it was not shown.
    belief : Belief
        Belief given the model, the looks, and that the episode is running; empty when it is over.
    step : int
    action : int or None
        The last action; None at the start.
    measurement : int
        The measurement that was made with the last action, 0 for none.
    shown_start : bool
        Whether the first state was shown.
    outcome : int
        What was seen with the last action, -1 for nothing.
    last_look : (step, state) or None
        Step at which a state was last shown, and that state.
    looks : int
        Number of measurements that were paid for.
    total : float
        Reward minus measuring costs so far, not discounted.
    """

    def __init__(self, model: Model, state: int, shown: bool) -> None:
        self._model = model
        self.state = state
        self.belief = Belief.at(state) if shown else Belief.start(model)
        self.step = 0
        self.action: int | None = None
        self.shown_start = shown
        self.measurement, self.outcome = 0, -1
        #: Step of the last measurement and what it showed, for `text`.
        self._last_seen: tuple[int, str] | None = (0, model.state_name(state)) if shown else None
        self.last_look: tuple[int, int] | None = (0, state) if shown else None
        self.looks = 0
        self.total = 0.0

    def add(self, action: int, measurement: int, outcome: int, state: int, reward: float) -> None:
        """Add a step: its decision, its outcome (-1 for nothing), the state it led to, and its reward minus measuring cost."""
        model = self._model
        self.state, self.action, self.measurement, self.outcome = state, action, measurement, outcome
        self.step += 1
        self.total += reward
        self.looks += measurement > 0
        shows = model.shown_by(measurement)
        is_exact = shows is not None and shows.law is None
        if is_exact:
            self.last_look = (self.step, state)
        if measurement and outcome >= 0:
            self._last_seen = (self.step, model.outcome_name(measurement, outcome))
        if model.terminal[state]:
            self.belief = Belief(np.zeros(0, dtype=np.int64), np.zeros(0))
        elif is_exact:
            self.belief = Belief.at(state)
        elif outcome >= 0:
            self.belief = self.belief.update(model, action, measurement, outcome)
        else:
            self.belief = self.belief.predict(model, action)

    @property
    def last_step(self) -> str:
        """The last action and whether it looked, such as `right, looked`; with the outcome where looks are not exact."""
        if self.action is None:
            return "start shown" if self.shown_start else "start hidden"
        model, action = self._model, self._model.action_name(self.action)
        if model.looks_are_exact:
            return f"{action}, {'looked' if self.measurement else 'blind'}"
        shows = model.shown_by(self.measurement)
        if shows is None:
            return f"{action}, no measurement"
        seen = "nothing" if self.outcome < 0 else model.outcome_name(self.measurement, self.outcome)
        return f"{action}, {shows.name}: {seen}"

    @property
    def looks_paid(self) -> str:
        """`1 look` or `3 looks`."""
        return counted(self.looks, "look")

    def text(self) -> str:
        """Return the episode in five lines."""
        return "\n".join(
            [
                f"step {self.step}: {self.last_step}",
                f"state: {self._model.state_name(self.state)}",
                f"belief: {self._belief_text()}",
                f"last look: {self._last_look_text()}",
                f"return so far: {self.total:.6g} ({self.looks_paid})",
            ]
        )

    def _belief_text(self) -> str:
        if self.belief.is_over:
            return "the episode is over"
        likeliest = np.argsort(-self.belief.probabilities, kind="stable")
        named = [
            f"{self._model.state_name(int(self.belief.states[i]))} {100 * self.belief.probabilities[i]:.3g} %"
            for i in likeliest[:NAMED_STATES]
        ]
        unnamed = len(likeliest) - len(named)
        return ", ".join(named) + (f" and {unnamed} more" if unnamed else "")

    def _last_look_text(self) -> str:
        if self._last_seen is None:
            return "never"
        step, seen = self._last_seen
        return f"at step {step}, saw {seen}"
