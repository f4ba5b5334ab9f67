"""Policies that the plan is compared with: the best that inspect always, never, at a fixed interval, or by condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.plan_figures import Figures
from actmeasure.inspection.schedules import belief_after, best_of, discounted_value, discounted_values
from actmeasure.inspection.text import POLICIES, policy_name, policy_rule
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import Control
from actmeasure.planning.budget import Budget
from actmeasure.planning.solve import solve
from actmeasure.policy_graph import PolicyGraph
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Calendars", "ComparedPolicy", "ConditionRule", "ConditionRules", "best_rounds", "usual_policies"]

IntArray = npt.NDArray[np.int64]
Choice = TypeVar("Choice")

#: The longest interval that is tried: this multiple of the plan's longest one, but at least and at most these numbers of periods.
LONGER, LEAST_LONGEST, MOST_LONGEST = 2, 30, 400
#: Smallest gain of a change of a rule in policy iteration, relative to the largest reward or price.
LEAST_GAIN = 1e-10
#: Largest number of rounds of policy iteration, which would otherwise not end if rounding makes it cycle.
MOST_ROUNDS = 100
#: Largest number of multiplications with an entry of the transition table in a round over all intervals.
MOST_WORK = 1_000_000_000


@dataclass(frozen=True, eq=False)
class ComparedPolicy:
    """A policy that the plan is compared with, and its exact evaluation.

    Attributes
    ----------
    key : str
        `plan`, `always`, `never`, `every-k`, `one-interval` or `by-condition`; `present-rule` and the kinds of
        `imperfect_rules` where policies are graphs.
    schedule : Schedule
        None where policies are graphs.
    evaluation : Evaluation
    period : str
        The name of a step, such as year.
    interval : (int, int)
        The shortest and the longest time between two inspections of a rule, in periods.
    tried : int or None
        The longest interval that was tried; None if no intervals were.
    first_actions : dict from the name of an action to those of the states after which a rule with one interval takes it
    waiting : str or None
        The action of such a rule until the next inspection.
    note : Diagnostic or None
        Why it may not be the best of its kind, or breaks a limit; None otherwise.
    graph : PolicyGraph or None
        On the model, where policies are graphs.
    figures : Figures or None
        Failures, and costs by cause; None where it is not known what a failure is, or there was no time.
    given_name, given_rule : str
        Name and words of a policy that has its own.
    """

    key: str
    schedule: Schedule
    evaluation: Evaluation
    period: str
    interval: tuple[int, int] = (1, 1)
    tried: int | None = None
    first_actions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: str | None = None
    note: Diagnostic | None = None
    graph: PolicyGraph | None = None
    figures: Figures | None = None
    given_name: str = ""
    given_rule: str = ""

    @property
    def name(self) -> str:
        """The policy in a few words."""
        return self.given_name or policy_name(self)

    @property
    def rule(self) -> str:
        """What the policy does, and what it is the best of, in sentences."""
        return self.given_rule or policy_rule(self)

    @property
    def value(self) -> float:
        """Discounted return from the start; minus infinity if the sum does not exist."""
        value = self.evaluation.discounted_return
        return -math.inf if math.isnan(value) else value

    @property
    def is_allowed(self) -> bool:
        """Whether it keeps the limits on failures and on the time between inspections."""
        return self.note is None or self.note.code not in ("longest-interval-exceeded", "failure-limit-exceeded")


def usual_policies(
    model: Model, plan: Schedule, period: str, budget: Budget, tell: Callable[[str], None]
) -> tuple[list[ComparedPolicy], list[Diagnostic]]:
    """Return the best policies that inspect always, never, at intervals and by condition, and diagnostics of missing ones."""
    longest = _longest(plan)
    makers: dict[str, Callable[[Budget], ComparedPolicy]] = {
        "always": lambda budget: _always(model, period, budget),
        "never": lambda budget: _never(model, period, longest, budget),
        "every-k": lambda budget: _calendar(model, period, longest, budget),
        "one-interval": lambda budget: _one_interval(model, period, longest, budget),
        "by-condition": lambda budget: _by_condition(model, period, longest, budget),
    }
    policies, notes = [], []
    for number, (key, make) in enumerate(makers.items()):
        tell(f"comparing with {POLICIES[key]}")
        if budget.is_over:
            notes.append(diagnostic("policy-out-of-time", policy=key))
            continue
        try:
            policies.append(make(budget.part(1 / (len(makers) - number))))
        except PlanError:
            notes.append(diagnostic("policy-failed", policy=key, discount=model.discount))
    return policies, notes


def _longest(plan: Schedule) -> int:
    """Return the longest interval to try, from the longest one of the plan."""
    looks = [len(one) for one in (*plan.plans, *([plan.start] if plan.start else [])) if one.then == "measure"]
    return int(np.clip(LONGER * max(looks, default=0), LEAST_LONGEST, MOST_LONGEST))


def _always(model: Model, period: str, budget: Budget) -> ComparedPolicy:
    """Return the policy that inspects in every period."""
    solution = solve(model, "always", budget=budget.separate())
    return ComparedPolicy("always", solution.schedule, solution.evaluation, period)


def _never(model: Model, period: str, longest: int, budget: Budget) -> ComparedPolicy:
    """Return the best policy found that never inspects."""
    tolerance = 1e-6 * (float(np.abs(model.rewards).max()) or 1.0)
    in_rounds = best_rounds(model, longest, budget.part(0.5))
    solution = solve(model, "never", tolerance, budget=budget.separate())
    best, _ = best_of(solution, [("in rounds", in_rounds)], math.inf)
    bound = solution.method_upper
    is_closed = solution.stopped in ("closed", "done") or (bound is not None and bound - best.value <= tolerance)
    note = None if is_closed else diagnostic("policy-not-closed")
    return ComparedPolicy("never", best.schedule, best.evaluation, period, note=note)


def _calendar(model: Model, period: str, longest: int, budget: Budget) -> ComparedPolicy:
    """Return the best policy that inspects every k periods, with act-then-measure's control."""
    calendars = Calendars(model)
    k, tried = calendars.best(longest, budget)
    schedule = calendars.schedule(k)
    note = _limit_note(k, tried, longest, period)
    return ComparedPolicy("every-k", schedule, evaluate(model, schedule), period, (k, k), tried, note=note)


