"""Recorded states that may be wrong: the likelihood against all paths, recovery, and what cannot be told apart."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import Q, visits
from strategies import examples

import actmeasure as am
from actmeasure.inspection.gaps import find_gaps, unit_events
from actmeasure.inspection.likelihood import Likelihood, RecordErrors
from actmeasure.inspection.records import read_records

RNG = np.random.default_rng
STATES = ("a", "b", "c")


def by_enumeration(rows, chain, errors, start, initial):
    """The log-likelihood of one unit's records in discrete time: all paths of true states, period by period."""
    total = 0.0
    for unit in sorted({row[0] for row in rows}):
        seen = {time: STATES.index(state) for one, time, state in rows if one == unit}
        first, last = min(seen), max(seen)
        chance = 0.0
        for path in itertools.product(range(3), repeat=last - first + 1):
            if start == "seen":
                weight = float(path[0] == seen[first])
            else:
                weight = (initial[path[0]] if start == "drawn" else float(path[0] == start)) * errors[
                    path[0], seen[first]
                ]
            for step in range(1, len(path)):
                weight *= chain[path[step - 1], path[step]]
                if first + step in seen:
                    weight *= errors[path[step], seen[first + step]]
            chance += weight
        total += np.log(chance)
    return total


@st.composite
def tiny_units(draw):
    rows = [(9, 0, "a"), (9, 2, "b")]
    for unit in range(draw(st.integers(1, 3))):
        times = draw(st.lists(st.integers(0, 5), min_size=2, max_size=4, unique=True))
        rows += [(unit, time, draw(st.sampled_from(STATES))) for time in times]
    return rows


@given(tiny_units(), st.integers(0, 1000), st.sampled_from(["seen", "drawn", 0, 1]))
@examples(40)
def test_the_forward_algorithm_is_the_sum_over_all_paths(rows, seed, start):
    rng = RNG(seed)
    chain, errors, initial = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3))
    columns = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    read = read_records(columns, states=STATES, default_action="x")
    gaps = find_gaps(read, "x")
    likelihood = Likelihood(gaps, RecordErrors(unit_events(gaps, read, with_first=start != "seen"), start))
    parameters = np.stack([chain, errors, *([np.tile(initial, (3, 1))] if start == "drawn" else [])])
    value, gradient = likelihood.gradient(parameters, likelihood.data())
    assert value == pytest.approx(by_enumeration(rows, chain, errors, start, initial), rel=1e-9)
    step = 1e-6
    for place in ((0, 0, 1), (1, 1, 2), *([(2, 0, 1)] if start == "drawn" else [])):
        nudged = parameters.copy()
        nudged[place] += step
        if place[0] == 2:
            nudged[2, 1:] = nudged[2, 0]
        slope = (likelihood.gradient(nudged, likelihood.data())[0] - value) / step
        assert gradient[place] == pytest.approx(slope, rel=1e-3, abs=1e-3)


ERRORS = np.array([[0.9, 0.1, 0.0, 0.0], [0.1, 0.8, 0.1, 0.0], [0.0, 0.15, 0.85, 0.0], [0.0, 0.0, 0.0, 1.0]])
CONFUSIONS = {"1": ["2"], "2": ["1", "3"], "3": ["2"]}


def quick(records, **settings):
    usual = {
        "time": "continuous",
        "default_action": "wait",
        "states": list("1234"),
        "noticed": ["4"],
        "structure": Q > 0,
    }
    return am.fit(records, **(usual | {"bootstrap": 0, "goodness": 0} | settings))


@pytest.fixture(scope="module")
def wrong():
    """Records with errors and exact failure times."""
    return visits(500, RNG(1), exact=True, errors=ERRORS, most=12)


