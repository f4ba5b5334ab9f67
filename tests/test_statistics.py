"""Estimates with intervals: textbook formulas, and intervals that hold the truth as often as they say."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from actmeasure import statistics
from actmeasure.studies import report

runs = st.lists(st.floats(-5, 5).map(lambda value: round(value, 3)), min_size=1, max_size=8)
REPETITIONS = 4000


def chance(seed=0):
    return np.random.default_rng(seed)


def within(share, expected, repetitions=REPETITIONS):
    """Whether a share is the expected one, up to chance."""
    return abs(share - expected) <= 3.5 * np.sqrt(expected * (1 - expected) / repetitions)


def covered(found, truth):
    return float(((found.low <= truth) & (truth <= found.high)).mean())


@given(
    st.lists(st.floats(-5, 5).map(lambda value: round(value, 3)), min_size=2, max_size=8).filter(
        lambda v: len(set(v)) > 1
    )
)
def test_the_interval_of_a_mean_is_students(values):
    found = statistics.mean(values)
    assert found.value == pytest.approx(np.mean(values))
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize("count", [5, 20])
def test_intervals_hold_the_truth_as_often_as_they_say(count):
    found = statistics.mean(chance(2).normal(3.0, 2.0, size=(count, REPETITIONS)))
    assert within(covered(found, 3.0), 0.95)


def test_the_deviation_of_a_mean_is_that_between_runs():
    values = chance(3).normal(size=5)
    found = statistics.mean(values)
    assert (found.mean, found.deviation) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert math.isnan(statistics.mean([1.0]).deviation)
    assert report.statistics is statistics


def test_several_means_at_once_are_the_single_ones():
    values = chance(3).normal(size=(6, 2))
    both = statistics.mean(values)
    for number in range(2):
        assert [each[number] for each in both] == pytest.approx([*statistics.mean(values[:, number])])


def test_runs_that_are_alike_have_no_interval_and_neither_has_a_single_one():
    for values in ([0.1] * 7, [0.1 + 0.2, 0.3, 0.3], [0.3]):
        found = statistics.mean(values)
        assert found.value == pytest.approx(np.mean(values))
        assert np.isnan([found.low, found.high]).all()
        assert np.isnan([*statistics.interquartile_mean(values)][1:]).all()
    alike = statistics.mean(np.full(4, 0.1))
    assert (alike.mean, alike.deviation) == pytest.approx((0.1, 0.0))
    assert np.isnan(alike.low)


@pytest.mark.parametrize("count", [19, 60, 199])
def test_quantile_intervals_hold_one_more_draw_with_their_level(count):
    """The share of further draws between the ends has the mean 0.9 for any number of draws and any distribution."""
    draws = chance(9).exponential(size=(count, REPETITIONS))
    low, high = statistics.quantile_interval(draws, 0.9)
    held = np.exp(-low) - np.exp(-high)
    assert abs(held.mean() - 0.9) < 4 * held.std() / np.sqrt(REPETITIONS) + 1e-3
    # The usual quantiles hold less.
    inside = np.exp(-np.quantile(draws, [0.05, 0.95], axis=0))
    assert (inside[0] - inside[1]).mean() < held.mean()


def test_interquartile_mean_is_that_of_tukey_and_mclaughlin():
    values = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5])
    found = statistics.interquartile_mean(values)
    assert found.value == pytest.approx(stats.trim_mean(values, 0.25))
    winsorized = np.clip(values, *np.sort(values)[[2, 5]])
    half = stats.t.ppf(0.975, 3) * winsorized.std(ddof=1) / (0.5 * np.sqrt(8))
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))
    # One run among many that is far off hardly moves it, while it moves the mean.
    many = chance(4).normal(size=40)
    one, other = (statistics.interquartile_mean(each).value for each in (many, np.append(many, -1000.0)))
    assert one == pytest.approx(other, abs=0.1)


@pytest.mark.parametrize("count", [5, 20])
def test_coverage_of_interquartile_means(count):
    found = statistics.interquartile_mean(chance(5).normal(1.0, 2.0, size=(count, REPETITIONS)))
    assert 0.93 <= covered(found, 1.0) <= 0.98


def padded(problems):
    """Runs of several problems, NaN where there are fewer."""
    most = max(map(len, problems))
    return np.array([[*each, *[np.nan] * (most - len(each))] for each in problems])


def test_differences_of_the_same_seeds_are_paired_and_others_welchs():
    one, other = chance(6).normal(size=(1, 6)), chance(7).normal(size=(1, 6))
    found = statistics.difference(one, other)
    assert (found.low, found.high) == pytest.approx(stats.ttest_rel(one[0], other[0]).confidence_interval(0.95))
    fewer = statistics.difference(one, other[:, :4])
    welch = stats.ttest_ind(one[0], other[0, :4], equal_var=False)
    assert fewer.value == pytest.approx(one.mean() - other[0, :4].mean())
    assert (fewer.low, fewer.high) == pytest.approx(welch.confidence_interval(0.95))
    turned = statistics.difference(other, one)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize("sizes", [(5, 5), (20, 20), (20, 5)])
def test_coverage_of_differences_over_problems_that_depend_on_each_other(sizes):
    """A seed that is lucky on one problem is lucky on all: only seeds are independent."""
    generator, inside = chance(8), 0
    for _ in range(2000):
        one, other = (generator.normal(size=(1, size)) + 0.3 * generator.normal(size=(3, size)) for size in sizes)
        found = statistics.difference(one + 0.4, other)
        inside += found.low <= 0.4 <= found.high
    assert 0.93 <= inside / 2000 <= 0.97


@settings(max_examples=30)
@given(st.lists(st.tuples(runs, runs), min_size=1, max_size=3))
def test_probability_of_improvement_is_the_share_of_won_pairs(problems):
    one, other = [pair[0] for pair in problems], [pair[1] for pair in problems]
    shares = [
        np.mean([(x > y) + (x == y) / 2 for x, y in product(left, right)])
        for left, right in zip(one, other, strict=True)
    ]
    found = statistics.probability_of_improvement(padded(one), padded(other))
    assert found.value == pytest.approx(np.mean(shares))
    assert np.isnan(found.low) or 0 <= found.low <= found.value <= found.high <= 1
    turned = statistics.probability_of_improvement(padded(other), padded(one))
    assert turned.value == pytest.approx(1 - found.value)
    if not np.isnan(found.low):
        assert (1 - turned.high, 1 - turned.low) == pytest.approx((found.low, found.high))


def test_probability_of_improvement_is_that_of_brunner_and_munzel():
    one, other = chance(9).normal(0.5, 1, size=12), chance(10).normal(0, 2, size=9)
    found = statistics.probability_of_improvement([one], [other])
    # Their statistic is the distance from one half in standard errors, and so gives half of the interval's width.
    test = stats.brunnermunzel(other, one)
    placements = [(one[:, None] > other).mean(axis=1), (one[:, None] > other).mean(axis=0)]
    errors = [each.var(ddof=1) / len(each) for each in placements]
    assert (found.value - 0.5) / np.sqrt(sum(errors)) == pytest.approx(test.statistic, rel=1e-6)
    freedom = sum(errors) ** 2 / sum(error**2 / (len(each) - 1) for error, each in zip(errors, placements, strict=True))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, freedom) * np.sqrt(sum(errors)))


def test_one_that_always_wins_has_no_interval():
    found = statistics.probability_of_improvement([[5.0, 6], [1, 2]], [[1.0, 2], [5, 6]])
    assert found.value == 0.5
    assert np.isnan(found.low)


def test_the_same_runs_on_many_problems_tell_no_more_than_on_one():
    generator = chance(8)
    one, other = generator.normal(0.5, 1, size=(1, 20)), generator.normal(0, 1, size=(1, 20))
    for estimate in (statistics.probability_of_improvement, statistics.difference):
        many = estimate(np.repeat(one, 5, axis=0), np.repeat(other, 5, axis=0))
        assert many == pytest.approx(estimate(one, other))


@pytest.mark.parametrize("count", [5, 20])
def test_coverage_of_the_probability_of_improvement(count):
    inside, generator = 0, chance(11)
    for _ in range(1000):
        one, other = generator.normal(1, 1, size=(2, count)), generator.normal(0, 1, size=(2, count))
        found = statistics.probability_of_improvement(one, other)
        inside += found.low <= stats.norm.cdf(1 / np.sqrt(2)) <= found.high
    assert 0.91 <= inside / 1000 <= 0.98


@pytest.mark.parametrize("count", [5, 20])
def test_expected_means_hold_the_means_of_new_runs(count):
    generator, inside = chance(12), 0
    for _ in range(REPETITIONS):
        low, high = statistics.expected_means(generator.normal(size=count), 5)
        inside += low <= generator.normal(size=5).mean() <= high
    assert within(inside / REPETITIONS, 0.95)


def test_of_a_single_run_no_mean_is_expected():
    assert np.isnan(statistics.expected_means([0.3], 5)).all()


def test_running_means():
    assert statistics.running_means([[1, 2, 3, 4]], 2).tolist() == [[1.5, 2.5, 3.5]]
