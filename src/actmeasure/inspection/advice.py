"""`Advice`, the result of `advise`, and its figures as plain data for tables, JSON and pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import import_extra
from actmeasure.evaluation import Evaluation
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import Economics, Units
from actmeasure.inspection.plan_figures import Figures, HistoryPeriod, PlanStep
from actmeasure.inspection.plan_text import graph_advice_text, step_words
from actmeasure.inspection.problem import Problem
from actmeasure.inspection.schedules import PricedSchedule, discounted_visits, is_rounding, own_price, plan_of
from actmeasure.inspection.text import advice_text, plan_words
from actmeasure.inspection.usual_policies import ComparedPolicy
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.frontier import Frontier
from actmeasure.policy_graph import PolicyGraph
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.statistics import quantile_interval
from actmeasure.text import plain_number

if TYPE_CHECKING:
    import pandas as pd

    from actmeasure.inspection.fit_result import Fit

__all__ = [
    "Advice",
    "Agreement",
    "Confidence",
    "FailureLimit",
    "MethodWorth",
    "StatePlan",
    "confidence_record",
    "plan_record",
    "policy_record",
    "price_record",
    "summary",
]

#: Largest number of expected states that are shown in the order of their numbers; more are sorted by visits.
MOST_IN_ORDER = 30
#: Largest number of states whose transition matrices are part of the data.
MOST_STATES = 100
#: Codes of diagnostics that speak against using a plan.
UNUSABLE = frozenset(
    (
        "model-does-not-fit",
        "estimation-not-converged",
        "several-chains",
        "failed-units-left",
        "failure-price-missing",
        "plan-far-from-bound",
    )
)
#: Codes of the diagnostics that follow "model-does-not-fit".
HOW_IT_MISFITS = frozenset(
    ("misfit-gap", "misfit-history", "misfit-age", "difference-gap", "difference-history", "difference-age")
)
#: Codes of diagnostics that are read first: those, and what else limits what the plan means.
FIRST = UNUSABLE | HOW_IT_MISFITS | {
    "failure-without-running-cost", "noticed-state-in-plan", "flat-directions", "gaps-with-common-factor", "errors-confounded",
    "intensity-at-limit", "assumption", "assumed-transitions", "fit-not-tested", "fit-not-decided", "plan-never-acts",
    "limit-in-weighted-mean-only",
}  # fmt: skip
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
        Discounted return of each model's best plan; NaN where a policy graph was evaluated only, for lack of time.
    asked : int
        Number of resampled models; fewer are solved if time is short.
    failures : float64 array, shape (n_models,)
        Failures per period of a plan that is a policy graph, in each model; empty otherwise.
    """

    agreement: dict[int | None, Agreement]
    values: FloatArray
    best: FloatArray
    asked: int
    failures: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def losses(self) -> FloatArray:
        """Loss of the plan against the best plan of each model that was solved, shape (n_solved,)."""
        losses: FloatArray = np.maximum(self.best - self.values, 0.0)[~np.isnan(self.best)]
        return losses

    @property
    def value_range(self) -> tuple[float, float]:
        """Ends of the middle 90 % of the plan's discounted returns in the models."""
        low, high = quantile_interval(self.values, HIGH - LOW)
        return float(low), float(high)

    @property
    def high_loss(self) -> float:
        """The 95 % quantile of the losses."""
        return float(quantile_interval(self.losses, HIGH - LOW)[1]) if len(self.losses) else math.nan

    @property
    def same_schedule(self) -> float:
        """Mean over the plans of the fraction of models with the same plan."""
        return float(np.mean([one.same_plan for one in self.agreement.values()])) if self.agreement else math.nan


@dataclass(frozen=True)
class MethodWorth:
    """The value of an inspection method.

    Attributes
    ----------
    name : str
    price : float
    break_even : (float, float) or None
        Up to the first price it is certified to pay; from the second on it pays next to nothing. None if there was no time.
    qualities : tuple of (float, float, float)
        A factor on the probability of detection, and bounds on the price that an instrument with it may have. Empty without time.
    now : (float, float) or None
        Bounds on the gain of this inspection at the end of the first period over none, its price subtracted; negative for a loss.
    """

    name: str
    price: float
    break_even: tuple[float, float] | None = None
    qualities: tuple[tuple[float, float, float], ...] = ()
    now: tuple[float, float] | None = None


