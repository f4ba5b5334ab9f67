"""Advice where the plan is a policy graph: imperfect or several inspections, a life, limits and systems.

The plan is the best controller of few nodes that was found (`Solution.policy_graph`), evaluated exactly; the bound on all plans
comes from the search. Everything else follows from the graph: steps in words, costs by cause, failures in each period, other
policies on the same model, and the plan on models that were fitted to resampled records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from actmeasure.decision import Decision
from actmeasure.errors import PlanError, ScheduleError, quoted, shown
from actmeasure.evaluation import evaluate
from actmeasure.inspection.advice import Advice, Confidence, FailureLimit, MethodWorth
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import DETECTION_OUTCOMES, Economics, Units
from actmeasure.inspection.imperfect_rules import KINDS, Judge, compared
from actmeasure.inspection.plan_figures import CURVE, Figures, figures, likeliest_history, plan_steps, stepwise
from actmeasure.inspection.problem import Problem, rule_graph
from actmeasure.inspection.schedules import is_rounding
from actmeasure.inspection.usual_policies import ComparedPolicy
from actmeasure.model import Model
from actmeasure.planning.budget import Budget, why_open
from actmeasure.planning.explain_belief import BeliefExplanation
from actmeasure.planning.measurement_tradeoff import largest_quality
from actmeasure.planning.solution import Solution
from actmeasure.planning.solve import solve
from actmeasure.planning.tradeoff import tradeoff
from actmeasure.policy_graph import NO_EDGE, Outcome, PolicyGraph, bind, trace_pairs

if TYPE_CHECKING:
    from actmeasure.inspection.fitting import Fit
    from actmeasure.schedule import Schedule

__all__ = ["GraphAdviceRun", "compared_graph", "completed", "fit_diagnostics", "has_time", "present_rule"]

#: Relative tolerance of the plan's bounds.
TOLERANCE = 1e-3
#: Most nodes of a plan unless told, of which those are dropped that are worth less than this share of its value.
MOST_NODES, WITHIN = 60, 0.01
#: Fractions of the remaining time for the search, the readable graph, other policies, the worth of methods, resampled models.
PLAN_SHARE, GRAPH_SHARE, POLICY_SHARE, WORTH_SHARE, LAST_SHARE = 0.35, 0.3, 0.35, 0.5, 0.9
#: Most seconds for a readable graph.
GRAPH_SECONDS = 20.0
#: Seconds for a part of the advice, even where less time remains.
LEAST_PART_SECONDS = 0.5
#: Bounds that are further apart than this share of the plan's value are not settled.
WIDE_GAP = 0.05
#: Most failure prices that are tried for a limit on failures, their share of the remaining time, and that of the least failures.
MOST_FAILURE_PRICES, LIMIT_SHARE, LEAST_SHARE = 12, 0.6, 0.15
#: Relative distance of failure prices at which the search for the cheapest plan within the limit ends.
NEAR_PRICES = 0.1
#: Share of the remaining time for a last plan within the limit, and the share of its value that it may lose for fewer nodes.
FINER_SHARE, FINER_WITHIN = 0.9, 0.002
#: Most inspection methods whose worth is computed.
MOST_METHODS = 6
#: Probabilities of detection that are compared with those of a method, as factors.
LOWER_QUALITY, HIGHER_QUALITY = 0.5, 1.25
#: Smallest such factor above 1 that is worth telling, where probabilities above 1 do not allow the higher one.
LEAST_HIGHER_QUALITY = 1.05
#: Relative tolerance of the best plans of resampled models, and most seconds for one.
RESAMPLED_TOLERANCE, MOST_RESAMPLED_SECONDS = 1e-2, 5.0
#: A plan under which a larger share of the periods begins with a failed unit is doubtful: a price seems to be missing.
LEFT_FAILED = 0.25


@dataclass
class GraphAdviceRun:
    """The parts of the advice in order, each with its fraction of the remaining time."""

    problem: Problem
    units: Units
    budget: Budget
    tell: Callable[[str], None]
    nodes: int | None = None
    economics: Economics | None = None
    fit: Fit | None = None
    rule: PolicyGraph | None = None

    def __post_init__(self) -> None:
        self.notes: list[Diagnostic] = []
        #: Largest expected number of failures per period; None without a limit.
        self.limit = None if self.economics is None else self.economics.failures_per_period

    def advice(self, title: str) -> Advice:
        """Compute all parts; those for which there is no time are left out, with a diagnostic."""
        problem = self.problem
        self.tell("planning")
        solution = self._solve(problem, self.budget, PLAN_SHARE)
        graph, upper, limit = self._readable(problem, solution, self.budget), solution.upper, None
        if self.limit is not None:
            graph, limit = self._within_limit(solution, graph)
            upper = limit.upper
        whole, nodes = stepwise(problem, graph)
        own = figures(problem, whole)
        value = own.evaluation.discounted_return
        upper = max(upper, value)
        if why_open(solution.stopped, problem.model.discount):
            self.notes.append(diagnostic("plan-not-closed", stopped=solution.stopped, discount=problem.model.discount))
        policies = [compared_graph(problem, "plan", whole, self.units.period, own, limit=self.limit)]
        if self.rule is not None:
            policies.append(compared_graph(problem, "present-rule", self.rule, self.units.period, limit=self.limit))
        policies += self._others(limit)
        worth = self._worth(solution)
        sure = self._confidence(whole)
        best_found = value if limit is not None else max(solution.lower, value)
        self._note_weaknesses(own, upper - best_found, policies)
        return Advice(
            model=problem.model,
            units=self.units,
            schedule=cast("Schedule", None),
            expected=frozenset(),
            evaluation=own.evaluation,
            values=np.full(problem.model.n_states, np.nan),
            upper=upper,
            policies=tuple(policies),
            frontier=None,
            prices=(),
            confidence=sure,
            notes=tuple(dict.fromkeys(self.notes)),
            title=shown(title),
            seconds=self.budget.elapsed,
            problem=problem,
            graph=whole,
            steps=plan_steps(problem, whole, nodes),
            history=likeliest_history(problem, whole, nodes, problem.periods or CURVE),
            figures=own,
            best_found=best_found,
            n_nodes=len(graph),
            worth=worth,
            limit=limit,
            economics=self.economics,
            fit=self.fit,
        )

    # The plan

    def _solve(self, problem: Problem, budget: Budget, share: float) -> Solution:
        """Solve a problem in a fraction of the time of a budget or, if that is too short for any bound, in all of the time."""
        model = problem.search_model
        try:
            part = budget.separate(share, at_least=LEAST_PART_SECONDS)
            return solve(model, relative_tolerance=TOLERANCE, budget=part)
        except PlanError:
            if self.budget.seconds is None or self.budget.is_over:
                raise
            return solve(model, relative_tolerance=TOLERANCE, budget=self.budget.separate(at_least=LEAST_PART_SECONDS))

    def _readable(
        self,
        problem: Problem,
        solution: Solution,
        budget: Budget,
        share: float = GRAPH_SHARE,
        within: float = WITHIN,
    ) -> PolicyGraph:
        """Return the plan as a graph of few nodes on the model of a problem, which keeps the longest interval."""
        limit = budget.separate(share, GRAPH_SECONDS, LEAST_PART_SECONDS).seconds
        nodes, within = (MOST_NODES, within) if self.nodes is None else (self.nodes, 0.0)
        found = solution.policy_graph(nodes, within=within, time_limit=limit)
        if problem.limited is None:
            return found
        graph = problem.limited.unlimited(found)
        if not problem.limited.is_kept(graph):
            raise PlanError(
                f"no plan of at most {nodes} nodes was found that inspects every {problem.limited.longest} periods; allow more "
                "nodes (--nodes 60) or more time (--time-limit 300)"
            )
        return graph

    def _within_limit(self, solution: Solution, graph: PolicyGraph) -> tuple[PolicyGraph, FailureLimit]:
        """Return the cheapest plan found that keeps the limit on failures, and what the limit costs.

        With V the value of a plan at the own prices, D its discounted failures, W the discounted periods and l the limit, a plan
        with D <= W l has V <= V - x (D - W l) for every x >= 0, which is at most U(x) + x W l, where U(x) bounds all plans when a
        failure costs x more. The price x is raised until the plan found for it keeps the limit, and then narrowed down.
        """
        problem, economics, limit = self.problem, self.economics, self.limit
        assert economics is not None
        assert limit is not None
        weight = problem.discounted_periods
        if math.isinf(weight):
            raise PlanError(
                'a limit on failures needs a discount below 1, or a life; add life = "30 years" to the prices'
            )
        part = self.budget.part(LIMIT_SHARE)
        least = self._least_failures(limit, part)
        best: tuple[float, PolicyGraph, float] | None = None
        safest: tuple[Problem, Solution] | None = None
        without = evaluate(problem.model, graph).discounted_return
        upper, price, low, high = solution.upper, 0.0, 0.0, math.inf
        dearer, solved = problem, solution
        scale = max(economics.failure_price, abs(solution.upper) / weight, 1e-9)
        for number in range(MOST_FAILURE_PRICES):
            found = figures(problem, graph)
            if _keeps(found, limit):
                value = found.evaluation.discounted_return
                high = price
                safest = (dearer, solved) if price else None
                best = (value, graph, price) if best is None or value > best[0] else best
            else:
                low = price
            if best is not None and (price == 0 or high - low <= NEAR_PRICES * high or part.is_over):
                break
            price = (math.sqrt(max(low, high * 1e-2) * high)) if math.isfinite(high) else max(4 * price, scale)
            self.tell(f"limit on failures: a failure costs {self.units.amount(price)} more")
            dearer = self._at_failure_price(price)
            share = 0.5 / (1 + 0.5 * (MOST_FAILURE_PRICES - number))
            solved = self._solve(dearer, part, share)
            upper = min(upper, solved.upper + price * weight * limit)
            graph = self._readable(dearer, solved, part, share)
        if best is not None and safest is not None and not part.is_over:
            # With prices narrowed down, the rest of the time is for a better graph at the lowest one that keeps the limit.
            finer = self._readable(*safest, part, FINER_SHARE, within=FINER_WITHIN)
            found = figures(problem, finer)
            if _keeps(found, limit) and found.evaluation.discounted_return > best[0]:
                best = found.evaluation.discounted_return, finer, high
        if best is None:
            raise PlanError(
                f"no plan was found that has at most {limit:.4g} failures per {self.units.period}; it is only certified that "
                f"every plan has {least:.4g} or more; allow more time (--time-limit 300) or nodes (--nodes 60), or a higher limit"
            )
        return best[1], FailureLimit(limit, least, best[2], upper, without)

    def _least_failures(self, limit: float, budget: Budget) -> float:
        """Return a number of failures per period below which no plan comes; a `PlanError` says if the limit is below it."""
        economics, problem = self.economics, self.problem
        assert economics is not None
        assert problem.at_prices is not None
        parts = economics.components
        free = replace(
            economics,
            inspection=None if economics.inspections else 0.0,
            inspection_by_state={},
            inspection_by_action={},
            inspections={name: replace(one, price=0.0) for name, one in economics.inspections.items()},
            actions=dict.fromkeys(economics.actions, 0.0),
            running={},
            final={},
            failure_price=0.0 if parts is not None else 1.0,
            components=None if parts is None else replace(parts, down=1.0, mobilisation=0.0),
        )
        self.tell("the fewest failures that are possible")
        counting = problem.at_prices(free)
        solved = self._solve(counting, budget, LEAST_SHARE)
        least = max(0.0, -solved.upper) / problem.discounted_periods
        if least > limit:
            raise PlanError(
                f"{economics.location(('failures_per_year',))}at most {limit:.4g} failures per {self.units.period} are allowed, "
                f"but no plan has fewer than {least:.4g}, which is {least / limit:.3g} times as many, whatever it costs; allow "
                "more, or add better inspections or actions"
            )
        return least

    def _at_failure_price(self, price: float) -> Problem:
        """Return the problem in which a failure, or a period with the system down, costs more by an amount."""
        economics, problem = self.economics, self.problem
        assert economics is not None
        assert problem.at_prices is not None
        parts = economics.components
        if parts is not None:
            return problem.at_prices(replace(economics, components=replace(parts, down=parts.down + price)))
        return problem.at_prices(replace(economics, failure_price=economics.failure_price + price))

    # Other policies

    def _others(self, limit: FailureLimit | None) -> list[ComparedPolicy]:
        """Return the best rule of each usual kind that keeps the limits, as far as there was time."""
        if not has_time(self.budget, self.notes, "policies"):
            return []
        problem, period = self.problem, self.units.period
        dearer = problem if limit is None or not limit.price else self._at_failure_price(limit.price)
        rules, notes = compared(
            dearer.model,
            problem.waiting,
            problem.failed if problem.failed.any() else None,
            longest=None if problem.limited is None else problem.limited.longest,
            kinds=sorted(KINDS, key=lambda kind: kind not in ("always", "never")),  # which take no time
            budget=self.budget.part(POLICY_SHARE),
            tell=self.tell,
            judge=self._judge(dearer),
        )
        self.notes += notes
        rules.sort(key=lambda rule: KINDS.index(rule.key))
        return [
            replace(
                compared_graph(
                    problem,
                    rule.key,
                    rule.graph,
                    period,
                    figures(problem, rule.graph),
                    rule.note,
                    self.limit,
                ),
                given_name=rule.name,
                given_rule=rule.words(period),
            )
            for rule in rules
        ]

    def _judge(self, dearer: Problem) -> Judge | None:
        """Return the function by which rules that keep the limits are found; None without limits.

        The search is led to them by the price of an interval that is too long, and by that of a failure at which the plan keeps
        the limit.
        """
        problem = self.problem
        if problem.limited is None and self.limit is None:
            return None

        def judge(graph: PolicyGraph) -> tuple[float, float]:
            led = (
                (dearer.model, graph)
                if dearer.limited is None
                else (dearer.limited.model, dearer.limited.followed(graph))
            )
            objective = evaluate(*led).discounted_return
            keeps = problem.limited is None or problem.limited.is_kept(graph)
            if keeps and self.limit is not None:
                keeps = _keeps(figures(problem, graph), self.limit)
            return objective, evaluate(problem.model, graph).discounted_return if keeps else -math.inf

        return judge

    # What inspections are worth

    def _worth(self, solution: Solution) -> tuple[MethodWorth, ...]:
        """Return the value of each inspection method, as far as there was time."""
        problem, model = self.problem, self.problem.model
        if problem.components > 1 or len(model.measurements) > MOST_METHODS:
            self.notes.append(diagnostic("worth-not-computed"))
            return ()
        gains = self._gains_now(solution)
        worth = []
        for number, one in enumerate(model.measurements):
            price = float(one.table(model.n_states, model.n_actions)[~model.terminal].max())
            worth.append(MethodWorth(one.name, price, now=gains.get(number + 1)))
        if problem.limited is not None or self.limit is not None:
            self.notes.append(diagnostic("worth-not-computed"))
            return tuple(worth)
        if not has_time(self.budget, self.notes, "worth"):
            return tuple(worth)
        part = self.budget.part(WORTH_SHARE)
        for number, method in enumerate(worth):
            self.tell(f"what {method.name} is worth")
            try:
                worth[number] = self._worth_of(method, part, 1 / (len(worth) - number))
            except PlanError:
                self.notes.append(diagnostic("worth-incomplete", method=method.name))
        return tuple(worth)

    def _worth_of(self, one: MethodWorth, budget: Budget, share: float) -> MethodWorth:
        """Return the break-even price of a method and, where it has probabilities of detection, what others may cost."""
        model = self.problem.model
        number = model.measurement_number(one.name)
        has_pod = model.n_outcomes(number) == len(DETECTION_OUTCOMES)
        found = tradeoff(
            model,
            measurement=one.name,
            relative_tolerance=TOLERANCE,
            budget=budget.separate(share * (0.5 if has_pod else 1.0), at_least=LEAST_PART_SECONDS),
        )
        one = replace(one, break_even=found.break_even)
        if not has_pod or budget.is_over:
            return one
        largest = largest_quality(model, number)
        points = tradeoff(
            model,
            measurement=one.name,
            quality=[LOWER_QUALITY, *([min(largest, HIGHER_QUALITY)] if largest >= LEAST_HIGHER_QUALITY else [])],
            relative_tolerance=TOLERANCE,
            budget=budget.separate(share, at_least=LEAST_PART_SECONDS),
        ).points
        return replace(one, qualities=tuple((point.quality, *point.may_cost) for point in points))

    def _gains_now(self, solution: Solution) -> dict[int, tuple[float, float]]:
        """Return bounds on the gain of each measurement with the first decision over none."""
        if solution.search is None:
            return {}
        explained = solution.explain()
        if not isinstance(explained, BeliefExplanation):
            return {}
        bounds: dict[int, tuple[float, float]] = {}
        for one in explained.decisions:
            low, high = bounds.get(one.decision.measurement, (-math.inf, -math.inf))
            bounds[one.decision.measurement] = (max(low, one.lower), max(high, one.upper))
        without = bounds.pop(0, None)
        if without is None:
            return {}
        return {number: (low - without[1], high - without[0]) for number, (low, high) in bounds.items()}

    # Uncertainty

    def _confidence(self, graph: PolicyGraph) -> Confidence | None:
        """Return the plan on the resampled models of a fit, and their own best plans; None without them or without time."""
        fit, economics = self.fit, self.economics
        if fit is None or economics is None:
            return None
        if fit.bootstrap is None:
            self.notes.append(diagnostic("no-resampled-models"))
            return None
        if not has_time(self.budget, self.notes, "resampled"):
            return None
        followed = completed(graph, self.problem.model)
        asked, problems = len(fit.bootstrap), []
        values, failures = [], []
        for number, other in enumerate(fit.problems(economics), start=1):
            if self.budget.is_over:
                break
            self.tell(f"the plan in resampled model {number} of {asked}")
            found = figures(other, followed)
            problems.append(other)
            values.append(found.evaluation.discounted_return)
            failures.append(found.failures_per_period)
        if not values:
            return None
        best = np.full(len(values), np.nan)
        if self.limit is None:  # plans within a limit would have to be compared with others within it
            for number, value in self._best_of_resampled(problems):
                best[number] = max(value, values[number])
        left = int(np.isnan(best).sum())
        if len(values) < asked:
            self.notes.append(diagnostic("resampled-models-incomplete", done=len(values), requested=asked))
        elif left and self.limit is None:
            self.notes.append(diagnostic("resampled-not-solved", left=left, requested=asked))
        return Confidence({}, np.array(values), best, asked, np.array(failures))

    def _best_of_resampled(self, problems: list[Problem]) -> Iterator[tuple[int, float]]:
        """Yield number and value of the best policy of each resampled model whose bounds are close, while there is time."""
        for number, other in enumerate(problems):
            if self.budget.is_over:
                return
            self.tell(f"the best plan of resampled model {number + 1} of {len(problems)}")
            budget = self.budget.separate(LAST_SHARE, MOST_RESAMPLED_SECONDS)
            try:
                solved = solve(other.search_model, relative_tolerance=RESAMPLED_TOLERANCE, budget=budget)
            except PlanError:  # no time for a bound on it
                return
            if solved.stopped == "closed":
                yield number, solved.lower

    # What to read first

    def _note_weaknesses(self, own: Figures, gap: float, policies: list[ComparedPolicy]) -> None:
        """Add diagnostics of weaknesses: a wide gap of the bounds, a policy that is better, and those of the fit."""
        value = own.evaluation.discounted_return
        if not gap <= WIDE_GAP * abs(value):
            self.notes.append(diagnostic("plan-far-from-bound", share=gap / max(abs(value), 1e-300)))
        better = max(policies, key=lambda one: one.value if one.is_allowed else -math.inf)
        if better.key != "plan" and not is_rounding(better.value - value, value):
            self.notes.append(diagnostic("other-policy-is-better", policy=better.name))
        waits = Decision(self.problem.waiting, 0)
        graph = policies[0].graph
        never_acts = (
            self.problem.model.n_actions > 1 and graph is not None and all(one == waits for one in graph.decisions)
        )
        if never_acts:
            self.notes.append(diagnostic("plan-never-acts", action=self.problem.base.action_name(waits.action)))
        if self.fit is not None and self.economics is not None:
            self.notes += fit_diagnostics(self.fit, self.economics, own, never_acts)


def has_time(budget: Budget, notes: list[Diagnostic], part: str) -> bool:
    """Return whether there is time for a part of the advice; if not, add a diagnostic to the notes."""
    if not budget.is_over:
        return True
    notes.append(diagnostic("part-interrupted" if budget.is_interrupted else "part-out-of-time", part=part))
    return False


def _keeps(found: Figures, limit: float) -> bool:
    """Return whether a policy keeps a limit on failures per period: weighted as money, and in the plain mean if there is one."""
    plain = found.failures_per_period
    return found.weighted_failures_per_period <= limit and (math.isnan(plain) or plain <= limit)


def compared_graph(
    problem: Problem,
    key: str,
    graph: PolicyGraph,
    period: str,
    known: Figures | None = None,
    note: Diagnostic | None = None,
    limit: float | None = None,
) -> ComparedPolicy:
    """Return a policy graph on the model of a problem, with its figures, for the comparison.

    `known` are its figures, `note` is as in the result, and `limit` that on failures per period.
    """
    result = figures(problem, graph) if known is None else known
    if limit is not None and not _keeps(result, limit):
        note = diagnostic("failure-limit-exceeded")
    if problem.limited is not None and not problem.limited.is_kept(graph):
        note = diagnostic("longest-interval-exceeded", longest=problem.limited.longest, period=period)
    return ComparedPolicy(
        key, cast("Schedule", None), result.evaluation, period, note=note, graph=graph, figures=result
    )


def present_rule(problem: Problem, economics: Economics | None, rule: PolicyGraph | None) -> PolicyGraph | None:
    """Return the present rule, given as a graph or in the prices, on the model; a `PlanError` says what does not fit."""
    if rule is None and economics is not None and economics.rule:
        rule = rule_graph(problem.base, economics.rule, economics.location)
    if rule is None:
        return None
    if not isinstance(rule, PolicyGraph):
        raise PlanError(f"the present rule is {quoted(rule)}, expected a PolicyGraph")
    try:
        trace_pairs(problem.model, bind(rule, problem.model))
    except ScheduleError as error:
        raise PlanError(f"the present rule does not fit the model: {error}") from error
    return rule


def fit_diagnostics(
    fit: Fit, economics: Economics, own: Figures | None, never_acts: bool = False
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a fit that concern a plan, and what the plan assumes about failed and noticed states.

    `never_acts` says that the plan does nothing but wait.
    """
    if fit.goodness is None:
        yield diagnostic("fit-not-tested")
    elif fit.goodness.verdict == "undecided":
        yield diagnostic("fit-not-decided", sets=fit.goodness.replicates)
    elif fit.goodness.verdict == "misfit":
        yield diagnostic("model-does-not-fit")
        yield from fit.goodness.findings
    yield from (*fit.warnings, *fit.identifiability, *fit.notes)
    # States are in order, the best first: a last state that costs nothing, where others do, was probably forgotten.
    is_worst_free = not economics.running.get(fit.state_names[-1]) and not economics.final.get(fit.state_names[-1])
    if not economics.has_price_of_failure and ((never_acts and is_worst_free) or not economics.has_cost_of_states):
        yield diagnostic("failure-price-missing")
    if own is not None and own.failed_share > LEFT_FAILED:
        yield diagnostic("failed-units-left", share=own.failed_share)
    for state in () if economics.components is not None else economics.failure_states:
        if state not in economics.terminal and not economics.running.get(state):
            yield diagnostic("failure-without-running-cost", state=state)
    for state in fit.noticed:
        if state not in economics.terminal:
            yield diagnostic("noticed-state-in-plan", state=state)


def completed(graph: PolicyGraph, model: Model) -> PolicyGraph:
    """Return a graph with an edge for every outcome: those without one lead where the nearest outcome does."""
    bound = bind(graph, model)
    edges: list[dict[Outcome, int]] = []
    for node in range(len(graph)):
        targets = bound.targets[node]
        known = np.flatnonzero(targets != NO_EDGE)
        if not len(known):
            edges.append({None: node})
        elif model.shown_by(int(bound.measurements[node])) is None:
            edges.append({None: int(targets[0])})
        else:
            nearest = known[np.abs(np.arange(len(targets))[:, None] - known[None, :]).argmin(axis=1)]
            edges.append(dict(enumerate(targets[nearest].tolist())))
    return PolicyGraph(graph.decisions, edges, graph.start)