def _one_interval(model: Model, period: str, longest: int, budget: Budget) -> ComparedPolicy:
    """Return the best condition rule with one interval for all states."""
    search = ConditionRules(model, longest, budget)
    rule = search.one_interval()
    k = int(rule.intervals[0])
    states = np.flatnonzero(~model.terminal)
    first_actions = {
        model.action_name(int(action)): tuple(
            model.state_name(int(state)) for state in states if rule.first[state] == action
        )
        for action in np.unique(rule.first[states])
    }
    waiting = model.action_name(int(rule.waiting[states[0]]))
    schedule, tried = rule.schedule(model), search.longest
    note = _limit_note(k, tried, longest, period)
    return ComparedPolicy(
        "one-interval", schedule, evaluate(model, schedule), period, (k, k), tried, first_actions, waiting, note
    )


def _by_condition(model: Model, period: str, longest: int, budget: Budget) -> ComparedPolicy:
    """Return the best condition rule whose interval depends on the state."""
    search = ConditionRules(model, longest, budget)
    rule = search.by_condition()
    used = rule.intervals[:-1][~model.terminal]
    interval = int(used.min()), int(used.max())
    is_late = budget.is_over
    schedule, tried = rule.schedule(model), search.longest
    note = diagnostic("policy-search-stopped") if is_late else _limit_note(interval[1], tried, longest, period)
    return ComparedPolicy("by-condition", schedule, evaluate(model, schedule), period, interval, tried, note=note)


def _limit_note(k: int, tried: int, longest: int, period: str) -> Diagnostic | None:
    """Return a diagnostic if longer intervals than those tried may be better, otherwise None."""
    if k >= tried:
        return diagnostic("longest-interval-is-best", tried=tried, period=period)
    return diagnostic("longer-intervals-not-tried", tried=tried, period=period) if tried < longest else None


@dataclass
class BlindPath:
    """Actions of the control from a belief without measurements, and the support of the belief after each."""

    belief: Belief
    actions: list[int] = field(default_factory=list)
    possible: list[list[int]] = field(default_factory=list)


