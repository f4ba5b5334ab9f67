"""Maxima of the likelihood: their conditions, starts from smaller structures, and what is said where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from simulated import CHAINS, WEAR, Q, records, visits
from strategies import examples

import actmeasure as am
from actmeasure.inspection import fitting
from actmeasure.inspection.estimation import is_maximum, maximise, persistent_start, refine
from actmeasure.inspection.gaps import find_gaps
from actmeasure.inspection.likelihood import Likelihood
from actmeasure.inspection.records import read_records

RNG = np.random.default_rng
QUICK = {"bootstrap": 0, "goodness": 0}
#: Of each unit the recorded state, the gap that follows (a letter), the next state, and so on.
NEVER_RECORDED = """
    0a0e0d0f0 0b0b0e1c0 0c0c0a0a1 1d1e0b0d0 0e0d1a0e0 0e1a0b0e0 0f0f0a0a0 0a0d0d1g3 0f0b0e0d0 1a0a0e1b0 0f1a0b0d0
    0a0c0a0b0 0b0a0c0a1 0b0c0a0a0 1e0a0f0d0 0e0a0e0b1 0f0d0a0b0 0a0d0f0a0 0a0c0c0a0 1e1d0b0a0 0f0a0c0c0 1f1a0e0a0
    1f0c0b0b0 0e1b0f0f0 1c0f0f0a0 0c0a0e1b0 0a0a1f0c0 0h3 0e0c0b0a0 1c0e0a0b0 1d0b0a0c0 0d0c1f1b0
