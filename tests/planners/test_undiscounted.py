"""Models without discount on which planning once failed."""

import numpy as np
import pytest

import actmeasure as am


def test_a_schedule_that_was_found_is_not_lost():
    P = np.zeros((4, 2, 4))
    P[0, 0, 2:] = 0.5
    P[0, 1, 1] = P[1, 0, 1] = P[2, 0, 2] = P[2, 1, 0] = 1.0
    P[1, 1, 0] = P[1, 1, 2] = 0.5
    R = np.array([[-1.0, -1.0], [0.0, -1.0], [-1.0, -1.0], [0.0, 0.0]])
    model = am.Model.from_arrays(
        P, R, measuring_cost=0.1, discount=1.0, initial=[1 / 3, 1 / 3, 1 / 3, 0], reveal_start=False,
        terminal=[False, False, False, True],
    )  # fmt: skip
    solution = am.solve(model)
    assert -1.77 < solution.lower <= solution.upper


def test_act_then_measure_where_looking_always_never_ends():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 0] = P[1, 0, 1] = P[1, 1, 2] = 1.0
    P[2] = [1, 0, 0]
    model = am.Model.from_arrays(
        P, np.zeros((3, 2)), measuring_cost=1.0, discount=1.0, initial=[0.5, 0.5, 0], reveal_start=False,
        terminal=[False, False, True],
    )  # fmt: skip
    solution = am.solve(model, "atm")
    assert solution.lower <= 0.0 <= solution.upper


def test_going_round_at_a_loss_is_not_taken_for_a_plan():
    """Guess which of two states it is, or shuffle for 1 and look for 10: act-then-measure must at least look always."""
    P = np.zeros((3, 3, 3))
    P[:2, :2, 2] = 1.0
    P[:2, 2, :2] = 0.5
    R = np.array([[0.0, -100.0, -1.0], [-100.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    model = am.Model.from_arrays(
        P,
        R,
        measuring_cost=10.0,
        discount=1.0,
        initial=[0.5, 0.5, 0],
        reveal_start=False,
        terminal=[False, False, True],
    )
    atm, always = am.solve(model, "atm").value, am.solve(model, "always").value
    assert atm >= always - 1e-9
    assert am.solve(model).value == pytest.approx(-11.0, abs=1e-6)
