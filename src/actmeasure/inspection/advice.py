"""Advice to whoever inspects: the result of `advise`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.drawing import pandas_for
from actmeasure.evaluation import Evaluation
from actmeasure.inspection.confidence import HIGH, Agreement, Confidence
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.money import Units, plain_number
from actmeasure.inspection.prices import PricedSchedule, own_price
from actmeasure.inspection.rules import ComparedPolicy
from actmeasure.inspection.schedules import discounted_visits, is_rounding
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.frontier import Frontier
from actmeasure.schedule import BlindPlan, Schedule

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Advice",
    "StatePlan",
    "confidence_record",
    "plan_record",
    "plan_words",
    "policy_record",
    "price_record",
    "summary",
]

#: More states than this are not shown in the order of their numbers.
MOST_IN_ORDER = 30


@dataclass(frozen=True, eq=False)
class StatePlan:
    """What to do after seeing a state.

    Attributes
    ----------
    state : int or None
        None for a start that is not shown.
    name : str
    plan : BlindPlan
    words : str
        The plan in words.
    inspect_after : int or None
        Periods until the next inspection; None if the plan has none.
    value : float
        Discounted return from here on.
    is_expected : bool
        Whether someone who follows the plan may come to see the state.
    agreement : Agreement or None
        How models fitted to resampled records see it.
    """

    state: int | None
    name: str
    plan: BlindPlan
    words: str
    inspect_after: int | None
    value: float
    is_expected: bool
    agreement: Agreement | None


@dataclass(frozen=True, eq=False)
class Advice:
    """An inspection plan with what it costs, what else could be done, and how sure it is.

    Attributes
    ----------
    model : Model
    units : Units
        Currency and period, and whether figures are shown as costs. In the attributes here they are returns: costs are below 0.
    schedule : Schedule
        A plan for every state, if there was time, also for those that are not expected.
    expected : frozenset of int
        The states that someone who follows the plan may come to see.
    evaluation : Evaluation
        What the plan is worth from the start, exactly.
    values : float64 array, shape (S,)
        What it is worth from each state once that is known; minus infinity where there is no plan.
    upper : float
        No schedule is worth more than this: the certificate.
    policies : tuple of ComparedPolicy
        The plan first, then the usual ways to inspect, each at its best.
    frontier : Frontier or None
        What can be had at every price of an inspection.
    prices : tuple of PricedSchedule
        The best schedule between each two prices.
    confidence : Confidence or None
        For a fit with resampled models.
    notes : tuple of Diagnostic
        Parts for which there was no time, the diagnostics of a fit, and assumptions of the plan.
    title : str
    seconds : float
    """

    model: Model
    units: Units
    schedule: Schedule
    expected: frozenset[int]
    evaluation: Evaluation
    values: FloatArray
    upper: float
    policies: tuple[ComparedPolicy, ...]
    frontier: Frontier | None
    prices: tuple[PricedSchedule, ...]
    confidence: Confidence | None
    notes: tuple[Diagnostic, ...]
    title: str
    seconds: float

    @property
    def value(self) -> float:
        """Discounted return of the plan from the start, exactly."""
        return self.policies[0].value

    @property
    def gap(self) -> float:
        """How much better the best possible could be at most."""
        return self.upper - self.value

    @property
    def price(self) -> float:
        """Price of an inspection; 1 where the model has a table of costs, which a price multiplies."""
        return own_price(self.model)

    @property
    def has_one_price(self) -> bool:
        """Whether an inspection costs the same everywhere."""
        return isinstance(self.model.measuring_cost, float)

    def price_text(self, price: float) -> str:
        """A price of an inspection in words; where the model has a table of costs, it multiplies them."""
        return self.units.amount(price) if self.has_one_price else f"{plain_number(price)} times the costs of now"

    @cached_property
    def rows(self) -> list[StatePlan]:
        """What to do after each state: the start if it is not shown, then the states that are expected, then the others.

        In a large model, the states that are seen most often come first.
        """
        schedule = self.schedule
        order = sorted(set(schedule) & self.expected)
        if len(order) > MOST_IN_ORDER:
            visits = discounted_visits(self.model, schedule)
            order.sort(key=lambda state: -visits[state])
        order += sorted(set(schedule) - self.expected)
        states: list[int | None] = [None] if schedule.start is not None and not self.model.start_is_known else []
        return [self._row(state) for state in [*states, *order]]

    def _row(self, state: int | None) -> StatePlan:
        plan = self.schedule.start if state is None else self.schedule[state]
        assert plan is not None  # the start has one where it is asked for
        return StatePlan(
            state=state,
            name="(start)" if state is None else self.model.state_name(state),
            plan=plan,
            words=plan_words(self.model, self.units, state, plan),
            inspect_after=len(plan) if plan.then == "measure" else None,
            value=self.value if state is None else float(self.values[state]),
            is_expected=state is None or state in self.expected,
            agreement=None if self.confidence is None else self.confidence.agreement.get(state),
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """The table as one mapping per row, with what it is in: periods, and the currency from here on."""
        for row in self.rows:
            found: dict[str, Any] = {
                "state": row.name,
                "plan": row.words,
                f"inspect_after_{_word(self.units.period)}s": row.inspect_after,
                "_".join(filter(None, (self.units.figure, _word(self.units.currency)))): self.units.shown(row.value),
                "expected": row.is_expected,
            }
            if row.agreement is not None:
                found["same_plan"] = row.agreement.same_plan
                found["earliest_inspection"] = row.agreement.earliest
                found["latest_inspection"] = row.agreement.latest
            yield found

    def to_frame(self) -> pd.DataFrame:
        """The schedule as a table, a row per state (needs the extra `data`); figures in the currency, costs above 0."""
        pandas = pandas_for("Advice.to_frame")
        frame: pd.DataFrame = pandas.DataFrame(list(self.records())).set_index("state")
        return frame

    def compare(self) -> pd.DataFrame:
        """The plan and the usual ways to inspect as a table (needs the extra `data`)."""
        pandas = pandas_for("Advice.compare")
        frame: pd.DataFrame = pandas.DataFrame([policy_record(self, one) for one in self.policies]).set_index("policy")
        return frame

    def lost(self, policy: ComparedPolicy) -> float:
        """How much less a policy is worth than the plan, which is never less than nothing: no policy shown is better."""
        lost = self.value - policy.value
        return 0.0 if is_rounding(lost, self.value) else lost

    def per_period(self, evaluation: Evaluation) -> float | None:
        """The constant sum per period that is worth the same as a schedule; None without discount, or where that ends."""
        discount = self.model.discount
        if discount == 1 or evaluation.average_return is None:
            return None
        return (1 - discount) * evaluation.discounted_return

    def __str__(self) -> str:
        from actmeasure.inspection.text import advice_text

        return advice_text(self)

    def __repr__(self) -> str:
        shown = self.units.money(self.value)
        return f"Advice({self.title}: {self.units.figure} {shown}, {len(self.schedule)} states planned, {self.seconds:.2g} s)"


def plan_words(model: Model, units: Units, state: int | None, plan: BlindPlan) -> str:
    """A plan in words, after seeing a state (None: the start); where the state is known afterwards, it is named."""
    words = plan.describe(model, units.period)
    if plan.then != "known":
        return words
    belief = Belief.start(model) if state is None else Belief.at(state)
    for action in plan.actions:
        belief = belief.predict(model, action)
    return words if belief.known is None else f"{words}: {model.state_name(belief.known)}"


def _word(text: str) -> str:
    return "_".join(text.lower().split())


# ----------------------------------------------------------------------------------------------------
# Advice as plain figures, for tables, JSON and pages; sums of money as they are shown: costs above 0.
# ----------------------------------------------------------------------------------------------------


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
        "notes": [one.record() for one in advice.notes],
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


def policy_record(advice: Advice, policy: ComparedPolicy) -> dict[str, Any]:
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
