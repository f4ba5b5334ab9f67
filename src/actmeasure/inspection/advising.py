"""`advise`: an inspection plan for a model or a fit, with its comparison, other prices and uncertainty."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from actmeasure.errors import PlanError, quoted, shown
from actmeasure.evaluation import evaluate
from actmeasure.inspection.advice import HIGH, LOW, Advice, Agreement, Confidence
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import Economics, Units
from actmeasure.inspection.fitting import Fit
from actmeasure.inspection.schedules import (
    PricedSchedule,
    at_price,
    best_of,
    completed,
    own_price,
    plan_of,
    priced_schedules,
    valid_on_other_models,
    with_schedules,
)
from actmeasure.inspection.usual_policies import ComparedPolicy, usual_policies
from actmeasure.model import Model
from actmeasure.planning.baselines import Control, values_of
from actmeasure.planning.budget import Budget, why_open
from actmeasure.planning.frontier import Frontier
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.planning.tradeoff import tradeoff
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import amount

__all__ = ["advise"]

#: Time limit, unless another one or a budget is given.
DEFAULT_SECONDS = 60.0
#: Tolerance of the plan, relative to the largest reward.
PLAN_TOLERANCE = 1e-7
#: Tolerance of the frontier, relative to the difference between free inspections and none.
FRONTIER_TOLERANCE = 1e-3
#: Fractions of the remaining time for the plan, the comparison with other policies and, for a fit, the frontier.
PLAN_SHARE, POLICY_SHARE, FRONTIER_SHARE = 0.4, 0.35, 0.4
#: The same for the frontier of a model, which has no resampled models to solve afterwards.
LAST_SHARE = 0.9
#: Seconds for a part of the advice, even where less time remains.
LEAST_PART_SECONDS = 0.2


def advise(
    problem: Model | Fit,
    economics: Economics | str | os.PathLike[str] | None = None,
    *,
    price: float | None = None,
    currency: str = "",
    period: str = "period",
    title: str = "Inspection plan",
    time_limit: float | None = DEFAULT_SECONDS,
    progress: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> Advice:
    """Plan when to inspect and what to do, with exact costs, a comparison with usual policies and the uncertainty of the plan.

    Parameters
    ----------
    problem : Model or Fit
    economics : Economics or path, optional
        Prices and units of a fit; a fit needs them, and a model, which has its rewards, does not take them.
    price : float, optional
        Price of an inspection in place of the model's own; a table of costs is multiplied by it.
    currency, period : str
        For a model: the units of its rewards and steps.
    title : str
    time_limit : float, optional
        Seconds for everything; `Advice.notes` names the parts for which there was no time. There is always a plan.
    progress : function, optional
        Called with the name of each step.
    budget : Budget, optional
        Instead of `time_limit`; a limit on work holds for each search. Its clock starts anew.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import actmeasure as am
    >>> advice = am.inspection.advise(am.problems.maintenance(), period="week")
    >>> advice.rows[2].words
    'work for 7 weeks, then inspect'
    >>> advice.policies[0].value >= max(policy.value for policy in advice.policies)
    True
    """
    prices = Economics.load(economics) if isinstance(economics, (str, os.PathLike)) else economics
    model, units = _model_and_units(problem, prices, price, currency, period)
    budget = Budget.of(None if budget is not None and time_limit == DEFAULT_SECONDS else time_limit, budget=budget)
    fit = problem if isinstance(problem, Fit) else None
    with budget.deferred_interrupts():
        return _AdviceRun(model, units, budget, progress or (lambda _: None)).advice(title, fit, prices)


def _model_and_units(
    problem: Model | Fit, economics: Economics | None, price: float | None, currency: str, period: str
) -> tuple[Model, Units]:
    """Return the model to plan for and its units; raise a `PlanError` if the arguments of `advise` do not go together."""
    if isinstance(problem, Fit):
        if economics is None:
            raise PlanError("a fit has no prices; give them too, economics=Economics.load('prices.toml')")
        model = problem.model(economics)
        currency, period = economics.currency, economics.period
    elif isinstance(problem, Model):
        if economics is not None:
            raise PlanError(
                "prices go with a fit, but this is a model, which has its rewards already; leave them out, and name its "
                "units with currency and period"
            )
        model = problem
        if not isinstance(period, str) or not period.strip():
            raise PlanError(f"the period is {quoted(period)}, expected the name of a step, such as 'year'")
    else:
        raise PlanError(f"the problem is {quoted(problem)}, expected a Model or a Fit")
    return _at(model, price), Units.of(model, currency, period)


def _at(model: Model, price: float | None) -> Model:
    """Return the model with a price of an inspection, or with its own if that is None."""
    return model if price is None else at_price(model, amount(price, "the price of an inspection", error=PlanError))


class _AdviceRun:
    """The parts of the advice in order, each with its fraction of the remaining time."""

    def __init__(self, model: Model, units: Units, budget: Budget, tell: Callable[[str], None]) -> None:
        self.model, self.units, self.budget, self.tell = model, units, budget, tell
        self.notes: list[Diagnostic] = []
        self.tolerance = PLAN_TOLERANCE * (float(np.abs(model.rewards).max()) or 1.0)

    def advice(self, title: str, fit: Fit | None, economics: Economics | None) -> Advice:
        """Compute all parts; those for which there is no time are left out, with a diagnostic."""
        self.tell("planning")
        solved = self._plan()
        if why_open(solved.stopped, self.model.discount):
            self.notes.append(diagnostic("plan-not-closed", stopped=solved.stopped, discount=self.model.discount))
        anywhere = completed(self.model, solved.schedule, self.tolerance, self._share(PLAN_SHARE))
        others = self._policies(solved)
        frontier = self._frontier(solved, others, FRONTIER_SHARE if fit else LAST_SHARE)
        others = [self._as_on_frontier(policy, frontier) for policy in others]
        own = self._best(solved, others, frontier)
        schedule = Schedule(dict(anywhere) | dict(own.schedule), anywhere.n_states, own.schedule.start)
        policies = [ComparedPolicy("plan", schedule, own.evaluation, self.units.period), *others]
        prices = self._prices(own, frontier)
        sure = self._confidence(schedule, fit, economics)
        if fit is not None and economics is not None:
            self.notes += fit_diagnostics(fit, economics)
        if len(schedule) < np.count_nonzero(~self.model.terminal):
            self.notes.append(diagnostic("states-without-plan"))
        return Advice(
            model=self.model,
            units=self.units,
            schedule=schedule,
            expected=frozenset(own.schedule),
            evaluation=own.evaluation,
            values=values_of(self.model, schedule),
            upper=own.upper,
            policies=tuple(policies),
            frontier=frontier,
            prices=prices,
            confidence=sure,
            notes=tuple(dict.fromkeys(self.notes)),
            title=shown(title),
            seconds=self.budget.elapsed,
        )

    def _plan(self) -> Solution:
        """Solve the model in a fraction of the time or, if that is too short for any bound, in all of it."""
        try:
            return solve(self.model, "optimal", self.tolerance, budget=self._share(PLAN_SHARE))
        except PlanError:
            if self.budget.seconds is None or self.budget.is_over:
                raise
            return solve(self.model, "optimal", self.tolerance, budget=self._share(1.0))

    def _share(self, share: float) -> Budget:
        """Return a budget for one part of the advice, with a fraction of the remaining time."""
        return self.budget.separate(share, at_least=LEAST_PART_SECONDS)

    def _has_time(self, part: str) -> bool:
        """Return whether there is time for a part of the advice; if not, note a diagnostic."""
        if not self.budget.is_over:
            return True
        code = "part-interrupted" if self.budget.is_interrupted else "part-out-of-time"
        self.notes.append(diagnostic(code, part=part))
        return False

    def _policies(self, own: Solution) -> list[ComparedPolicy]:
        """Return the policies that the plan is compared with, those for which there was time."""
        if not self._has_time("policies"):
            return []
        part = self.budget.part(POLICY_SHARE)
        policies, notes = usual_policies(self.model, own.schedule, self.units.period, part, self.tell)
        self.notes += notes
        return policies

    def _best(self, solved: Solution, others: list[ComparedPolicy], frontier: Frontier | None) -> Solution:
        """Return the best schedule at the model's price that any part found: the solved one, unless its time was too short."""
        at, upper = own_price(self.model), math.inf
        schedules = [(policy.key, policy.schedule) for policy in others]
        if frontier is not None:
            upper = frontier.value(at)[1]
            schedules.append(("frontier", frontier.schedule(at)))
        best, source = best_of(solved, schedules, upper)
        if source:
            self.notes.append(diagnostic("plan-from-other-search", source=source))
        return best

    def _as_on_frontier(self, policy: ComparedPolicy, frontier: Frontier | None) -> ComparedPolicy:
        """Return "never" with the frontier's schedule without inspections if that is better, so that both agree."""
        if policy.key != "never" or frontier is None or frontier.pieces[-1].evaluation.discounted_measurements > 0:
            return policy
        evaluation = evaluate(self.model, frontier.pieces[-1].schedule)
        if not evaluation.discounted_return > policy.value:
            return policy
        return replace(policy, schedule=frontier.pieces[-1].schedule, evaluation=evaluation)

    def _frontier(self, solved: Solution, others: list[ComparedPolicy], share: float) -> Frontier | None:
        """Return the frontier over prices of an inspection, with the schedules found so far; None without time or if it fails."""
        if not self._has_time("prices"):
            return None
        self.tell("other prices of an inspection")
        try:
            frontier = tradeoff(
                self.model,
                self._frontier_tolerance(others),
                progress=lambda now: self.tell(f"other prices of an inspection: {now.solved} solved"),
                budget=self._share(share),
            )
        except PlanError:
            self.notes.append(diagnostic("frontier-failed", discount=self.model.discount))
            return None
        frontier = with_schedules(frontier, [solved.schedule, *(policy.schedule for policy in others)])
        if not frontier.closed:
            details = {"stopped": frontier.stopped, "discount": self.model.discount, "currency": self.units.currency}
            gap = {"gap": frontier.gap} if math.isfinite(frontier.gap) else {}
            self.notes.append(diagnostic("frontier-not-closed", **details, **gap))
        return frontier

    def _prices(self, own: Solution, frontier: Frontier | None) -> tuple[PricedSchedule, ...]:
        """Return the best schedule of every range of prices; none without a frontier."""
        if frontier is None:
            return ()
        tolerance = max(self.tolerance, 0.1 * frontier.tolerance)
        prices, in_time = priced_schedules(frontier, own, tolerance, self.budget.part(LAST_SHARE))
        if not in_time:
            self.notes.append(diagnostic("plans-at-prices-incomplete"))
        return prices

    def _frontier_tolerance(self, policies: list[ComparedPolicy]) -> float:
        """Return the tolerance of the frontier, relative to the difference in value between free inspections and none."""
        free = [policy.evaluation.discounted_reward for policy in policies if policy.key == "always"]
        never = [policy.value for policy in policies if policy.key == "never"]
        worth = free[0] - never[0] if free and never else math.inf
        if not math.isfinite(worth):
            worth = max((abs(policy.value) for policy in policies if math.isfinite(policy.value)), default=0.0)
        return max(FRONTIER_TOLERANCE * worth, self.tolerance)

    def _confidence(self, schedule: Schedule, fit: Fit | None, economics: Economics | None) -> Confidence | None:
        """Return the comparison with the resampled models of a fit; None without them or without time."""
        if fit is None or economics is None:
            return None
        if fit.bootstrap is None:
            self.notes.append(diagnostic("no-resampled-models"))
            return None
        if not self._has_time("resampled"):
            return None
        cost = self.model.measuring_cost
        others = (other.replace(measuring_cost=cost) for other in fit.models(economics))
        comparison = confidence(
            self.model, schedule, others, len(fit.bootstrap), self.tolerance, self.budget, self.tell
        )
        if comparison is not None and len(comparison.values) < comparison.asked:
            self.notes.append(
                diagnostic("resampled-models-incomplete", done=len(comparison.values), requested=comparison.asked)
            )
        return comparison


