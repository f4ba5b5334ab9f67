"""`Advice`, the result of `advise`, and its figures as plain data for tables, JSON and pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import import_extra
from actmeasure.evaluation import Evaluation
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import Units
from actmeasure.inspection.schedules import PricedSchedule, discounted_visits, is_rounding, own_price, plan_of
from actmeasure.inspection.text import advice_text, plan_words
from actmeasure.inspection.usual_policies import ComparedPolicy
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.frontier import Frontier
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.text import plain_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Advice",
    "Agreement",
    "Confidence",
    "StatePlan",
    "confidence_record",
    "plan_record",
    "policy_record",
    "price_record",
    "summary",
]

#: Largest number of expected states that are shown in the order of their numbers; more are sorted by visits.
MOST_IN_ORDER = 30
#: Quantiles of the middle 90 % of the models.
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True)
class Agreement:
    """Agreement of the resampled models with the plan after one state.

    Attributes
    ----------
    same_plan, same_action : float
        Fraction of the models whose best plan is the same, and whose best plan begins with the same action.
    earliest, latest : float
        Ends of the middle 90 % of their times until the next inspection, in periods; infinite without an inspection.
    """

    same_plan: float
    same_action: float
    earliest: float
    latest: float


@dataclass(frozen=True, eq=False)
class Confidence:
    """The plan evaluated in the resampled models.

    Attributes
    ----------
    agreement : dict from state to Agreement
        The key of a start that is not shown is None.
    values : float64 array, shape (n_models,)
        Discounted return of the plan in each model, exactly.
    best : float64 array, shape (n_models,)
        Discounted return of each model's best plan.
    asked : int
        Number of resampled models; fewer are solved if time is short.
    """

    agreement: dict[int | None, Agreement]
    values: FloatArray
    best: FloatArray
    asked: int

    @property
    def losses(self) -> FloatArray:
        """Loss of the plan against the best plan of each model, shape (n_models,)."""
        return np.maximum(self.best - self.values, 0.0)

    @property
    def value_range(self) -> tuple[float, float]:
        """Ends of the middle 90 % of the plan's discounted returns in the models."""
        low, high = np.quantile(self.values, [1 - HIGH, HIGH])
        return float(low), float(high)

    @property
    def high_loss(self) -> float:
        """The 95 % quantile of the losses."""
        return float(np.quantile(self.losses, HIGH))

    @property
    def same_schedule(self) -> float:
        """Mean over the plans of the fraction of models with the same plan."""
        return float(np.mean([one.same_plan for one in self.agreement.values()]))


