"""Plans for unexpected states, and plans that can be followed on other models."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import machine
from strategies import examples, models, random_schedule

import actmeasure as am
from actmeasure.inspection.schedules import completed, valid_on_other_models
from actmeasure.planning import Budget


@examples(40)
@given(models(), st.integers(0, 2**32 - 1))
def test_schedules_without_claims_behave_the_same(model, seed):
    schedule = random_schedule(model, np.random.default_rng(seed))
    other = valid_on_other_models(model, schedule)
    assert not {plan.then for plan in other.plans} & {"known", "end"}
    before, after = am.evaluate(model, schedule), am.evaluate(model, other)
    assert after.discounted_return == pytest.approx(before.discounted_return, abs=1e-9)
    assert after.discounted_measurements == pytest.approx(before.discounted_measurements, abs=1e-9)


def test_a_claim_that_is_false_elsewhere_is_not_made():
    """Repair leads to good on one model; on the other it may fail, which nobody sees."""
    model = machine()
    schedule = am.solve(model).schedule
    assert "known" in {plan.then for plan in schedule.plans}
    P = model.transitions.dense().copy()
    P[:, 1] = [0.7, 0.3, 0.0]
    other = am.Model.from_arrays(P, model.rewards, measuring_cost=40.0)
    with pytest.raises(am.ScheduleError, match="more than one state is possible"):
        am.evaluate(other, schedule)
    assert math.isfinite(am.evaluate(other, valid_on_other_models(model, schedule)).discounted_return)


def test_unexpected_states_get_the_best_plan():
    lake = am.problems.frozen_lake(4)
    schedule = am.solve(lake).schedule
    whole = completed(lake, schedule, 1e-6, Budget())
    running = np.flatnonzero(~lake.terminal)
    assert set(whole) == set(running.tolist()) > set(schedule)
    assert all(whole[state] == schedule[state] for state in schedule)
    for state in running:
        there = lake.replace(initial=int(state))
        assert am.evaluate(there, whole).discounted_return == pytest.approx(am.solve(there).value, abs=1e-5)


def test_large_models_keep_to_what_they_expect(monkeypatch):
    monkeypatch.setattr("actmeasure.inspection.schedules.MOST_STATES", 10)
    lake = am.problems.frozen_lake(4)
    schedule = am.solve(lake).schedule
    assert completed(lake, schedule, 1e-6, Budget()) is schedule
