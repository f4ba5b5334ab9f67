"""Act-then-measure's control: greedy in the values that hold when looking is free."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.kernels.stopping import TIE
from actmeasure.model import Model
from actmeasure.planners.bounds import ALMOST_ONE
from actmeasure.planners.clock import Clock
from actmeasure.planners.value_iteration import free_action_values, mdp_values
from actmeasure.transitions import FloatArray

__all__ = ["Control"]


class Control:
    """The control action for a belief: the one with the highest mean value as if the state were shown from then on.

    Ties go to the first action, without discount to the one that ends the episode sooner.
    """

    def __init__(self, model: Model, clock: Clock | None = None) -> None:
        clock = clock or Clock()
        self.model = model
        #: Upper bounds on the values of states when looking is free, shape (S,).
        self.bounds: FloatArray = mdp_values(model, clock)
        #: The same of actions, shape (S, A), up to rounding.
        self.values: FloatArray = free_action_values(model, clock, self.bounds)
        #: What decides between equals, shape (S, A).
        self.tie_values: FloatArray = np.zeros_like(self.values)
        if model.discount == 1:
            self.tie_values = free_action_values(model.replace(discount=ALMOST_ONE), clock)

    @property
    def actions(self) -> npt.NDArray[np.int64]:
        """The control action in every state once it is known, shape (S,); -1 in terminal ones."""
        return np.where(self.model.terminal, -1, _choose(self.values, self.tie_values))

    def __call__(self, belief: Belief) -> int:
        return int(_choose(belief.expected(self.values), belief.expected(self.tie_values)))


def _choose(means: FloatArray, ties: FloatArray) -> npt.NDArray[np.int64]:
    """The best action, and the best tie value among equals; `means` and `ties` have the actions as last axis."""
    best = means.max(axis=-1, keepdims=True)
    ties = np.where(means >= best - TIE * (1 + np.abs(best)), ties, -np.inf)
    return np.asarray(np.argmax(ties >= ties.max(axis=-1, keepdims=True) - TIE, axis=-1))
