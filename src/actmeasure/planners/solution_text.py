"""A solution in words: what it is worth, how sure that is, and its plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from actmeasure.evaluation import Evaluation
from actmeasure.model import Model
from actmeasure.planners.extras import pandas_for
from actmeasure.planners.stop_reasons import why_open
from actmeasure.planners.wording import shortened, text_table
from actmeasure.schedule import BlindPlan

if TYPE_CHECKING:
    import pandas as pd

    from actmeasure.planners.solution import Solution

__all__ = ["solution_frame", "solution_notes", "solution_text"]

#: Longer plans are shortened in the table; in the schedule and `to_pandas` they are complete.
PLAN_WIDTH = 90
WITHOUT_END = (
    "Without discount this schedule loses without end, so it has no finite value; use the method 'optimal', or a discount "
    "below 1."
)


def _rows(solution: Solution, most: int | None = None) -> list[dict[str, Any]]:
    """A row for every plan of a solution, that of a hidden start first."""
    model, schedule = solution.model, solution.schedule
    rows = []
    if schedule.start is not None and not model.start_is_known:
        rows.append(_plan_row(model, None, schedule.start, solution.value))
    for number, (state, plan) in enumerate(schedule.items()):
        if most is not None and number >= most:
            break
        rows.append(_plan_row(model, state, plan, float(solution.values[state])))
    return rows


def _plan_row(model: Model, state: int | None, plan: BlindPlan, value: float) -> dict[str, Any]:
    return {
        "number": -1 if state is None else state,
        "state": "(start)" if state is None else model.state_name(state),
        "plan": plan.describe(model),
        "steps": len(plan),
        "ending": plan.then,
        "value": value,
    }


def solution_frame(solution: Solution) -> pd.DataFrame:
    """A table with a row per plan."""
    pandas = pandas_for("Solution.to_pandas")
    columns = ["number", "state", "plan", "steps", "ending", "value"]
    frame: pd.DataFrame = pandas.DataFrame(_rows(solution), columns=columns).set_index("number")
    return frame


def solution_text(solution: Solution, plans: int) -> str:
    """What a solution is worth, how sure that is, and its first plans in words."""
    facts = list(_facts(solution))
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {text}" for name, text in facts]
    for note in solution_notes(solution):
        lines += ["", note]
    rows = _rows(solution, plans) if plans > 0 else []
    if rows:
        cells = [(row["state"], shortened(row["plan"], PLAN_WIDTH), f"{row['value']:.4f}") for row in rows]
        lines += ["", *text_table(("after seeing", "do", "value"), cells, "<<>")]
        more = len(solution.schedule) - len([row for row in rows if row["number"] >= 0])
        lines += [f"... and {more} more plans"] if more else []
    return "\n".join(lines)


def solution_notes(solution: Solution) -> Iterator[str]:
    """What the figures alone do not say, in sentences: a value that is not finite, and why a gap is open."""
    if solution.value == -math.inf:
        yield WITHOUT_END
    is_search = solution.method in ("optimal", "never")
    gain = "close the gap" if is_search else "find better moments to look"
    if reason := why_open(solution.stopped, solution.model.discount, gain):
        yield reason


def _facts(solution: Solution) -> Iterator[tuple[str, str]]:
    is_discounted = solution.model.discount < 1
    yield "method", f"{solution.method} ({solution.seconds:.2g} s)"
    yield "value", f"{solution.value:.6g}  (exact, {'discounted' if is_discounted else 'without discount'})"
    if solution.claimed is not None:
        yield "claimed", f"{solution.claimed:.6g}  (what the method says its schedule is worth)"
    yield "optimum", _range(solution.lower, solution.upper)
    if solution.method_upper is not None:
        yield f"best {solution.method!r}", _range(solution.value, max(solution.method_upper, solution.value))
    yield "looks", _looks(solution.evaluation, is_discounted)
    yield "episode", _episode(solution.evaluation.steps, solution.evaluation.ending_probability)


def _range(lower: float, upper: float) -> str:
    return f"at most {upper:.6g}" if lower == -math.inf else f"{lower:.6g} to {upper:.6g}  (gap {upper - lower:.2g})"


def _looks(result: Evaluation, is_discounted: bool) -> str:
    is_finite = math.isfinite(result.measurements)
    often = f"{result.measurements:.4g} per episode" if is_finite else f"{result.average_measurements:.4g} per step"
    return often + (f"  ({result.discounted_measurements:.4g} discounted)" if is_discounted else "")


def _episode(steps: float, ending: float) -> str:
    if math.isfinite(steps):
        return f"{steps:.4g} steps"
    return "never ends" if ending == 0 else f"ends with probability {ending:.4g}"
