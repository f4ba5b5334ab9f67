"""Plans and schedules."""

import numpy as np
import pytest

import actmeasure as am


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": ()}, "at least one action"),
        ({"actions": (-1,)}, "the action -1"),
        ({"actions": (0,), "then": "mesure"}, "did you mean 'measure'"),
        ({"actions": (0,), "then": "repeat"}, "from 1 to 1"),
        ({"actions": (0, 1), "then": "repeat", "repeat": 3}, "from 1 to 2"),
        ({"actions": (0,), "repeat": 1}, "goes with then='repeat' only"),
    ],
)
def test_bad_plans(arguments, message):
    with pytest.raises(am.ScheduleError, match=message):
        am.BlindPlan(**arguments)


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
    with pytest.raises(am.ScheduleError, match="state 7, expected states from 0 to 3"):
        am.Schedule({7: am.BlindPlan((0,))}, 4)
    with pytest.raises(am.ScheduleError, match="expected a BlindPlan"):
        am.Schedule({0: (0,)}, 4)


def test_plans_in_words():
    model = am.problems.measuring_value()
    plans = {
        0: am.BlindPlan((1, 1, 1, 0)),
        1: am.BlindPlan((1,), then="end"),
        2: am.BlindPlan((0,), then="known"),
    }
    words = am.Schedule(plans, 4, start=am.BlindPlan((0, 1), then="repeat", repeat=2)).describe(model)
    assert words.splitlines() == [
        "at the start: a0, a1; the last 2 for ever",
        "after seeing s0: 3x a1, a0, then look",
        "after seeing s+: a1; the episode is then over",
        "after seeing s-: a0; the state is then known",
    ]
    assert am.BlindPlan((0,), then="repeat", repeat=1).describe(model) == "a0, for ever"


def test_a_large_schedule_is_small():
    actions = np.random.default_rng(0).integers(0, 4, size=1_000_000)
    schedule = am.Schedule.always_measure(actions)
    assert schedule.plan_of_state.nbytes == 4_000_000
    assert len(schedule.plans) == 4
