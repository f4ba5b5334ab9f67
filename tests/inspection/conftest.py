"""Advice about a small machine, and a fit to its records."""

import numpy as np
import pandas as pd
import pytest
from machines import STATES, machine

import actmeasure as am


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