"""
NESTED = ["deteriorate-by-steps", "deteriorate", "by-steps", "any"]


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
@examples(12)
def test_a_structure_is_never_worse_than_a_smaller_one(seed, continuous, long_gaps):
    rng = RNG(seed)
    wear = rng.dirichlet([20, 2, 1], size=1)[0]
    chain = np.array([wear, [0, wear[0], 1 - wear[0]], [0, 0, 1]])
    columns = records(chain[None], 25, 30 if long_gaps else 8, rng, longest_gap=12 if long_gaps else 3, repairs=0)
    settings = QUICK | {"states": list("012"), "time": "continuous" if continuous else "discrete"}
    if continuous:
        columns = {
            name: [v for v, s in zip(column, columns["state"], strict=True) if s] for name, column in columns.items()
        }
    values = {}
    for structure in NESTED:
        try:
            values[structure] = am.fit(columns, structure=structure, **settings).log_likelihood
        except am.FitError:  # this structure excludes the records
            continue
    for smaller, larger in (("deteriorate-by-steps", "deteriorate"), ("deteriorate", "any"), ("by-steps", "any"),
                            ("deteriorate-by-steps", "by-steps")):  # fmt: skip
        if smaller in values:
            assert values[larger] >= values[smaller] - 1e-3, (smaller, larger, values)


@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.integers(1, 6))
@examples(20)
def test_what_contains_something_less_is_never_less_likely(seed, continuous, wrong, longest):
    """Any transitions beside fewer of them, and with and without some of the errors; small sets of records of random chains."""
    rng, size = RNG(seed), 3
    larger = (rng.random((size, size)) < 0.75) | np.eye(size, dtype=bool)
    smaller = (larger & (rng.random((size, size)) < 0.6)) | np.eye(size, dtype=bool)
    chain = smaller * rng.exponential(0.3, size=(size, size)) + 1.5 * np.eye(size)
    chain /= chain.sum(axis=1, keepdims=True)
    errors = np.array([[0.88, 0.12, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]]) if wrong else np.eye(size)
    rows = []
    for unit in range(int(rng.integers(10, 40))):
        state, time = int(rng.integers(size)), 0
        for _ in range(int(rng.integers(3, 7))):
            rows.append((unit, time, str(rng.choice(size, p=errors[state]))))
            gap = int(rng.integers(1, longest + 1))
            time, state = time + gap, int(rng.choice(size, p=np.linalg.matrix_power(chain, gap)[state]))
    columns = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = QUICK | {"states": list("012"), "default_action": "wait"}
    settings |= {"time": "continuous" if continuous else "discrete"}
    confusions = {"errors": {"0": ["1"], "1": ["0"]}, "start": "drawn"} if wrong else {}
    most = am.fit(columns, structure=larger, **settings, **confusions)
    assert most.converged
    nested = [confusions | {"structure": smaller}]
    if wrong:
        nested += [{"structure": larger, "errors": {"0": ["1"]}, "start": "drawn"}, confusions | {"start": "0"}]
    for less in nested:
        try:
            found = am.fit(columns, **settings, **({"structure": larger} | less))
        except am.FitError:  # without what it leaves out, the records could not be
            continue
        assert most.log_likelihood >= found.log_likelihood - 1e-3, less


def test_many_short_periods_do_not_stop_below_the_maximum():
    """Yearly inspections of units that wear by steps, fitted by month: the unrestricted fit contains the restricted one."""
    rng, rows = RNG(0), []
    for unit in range(80):
        state = 0
        for year in range(10):
            rows.append((unit, 12 * year + int(rng.integers(-2, 3)) if year else 0, str(state)))
            state = int(rng.choice(5, p=WEAR[state]))
    columns = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))
    settings = QUICK | {"default_action": "wait", "states": list("01234")}
    by_steps = am.fit(columns, structure="deteriorate-by-steps", **settings)
    free = am.fit(columns, **settings)
    assert by_steps.converged
    assert free.log_likelihood >= by_steps.log_likelihood - 1e-3
    # Nothing leaves the last state by itself, so nothing should be fitted to.
    assert free.probabilities[0, 4, :4].sum() < 0.05


def test_a_parameter_at_zero_that_would_rise_is_no_maximum():
    columns = records(CHAINS[:1], 60, 20, RNG(1), longest_gap=1, repairs=0)
    columns["state"] = [s if t % 2 == 0 else "" for s, t in zip(columns["state"], columns["time"], strict=True)]
    read = read_records(columns, states=list("01234"))
    likelihood = Likelihood(find_gaps(read, None))
    allowed = np.ones((1, 5, 5), dtype=bool)
    free = np.full((1, 5, 5), np.nan)
    data = likelihood.data()
    # The EM algorithm cannot leave a start with a 0; from 1 to 2 there are other ways.
    start = persistent_start(allowed, free)
    start[0, 1, 2], start[0, 1, 1] = 0.0, start[0, 1, 1] + start[0, 1, 2]
    stuck = maximise(likelihood, data, start, free)
    assert stuck.converged
    assert stuck.parameters[0, 1, 2] == 0
    assert not is_maximum(likelihood, data, stuck, allowed, free)
    better = refine(likelihood, data, stuck, allowed, free)
    assert better.converged
    assert better.parameters[0, 1, 2] == pytest.approx(0.15, abs=0.05)
    assert better.log_likelihood > stuck.log_likelihood + 1
    assert is_maximum(likelihood, data, better, allowed, free)


@pytest.mark.parametrize("time", ["discrete", "continuous"])
def test_breakdowns_with_two_ways_are_both_found(time):
    """Exact failures from two states: with one search from one start, one of the two ways got stuck at 0."""
    found = am.fit(
        visits(150, RNG(2), exact=True) if time == "continuous" else monthly(visits(150, RNG(2), exact=True)),
        structure=(Q > 0) if time == "continuous" else (Q > 0) | np.eye(4, dtype=bool),
        time=time, noticed=["4"], states=list("1234"), default_action="wait", skip_contradictions=True, **QUICK,
    )  # fmt: skip
    assert found.converged
    assert (found.probabilities[0, :3, 3] > 0.001).all()


def test_a_state_that_is_left_unseen_is_told():
    """Deaths on the day they happen that are not said to be so: the likeliest chain lets the dead come back."""
    seen = visits(150, RNG(2), exact=True)
    settings = QUICK | {"time": "continuous", "states": list("1234"), "default_action": "wait"}
    found = am.fit(seen, **settings)
    assert found.intensities[0, 3, :3].sum() > 0.1
    (told,) = [one for one in found.warnings if one.code == "state-left-unseen"]
    assert "--structure absorbing" in str(told)
    assert "--noticed 4" in str(told)
    for said in ({"structure": "absorbing"}, {"noticed": ["4"]}):
        assert all(one.code != "state-left-unseen" for one in am.fit(seen, **settings, **said).warnings)


def test_what_the_structure_determines_needs_no_records():
    """Units that have failed are not inspected again; that they stay so is known, not assumed."""
    seen = monthly(visits(60, RNG(3), exact=True))
    found = am.fit(
        seen,
        structure="absorbing",
        noticed=["4"],
        states=list("1234"),
        default_action="wait",
        skip_contradictions=True,
        **QUICK,
    )
    assert found.probabilities[0, 3].tolist() == [0, 0, 0, 1]
    assert all(one.code not in ("action-without-data-in-states", "little-exposure") for one in found.warnings)


def monthly(columns):
    return columns | {"time": [round(12 * float(time)) for time in columns["time"]]}


def test_a_fit_that_does_not_settle_says_so_first(monkeypatch):
    monkeypatch.setattr(fitting, "refine", lambda likelihood, data, estimate, *rest: _unsettled(estimate))
    found = am.fit(records(CHAINS, 30, 10, RNG(3)), **QUICK)
    assert not found.converged
    assert found.summary().startswith("NOT SETTLED")
    assert found.warnings[0].code == "estimation-not-converged"


def _unsettled(estimate):
    from dataclasses import replace

    return replace(estimate, converged=False)


def test_a_nearly_flat_likelihood_is_maximised_to_its_maximum():
    """Gaps in which two states mix almost completely: the EM algorithm comes close to the maximum in ever smaller steps."""
    units = [
        ("100000", "LSLSS"), ("011100", "LLLSL"), ("101101", "SLLLS"), ("100100", "SSSSS"), ("100100", "SLSLS"),
        ("001000", "LLSSL"),
        ("100110", "LSSSL"), ("100010", "SLLLL"), ("111000", "SLSSS"), ("001000", "SLLSS"), ("001000", "LLLLL"),
        ("101101", "LSSLS"),
    ]  # fmt: skip
    length = {"L": 2.613, "S": 1.8}
    rows = [(unit, float(time), state) for unit, (states, gaps) in enumerate(units)
            for time, state in zip(np.cumsum([0, *map(length.get, gaps)]), states, strict=True)]  # fmt: skip
    seen = dict(zip(("unit", "time", "state"), zip(*rows, strict=True), strict=True))

    def minus_log_likelihood(logarithms):
        worse, better = np.exp(logarithms)
        total = 0.0
        for states, gaps in units:
            for begin, end, gap in zip(states[:-1], states[1:], gaps, strict=True):
                leaves = (worse if begin == "0" else better) / (worse + better)
                changed = leaves * -np.expm1(-(worse + better) * length[gap])
                total -= np.log(changed if begin != end else 1 - changed)
        return total

    best = min(optimize.minimize(minus_log_likelihood, start).fun for start in ([0, 0], [-2, 0], [1, 2]))
    found = am.fit(seen, time="continuous", default_action="x", **QUICK)
    assert found.converged
    assert found.log_likelihood == pytest.approx(-best, abs=1e-5)


def test_a_state_that_is_never_recorded_may_be_visited_in_every_gap():
    """State 2 is recorded as 1. SciPy's L-BFGS-B comes to -79.40742 from random starts, and counts lead to -79.41807."""
    gaps = dict(zip("abcdefgh", (0.347, 1.047, 1.353, 1.421, 2.658, 3.195, 2.368, 0.723), strict=True))
    columns = {"unit": [], "time": [], "state": []}
    for unit, signs in enumerate(NEVER_RECORDED.split()):
        columns["time"] += np.cumsum([0.0, *(gaps[sign] for sign in signs[1::2])]).tolist()
        columns["state"] += signs[::2]
        columns["unit"] += [unit] * len(signs[::2])
    structure = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1]], dtype=bool)
    found = am.fit(
        columns, time="continuous", states=list("0123"), structure=structure, noticed=["3"], start="0", default_action="wait",
        errors={"0": ["1"], "1": ["0"], "2": ["1"]}, **QUICK,
    )  # fmt: skip
    assert found.converged
    assert found.log_likelihood > -79.4075
