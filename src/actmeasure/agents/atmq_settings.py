"""The settings of act-then-measure Q-learning, and the sets of them that have a name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from actmeasure.agents.base import Task
from actmeasure.agents.presets import checked_discount, finite
from actmeasure.errors import AgentError
from actmeasure.kernels.atmq import Rules
from actmeasure.settings import probability, truth, whole

__all__ = ["ATMQ", "DYNA_ATMQ", "NEVER", "AtmqSettings"]

#: Instead of a number that can never be reached.
NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class AtmqSettings:
    """What can be set in act-then-measure Q-learning; the values here are those of `preset="default"`.

    Attributes
    ----------
    learning_rate : float
        How far a value moves towards its target (eta in the paper).
    discount : float or None
        None for the task's own.
    particles : int
        In a belief (N_b).
    optimism : int
        A pair (state, action) looks better than its value until it was measured about so often (N_opt).
    largest_reward : float or None
        What optimism hopes for (R_max). None for what the task says, or else the largest seen so far, 1 to begin with.
    exploratory_measurements : int
        In a known state, an action measured fewer times than this is looked at (N_m).
    prior_until : int or None
        A pair measured at most so often can lead anywhere, with the weight of one transition; None for always.
    measure_when_spread : float or None
        Look when the next belief has more states than this share of the particles; None for never.
    measure_when_settled : float
        Look when fewer than this share of the particles change their state, so that acting leads nowhere; 0 for never.
    random_measuring : float
        Chance to look for no reason at each step.
    optimistic_measuring : bool
        Whether knowing the state is valued by the best *optimistic* value, undiscounted. Else by the paper's equation.
    observed_target : bool
        Whether a value is learned from the state that was seen, if it was, and from the end of an episode. Else always from
        what the learned dynamics expect.
    cost_in_target : bool
        Whether the measuring cost is part of what a value is learned from.
    prior_in_rewards : bool
        Whether the mean reward of a pair counts one reward of 0 that was never received.
    own_rewards : bool
        Whether in an uncertain belief each state learns from its own mean reward and dynamics. Else all of them learn from
        the reward received, also those the agent was not in, whose values it spoils.
    knows_it_runs : bool
        Whether a belief takes into account that the episode has not ended.
    training_updates : int
        Values updated from the learned model at every step (N_train).
    training_greedy : float
        Share of these that go to the best action of a state; the others go to any other action.
    training_needs : int
        Measurements a pair needs before it is trained; with 0 all pairs are, seen or not.
    """

    learning_rate: float = 0.1
    discount: float | None = None
    particles: int = 100
    optimism: int = 20
    largest_reward: float | None = None
    exploratory_measurements: int = 20
    prior_until: int | None = 7
    measure_when_spread: float | None = 0.5
    measure_when_settled: float = 0.02
    random_measuring: float = 0.0
    optimistic_measuring: bool = True
    observed_target: bool = True
    cost_in_target: bool = False
    prior_in_rewards: bool = False
    own_rewards: bool = True
    knows_it_runs: bool = True
    training_updates: int = 0
    training_greedy: float = 0.5
    training_needs: int = 5

    def __post_init__(self) -> None:
        for name in ("learning_rate", "measure_when_settled", "random_measuring", "training_greedy"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        for name, (least, most) in LIMITS.items():
            object.__setattr__(self, name, whole(getattr(self, name), name, least, most, error=AgentError))
        for name in (field.name for field in fields(self) if field.type == "bool"):
            object.__setattr__(self, name, truth(getattr(self, name), name, AgentError))
        if self.prior_until is not None:
            object.__setattr__(self, "prior_until", whole(self.prior_until, "prior_until", 0, 10**9, AgentError))
        if self.measure_when_spread is not None:
            share = probability(self.measure_when_spread, "measure_when_spread", AgentError)
            object.__setattr__(self, "measure_when_spread", share)
        if self.largest_reward is not None:
            object.__setattr__(self, "largest_reward", finite(self.largest_reward, "largest_reward"))
        object.__setattr__(self, "discount", checked_discount(self.discount))

    def rules(self, task: Task) -> Rules:
        """The settings as the kernels take them."""
        return Rules(
            discount=task.discount if self.discount is None else self.discount,
            learning_rate=self.learning_rate,
            optimism=self.optimism,
            exploratory_measurements=self.exploratory_measurements,
            prior_until=NEVER if self.prior_until is None else self.prior_until,
            most_states=NEVER if self.measure_when_spread is None else int(self.measure_when_spread * self.particles),
            random_measuring=self.random_measuring,
            settled_below=self.measure_when_settled,
            optimistic_measuring=self.optimistic_measuring,
            observed_target=self.observed_target,
            cost_in_target=self.cost_in_target,
            prior_in_rewards=self.prior_in_rewards,
            own_rewards=self.own_rewards,
            knows_it_runs=self.knows_it_runs,
            training_updates=self.training_updates,
            training_greedy=self.training_greedy,
            training_needs=self.training_needs,
        )


#: The smallest and the largest whole number that is allowed.
LIMITS = {
    "particles": (1, 10**6),
    "optimism": (1, 10**9),
    "exploratory_measurements": (0, 10**9),
    "training_updates": (0, 10**9),
    "training_needs": (0, 10**9),
}

#: As the runs behind the paper's table; those on the measuring value problem also had `random_measuring=0.05`.
PUBLISHED: dict[str, Any] = {"measure_when_settled": 0.0, "own_rewards": False, "knows_it_runs": False}
#: The equations of the paper's main text.
PAPER: dict[str, Any] = PUBLISHED | {
    "prior_until": None,
    "measure_when_spread": None,
    "optimistic_measuring": False,
    "observed_target": False,
    "cost_in_target": True,
    "prior_in_rewards": True,
    "training_needs": 0,
}
#: What each preset sets differently from `AtmqSettings`, for agents without training and with it.
ATMQ: dict[str, dict[str, Any]] = {"default": {}, "published": PUBLISHED, "paper": PAPER}
DYNA_ATMQ: dict[str, dict[str, Any]] = {
    "default": {"training_updates": 25},
    "published": PUBLISHED | {"training_updates": 625},
    "paper": PAPER | {"training_updates": 25},
}