@pytest.mark.slow
def test_errors_and_intensities_are_recovered_together(wrong):
    found = quick(wrong, errors=CONFUSIONS, start="drawn", bootstrap=5, goodness=4)
    assert found.converged
    assert np.abs(found.intensities[0] - Q).max() < 0.15
    assert np.abs(found.errors - ERRORS).max() < 0.1
    np.testing.assert_allclose(found.errors.sum(axis=1), 1.0)
    assert (found.errors_low <= found.errors + 1e-12).all()
    assert (found.errors <= found.errors_high + 1e-12).all()
    assert found.initial[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    assert found.identifiability == ()
    assert "what is recorded" in found.summary()
    ignored = quick(wrong, structure="absorbing")
    # Records that go to and fro look like quick changes.
    assert ignored.intensities[0, 1, 0] > 1.5 * Q[1, 0]
    assert ignored.log_likelihood < quick(wrong, structure="absorbing", errors=CONFUSIONS).log_likelihood


def transplants(units, rng):
    """Yearly visits at irregular dates with grades that may be wrong, and exact deaths: the design of heart transplant data."""
    rates = np.array([[0, 0.1, 0, 0.04], [0, 0, 0.23, 0.05], [0, 0, 0, 0.3], [0, 0, 0, 0]])
    grades = np.array([[0.97, 0.03, 0], [0.17, 0.77, 0.06], [0, 0.12, 0.88]])
    every = []
    for _ in range(units):
        state, now, visit, seen = 0, 0.0, 0.0, []
        end = rng.uniform(2, 14)
        while state < 3 and now < end:
            leaves = now + rng.exponential(1 / rates[state].sum())
            while visit < min(leaves, end):
                seen.append((visit, 0 if visit == 0 else int(rng.choice(3, p=grades[state]))))
                visit += rng.uniform(0.6, 2.0)
            now, state = leaves, int(rng.choice(4, p=rates[state] / rates[state].sum()))
        if state == 3 and now < end:
            seen.append((now, 3))
        every.append(seen)
    return every


def plain_log_likelihood(x, every):
    """Matrix exponentials by eigenvectors and a forward algorithm, unit by unit; rates and odds as logarithms."""
    rates, grades = np.zeros((4, 4)), np.zeros((4, 4))
    rates[0, 1], rates[0, 3], rates[1, 2], rates[1, 3], rates[2, 3] = np.exp(x[:5])
    rates -= np.diag(rates.sum(axis=1))
    for row, odds in ((0, [0, x[5]]), (1, [x[6], 0, x[7]]), (2, [x[8], 0])):
        grades[row, max(row - 1, 0) : max(row - 1, 0) + len(odds)] = np.exp(odds) / np.exp(odds).sum()
    values, vectors = np.linalg.eig(rates)
    inverse, total = np.linalg.inv(vectors), 0.0
    for seen in every:
        weights = np.array([1.0, 0, 0, 0])
        for (before, _), (now, state) in itertools.pairwise(seen):
            weights = (weights @ (vectors * np.exp(values * (now - before))) @ inverse).real
            weights = np.array([0, 0, 0, weights[:3] @ rates[:3, 3]]) if state == 3 else weights * grades[:, state]
            total += np.log(weights.sum())
            weights = weights / weights.sum()
    return total


def test_the_maximum_is_that_of_a_plain_likelihood():
    every = transplants(120, RNG(7))
    rows = [(unit, time, str(1 + state)) for unit, seen in enumerate(every) for time, state in seen]
    records = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    mask = np.array([[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)
    found = quick(records, errors=CONFUSIONS, structure=mask, start="seen")
    assert found.converged
    wrong = found.errors
    odds = [wrong[0, 1] / wrong[0, 0], wrong[1, 0] / wrong[1, 1], wrong[1, 2] / wrong[1, 1], wrong[2, 1] / wrong[2, 2]]
    best = np.log([*found.intensities[0][mask], *odds])
    assert found.log_likelihood == pytest.approx(plain_log_likelihood(best, every), abs=1e-6)
    for step in 0.01 * np.eye(len(best)):
        above, below = plain_log_likelihood(best + step, every), plain_log_likelihood(best - step, every)
        assert max(above, below) < found.log_likelihood
        # The maximum along this parameter is less than a thousandth of it away.
        assert abs(above - below) / 0.02 < 1e-3 * (2 * found.log_likelihood - above - below) / 0.01**2


@pytest.mark.slow
def test_errors_can_be_known_or_partly_known(wrong):
    known = {"1": {"2": 0.1}, "2": {"1": 0.1, "3": 0.1}, "3": {"2": 0.15}}
    fixed = quick(wrong, errors=known, start="drawn")
    np.testing.assert_allclose(fixed.errors, ERRORS)
    partly = quick(wrong, errors=known | {"2": {"1": 0.1, "3": None}}, start="drawn")
    assert partly.errors[1, 0] == pytest.approx(0.1)
    assert partly.errors[1, 2] == pytest.approx(0.1, abs=0.05)
    free = quick(wrong, errors=CONFUSIONS, start="drawn")
    assert fixed.log_likelihood <= partly.log_likelihood + 1e-6 <= free.log_likelihood + 2e-6
    assert (fixed.free_parameters, partly.free_parameters, free.free_parameters) == (10, 11, 14)


def test_no_errors_is_nested_in_errors():
    records = visits(120, RNG(2), exact=True)
    right = quick(records, structure="absorbing")
    wider = quick(records, structure="absorbing", errors=CONFUSIONS)
    assert wider.log_likelihood >= right.log_likelihood - 1e-3


@pytest.mark.slow
def test_the_start_is_seen_drawn_or_given(wrong):
    found = {start: quick(wrong, errors=CONFUSIONS, start=start) for start in ("seen", "drawn")}
    assert found["seen"].initial.sum() == pytest.approx(1)
    given_start = quick(
        visits(40, RNG(3), exact=True, errors=ERRORS, most=4), errors=CONFUSIONS | {"1": ["2", "3"]}, start="1"
    )
    assert given_start.initial.tolist() == [1, 0, 0, 0]
    with pytest.raises(am.FitError, match="unknown start '7'"):
        quick(wrong, errors=CONFUSIONS, start="7")
    with pytest.raises(am.FitError, match="records are taken to be right"):
        quick(wrong, start="drawn")


@pytest.mark.parametrize("time", ["discrete", pytest.param("continuous", marks=pytest.mark.slow)])
def test_first_records_that_cannot_be_with_the_start_are_named_or_left_out(time):
    seen = {
        "unit": [1, 1, 2, 2, 3, 3, 3, 4, 4, 4],
        "time": [0, 1, 0, 1, 0, 1, 2, 0, 1, 2],
        "state": [*"ab", *"cb", *"aab", *"abb"],
    }
    settings = {
        "errors": {"a": ["b"], "b": ["a"]},
        "start": "a",
        "default_action": "wait",
        "bootstrap": 0,
        "goodness": 0,
    }
    with pytest.raises(am.FitError, match="row 3: unit '2' was first recorded in 'c'") as error:
        am.fit(seen, time=time, **settings)
    assert "--error a:c" in str(error.value)
    found = am.fit(seen, time=time, skip_contradictions=True, **settings)
    assert np.isfinite(found.log_likelihood)
    assert found.converged
    assert "Left out, as requested: 1 unit whose first record, in line 3," in " ".join(map(str, found.notes))
    assert found.errors[2].tolist() == [0, 0, 1]  # what cannot be mistaken is known


def test_all_records_of_a_unit_that_cannot_be_are_left_out():
    """After the first one the others were taken to be possible, and the fit did not settle."""
    seen = {
        "unit": [1] * 6 + [2] * 4 + [3] * 4,
        "time": [*range(6), *range(4), *range(4)],
        "state": ["a", "c", "a", "c", "a", "c", *"abcc", *"aabc"],
    }
    settings = {"errors": {"b": ["c"]}, "structure": "deteriorate", "default_action": "wait"}
    settings |= {"bootstrap": 0, "goodness": 0}
    with pytest.raises(am.FitError, match="--skip-contradictions"):
        am.fit(seen, **settings)
    found = am.fit(seen, skip_contradictions=True, **settings)
    assert found.converged
    assert found.n_units == 3
    said = " ".join(map(str, found.notes))
    assert "2 records that cannot be" in said
    assert "in line 3, 5" in said


def test_the_measurement_is_ready_for_planning(wrong):
    found = quick(wrong, errors=CONFUSIONS, start="drawn", assume={"renew": "1"}, period="year")
    assert found.measurement.outcomes == ("1", "2", "3", "4")
    prices = am.Economics("EUR", "year", 0.9, 10, actions={"wait": 0, "renew": 100}, terminal=("4",))
    model = found.model(prices)
    assert not model.looks_are_exact
    assert model.measurements[0].name == "inspection"
    assert model.measurements[0].outcomes == ("1", "2", "3")  # the fourth ends an episode
    law = model.measurements[0].law.matrix().toarray()
    np.testing.assert_allclose(law[:3], found.errors[:3, :3], atol=1e-12)
    assert am.solve(model, method="never").lower <= 0


def test_what_cannot_be_told_apart_is_said():
    """Two records of each unit, all with the same gap: sensitivity and deterioration are only known together."""
    rng, rows = RNG(4), []
    for unit in range(400):
        worse = rng.random() < 0.4
        rows += [(unit, 0.0, "1"), (unit, 2.0, "2" if worse and rng.random() < 0.7 else "1")]
    records = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = {
        "time": "continuous",
        "default_action": "wait",
        "structure": "deteriorate",
        "bootstrap": 0,
        "goodness": 0,
    }
    found = am.fit(records, errors={"2": ["1"]}, **settings)
    codes = {one.code for one in found.identifiability}
    assert codes & {"errors-confounded", "flat-directions"}
    known = am.fit(records, errors={"2": {"1": 0.3}}, **settings)
    assert not known.identifiability
    assert 1 - np.exp(-2 * known.intensities[0, 0, 1]) == pytest.approx(0.4, abs=0.08)


def test_discrete_time_with_errors():
    rng, rows = RNG(5), []
    chain = np.array([[0.85, 0.15, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]])
    errors = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    for unit in range(400):
        state = 0
        for time in range(10):
            if time % 3 != 2:
                rows.append((unit, time, "abc"[int(rng.choice(3, p=errors[state]))]))
            state = int(rng.choice(3, p=chain[state]))
    records = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = {"default_action": "wait", "states": list("abc"), "goodness": 0, "bootstrap": 2}
    found = am.fit(records, errors={"a": ["b"], "b": ["a"]}, start="a", structure="deteriorate", **settings)
    assert np.abs(found.probabilities[0] - chain).max() < 0.04
    assert np.abs(found.errors - errors).max() < 0.03
    with pytest.raises(am.FitError, match="--skip-contradictions"):
        am.fit(records, structure="deteriorate", **settings)


@pytest.mark.parametrize(
    ("errors", "part"),
    [
        ({"5": ["1"]}, "errors: unknown state '5'"),
        ({"1": ["5"]}, "unknown state '5'"),
        ({"1": [["2"]]}, "unknown state \\['2'\\]"),
        ({"1": "2"}, "expected a list of states"),
        ({"1": ["1"]}, "names the state itself"),
        ({"1": ["4"]}, "noticed at once are recorded without error"),
        ({"1": {"2": 1.5}}, "between 0 and 1"),
        ({"2": {"1": 0.5, "3": 0.5}}, "must leave some"),
        ([("1", "2")], "expected a mapping"),
    ],
)
def test_errors_are_checked(wrong, errors, part):
    with pytest.raises(am.FitError, match=part):
        quick(wrong, errors=errors)
