"""Acting by the clock alone, in rounds: wait for some periods, act, and begin again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from actmeasure.inspection.worth import discounted_value
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["best_rounds"]

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
