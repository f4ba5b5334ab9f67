"""What `solve` says to input that makes no sense, and to Ctrl-C."""

import signal
import threading
from itertools import pairwise

import numpy as np
import pytest

import actmeasure as am

LAKE = am.problems.frozen_lake(4)
#: Open after minutes.
HARD = am.problems.frozen_lake(20, seed=236, discount=0.99)
HARD_WITHOUT_DISCOUNT = am.problems.frozen_lake(8, "slippery", discount=1.0)
METHODS = ("optimal", "atm", "atm-qmdp", "atm-linear", "always", "never", "every-3")


@pytest.mark.parametrize(
    ("name", "meant"), [("optimum", "optimal"), ("atm-qdmp", "atm-qmdp"), ("allways", "always"), ("evry-3", "every-3")]
)
def test_unknown_method_with_a_suggestion(name, meant):
    with pytest.raises(am.PlanError, match=f"unknown method '{name}'; did you mean '{meant}'?"):
        am.solve(LAKE, name)


@pytest.mark.parametrize("name", ["", "xyz", None, 3])
def test_unknown_method_lists_all(name):
    with pytest.raises(am.PlanError, match=r"unknown method.*hoose one of: always, atm.*optimal"):
        am.solve(LAKE, name)


@pytest.mark.parametrize("name", ["every-", "every-0", "every--1", "every-1.5", "every-k", "every-03"])
def test_every_needs_a_whole_number(name):
    with pytest.raises(am.PlanError, match=f"the method is '{name}', expected every-k with k a whole number from 1 up"):
        am.solve(LAKE, name)


@pytest.mark.parametrize("tolerance", [0, 0.0, -1e-6, float("nan"), float("-inf"), float("inf")])
def test_tolerance_must_be_above_zero(tolerance):
    with pytest.raises(am.PlanError, match=r"tolerance is .*, expected a number above 0, such as 1e-6"):
        am.solve(LAKE, tolerance=tolerance)


@pytest.mark.parametrize("tolerance", [None, "1e-6", [1e-6], 1j])
def test_tolerance_must_be_a_number(tolerance):
    with pytest.raises(am.PlanError, match="tolerance is"):
        am.solve(LAKE, tolerance=tolerance)


@pytest.mark.parametrize("share", [-1e-6, 2, float("nan"), float("inf"), "1e-3", True])
def test_relative_tolerance_is_a_share(share):
    """2 was taken as 200 %, which any bounds fulfil."""
    for model in (LAKE, am.problems.tiger()):
        with pytest.raises(am.PlanError, match=r"relative_tolerance is .*, expected a share from 0 to 1"):
            am.solve(model, relative_tolerance=share)
    inspection = am.problems.inspection()
    with pytest.raises(am.PlanError, match=r"relative_tolerance is .*, expected a share from 0 to 1"):
        am.tradeoff(inspection, measurement="visual", relative_tolerance=share)


@pytest.mark.parametrize("time_limit", [0, -1, float("nan")])
def test_time_limit_must_be_above_zero(time_limit):
    with pytest.raises(am.PlanError, match=r"time_limit is .*, expected seconds above 0, or None for no limit"):
        am.solve(LAKE, time_limit=time_limit)


@pytest.mark.parametrize("time_limit", ["1", [1], 1j])
def test_time_limit_must_be_a_number(time_limit):
    with pytest.raises(am.PlanError, match="time_limit is"):
        am.solve(LAKE, time_limit=time_limit)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", [0.95, 1.0])
def test_too_short_a_time_limit(method, discount):
    with pytest.raises(
        am.PlanError, match=r"the time limit of 1e-09 s was over before any bound was found.*allow more time"
    ):
        am.solve(LAKE.replace(discount=discount), method, time_limit=1e-9)


def test_what_is_no_model():
    with pytest.raises(am.PlanError, match="expected a Model"):
        am.solve("FrozenLake")


def test_discount_one_where_it_is_undefined_names_the_state():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1, :, 1] = P[2, :, 2] = 1.0
    with pytest.raises(am.ModelError, match=r"discount is 1, but from state 1 \('trap'\) no policy is sure to end"):
        am.Model.from_arrays(
            P, np.zeros((3, 2)), measuring_cost=0.1, discount=1.0, terminal=[False, False, True],
            state_names=("begin", "trap", "end"),
        )  # fmt: skip


@pytest.mark.parametrize(("model", "method"), [(HARD, "optimal"), (HARD, "never"), (HARD_WITHOUT_DISCOUNT, "optimal")])
def test_ctrl_c_returns_the_best_so_far(model, method):
    """It is pressed once, soon after the first bounds: from another thread, as a terminal would, at no special place."""
    pressed = []

    def press(progress):
        if not pressed:
            pressed.append(threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]))
            pressed[0].start()

    before = signal.getsignal(signal.SIGINT)
    solution = am.solve(model, method, tolerance=1e-12, time_limit=600, progress=press)
    assert signal.getsignal(signal.SIGINT) is before
    assert solution.stopped == "interrupted"
    assert solution.value == am.evaluate(model, solution.schedule).discounted_return
    assert solution.lower < solution.upper
    assert am.solve(model, "atm").lower <= solution.upper + 1e-9
    assert solution.lower <= am.solve(model, "atm").upper + 1e-9


def test_a_short_time_limit_returns_the_best_so_far():
    model = am.problems.frozen_lake(20, seed=1, discount=0.99)
    first = am.solve(model, tolerance=1e-12, time_limit=0.3)
    longer = am.solve(model, tolerance=1e-4, time_limit=10)
    assert first.value == am.evaluate(model, first.schedule).discounted_return
    assert first.lower <= longer.upper + 1e-9
    assert longer.lower <= first.upper + 1e-9
    assert first.record[-1].upper <= first.record[0].upper


def test_progress_is_reported_as_the_bounds_close():
    seen = []
    solution = am.solve(LAKE, progress=seen.append)
    assert tuple(seen) == solution.record
    assert all(later.upper <= sooner.upper for sooner, later in pairwise(seen))
    assert all(later.lower >= sooner.lower for sooner, later in pairwise(seen))
