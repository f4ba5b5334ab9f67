"""Estimates and intervals against closed forms, brute force, and how often the truth is inside."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from actmeasure.report import statistics

runs = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=6)


def chance(seed=0):
    return np.random.default_rng(seed)


def test_running_means():
    episodes = np.arange(12.0).reshape(2, 6)
    assert statistics.running_means(episodes, 3).tolist() == [[1, 2, 3, 4], [7, 8, 9, 10]]


@settings(max_examples=20)
@given(runs)
def test_the_interval_of_a_mean_is_that_of_all_resamples(values):
    """With few runs every resample can be listed, so that the percentiles are known."""
    if len(values) > 5:
        values = values[:5]
    every = np.array([np.mean(drawn) for drawn in product(values, repeat=len(values))])
    found = statistics.mean(values, chance(), resamples=4000)
    assert found.value == pytest.approx(np.mean(values))
    for share, bound in ((0.025, found.low), (0.975, found.high)):
        # The bound is a quantile of all resamples for a share that is right up to chance.
        below, up_to = (every < bound - 1e-9).mean(), (every <= bound + 1e-9).mean()
        assert below - 0.012 <= share <= up_to + 0.012


def test_a_mean_of_many_runs_has_the_interval_of_the_central_limit():
    values = chance(1).normal(3, 2, size=1000)
    found = statistics.mean(values, chance())
    half = 1.96 * values.std() / np.sqrt(1000)
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


@pytest.mark.parametrize(("count", "expected"), [(20, 0.93), (5, 0.84)])
def test_coverage_is_what_is_said_of_percentile_intervals(count, expected):
    """A percentile interval is narrower than Student's by a known factor, which gives its coverage for normal runs."""
    factor = stats.norm.ppf(0.975) * np.sqrt((count - 1) / count)
    exact = 2 * stats.t.cdf(factor, count - 1) - 1
    assert exact == pytest.approx(expected, abs=0.01)
    repetitions = 1500
    values = chance(2).normal(size=(count, repetitions))
    found = statistics.mean(values, chance(), resamples=1000)
    covered = ((found.low <= 0) & (found.high >= 0)).mean()
    assert covered == pytest.approx(exact, abs=3.5 * np.sqrt(exact * (1 - exact) / repetitions) + 0.01)


def test_several_means_at_once_are_the_single_ones():
    values = chance(3).normal(size=(6, 2))
    both = statistics.mean(values, chance())
    assert both.value.tolist() == pytest.approx(values.mean(axis=0))
    assert np.all(both.low < both.value)
    assert np.all(both.value < both.high)
    assert statistics.mean(values[:, 0], chance()).low == pytest.approx(both.low[0], abs=0.1)


def test_interquartile_mean():
    found = statistics.interquartile_mean([0.0, 10, 11, 12, 13, 14, 15, 99], chance())
    assert found.value == pytest.approx(12.5)
    assert found.low <= 12.5 <= found.high
    # One run among many that is far off hardly moves it, while it moves the mean.
    values = chance(4).normal(size=40)
    spoiled = np.append(values, -1000.0)
    one, other = (statistics.interquartile_mean(each, chance()).value for each in (values, spoiled))
    assert one == pytest.approx(other, abs=0.1)


def padded(problems):
    """Runs of several problems, NaN where there are fewer."""
    most = max(map(len, problems))
    return np.array([[*each, *[np.nan] * (most - len(each))] for each in problems])


@settings(max_examples=30)
@given(st.lists(st.tuples(runs, runs), min_size=1, max_size=3))
def test_probability_of_improvement_is_the_share_of_won_pairs(problems):
    one, other = [pair[0] for pair in problems], [pair[1] for pair in problems]
    shares = [
        np.mean([(x > y) + (x == y) / 2 for x, y in product(left, right)])
        for left, right in zip(one, other, strict=True)
    ]
    found = statistics.probability_of_improvement(padded(one), padded(other), chance(), resamples=100)
    assert found.value == pytest.approx(np.mean(shares))
    if all(len(each) == len(one[0]) for each in one) and all(len(each) == len(other[0]) for each in other):
        assert 0 <= found.low <= found.value <= found.high <= 1
    turned = statistics.probability_of_improvement(padded(other), padded(one), chance(), resamples=100)
    assert turned.value == pytest.approx(1 - found.value)
    u = stats.mannwhitneyu(one[0], other[0]).statistic / (len(one[0]) * len(other[0]))
    assert shares[0] == pytest.approx(u)


