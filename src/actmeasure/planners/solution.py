"""What planning gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actmeasure.evaluation import Evaluation
from actmeasure.model import Model
from actmeasure.planners.clock import Progress, Stopped
from actmeasure.planners.explain import explain
from actmeasure.planners.explanation import Explanation
from actmeasure.planners.solution_text import solution_frame, solution_text
from actmeasure.schedule import Schedule
from actmeasure.transitions import FloatArray

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Solution"]


@dataclass(frozen=True, eq=False)
class Solution:
    """A schedule, what it is worth exactly, and how much better the best possible could be.

    Attributes
    ----------
    model : Model
    method : str
    schedule : Schedule
    evaluation : Evaluation
        Of the schedule, over all time.
    lower : float
        The schedule's discounted return, rounded downwards, and so a lower bound on the optimum.
    upper : float
        A sound upper bound on the optimum, whatever the method.
    values : float64 array, shape (S,)
        What is achieved, at least, from each state once it is known.
    seconds : float
        Time it took.
    stopped : str
        Why planning stopped. `closed`: the bounds are within the tolerance (`optimal`, and `never` for its own bound). `time`:
        the time limit was over. `interrupted`: Ctrl-C. `memory`: the search may not grow any more. `exhausted`: the search
        cannot get closer, because of rounding or because there is no discount. `done`: the method is no search, or `atm` is
        finished.
    record : tuple of Progress
        How the bounds closed.
    claimed : float or None
        What the method itself says its schedule is worth, where that differs (`atm-linear`).
    method_upper : float or None
        A bound on the best schedule of the method's kind, where it has one of its own (`never`).
    """

    model: Model
    method: str
    schedule: Schedule
    evaluation: Evaluation
    lower: float
    upper: float
    values: FloatArray
    seconds: float
    stopped: Stopped = "done"
    record: tuple[Progress, ...] = field(default=(), repr=False)
    claimed: float | None = None
    method_upper: float | None = None

    @property
    def value(self) -> float:
        """Exact discounted return of the schedule from the start, up to rounding; minus infinity where it has none."""
        value = self.evaluation.discounted_return
        return -math.inf if math.isnan(value) else value

    @property
    def gap(self) -> float:
        """How much better the optimum could be."""
        return self.upper - self.lower

    def explain(self, state: int | str | None = None) -> Explanation:
        """Why the plan looks when it does: belief and value of looking, now and later, at each of its steps.

        Parameters
        ----------
        state : int or str, optional
            The state that was seen, by number or name; by default the start.

        Examples
        --------
        >>> import actmeasure as am
        >>> solution = am.solve(am.problems.two_state_belief(p=0.8, measuring_cost=0.05))
        >>> print(solution.explain())
        After seeing begin: a0, then look
        Worth 0.95 from here on.
        <BLANKLINE>
        step  action  belief before it  running  look now  not now  measuring value
        ----  ------  ----------------  -------  --------  -------  ---------------  -----
           1  a0      begin: 100 %        100 %    0.9500   0.8000          +0.1500  looks
        """
        return explain(self, state)

    def to_pandas(self) -> pd.DataFrame:
        """A table with a row per plan: its state, the plan in words, steps, ending and value (needs the extra `data`).

        The index is the state's number; a plan for a start that is not shown has -1.
        """
        return solution_frame(self)

    def table(self, plans: int = 20) -> str:
        """Value, bounds, looks and the first `plans` plans in words, as a table for the terminal; `print` shows it too."""
        return solution_text(self, plans)

    def plot(self, path: str | os.PathLike[str] | None = None, shape: tuple[int, int] | None = None) -> Figure:
        """Draw a lake's plans as arrows, and where they look (needs the extra `plots`).

        Parameters
        ----------
        path : str or path, optional
            Where to save the picture, such as `plans.png` or `plans.svg`.
        shape : (rows, columns), optional
            Of the lake; a square by default.
        """
        from actmeasure.planners.lake_plot import plot_lake

        return plot_lake(self, path, shape)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return (
            f"Solution({self.method}: value {self.value:.6g}, optimum at most {self.upper:.6g}, "
            f"{len(self.schedule)} states planned, {self.seconds:.2g} s)"
        )
