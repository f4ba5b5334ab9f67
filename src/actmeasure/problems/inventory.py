"""An inventory whose stock has to be counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, quoted
from actmeasure.model import Model
from actmeasure.settings import amount, probability, whole

__all__ = ["inventory"]


def inventory(
    capacity: int = 3,
    demand: Sequence[float] = (0.0, 0.5, 0.5),
    price: float = 2.0,
    production: float = 1.0,
    holding: float = 0.5,
    measuring_cost: npt.ArrayLike = 0.1,
    discount: float = 0.8,
) -> Model:
    """An inventory with random demand, whose stock has to be counted; the example of Kapoor and Nair (2025, arXiv 2505.03280).

    The state is the stock, 0 to `capacity`, and the action how much is ordered, 0 to `capacity`. An order arrives at once and
    costs `production` apiece. Then customers come: `demand` tells with which probability they want 0, 1, 2 and so on. What is
    sold brings in `price` apiece; demand above the stock is lost; what is left costs `holding` apiece and is the next stock.
    The horizon is infinite. With free counting the optimal values of the default settings are 5.75, 6.75, 7.75 and 8.05 from
    a stock of 0, 1, 2 and 3.

    Assumptions: an order that does not fit is cut to what does, and only that is paid for; the shop begins empty; the price of
    counting.

    Parameters
    ----------
    capacity : int
        Largest stock, at least 1.
    demand : sequence of float
        Probabilities of a demand of 0, 1, 2 and so on, which sum to 1.
    price, production, holding : float
        For one piece.
    measuring_cost : float, or array of shape (capacity + 1, capacity + 1)
    discount : float
        Below 1, as the horizon is infinite.
    """
    capacity = whole(capacity, "capacity", 1)
    chances = _distribution(demand)
    price, production, holding = (
        amount(value, name) for value, name in ((price, "price"), (production, "production"), (holding, "holding"))
    )
    stock, order = np.indices((capacity + 1, capacity + 1))
    filled = np.minimum(stock + order, capacity)
    P = np.zeros((capacity + 1, capacity + 1, capacity + 1))
    R = -production * (filled - stock).astype(float)
    for wanted, chance in enumerate(chances):
        sold = np.minimum(filled, wanted)
        P[stock, order, filled - sold] += chance
        R += chance * (price * sold - holding * (filled - sold))
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=0,
        state_names=[f"stock {k}" for k in range(capacity + 1)],
        action_names=[f"order {k}" for k in range(capacity + 1)],
    )  # fmt: skip


def _distribution(demand: Sequence[float]) -> list[float]:
    expected = "the probabilities of a demand of 0, 1, 2 and so on, such as [0, 0.5, 0.5]"
    if isinstance(demand, str) or not isinstance(demand, (Sequence, np.ndarray)) or not len(demand):
        raise ModelError(f"demand is {quoted(demand)}, expected {expected}")
    chances = [probability(chance, f"demand[{wanted}]") for wanted, chance in enumerate(demand)]
    if abs(sum(chances) - 1) > 1e-9:
        raise ModelError(f"demand sums to {sum(chances):.6g}, expected 1; it is {expected}")
    return chances
