"""What else could be done: the usual ways to inspect, each at its best, beside the plan."""

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
from actmeasure.inspection.money import Units
from actmeasure.inspection.schedules import best_in_hand, discounted_value, discounted_values
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.baselines import Control
from actmeasure.planning.budget import Clock
from actmeasure.planning.solve import solve
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Calendars", "ComparedPolicy", "ConditionRule", "ConditionRules", "best_rounds", "usual_policies"]

#: Intervals are tried up to this many times the longest one of the plan, and at least and at most up to so many periods.
LONGER, LEAST_LONGEST, MOST_LONGEST = 2, 30, 400
#: So many states are named in a rule.
STATES_NAMED = 12


@dataclass(frozen=True, eq=False)
class ComparedPolicy:
    """A way to inspect and what it is worth, exactly.

    Attributes
    ----------
    key : str
        `plan`, `always`, `never`, `every-k`, `one-interval` or `by-condition`.
    name : str
        In a few words.
    rule : str
        In a sentence.
    schedule : Schedule
    evaluation : Evaluation
    note : str
        What limits the claim that it is the best of its kind; else empty.
    """

    key: str
    name: str
    rule: str
    schedule: Schedule
    evaluation: Evaluation
    note: str = ""

    @property
    def value(self) -> float:
        """Discounted return from the start; minus infinity where it loses without end."""
        value = self.evaluation.discounted_return
        return -math.inf if math.isnan(value) else value


def usual_policies(
    model: Model, plan: Schedule, units: Units, clock: Clock, tell: Callable[[str], None]
) -> tuple[list[ComparedPolicy], list[Diagnostic]]:
    """Return the best policies that inspect always, never, at intervals and by condition, and diagnostics of missing ones."""
    longest = _longest(plan)
    makers: list[tuple[str, Callable[[Clock], ComparedPolicy]]] = [
        ("inspecting every period", lambda clock: _always(model, units, clock)),
        ("never inspecting", lambda clock: _never(model, longest, clock)),
        ("inspecting by the calendar", lambda clock: _calendar(model, units, longest, clock)),
        ("one interval", lambda clock: _one_interval(model, units, longest, clock)),
        ("intervals by condition", lambda clock: _by_condition(model, units, longest, clock)),
    ]
    found, notes = [], []
    for number, (name, make) in enumerate(makers):
        tell(f"comparing with {name}")
        if clock.is_over:
            notes.append(diagnostic("policy-out-of-time", policy=name))
            continue
        try:
            found.append(make(clock.part(1 / (len(makers) - number))))
        except PlanError as error:
            notes.append(diagnostic("policy-failed", policy=name, reason=str(error)))
    return found, notes


def _longest(plan: Schedule) -> int:
    """The longest interval that is tried."""
    looks = [len(one) for one in (*plan.plans, *([plan.start] if plan.start else [])) if one.then == "measure"]
    return int(np.clip(LONGER * max(looks, default=0), LEAST_LONGEST, MOST_LONGEST))


def _always(model: Model, units: Units, clock: Clock) -> ComparedPolicy:
    solution = solve(model, "always", time_limit=_left(clock))
    return ComparedPolicy(
        "always",
        f"inspect every {units.period}",
        f"Inspect at the end of every {units.period} and do what is best for what was seen.",
        solution.schedule,
        solution.evaluation,
    )


def _never(model: Model, longest: int, clock: Clock) -> ComparedPolicy:
    tolerance = 1e-6 * (float(np.abs(model.rewards).max()) or 1.0)
    in_rounds = best_rounds(model, longest, clock.part(0.5))
    solution = solve(model, "never", tolerance, _left(clock))
    best, _ = best_in_hand(solution, [("in rounds", in_rounds)], math.inf)
    bound = solution.method_upper
    is_closed = solution.stopped in ("closed", "done") or (bound is not None and bound - best.value <= tolerance)
    return ComparedPolicy(
        "never",
        "never inspect",
        f"Never inspect; act by the clock alone, {'as well as that can be done' if is_closed else 'in the best way found'}.",
        best.schedule,
        best.evaluation,
        "" if is_closed else "The best found; a better way that never inspects may exist.",
    )


def _left(clock: Clock) -> float | None:
    """Seconds that are left, a moment at least."""
    return None if clock.limit is None else max(clock.limit - clock.seconds, 0.05)


def _calendar(model: Model, units: Units, longest: int, clock: Clock) -> ComparedPolicy:
    calendars = Calendars(model)
    k, tried = calendars.best(longest, clock)
    schedule = calendars.schedule(k)
    return ComparedPolicy(
        "every-k",
        f"by the calendar, every {_count(k, units)}",
        f"Inspect every {_count(k, units)}, whatever was seen, with act-then-measure's control in between, which need not be the "
        f"best. The best of all intervals from 1 to {units.periods(tried)}.",
        schedule,
        evaluate(model, schedule),
        _limit_note(k, tried, longest, units),
    )


