"""What is fitted, how sure it is, and what it says about what the records cannot tell."""

import signal

import numpy as np
import pytest
from simulated import CHAINS, WEAR, records

import actmeasure as am

RNG = np.random.default_rng


def quick(columns, **settings):
    return am.fit(columns, **({"bootstrap": 0, "goodness": 0} | settings))


@pytest.fixture(scope="module")
def worn():
    """Records of wear and repair with gaps of 1 to 5 periods, and the fit to them."""
    columns = records(CHAINS, 150, 25, RNG(0))
    structure = {"nothing": "deteriorate", "*": "any"}
    return columns, am.fit(columns, states=list("01234"), structure=structure, bootstrap=40, goodness=20, seed=1)


def test_a_known_chain_is_recovered(worn):
    _, found = worn
    assert found.action_names == ("nothing", "repair")
    well = found.exposure > 100
    assert well.sum() >= 5
    assert np.abs(found.probabilities - CHAINS)[well].max() < 0.1
    inside = (found.low <= CHAINS + 1e-9) & (found.high + 1e-9 >= CHAINS)
    assert inside[well].mean() > 0.75
    assert (found.low <= found.probabilities).all()
    assert (found.probabilities <= found.high).all()
    np.testing.assert_allclose(found.bootstrap.sum(axis=3), 1.0)
    assert np.all(found.probabilities[0][np.tril_indices(5, -1)] == 0)
    assert found.identifiability == ()
    assert found.initial == pytest.approx([0.5, 0.5, 0, 0, 0], abs=0.15)


def test_the_same_seed_gives_the_same_fit_and_another_other_intervals(worn):
    columns, found = worn
    settings = {"states": list("01234"), "structure": {"nothing": "deteriorate"}, "bootstrap": 3, "goodness": 0}
    again, other = (am.fit(columns, seed=seed, **settings) for seed in (1, 2))
    np.testing.assert_array_equal(again.bootstrap, found.bootstrap[:3])
    np.testing.assert_array_equal(again.probabilities, other.probabilities)
    assert not np.array_equal(again.bootstrap, other.bootstrap)
    np.testing.assert_array_equal(am.fit(columns, seed=RNG(1), **settings).bootstrap, again.bootstrap)


@pytest.mark.parametrize(
    ("structure", "allowed"),
    [
        ("deteriorate", np.triu(np.ones((5, 5), dtype=bool))),
        ("deteriorate-by-steps", np.eye(5, dtype=bool) | np.eye(5, k=1, dtype=bool)),
        ("any", np.ones((5, 5), dtype=bool)),
        (np.triu(np.ones((5, 5), dtype=bool)), np.triu(np.ones((5, 5), dtype=bool))),
    ],
)
def test_structures_rule_out_transitions(structure, allowed):
    columns = records(WEAR[None], 60, 20, RNG(2), repairs=0)
    found = quick(columns, structure=structure, bootstrap=2)
    assert (found.probabilities[0][~allowed] == 0).all()
    assert (found.bootstrap[:, 0][:, ~allowed] == 0).all()
    assert (found.bootstrap[:, 0][:, allowed] > 0).all()


def test_improving_structures_are_the_mirror_of_deteriorating_ones():
    columns = records(WEAR[None], 40, 20, RNG(3), repairs=0)
    mirrored = columns | {"state": ["" if s == "" else str(4 - int(s)) for s in columns["state"]]}
    for kind in ("", "-by-steps"):
        down = quick(columns, structure=f"deteriorate{kind}", states=list("01234"))
        up = quick(mirrored, structure=f"improve{kind}", states=list("01234"))
        np.testing.assert_allclose(up.probabilities[0, ::-1, ::-1], down.probabilities[0], atol=1e-6)