@dataclass(frozen=True, eq=False)
class StatePlan:
    """The plan after seeing a state.

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
        Whether the state can be observed when the schedule is followed.
    agreement : Agreement or None
        Agreement of models fitted to resampled records.
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
    """An inspection plan with its costs, other policies, other prices of an inspection, and its uncertainty.

    Attributes
    ----------
    model : Model
    units : Units
        Currency and period, and whether figures are shown as costs. The attributes here are returns: costs are negative.
    schedule : Schedule
        A plan for every expected state and, if there was time, for all others.
    expected : frozenset of int
        The states that can be observed when the schedule is followed.
    evaluation : Evaluation
        Exact evaluation of the plan from the start.
    values : float64 array, shape (S,)
        Discounted return from each state once it is known; minus infinity where there is no plan.
    upper : float
        Upper bound on the value of all schedules: the certificate.
    policies : tuple of ComparedPolicy
        The plan first, then the usual policies, each the best of its kind.
    frontier : Frontier or None
        Lower and upper bounds on the optimum at every price of an inspection.
    prices : tuple of PricedSchedule
        The best schedule of every range of prices.
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
        """The largest possible difference between the optimum and the plan."""
        return self.upper - self.value

    @property
    def price(self) -> float:
        """Price of an inspection; 1 if the model has a table of costs, which a price multiplies."""
        return own_price(self.model)

    @property
    def has_one_price(self) -> bool:
        """Whether an inspection costs the same in all states and with all actions."""
        return isinstance(self.model.measuring_cost, float)

    def price_text(self, price: float) -> str:
        """Return a price of an inspection in words; it multiplies the costs if the model has a table of them."""
        return self.units.amount(price) if self.has_one_price else f"{plain_number(price)} times the present costs"

    @cached_property
    def rows(self) -> list[StatePlan]:
        """The plans: of a start that is not shown, then of the states that are expected, then of the others.

        If many states are expected, those with the most visits come first.
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
        plan = plan_of(self.schedule, state)
        assert plan is not None  # `rows` has the start only if there is a plan for it
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
        """Yield the rows of the table of plans as mappings; keys contain the units."""
        for row in self.rows:
            record: dict[str, Any] = {
                "state": row.name,
                "plan": row.words,
                f"inspect_after_{_word(self.units.period)}s": row.inspect_after,
                "_".join(filter(None, (self.units.figure, _word(self.units.currency)))): self.units.shown(row.value),
                "expected": row.is_expected,
            }
            if row.agreement is not None:
                record["same_plan"] = row.agreement.same_plan
                record["earliest_inspection"] = row.agreement.earliest
                record["latest_inspection"] = row.agreement.latest
            yield record

    def to_frame(self) -> pd.DataFrame:
        """Return the schedule as a table with a row per state (needs the extra `data`); costs are positive."""
        pandas = import_extra("pandas", "Advice.to_frame", "data")
        frame: pd.DataFrame = pandas.DataFrame(list(self.records())).set_index("state")
        return frame

    def compare(self) -> pd.DataFrame:
        """Return the plan and the usual policies as a table (needs the extra `data`)."""
        pandas = import_extra("pandas", "Advice.compare", "data")
        frame: pd.DataFrame = pandas.DataFrame([policy_record(self, one) for one in self.policies]).set_index("policy")
        return frame

    def lost(self, policy: ComparedPolicy) -> float:
        """Return how much less a policy is worth than the plan; not negative, as the plan is the best of all."""
        lost = self.value - policy.value
        return 0.0 if is_rounding(lost, self.value) else lost

    def per_period(self, evaluation: Evaluation) -> float | None:
        """Return the constant sum per period with the same discounted value; None without discount, or for finite episodes."""
        discount = self.model.discount
        if discount == 1 or evaluation.average_return is None:
            return None
        return (1 - discount) * evaluation.discounted_return

    def __str__(self) -> str:
        return advice_text(self)

    def __repr__(self) -> str:
        shown = self.units.money(self.value)
        return f"Advice({self.title}: {self.units.figure} {shown}, {len(self.schedule)} states planned, {self.seconds:.2g} s)"


def _word(text: str) -> str:
    """Return a text as part of a key: in lower case, with underscores."""
    return "_".join(text.lower().split())


def summary(advice: Advice) -> dict[str, Any]:
    """Return all of the advice as plain data for JSON; costs are positive, missing values None, numbers may be infinite."""
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
    """Return value and inspections of a schedule: in all, discounted per period, and in the long run."""
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
    """Return a value as it is shown, or None."""
    return None if value is None else units.shown(value)


def plan_record(advice: Advice, row: StatePlan) -> dict[str, Any]:
    """Return the plan after seeing a state as plain data."""
    model = advice.model
    record: dict[str, Any] = {
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
        record["same_plan"] = row.agreement.same_plan
        record["same_action"] = row.agreement.same_action
        record["inspect_after_90_percent"] = [row.agreement.earliest, row.agreement.latest]
    return record


def policy_record(advice: Advice, policy: ComparedPolicy) -> dict[str, Any]:
    """Return a policy, its value and its loss against the plan as plain data."""
    return {
        "policy": policy.name,
        "key": policy.key,
        "rule": policy.rule,
        **_figures(advice, policy.evaluation),
        "lost_discounted": advice.lost(policy),
        "note": "" if policy.note is None else str(policy.note),
        "note_code": None if policy.note is None else policy.note.code,
    }


def price_record(advice: Advice, one: PricedSchedule) -> dict[str, Any]:
    """Return a schedule and the range of prices in which it is the best as plain data."""
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
    """Return the comparison with the resampled models as plain data."""
    losses = sure.losses
    return {
        "models": len(losses),
        "models_asked_for": sure.asked,
        "same_plan_on_average": sure.same_schedule,
        f"{units.figure}_in_the_models_90_percent": sorted(map(units.shown, sure.value_range)),
        "lost_if_the_model_is_wrong": {
            "mean": float(losses.mean()),
            "95_percent_below": sure.high_loss,
            "largest": float(losses.max()),
        },
    }
