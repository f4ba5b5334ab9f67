"""What an action is worth with a look and without one, at a belief and along a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actmeasure.belief import Belief
from actmeasure.evaluation import evaluate
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.transitions import FloatArray

__all__ = ["LookValues", "weigh"]


@dataclass(frozen=True, eq=False)
class LookValues:
    """Values of decisions at a belief, from what is achieved once a state is known, shape (S,); NaN where unknown."""

    model: Model
    known: FloatArray

    def looking(self, belief: Belief, action: int, otherwise: FloatArray | None = None) -> float:
        """An action together with a look, after which one may also go on with what is worth `otherwise`, shape (S,)."""
        price = float(belief.expected(self.model.measuring_costs[:, action]))
        known = self.known if otherwise is None else np.maximum(self.known, otherwise)
        return self.shown(belief, action, known) - price

    def shown(self, belief: Belief, action: int, known: FloatArray) -> float:
        """An action after which the state is shown for free, and then worth `known`, shape (S,)."""
        after = belief.predict(self.model, action)
        return self.step(belief, action, 0.0 if after.is_over else float(after.expected(known)))

    def one_later(self, belief: Belief, action: int) -> float:
        """An action without a look, then the best action with one, unless there is nothing to see by then."""
        after = belief.predict(self.model, action)
        if after.is_over:
            return self.step(belief, action, 0.0)
        options = [self._look_if_needed(after, then) for then in range(self.model.n_actions)]
        known = [option for option in options if not np.isnan(option)]
        return self.step(belief, action, max(known, default=np.nan))

    def step(self, belief: Belief, action: int, ahead: float) -> float:
        """An action after which the rest is worth `ahead`, if the episode still runs."""
        reward = float(belief.expected(self.model.rewards[:, action]))
        chance = belief.running_probability(self.model, action)
        return reward + (self.model.discount * chance * ahead if chance > 0 else 0.0)

    def _look_if_needed(self, belief: Belief, action: int) -> float:
        after = belief.predict(self.model, action)
        nothing_to_see = after.is_over or after.known is not None
        return self.shown(belief, action, self.known) if nothing_to_see else self.looking(belief, action)


def weigh(
    values: LookValues, plan: BlindPlan, beliefs: list[Belief], actions: list[int]
) -> tuple[list[float], list[float]]:
    """What the plan is worth from each of its steps on, and what it is worth to look with that step.

    Whoever looks may ignore what is seen and go on with the plan, so no state is worth less than that.
    """
    model = values.model
    rest = values.known
    if plan.then == "repeat" and not beliefs[-1].is_over:
        rest = _tail_values(model, plan, beliefs[-1], len(actions))
    ahead, looking = [], []
    for number in range(len(actions) - 1, -1, -1):
        belief, action = beliefs[number], actions[number]
        looking.append(values.looking(belief, action, rest))
        rest = _one_step_back(model, belief, action, rest)
        if plan.decision(number).measure:
            rest[belief.states] -= model.measuring_costs[belief.states, action]
        ahead.append(float(belief.expected(rest)))
    return ahead[::-1], looking[::-1]


def _one_step_back(model: Model, belief: Belief, action: int, rest: FloatArray) -> FloatArray:
    """Worth of an action in each state of a belief if the state after it is worth `rest`, both of shape (S,)."""
    rows = model.transitions.stacked()[belief.states * model.n_actions + action]
    worth = np.where(model.terminal, 0.0, np.nan)
    worth[belief.states] = model.rewards[belief.states, action] + model.discount * (rows @ rest)
    return worth


def _tail_values(model: Model, plan: BlindPlan, belief: Belief, step: int) -> FloatArray:
    """What a repeating plan is worth from a later step on in each state of the belief, shape (S,)."""
    actions = tuple(plan.decision(step + later).action for later in range(plan.repeat))
    tail = BlindPlan(actions, then="repeat", repeat=plan.repeat)
    there = model.replace(initial=belief.dense(model.n_states), reveal_start=True)
    worth = evaluate(there, Schedule(dict.fromkeys(belief.states.tolist(), tail), model.n_states)).values
    return np.where(model.terminal, 0.0, worth)