def test_records_that_the_structure_rules_out_are_named():
    columns = {"unit": [1, 1, 1], "time": [0, 1, 3], "state": ["a", "b", "a"], "action": ["x", "x", "x"]}
    with pytest.raises(
        am.FitError, match=r"row 3: unit '1' was seen in 'b' at time 1 and in 'a' at time 3 after only 'x'"
    ):
        quick(columns, structure="deteriorate")
    with pytest.raises(am.FitError, match="unknown structure of action 'x' 'deteriorat'; did you mean 'deteriorate'"):
        quick(columns, structure="deteriorat")
    with pytest.raises(am.FitError, match="structure: unknown action 'y'"):
        quick(columns, structure={"y": "any"})
    with pytest.raises(am.FitError, match=r"shape \(3, 3\), expected truth values of shape \(2, 2\)"):
        quick(columns, structure=np.ones((3, 3), dtype=bool))
    with pytest.raises(am.FitError, match="allows nothing from state 1"):
        quick(columns, structure=np.array([[True, True], [False, False]]))


def test_an_action_never_tried_in_a_state_is_not_guessed():
    columns = records(CHAINS, 60, 20, RNG(4), longest_gap=1, repairs=0.1)
    told = [
        not (state == "4" and action == "repair")
        for state, action in zip(columns["state"], columns["action"], strict=True)
    ]
    columns = {
        name: [value for value, keep in zip(column, told, strict=True) if keep] for name, column in columns.items()
    }
    # Without these rows there are gaps, in which nothing was done.
    found = quick(columns, default_action="nothing", bootstrap=2)
    assert ("repair", "4") in found.unknown
    assert np.isnan(found.probabilities[1, 4]).all()
    assert np.isnan(found.bootstrap[:, 1, 4]).all()
    assert any("'repair' was never observed in 4" in str(warning) for warning in found.warnings)
    assert "not known" in found.summary()
    prices = am.Economics("EUR", "year", 0.95, 10, actions={"nothing": 0, "repair": 100})
    with pytest.raises(
        am.FitError, match=r"no information about 'repair' in state '4'.*--assume repair:0.*--drop repair"
    ):
        found.model(prices)
    assert found.without(["repair"]).model(prices).n_actions == 1
    fixed = quick(columns, default_action="nothing", assume={"repair": "0"}, bootstrap=2)
    assert fixed.probabilities[1, 4].tolist() == [1, 0, 0, 0, 0]
    assert fixed.low[1, 4].tolist() == fixed.high[1, 4].tolist() == [1, 0, 0, 0, 0]
    assert fixed.assumed.sum() == 1
    assert fixed.model(prices).n_actions == 2
    assert any("'repair' leads to 0, from 4" in str(note) for note in fixed.notes)
    stays = quick(columns, default_action="nothing", assume={"repair": "stay", "paint": "stay"}, drop=["repair"])
    assert stays.action_names == ("nothing", "paint")
    np.testing.assert_array_equal(stays.probabilities[1], np.eye(5))
    with pytest.raises(am.FitError, match="assume 'repair': unknown state '9'"):
        quick(columns, default_action="nothing", assume={"repair": "9"})
    with pytest.raises(am.FitError, match="unknown action to drop 'pain'"):
        quick(columns, default_action="nothing", drop=["pain"])


def test_an_assumption_does_not_override_records():
    columns = records(CHAINS, 40, 20, RNG(5), longest_gap=1, repairs=0.4)
    plain, assumed = quick(columns), quick(columns, assume={"repair": "stay"})
    np.testing.assert_array_equal(plain.probabilities, assumed.probabilities)
    assert not assumed.assumed.any()
    assert any("so nothing was assumed" in str(note) for note in assumed.notes)


