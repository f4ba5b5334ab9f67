"""Rules that engineers write down: act on what the inspection showed, then wait until the next one.

A condition rule says, for every state that an inspection may show: do one action, then wait with another one, and inspect k
periods after the last inspection. Nothing is done in between but waiting. There are two families:

- *interval by condition*: the first action, the action to wait with and k may all depend on the state seen;
- *one interval*: only the first action may; k and the action to wait with are the same for all states.

Both are searched exactly. Whoever inspects by such a rule faces a decision process over the states seen; policy iteration
finds its best policy, and every rule on the way is evaluated by a linear solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.inspection.worth import discounted_values
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.planners.control import Control
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.transitions import FloatArray

__all__ = ["ConditionRule", "ConditionRules"]

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