def test_probability_of_improvement_resamples_within_problems():
    """Runs of different problems are never mixed: one always wins on the first problem, and always loses on the second."""
    found = statistics.probability_of_improvement([[5.0, 6], [1, 2]], [[1.0, 2], [5, 6]], chance())
    assert found == (0.5, 0.5, 0.5)


def test_an_interval_from_resamples_without_runs_is_unknown():
    found = statistics.probability_of_improvement(
        [[1.0, np.nan], [np.nan, 1.0]], [[0.0, np.nan], [np.nan, 2.0]], chance()
    )
    assert found.value == 0.5
    assert np.isnan([found.low, found.high]).all()


def test_seeds_are_drawn_once_for_all_problems():
    """The same runs on many problems tell no more than on one: the interval stays as wide."""
    generator = chance(8)
    one, other = generator.normal(0.5, 1, size=(1, 20)), generator.normal(0, 1, size=(1, 20))
    single = statistics.probability_of_improvement(one, other, chance())
    many = statistics.probability_of_improvement(np.repeat(one, 5, axis=0), np.repeat(other, 5, axis=0), chance())
    assert many == pytest.approx(single)


def test_coverage_of_the_probability_of_improvement():
    inside = []
    for seed in range(150):
        generator = chance(seed)
        one, other = generator.normal(1, 1, size=(2, 20)), generator.normal(0, 1, size=(2, 20))
        found = statistics.probability_of_improvement(one, other, generator, resamples=400)
        inside.append(found.low <= stats.norm.cdf(1 / np.sqrt(2)) <= found.high)
    assert np.mean(inside) == pytest.approx(0.93, abs=0.06)


def test_expected_means_hold_the_means_of_new_runs():
    values = chance(5).normal(size=200)
    low, high = statistics.expected_means(values, 5, chance())
    new = chance(6).normal(size=(4000, 5)).mean(axis=1)
    assert ((low <= new) & (new <= high)).mean() == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(("count", "expected"), [(20, 0.935), (5, 0.878)])
def test_expected_means_allow_for_the_chance_of_our_own_mean(count, expected):
    """For normal runs the interval is one of the normal distribution where Student's is exact, which gives its coverage."""
    exact = 2 * stats.t.cdf(stats.norm.ppf(0.975), count - 1) - 1
    assert exact == pytest.approx(expected, abs=0.001)
    repetitions, generator, inside = 3000, chance(9), 0
    for _ in range(repetitions):
        low, high = statistics.expected_means(generator.normal(size=count), 5, generator, resamples=500)
        inside += low <= generator.normal(size=5).mean() <= high
    # By chance, and because resampled means of few runs are not quite normal.
    assert inside / repetitions == pytest.approx(exact, abs=3.5 * np.sqrt(exact * (1 - exact) / repetitions) + 0.015)


def test_of_a_single_run_no_mean_is_expected():
    assert np.isnan(statistics.expected_means([0.3], 5, chance())).all()


def test_equal_runs_have_a_point_and_one_run_has_no_interval():
    assert statistics.mean([0.1] * 7, chance()) == pytest.approx((0.1, 0.1, 0.1))
    found = statistics.mean([0.3], chance())
    assert found.value == pytest.approx(0.3)
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_the_generator_decides_and_nothing_else_does():
    values = chance(7).normal(size=9)
    assert statistics.mean(values, chance(1)) == statistics.mean(values, chance(1))
    assert statistics.mean(values, chance(1)) != statistics.mean(values, chance(2))
