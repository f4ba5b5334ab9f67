"""Fits as files."""

import dataclasses

import numpy as np
import pytest
from simulated import CHAINS, records

import actmeasure as am


@pytest.fixture(scope="module")
def fit():
    columns = records(CHAINS, 40, 15, np.random.default_rng(0))
    return am.fit(columns, bootstrap=3, goodness=3, period="year", noticed=["4"], default_action="nothing")


@pytest.mark.parametrize(
    "parts", [{}, {"bootstrap": None, "low": None, "high": None, "goodness": None, "period": None}]
)
def test_what_is_saved_is_loaded(tmp_path, fit, parts):
    before = dataclasses.replace(fit, **parts)
    before.save(tmp_path / "fit.npz")
    after = am.Fit.load(tmp_path / "fit.npz")
    for field in dataclasses.fields(am.Fit):
        one, other = getattr(before, field.name), getattr(after, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
            assert not other.flags.writeable
        else:
            assert one == other, field.name
    assert after.summary() == before.summary()


def test_damaged_and_other_files_are_refused(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    whole = path.read_bytes()
    flipped = whole[:300] + bytes([whole[300] ^ 255]) + whole[301:]
    for damaged in (whole[: len(whole) // 2], b"", b"PK\x03\x04 nothing", flipped):
        path.write_bytes(damaged)
        with pytest.raises(am.FitError, match=r"fit\.npz"):
            am.Fit.load(path)
    am.problems.measuring_value().save(path)
    with pytest.raises(am.FitError, match="not a fit file"):
        am.Fit.load(path)
    with pytest.raises(am.FitError, match="no such file"):
        am.Fit.load(tmp_path / "nowhere.npz")
    with pytest.raises(am.FitError, match=r"ends in \.npz"):
        fit.save(tmp_path / "fit.json")
    with pytest.raises(am.FitError, match="its folder does not exist"):
        fit.save(tmp_path / "nowhere" / "fit.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"probabilities": np.full((2, 5, 5), 0.3)},
        {"initial": np.ones(4)},
        {"bootstrap": np.full((3, 2, 5, 5), -0.2)},
        {"inspected": np.zeros((5, 2), dtype=np.int64)},
        {"n_units": -1},
        {"period": 3},
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, fit, change):
    dataclasses.replace(fit, **change).save(tmp_path / "fit.npz")
    with pytest.raises(am.FitError):
        am.Fit.load(tmp_path / "fit.npz")


def test_the_summary_tells_all(fit):
    text = fit.summary()
    for part in (
        "40 units",
        "0 < 1 < 2 < 3 < 4",
        "noticed without an inspection: 4",
        "90 % interval",
        "years",
        "Goodness of fit",
    ):
        assert part in text
    assert "3 replicates" in repr(fit)
