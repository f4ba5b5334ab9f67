"""What planning may spend, and why it stops."""

import signal

import pytest

import actmeasure as am
from actmeasure.planning import Budget


def test_reasons_to_stop():
    budget = Budget(work=10)
    assert budget.stops() is None
    budget.spent = 10
    assert budget.stops() == "beliefs"
    budget.seconds = 0.0
    assert budget.stops() == "time"
    with budget.deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert budget.stops() == "interrupted"
    assert budget.stops() == "time"


def test_ctrl_c_is_held_back_and_counts_in_all_parts():
    budget = Budget()
    with budget.deferred_interrupts():
        part = budget.part(0.5)
        with part.deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            assert part.stops() == "interrupted"
        assert budget.stops() == "interrupted"
        assert budget.part(0.5).stops() == "interrupted"


def test_a_budget_that_is_not_interruptible():
    budget = Budget(work=10, interruptible=False)
    with budget.deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert budget.stops() is None


def test_parts_of_the_time():
    part = Budget(seconds=100).part(0.25)
    assert part.seconds == pytest.approx(25, abs=1)
    assert Budget(seconds=100).part(0.25, seconds=2).seconds == pytest.approx(2, abs=1)
    assert Budget().part(0.25, seconds=2).seconds == pytest.approx(2, abs=1)
    assert Budget().part(0.25).seconds is None


def test_a_limit_on_work_alone_keeps_the_clock_out():
    budget = Budget(work=100)
    budget.spent = 100
    part = budget.part(0.25, seconds=2)
    assert part.seconds is None
    assert part.work == 100
    assert part.spent == 0
    assert Budget(seconds=100, work=100).part(0.25).seconds == pytest.approx(25, abs=1)


def test_bounds_that_are_noted_never_get_wider():
    heard = []
    budget = Budget(progress=heard.append)
    budget.note(0.0, 1.0)
    budget.part(0.5).note(-1.0, 0.5)
    assert [(each.lower, each.upper) for each in budget.record] == [(0.0, 1.0), (0.0, 0.5)]
    assert heard == budget.record


def test_a_budget_can_be_used_again():
    lake = am.problems.frozen_lake(4)
    budget = Budget(work=100)
    first, second = am.solve(lake, tolerance=1e-12, budget=budget), am.solve(lake, tolerance=1e-12, budget=budget)
    assert first.stopped == second.stopped == "beliefs"
    assert tuple(budget.record) == second.record
    assert "limit on the work was reached" in str(first)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": 0}, "seconds is 0, expected a number above 0"),
        ({"seconds": "1"}, "seconds is '1', expected a number above 0"),
        ({"work": 0}, "work is 0, expected a number of beliefs from 1 up"),
        ({"work": 1.5}, "work is 1.5"),
        ({"progress": "yes"}, "progress is 'yes', expected True, False or a function"),
    ],
)
def test_wrong_limits(settings, message):
    with pytest.raises(am.PlanError, match=message):
        Budget(**settings)


def test_a_budget_and_a_time_limit_are_one_too_many():
    lake = am.problems.frozen_lake(4)
    with pytest.raises(am.PlanError, match="leave time_limit and progress out"):
        am.solve(lake, time_limit=1.0, budget=Budget(work=10))
    with pytest.raises(am.PlanError, match="expected a Budget"):
        am.solve(lake, budget=10)


def test_a_budget_tells_what_was_spent():
    budget = Budget(work=10_000)
    solution = am.solve(am.problems.frozen_lake(4), budget=budget)
    assert 0 < budget.spent <= 10_000
    assert tuple(budget.record) == solution.record
    again = am.solve(am.problems.frozen_lake(4), budget=budget)
    assert len(budget.record) == len(again.record) == len(solution.record)


def test_separate_budgets_share_limits_but_not_what_is_spent():
    budget = Budget(seconds=100, work=7, interruptible=False)
    budget.note(0.0, 1.0)
    budget.spent = 7
    other = budget.separate(0.25)
    assert other.seconds == pytest.approx(25, abs=1)
    assert (other.work, other.interruptible, other.spent, other.record) == (7, False, 0, [])
    assert Budget(1e-9).separate(at_least=3.0).seconds == 3.0
    assert Budget(work=7).separate(0.25, seconds=2).seconds is None
    assert Budget().separate(seconds=2).seconds == 2
    assert Budget().separate().seconds is None


def test_a_relative_tolerance_is_a_share_of_the_upper_bound_also_where_values_are_negative():
    for share in (0.1, 0.4, 0.9):
        found = am.solve(am.problems.maintenance(), tolerance=1e-9, relative_tolerance=share)
        assert found.upper < 0
        assert found.gap <= share * abs(found.upper)


def test_a_relative_tolerance_ends_the_search():
    lake = am.problems.frozen_lake(8, seed=3, discount=0.99)
    found = am.solve(lake, tolerance=1e-9, relative_tolerance=0.1)
    assert found.stopped == "closed"
    assert 1e-9 < found.gap <= 0.1 * found.lower + 1e-12
    for wrong in (-1, float("inf"), "x"):
        with pytest.raises(am.PlanError, match="relative_tolerance is"):
            am.solve(lake, relative_tolerance=wrong)


def test_a_tradeoff_within_a_limit_on_work_is_deterministic():
    lake = am.problems.frozen_lake(8, seed=3)
    first, second = (am.tradeoff(lake, tolerance=1e-9, budget=Budget(work=500)) for _ in range(2))
    assert first.stopped == second.stopped == "beliefs"
    assert (first.prices.tolist(), first.upper.tolist()) == (second.prices.tolist(), second.upper.tolist())
    assert "limit on the work was reached" in first.note


def test_advice_within_a_limit_on_work():
    lake = am.problems.frozen_lake(4)
    advice = am.inspection.advise(lake, budget=Budget(work=100))
    assert any("limit on the work was reached" in str(note) for note in advice.notes)
    with pytest.raises(am.PlanError, match="leave time_limit and progress out"):
        am.inspection.advise(lake, time_limit=1.0, budget=Budget(work=100))
