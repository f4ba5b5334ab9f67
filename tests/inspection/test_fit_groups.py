"""Groups of units: separate and shared parameters, and whether they differ."""

import numpy as np
import pytest
from simulated import WEAR, Q, records, visits

import actmeasure as am

RNG = np.random.default_rng
QUICK = {"bootstrap": 0, "goodness": 0}


def two_groups(first, second):
    count = len(set(first["unit"]))
    both = {name: [*first[name], *second[name]] for name in first}
    both["unit"] = [*(f"a{one}" for one in first["unit"]), *(f"b{one}" for one in second["unit"])]
    both["material"] = ["clay"] * len(first["unit"]) + ["steel"] * len(second["unit"])
    assert count
    return both


def test_groups_that_differ_are_told_apart_and_are_separate_fits(tmp_path):
    slow = np.eye(5) * 0.5 + 0.5 * WEAR
    seen = two_groups(records(WEAR[None], 60, 15, RNG(1), repairs=0), records(slow[None], 60, 15, RNG(2), repairs=0))
    settings = QUICK | {"structure": "deteriorate-by-steps", "states": list("01234")}
    found = am.fit_groups(seen, "material", **settings, drop=())
    assert found.differ
    assert found.degrees == 4
    assert set(found.fits) == {"clay", "steel"}
    alone = {
        name: am.fit({key: [v for v, m in zip(column, seen["material"], strict=True) if m == name] for key, column in
        seen.items()},
                     **settings)
        for name in found.fits
    }  # fmt: skip
    for name, one in found.fits.items():
        np.testing.assert_allclose(one.probabilities, alone[name].probabilities, atol=1e-3)
        assert one.n_units == 60
        assert one.action_names == ("nothing",)
    total = sum(one.log_likelihood for one in alone.values())
    assert found.fits["clay"].log_likelihood == pytest.approx(total, abs=1e-3)
    assert found.statistic == pytest.approx(2 * (total - found.shared.log_likelihood), abs=2e-3)
    paths = found.save(tmp_path / "fit.npz")
    assert am.Fit.load(paths["steel"]).summary() == found.fits["steel"].summary()
    assert am.Fit.load(tmp_path / "fit.npz").n_units == 120
    assert "differ significantly" in found.summary()


def test_groups_that_are_alike_share_their_parameters():
    seen = two_groups(records(WEAR[None], 50, 12, RNG(3), repairs=0), records(WEAR[None], 50, 12, RNG(4), repairs=0))
    found = am.fit_groups(seen, "material", structure="deteriorate-by-steps", **QUICK)
    assert found.p_value > 0.001
    assert found.statistic >= 0
    assert "All groups together" in found.summary()


def test_shared_parameters_by_age_are_those_of_a_fit_by_age():
    """With its start at the maximum without ages, and its test of whether these make a difference."""
    seen = two_groups(visits(12, RNG(5), True), visits(12, RNG(6), True, q=2 * Q))
    settings = QUICK | {
        "time": "continuous", "structure": Q > 0, "noticed": ["4"], "default_action": "wait", "states": list("1234"),
    }  # fmt: skip
    found = am.fit_groups(seen, "material", age_breaks=[2], **settings)
    alone = {name: seen[name] for name in ("unit", "time", "state")}
    aged, constant = am.fit(alone, age_breaks=[2], **settings), am.fit(alone, **settings)
    assert found.shared.summary() == aged.summary()
    assert found.fits["clay"].log_likelihood >= found.shared.log_likelihood >= constant.log_likelihood


def test_errors_are_shared_between_groups():
    errors = np.array([[0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    seen = two_groups(visits(80, RNG(5), True, errors), visits(80, RNG(6), True, errors, q=2 * Q))
    found = am.fit_groups(
        seen, "material", time="continuous", structure=Q > 0, noticed=["4"], errors={"1": ["2"], "2": ["1"]},
        default_action="wait", states=list("1234"), **QUICK,
    )  # fmt: skip
    np.testing.assert_array_equal(found.fits["clay"].errors, found.fits["steel"].errors)
    assert found.degrees == 7
    assert found.fits["steel"].intensities[0, 0, 1] > found.fits["clay"].intensities[0, 0, 1]
    assert found.differ


def test_groups_are_checked():
    seen = {"unit": [1, 1, 2, 2], "time": [0, 1, 0, 1], "state": list("abab"), "kind": ["x", "y", "x", "x"]}
    for by, change, part in (
        ("kind", {}, "is in the groups"), ("sort", {}, "no column 'sort'"), ("kind", {"kind": ["x"] * 4}, "names only one group"),
        ("kind", {"kind": ["x", "x", "", ""]}, "is in no group"), ("", {}, "by is ''"),
    ):  # fmt: skip
        with pytest.raises(am.FitError, match=part):
            am.fit_groups(seen | change, by, default_action="wait", **QUICK)
    with pytest.raises(am.FitError, match="unknown setting 'bootstraps'"):
        am.fit_groups(seen, "kind", bootstraps=3)
