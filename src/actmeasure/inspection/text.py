"""Advice in words and tables, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.evaluation import Evaluation
from actmeasure.inspection.confidence import HIGH
from actmeasure.inspection.money import plain_number
from actmeasure.text import break_even_text, percent, shortened, text_table

if TYPE_CHECKING:
    from actmeasure.inspection.advice import Advice, StatePlan
    from actmeasure.inspection.prices import PricedSchedule

__all__ = ["advice_text", "break_even", "certificate", "price_words"]

#: So many plans, and pieces of the price range, are shown; JSON, CSV and the page have all.
PLANS_SHOWN, PRICES_SHOWN = 20, 12
PLAN_WIDTH = 78


def advice_text(advice: Advice) -> str:
    """The whole advice."""
    parts = [
        _facts(advice),
        _schedule(advice),
        _comparison(advice),
        *([_prices(advice)] if advice.frontier is not None else []),
        *([_confidence(advice)] if advice.confidence is not None else []),
        *(["\n".join(["Notes", *(f"- {note}" for note in advice.notes)])] if advice.notes else []),
    ]
    return "\n\n".join(parts)


def _facts(advice: Advice) -> str:
    facts = list(_fact_rows(advice))
    width = max(len(name) for name, _ in facts)
    return "\n".join([advice.title, "", *(f"{name:<{width}}  {text}" for name, text in facts)])


def _fact_rows(advice: Advice) -> Iterator[tuple[str, str]]:
    units, result = advice.units, advice.evaluation
    yield "price of an inspection", price_words(advice)
    discounted = f", discounted by {advice.model.discount:.4g} per {units.period}" if advice.model.discount < 1 else ""
    yield f"{units.figure} in all", f"{units.money(advice.value)}{discounted}; {certificate(advice)}"
    per_period = advice.per_period(result)
    if per_period is not None:
        yield (
            f"{units.figure} per {units.period}",
            f"{units.money(per_period)} discounted (a constant sum worth the same)",
        )
    if result.average_return is not None:
        yield "in the long run", f"{units.money(result.average_return)} per {units.period}"
    yield "inspections", _inspections(advice, result)


def price_words(advice: Advice) -> str:
    """What an inspection costs."""
    if advice.has_one_price:
        return advice.units.amount(advice.price)
    costs = advice.model.measuring_costs[~advice.model.terminal]
    return f"{plain_number(float(costs.min()))} to {advice.units.amount(float(costs.max()))}, by state and action"


def certificate(advice: Advice) -> str:
    """How far the plan can be from the best possible."""
    if not np.isfinite(advice.gap):
        return "how much better something could be is not known"
    bound = advice.units.money(advice.upper)
    least = (
        f"no schedule costs less than {bound}" if advice.units.is_cost else f"no schedule is worth more than {bound}"
    )
    return f"certified: {least}"


def _inspections(advice: Advice, result: Evaluation) -> str:
    if result.average_measurements is None:
        return f"{plain_number(result.measurements)} in all, in {advice.units.periods(result.steps)}"
    often = result.average_measurements
    if often == 0:
        return "none in the long run"
    return f"{plain_number(often)} per {advice.units.period}, one in {advice.units.about(1 / often)}"


def _schedule(advice: Advice) -> str:
    rows = advice.rows
    shown = rows[:PLANS_SHOWN]
    head = ["after seeing", "do", f"{advice.units.figure} from here"]
    cells = [[row.name, shortened(row.words, PLAN_WIDTH), advice.units.money(row.value)] for row in shown]
    if advice.confidence is not None:
        head += ["same plan in", f"in 90 %: {advice.units.period}s to inspection"]
        cells = [cell + _sure_cells(row) for row, cell in zip(shown, cells, strict=True)]
    lines = text_table(head, cells, "<<>>>"[: len(head)])
    lines += (
        [f"... and {len(rows) - PLANS_SHOWN} more plan{'s' * (len(rows) - PLANS_SHOWN != 1)}"]
        if len(rows) > PLANS_SHOWN
        else []
    )
    return "\n".join(lines)


def _sure_cells(row: StatePlan) -> list[str]:
    if row.agreement is None:
        return ["?", "?"]
    ends = [
        plain_number(end) if np.isfinite(end) else "never" for end in (row.agreement.earliest, row.agreement.latest)
    ]
    return [percent(row.agreement.same_plan), ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"]


def _comparison(advice: Advice) -> str:
    units = advice.units
    more = "more" if units.is_cost else "less"
    head = [
        "compared with",
        f"{units.figure} in all",
        more,
        f"long run per {units.period}",
        f"inspections per {units.period}",
    ]
    cells = [
        (
            policy.name,
            units.money(policy.value),
            units.amount(advice.lost(policy)),
            "-" if policy.evaluation.average_return is None else units.money(policy.evaluation.average_return),
            _looks(policy.evaluation),
        )
        for policy in advice.policies
    ]
    notes = [f"{policy.name}: {policy.note}" for policy in advice.policies if policy.note]
    return "\n".join([*text_table(head, cells, "<>>>>"), *notes])


def _looks(result: Evaluation) -> str:
    if result.average_measurements is None:
        return f"{plain_number(result.measurements)} in all"
    return plain_number(result.average_measurements)


def _prices(advice: Advice) -> str:
    """The plan of the start, or of the first state expected, as the price changes."""
    from actmeasure.inspection.advice import plan_words

    pieces = _around(advice)
    rows = [row for row in advice.rows if row.is_expected]
    first = next((row for row in rows if row.state is None or row.state in advice.model.initial_states), rows[0])
    price = "price of an inspection" if advice.has_one_price else "price, times that of now"
    looks = "inspections, discounted" if advice.has_one_price else "inspections, at the costs of now"
    head = (price, f"{advice.units.figure} in all", looks, f"after seeing {first.name}")
    cells = []
    for one in pieces:
        plan = one.schedule.start if first.state is None else one.schedule.get(first.state)
        high = "up" if one.high == np.inf else f"to {plain_number(one.high)}"
        mark = " *" if one.low <= advice.price <= one.high else ""
        cells.append(
            (
                f"{plain_number(one.low)} {high}{mark}",
                f"{advice.units.money(one.value(one.inside))} at {plain_number(one.inside)}",
                plain_number(one.looks),
                "-"
                if plan is None
                else shortened(plan_words(advice.model, advice.units, first.state, plan), PLAN_WIDTH),
            )
        )
    left = len(advice.prices) - len(pieces)
    lines = text_table(head, cells, "<>><")
    lines += [f"... and {left} more; * is the price of now" if left else "* is the price of now"]
    return "\n".join([*lines, break_even(advice)])


def _around(advice: Advice) -> list[PricedSchedule]:
    """The pieces to show: all, or those spread evenly with that of the own price among them."""
    pieces = list(advice.prices)
    if len(pieces) <= PRICES_SHOWN:
        return pieces
    own = next(number for number, one in enumerate(pieces) if advice.price <= one.high)
    numbers = {own, *np.linspace(0, len(pieces) - 1, PRICES_SHOWN - 1).round().astype(int).tolist()}
    return [pieces[number] for number in sorted(numbers)]


def break_even(advice: Advice) -> str:
    """Up to which price an inspection pays, in a sentence."""
    assert advice.frontier is not None  # asked for only then
    return break_even_text(*advice.frontier.break_even, "Inspecting", advice.price_text)


def _confidence(advice: Advice) -> str:
    sure = advice.confidence
    assert sure is not None  # asked for only then
    units, losses = advice.units, sure.losses
    low, high = sorted(np.quantile(sure.values, [1 - HIGH, HIGH]).tolist(), key=units.shown)
    return "\n".join(
        [
            f"How sure: the same question asked of {len(losses)} models fitted to resampled records",
            f"the plan's {units.figure} in them  {units.money(low)} to {units.money(high)} (the middle 90 %)",
            f"lost by the plan if one of them is the true one  {units.amount(float(losses.mean()))} on average, "
            f"{units.amount(float(np.quantile(losses, HIGH)))} or less in 95 %, {units.amount(float(losses.max()))} at most",
            f"plans that are the same  {percent(sure.same_schedule)} on average",
        ]
    )
