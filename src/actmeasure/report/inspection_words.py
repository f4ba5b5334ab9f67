"""What the page of an inspection plan says without its script: for print, and for readers who cannot run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure import __version__
from actmeasure.inspection.advice import Advice, StatePlan
from actmeasure.inspection.confidence import HIGH
from actmeasure.inspection.policies import Policy
from actmeasure.inspection.text import break_even, certificate, price_words
from actmeasure.inspection.units import plain_number
from actmeasure.planners.wording import percent
from actmeasure.report.inspection_data import MOST_ROWS

__all__ = ["page_words"]


def page_words(advice: Advice) -> dict[str, Any]:
    """Texts and tables for the template; it escapes them."""
    units, rows = advice.units, advice.rows
    is_endless = any(policy.evaluation.average_return is not None for policy in advice.policies)
    return {
        "is_endless": is_endless,
        "looks": f"inspections per {units.period}" if is_endless else "inspections in all",
        "title": advice.title,
        "version": __version__,
        "figure": units.figure,
        "period": units.period,
        "more": "more than the plan" if units.is_cost else "less than the plan",
        "price": price_words(advice),
        "facts": _facts(advice),
        "certificate": certificate(advice),
        "break_even": None if advice.frontier is None else break_even(advice),
        "rows": [_row(advice, row) for row in rows[:MOST_ROWS]],
        "left_out": len(rows) - MOST_ROWS if len(rows) > MOST_ROWS else 0,
        "policies": [_policy(advice, policy, is_endless) for policy in advice.policies],
        "sure": _sure(advice),
        "notes": advice.notes,
        "assumptions": _assumptions(advice),
    }


def _facts(advice: Advice) -> list[tuple[str, str, str]]:
    """Name, figure and explanation of what counts."""
    units, result = advice.units, advice.evaluation
    discounted = "in all, discounted" if advice.model.discount < 1 else "in all"
    found = [(f"{units.figure} {discounted}", units.money(advice.value), certificate(advice))]
    per_period = advice.per_period(result)
    if per_period is not None:
        found.append(
            (f"{units.figure} per {units.period}", units.money(per_period), "discounted: a constant sum worth the same")
        )
    if result.average_return is not None:
        found.append((f"{units.figure} in the long run", units.money(result.average_return), f"per {units.period}"))
    if result.average_measurements is None:
        found.append(("inspections", plain_number(result.measurements), f"in all, in {units.periods(result.steps)}"))
    else:
        often = result.average_measurements
        rate = f"one in {units.about(1 / often)}" if often else "none in the long run"
        found.append((f"inspections per {units.period}", plain_number(often), rate))
    return found


def _row(advice: Advice, row: StatePlan) -> dict[str, Any]:
    sure = None
    if row.agreement is not None:
        ends = [
            plain_number(end) if np.isfinite(end) else "never" for end in (row.agreement.earliest, row.agreement.latest)
        ]
        sure = (percent(row.agreement.same_plan), ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}")
    return {
        "name": "the start" if row.state is None else row.name,
        "words": row.words,
        "after": "" if row.inspect_after is None else str(row.inspect_after),
        "money": advice.units.money(row.value),
        "expected": row.is_expected,
        "sure": sure,
    }


def _policy(advice: Advice, policy: Policy, are_some_endless: bool) -> dict[str, Any]:
    units, result = advice.units, policy.evaluation
    looks, in_all = result.average_measurements, " in all" if are_some_endless else ""
    return {
        "name": policy.name,
        "rule": policy.rule,
        "note": policy.note,
        "money": units.money(policy.value),
        "lost": units.amount(advice.lost(policy)),
        "average": units.money(result.average_return) if result.average_return is not None else "",
        "looks": plain_number(result.measurements) + in_all if looks is None else plain_number(looks),
    }


def _sure(advice: Advice) -> dict[str, str] | None:
    sure, units = advice.confidence, advice.units
    if sure is None:
        return None
    losses = sure.losses
    ends = sorted(np.quantile(sure.values, [1 - HIGH, HIGH]).tolist(), key=units.shown)
    return {
        "models": f"{len(losses):,}",
        "cost": f"{units.money(ends[0])} to {units.money(ends[1])}",
        "mean": units.amount(float(losses.mean())),
        "most": units.amount(float(np.quantile(losses, HIGH))),
        "worst": units.amount(float(losses.max())),
        "same": percent(sure.same_schedule),
    }


def _assumptions(advice: Advice) -> list[str]:
    """What the figures rest on."""
    model, units = advice.model, advice.units
    discount = (
        f"money a {units.period} later counts {model.discount:.4g}" if model.discount < 1 else "there is no discount"
    )
    start = "the first state is shown" if model.start_is_known else "the first state is not shown"
    return [
        f"{model.n_states:,} states, {model.n_actions} action{'s' * (model.n_actions != 1)}; {discount}; {start}.",
        "An inspection shows the state exactly, at the end of the period it is taken in; nothing is seen in between.",
        "All figures are exact for this model, from linear solves, not simulation. The plan is the best for the "
        "discounted sum; the figures in the long run are those of the same plan.",
    ]