def fit_diagnostics(fit: Fit, economics: Economics) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a fit that concern a plan, and what the plan assumes about failed and noticed states."""
    if fit.goodness is not None and fit.goodness.findings:
        yield diagnostic("model-does-not-fit")
        yield from fit.goodness.findings
    yield from (*fit.warnings, *fit.identifiability, *fit.notes)
    for state in economics.failure_states:
        if state not in economics.terminal and not economics.running.get(state):
            yield diagnostic("failure-without-running-cost", state=state)
    for state in fit.noticed:
        if state not in economics.terminal:
            yield diagnostic("noticed-state-in-plan", state=state)


def confidence(
    model: Model,
    schedule: Schedule,
    others: Iterable[Model],
    asked: int,
    tolerance: float,
    budget: Budget,
    tell: Callable[[str], None],
) -> Confidence | None:
    """Solve each resampled model of `others` and compare with the schedule; None if there was no time for any."""
    # The same behaviour can be written as several plans; without claims on known states there is only one.
    plans = valid_on_other_models(model, schedule)
    followed = _for_all_states(model, plans)
    schedules: list[Schedule] = []
    values, best = [], []
    for number, other in enumerate(others, start=1):
        if budget.is_over:
            break
        tell(f"resampled model {number} of {asked}{_time_left(budget, number - 1, asked)}")
        try:
            solution = solve(other, "optimal", tolerance, budget=budget.separate())
        except PlanError:  # no time for a bound on it
            break
        schedules.append(
            valid_on_other_models(other, completed(other, solution.schedule, tolerance, budget.separate()))
        )
        values.append(evaluate(other, followed).discounted_return)
        best.append(max(solution.value, values[-1]))
    if not schedules:
        return None
    states: list[int | None] = [*schedule, *([None] if schedule.start is not None else [])]
    agreement = {
        state: _agreement(plan_of(plans, state), [plan_of(one, state) for one in schedules]) for state in states
    }
    return Confidence(agreement, np.array(values), np.array(best), asked)


def _time_left(budget: Budget, done: int, asked: int) -> str:
    """Return the estimated remaining time for a progress message; empty before the first model is done."""
    return f", about {budget.elapsed / done * (asked - done):.0f} s left" if done else ""


def _for_all_states(model: Model, schedule: Schedule) -> Schedule:
    """Return the schedule with, for states without a plan, the best action under full observability, then a measurement."""
    actions = Control(model).actions
    missing = {
        int(state): BlindPlan((int(actions[state]),), then="measure")
        for state in np.flatnonzero(~model.terminal)
        if int(state) not in schedule
    }
    return Schedule(missing | dict(schedule), model.n_states, schedule.start)


def _agreement(plan: BlindPlan | None, others: list[BlindPlan | None]) -> Agreement:
    assert plan is not None  # the schedule has a plan for each of its states
    known = [other for other in others if other is not None]
    waits = [len(other) if other.then == "measure" else math.inf for other in known]
    return Agreement(
        same_plan=sum(other == plan for other in known) / len(others),
        same_action=sum(other.actions[0] == plan.actions[0] for other in known) / len(others),
        earliest=_quantile(waits, LOW),
        latest=_quantile(waits, HIGH),
    )


def _quantile(values: list[float], share: float) -> float:
    """Return a quantile without interpolation, which would give a time of no plan, or infinity minus infinity."""
    if not values:
        return math.nan
    return sorted(values)[min(len(values) - 1, math.floor(share * len(values)))]