def test_breakdowns_that_are_noticed_at_once_are_no_chance_inspections():
    """Units are inspected every 6 periods, but a breakdown is recorded when it comes: read as looks, these bias the fit."""
    chain = np.array([[0.85, 0.05, 0.1], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    rng, columns = RNG(6), {"unit": [], "time": [], "state": [], "action": []}
    for unit in range(1500):
        state = 0
        for time in range(25):
            if time % 6 == 0 or state == 2 or time == 24:
                seen = "" if time == 24 and state != 2 else "abc"[state]
                for name, value in zip(columns, (unit, time, seen, "wait"), strict=True):
                    columns[name].append(value)
            if state == 2:
                break
            state = int(rng.choice(3, p=chain[state]))
    told = quick(columns, structure="deteriorate", noticed=["c"])
    untold = quick(columns, structure="deteriorate")
    assert np.abs(told.probabilities[0] - chain)[:2].max() < 0.02
    assert abs(untold.probabilities[0, 0, 2] - chain[0, 2]) > 0.025
    assert abs(told.probabilities[0, 0, 2] - chain[0, 2]) < 0.01
    assert told.noticed == ("c",)
    with pytest.raises(am.FitError, match="unknown noticed state 'd'"):
        quick(columns, noticed=["d"])
    tested = am.fit(columns, structure="deteriorate", noticed=["c"], bootstrap=2, goodness=20)
    assert tested.goodness.p_value > 0.01
    assert tested.identifiability == ()


def test_equal_gaps_with_several_roots_are_told():
    chain = np.array([[[0.8, 0.2], [0.3, 0.7]]])
    columns = records(chain, 200, 13, RNG(1), longest_gap=1, repairs=0)
    every_other = columns | {
        "state": [s if t % 2 == 0 else "" for s, t in zip(columns["state"], columns["time"], strict=True)]
    }
    assert quick(columns).identifiability == ()
    said = " ".join(map(str, quick(every_other).identifiability))
    assert "All gaps are multiples of 2 periods" in said
    assert "Several chains fit equally well" in said
    # A chain that only gets worse has one root.
    worse = records(WEAR[None], 100, 13, RNG(1), longest_gap=1, repairs=0)
    worse["state"] = [s if t % 3 == 0 else "" for s, t in zip(worse["state"], worse["time"], strict=True)]
    said = " ".join(map(str, quick(worse, structure="deteriorate").identifiability))
    assert "All gaps are multiples of 3 periods" in said
    assert "Several chains" not in said


def test_flat_directions_are_told():
    """Two actions always one after the other, and a look only after both: only their product is known."""
    chains = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.1, 0.9]]])
    rng, columns = RNG(1), {"unit": [], "time": [], "state": [], "action": []}
    for unit in range(100):
        state = int(rng.integers(2))
        for time in range(13):
            row = (unit, time, str(state) if time % 2 == 0 else "", ("nothing", "treat")[time % 2])
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
            state = int(rng.choice(2, p=chains[time % 2, state]))
    said = " ".join(map(str, quick(columns).identifiability))
    assert "2 ways to change the probabilities that such records cannot show" in said
    assert "treat from" in said


def test_ageing_does_not_fit_and_is_told():
    rng, columns = RNG(0), {"unit": [], "time": [], "state": [], "action": []}
    for unit in range(80):
        state, age, look = 0, 0, 0
        for time in range(20):
            looks = time == look
            look = time + int(rng.integers(1, 5)) if looks else look
            for name, value in zip(columns, (unit, time, str(state) if looks else "", "wait"), strict=True):
                columns[name].append(value)
            leaves = rng.random() < (0.02, 0.05, 0.1, 0.3, 0.6, 0.9)[min(age, 5)] and state < 4
            state, age = (state + 1, 0) if leaves else (state, age + 1)
    found = am.fit(columns, structure="deteriorate", bootstrap=0, goodness=60)
    assert {test.name for test in found.goodness.tests} == {"gap", "history", "age"}
    assert found.goodness.p_value <= 0.05
    said = " ".join(map(str, found.goodness.findings))
    assert "the time a unit has been in it matters (ageing)" in said
    assert "were expected" in said
    assert ": significant misfit" in found.summary()
    few = am.fit(columns, structure="deteriorate", bootstrap=0, goodness=20)
    assert few.goodness.findings == ()
    assert "too few of them for a significant result" in few.summary()


@pytest.mark.slow
def test_goodness_is_calibrated():
    """Of records that a chain made, a test at 20 % should refuse about 20 %; 60 of them, three tests."""
    chain = np.array([[[0.85, 0.15, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]]])
    p_values = []
    for seed in range(60):
        columns = records(chain, 40, 12, RNG(100 + seed), longest_gap=3, repairs=0, starts=3)
        p_values += [test.p_value for test in am.fit(columns, bootstrap=0, goodness=24, seed=seed).goodness.tests]
    share = np.mean(np.array(p_values) <= 0.2)
    assert 0.1 < share < 0.3  # 180 tests, not independent: 0.2 with a standard error of at most 0.05


