"""A plan with the worth of looking at each of its steps: the result of `Solution.explain`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.planners.extras import pandas_for
from actmeasure.planners.wording import belief_text, number, percent, text_table
from actmeasure.schedule import BlindPlan

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["ExplainedStep", "Explanation"]

LOSES = "Loses without end from here on, as there is no discount."


@dataclass(frozen=True)
class ExplainedStep:
    """One step of a plan; everything is given that the episode is still running.

    Attributes
    ----------
    step : int
        From 1.
    action : int
    belief : Belief
        What is known before the step.
    running : float
        Probability that the episode has come this far.
    looking : float
        Value of taking the action together with a look, as far as is known what can be achieved from the states it may show;
        NaN if it may show one that the schedule has no plan for.
    waiting : float
        Value of taking the action without a look: that of the plan, or, where the plan looks, of one more blind action and a
        look with it, if there is anything to see by then.
    looks : bool
        Whether the plan looks with this step.
    """

    step: int
    action: int
    belief: Belief
    running: float
    looking: float
    waiting: float
    looks: bool

    @property
    def measuring_value(self) -> float:
        """What a look with this step is worth beyond its price; above 0: look. NaN where both ways lose without end."""
        return self.looking - self.waiting


@dataclass(frozen=True, eq=False)
class Explanation:
    """A plan with the worth of looking at each of its steps: `print` it, `plot` it, or take it `to_pandas`.

    Attributes
    ----------
    model : Model
    state : int or None
        The state that was seen before the plan; None for a start that is not shown.
    plan : BlindPlan
    value : float
        What the plan and all that follows is worth, discounted, from here on.
    steps : tuple of ExplainedStep
        Those of a plan that goes on for ever are cut off at some point.
    """

    model: Model
    state: int | None
    plan: BlindPlan
    value: float
    steps: tuple[ExplainedStep, ...]

    @property
    def title(self) -> str:
        """Which plan this is, and what it does."""
        known = "At the start" if self.state is None else f"After seeing {self.model.state_name(self.state)}"
        return f"{known}: {self.plan.describe(self.model)}"

    def to_pandas(self) -> pd.DataFrame:
        """A table with a row per step (needs the extra `data`)."""
        pandas = pandas_for("Explanation.to_pandas")
        rows = [
            {
                "action": self.model.action_name(step.action),
                "belief": belief_text(self.model, step.belief),
                "running": step.running,
                "looking": step.looking,
                "waiting": step.waiting,
                "measuring_value": step.measuring_value,
                "looks": step.looks,
            }
            for step in self.steps
        ]
        numbers = pandas.RangeIndex(1, len(rows) + 1, name="step")
        frame: pd.DataFrame = pandas.DataFrame(rows, index=numbers)
        return frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the measuring value along the plan, and save it if a path is given (needs the extra `plots`)."""
        from actmeasure.planners.explanation_plot import plot_explanation

        return plot_explanation(self, path)

    def __str__(self) -> str:
        head = ("step", "action", "belief before it", "running", "look now", "not now", "measuring value", "")
        rows = [
            (
                str(step.step),
                self.model.action_name(step.action),
                belief_text(self.model, step.belief),
                percent(step.running),
                number(step.looking),
                number(step.waiting),
                number(step.measuring_value, "+.4f"),
                "looks" if step.looks else "",
            )
            for step in self.steps
        ]
        lines = [
            self.title,
            LOSES if self.value == -math.inf else f"Worth {self.value:.6g} from here on.",
            "",
            *text_table(head, rows, ">< >>>> "),
            *self._notes(),
        ]
        return "\n".join(lines)

    def _notes(self) -> Iterator[str]:
        if self.plan.then == "repeat" and not _is_over_after(self.model, self.steps[-1]):
            yield "... and so on for ever."
        if any(math.isnan(step.looking) or math.isnan(step.waiting) for step in self.steps):
            yield "?: a look may show a state that this schedule has no plan for."

    def __repr__(self) -> str:
        return f"Explanation({self.title}; {len(self.steps)} steps)"


def _is_over_after(model: Model, step: ExplainedStep) -> bool:
    return step.belief.predict(model, step.action).is_over
