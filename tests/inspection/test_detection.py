"""Probability-of-detection curves."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import actmeasure as am

RNG = np.random.default_rng


def trials(kind, n, rng, location=1.0, spread=0.6):
    sizes = rng.lognormal(1.0, 0.8, size=n)
    z = (np.log(sizes) - location) / spread
    chance = {
        "log-normal": special.ndtr(z),
        "log-logistic": special.expit(z),
        "exponential": 1 - np.exp(-sizes / np.exp(location)),
    }
    return sizes, rng.random(n) < chance[kind]


@pytest.mark.parametrize("kind", ["log-normal", "log-logistic", "exponential"])
def test_curves_are_recovered(kind):
    sizes, hits = trials(kind, 3000, RNG(1))
    found = am.fit_detection(sizes, hits, kind)
    assert found.converged
    assert found.location == pytest.approx(1.0, abs=0.1)
    if kind != "exponential":
        assert found.spread == pytest.approx(0.6, abs=0.08)
    low, high = found.interval([1.0, 3.0, 9.0])
    assert (low < found.pod([1.0, 3.0, 9.0])).all()
    assert (found.pod([1.0, 3.0, 9.0]) < high).all()
    size, least, most = found.size(0.9)
    assert least < size < most
    assert found.pod([size])[0] == pytest.approx(0.9)
    assert kind in found.summary()


def test_the_maximum_is_that_of_another_optimiser():
    sizes, hits = trials("log-normal", 200, RNG(2))
    found = am.fit_detection(sizes, hits)

    def loss(x):
        chance = stats.norm.cdf(np.log(sizes), x[0], abs(x[1]))
        return -stats.bernoulli.logpmf(hits.astype(int), chance.clip(1e-12, 1 - 1e-12)).sum()

    other = optimize.minimize(loss, [0.5, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert found.log_likelihood == pytest.approx(-other.fun, abs=1e-6)
    assert [found.location, found.spread] == pytest.approx([other.x[0], abs(other.x[1])], abs=1e-4)


def test_a_curve_becomes_a_measurement():
    sizes, hits = trials("log-logistic", 500, RNG(3))
    found = am.fit_detection(sizes, hits, kind="best", level=0.95)
    assert found.level == 0.95
    visual = found.measurement("visual", cost=10.0, sizes=[0.0, 1.0, 8.0])
    assert visual.outcomes == ("miss", "hit")
    model = am.Model.from_arrays(
        np.tile(np.eye(3)[:, None], (1, 1, 1)), np.zeros((3, 1)), measurements=[visual], discount=0.9, initial=[1, 0, 0]
    )
    law = model.measurements[0].law.matrix().toarray()
    np.testing.assert_allclose(law[:, 1], found.pod([0.0, 1.0, 8.0]), atol=1e-12)
    assert law[0, 1] < 1e-12


@pytest.mark.parametrize("kind", ["log-normal", "log-logistic"])
def test_intervals_are_what_the_likelihood_ratio_does_not_reject(kind):
    """The ends of an interval are the extremes of the curves, on a dense grid, whose likelihood ratio is not significant."""
    sizes, hits = trials(kind, 40, RNG(5))
    found = am.fit_detection(sizes, hits, kind)
    locations, spreads = np.meshgrid(np.linspace(-1, 3, 500), np.exp(np.linspace(-4, 3, 500)), indexing="ij")
    z = (np.log(sizes) - locations[..., None]) / spreads[..., None]
    chance = {"log-normal": special.ndtr, "log-logistic": special.expit}[kind]
    log = {"log-normal": special.log_ndtr, "log-logistic": special.log_expit}[kind]
    values = np.where(hits, log(z), log(-z)).sum(axis=2)
    kept = 2 * (values.max() - values) <= stats.chi2.ppf(0.9, 1)
    for size in (1.0, 4.0):
        curves = chance((np.log(size) - locations) / spreads)[kept]
        low, high = found.interval([size])
        assert (low[0], high[0]) == pytest.approx((curves.min(), curves.max()), abs=0.01)
    half, least, most = found.size(0.5)
    assert (half, least, most) == pytest.approx(
        (np.exp(found.location), np.exp(locations[kept].min()), np.exp(locations[kept].max())), rel=0.02
    )


def test_separated_trials_are_not_settled():
    found = am.fit_detection([1, 2, 3, 4], [0, 0, 1, 1])
    assert not found.converged
    assert found.summary().startswith("Not settled: hits and misses are separated")
    low, high = found.interval([0.0, 0.5, 2.5, 9.0])
    assert (low[2], high[2]) == (0.0, 1.0)  # between the largest miss and the smallest hit anything can be
    assert 0.0 == high[0] < high[1] < 1.0
    assert 0.0 < low[3] < high[3] == 1.0


def test_hits_that_do_not_rise_with_size_are_no_curve():
    found = am.fit_detection([1, 2, 3, 4, 5, 6], [1, 1, 0, 1, 0, 0])
    assert not found.converged
    assert found.summary().startswith("Not settled: hits do not become more frequent with size")
    assert found.size(0.9)[2] == np.inf


@pytest.mark.parametrize(
    ("sizes", "hits", "settings", "part"),
    [
        ([1, 2], [True], {}, "expected one of each"),
        ([], [], {}, "expected one of each"),
        ([0, 2], [0, 1], {}, "trial 1 has the size 0"),
        ([1, np.nan], [0, 1], {}, "trial 2 has the size nan"),
        ([1, 2], [0, 2], {}, "trial 2 has the hit 2"),
        ([1, 2], [1, 1], {}, "every trial is a hit"),
        (["a"], [1], {}, "must be numbers"),
        ([1, 2], [0, 1], {"kind": "normal"}, "unknown kind of curve 'normal'"),
        ([1, 2], [0, 1], {"level": 2}, "level is 2"),
    ],
)
def test_trials_are_checked(sizes, hits, settings, part):
    with pytest.raises(am.FitError, match=part):
        am.fit_detection(sizes, hits, **settings)