def test_little_data_are_told(worn):
    _, found = worn
    rare = {"unit": ["a", "a", "b", "b"], "time": [0, 1, 0, 2], "state": ["1", "2", "1", "1"], "action": ["x"] * 4}
    said = " ".join(map(str, quick(rare).warnings))
    assert "Units inspected twice or more: 2" in said
    assert "'x' has fewer than 10 periods of data in state 1 (2.0)" in said
    assert "'x' was never observed in 2" in said
    assert "'2' was seen only once" in said
    assert "few-units" not in [warning.code for warning in found.warnings]


def test_small_chances_over_short_periods_are_shown():
    """By day, a chance of 0.0004 is one of the largest, and not too small to be listed."""
    rows = [(unit, time, state) for unit in range(30) for time, state in ((0, "a"), (1000, "ab"[unit % 3 == 0]))]
    columns = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    found = am.fit(columns, default_action="wait", structure="deteriorate", bootstrap=0, goodness=0)
    assert found.probabilities[0, 0, 1] == pytest.approx(1 - (2 / 3) ** 0.001, rel=1e-4)
    assert " b   0.000405" in found.summary()


def test_few_replicates_are_told(worn):
    columns, _ = worn
    few = am.fit(columns, bootstrap=9, goodness=0)
    (note,) = (str(one) for one in few.notes if one.code == "few-replicates")
    assert "a level of 80.0%; 90.0% takes at least 19" in note
    np.testing.assert_array_equal(few.low, np.minimum(few.bootstrap.min(axis=0), few.probabilities) * (few.low > 0))
    enough = am.fit(columns, bootstrap=19, goodness=0)
    assert "few-replicates" not in {one.code for one in enough.notes}


def test_ctrl_c_keeps_the_replicates_that_are_done(worn):
    columns, found = worn

    def press(doing, done, total):
        if doing == "intervals" and done == 2:
            signal.raise_signal(signal.SIGINT)

    stopped = am.fit(
        columns, states=list("01234"), structure={"nothing": "deteriorate"}, bootstrap=50, goodness=0, seed=1, progress=press
    )  # fmt: skip
    np.testing.assert_array_equal(stopped.bootstrap, found.bootstrap[: len(stopped.bootstrap)])
    assert len(stopped.bootstrap) == 2
    assert any("2 of 50 replicates" in str(note) for note in stopped.notes)


@pytest.mark.slow
def test_intervals_cover():
    """A small version of benchmarks/fit_coverage.py: 25 sets of records, 90 % intervals for well observed probabilities."""
    from benchmarks.fit_coverage import coverage, wear_and_repair

    result, _ = coverage(wear_and_repair, range(25), replicates=60)
    assert result.count > 200
    # The probabilities of one set depend on each other, so the standard error is that between sets, about 0.02.
    assert 0.82 < result.covered < 0.97


def test_settings_are_checked():
    columns = {"unit": [1, 1], "time": [0, 1], "state": ["a", "b"], "action": ["x", "x"]}
    for settings, part in (
        ({"bootstrap": -1}, "bootstrap is -1"), ({"goodness": 1.5}, "goodness is 1.5"), ({"level": 1}, "level is 1"),
        ({"states": "ab"}, "expected a list of names"), ({"states": ["a", "a"]}, "'a' twice"), ({"states": []}, "is empty"),
        ({"default_action": "y", "actions": ["x"]}, "unknown action 'y'"), ({"age_breaks": 5}, "expected a list of numbers"),
        ({"structure": [[True], [True, False]]}, "expected truth values"), ({"noticed": "dead"}, "unknown noticed state 'dead'"),
    ):  # fmt: skip
        with pytest.raises(am.FitError, match=part):
            am.fit(columns, **settings)
