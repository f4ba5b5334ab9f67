"""`advise`: an inspection plan for a model or a fit, with its comparison, other prices and uncertainty."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from actmeasure.errors import PlanError, quoted, shown
from actmeasure.evaluation import evaluate, values_of
from actmeasure.inspection.advice import HIGH, LOW, Advice, Agreement, Confidence
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import Economics, Units
from actmeasure.inspection.fitting import Fit
from actmeasure.inspection.graph_advising import GraphAdviceRun, compared_graph, fit_diagnostics, has_time, present_rule
from actmeasure.inspection.plan_figures import Figures, figures
from actmeasure.inspection.problem import Problem, problem_of_model
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
from actmeasure.planning.bounds import Control
from actmeasure.planning.budget import Budget, why_open
from actmeasure.planning.frontier import Frontier
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.planning.tradeoff import tradeoff
from actmeasure.policy_graph import PolicyGraph
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import amount, whole

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
#: What a price that is given to `advise` is called in messages.
PRICE = "the price of an inspection"
#: Largest number of states for which failures of schedules are computed, on the policy graph of each.
MOST_STATES_OF_FIGURES = 200


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
    nodes: int | None = None,
    rule: PolicyGraph | None = None,
    failures: Sequence[str | int] = (),
    assumptions: Sequence[str] = (),
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
    nodes : int, optional
        Most nodes of a plan that is a policy graph; by default as many as are needed to lose at most 1 %.
    rule : PolicyGraph, optional
        Your present rule, which the plan is compared with, in place of the one in the prices. Its actions and measurements are
        those of the model of one period.
    failures : sequence of states, by name or number
        For a model: the states that are failures, which are then counted.
    assumptions : sequence of str
        What was assumed, such as prices that are not known; the advice and its page begin with it.

    Returns
    -------
    Advice
        With a `schedule` where inspections are exact and there is no end; otherwise with `graph` and `steps`.

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
    if isinstance(problem, Fit) and prices is not None and price is not None:
        prices = _at(prices, price)
    asked, units = _problem_and_units(problem, prices, price, currency, period, failures)
    present = present_rule(asked, prices, rule)
    if isinstance(assumptions, str) or not all(isinstance(one, str) for one in assumptions):
        raise PlanError(f"the assumptions are {quoted(assumptions)}, expected a list of sentences")
    assumed = [diagnostic("assumption", text=one) for one in assumptions]
    if nodes is not None:
        nodes = whole(nodes, "nodes", 1, error=PlanError, what="a number of nodes")
    budget = Budget.of(None if budget is not None and time_limit == DEFAULT_SECONDS else time_limit, budget=budget)
    fit = problem if isinstance(problem, Fit) else None
    tell = progress or (lambda _: None)
    with budget.deferred_interrupts():
        if asked.model.is_exact_look_model:
            found = _AdviceRun(asked, units, budget, tell).advice(title, fit, prices, present)
        else:
            found = GraphAdviceRun(asked, units, budget, tell, nodes, prices, fit, present).advice(title)
    return replace(found, notes=(*assumed, *found.notes))


def _problem_and_units(
    problem: Model | Fit,
    economics: Economics | None,
    price: float | None,
    currency: str,
    period: str,
    failures: Sequence[str | int],
) -> tuple[Problem, Units]:
    """Return the problem to plan for and its units; raise a `PlanError` if the arguments of `advise` do not go together."""
    if isinstance(problem, Fit):
        if economics is None:
            raise PlanError("a fit has no prices; give them too, economics=Economics.load('prices.toml')")
        if len(failures):
            raise PlanError("failures are for models; the failures of a fit are in its prices, failure_states=[...]")
        asked = problem.problem(economics)
        currency, period = economics.currency, economics.period
    elif isinstance(problem, Model):
        if economics is not None:
            raise PlanError(
                "prices go with a fit, but this is a model, which has its rewards already; leave them out, and name its "
                "units with currency and period"
            )
        model = problem if price is None else at_price(problem, amount(price, PRICE, error=PlanError))
        asked = problem_of_model(model, failures)
        if not isinstance(period, str) or not period.strip():
            raise PlanError(f"the period is {quoted(period)}, expected the name of a step, such as 'year'")
    else:
        raise PlanError(f"the problem is {quoted(problem)}, expected a Model or a Fit")
    return asked, Units.of(asked.model, currency, period)


def _at(economics: Economics, price: float) -> Economics:
    """Return the prices with another price of an inspection, which multiplies prices by state or action."""
    factor = amount(price, PRICE, error=PlanError)
    if economics.inspections:
        names = ", ".join(economics.inspections)
        raise PlanError(
            f"a price of an inspection was given, but there are the methods {names}; change their prices in the file of prices"
        )
    by_state, by_action = economics.inspection_by_state, economics.inspection_by_action
    if not by_state and not by_action:
        return replace(economics, inspection=factor)
    return replace(
        economics,
        inspection=factor * (economics.inspection or 0.0),
        inspection_by_state={name: factor * value for name, value in by_state.items()},
        inspection_by_action={name: factor * value for name, value in by_action.items()},
    )


class _AdviceRun:
    """The parts of the advice in order, each with its fraction of the remaining time."""

    def __init__(self, problem: Problem, units: Units, budget: Budget, tell: Callable[[str], None]) -> None:
        model = problem.model
        self.problem, self.model, self.units, self.budget, self.tell = problem, model, units, budget, tell
        self.notes: list[Diagnostic] = []
        self.tolerance = PLAN_TOLERANCE * (float(np.abs(model.rewards).max()) or 1.0)

    def advice(
        self, title: str, fit: Fit | None, economics: Economics | None, rule: PolicyGraph | None = None
    ) -> Advice:
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
        policies = [
            replace(policy, figures=self._figures(policy))
            for policy in (ComparedPolicy("plan", schedule, own.evaluation, self.units.period), *others)
        ]
        if rule is not None:
            policies.append(compared_graph(self.problem, "present-rule", rule, self.units.period))
        prices = self._prices(own, frontier)
        sure = self._confidence(schedule, fit, economics)
        if fit is not None and economics is not None:
            taken = {action for state in own.schedule for action in own.schedule[state].actions}
            never_acts = taken == {self.problem.waiting} and self.model.n_actions > 1
            self.notes += fit_diagnostics(fit, economics, policies[0].figures, never_acts)
            if never_acts:
                waiting = self.model.action_name(self.problem.waiting)
                self.notes.append(diagnostic("plan-never-acts", action=waiting))
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
            problem=self.problem,
            figures=policies[0].figures,
            economics=economics,
            fit=fit,
        )

    def _figures(self, policy: ComparedPolicy) -> Figures | None:
        """Return failures and costs by cause of a schedule; None where failures are not known, or there are too many states."""
        if not self.problem.failed.any() or self.model.n_states > MOST_STATES_OF_FIGURES:
            return None
        return figures(self.problem, policy.schedule.policy_graph(self.model), policy.evaluation)

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

    def _policies(self, own: Solution) -> list[ComparedPolicy]:
        """Return the policies that the plan is compared with, those for which there was time."""
        if not has_time(self.budget, self.notes, "policies"):
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
        if not has_time(self.budget, self.notes, "prices"):
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
        if not has_time(self.budget, self.notes, "resampled"):
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
