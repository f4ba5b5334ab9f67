"""A small machine that wears, and its prices."""

import numpy as np
import pandas as pd
import pytest

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


@pytest.fixture(scope="session")
def advice():
    return am.inspection.advise(machine(), currency="EUR", period="month", title="Plan", time_limit=None)


@pytest.fixture(scope="session")
def fitted():
    """A fit to records of a hundred machines, simulated with a seed."""
    rng = np.random.default_rng(7)
    P = machine().transitions.dense()
    rows = []
    for unit in range(100):
        state = 0
        for time in range(0, 24, 2):
            action = int(rng.random() < (0.1, 0.4, 0.8)[state])
            rows += [(unit, time, STATES[state], ("run", "repair")[action]), (unit, time + 1, "", "run")]
            state = rng.choice(3, p=P[state, action])
            state = rng.choice(3, p=P[state, 0])
    records = pd.DataFrame(rows, columns=["unit", "time", "state", "action"])
    return am.fit(records, states=STATES, bootstrap=8)
