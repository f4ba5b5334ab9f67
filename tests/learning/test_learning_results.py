"""What the learners earn, over 20 seeds, beside the published table and the optimum (mean of the last 50 episodes).

Episodes are cut at 1,000 steps for the default, as in the docs, and at 200 for the other presets, in which runs that are stuck
would take minutes; how many are stuck depends on that a little. The same seeds give the same figures every time, so that what
is allowed for here is not luck but that the published figures are means of five runs.
"""

from functools import cache

import gymnasium
import numpy as np
import pytest

import actmeasure as am

SEEDS, LAST = 20, 50
LAKES = ("deterministic", "semi-slippery", "slippery")
COSTS = (0.05, 0.10, 0.20)
#: Published scalarized returns: on 4x4 lakes at a cost of 0.05, and on measuring value at each cost.
PUBLISHED = {
    "atmq": {"deterministic": 1.00, "semi-slippery": 0.75, "slippery": 0.02, 0.05: 0.94, 0.10: 0.76, 0.20: 0.78},
    "dyna-atmq": {"deterministic": 1.00, "semi-slippery": 0.65, "slippery": 0.03, 0.05: 0.93, 0.10: 0.86, 0.20: 0.82},
    "amrl-q": {"deterministic": 1.00, "semi-slippery": 0.41, "slippery": 0.03, 0.05: 0.82, 0.10: 0.80, 0.20: 0.78},
}
#: Certified optima; those of measuring value are max(p, 1 - c / p).
OPTIMA = {"deterministic": 1.0, "semi-slippery": 0.90, "slippery": 0.064, 0.05: 0.9375, 0.10: 0.875, 0.20: 0.80}
#: An agent that never looks earns p = 0.8 on measuring value, at best; the published 0.82 is luck.
BLIND = OPTIMA | {0.05: 0.80, 0.10: 0.80}


def world(cell):
    if cell in LAKES:
        return am.problems.frozen_lake(4, variant=cell, measuring_cost=0.05)
    return am.problems.measuring_value(p=0.8, measuring_cost=cell)


@cache
def results(name, preset, cell, seeds=SEEDS, episodes=1000, **settings):
    """Means of the last episodes of each run: returns and measurements, each of shape (seeds,)."""
    found = []
    for seed in range(seeds):
        agent = am.agents.make(name, preset=preset, **settings)
        max_steps = 1000 if preset == "default" else 200
        run = am.train(agent, world(cell), episodes=episodes, seed=seed, max_steps=max_steps)
        found.append((run.scalarized_return[-LAST:].mean(), run.measurements[-LAST:].mean()))
    returns, measurements = np.array(found).T
    return returns, measurements


def interval(values, times=3.0):
    """Mean, and as many standard errors."""
    return values.mean(), times * values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("cell", [*LAKES, *COSTS])
@pytest.mark.parametrize("name", PUBLISHED)
def test_default_is_at_least_as_good_as_published_or_the_best_there_is(name, cell):
    best = (BLIND if name == "amrl-q" else OPTIMA)[cell]
    demanded = min(PUBLISHED[name][cell], best) - 0.03
    returns, _ = results(name, "default", cell)
    assert returns.mean() >= demanded


@pytest.mark.parametrize("name", ["atmq", "dyna-atmq"])
def test_default_does_not_get_stuck(name):
    """At least 0.80 on the semi-slippery lake, also at the lower end of the interval, and no run is far from the others."""
    returns, measurements = results(name, "default", "semi-slippery")
    mean, error = interval(returns)
    assert mean - error >= 0.80
    assert returns.std(ddof=1) < 0.05
    assert mean + error <= OPTIMA["semi-slippery"] + 0.05
    assert 2.0 < measurements.mean() < 4.0


