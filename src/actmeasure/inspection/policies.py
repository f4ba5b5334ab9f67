"""What else could be done: the usual ways to inspect, each at its best, beside the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.inspection.best import best_in_hand
from actmeasure.inspection.calendar import Calendars
from actmeasure.inspection.condition_rules import ConditionRule, ConditionRules
from actmeasure.inspection.rounds import best_rounds
from actmeasure.inspection.units import Units
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.solve import solve
from actmeasure.schedule import Schedule

__all__ = ["Policy", "usual_policies"]

#: Intervals are tried up to this many times the longest one of the plan, and at least and at most up to so many periods.
LONGER, LEAST_LONGEST, MOST_LONGEST = 2, 30, 400
#: So many states are named in a rule.
STATES_NAMED = 12


@dataclass(frozen=True, eq=False)
class Policy:
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
) -> tuple[list[Policy], list[str]]:
    """Inspecting always, never, by the calendar and by condition; and sentences about those there was no time for."""
    longest = _longest(plan)
    makers: list[tuple[str, Callable[[Clock], Policy]]] = [
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
            notes.append(f"There was no time to compare with {name}; allow more.")
            continue
        try:
            found.append(make(clock.part(1 / (len(makers) - number))))
        except PlanError as error:
            notes.append(f"No comparison with {name}: {error}.")
    return found, notes


def _longest(plan: Schedule) -> int:
    """The longest interval that is tried."""
    looks = [len(one) for one in (*plan.plans, *([plan.start] if plan.start else [])) if one.then == "measure"]
    return int(np.clip(LONGER * max(looks, default=0), LEAST_LONGEST, MOST_LONGEST))


def _always(model: Model, units: Units, clock: Clock) -> Policy:
    solution = solve(model, "always", time_limit=_left(clock))
    return Policy(
        "always",
        f"inspect every {units.period}",
        f"Inspect at the end of every {units.period} and do what is best for what was seen.",
        solution.schedule,
        solution.evaluation,
    )


def _never(model: Model, longest: int, clock: Clock) -> Policy:
    tolerance = 1e-6 * (float(np.abs(model.rewards).max()) or 1.0)
    in_rounds = best_rounds(model, longest, clock.part(0.5))
    solution = solve(model, "never", tolerance, _left(clock))
    best, _ = best_in_hand(solution, [("in rounds", in_rounds)], math.inf)
    bound = solution.method_upper
    is_closed = solution.stopped in ("closed", "done") or (bound is not None and bound - best.value <= tolerance)
    return Policy(
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


def _calendar(model: Model, units: Units, longest: int, clock: Clock) -> Policy:
    calendars = Calendars(model)
    k, tried = calendars.best(longest, clock)
    schedule = calendars.schedule(k)
    return Policy(
        "every-k",
        f"by the calendar, every {_count(k, units)}",
        f"Inspect every {_count(k, units)}, whatever was seen, with act-then-measure's control in between, which need not be the "
        f"best. The best of all intervals from 1 to {units.periods(tried)}.",
        schedule,
        evaluate(model, schedule),
        _limit_note(k, tried, longest, units),
    )


def _one_interval(model: Model, units: Units, longest: int, clock: Clock) -> Policy:
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


def _by_condition(model: Model, units: Units, longest: int, clock: Clock) -> Policy:
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


def _rule_policy(model: Model, rule: ConditionRule, key: str, name: str, words: str, note: str) -> Policy:
    schedule = rule.schedule(model)
    return Policy(key, name, words, schedule, evaluate(model, schedule), note)


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
