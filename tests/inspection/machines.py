"""A small machine that wears, and its prices."""

import numpy as np

import actmeasure as am

STATES = ("good", "worn", "broken")
PRICES = am.Economics(
    "EUR", "month", 0.95, 40.0, actions={"run": 0.0, "repair": 500.0}, running={"worn": 20.0, "broken": 400.0}
)


def machine(**changes):
    """Good, worn or broken; it can be run or repaired, and everything costs."""
    P = np.zeros((3, 2, 3))
    P[0, 0], P[1, 0], P[2, 0] = [0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]
    P[:, 1, 0] = 1.0
    R = np.array([[0.0, -500.0], [-20.0, -500.0], [-400.0, -900.0]])
    settings = {
        "measuring_cost": 40.0,
        "discount": 0.95,
        "state_names": STATES,
        "action_names": ["run", "repair"],
    }
    return am.Model.from_arrays(P, R, **(settings | changes))
