"""Act-then-measure's control: greedy in the values that hold when looking is free."""

from __future__ import annotations

import numpy as np

from actmeasure.belief import Belief
from actmeasure.kernels.stopping import TIE
from actmeasure.model import Model
from actmeasure.planners.bounds import ALMOST_ONE
from actmeasure.planners.value_iteration import q_mdp
from actmeasure.transitions import FloatArray

__all__ = ["Control"]


class Control:
    """The control action for a belief: the one with the highest mean value as if the state were shown from then on.

    Ties go to the first action, without discount to the one that ends the episode sooner.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.values: FloatArray = q_mdp(model)
        hurried = q_mdp(model.replace(discount=ALMOST_ONE)) if model.discount == 1 else self.values
        #: What decides between equals, shape (S, A).
        self.tie_values: FloatArray = hurried if model.discount == 1 else np.zeros_like(self.values)

    def __call__(self, belief: Belief) -> int:
        means, ties = belief.expected(self.values), belief.expected(self.tie_values)
        equal = means >= means.max() - TIE * (1 + abs(means.max()))
        ties = np.where(equal, ties, -np.inf)
        return int(np.argmax(ties >= ties.max() - TIE))
