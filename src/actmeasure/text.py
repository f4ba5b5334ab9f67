"""Beliefs, states and numbers in words, and tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from actmeasure.belief import Belief
from actmeasure.model import Model
from actmeasure.statistics import Interval

__all__ = [
    "belief_text",
    "break_even_text",
    "interval_text",
    "name_value_lines",
    "number_text",
    "percent",
    "plain_number",
    "short_number",
    "shortened",
    "some_states",
    "text_table",
]

#: Number of likeliest states of a belief that are named.
LIKELIEST_NAMED = 3
#: Number of states of a longer list that are named.
STATES_NAMED = 10


def belief_text(model: Model, belief: Belief) -> str:
    """Return the likeliest states of a belief with their percentages."""
    likeliest = np.argsort(-belief.probabilities, kind="stable")[:LIKELIEST_NAMED]
    named = [f"{model.state_name(int(belief.states[i]))}: {percent(belief.probabilities[i])}" for i in likeliest]
    rest = len(belief.states) - len(named)
    return ", ".join(named) + (f", {rest} more" if rest else "")


def some_states(model: Model, states: Sequence[int]) -> str:
    """Return the names of the first of some states, and the number of the others."""
    names = ", ".join(model.describe_state(state) for state in states[:STATES_NAMED])
    return names + (f" and {len(states) - STATES_NAMED} more" if len(states) > STATES_NAMED else "")


def break_even_text(
    low: float, high: float, what: str = "Looking", write: Callable[[float], str] = "{:.6g}".format
) -> str:
    """Return a sentence on the price up to which looking pays, given bounds on the break-even price."""
    if high == 0:
        return f"{what} is never worth anything here."
    if math.isinf(low):
        return f"{what} pays at every price."
    if math.isinf(high):
        least = f"{what} pays up to a price of {write(low)} at least."
        return least if low > 0 else f"Whether {what.lower()} pays is not known yet."
    if math.isclose(low, high, rel_tol=1e-9) or write(low) == write(high):
        return f"{what} pays up to a price of {write(low)}."
    return f"{what} pays up to a price between {write(low)} and {write(high)}."


def interval_text(mean: Interval) -> str:
    """Return a mean and its interval, or the mean alone where the interval is unknown."""
    value, low, high = mean
    return f"{value:.4g}" if math.isnan(low) else f"{value:.4g} ({low:.4g} to {high:.4g})"


def percent(probability: float) -> str:
    """Return a probability in whole percent; 0 % and 100 % only where it is exactly 0 or 1."""
    if 0 < probability < 0.005:
        return "<1 %"
    if 0.995 <= probability < 1 - 1e-12:
        return ">99 %"
    return f"{100 * probability:.0f} %"


def short_number(value: float, form: str = ".4f") -> str:
    """Return a formatted number, without the sign of -0, or a question mark for nan."""
    return "?" if math.isnan(value) else f"{round(value, 12) + 0.0:{form}}"


def plain_number(value: float) -> str:
    """Return a number with four significant digits, or all digits of its whole part, and without -0, or "unknown" for NaN.

    Examples
    --------
    >>> [plain_number(x) for x in (1234567.8, 12.3456, 0.012345678, 0.5, -0.0, 3, math.nan)]
    ['1,234,568', '12.35', '0.01235', '0.5', '0', '3', 'unknown']
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinite"
    if abs(value) < 1e-12:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_text(value: float, digits: int) -> str:
    """Return a number for a page: `digits` digits after the point, a typographic minus sign, and no sign of -0."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) != 0 else text.lstrip("-")


def shortened(plan: str, most: int) -> str:
    """Return a plan in words, with its middle left out where it has more than `most` characters.

    Examples
    --------
    >>> shortened("left, 2x up, right, down, left, then look", 30)
    'left, 2x up, ..., then look'
    """
    if len(plan) <= most:
        return plan
    *steps, ending = plan.split(", ")
    kept: list[str] = []
    while steps and len(", ".join([*kept, steps[0], "...", ending])) <= most:
        kept.append(steps.pop(0))
    return ", ".join([*kept, "...", ending])


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], alignment: str, rule: bool = True) -> list[str]:
    r"""Return the lines of a table for the terminal; `alignment` has < or > for every column (a space counts as <).

    `rule` is whether a line is drawn below the head. Rows may be shorter than the head.

    Examples
    --------
    >>> print(*text_table(["state", "value"], [["s0", "0.5"], ["s1", "12.0"]], "<>"), sep="\n")
    state  value
    -----  -----
    s0       0.5
    s1      12.0
    """
    from tabulate import SEPARATING_LINE, tabulate

    sides = ["right" if side == ">" else "left" for side in alignment]
    # As a header, the first row would be padded by two spaces in every column.
    lines = [head, *([SEPARATING_LINE] if rule else []), *rows]
    table = tabulate(lines, tablefmt="simple", colalign=sides, disable_numparse=True)
    return [line.rstrip() for line in table.splitlines()[1:-1]]  # without the rules above and below


def name_value_lines(pairs: Iterable[tuple[str, object]]) -> list[str]:
    r"""Return a line for each name and value, with the values below each other.

    Examples
    --------
    >>> print(*name_value_lines([("value", 0.5), ("gap", "none")]), sep="\n")
    value  0.5
    gap    none
    """
    (name, value), *others = [(name, str(value)) for name, value in pairs]
    return text_table((name, value), others, "<<", rule=False)