def _one_interval(model: Model, units: Units, longest: int, clock: Clock) -> ComparedPolicy:
    search = ConditionRules(model, longest, clock)
    rule = search.one_interval()
    k = int(rule.intervals[0])
    states = np.flatnonzero(~model.terminal)
    return _rule_policy(
        model, rule, "one-interval", f"every {_count(k, units)}, act on what is seen",
        f"Inspect every {_count(k, units)}; {'; '.join(_grouped(model, rule, states))}. Until the next inspection: "
        f"{model.action_name(int(rule.waiting[states[0]]))}. The best of all rules of this kind with intervals from 1 to "
        f"{units.periods(search.longest)}.",
        _limit_note(k, search.longest, longest, units),
    )  # fmt: skip


def _by_condition(model: Model, units: Units, longest: int, clock: Clock) -> ComparedPolicy:
    search = ConditionRules(model, longest, clock)
    rule = search.by_condition()
    used = rule.intervals[:-1][~model.terminal]
    span = f"{used.min()} to {units.periods(int(used.max()))}" if used.min() < used.max() else units.periods(used[0])
    late = "The search was stopped before it was done; more time may find a better rule." if clock.is_over else ""
    return _rule_policy(
        model, rule, "by-condition", f"interval by condition: {span}",
        f"After what an inspection shows, do one thing, then wait; the next inspection follows after {span}, depending on "
        f"what was seen. The best of all rules of this kind with intervals from 1 to {units.periods(search.longest)}.",
        late or _limit_note(int(used.max()), search.longest, longest, units),
    )  # fmt: skip


def _rule_policy(model: Model, rule: ConditionRule, key: str, name: str, words: str, note: str) -> ComparedPolicy:
    schedule = rule.schedule(model)
    return ComparedPolicy(key, name, words, schedule, evaluate(model, schedule), note)


def _grouped(model: Model, rule: ConditionRule, states: np.ndarray) -> Iterator[str]:
    """Which states call for which action."""
    for action in np.unique(rule.first[states]):
        names = [model.state_name(int(state)) for state in states if rule.first[state] == action]
        more = f" and {len(names) - STATES_NAMED} more" if len(names) > STATES_NAMED else ""
        yield f"after seeing {', '.join(names[:STATES_NAMED])}{more}: {model.action_name(int(action))}"


def _count(k: int, units: Units) -> str:
    return units.period if k == 1 else units.periods(k)


def _limit_note(k: int, tried: int, longest: int, units: Units) -> str:
    if k >= tried:
        return f"The best interval is the longest that was tried, {units.periods(tried)}; longer ones may be better."
    return f"Intervals above {units.periods(tried)} were not tried, to save time." if tried < longest else ""


# ----------------------------------------------------------------------------------------------------
# Inspection by the calendar: the best number of periods between two inspections.
# ----------------------------------------------------------------------------------------------------


@dataclass
class BlindPath:
    """Where control leads from a belief without a look: actions, and the states possible after each of them."""

    belief: Belief
    actions: list[int] = field(default_factory=list)
    possible: list[list[int]] = field(default_factory=list)