class Calendars:
    """Schedules that measure at every k-th step, with act-then-measure's control in between, as `solve(model, "every-k")`.

    The control does not depend on k, so that the path from each state is computed once for all k.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._control = Control(model)
        self._paths: dict[int | None, BlindPath] = {}

    def schedule(self, k: int) -> Schedule:
        """Return the schedule that measures at every k-th step."""
        model = self.model
        start, observed = None, [int(state) for state in model.initial_states]
        if not model.start_is_known:
            start, observed = self._plan(None, k)
        plans: dict[int, BlindPlan] = {}
        while observed:
            state = observed.pop()
            if state not in plans:
                plans[state], further = self._plan(state, k)
                observed += further
        return Schedule(plans, model.n_states, start)

    def best(self, longest: int, budget: Budget) -> tuple[int, int]:
        """Return the best k up to `longest`, and the largest k that was tried before time was over."""
        return _best(self.model, ((k, self.schedule(k)) for k in range(1, longest + 1)), budget)

    def _plan(self, state: int | None, k: int) -> tuple[BlindPlan, list[int]]:
        """Return the plan of k steps from a known state (None: the start), and the states that may be observed then."""
        path = self._paths.get(state)
        if path is None:
            path = self._paths[state] = BlindPath(belief_after(self.model, state))
        while len(path.actions) < k and not path.belief.is_over:
            action = self._control(path.belief)
            path.belief = path.belief.predict(self.model, action)
            path.actions.append(action)
            path.possible.append([int(state) for state in path.belief.states])
        if len(path.actions) < k:
            return BlindPlan(tuple(path.actions), then="end"), []
        return BlindPlan(tuple(path.actions[:k]), then="measure"), list(path.possible[k - 1])


@dataclass(frozen=True, eq=False)
class ConditionRule:
    """A rule as engineers write it: after seeing state s, do `first[s]`, then `waiting[s]`, and inspect after `intervals[s]`.

    The last entry of the arrays is for a start that is not shown.

    Attributes
    ----------
    first, waiting : int64 arrays, shape (S + 1,)
        The action of the first period, and that of the others until the next inspection.
    intervals : int64 array, shape (S + 1,)
        Periods from one inspection to the next.
    """

    first: IntArray
    waiting: IntArray
    intervals: IntArray

    def plan(self, state: int) -> BlindPlan:
        """Return the plan after seeing a state."""
        waits = (int(self.waiting[state]),) * (int(self.intervals[state]) - 1)
        return BlindPlan((int(self.first[state]), *waits), then="measure")

    def schedule(self, model: Model) -> Schedule:
        """Return the schedule with a plan for every non-terminal state, and for a start that is not shown."""
        plans = {int(state): self.plan(int(state)) for state in np.flatnonzero(~model.terminal)}
        return Schedule(plans, model.n_states, None if model.start_is_known else self.plan(-1))

    def changed(self, better: npt.NDArray[np.bool_], other: ConditionRule) -> ConditionRule:
        """Return the rule with the entries of another one where `better`, bool (S + 1,), is true."""
        return ConditionRule(
            np.where(better, other.first, self.first),
            np.where(better, other.waiting, self.waiting),
            np.where(better, other.intervals, self.intervals),
        )


class ConditionRules:
    """Policy iteration for the best condition rules of a model, in two families.

    *Interval by condition*: first action, waiting action and interval may all depend on the state seen. *One interval*: only the
    first action may; interval and waiting action are the same for all states. A condition rule is a policy of a semi-Markov
    decision process over the observed states, so that policy iteration finds the best one; every rule is evaluated by a linear
    solve.

    Parameters
    ----------
    model : Model
    longest : int
        The longest interval to try; reduced if the model is large (`MOST_WORK`).
    budget : Budget
        When it is over, the best rule found by then is returned.
    """

    def __init__(self, model: Model, longest: int, budget: Budget) -> None:
        self.model, self.budget = model, budget
        self._table = model.transitions.stacked()
        work = max(1, self._table.nnz) * model.n_actions
        #: The longest interval that is tried.
        self.longest = max(1, min(longest, MOST_WORK // work))
        self._gain = LEAST_GAIN * float(np.abs(model.rewards).max() + model.measuring_costs.max())
        self._first = np.append(np.maximum(Control(model).actions, 0), 0)

    def by_condition(self) -> ConditionRule:
        """Return the best rule whose interval may depend on the state seen."""
        rule, _ = self._best(self._same_for_all(self._first, 1, 0), 1, self.longest, range(self.model.n_actions))
        return rule

    def one_interval(self) -> ConditionRule:
        """Return the best rule with one interval and one waiting action for all states."""
        best, most = self._best(self._same_for_all(self._first, 1, 0), 1, 1, (0,))
        rules = dict.fromkeys(range(self.model.n_actions), best)
        for k in range(2, self.longest + 1):
            for wait, last in rules.items():
                # The best rule for k - 1 is nearly the best for k, so that few rounds are needed.
                rule, value = self._best(self._same_for_all(last.first, k, wait), k, k, (wait,))
                rules[wait] = rule
                if value > most + self._gain:
                    best, most = rule, value
            if self.budget.is_over:
                self.longest = k
                break
        return best

    def _same_for_all(self, first: IntArray, k: int, wait: int) -> ConditionRule:
        """Return a rule with the same interval and waiting action for all states."""
        return ConditionRule(first, np.full(len(first), wait), np.full(len(first), k))

    def _best(
        self, rule: ConditionRule, shortest: int, longest: int, waits: Sequence[int]
    ) -> tuple[ConditionRule, float]:
        """Return the best rule over intervals and waiting actions, by policy iteration from a rule, and its value."""
        for _ in range(MOST_ROUNDS):
            values = discounted_values(self.model, rule.schedule(self.model))
            worth, other = self._choices(values, shortest, longest, waits)
            better = np.append(worth[:-1] > values + self._gain, True)  # the start changes no state's value
            rule = rule.changed(better, other)
            if not better[:-1].any() or self.budget.is_over:
                break
        model = self.model
        shown = model.initial_probabilities @ values[model.initial_states]
        return rule, float(shown if model.start_is_known else worth[-1])

    def _choices(
        self, values: FloatArray, shortest: int, longest: int, waits: Sequence[int]
    ) -> tuple[FloatArray, ConditionRule]:
        """Return the value of the best choice in every state and at the start, (S + 1,), and the rule that makes these choices.

        `values`, (S,), are those of states when they are seen at the next inspection.
        """
        model = self.model
        worth = np.full(model.n_states + 1, -np.inf)
        rule = self._same_for_all(self._first, 1, waits[0])
        ahead = np.repeat(values[:, None], len(waits), axis=1)  # one column for each waiting action
        price = model.measuring_costs[:, :, None]
        for k in range(1, longest + 1):
            options = model.rewards[:, :, None] + model.discount * self._before(ahead)
            options -= price if k == 1 else 0.0
            if k >= shortest:
                rule, worth = _updated(rule, worth, self._with_start(options), k, waits)
            ahead = np.stack([options[:, wait, column] for column, wait in enumerate(waits)], axis=1)
        return worth, rule

    def _before(self, ahead: FloatArray) -> FloatArray:
        """Return the expected value of the next state for each action, shape (S, A, W), from shape (S, W)."""
        return np.asarray(self._table @ ahead).reshape(self.model.n_states, self.model.n_actions, -1)

    def _with_start(self, options: FloatArray) -> FloatArray:
        """Return the options with those of a start that is not shown as last row, shape (S + 1, A, W)."""
        return np.concatenate([options, Belief.start(self.model).expected(options)[None]])


def _updated(
    rule: ConditionRule, worth: FloatArray, options: FloatArray, k: int, waits: Sequence[int]
) -> tuple[ConditionRule, FloatArray]:
    """Return a rule and its value with the interval k where that is better; `options` has the shape (S + 1, A, W)."""
    flat = options.reshape(len(options), -1)
    choice = flat.argmax(axis=1)
    best = flat[np.arange(len(flat)), choice]
    first, column = np.divmod(choice, len(waits))
    other = ConditionRule(first, np.asarray(waits)[column], np.full(len(flat), k))
    return rule.changed(best > worth, other), np.maximum(worth, best)


@dataclass(frozen=True)
class Round:
    """Acting by time alone, periodically: wait with one action, take another one once in `length` periods."""

    wait: int
    act: int
    length: int

    def plan(self, lead: int) -> BlindPlan:
        """Return the plan that waits for `lead` periods before the first act and is periodic from then on."""
        actions = (self.wait,) * lead + (self.act,)
        if len(actions) < self.length:
            actions += (self.wait,) * (self.length - 1)  # the act, then the rest of its round
        return BlindPlan(actions, then="repeat", repeat=self.length)


def best_rounds(model: Model, longest: int, budget: Budget) -> Schedule:
    """Return the best schedule of rounds, up to a length, that was found in the time.

    One round is chosen for all initial states, with the act at its end; then, for each of them, the time of the first act.
    """
    states: list[int | None] = [int(state) for state in model.initial_states] if model.start_is_known else [None]
    rounds = (
        (one, _schedule(model, dict.fromkeys(states, one.plan(one.length - 1)))) for one in _rounds(model, longest)
    )
    chosen, _ = _best(model, rounds, budget)
    plans: dict[int | None, BlindPlan] = {}
    for state in states:
        there = model if state is None else model.replace(initial=state)
        leads = ((lead, _schedule(there, {state: chosen.plan(lead)})) for lead in range(chosen.length - 1, -1, -1))
        plans[state] = chosen.plan(_best(there, leads, budget)[0])
    return _schedule(model, plans)


def _rounds(model: Model, longest: int) -> Iterator[Round]:
    """Yield all rounds up to a length, the shortest first."""
    for length in range(1, longest + 1):
        for act in range(model.n_actions):
            for wait in range(model.n_actions):
                if (wait != act) == (length > 1):  # a round of length 1 has no waiting action
                    yield Round(wait, act, length)


def _schedule(model: Model, plans: dict[int | None, BlindPlan]) -> Schedule:
    """Return the schedule with plans by state; the key None is a start that is not shown."""
    known = {state: plan for state, plan in plans.items() if state is not None}
    return Schedule(known, model.n_states, plans.get(None))


def _best(model: Model, choices: Iterable[tuple[Choice, Schedule]], budget: Budget) -> tuple[Choice, Choice]:
    """Return the choice with the best schedule, of those there is time for, and the last of these; there must be a choice."""
    best, most = None, -math.inf
    for choice, schedule in choices:
        value = discounted_value(model, schedule)
        if best is None or value > most:
            best, most = choice, value
        if budget.is_over:
            break
    assert best is not None
    return best, choice