@dataclass(frozen=True)
class FailureLimit:
    """A limit on the failures per year, and what it costs.

    Attributes
    ----------
    limit : float
        Largest expected number of failures per period.
    least : float
        No policy has fewer failures per period, weighted as money.
    price : float
        Price of a failure above its own at which the plan was found.
    upper : float
        No plan that keeps the limit is worth more: the Lagrangian bound.
    without : float
        Value of the best plan found without the limit.
    """

    limit: float
    least: float
    price: float
    upper: float
    without: float


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
        A plan for every expected state and, if there was time, for all others. None where the plan is a policy graph.
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
    problem : Problem or None
        What states and costs stand for.
    figures : Figures or None
        Costs by cause, failures and inspections of the plan; None where they are not known.
    economics : Economics or None
    fit : Fit or None
    graph : PolicyGraph or None
        The plan where inspections are imperfect, or there are several, a life, a limit or components; every node belongs to one
        of `steps`. The attributes below are for such plans.
    steps : tuple of PlanStep
    history : tuple of HistoryPeriod
        The course of things in which every inspection reports what is likeliest.
    n_nodes : int
        Number of nodes of the plan, before each step got its own.
    best_found : float
        Discounted return of the best policy found, which may need more nodes.
    worth : tuple of MethodWorth
    limit : FailureLimit or None
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
    problem: Problem | None = None
    figures: Figures | None = None
    economics: Economics | None = None
    fit: Fit | None = None
    graph: PolicyGraph | None = None
    steps: tuple[PlanStep, ...] = ()
    history: tuple[HistoryPeriod, ...] = ()
    n_nodes: int = 0
    best_found: float = math.nan
    worth: tuple[MethodWorth, ...] = ()
    limit: FailureLimit | None = None

    @property
    def first_notes(self) -> tuple[Diagnostic, ...]:
        """The notes to read before anything else: what forbids to use the plan, then what else limits what it means."""
        first = [note for note in self.notes if note.code in FIRST]
        return tuple(sorted(first, key=lambda note: note.code not in UNUSABLE | HOW_IT_MISFITS))

    @property
    def other_notes(self) -> tuple[Diagnostic, ...]:
        """The notes that do not have to be read first."""
        return tuple(note for note in self.notes if note.code not in FIRST)

    @property
    def is_usable(self) -> bool:
        """Whether nothing speaks against using the plan: the model fits, estimates are settled, no price seems to be missing."""
        return not any(note.code in UNUSABLE for note in self.notes)

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

        None where the plan is a policy graph, which has `steps`. If many states are expected, the most visited ones come first.
        """
        if self.graph is not None:
            return []
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
        """Yield the rows of the table of plans, or of the steps of a policy graph, as mappings; keys contain the units."""
        yield from step_records(self)
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
        """Return the schedule or the steps of the plan as a table (needs the extra `data`); costs are positive."""
        pandas = import_extra("pandas", "Advice.to_frame", "data")
        index = "state" if self.graph is None else "step"
        frame: pd.DataFrame = pandas.DataFrame(list(self.records())).set_index(index)
        return frame

    def compare(self) -> pd.DataFrame:
        """Return the plan and the usual policies as a table (needs the extra `data`)."""
        pandas = import_extra("pandas", "Advice.compare", "data")
        frame: pd.DataFrame = pandas.DataFrame([policy_record(self, one) for one in self.policies]).set_index("policy")
        return frame

    def lost(self, policy: ComparedPolicy) -> float:
        """Return how much less a policy is worth than the plan; not negative, unless the plan is restricted to few nodes."""
        lost = self.value - policy.value
        return 0.0 if is_rounding(lost, self.value) else lost

    def per_period(self, evaluation: Evaluation) -> float | None:
        """Return the constant sum per period with the same discounted value; None without discount, or for finite episodes."""
        discount = self.model.discount
        if discount == 1 or evaluation.average_return is None:
            return None
        return (1 - discount) * evaluation.discounted_return

    def __str__(self) -> str:
        return advice_text(self) if self.graph is None else graph_advice_text(self)

    def __repr__(self) -> str:
        size = f"{len(self.schedule)} states planned" if self.graph is None else f"{len(self.steps)} steps"
        return f"Advice({self.title}: {self.units.figure} {self.units.money(self.value)}, {size}, {self.seconds:.2g} s)"


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
        "price_of_an_inspection": advice.price if advice.graph is None and advice.has_one_price else None,
        "discount": advice.model.discount,
        **_figures(advice, advice.evaluation),
        "best_possible": units.shown(advice.upper),
        "gap": advice.gap,
        "usable": advice.is_usable,
        "read_first": [str(note) for note in advice.first_notes],
        **({} if advice.figures is None else figures_record(advice.figures, advice)),
        **({} if advice.graph is None else graph_record(advice)),
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
        "allowed": policy.is_allowed,
        **({} if policy.figures is None else figures_record(policy.figures, advice)),
    }


def figures_record(found: Figures, advice: Advice) -> dict[str, Any]:
    """Return failures, costs by cause and inspections of each kind as plain data."""
    result = found.evaluation
    assert advice.problem is not None
    unknown = np.full(len(advice.model.measurements), np.nan)
    in_all = result.looks if np.isfinite(result.steps) else unknown
    per_period = unknown if result.average_looks is None else result.average_looks
    methods = advice.problem.methods()
    occasions = {}
    if advice.problem.components > 1:  # each component that is inspected counts, as in everything else that is said
        made = sum(methods.values())
        occasions = {
            "inspections_in_all": float(made @ in_all),
            "inspections_per_period": float(made @ per_period),
            "inspections_discounted": float(made @ result.discounted_looks),
            "periods_with_an_inspection": {
                "in_all": float(in_all.sum()),
                "per_period": float(per_period.sum()),
                "discounted": result.discounted_measurements,
            },
        }
    return {
        **occasions,
        "failures": found.failures,
        "failures_per_period": found.failures_per_period,
        "failures_per_period_weighted_as_money": found.weighted_failures_per_period,
        "failures_in_each_period": found.risk.tolist(),
        "cost_by_cause_discounted": found.costs,
        "inspections_of_each_kind": {
            name: {
                "in_all": float(of_each @ in_all),
                "per_period": float(of_each @ per_period),
                "discounted": float(of_each @ result.discounted_looks),
            }
            for name, of_each in methods.items()
        },
    }


def graph_record(advice: Advice) -> dict[str, Any]:
    """Return the steps of a plan that is a policy graph, and what belongs to them, as plain data."""
    units, problem = advice.units, advice.problem
    assert problem is not None
    base = problem.base
    limit = advice.limit
    return {
        "life": problem.periods,
        "longest_interval": None if problem.limited is None else problem.limited.longest,
        "nodes": advice.n_nodes,
        "best_found": units.shown(advice.best_found),
        "steps": [step_record(advice, step) for step in advice.steps],
        "likeliest_course": [
            {
                "period": period, "step": one.step + 1, "action": base.action_name(one.action),
                "inspection": None if not one.measurement else base.measurements[one.measurement - 1].name,
                "outcome": None if one.outcome is None else base.outcome_name(one.measurement, one.outcome),
                "chance": one.chance, "belief": dict(zip(_names(base), one.belief.tolist(), strict=True)),
            }
            for period, one in enumerate(advice.history, start=1)
        ],
        "inspections_worth": [
            {"inspection": one.name, "price": one.price, "break_even": one.break_even, "gain_now": one.now,
             "may_cost_at_other_probabilities_of_detection": [list(point) for point in one.qualities]}
            for one in advice.worth
        ],
        "failure_limit": None if limit is None else {
            "failures_per_period": limit.limit, "least_possible": limit.least, "added_price_of_a_failure": limit.price,
            "no_plan_below": units.shown(limit.upper), "without_the_limit": units.shown(limit.without),
        },
        "transitions": {
            base.action_name(action): base.transitions.matrix(action).toarray().tolist() for action in range(base.n_actions)
        } if base.n_states <= MOST_STATES else None,
        "states": _names(base),
        "inspections": [_measurement_record(base, number) for number in range(1, len(base.measurements) + 1)]
        if base.n_states <= MOST_STATES else None,
        "records": None if advice.fit is None else {
            "units": advice.fit.n_units, "records": advice.fit.n_records, "inspections": advice.fit.n_inspections
        },
        "put_in": None if advice.economics is None else _put_in(advice.economics),
    }  # fmt: skip


def _measurement_record(base: Model, number: int) -> dict[str, Any]:
    """Return a measurement as plain data: price, actions, and the probability of each outcome in each state; None if exact."""
    one = base.measurements[number - 1]
    cost = np.asarray(one.cost)
    actions = [base.action_name(action) for action in np.flatnonzero(base.allowed_decisions[:, number]).tolist()]
    law = None if one.law is None or one.law.by_action else one.law.of_action(0, base.n_states).toarray().tolist()
    return {
        "name": one.name,
        "price": cost.tolist(),
        "with": actions,
        "outcomes": [base.outcome_name(number, outcome) for outcome in range(base.n_outcomes(number))],
        "probabilities": law,
    }


def _put_in(prices: Economics) -> dict[str, Any]:
    """Return the prices and limits that were given as plain data, without those that were not."""
    kept = {
        one.name: getattr(prices, one.name)
        for one in fields(prices)
        if one.name not in ("source", "inspections", "rule")
    }
    given = {name: value for name, value in kept.items() if value is not None and value not in ((), {})}
    if prices.components is not None:
        given["components"] = asdict(prices.components)
    if prices.rule:
        given["rule"] = [asdict(step) for step in prices.rule]
    return given


def _names(model: Model) -> list[str]:
    return [model.state_name(state) for state in range(model.n_states)]


def step_record(advice: Advice, step: PlanStep) -> dict[str, Any]:
    """Return a step of a policy graph as plain data; steps are numbered from 1."""
    assert advice.problem is not None
    base = advice.problem.base
    return {
        "step": step.number + 1,
        "do": step_words(advice, step),
        "actions": [base.action_name(action) for action in step.plan.actions],
        "then": step.plan.then,
        "inspection": None if not step.measurement else base.measurements[step.measurement - 1].name,
        "outcomes": [
            {
                "reported": [base.outcome_name(step.measurement, outcome) for outcome in branch.outcomes],
                "chance": branch.chance,
                "go_to": branch.target + 1,
            }
            for branch in step.branches
        ],
        "times_discounted": step.times,
        "failed_at_the_end": step.failed,
        "life_may_end_before_the_inspection": step.may_be_cut,
    }


def step_records(advice: Advice) -> Iterator[dict[str, Any]]:
    """Yield a row for every step and outcome of a policy graph."""
    for step in advice.steps:
        record = step_record(advice, step)
        outcomes = record.pop("outcomes") or [{"reported": [], "chance": None, "go_to": None}]
        kept = {key: record[key] for key in ("step", "do", "inspection")}
        for one in outcomes:
            yield kept | {"reported": " or ".join(one["reported"]), "chance": one["chance"], "go_to": one["go_to"]}


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
    if not len(losses):
        losses = np.array([math.nan])
    return {
        "models": len(sure.values),
        "models_asked_for": sure.asked,
        "same_plan_on_average": sure.same_schedule,
        f"{units.figure}_in_the_models_90_percent": sorted(map(units.shown, sure.value_range)),
        "lost_if_the_model_is_wrong": {
            "mean": float(losses.mean()),
            "95_percent_below": sure.high_loss,
            "largest": float(losses.max()),
        },
        "failures_per_period_in_the_models": sure.failures.tolist(),
    }
