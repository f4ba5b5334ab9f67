"""What can be set in foresight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actmeasure.agents.presets import own_discount
from actmeasure.errors import AgentError
from actmeasure.settings import probability, real, whole

__all__ = ["ForesightSettings"]


@dataclass(frozen=True)
class ForesightSettings:
    """What can be set in foresight; one default for all problems.

    Attributes
    ----------
    first : int
        Measurements that an action in a known state needs before it is taken into account as it was measured.
    sure : int
        Measurements that are needed where the plan relies on an action.
    reliance : float
        The plan relies on an action that it is expected to take at least so often in an episode; where it takes one a quarter as
        often, half of the measurements are enough, and so on.
    least_reach : float
        Exploring ends when it would come to something new in less than this share of the episodes.
    discount : float
        For planning; the task's own if that is larger, but 0.999 at most.
    tolerance : float
        Planning ends when the schedule is within this share of the best for the learned model.
    beliefs : int
        The work that the planner's search may do, in beliefs that it comes to; a round of it counts as forty of them. It bounds
        the time of a plan.
    patience : float
        A new plan is made after so many more episodes than before, as a share; after three tenths of that if the plan went wrong
        or exploring is not done.
    optimism : float
        An action that has ended an episode is worth what was measured, and what is hoped for as if that had been measured this
        many times.
    undisturbed : int
        After so many episodes exploring takes turns with following the plan for what is known.
    turns : float
        Share of the episodes that then go into exploring.
    budget : float
        Looks for exploring may cost as much as the largest reward this many times, in all. It does not depend on how many
        episodes are planned, as those may be told in parts.
    """

    first: int = 5
    sure: int = 50
    reliance: float = 0.1
    least_reach: float = 0.01
    discount: float = 0.995
    tolerance: float = 0.01
    beliefs: int = 400_000
    patience: float = 1.0
    optimism: float = 0.5
    undisturbed: int = 1_500
    turns: float = 0.2
    budget: float = 10_000

    def __post_init__(self) -> None:
        for name in ("first", "sure", "beliefs", "undisturbed"):
            object.__setattr__(self, name, whole(getattr(self, name), name, 1, 10**9, AgentError))
        for name in ("reliance", "least_reach", "turns"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        for name in ("reliance", "tolerance", "patience", "optimism", "budget"):
            value = real(getattr(self, name), name, AgentError)
            if not 0 < value < np.inf:
                raise AgentError(f"{name} is {value!r}, expected a number above 0")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "discount", own_discount(self.discount, "discount"))
