"""Plans and schedules."""

import numpy as np
import pytest

import actmeasure as am


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": ()}, "at least one action"),
        ({"actions": (-1,)}, "action 0 of a plan is -1"),
        ({"actions": (0,), "then": "mesure"}, "did you mean 'measure'"),
        ({"actions": (0,), "then": "repeat"}, "from 1 to 1"),
        ({"actions": (0, 1), "then": "repeat", "repeat": 3}, "from 1 to 2"),
        ({"actions": (0,), "repeat": 1}, "goes with then='repeat' only"),
        ({"actions": (0.5,)}, "action 0 of a plan is 0.5, expected a whole number"),
        ({"actions": (1, 1.0)}, "action 1 of a plan is 1.0, expected a whole number"),
        ({"actions": (True,)}, "action 0 of a plan is True"),
        ({"actions": ("left",)}, "action 0 of a plan is 'left'"),
        ({"actions": "01"}, "actions of a plan are '01', expected numbers .* not names"),
        ({"actions": 3}, "actions of a plan are 3, expected numbers"),
        ({"actions": (0,), "then": 5}, "unknown end of a plan 5; choose one of: end"),
        ({"actions": (0,), "then": "repeat", "repeat": 0.5}, "repeat is 0.5"),
        ({"actions": (0,), "then": "repeat", "repeat": 2}, "plan of 1 action has"),
    ],
)
def test_bad_plans(arguments, message):
    with pytest.raises(am.ScheduleError, match=message):
        am.BlindPlan(**arguments)


def test_numpys_integers_are_actions_and_states():
    plan = am.BlindPlan(np.array([1, 0], dtype=np.int8))
    assert plan == am.BlindPlan((1, 0))
    assert type(plan.actions[0]) is int
    assert dict(am.Schedule({np.int64(2): plan}, np.int32(3))) == {2: plan}


def test_decisions_along_a_plan():
    look = am.BlindPlan((0, 1, 1))
    assert [look.decision(k) for k in range(3)] == [(0, False), (1, False), (1, True)]
    with pytest.raises(am.ScheduleError, match="is over"):
        look.decision(3)
    repeat = am.BlindPlan((0, 1, 2), then="repeat", repeat=2)
    assert [repeat.decision(k).action for k in range(7)] == [0, 1, 2, 1, 2, 1, 2]
    assert not any(repeat.decision(k).measure for k in range(7))


def test_a_schedule_is_a_mapping_that_stores_equal_plans_once():
    plan, other = am.BlindPlan((0,)), am.BlindPlan((1, 1), then="end")
    schedule = am.Schedule({0: plan, 2: am.BlindPlan((0,)), 3: other}, 5)
    assert len(schedule.plans) == 2
    assert dict(schedule) == {0: plan, 2: plan, 3: other}
    assert 1 not in schedule
    assert schedule == am.Schedule({3: other, 2: plan, 0: plan}, 5)
    assert schedule != am.Schedule({0: plan}, 5)
    with pytest.raises(KeyError):
        schedule[1]
    with pytest.raises(KeyError):
        schedule[99]
    assert repr(schedule) == "Schedule(3 of 5 states, 2 distinct plans)"


def test_always_measure():
    schedule = am.Schedule.always_measure([2, -1, 0, 2], start=1)
    assert dict(schedule) == {0: am.BlindPlan((2,)), 2: am.BlindPlan((0,)), 3: am.BlindPlan((2,))}
    assert schedule.start == am.BlindPlan((1,))


def test_bad_schedules():
    with pytest.raises(am.ScheduleError, match="state of a plan is 7, expected a whole number from 0 to 3"):
        am.Schedule({7: am.BlindPlan((0,))}, 4)
    with pytest.raises(am.ScheduleError, match="expected a BlindPlan"):
        am.Schedule({0: (0,)}, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: am.Schedule([am.BlindPlan((0,))], 4), "expected a mapping"),
        (lambda: am.Schedule({0.5: am.BlindPlan((0,))}, 4), "the state of a plan is 0.5"),
        (lambda: am.Schedule({"s0": am.BlindPlan((0,))}, 4), "the state of a plan is 's0'"),
        (lambda: am.Schedule({-1: am.BlindPlan((0,))}, 4), "the state of a plan is -1"),
        (lambda: am.Schedule({}, 0), "n_states is 0, expected a whole number from 1 up"),
        (lambda: am.Schedule({}, "four"), "n_states is 'four'"),
        (lambda: am.Schedule({}, 4, start=(0,)), r"the plan for the start is \(0,\), expected a BlindPlan"),
        (lambda: am.Schedule.from_distinct(((0,),), [0]), r"plan 0 is \(0,\), expected a BlindPlan"),
        (lambda: am.Schedule.from_distinct((am.BlindPlan((0,)),), [0, 1]), r"plan_of_state\[1\] is 1, expected"),
        (lambda: am.Schedule.from_distinct((am.BlindPlan((0,)),), [-2]), r"plan_of_state\[0\] is -2, expected"),
        (lambda: am.Schedule.from_distinct((am.BlindPlan((0,)),), [0.0]), "one whole number for every state"),
        (lambda: am.Schedule.from_distinct((am.BlindPlan((0,)),), [[0]]), "one whole number for every state"),
        (lambda: am.Schedule.from_distinct((am.BlindPlan((0,)),), []), "one whole number for every state"),
        (lambda: am.Schedule.always_measure([0.5, 1.0]), "one whole number for every state: an action"),
        (lambda: am.Schedule.always_measure(["left"]), "one whole number for every state: an action"),
        (lambda: am.Schedule.always_measure([[0], [1, 2]]), "one whole number for every state: an action"),
        (lambda: am.Schedule.always_measure([0, -2]), r"actions\[1\] is -2"),
        (lambda: am.Schedule.always_measure([0], start=0.5), "action 0 of a plan is 0.5"),
        (lambda: am.Schedule.always_measure([0], start="left"), "action 0 of a plan is 'left'"),
    ],
)
def test_schedules_from_what_is_none(make, message):
    with pytest.raises(am.ScheduleError, match=message):
        make()


def test_a_schedule_is_asked_for_what_is_no_state():
    schedule = am.Schedule({0: am.BlindPlan((0,))}, 2)
    assert "s0" not in schedule
    assert schedule.get(0.0) is None


def test_plans_in_words():
    model = am.problems.measuring_value()
    plans = {
        0: am.BlindPlan((1, 1, 1, 0)),
        1: am.BlindPlan((1,), then="end"),
        2: am.BlindPlan((0,), then="known"),
    }
    words = am.Schedule(plans, 4, start=am.BlindPlan((0, 1), then="repeat", repeat=2)).describe(model)
    assert words.splitlines() == [
        "at the start: a0, a1; the last 2 repeated without end",
        "after seeing s0: 3x a1, a0, then look",
        "after seeing s+: a1; the episode is then over",
        "after seeing s-: a0; the state is then known",
    ]
    assert am.BlindPlan((0,), then="repeat", repeat=1).describe(model) == "a0, repeated without end"


def test_a_large_schedule_is_small():
    actions = np.random.default_rng(0).integers(0, 4, size=1_000_000)
    schedule = am.Schedule.always_measure(actions)
    assert schedule.plan_of_state.nbytes == 4_000_000
    assert len(schedule.plans) == 4
