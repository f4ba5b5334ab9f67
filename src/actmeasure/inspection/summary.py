"""Advice as plain figures, for tables, JSON and pages; sums of money as they are shown: costs above 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.evaluation import Evaluation
from actmeasure.inspection.confidence import HIGH, Confidence
from actmeasure.inspection.policies import Policy
from actmeasure.inspection.prices import PricedSchedule
from actmeasure.inspection.units import Units

if TYPE_CHECKING:
    from actmeasure.inspection.advice import Advice, StatePlan

__all__ = ["confidence_record", "plan_record", "policy_record", "price_record", "summary"]


def summary(advice: Advice) -> dict[str, Any]:
    """Everything in the advice, for machines; numbers may be infinite, and None where there is none."""
    units = advice.units
    frontier = advice.frontier
    return {
        "title": advice.title,
        "currency": units.currency,
        "period": units.period,
        "figures_are": units.figure + "s",
        "price_of_an_inspection": advice.price if advice.has_one_price else None,
        "discount": advice.model.discount,
        **_figures(advice, advice.evaluation),
        "best_possible": units.shown(advice.upper),
        "gap": advice.gap,
        "schedule": [plan_record(advice, row) for row in advice.rows],
        "policies": [policy_record(advice, policy) for policy in advice.policies],
        "break_even": None if frontier is None else list(frontier.break_even),
        "prices": [price_record(advice, one) for one in advice.prices],
        "frontier_gap": None if frontier is None else frontier.gap,
        "confidence": None if advice.confidence is None else confidence_record(advice.confidence, units),
        "notes": list(advice.notes),
        "seconds": advice.seconds,
    }


def _figures(advice: Advice, result: Evaluation) -> dict[str, Any]:
    """What a schedule is worth and how often it looks: in all, per period, and in the long run."""
    units = advice.units
    per_period = advice.per_period(result)
    return {
        f"{units.figure}_discounted": units.shown(result.discounted_return),
        f"{units.figure}_per_period_discounted": None if per_period is None else units.shown(per_period),
        f"{units.figure}_per_period_long_run": _or_none(units, result.average_return),
        f"{units.figure}_in_all": units.shown(result.scalarized_return) if np.isfinite(result.steps) else None,
        "inspections_per_period": result.average_measurements,
        "inspections_in_all": result.measurements if np.isfinite(result.steps) else None,
        "inspections_discounted": result.discounted_measurements,
        "periods_in_all": result.steps if np.isfinite(result.steps) else None,
    }


def _or_none(units: Units, value: float | None) -> float | None:
    return None if value is None else units.shown(value)


def plan_record(advice: Advice, row: StatePlan) -> dict[str, Any]:
    """What to do after seeing a state."""
    model = advice.model
    found: dict[str, Any] = {
        "state": row.state,
        "name": row.name,
        "plan": row.words,
        "actions": [model.action_name(action) for action in row.plan.actions],
        "then": row.plan.then,
        "repeat": row.plan.repeat,
        "inspect_after": row.inspect_after,
        advice.units.figure: advice.units.shown(row.value),
        "expected": row.is_expected,
    }
    if row.agreement is not None:
        found["same_plan"] = row.agreement.same_plan
        found["same_action"] = row.agreement.same_action
        found["inspect_after_90_percent"] = [row.agreement.earliest, row.agreement.latest]
    return found


def policy_record(advice: Advice, policy: Policy) -> dict[str, Any]:
    """A way to inspect, what it is worth, and how much more the plan is worth."""
    return {
        "policy": policy.name,
        "key": policy.key,
        "rule": policy.rule,
        **_figures(advice, policy.evaluation),
        "lost_discounted": advice.lost(policy),
        "note": policy.note,
    }


def price_record(advice: Advice, one: PricedSchedule) -> dict[str, Any]:
    """A schedule and the prices at which it is the best."""
    from actmeasure.inspection.advice import plan_words

    result = one.evaluation
    return {
        "low": one.low,
        "high": one.high,
        f"{advice.units.figure}_without_inspections_discounted": advice.units.shown(one.reward),
        "inspections_discounted": one.looks,
        "inspections_per_period": result.average_measurements,
        "plans": {
            advice.model.state_name(state): plan_words(advice.model, advice.units, state, one.schedule[state])
            for state in sorted(one.expected)
        },
    }


def confidence_record(sure: Confidence, units: Units) -> dict[str, Any]:
    """How the resampled models judge the plan."""
    losses = sure.losses
    return {
        "models": len(losses),
        "models_asked_for": sure.asked,
        "same_plan_on_average": sure.same_schedule,
        f"{units.figure}_in_the_models_90_percent": sorted(
            units.shown(float(one)) for one in np.quantile(sure.values, [1 - HIGH, HIGH])
        ),
        "lost_if_the_model_is_wrong": {
            "mean": float(losses.mean()),
            "95_percent_below": float(np.quantile(losses, HIGH)),
            "largest": float(losses.max()),
        },
    }
