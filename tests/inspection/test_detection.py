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


def test_separated_trials_are_not_settled():
    found = am.fit_detection([1, 2, 3, 4], [0, 0, 1, 1])
    assert not found.converged
    assert found.summary().startswith("Not settled")


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
