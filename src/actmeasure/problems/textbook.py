"""Small problems with imperfect measurements whose optimal values are known: tiger, pile selection, simplified fatigue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actmeasure.model import Measurement, Model, lifetime
from actmeasure.problems.inspection import prices
from actmeasure.settings import amount, discount_factor, probability

__all__ = ["over_periods", "pile_selection", "simple_fatigue", "tiger"]


def tiger(
    accuracy: float = 0.85,
    penalty: float = 100.0,
    prize: float = 10.0,
    measuring_cost: float = 1.0,
    discount: float = 0.95,
) -> Model:
    """The tiger problem: listen, or open one of two doors; Kaelbling, Littman and Cassandra (1998).

    A tiger is behind the left or the right door, with probability 1/2 each. `listen` costs 1 and tells the right door with
    probability 0.85. Opening the tiger's door costs 100, the other one brings in 10; then the problem begins anew, and what is
    heard is the left or the right door with probability 1/2 each. The horizon is infinite.

    This is a plain POMDP: listening is an action, and what is heard is seen without a measurement (`model.passive`). With the
    default settings the optimum lies between 19.3711 and 19.3721.

    Parameters
    ----------
    accuracy : float
        Probability that listening tells the tiger's door.
    penalty, prize : float
        What opening the tiger's door costs, and what opening the other one brings in.
    measuring_cost : float
        What listening costs.
    discount : float
        Below 1, as the horizon is infinite.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.tiger()
    >>> model
    Model(2 states, 3 actions, no measurements, passive hearing, discount=0.95, never ends)
    >>> am.Belief.start(model).update(model, 0, 0, "left")
    Belief({0: 0.85, 1: 0.15})
    """
    accuracy, price = probability(accuracy, "accuracy"), amount(measuring_cost, "measuring_cost")
    penalty, prize = amount(penalty, "penalty"), amount(prize, "prize")
    anew = np.full((2, 2), 0.5)
    return Model.from_arrays(
        np.stack([np.eye(2), anew, anew], axis=1),
        [[-price, -penalty, prize], [-price, prize, -penalty]],
        passive=Measurement.noisy(
            "hearing",
            probabilities=[[[accuracy, 1 - accuracy], [1 - accuracy, accuracy]], anew, anew],
            outcomes=("left", "right"),
        ),
        discount=discount,
        initial=[0.5, 0.5],
        state_names=("tiger left", "tiger right"),
        action_names=("listen", "open left", "open right"),
    )


def pile_selection(
    p_long: float = 0.3,
    too_short: float = 400.0,
    too_long: float = 100.0,
    measuring_cost: float | Sequence[float] = (20.0, 50.0),
    discount: float = 1.0,
) -> Model:
    """Pile selection: test the depth of a layer, or not, and order a short or a long pile; after Benjamin and Cornell (1970).

    The firm layer is at 40 ft (a short pile reaches it) or at 50 ft (a long one does). In the first of two steps nothing is
    ordered, both actions are the same, and one of two tests can be made:

    - `sonic` (20) says 40, 45 or 50 ft, with probability 0.6, 0.3 and 0.1 where the layer is at 40 ft, and with 0.1, 0.2 and 0.7
      where it is at 50 ft;
    - `drilling` (50) shows the depth.

    In the second step a pile is ordered. One that is too short loses 400, one that is too long 100. The optimum is -50 (drilling)
    for `p_long` from 0.2 to 0.5, and -100 (1 - p_long) (a long pile, without a test) from there on.

    Parameters
    ----------
    p_long : float
        Probability that a long pile is needed.
    too_short, too_long : float
        What is lost with a wrong pile.
    measuring_cost : two floats, or one
        Prices of the sonic test and of drilling; a single number is the price of both.
    discount : float

    Examples
    --------
    >>> import actmeasure as am
    >>> am.problems.pile_selection(p_long=0.4)
    Model(5 states, 2 actions, measurements sonic (20) and drilling (50), discount=1, 1 terminal)
    """
    chance = probability(p_long, "p_long")
    short, long = amount(too_short, "too_short"), amount(too_long, "too_long")
    sonic, drilling = prices(measuring_cost, ("sonic", "drilling"), "[20, 50]")
    P = np.zeros((2, 2, 2))
    P[0, :, 0] = P[1, :, 1] = 1.0
    testing, ordering = (
        Model.from_arrays(
            P, R,
            measurements=[
                Measurement.noisy(
                    "sonic", sonic, outcomes=("40 ft", "45 ft", "50 ft"), probabilities=[[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]
                ),
                Measurement.exact("drilling", drilling),
            ],
            initial=[1 - chance, chance], state_names=("layer at 40 ft", "layer at 50 ft"), action_names=("short", "long"),
        )
        for R in (np.zeros((2, 2)), np.array([[0.0, -long], [-short, 0.0]]))
    )  # fmt: skip
    return lifetime([testing, ordering], discount=discount_factor(discount, "discount"))


def simple_fatigue(
    periods: int | None = 10,
    failure: float = 50.0,
    repair: float = 20.0,
    measuring_cost: float = 1.0,
    discount: float = 0.95,
) -> Model:
    """Simplified fatigue: three conditions, an inspection that may be wrong, and a repair; a small benchmark with known values.

    In a period without a repair an intact unit becomes damaged with probability 0.05, and a damaged one failed; such a period
    costs 50 if it begins damaged, and nothing if it begins intact or failed. A repair costs 20, after which the unit is intact
    with probability 0.95 and damaged otherwise, whatever it was. An inspection (1), which cannot be made with a repair, reports
    no defect with probability 0.8, 0.15 and 0.05 in the three conditions. It begins intact.

    The optima over 5, 10, 20 and 30 periods are -17.950688, -44.097019, -96.637676 and -149.17843 without discounting, and
    -15.756466, -34.390916, -60.01600 and -75.35871 at a discount of 0.95.

    Parameters
    ----------
    periods : int, optional
        Number of decisions; None for an infinite horizon, which needs a discount below 1.
    failure, repair : float
        The cost of a period that begins damaged and has no repair, and of a repair.
    measuring_cost : float
        The price of an inspection.
    discount : float

    Examples
    --------
    >>> import actmeasure as am
    >>> am.problems.simple_fatigue(periods=5, discount=1.0)
    Model(16 states, 2 actions, measurement inspection (1), discount=1, 1 terminal)
    """
    failure, repair = amount(failure, "failure"), amount(repair, "repair")
    wear = np.array([[0.95, 0.05, 0.0], [0.0, 0.95, 0.05], [0.0, 0.0, 1.0]])
    renewed = np.tile([0.95, 0.05, 0.0], (3, 1))
    inspection = Measurement.noisy(
        "inspection", measuring_cost, outcomes=("no defect", "defect"), with_actions=("nothing",),
        probabilities=[[0.8, 0.2], [0.15, 0.85], [0.05, 0.95]],
    )  # fmt: skip
    unit = Model.from_arrays(
        np.stack([wear, renewed], axis=1), [[0.0, -repair], [-failure, -repair], [0.0, -repair]], measurements=[inspection],
        state_names=("intact", "damaged", "failed"), action_names=("nothing", "repair"),
    )  # fmt: skip
    return over_periods(unit, periods, discount)


def over_periods(model: Model, periods: int | None, discount: float) -> Model:
    """Return a model without an end with another discount, over a number of periods or, for None, an infinite horizon."""
    factor = discount_factor(discount, "discount")
    if periods is None or factor < 1:
        model = model.replace(discount=factor)
    return model if periods is None else lifetime(model, periods, discount=factor)
