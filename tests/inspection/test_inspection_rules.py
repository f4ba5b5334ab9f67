"""Calendars and condition rules against brute force and against the planners."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import machine
from strategies import examples, models, random_schedule

import actmeasure as am
from actmeasure.evaluation import values_of
from actmeasure.inspection.schedules import discounted_value, discounted_values
from actmeasure.inspection.usual_policies import Calendars, ConditionRules
from actmeasure.planning.budget import Budget

LONGEST = 3


def rule_values(model, same_interval):
    """Values from the start of all rules of a family, by trying every one."""
    states = [*np.flatnonzero(~model.terminal).tolist(), *([] if model.start_is_known else [None])]
    actions = range(model.n_actions)
    choices = list(itertools.product(actions, actions, range(1, LONGEST + 1)))
    for chosen in itertools.product(choices, repeat=len(states)):
        if same_interval and len({(wait, k) for _, wait, k in chosen}) > 1:
            continue
        plans = {
            state: am.BlindPlan((first, *(wait,) * (k - 1)))
            for state, (first, wait, k) in zip(states, chosen, strict=True)
        }
        start = plans.pop(None, None)
        yield am.evaluate(model, am.Schedule(plans, model.n_states, start)).discounted_return


@examples(12)
@given(models(max_states=2, max_actions=2))
def test_the_best_condition_rules_are_those_of_brute_force(model):
    search = ConditionRules(model, LONGEST, Budget())
    for rule, same in ((search.by_condition(), False), (search.one_interval(), True)):
        found = am.evaluate(model, rule.schedule(model)).discounted_return
        assert found == pytest.approx(max(rule_values(model, same)), abs=1e-9)


@examples(15)
@given(models(max_states=5))
def test_families_are_ordered_and_below_the_optimum(model):
    search = ConditionRules(model, 8, Budget())
    by_condition, one = (
        am.evaluate(model, rule.schedule(model)).discounted_return
        for rule in (search.by_condition(), search.one_interval())
    )
    assert one <= by_condition + 1e-9
    assert by_condition <= am.solve(model).upper + 1e-9


@examples(15)
@given(models(max_states=5), st.integers(1, 5))
def test_calendars_are_those_of_solve(model, k):
    calendars = Calendars(model)
    calendars.best(7, Budget())  # in another order, and further
    assert calendars.schedule(k) == am.solve(model, f"every-{k}").schedule


def test_the_best_calendar_is_the_best():
    values = [am.solve(machine(), f"every-{n}").value for n in range(1, 21)]
    assert Calendars(machine()).best(20, Budget()) == (1 + int(np.argmax(values)), 20)


@examples(25)
@given(models(discounts=(0.5, 0.99)), st.integers(0, 2**32 - 1))
def test_worth_is_what_evaluate_says(model, seed):
    schedule = random_schedule(model, np.random.default_rng(seed))
    assert discounted_value(model, schedule) == pytest.approx(am.evaluate(model, schedule).discounted_return)
    assert discounted_values(model, schedule) == pytest.approx(values_of(model, schedule))


def test_searches_stop_when_the_time_is_over():
    over = Budget(1e-9)
    search = ConditionRules(machine(), 1000, over)
    rule = search.one_interval()
    assert search.longest < 1000
    assert math.isfinite(am.evaluate(machine(), rule.schedule(machine())).discounted_return)
    assert Calendars(machine()).best(1000, over) == (1, 1)


def test_a_large_model_gets_shorter_intervals(monkeypatch):
    monkeypatch.setattr("actmeasure.inspection.usual_policies.MOST_WORK", 100)
    assert ConditionRules(machine(), 50, Budget()).longest < 50


def test_thresholds_come_out_by_themselves():
    """Waiting is cheap and repairs are dear, so the best rule repairs from some state on and not before."""
    rule = ConditionRules(machine(), 40, Budget()).by_condition()
    run, repair = range(2)
    assert rule.first[:3].tolist() == sorted(rule.first[:3].tolist())
    assert (rule.first[0], rule.first[2]) == (run, repair)
    assert (rule.waiting[:3] == run).all()
