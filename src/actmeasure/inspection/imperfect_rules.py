"""Rules in use where inspections are imperfect: by calendar, by outcome and by believed risk, each the best of its kind.

Every rule is a `PolicyGraph`, so that `am.evaluate` has its exact cost, inspections and failures; what is searched is only the
best member of each family. With w the waiting action and m a measurement:

* *calendar, kept*: wait k periods, then inspect (w with m) every k-th period. After some outcomes an action follows in the next
  period, in place of what the calendar has there; the calendar goes on.
* *calendar, restarted*: the same, but after an action k periods of waiting begin anew.
* *by outcome*: after each outcome an action or none, then a number of periods of waiting, then an inspection of some kind; all
  three depend on the outcome.
* *threshold*: inspect when the believed probability that the unit has failed after one more period of waiting exceeds a
  threshold; after some outcomes an action follows.
* *two thresholds*: act when that probability exceeds the higher one, inspect when it exceeds the lower one, otherwise wait.
* *always*: inspect in every period; *never*: act at fixed intervals or not at all, without inspections.

Where the model shows something for free (`model.passive`), its outcomes may be followed by an action in all of them.

A threshold rule decides by its belief, which is a function of what was seen. The beliefs that it reaches are the nodes of its
graph: from each the decision and, for each outcome, the next belief. Renewals lead back to beliefs that are there, and over a
finite life no belief is further away than its end, so the graph is finite; beliefs that agree to some decimals (`DIGITS`, as many
as lead to few enough nodes) share a node. The rule that is evaluated and returned is that graph, so its cost is exact. While
thresholds are compared, the value of a rule is computed on the beliefs alone, one number for each instead of one for each state.

In a system of equal components, all of them are inspected in the same way, and what is done to a component depends on its own
outcome only. Where rules have to keep limits (`judge`), the best that keeps them is returned, or the best if none was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError, quoted
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.text import RULES, rule_name, rule_words
from actmeasure.model import Model
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.system import Factors
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget
from actmeasure.policy_graph import Outcome, PolicyGraph, bind, trace_pairs
from actmeasure.settings import whole

__all__ = ["KINDS", "ComparedRule", "Course", "Judge", "compared", "course", "failure_model", "failure_rates"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: The families of rules, in the order in which they are compared.
KINDS = ("calendar-kept", "calendar-restarted", "always", "never", "threshold", "by-outcome", "two-thresholds")
#: Longest interval that is tried over an infinite horizon, unless told.
LONGEST = 30
#: Number of assignments of actions to outcomes up to which all are tried; above it, one outcome is changed at a time.
MOST_ASSIGNMENTS = 16
#: Rounds of changing one entry of a rule at a time.
MOST_ROUNDS = 20
#: Largest number of outcomes of all measurements for which rules by outcome are searched.
MOST_OUTCOMES = 40
#: Intervals that are tried at first in rules by outcome; then those next to the best.
SOME_INTERVALS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
#: Thresholds in the first grid (of one threshold; of the lower of two), in each finer one, and number of finer ones.
GRID, GRID_OF_TWO, FINER_GRID, FINER = 48, 16, 8, 2
#: Ratios of the higher threshold to the lower one.
RATIOS = (1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0, 300.0)
#: Decimals to which probabilities agree in beliefs that share a node: coarse ones first, which always lead to few beliefs.
DIGITS = (2, 3, 4, 8)
#: Largest number of nodes of a threshold rule; rules that need more are passed over.
MOST_NODES = 3_000
#: Largest number of beliefs of all threshold rules that are compared.
MOST_BELIEFS = 30_000
#: Share of the thresholds that are tried whose rules must be small enough to be listed.
LEAST_LISTED = 0.2
#: Number of rules that are too large to be listed, after which that share decides whether the search goes on.
ENOUGH_PASSED_OVER = 20
#: Periods of waiting in which the range of thresholds is looked for, over an infinite horizon.
PATH = 200
#: Relative gain that counts as one.
GAIN = 1e-10


@dataclass(frozen=True, eq=False)
class ComparedRule:
    """The best rule of a family, as a policy graph with its exact evaluation.

    Attributes
    ----------
    key : str
        One of `KINDS`.
    graph : PolicyGraph
    evaluation : Evaluation
    failures : Evaluation or None
        The number of failures as its reward: `failures.reward` in all, `failures.average_reward` per period in the long run; None
        if it is not known what a failure is.
    waiting : str
        The waiting action.
    measurement : str or None
        The inspection that it makes; None without one, or if there are several.
    interval : int or None
        Periods between inspections; of *never*, between actions.
    actions : dict from the name of an outcome to that of the action after it
        Outcomes that are not in it are followed by the waiting action.
    plans : tuple of (measurement, outcome, action, periods of waiting, next measurement)
        Of a rule by outcome; the first one, before any inspection, has no measurement and outcome.
    thresholds : tuple of float
        Probabilities of failure, the lower one first.
    by_component : bool
        Whether `actions` are those of each component of a system, by its own outcome.
    tried : int
        Number of rules that were compared.
    note : Diagnostic or None
        Why it may not be the best of its kind; None if it is.
    """

    key: str
    graph: PolicyGraph
    evaluation: Evaluation
    failures: Evaluation | None
    waiting: str
    measurement: str | None = None
    interval: int | None = None
    actions: dict[str, str] = field(default_factory=dict)
    plans: tuple[tuple[str, str, str, int, str], ...] = ()
    thresholds: tuple[float, ...] = ()
    by_component: bool = False
    tried: int = 1
    note: Diagnostic | None = None

    @property
    def name(self) -> str:
        """The rule in a few words."""
        return rule_name(self)

    def words(self, period: str = "period") -> str:
        """Return what the rule does, in sentences; `period` is what a step of the model is called."""
        return rule_words(self, period)

    @property
    def value(self) -> float:
        """Discounted return from the start; minus infinity if the sum does not exist."""
        value = self.evaluation.discounted_return
        return -math.inf if math.isnan(value) else value


def compared(
    model: Model,
    waiting: int = 0,
    failed: npt.ArrayLike | None = None,
    *,
    longest: int | None = None,
    kinds: Sequence[str] = KINDS,
    period: str = "period",
    budget: Budget | None = None,
    tell: Callable[[str], None] = lambda _: None,
    judge: Judge | None = None,
) -> tuple[list[ComparedRule], list[Diagnostic]]:
    """Return the best rule of each kind with its exact evaluation, and diagnostics of kinds that are missing.

    Parameters
    ----------
    model : Model
        With measurements of any kind; also one of `am.lifetime` or `am.system`.
    waiting : int
        The action that is taken when nothing is to be done.
    failed : bool array, shape (S,), optional
        Which states are failures; of the model of a period if this is one of `am.lifetime`. Without it, failures are not counted,
        and there are no thresholds.
    longest : int, optional
        The longest interval to try, in periods; by default the length of the life, or 30.
    kinds : sequence of str
        Some of `KINDS`.
    period : str
        What a step of the model is called, for notes.
    budget : Budget, optional
        When it is over, the best rules found by then are returned; each kind has its share of the time.
    tell : function
        Called with the name of each step.
    judge : function, optional
        Where rules have to keep limits: called with a policy graph, it returns what a search should maximise, and the value by
        which rules are chosen, which is minus infinity for one that breaks a limit. By default both are the value on the model.

    Examples
    --------
    >>> import numpy as np
    >>> import actmeasure as am
    >>> from actmeasure.inspection.imperfect_rules import compared
    >>> P = np.array([[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])     # sound, cracked; wait, repair
    >>> visual = am.Measurement.detection("visual", cost=0.1, pod=[0.05, 0.7])
    >>> model = am.Model.from_arrays(P, [[0, -5], [-2, -5]], measurements=[visual], action_names=["wait", "repair"])
    >>> rules, _ = compared(model, kinds=["calendar-restarted", "never"])
    >>> for rule in rules:
    ...     print(round(rule.value, 3), rule.words("year"))
    -13.777 Inspect (visual) every 2 years, first after 3 years; after hit: repair, and it begins anew.
    -18.731 Never inspect; repair every 10 years.
    """
    if not isinstance(model, Model):
        raise PlanError(f"the model is {quoted(model)}, expected a Model")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise PlanError(f"the kind of a rule is {quoted(unknown[0])}, expected some of: {', '.join(KINDS)}")
    search = _RuleSearch(model, whole(waiting, "waiting", 0, model.n_actions - 1, PlanError), failed, longest, period)
    search.judge = judge
    budget = budget or Budget()
    rules, notes = [], []
    for number, kind in enumerate(kinds):
        tell(f"comparing with {RULES[kind]}")
        if budget.is_over:
            notes.append(diagnostic("policy-out-of-time", policy=kind))
            continue
        try:
            rules.append(search.best(kind, budget.part(1 / (len(kinds) - number))))
        except _NoRuleError as error:
            notes.append(diagnostic("no-such-rule", policy=kind, reason=str(error)))
    return rules, notes


#: Returns the objective of a search for a policy graph, and the value by which rules are chosen.
Judge = Callable[[PolicyGraph], tuple[float, float]]


class _NoRuleError(Exception):
    """Raised where a model has no rule of a kind; the message says why."""


# Failures


def failure_rates(model: Model, failed: npt.ArrayLike) -> FloatArray:
    """Return the probability of failing in a period, by state and action, shape (S, A): of entering a failed state from another.

    Parameters
    ----------
    model : Model
    failed : bool array, shape (S,)
        Which states are failures; of the model of a period if this is one of `am.lifetime`.
    """
    life = model.origin if isinstance(model.origin, Lifetime) else None
    one = model if life is None else life.models[0]
    mask = np.asarray(failed)
    if mask.dtype != bool or mask.shape != (one.n_states,):
        raise PlanError(f"failed is {quoted(failed)}, expected {one.n_states} truth values, one for every state")
    if life is None:
        return _rates(model, mask)
    rates = np.zeros((model.n_states, model.n_actions))
    running = np.flatnonzero(~one.terminal)
    for period in range(life.periods):
        rates[period * len(running) : (period + 1) * len(running)] = _rates(life.model(period), mask)[running]
    return rates


def _rates(model: Model, failed: BoolArray) -> FloatArray:
    entering = (model.transitions.stacked() @ failed.astype(np.float64)).reshape(model.n_states, model.n_actions)
    return np.where((failed | model.terminal)[:, None], 0.0, entering)


def failure_model(model: Model, failed: npt.ArrayLike) -> Model:
    """Return the model whose rewards are the failures, with inspections for free: `evaluate` then counts failures."""
    free = tuple(replace(one, cost=0.0) for one in model.measurements)
    return replace(model, rewards=failure_rates(model, failed), transition_rewards=None, measurements=free, origin=None)


@dataclass(frozen=True, eq=False)
class Course:
    """What a policy graph does in each period, in expectation.

    Attributes
    ----------
    rewards : float64 array, shape (T,)
        Reward minus prices of measurements, undiscounted.
    looks : float64 array, shape (T, k)
        Number of measurements of each kind.
    actions : float64 array, shape (T, A)
        Probability of each action.
    failures : float64 array, shape (T,), or None
        Probability of failing in the period.
    """

    rewards: FloatArray
    looks: FloatArray
    actions: FloatArray
    failures: FloatArray | None


def course(model: Model, graph: PolicyGraph, periods: int, failed: npt.ArrayLike | None = None) -> Course:
    """Return what a policy graph does in each of the first periods, exactly.

    Parameters
    ----------
    model : Model
    graph : PolicyGraph
    periods : int
    failed : bool array, shape (S,), optional
        As of `failure_rates`.
    """
    periods = whole(periods, "periods", 1, error=PlanError)
    bound = bind(graph, model)
    pairs = trace_pairs(model, bound)
    taken, made = bound.actions[pairs.nodes], bound.measurements[pairs.nodes]
    rewards = model.rewards[pairs.states, taken]
    looks = np.zeros((len(taken), len(model.measurements)))
    for number, measurement in enumerate(model.measurements):
        here = made == number + 1
        looks[here, number] = 1.0
        rewards[here] -= measurement.table(model.n_states, model.n_actions)[pairs.states[here], taken[here]]
    columns = [rewards[:, None], looks, np.eye(model.n_actions)[taken]]
    if failed is not None:
        columns.append(failure_rates(model, failed)[pairs.states, taken][:, None])
    per_pair = np.concatenate(columns, axis=1)
    sums = np.zeros((periods, per_pair.shape[1]))
    now, moves = pairs.start, pairs.moves.T.tocsr()
    for period in range(periods):
        sums[period] = now @ per_pair
        now = np.asarray(moves @ now)
    looks_end = 1 + looks.shape[1]
    actions_end = looks_end + model.n_actions
    return Course(
        sums[:, 0], sums[:, 1:looks_end], sums[:, looks_end:actions_end], None if failed is None else sums[:, -1]
    )


# Graphs from labels


Label = Hashable
Step = tuple[Decision, dict[Outcome, Label]]


def _graph(start: Label, step: Callable[[Label], Step]) -> PolicyGraph:
    """Return the policy graph of the labels that are reached from `start`, by their decisions and edges."""
    number: dict[Label, int] = {start: 0}
    order = [start]
    decisions, edges = [], []
    for label in order:
        decision, following = step(label)
        for target in following.values():
            if target not in number:
                number[target] = len(order)
                order.append(target)
        decisions.append(decision)
        edges.append({outcome: number[target] for outcome, target in following.items()})
    return PolicyGraph(decisions, edges)


def _factors(model: Model) -> Factors | None:
    """Return the factors of a system of components, also of one over a life; None for other models."""
    one = model.origin.models[0] if isinstance(model.origin, Lifetime) else model
    return one.origin if isinstance(one.origin, Factors) else None


def _is_symmetric(factors: Factors) -> bool:
    """Return whether the components of a system are equal, and count alike."""
    first = factors.components[0]
    swapped = [factors.penalty.swapaxes(0, axis) for axis in range(factors.penalty.ndim)]
    return all(one is first for one in factors.components) and all((one == factors.penalty).all() for one in swapped)


class _Assignments:
    """Actions after the outcomes of a measurement (0: of what is shown for free), and ways to change them.

    For a system of components the action of a component depends on its own outcome only, so that there is an entry for each
    outcome of each component that is measured or, where components are equal, for each outcome of a component; otherwise there is
    one for each outcome.
    """

    def __init__(self, model: Model, measurement: int, waiting: int) -> None:
        self.waiting = waiting
        count = model.n_outcomes(measurement)
        life = model.origin if isinstance(model.origin, Lifetime) else None
        factors = _factors(model)
        parts = None if factors is None or waiting else self._of_components(factors, measurement, count)
        #: Names of the outcomes and actions of a component, where all components have the same entries.
        self.names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        if parts is None:
            #: For each part the entry of each outcome.
            self.entry_of = [np.arange(count)]
            shows = model.shown_by(measurement)
            if life is not None and shows is not None and shows.law is None:
                # Outcomes are pairs of period and state, of which the state alone counts.
                self.entry_of = [np.arange(count) % int((~life.models[0].terminal).sum())]
            self.joint = np.arange(model.n_actions)
        else:
            self.entry_of, self.joint, self.names = parts
        #: The number of entries and of actions of each part that has entries of its own.
        self.sizes = [
            (int(entries.max(initial=-1)) + 1, n) for entries, n in zip(self.entry_of, self.joint.shape, strict=True)
        ][: 1 if self.names else None]
        self.none = tuple(self.waiting if parts is None else 0 for size, _ in self.sizes for _ in range(size))

    @staticmethod
    def _of_components(
        factors: Factors, measurement: int, count: int
    ) -> tuple[list[IntArray], IntArray, tuple[tuple[str, ...], tuple[str, ...]] | None] | None:
        """Return the entries of each outcome by component, the joint action of actions of components, and their names."""
        found = np.argwhere(factors.decisions[..., 1] == measurement)
        if not len(found) or measurement == 0:
            return None
        looks = [choices[u][1] for choices, u in zip(factors.choices, found[0], strict=True)]
        sizes = [
            1 if look == 0 else law[u].shape[1]
            for look, law, u in zip(looks, factors.laws, found[0].tolist(), strict=True)
        ]
        if math.prod(sizes) != count:
            return None
        entries = [np.array(one) for one in np.unravel_index(np.arange(count), sizes)]
        # Components that are not measured keep their first action: one choice.
        plain = [[u for u, (_, look) in enumerate(choices) if look == 0] for choices in factors.choices]
        plain = [one if look else one[:1] for one, look in zip(plain, looks, strict=True)]
        joint = factors.decisions[np.ix_(*plain)][..., 0]
        if len(set(looks)) > 1 or not _is_symmetric(factors):
            return entries, joint, None
        unit, choices = factors.components[0].model, factors.choices[0]
        names = tuple(unit.outcome_name(looks[0], outcome) for outcome in range(sizes[0]))
        return entries, joint, (names, tuple(unit.action_name(choices[u][0]) for u in plain[0]))

    def actions(self, entries: Sequence[int]) -> IntArray:
        """Return the action after each outcome, shape (O,)."""
        chosen, begin = [], 0
        for place, entry in enumerate(self.entry_of):
            size, _ = self.sizes[0 if self.names else place]
            chosen.append(np.array(entries[begin : begin + size], dtype=np.int64)[entry])
            begin += 0 if self.names else size
        return np.asarray(self.joint[tuple(chosen)])

    def of_each_component(self, after: IntArray) -> dict[str, str]:
        """Return what is done to a component after its outcomes, by name, without those after which it is left alone."""
        assert self.names is not None  # components are equal
        outcomes, actions = self.names
        found = {}
        for number, outcome in enumerate(outcomes):
            alike = np.logical_and.reduce([entry == number for entry in self.entry_of])
            action = int(np.argwhere(self.joint == after[alike][0])[0][0])
            if action:
                found[outcome] = actions[action]
        return found

    @property
    def options(self) -> list[int]:
        """The number of actions of each entry."""
        return [n for size, n in self.sizes for _ in range(size)]


class _Found(NamedTuple):
    """A rule while the best one is searched: what the search maximises, the value by which it is chosen, and the rule."""

    value: float
    worth: float
    graph: PolicyGraph | None
    details: dict[str, Any]


NOTHING = _Found(-math.inf, -math.inf, None, {})


class _RuleSearch:
    """Searches the families of rules on one model."""

    def __init__(
        self, model: Model, waiting: int, failed: npt.ArrayLike | None, longest: int | None, period: str = "period"
    ) -> None:
        self.model, self.waiting, self.period = model, waiting, period
        self.life = model.origin if isinstance(model.origin, Lifetime) else None
        self.failed = None if failed is None else np.asarray(failed)
        self.counting = None if failed is None else failure_model(model, failed)
        periods = None if self.life is None else self.life.periods
        if longest is None:
            longest = LONGEST if periods is None else max(1, periods - 1)
        self.longest = whole(longest, "longest", 1, error=PlanError)
        #: Whether longer intervals than the longest would be other rules.
        self.is_limited = periods is None or self.longest < periods - 1
        #: The measurements that can be made while waiting.
        self.measurements = np.flatnonzero(model.allowed_decisions[waiting, 1:]) + 1
        #: The actions that are taken at fixed intervals or above a threshold.
        self.regular = np.arange(model.n_actions)
        factors = _factors(model)
        if factors is not None and waiting == 0 and _is_symmetric(factors):
            n = len(factors.components)
            alike = [(factors.decisions[(u,) * n], look) for u, (_, look) in enumerate(factors.choices[0])]
            self.measurements = np.array(
                [m for (a, m), look in alike if look and a == waiting and m in self.measurements], dtype=np.int64
            )
            self.regular = np.array([a for (a, _), look in alike if not look])
        elif len(model.measurements) > 1:
            # In a system those that cover most components come first, otherwise those with the fewest rules to try.
            outcomes = np.array([model.n_outcomes(m) for m in self.measurements.tolist()])
            self.measurements = self.measurements[np.argsort(outcomes if factors is None else -outcomes, kind="stable")]
        self.assignments = {m: _Assignments(model, m, waiting) for m in [0, *self.measurements.tolist()]}
        self.found = NOTHING
        self.tried, self.is_stopped, self.is_local = 0, False, False
        self.budget = Budget()
        self.judge: Judge | None = None
        #: The best calendar that begins anew with each measurement, which rules by outcome start from.
        self.restarted: dict[int, dict[str, Any]] = {}

    def best(self, kind: str, budget: Budget) -> ComparedRule:
        """Return the best rule of a kind."""
        self.found, self.budget = NOTHING, budget
        self.tried, self.is_stopped, self.is_local = 0, False, False
        self._look_for(kind)
        graph, details = self.found.graph, self.found.details
        if graph is None:
            raise _NoRuleError("time")
        interval = details.get("interval")
        note = None
        if self.is_stopped:
            note = diagnostic("policy-search-stopped")
        elif interval is not None and interval >= self.longest and self.is_limited:
            note = diagnostic("longest-interval-is-best", tried=self.longest, period=self.period)
        elif self.is_local:
            note = diagnostic("best-of-those-tried", rules=self.tried)
        return ComparedRule(
            key=kind,
            graph=graph,
            evaluation=evaluate(self.model, graph),
            failures=None if self.counting is None else evaluate(self.counting, graph),
            waiting=self.model.action_name(self.waiting),
            tried=self.tried,
            note=note,
            **details,
        )

    def _look_for(self, kind: str) -> None:
        if kind != "never" and not len(self.measurements):
            raise _NoRuleError("measurement")
        match kind:
            case "never":
                self._never()
            case "always":
                for m in self.measurements.tolist():
                    self._assign(m, partial(self._always, m), {"interval": 1})
            case "calendar-kept" | "calendar-restarted":
                self._calendars(kind == "calendar-restarted")
            case "by-outcome":
                self._by_outcome()
            case _:
                if self.failed is None:
                    raise _NoRuleError("failed")
                _Thresholds(self).search(two=kind == "two-thresholds")

    def is_over(self) -> bool:
        """Return whether the time is over, once there is a rule."""
        self.is_stopped = self.is_stopped or (self.found.graph is not None and self.budget.is_over)
        return self.is_stopped

    def offer(self, graph: PolicyGraph, details: dict[str, Any], value: float | None = None) -> float:
        """Evaluate a rule, keep it if it is the best so far, and return its value."""
        objective, worth = self.judged(graph) if value is None or self.judge is not None else (value, value)
        self.tried += 1
        found = _Found(objective if value is None else value, worth, graph, details)
        if self._is_better(found, self.found):
            self.found = found
        return found.value

    def judged(self, graph: PolicyGraph) -> tuple[float, float]:
        """Return what a search maximises for a rule, and the value by which rules are chosen; minus infinity for no number."""
        if self.judge is None:
            value = self._value(graph)
            found = (value, value)
        else:
            found = self.judge(graph)
        return -math.inf if math.isnan(found[0]) else found[0], -math.inf if math.isnan(found[1]) else found[1]

    def _value(self, graph: PolicyGraph) -> float:
        """Return the discounted return of a rule; over a life of equal periods on the model of one, which has fewer states."""
        life = self.life
        if life is None or not life.is_stationary or any(one.law is None for one in self.model.measurements):
            return evaluate(self.model, graph).discounted_return
        one = life.models[0]
        bound = bind(graph, one)
        pairs = trace_pairs(one, bound)
        taken, made = bound.actions[pairs.nodes], bound.measurements[pairs.nodes]
        rewards = one.rewards[pairs.states, taken]
        for number, measurement in enumerate(one.measurements, start=1):
            here = made == number
            rewards[here] -= measurement.table(one.n_states, one.n_actions)[pairs.states[here], taken[here]]
        values = np.zeros(len(rewards)) if life.final is None else life.final[pairs.states]
        for _ in range(life.periods):
            values = rewards + one.discount * (pairs.moves @ values)
        return float(pairs.start @ values)

    @staticmethod
    def _is_better(one: _Found, other: _Found) -> bool:
        """Return whether a rule is to be kept in place of another one: a rule that keeps all limits before one that does not."""
        if other.graph is None:
            return True
        if one.worth == other.worth == -math.inf:
            return one.value > other.value + GAIN * abs(other.value)
        return one.worth > other.worth + (GAIN * abs(other.worth) if math.isfinite(other.worth) else 0.0)

    # The families

    def _calendars(self, restarts: bool, only: int | None = None) -> None:
        best = NOTHING
        for m in self.measurements.tolist() if only is None else [only]:
            entries: tuple[int, ...] | None = None
            values: dict[int, float] = {}
            self.found = NOTHING
            for k in self._intervals(m, values):
                if self.is_over():
                    break
                values[k], entries = self._assign(m, partial(self._calendar, m, k, restarts), {"interval": k}, entries)
            if restarts and self.found.graph is not None:
                self.restarted[m] = self.found.details
            best = self.found if self._is_better(self.found, best) else best
            if self.is_stopped:
                break
        self.found = best

    def _intervals(self, m: int, values: Mapping[int, float]) -> Iterator[int]:
        """Yield the intervals to try: all, or where actions are searched some, and then those next to the best so far."""
        some = [k for k in SOME_INTERVALS if 1 <= k <= self.longest]
        yield from some
        if self._tries_all(m):
            yield from (k for k in range(1, self.longest + 1) if k not in some)
            return
        while True:
            best = max(values, key=lambda k: values[k])
            near = [k for k in (best - 1, best + 1) if 1 <= k <= self.longest and k not in values]
            if not near:
                return
            yield near[0]

    def _options(self, m: int) -> list[int]:
        """Return the number of actions of each entry of a measurement, and of what is shown for free."""
        return [*self.assignments[m].options, *(self.assignments[0].options if m else [])]

    def _tries_all(self, m: int) -> bool:
        return math.prod(self._options(m)) <= MOST_ASSIGNMENTS

    def _assign(
        self,
        m: int,
        graph_of: Callable[[IntArray, IntArray], PolicyGraph],
        details: dict[str, Any],
        begin: tuple[int, ...] | None = None,
    ) -> tuple[float, tuple[int, ...]]:
        """Offer the rules with all actions after the outcomes of a measurement, or those that a search from `begin` comes to.

        Returns the value and the entries of the best one.
        """
        own, free = self.assignments[m], self.assignments[0]
        n_own, options = len(own.options), self._options(m)

        def value_of(entries: tuple[int, ...]) -> float:
            after = own.actions(entries[:n_own])
            shown = free.actions(entries[n_own:]) if m else after
            named = self._named(m, after) | (self._named(0, shown) if m else {})
            name = self.model.measurement_name(m) if m else None
            by_component = own.names is not None
            return self.offer(
                graph_of(after, shown), details | {"measurement": name, "actions": named, "by_component": by_component}
            )

        none = own.none + (free.none if m else ())
        if self._tries_all(m):
            return max((value_of(entries), entries) for entries in product(*(range(n) for n in options)))
        self.is_local = True
        return self._exchanged(begin or none, options, value_of)

    def _exchanged(
        self, entries: tuple[int, ...], options: list[int], value_of: Callable[[tuple[int, ...]], float]
    ) -> tuple[float, tuple[int, ...]]:
        """Return value and entries to which no change of a single one is an improvement, or those when the time is over."""
        best = value_of(entries)
        for _ in range(MOST_ROUNDS):
            before = best
            for place, count in enumerate(options):
                for option in range(count):
                    if option == entries[place]:
                        continue
                    if self.is_over():
                        return best, entries
                    other = (*entries[:place], option, *entries[place + 1 :])
                    value = value_of(other)
                    if value > best + GAIN * abs(best):
                        entries, best = other, value
            if best == before:
                break
        return best, entries

    def _named(self, m: int, after: IntArray) -> dict[str, str]:
        """Return the names of outcomes that are followed by another action than waiting, with those of the actions."""
        if self.assignments[m].names is not None:
            return self.assignments[m].of_each_component(after)
        return {
            self.model.outcome_name(m, outcome): self.model.action_name(int(action))
            for outcome, action in enumerate(after)
            if action != self.waiting
        }

    def _edges(self, after: IntArray, act: Callable[[int], Label], otherwise: Label) -> dict[Outcome, Label]:
        """Return the edges after a decision: to what follows outcomes with an action, and otherwise to another label."""
        own: dict[Outcome, Label] = {
            outcome: act(int(action)) for outcome, action in enumerate(after) if action != self.waiting
        }
        return own | {None: otherwise}

    def _calendar(self, m: int, k: int, restarts: bool, after: IntArray, free: IntArray) -> PolicyGraph:
        """Return the rule that inspects every k periods; labels are the periods left, and the action that is due."""

        def step(label: Any) -> Step:
            left, due = label
            if due is not None:
                return Decision(due, 0), self._edges(
                    free, lambda a: (max(left - 1, 0), a), (k if restarts else max(left - 1, 0), None)
                )
            if left == 0:
                return Decision(self.waiting, m), self._edges(after, lambda a: (k - 1, a), (k - 1, None))
            return Decision(self.waiting, 0), self._edges(free, lambda a: (left - 1, a), (left - 1, None))

        return _graph((k, None), step)

    def _always(self, m: int, after: IntArray, free: IntArray) -> PolicyGraph:
        """Return the rule that inspects in every period in which it is possible; labels are actions."""

        def step(label: Any) -> Step:
            looks = m if self.model.allowed_decisions[label, m] else 0
            return Decision(label, looks), self._edges(after if looks else free, lambda a: a, self.waiting)

        return _graph(self.waiting, step)

    def _never(self) -> None:
        """Offer the rules without inspections: wait, and take one action every k periods."""
        longest = self.longest + (not self.is_limited)  # at the end of a life once, which no inspection is for
        for action in self.regular.tolist():
            for k in range(1, longest + 1) if action != self.waiting else [1]:
                if self.is_over():
                    return

                def graph_of(free: IntArray, _: IntArray, action: int = action, k: int = k) -> PolicyGraph:
                    def step(label: Any) -> Step:
                        left, due = label
                        if due is not None or left == 0:
                            return Decision(action if due is None else due, 0), self._edges(
                                free, lambda a: (k, a), (k - 1, None)
                            )
                        return Decision(self.waiting, 0), self._edges(free, lambda a: (k, a), (left - 1, None))

                    return _graph((k - 1, None), step)

                name = {} if action == self.waiting else {"": self.model.action_name(action)}
                details: dict[str, Any] = {"interval": None if action == self.waiting else k}
                self._assign_without_inspections(graph_of, details, name)

    def _assign_without_inspections(
        self, graph_of: Callable[[IntArray, IntArray], PolicyGraph], details: dict[str, Any], action: dict[str, str]
    ) -> None:
        free = self.assignments[0]

        def value_of(entries: tuple[int, ...]) -> float:
            after = free.actions(entries)
            return self.offer(graph_of(after, after), details | {"actions": action | self._named(0, after)})

        self._exchanged(free.none, free.options, value_of)

    # Rules by outcome

    def _by_outcome(self) -> None:
        """Search the plans after each outcome, one at a time: an action, periods of waiting, and the next inspection."""
        model = self.model
        outcomes = [(m, o) for m in self.measurements.tolist() for o in range(model.n_outcomes(m))]
        if len(outcomes) > MOST_OUTCOMES:
            raise _NoRuleError("outcomes")
        for m in self.measurements.tolist():
            if m not in self.restarted:
                before = self.found
                self._calendars(restarts=True, only=m)
                self.found = before
            if m not in self.restarted:  # no time for any
                break
            calendar = self.restarted[m]
            self._exchange_plans(outcomes, m, calendar["interval"], calendar["actions"])
        self.is_local = True

    def _exchange_plans(self, outcomes: list[tuple[int, int]], first: int, k: int, actions: Mapping[str, str]) -> None:
        """Offer rules by outcome, beginning with a calendar: its measurement, interval and actions after outcomes."""
        model = self.model
        by_name = {model.action_name(a): a for a in range(model.n_actions)}
        plans: dict[tuple[int, int] | None, tuple[int, int, int]] = {None: (self.waiting, k, first)}
        for m, o in outcomes:
            action = self._action_after(m, o, actions, by_name)
            # The inspection itself was a period of waiting.
            plans[m, o] = (action, k - 1 if action == self.waiting else k, first)
        free = self._free_after(actions, by_name)
        best = self._offer_plans(plans, free)
        for _ in range(MOST_ROUNDS):
            before = best
            for key in [None, *outcomes]:
                for plan in self._plans_near(plans[key], key is None):
                    if self.is_over():
                        return
                    value = self._offer_plans(plans | {key: plan}, free)
                    if value > best + GAIN * abs(best):
                        plans[key], best = plan, value
            if best == before:
                break

    def _free_after(self, actions: Mapping[str, str], by_name: Mapping[str, int]) -> IntArray:
        """Return the action after each outcome that is shown for free, shape (O,)."""
        count = self.model.n_outcomes(0)
        named = [actions.get(self.model.outcome_name(0, o), "") for o in range(count)]
        return np.array([by_name.get(name, self.waiting) for name in named], dtype=np.int64)

    def _plans_near(self, plan: tuple[int, int, int], is_first: bool) -> Iterator[tuple[int, int, int]]:
        """Yield the plans to try in place of one."""
        waits = sorted({k for k in SOME_INTERVALS if k < self.longest} | {plan[1] - 1, plan[1] + 1, self.longest})
        for action in [self.waiting] if is_first else range(self.model.n_actions):
            for wait in waits:
                for m in self.measurements.tolist():
                    if 0 <= wait <= self.longest and (action, wait, m) != plan:
                        yield action, wait, m

    def _action_after(self, m: int, outcome: int, named: Mapping[str, str], by_name: Mapping[str, int]) -> int:
        """Return the action after an outcome from the names of a rule: of the model, or of each component."""
        own = self.assignments[m]
        if own.names is None:
            return by_name.get(named.get(self.model.outcome_name(m, outcome), ""), self.waiting)
        outcomes, actions = own.names
        entries = [actions.index(named[one]) if one in named else 0 for one in outcomes]
        return int(own.actions(entries)[outcome])

    def _offer_plans(self, plans: Mapping[tuple[int, int] | None, tuple[int, int, int]], free: IntArray) -> float:
        """Evaluate a rule by outcome; labels are the action that is due, the periods of waiting, and the next inspection."""
        used: set[tuple[int, int]] = set()

        def label_of(plan: tuple[int, int, int]) -> Label:
            action, wait, m = plan
            return (None if action == self.waiting else action, wait, m)

        def step(label: Any) -> Step:
            due, wait, m = label
            if due is not None:
                return Decision(due, 0), self._edges(free, lambda a: (a, wait, m), (None, wait, m))
            if wait > 0:
                return Decision(self.waiting, 0), self._edges(free, lambda a: (a, wait - 1, m), (None, wait - 1, m))
            edges: dict[Outcome, Label] = {}
            for o in range(self.model.n_outcomes(m)):
                used.add((m, o))
                edges[o] = label_of(plans[m, o])
            return Decision(self.waiting, m), edges

        graph = _graph(label_of(plans[None]), step)
        named = [("", "", *self._plan_names(plans[None]))] + [
            (self.model.measurement_name(m), self.model.outcome_name(m, o), *self._plan_names(plans[m, o]))
            for m, o in sorted(used)
        ]
        return self.offer(graph, {"plans": tuple(named), "actions": self._named(0, free)})

    def _plan_names(self, plan: tuple[int, int, int]) -> tuple[str, int, str]:
        action, wait, m = plan
        return self.model.action_name(action), wait, self.model.measurement_name(m)


# Thresholds on the believed probability of failure


class _Thresholds:
    """Searches the rules that inspect, or act, when the believed probability of failure exceeds a threshold."""

    def __init__(self, rules: _RuleSearch) -> None:
        self.rules, self.waiting = rules, rules.waiting
        # Over a life of equal periods the rule does not depend on the period, so that beliefs are those of one period's model.
        # Outcomes that show the state exactly are numbers of states, which are not the same in the two models.
        looks_err = all(one.law is not None for one in rules.model.measurements)
        stationary = rules.life is not None and rules.life.is_stationary and looks_err
        self.model = rules.life.models[0] if rules.life is not None and stationary else rules.model
        self.periods = rules.life.periods if rules.life is not None and stationary else None
        self.depth = None if rules.life is None else rules.life.periods
        self.final = rules.life.final if rules.life is not None and stationary else None
        assert rules.failed is not None  # checked by the caller
        self.rates = failure_rates(self.model, rules.failed)
        failed = self._failed(rules.failed)
        #: Probability of being failed after one period of waiting, by state, shape (S,).
        self.risks = np.where(failed & ~self.model.terminal, 1.0, self.rates[:, self.waiting])
        self.digits = DIGITS[0]
        #: Number of rules that reached too many beliefs.
        self.passed_over = 0
        self._clear()

    def _failed(self, failed: BoolArray) -> BoolArray:
        """Return which states of the model are failures, shape (S,)."""
        life = self.model.origin
        if not isinstance(life, Lifetime):
            return failed
        timed = np.tile(failed[~life.models[0].terminal], life.periods)
        return np.append(timed, np.zeros(self.model.n_states - len(timed), dtype=bool))

    def _clear(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.beliefs: list[Belief] = []
        self.risk: list[float] = []
        self.moves: dict[tuple[int, Decision], tuple[float, list[tuple[Outcome, float, int]]]] = {}

    def search(self, two: bool) -> None:
        """Offer the best rule with one threshold, or with two: that of the finest beliefs that can be listed in time.

        Values that are compared while thresholds are searched are those of rounded beliefs. Which of the rules of two roundings
        is kept is decided by their exact values.
        """
        rules = self.rules
        rules.is_local = True
        best, tried = NOTHING, 0
        for digits in DIGITS:
            self.digits, self.passed_over, rules.tried = digits, 0, 0
            rules.found = NOTHING
            self._clear()
            try:
                self._search(two)
            except _TooManyBeliefsError:
                break
            graph = rules.found.graph
            if graph is None or not (self._lists_enough() or rules.is_stopped):
                break
            tried += rules.tried
            value, worth = rules.judged(graph)
            exact = rules.found._replace(value=value, worth=worth)
            best = exact if rules._is_better(exact, best) else best
            if rules.is_over():
                break
        if best.graph is None:
            raise _NoRuleError("beliefs")
        rules.found, rules.tried = best, tried

    def _lists_enough(self) -> bool:
        """Return whether enough of the rules can be listed: the best of a few of them would say nothing about the others."""
        return self.rules.tried > LEAST_LISTED * (self.rules.tried + self.passed_over)

    def _search(self, two: bool) -> None:
        low, high = self._range()
        for m in self.rules.measurements.tolist():
            own = self.rules.assignments[m]
            if two:
                for action in self.rules.regular.tolist():
                    if action != self.waiting:
                        self._refine(low, high, partial(self._value, m, action, None), RATIOS)
                continue
            for entries in self._responses(m, own):
                after = own.actions(entries)
                self._refine(low, high, partial(self._value, m, None, after), (1.0,))

    def _responses(self, m: int, own: _Assignments) -> Iterable[tuple[int, ...]]:
        """Return the actions after outcomes to try: all, or those of the best calendar with this measurement."""
        if math.prod(own.options) <= MOST_ASSIGNMENTS:
            return [entries for entries in product(*(range(n) for n in own.options)) if entries != own.none]
        other = _RuleSearch(self.rules.model, self.waiting, None, self.rules.longest)
        other.budget = self.rules.budget
        interval = max(1, self.rules.longest // 6)  # one at which actions after outcomes differ in value
        graph_of = partial(other._calendar, m, interval, True)
        _, found = other._assign(m, graph_of, {"interval": interval})
        entries = found[: len(own.options)]
        return [entries] if entries != own.none else []

    def _range(self) -> tuple[float, float]:
        """Return the smallest and the largest believed probability of failure while waiting from the start."""
        now = self._number(Belief.start(self.model))
        seen = []
        for _ in range(self.depth or PATH):
            seen.append(self.risk[now])
            now = self._number(self.beliefs[now].predict(self.model, self.waiting))
            if self.beliefs[now].is_over:
                break
        positive = [risk for risk in seen if risk > 0]
        if not positive:
            raise _NoRuleError("no failure")
        return min(positive) * 0.5, max(positive)

    def _refine(
        self, low: float, high: float, value_of: Callable[[tuple[float, float]], float], ratios: Sequence[float]
    ) -> None:
        """Offer rules with thresholds of a grid, and then of finer grids around the best."""
        lower: Sequence[float] = list(np.geomspace(low, high, GRID if len(ratios) == 1 else GRID_OF_TWO))
        chosen = ratios
        for finer in range(FINER + 1):
            values: dict[tuple[float, float], float] = {}
            # In an order in which the first few are spread over all, in case the time is over before the last.
            for threshold in [*lower[::4], *lower[2::4], *lower[1::2]]:
                for ratio in chosen:
                    if self.rules.is_over():
                        return
                    pair = (threshold, min(threshold * ratio, 1.0))
                    try:
                        values[pair] = value_of(pair)
                    except _TooManyBeliefsError:
                        values[pair] = -math.inf
                        self.passed_over += 1
                        if self.passed_over >= ENOUGH_PASSED_OVER and not self._lists_enough():
                            raise
            best = max(values, key=lambda pair: values[pair])
            step = (lower[-1] / lower[0]) ** (1 / (len(lower) - 1))
            lower = list(best[0] * np.geomspace(1 / step, step, FINER_GRID + 1))
            if len(chosen) > 1:
                width = 2.0 if finer == 0 else 1.3
                chosen = tuple(max(best[1] / best[0] * factor, 1.0) for factor in (1 / width, 1.0, width))

    def _number(self, belief: Belief) -> int:
        """Return the number of a belief, a new one unless there is one that agrees with it."""
        rounded = np.round(belief.probabilities, self.digits)
        kept = rounded > 0
        key = belief.states[kept].tobytes() + rounded[kept].tobytes()
        if key not in self.numbers:
            if len(self.beliefs) >= MOST_BELIEFS:
                raise _TooManyBeliefsError
            self.numbers[key] = len(self.beliefs)
            self.beliefs.append(belief)
            self.risk.append(float(belief.probabilities @ self.risks[belief.states]) if not belief.is_over else 0.0)
        return self.numbers[key]

    def _after(self, number: int, decision: Decision) -> tuple[float, list[tuple[Outcome, float, int]]]:
        """Return the expected reward of a decision, and the probability of each outcome with the belief that it leads to."""
        key = (number, decision)
        if key in self.moves:
            return self.moves[key]
        model, belief = self.model, self.beliefs[number]
        action, m = decision
        reward = float(belief.probabilities @ model.rewards[belief.states, action])
        if m:
            costs = model.measurements[m - 1].table(model.n_states, model.n_actions)
            reward -= float(belief.probabilities @ costs[belief.states, action])
        running = belief.running_probability(model, action)
        after = belief.predict(model, action)
        shows = model.shown_by(m)
        moves: list[tuple[Outcome, float, int]] = []
        if after.is_over:
            pass
        elif shows is None:
            moves.append((None, running, self._number(after)))
        elif shows.law is None:
            for state, chance in zip(after.states.tolist(), after.probabilities.tolist(), strict=True):
                moves.append((state, running * chance, self._number(Belief.at(state))))
        else:
            law = shows.law.of_action(action, model.n_states)[after.states].toarray() * after.probabilities[:, None]
            for outcome, chance in enumerate(law.sum(axis=0).tolist()):
                if chance > 0:
                    likely = law[:, outcome] > 0
                    weights = law[likely, outcome]
                    moves.append(
                        (outcome, running * chance, self._number(Belief(after.states[likely], weights / weights.sum())))
                    )
        self.moves[key] = reward, moves
        return self.moves[key]

    def _decision(self, label: tuple[int, int | None], m: int, pair: tuple[float, float], act: int | None) -> Decision:
        """Return the decision of a node: the action that is due, or by the thresholds."""
        number, due = label
        if due is not None:
            return Decision(due, 0)
        if act is not None and self.risk[number] > pair[1]:
            return Decision(act, 0)
        return Decision(self.waiting, m if self.risk[number] > pair[0] else 0)

    def _value(self, m: int, act: int | None, after: IntArray | None, pair: tuple[float, float]) -> float:
        """Return the value of a rule, computed on its beliefs, after offering it."""
        starts = self._starts()
        number: dict[tuple[int, int | None], int] = {(start, None): i for i, start in enumerate(dict.fromkeys(starts))}
        order = list(number)
        depth = dict.fromkeys(order, 0)
        decisions: list[Decision] = []
        edges: list[dict[Outcome, int]] = []
        rewards, rows, columns, chances = [], [], [], []
        for place, label in enumerate(order):
            decision = self._decision(label, m, pair, act)
            reward, moves = self._after(label[0], decision)
            decisions.append(decision)
            rewards.append(reward)
            edges.append({})
            if self.depth is not None and depth[label] >= self.depth:
                edges[-1][None] = place  # life has ended
                continue
            for outcome, chance, belief in moves:
                due = None
                if (
                    after is not None
                    and decision.measurement
                    and isinstance(outcome, int)
                    and after[outcome] != self.waiting
                ):
                    due = int(after[outcome])
                target = (belief, due)
                if target not in number:
                    if len(order) >= MOST_NODES:
                        raise _TooManyBeliefsError
                    number[target] = len(order)
                    order.append(target)
                    depth[target] = depth[label] + 1
                edges[-1][outcome] = number[target]
                rows.append(place)
                columns.append(number[target])
                chances.append(chance)
            # Outcomes that rounding has made impossible in the belief of this node, but not in another one that shares it.
            if decision.measurement or self.model.passive is not None:
                likeliest = max(moves, key=lambda move: move[1], default=None)
                if likeliest is not None and likeliest[0] in edges[-1]:
                    edges[-1][None] = edges[-1][likeliest[0]]
        matrix = sparse.csr_array((chances, (rows, columns)), shape=(len(order), len(order)))
        values = self._solved(matrix, np.array(rewards), order)
        weights = self.model.initial_probabilities if len(starts) > 1 else np.ones(1)
        value = float(sum(w * values[number[start, None]] for w, start in zip(weights, starts, strict=True)))
        found = self.rules.found
        # Where there are limits, a rule that keeps them may be worth less than one that does not.
        is_allowed = self.rules.judge is None or math.isfinite(found.worth)
        if value > found.value or found.graph is None or not is_allowed:
            begin: Any = 0
            if len(starts) > 1:
                begin = {int(s): number[b, None] for s, b in zip(self.rules.model.initial_states, starts, strict=True)}
            details: dict[str, Any] = {
                "measurement": self.model.measurement_name(m),
                "thresholds": pair if act is not None else pair[:1],
                "actions": {"": self.model.action_name(act)} if act is not None else self.rules._named(m, after),  # type: ignore[arg-type]
                "by_component": act is None and self.rules.assignments[m].names is not None,
            }
            self.rules.offer(PolicyGraph(decisions, edges, begin), details, value)
        else:
            self.rules.tried += 1
        return value

    def _starts(self) -> list[int]:
        """Return the beliefs with which an episode begins: one, or one for each state that may be shown."""
        if self.model.start_is_known and len(self.model.initial_states) > 1:
            return [self._number(Belief.at(int(state))) for state in self.model.initial_states]
        return [self._number(Belief.start(self.model))]

    def _solved(self, moves: sparse.csr_array, rewards: FloatArray, order: list[tuple[int, int | None]]) -> FloatArray:
        """Return the value of each node, shape (n_nodes,): over the life, or over all time."""
        discount = self.rules.model.discount
        if self.periods is None:
            system = sparse.eye_array(len(rewards), format="csc") - discount * moves.tocsc()
            return np.asarray(linalg.spsolve(system, rewards))
        values = np.zeros(len(rewards))
        if self.final is not None:
            values = np.array(
                [float(self.beliefs[b].probabilities @ self.final[self.beliefs[b].states]) for b, _ in order]
            )
        for _ in range(self.periods):
            values = rewards + discount * (moves @ values)
        return values


class _TooManyBeliefsError(Exception):
    """A threshold rule reaches too many beliefs."""