class Calendars:
    """Schedules that look at every k-th step, with act-then-measure's control in between.

    They are those of `solve(model, "every-k")`. The control does not depend on k, so the way from a state is followed once
    for all of them.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._control = Control(model)
        self._paths: dict[int | None, BlindPath] = {}

    def schedule(self, k: int) -> Schedule:
        """Look at every k-th step."""
        model = self.model
        start, found = None, [int(state) for state in model.initial_states]
        if not model.start_is_known:
            start, found = self._plan(None, k)
        plans: dict[int, BlindPlan] = {}
        while found:
            state = found.pop()
            if state not in plans:
                plans[state], further = self._plan(state, k)
                found += further
        return Schedule(plans, model.n_states, start)

    def best(self, longest: int, clock: Clock) -> tuple[int, int]:
        """The best k up to `longest`, and the last k that was tried before time was over."""
        best, most = 1, -math.inf
        for k in range(1, longest + 1):
            value = discounted_value(self.model, self.schedule(k))
            if value > most:
                best, most = k, value
            if clock.is_over:
                break
        return best, k

    def _plan(self, state: int | None, k: int) -> tuple[BlindPlan, list[int]]:
        """The first k steps from a known state (None: the start), and what may be seen then."""
        path = self._paths.get(state)
        if path is None:
            belief = Belief.start(self.model) if state is None else Belief.at(state)
            path = self._paths[state] = BlindPath(belief)
        while len(path.actions) < k and not path.belief.is_over:
            action = self._control(path.belief)
            path.belief = path.belief.predict(self.model, action)
            path.actions.append(action)
            path.possible.append([int(state) for state in path.belief.states])
        if len(path.actions) < k:
            return BlindPlan(tuple(path.actions), then="end"), []
        return BlindPlan(tuple(path.actions[:k]), then="measure"), list(path.possible[k - 1])


# ----------------------------------------------------------------------------------------------------
# Rules that engineers write down: act on what the inspection showed, then wait until the next one.
#
# A condition rule says, for every state that an inspection may show: do one action, then wait with another one, and inspect k
# periods after the last inspection. Nothing is done in between but waiting. There are two families:
#
# - *interval by condition*: the first action, the action to wait with and k may all depend on the state seen;
# - *one interval*: only the first action may; k and the action to wait with are the same for all states.
#
# Both are searched exactly. Whoever inspects by such a rule faces a decision process over the states seen; policy iteration
# finds its best policy, and every rule on the way is evaluated by a linear solve.
# ----------------------------------------------------------------------------------------------------


#: A change of a rule has to gain more than this, relative to the largest reward or price.
LEAST_GAIN = 1e-10
#: Policy iteration ends long before; this is for rounding that goes in circles.
MOST_ROUNDS = 100
#: A round over all intervals may take so many multiplications with an entry of the transition table.
MOST_WORK = 1_000_000_000

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConditionRule:
    """What to do in each state, and how long to wait; the last entry is for a start that is not shown.

    Attributes
    ----------
    first, waiting : int64 arrays, shape (S + 1,)
        The action taken on what was seen, and the one to wait with until the next inspection.
    intervals : int64 array, shape (S + 1,)
        Periods from one inspection to the next.
    """

    first: IntArray
    waiting: IntArray
    intervals: IntArray

    def plan(self, state: int) -> BlindPlan:
        """The plan after seeing a state."""
        waits = (int(self.waiting[state]),) * (int(self.intervals[state]) - 1)
        return BlindPlan((int(self.first[state]), *waits), then="measure")

    def schedule(self, model: Model) -> Schedule:
        """A plan for every state that is not terminal, and for the start where it is not shown."""
        plans = {int(state): self.plan(int(state)) for state in np.flatnonzero(~model.terminal)}
        return Schedule(plans, model.n_states, None if model.start_is_known else self.plan(-1))

    def changed(self, better: npt.NDArray[np.bool_], other: ConditionRule) -> ConditionRule:
        """The rule with another one's entries where those are better."""
        return ConditionRule(
            np.where(better, other.first, self.first),
            np.where(better, other.waiting, self.waiting),
            np.where(better, other.intervals, self.intervals),
        )


