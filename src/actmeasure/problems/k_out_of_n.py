"""A k-out-of-n system: inspection and replacement of components that deteriorate independently of each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from actmeasure.model import Component, Measurement, Model, system
from actmeasure.settings import amount, truth, whole

__all__ = ["k_out_of_n"]


class Kind(NamedTuple):
    """Data of one component."""

    intact: float  # probability of staying intact in a period
    damaged: float  # of staying damaged
    replaced: float  # of a replacement that succeeds
    seen: float  # of an inspection that reports an intact or damaged component as what it is
    failure_seen: float  # and a failed one
    replacement: float  # prices
    inspection: float


KINDS = (
    Kind(0.82, 0.87, 0.95, 0.8, 0.95, 50.0, 5.0),
    Kind(0.72, 0.78, 0.9, 0.85, 0.9, 30.0, 3.0),
    Kind(0.79, 0.85, 0.98, 0.9, 0.98, 80.0, 8.0),
    Kind(0.72, 0.78, 1.0, 0.9, 1.0, 90.0, 4.0),
)
STATES = ("intact", "damaged", "failed")
FAILED = 2
START = (0.6, 0.4, 0.0)
#: Mobilisation of the hard instances.
MOBILISATION = 4.0
#: Penalty as a multiple of the sum of all replacement prices, and that of the four components that are not hard.
FACTOR, FACTOR_OF_FOUR = 3.0, 1.5


def k_out_of_n(
    n: int = 2,
    k: int = 1,
    hard: bool = False,
    penalty_factor: float | None = None,
    mobilisation: float | None = None,
    measuring_cost: float | None = None,
    discount: float = 0.8,
) -> Model:
    """Inspect and replace the n components of a system that works while k of them do; after Bhustali and others (2026).

    A component is intact, damaged or failed, and gets worse by one level at a time; nothing shows how it is but an inspection,
    which may err. In every period each component is left alone, replaced, or left alone and inspected. A replacement succeeds
    with some probability, and the component deteriorates in the same period. While fewer than k components are not failed, a
    period costs `penalty_factor` times the sum of the replacement prices of all components. The data are those of the four
    components of Bhustali, Morato, Papakonstantinou and Andriotis, Reliability Engineering and System Safety 2026, arXiv
    2603.11884, of which the first n are used. All amounts are costs: a value of -53.7 is a cost of 53.7.

    Parameters
    ----------
    n : int
        Number of components, 1 to 4.
    k : int
        Number of components that have to work, 1 to n.
    hard : bool
        Whether this is one of the instances that are called hard there: mobilisation 4, and factor 3 for n = 4 as well.
    penalty_factor : float, optional
        3 by default; 1.5 for n = 4 unless hard.
    mobilisation : float, optional
        Cost of a period in which anything is replaced or inspected; 0 by default, 4 if hard.
    measuring_cost : float, optional
        Price of the inspection of a component; by default those published, 5, 3, 8 and 4.
    discount : float
    """
    n = whole(n, "n", 1, len(KINDS))
    k = whole(k, "k", 1, n)
    hard = truth(hard, "hard")
    usual = FACTOR_OF_FOUR if n == len(KINDS) and not hard else FACTOR
    factor = usual if penalty_factor is None else amount(penalty_factor, "penalty_factor")
    fee = MOBILISATION * hard if mobilisation is None else amount(mobilisation, "mobilisation")
    kinds = KINDS[:n]
    if measuring_cost is not None:
        kinds = tuple(kind._replace(inspection=amount(measuring_cost, "measuring_cost")) for kind in kinds)
    price = factor * sum(kind.replacement for kind in kinds)

    def penalty(states: tuple[int, ...]) -> float:
        return price * (sum(state != FAILED for state in states) < k)

    return system([_component(kind) for kind in kinds], penalty=penalty, mobilisation=fee, discount=discount)


def _component(kind: Kind) -> Component:
    wear = np.array([[kind.intact, 1 - kind.intact, 0.0], [0.0, kind.damaged, 1 - kind.damaged], [0.0, 0.0, 1.0]])
    renewal = np.array(
        [[1.0, 0.0, 0.0], [kind.replaced, 1 - kind.replaced, 0.0], [kind.replaced, 0.0, 1 - kind.replaced]]
    )
    p, f = kind.seen, kind.failure_seen
    inspection = Measurement.noisy(
        "inspect", cost=kind.inspection, outcomes=STATES, with_actions=("nothing",),
        probabilities=[[p, 1 - p, 0.0], [(1 - p) / 2, p, (1 - p) / 2], [0.0, 1 - f, f]],
    )  # fmt: skip
    return Component(
        {"nothing": wear, "replace": renewal @ wear}, costs={"replace": kind.replacement}, start=START,
        measurements=[inspection], state_names=STATES,
    )  # fmt: skip
