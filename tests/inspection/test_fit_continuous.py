"""Intensities: the likelihood against dense matrix exponentials, recovery, and models for any period."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.linalg import expm
from simulated import Q, visits
from strategies import examples

import actmeasure as am
from actmeasure.inspection.flows import Flows, generator
from actmeasure.inspection.gaps import find_gaps
from actmeasure.inspection.likelihood import Likelihood
from actmeasure.inspection.records import read_records

RNG = np.random.default_rng


def quick(records, **settings):
    given_settings = {
        "time": "continuous",
        "default_action": "wait",
        "states": list("1234"),
        "bootstrap": 0,
        "goodness": 0,
    }
    return am.fit(records, **(given_settings | settings))


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 50.0, 1e4]))
@examples(30)
def test_transition_probabilities_are_matrix_exponentials_and_so_is_their_gradient(seed, longest):
    rng = RNG(seed)
    size = int(rng.integers(2, 6))
    intensities = generator(rng.exponential(size=(size, size)) * (rng.random((size, size)) < 0.7))
    durations = np.r_[0.0, rng.random(4) * longest]
    flows = Flows(durations)
    found = flows.matrices(intensities)
    np.testing.assert_allclose(found, [expm(intensities * t) for t in durations], atol=1e-10)
    change = rng.normal(size=found.shape)
    slope = flows.gradient(change)
    i, j = int(rng.integers(size)), int(rng.integers(size))
    step = 1e-6
    above, below = intensities.copy(), intensities.copy()
    above[i, j] += step
    below[i, j] -= step
    by_hand = sum((c * (expm(above * t) - expm(below * t))).sum() for c, t in zip(change, durations, strict=True)) / (
        2 * step
    )
    assert slope[i, j] == pytest.approx(by_hand, rel=1e-4, abs=1e-4)


def test_many_steps_in_a_short_time_have_their_small_probability():
    """With equal rates, 59 steps within t have the Poisson probability of at least 59 events with mean t."""
    flows = Flows(np.array([1e-3, 0.5]))
    found = flows.matrices(generator(np.eye(60, k=1)))
    np.testing.assert_allclose(found[:, 0, 59], special.gammainc(59, [1e-3, 0.5]), rtol=1e-9)
    change = np.zeros_like(found)
    change[1, 0, 59] = 1.0 / found[1, 0, 59]
    # Faster everywhere by the factor 1 + e is the time t (1 + e); the density of step 59 is that of its Erlang distribution.
    slope = (flows.gradient(change) * generator(np.eye(60, k=1))).sum()
    assert slope == pytest.approx(0.5 * stats.gamma.pdf(0.5, 59) / found[1, 0, 59], rel=1e-9)


def slow_log_likelihood(records, q, noticed=None):
    """The likelihood of panel data with exact times of entering the last state, gap by gap."""
    units = {}
    for unit, time, state in zip(records["unit"], records["time"], records["state"], strict=True):
        units.setdefault(unit, []).append((time, None if state == "" else int(state) - 1))
    masked = q.copy()
    if noticed is not None:
        masked[:noticed, noticed] = 0
    total, powers = 0.0, {}
    for seen in units.values():
        for (begin, one), (end, other) in zip(sorted(seen), sorted(seen)[1:], strict=False):
            gap = round(end - begin, 9)
            if gap not in powers:
                powers[gap] = expm(masked * gap)
            chances = powers[gap][one]
            if other is None:
                total += np.log(chances.sum())
            elif other == noticed:
                total += np.log(chances[:noticed] @ q[:noticed, noticed])
            else:
                total += np.log(chances[other])
    return total


@pytest.mark.parametrize("noticed", [(), ("4",)])
def test_the_likelihood_is_that_of_dense_exponentials(noticed):
    records = visits(15, RNG(1), exact=bool(noticed))
    read = read_records(records, states=list("1234"), default_action="wait", continuous=True)
    likelihood = Likelihood(find_gaps(read, "wait", noticed))
    rates = RNG(2).exponential(size=(1, 4, 4)) * ~np.eye(4, dtype=bool)
    rates[0, 3] = 0
    value, gradient = likelihood.gradient(rates, likelihood.data())
    assert value == pytest.approx(slow_log_likelihood(records, generator(rates[0]), 3 if noticed else None), rel=1e-9)
    step = 1e-6
    for i, j in ((0, 1), (1, 3), (2, 0)):
        nudged = rates.copy()
        nudged[0, i, j] += step
        slope = (likelihood.gradient(nudged, likelihood.data())[0] - value) / step
        assert gradient[0, i, j] - gradient[0, i, i] == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_intensities_are_recovered_with_exact_failure_times():
    records = visits(250, RNG(3), exact=True)
    found = quick(records, structure=Q > 0, noticed=["4"], bootstrap=15, goodness=5)
    assert found.converged
    assert found.time == "continuous"
    np.testing.assert_allclose(found.intensities.sum(axis=2), 0, atol=1e-12)
    assert np.abs(found.intensities[0] - Q).max() < 0.12
    inside = (found.dynamics_low[0] <= Q + 1e-9) & (found.dynamics_high[0] >= Q - 1e-9)
    assert inside[Q > 0].mean() > 0.5
    np.testing.assert_allclose(found.probabilities[0], expm(found.intensities[0]), atol=1e-10)
    assert found.log_likelihood == pytest.approx(slow_log_likelihood(records, found.intensities[0], 3), abs=1e-6)
    assert found.log_likelihood >= slow_log_likelihood(records, Q, 3)
    assert "rate per" in found.summary()


def test_interval_censored_failures_are_panel_data():
    records = visits(200, RNG(4), exact=False)
    found = quick(records, structure=Q > 0)
    assert found.log_likelihood == pytest.approx(slow_log_likelihood(records, found.intensities[0]), abs=1e-6)
    assert np.abs(found.intensities[0] - Q).max() < 0.15


def test_discrete_and_continuous_time_agree_where_both_apply():
    """With gaps of one period, the chain of a period is the frequencies, and expm(Q) is the same chain if it has a logarithm."""
    rng = RNG(5)
    q = np.array([[-0.2, 0.2, 0.0], [0.0, -0.3, 0.3], [0.0, 0.0, 0.0]])
    step, rows = expm(q), []
    for unit in range(400):
        state = int(rng.integers(2))
        for time in range(6):
            rows.append((unit, time, "123"[state]))
            state = int(rng.choice(3, p=step[state]))
    records = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = {"default_action": "wait", "structure": "deteriorate", "bootstrap": 0, "goodness": 0}
    discrete = am.fit(records, **settings)
    continuous = am.fit(records, time="continuous", **settings)
    # Both have three free parameters, and the fitted chain is the exponential of intensities that are not negative or nearly so.
    assert continuous.log_likelihood <= discrete.log_likelihood + 1e-6
    assert continuous.log_likelihood == pytest.approx(discrete.log_likelihood, abs=1.0)
    np.testing.assert_allclose(continuous.probabilities, discrete.probabilities, atol=0.01)


PRICES = am.Economics("EUR", "year", 0.9, 10, actions={"wait": 0, "renew": 100}, running={"3": 12.0}, terminal=("4",))


def yearly_matrix(model):
    """The transition probabilities of states that are not terminal, (A, S - 1, S), by moving a belief one step."""
    table = np.zeros((model.n_actions, 3, 4))
    for action in range(model.n_actions):
        for state in range(3):
            successors, chances = model.transitions.row(state, action)
            table[action, state, successors] = chances
    return table


def test_any_period_can_be_planned_for():
    found = quick(visits(150, RNG(6), exact=True), structure=Q > 0, noticed=["4"], assume={"renew": "1"}, period="year")
    yearly, monthly = found.model(PRICES), found.model(PRICES, period="month")
    assert yearly.discount == 0.9
    assert monthly.discount == pytest.approx(0.9 ** (1 / 12))
    wait, renew = (found.action_names.index(name) for name in ("wait", "renew"))
    year = yearly_matrix(yearly)
    np.testing.assert_allclose(year[wait], expm(found.intensities[wait])[:3], atol=1e-9)
    month = np.concatenate([yearly_matrix(monthly), np.tile(np.eye(4)[None, 3:], (2, 1, 1))], axis=1)
    np.testing.assert_allclose(np.linalg.matrix_power(month[wait], 12)[:3], year[wait], atol=1e-9)
    np.testing.assert_allclose(
        month[renew][:3], np.tile(month[wait][0], (3, 1)), atol=1e-12
    )  # renewed at once, then it goes on
    assert monthly.rewards.min() >= -101
    assert PRICES.per("month").running["3"] == pytest.approx(1.0)
    assert found.at_once == ("renew",)
    unnamed = quick(visits(50, RNG(6), exact=True), structure=Q > 0, noticed=["4"], assume={"renew": "1"})
    with pytest.raises(am.FitError, match="its length is not known"):
        unnamed.model(PRICES)


def test_actions_that_act_at_once_are_recovered():
    rng, rows = RNG(7), []
    q = np.array([[-0.4, 0.4, 0.0], [0.0, -0.3, 0.3], [0.0, 0.0, 0.0]])
    effect, powers = np.array([0.8, 0.2, 0.0]), {}
    for unit in range(300):
        state, time = 0, 0.0
        for _ in range(8):
            repair = state == 2 or (state == 1 and rng.random() < 0.3)
            rows.append((unit, time, "123"[state], "repair" if repair else ""))
            if repair:
                state = int(rng.choice(3, p=effect))
            gap = float(30 * rng.integers(1, 30)) / 365.2425
            powers.setdefault(gap, expm(q * gap) if gap not in powers else None)
            state, time = int(rng.choice(3, p=powers[gap][state])), time + gap
    records = dict(zip(("unit", "time", "state", "action"), zip(*rows, strict=True), strict=True))
    settings = {"structure": {"wait": "deteriorate-by-steps"}, "states": list("123")}
    found = quick(records, at_once=["repair"], assume={"repair": "1"}, bootstrap=3, **settings)
    assert np.abs(found.intensities[found.action_names.index("wait")] - q).max() < 0.06
    repair = found.action_names.index("repair")
    assert np.isnan(found.intensities[repair]).all()
    assert np.abs(found.dynamics[repair, 2] - effect).max() < 0.1
    assert found.assumed[repair].tolist() == [True, False, False]
    with pytest.raises(am.FitError, match="cannot be dropped"):
        found.without(["wait"])
    with pytest.raises(am.FitError, match="at_once is for continuous time"):
        am.fit(records, at_once=["repair"], default_action="wait")


def test_dates_are_used_as_they_are():
    records = {
        "unit": [1, 1, 1, 2, 2],
        "time": ["2012-04-13", "13.4.2014", "Apr 2015", "04/13/2012", "04/13/2013"],
        "state": list("12212"),
    }
    found = quick(records, structure="deteriorate", states=["1", "2"])
    assert found.period == "year"
    years = (np.array([730, 367, 365]) / 365.2425).sum()
    assert found.exposure.sum() == pytest.approx(years, rel=1e-6)
    assert any("day 15" in str(note) for note in found.notes)


def test_a_fit_in_continuous_time_is_saved_and_loaded(tmp_path):
    records = visits(60, RNG(8), exact=True)
    before = quick(
        records, structure=Q > 0, noticed=["4"], errors={"1": ["2"]}, assume={"renew": "1"}, bootstrap=3, goodness=2
    )
    before.save(tmp_path / "fit.npz")
    after = am.Fit.load(tmp_path / "fit.npz")
    assert after.summary() == before.summary()
    for name in ("dynamics", "bootstrap_dynamics", "errors", "errors_low", "intensities"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_age_can_matter():
    """Units that wear faster from age 5 on; the model knows the age."""
    rng, rows = RNG(9), []
    for unit in range(300):
        state, time = 0, 0.0
        while time < 10 and state < 2:
            rows.append((unit, time, "123"[state]))
            for _ in range(2):
                rate = 0.1 if time < 5 else 0.6
                state = min(2, state + int(rng.random() < 1 - np.exp(-rate * 0.5)))
                time += 0.5
        rows.append((unit, time, "123"[state]))
    records = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = {"states": list("123"), "structure": "deteriorate-by-steps", "period": "year", "assume": {"renew": "1"}}
    found = quick(records, age_breaks=[5], bootstrap=2, **settings)
    assert [note.code for note in found.notes if "age" in note.code] == ["age-matters"]
    assert found.action_names == (
        "renew, age 0 to 5",
        "wait, age 0 to 5",
        "renew, age 5 or more",
        "wait, age 5 or more",
    )
    young, old = found.intensities[1], found.intensities[3]
    assert young[0, 1] == pytest.approx(0.1, abs=0.04)
    assert old[0, 1] == pytest.approx(0.6, abs=0.15)
    prices = am.Economics(
        "EUR", "year", 0.9, 1, actions={"wait": 0, "renew": 5}, failure_states=("3",), failure_price=30
    )
    model = found.model(prices)
    assert model.n_states == 6 * 3
    assert model.state_names[:4] == ("1, age 0", "2, age 0", "3, age 0", "1, age 1")
    constant = [
        note.code
        for note in quick(visits(80, RNG(1), exact=True), structure=Q > 0, noticed=["4"], age_breaks=[2]).notes
    ]
    assert "age-does-not-matter" in constant or "age-matters" in constant
    with pytest.raises(am.FitError, match="ascending"):
        quick(records, age_breaks=[5, 5], **settings)


def test_what_acts_at_once_starts_a_new_life():
    """Units that wear faster from age 3 on are replaced now and then; what follows is that of young units."""
    rng, rows = RNG(10), []
    for unit in range(250):
        state, born, time = 0, 0.0, 0.0
        for _ in range(14):
            replaced = time > 0 and rng.random() < 0.25
            rows.append((unit, time, "123"[state], "renew" if replaced else "wait"))
            if replaced:
                state, born = 0, time
            for _ in range(4):
                rate = 0.1 if time - born < 3 - 1e-9 else 0.8
                state = min(2, state + int(rng.random() < 1 - np.exp(-rate * 0.25)))
                time += 0.25
    records = dict(zip(("unit", "time", "state", "action"), zip(*rows, strict=True), strict=True))
    settings = {"states": list("123"), "structure": {"wait": "deteriorate-by-steps"}, "period": "year"}
    found = quick(records, age_breaks=[3], at_once=["renew"], default_action="wait", **settings)
    names = found.action_names
    young, old = (found.intensities[names.index(f"wait, {age}")] for age in ("age 0 to 3", "age 3 or more"))
    assert young[0, 1] == pytest.approx(0.1, abs=0.03)
    assert old[0, 1] == pytest.approx(0.8, abs=0.2)
    prices = am.Economics("EUR", "year", 0.9, 1, actions={"wait": 0, "renew": 5}, running={"3": 10})
    model = found.model(prices)
    renew = model.action_names.index("renew")
    # A year as a young unit, also of one that was old; after it the age is 1.
    at = {name: number for number, name in enumerate(model.state_names)}
    following = model.transitions.matrix(renew).toarray()[at["1, age 3"]]
    assert following[[at["1, age 1"], at["2, age 1"], at["3, age 1"]]].sum() == pytest.approx(1)
    assert following[at["1, age 1"]] == pytest.approx(np.exp(-0.1), abs=0.07)


def test_a_terminal_state_needs_no_intensities():
    """Without a structure that closes it, leaving the last state is unknown; where it ends an episode, that does not matter."""
    found = quick(
        visits(60, RNG(10), exact=True), structure="by-steps", noticed=["4"], assume={"renew": "1"}, period="year"
    )
    assert found.unknown == (("wait", "4"),)
    model = found.model(PRICES)
    wait = found.intensities[found.action_names.index("wait")].copy()
    wait[3] = 0
    np.testing.assert_allclose(yearly_matrix(model)[found.action_names.index("wait")], expm(wait)[:3], atol=1e-9)
    with pytest.raises(am.FitError, match="no information about 'wait' in state '4'"):
        found.model(am.Economics("EUR", "year", 0.9, 10, actions={"wait": 0, "renew": 100}))