class ConditionRules:
    """The search for the best condition rules of a model.

    Parameters
    ----------
    model : Model
    longest : int
        The longest interval to try; less where a large model would make that too much work.
    clock : Clock
        When it is over, the best found by then is returned.
    """

    def __init__(self, model: Model, longest: int, clock: Clock) -> None:
        self.model, self.clock = model, clock
        self._table = model.transitions.stacked()
        work = max(1, self._table.nnz) * model.n_actions
        #: Intervals up to so many periods are tried.
        self.longest = max(1, min(longest, MOST_WORK // work))
        self._gain = LEAST_GAIN * float(np.abs(model.rewards).max() + model.measuring_costs.max())
        self._first = np.append(np.maximum(Control(model).actions, 0), 0)

    def by_condition(self) -> ConditionRule:
        """The best rule whose interval may depend on the state seen."""
        rule, _ = self._best(self._same_for_all(self._first, 1, 0), 1, self.longest, range(self.model.n_actions))
        return rule

    def one_interval(self) -> ConditionRule:
        """The best rule with one interval, and one action to wait with, for all states."""
        best, most = self._best(self._same_for_all(self._first, 1, 0), 1, 1, (0,))
        rules = dict.fromkeys(range(self.model.n_actions), best)
        for k in range(2, self.longest + 1):
            for wait, last in rules.items():
                # What was best for one interval is nearly so for the next, so that few rounds are left.
                rule, value = self._best(self._same_for_all(last.first, k, wait), k, k, (wait,))
                rules[wait] = rule
                if value > most + self._gain:
                    best, most = rule, value
            if self.clock.is_over:
                self.longest = k
                break
        return best

    def _same_for_all(self, first: IntArray, k: int, wait: int) -> ConditionRule:
        """The same interval and action to wait with everywhere."""
        return ConditionRule(first, np.full(len(first), wait), np.full(len(first), k))

    def _best(
        self, rule: ConditionRule, shortest: int, longest: int, waits: Sequence[int]
    ) -> tuple[ConditionRule, float]:
        """Policy iteration from a rule, over intervals and actions to wait with; also what the result is worth."""
        for _ in range(MOST_ROUNDS):
            values = discounted_values(self.model, rule.schedule(self.model))
            worth, other = self._choices(values, shortest, longest, waits)
            better = np.append(worth[:-1] > values + self._gain, True)  # the start changes no state's value
            rule = rule.changed(better, other)
            if not better[:-1].any() or self.clock.is_over:
                break
        model = self.model
        shown = model.initial_probabilities @ values[model.initial_states]
        return rule, float(shown if model.start_is_known else worth[-1])

    def _choices(
        self, values: FloatArray, shortest: int, longest: int, waits: Sequence[int]
    ) -> tuple[FloatArray, ConditionRule]:
        """For every state and the start the best choice if a state once seen is worth `values`, and its worth."""
        model = self.model
        worth = np.full(model.n_states + 1, -np.inf)
        rule = self._same_for_all(self._first, 1, waits[0])
        ahead = np.repeat(values[:, None], len(waits), axis=1)  # column: with which action one waits
        price = model.measuring_costs[:, :, None]
        for k in range(1, longest + 1):
            options = model.rewards[:, :, None] + model.discount * self._before(ahead)
            options -= price if k == 1 else 0.0
            if k >= shortest:
                rule, worth = _updated(rule, worth, self._with_start(options), k, waits)
            ahead = np.stack([options[:, wait, column] for column, wait in enumerate(waits)], axis=1)
        return worth, rule

    def _before(self, ahead: FloatArray) -> FloatArray:
        """What the next state is worth before each action, shape (S, A, W), from shape (S, W)."""
        return np.asarray(self._table @ ahead).reshape(self.model.n_states, self.model.n_actions, -1)

    def _with_start(self, options: FloatArray) -> FloatArray:
        """Options from a start that is not shown as one more row, shape (S + 1, A, W)."""
        return np.concatenate([options, Belief.start(self.model).expected(options)[None]])


def _updated(
    rule: ConditionRule, worth: FloatArray, options: FloatArray, k: int, waits: Sequence[int]
) -> tuple[ConditionRule, FloatArray]:
    """A rule and its worth, with the interval k where that is better; options have the shape (S + 1, A, W)."""
    flat = options.reshape(len(options), -1)
    place = flat.argmax(axis=1)
    here = flat[np.arange(len(flat)), place]
    first, column = np.divmod(place, len(waits))
    other = ConditionRule(first, np.asarray(waits)[column], np.full(len(flat), k))
    return rule.changed(here > worth, other), np.maximum(worth, here)


# ----------------------------------------------------------------------------------------------------
# Acting by the clock alone, in rounds: wait for some periods, act, and begin again.
# ----------------------------------------------------------------------------------------------------


Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Round:
    """Wait with one action, take another one once in `length` periods."""

    wait: int
    act: int
    length: int

    def plan(self, lead: int) -> BlindPlan:
        """Wait for `lead` periods before the first act, then go on in rounds."""
        actions = (self.wait,) * lead + (self.act,)
        if len(actions) < self.length:
            actions += (self.wait,) * (self.length - 1)  # the act, then what is left of its round
        return BlindPlan(actions, then="repeat", repeat=self.length)


def best_rounds(model: Model, longest: int, clock: Clock) -> Schedule:
    """The best schedule of rounds up to a length that was found in the time; the first act may depend on the first state.

    One round is chosen for all first states, with the act at its end; then, for each of them, when to act first.
    """
    states: list[int | None] = [int(state) for state in model.initial_states] if model.start_is_known else [None]
    rounds = (
        (one, _schedule(model, dict.fromkeys(states, one.plan(one.length - 1)))) for one in _rounds(model, longest)
    )
    chosen = _best(model, rounds, clock)
    plans: dict[int | None, BlindPlan] = {}
    for state in states:
        there = model if state is None else model.replace(initial=state)
        leads = ((lead, _schedule(there, {state: chosen.plan(lead)})) for lead in range(chosen.length - 1, -1, -1))
        plans[state] = chosen.plan(_best(there, leads, clock))
    return _schedule(model, plans)


def _rounds(model: Model, longest: int) -> Iterator[Round]:
    for length in range(1, longest + 1):
        for act in range(model.n_actions):
            for wait in range(model.n_actions):
                if (wait != act) == (length > 1):  # alone, an action needs no other one to wait with
                    yield Round(wait, act, length)


def _schedule(model: Model, plans: dict[int | None, BlindPlan]) -> Schedule:
    known = {state: plan for state, plan in plans.items() if state is not None}
    return Schedule(known, model.n_states, plans.get(None))


def _best(model: Model, choices: Iterable[tuple[Choice, Schedule]], clock: Clock) -> Choice:
    """The choice whose schedule is worth most, of those there is time for; the first one always is tried."""
    best, most = None, -math.inf
    for choice, schedule in choices:
        value = discounted_value(model, schedule)
        if best is None or value > most:
            best, most = choice, value
        if clock.is_over:
            break
    assert best is not None  # there is always a first choice
    return best
