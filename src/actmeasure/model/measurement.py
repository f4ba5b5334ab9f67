"""Measurements: their prices, and what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import real

__all__ = ["ExactMeasurement", "checked_price"]


@dataclass(frozen=True, eq=False)
class ExactMeasurement:
    """A measurement that shows the state after the step exactly, paid for together with the action.

    Attributes
    ----------
    cost : float, or float64 array of shape (S, A)
        Price of a measurement together with action `a` in state `s`; 0 in terminal states, in which no action is taken.
    """

    cost: float | FloatArray

    @classmethod
    def checked(
        cls, cost: npt.ArrayLike, n_states: int, n_actions: int, terminal: npt.NDArray[np.bool_]
    ) -> ExactMeasurement:
        """Return a measurement with one cost, or one per state and action; a negative, NaN or infinite one is a `ModelError`."""
        try:
            costs = np.array(cost)
        except ValueError:  # rows of different lengths
            costs = np.array(None)
        if costs.ndim == 0:
            return cls(checked_price(cost, f", or an array of shape ({n_states}, {n_actions})"))
        if costs.shape != (n_states, n_actions):
            remedy = (
                f"; for a cost per action pass np.tile(cost, ({n_states}, 1))" if costs.shape == (n_actions,) else ""
            )
            raise ModelError(
                f"measuring_cost has shape {costs.shape}, expected a number or shape ({n_states}, {n_actions}) "
                f"(states, actions){remedy}"
            )
        if costs.dtype.kind not in "biuf":
            raise ModelError(f"measuring_cost is an array of type {costs.dtype}, expected real numbers")
        costs = costs.astype(np.float64)
        bad = ~np.isfinite(costs) | (costs < 0)
        if bad.any():
            state, action = np.unravel_index(int(np.argmax(bad)), costs.shape)
            raise ModelError(
                f"measuring_cost[state {state}, action {action}] is {costs[state, action]}, "
                "expected a finite number that is 0 or more; correct this entry"
            )
        costs[terminal] = 0.0
        costs.setflags(write=False)
        return cls(costs)

    def of(self, state: int, action: int) -> float:
        """Return the price of a measurement together with `action` in `state`."""
        return self.cost if isinstance(self.cost, float) else float(self.cost[state, action])

    def table(self, n_states: int, n_actions: int) -> FloatArray:
        """Return the costs as an array, shape (S, A); a view where there is one cost only."""
        return np.broadcast_to(np.asarray(self.cost, dtype=np.float64), (n_states, n_actions))


def checked_price(cost: Any, otherwise: str = "") -> float:
    """Return a price as a finite float of 0 or more; `otherwise` says in the message what else is accepted."""
    value = real(cost, "measuring_cost", expected=f"a number that is 0 or more{otherwise}")
    if not np.isfinite(value) or value < 0:
        raise ModelError(f"measuring_cost is {value}, expected a finite number that is 0 or more; looking cannot pay")
    return value
