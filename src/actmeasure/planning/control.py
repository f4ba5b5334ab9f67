"""Control by Q_MDP: the action that is best if the state were known from the next step on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.kernels.stopping import CONTROL_TIE
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import ALMOST_ONE, free_action_values, mdp_values
from actmeasure.planning.budget import Budget

__all__ = ["Control"]


class Control:
    """Act-then-measure's control: the action with the highest mean value over a belief if looking were free from then on.

    Ties go to the first action; without discount, to the one that ends the episode sooner.

    Parameters
    ----------
    model : Model
    budget : Budget, optional
        Without limits by default.

    Attributes
    ----------
    bounds : float64 array, shape (S,)
        Upper bounds on the values of states when looking is free.
    values : float64 array, shape (S, A)
        The same of actions, up to rounding.
    tie_values : float64 array, shape (S, A)
        The highest mean of these decides between actions of equal value.
    """

    def __init__(self, model: Model, budget: Budget | None = None) -> None:
        budget = budget or Budget()
        self.model = model
        self.bounds: FloatArray = mdp_values(model, budget)
        self.values: FloatArray = free_action_values(model, budget, self.bounds)
        self.tie_values: FloatArray = np.zeros_like(self.values)
        if model.discount == 1:
            self.tie_values = free_action_values(model.replace(discount=ALMOST_ONE), budget)

    @property
    def actions(self) -> npt.NDArray[np.int64]:
        """The control action in every state once it is known, shape (S,); -1 in terminal states."""
        return np.where(self.model.terminal, -1, _choose(self.values, self.tie_values))

    def best_mean(self, belief: Belief) -> float:
        """Return the highest mean value of an action over a belief."""
        return float(belief.expected(self.values).max())

    def __call__(self, belief: Belief) -> int:
        return int(_choose(belief.expected(self.values), belief.expected(self.tie_values)))


def _choose(means: FloatArray, ties: FloatArray) -> npt.NDArray[np.int64]:
    """Return the actions (last axis) with the highest mean, and among equals the first with the highest tie value."""
    best = means.max(axis=-1, keepdims=True)
    ties = np.where(means >= best - CONTROL_TIE * (1 + np.abs(best)), ties, -np.inf)
    return np.asarray(np.argmax(ties >= ties.max(axis=-1, keepdims=True) - CONTROL_TIE, axis=-1))