@pytest.mark.parametrize(
    ("name", "cell", "spread"),
    [
        ("atmq", "deterministic", 0.0),
        # With 200 steps, one run in 20 is stuck and earns nothing, the others 0.85: a standard deviation of 0.2.
        pytest.param("atmq", "semi-slippery", 0.10, marks=pytest.mark.slow),
        pytest.param("atmq", "slippery", 0.02, marks=pytest.mark.slow),
        ("atmq", 0.05, 0.02),
        ("atmq", 0.10, 0.04),
        # One run in 20 ends far below 0; a standard deviation of 0.26.
        ("atmq", 0.20, 0.12),
        ("dyna-atmq", 0.05, 0.02),
        ("dyna-atmq", 0.10, 0.04),
        ("dyna-atmq", 0.20, 0.04),
        *(("amrl-q", cell, 0.04) for cell in (*LAKES, *COSTS)),
    ],
)
def test_published_preset_earns_what_was_published(name, cell, spread):
    """Within 0.06, and where runs differ hugely, within what the mean of 20 may be off.

    Those of dyna-atmq on lakes take 625 updates a step and minutes where they are stuck; the example script has them.
    """
    settings = {"random_measuring": 0.05} if name != "amrl-q" and cell in COSTS else {}
    episodes = 500 if name == "atmq" and cell in COSTS else 1000
    seeds = 10 if name == "dyna-atmq" else SEEDS
    returns, _ = results(name, "published", cell, seeds, episodes, **settings)
    _, error = interval(returns)
    assert error <= 3 * max(spread, 0.01)
    allowed = 0.06 + (error if spread >= 0.10 else 0.0)
    assert abs(returns.mean() - PUBLISHED[name][cell]) <= allowed


def test_published_measurements_are_in_the_same_range():
    for cell, episodes, published in (
        ("semi-slippery", 1000, 2.65),
        (0.05, 500, 1.30),
        (0.10, 500, 0.50),
        (0.20, 500, 0.11),
    ):
        settings = {"random_measuring": 0.05} if cell in COSTS else {}
        _, measurements = results("atmq", "published", cell, SEEDS, episodes, **settings)
        assert abs(measurements.mean() - published) < 0.3


@pytest.mark.parametrize(("name", "seeds"), [pytest.param("atmq", 20, marks=pytest.mark.slow), ("dyna-atmq", 5)])
def test_paper_preset_gets_stuck(name, seeds):
    """As the main text has it, the learner stops looking and walks in circles."""
    returns, measurements = results(name, "paper", "semi-slippery", seeds)
    assert returns.mean() < 0.2
    assert np.median(returns) < 0.05
    assert np.median(measurements) == 0


@pytest.mark.parametrize("preset", ["default", "published", "paper"])
@pytest.mark.parametrize("cell", [*LAKES, *COSTS])
def test_amrl_q_never_looks_after_convergence(preset, cell):
    """But for a pair that was hardly ever tried: one look in the 1,000 episodes of all runs (see the law in its other tests)."""
    _, measurements = results("amrl-q", preset, cell)
    assert measurements.sum() * LAST <= 2
    assert np.count_nonzero(measurements) <= 1


@pytest.mark.parametrize(("name", "preset", "seeds"), [
    ("atmq", "default", 20), ("atmq", "published", 20), ("dyna-atmq", "default", 20), ("dyna-atmq", "published", 2),
])  # fmt: skip
def test_nothing_is_measured_on_the_deterministic_lake_after_convergence(name, preset, seeds):
    returns, measurements = results(name, preset, "deterministic", seeds)
    assert measurements.tolist() == [0.0] * seeds
    assert returns.tolist() == [1.0] * seeds


@pytest.mark.slow
def test_taxi_is_learned_through_the_wrapper():
    """Acting at random earns about -375 in 100 steps; in its last episodes the learner mostly delivers the passenger."""
    env = am.ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01)
    by_chance = am.train(am.agents.make("random"), env, episodes=10, seed=0, max_steps=100)
    agent = am.agents.make("dyna-atmq")
    learned = am.train(agent, env, episodes=500, seed=0, max_steps=100)
    assert learned.scalarized_return[-LAST:].mean() > by_chance.scalarized_return.mean() + 100
    assert learned.terminated[-LAST:].mean() > 0.5
