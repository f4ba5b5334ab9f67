"""The drone flies as its description says: outcome by outcome, against a slow implementation with exact fractions."""

import warnings
from collections import defaultdict
from fractions import Fraction
from itertools import product

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import actmeasure as am
from actmeasure.problems.drone import ACCELERATIONS, Corridor

WIND = {-2: Fraction(2, 100), -1: Fraction(14, 100), 0: Fraction(68, 100), 1: Fraction(14, 100), 2: Fraction(2, 100)}


@pytest.fixture(scope="module")
def full():
    return am.problems.drone()


def flown(before, after):
    """Half of the sum, rounded half to even, which is what Python's round does with exact fractions."""
    return round(Fraction(before + after, 2))


def hits_wall(x, y, to_x, to_y, width):
    """Whether any point of the straight flight has x >= width and y >= width: enough to look at the ends and where it crosses."""
    crossings = [Fraction(width - a, b - a) for a, b in ((x, to_x), (y, to_y)) if a != b]
    times = [Fraction(0), Fraction(1), *(t for t in crossings if 0 <= t <= 1)]
    return any(x + t * (to_x - x) >= width and y + t * (to_y - y) >= width for t in times)


def outcomes(state, action, size, width, top):
    """Successors as (x, y, vx, vy), "goal" included, or "crashed", with their exact probabilities."""
    x, y, vx, vy = state
    found = defaultdict(Fraction)
    for (wx, px), (wy, py) in product(WIND.items(), repeat=2):
        ax, ay = (max(-2, min(2, a + w)) for a, w in zip(action, (wx, wy), strict=True))
        ux, uy = (max(-top, min(top, v + a)) for v, a in ((vx, ax), (vy, ay)))
        to_x, to_y = x + flown(vx, ux), y + flown(vy, uy)
        outside = not (0 <= to_x < size and 0 <= to_y < size)
        crashed = outside or hits_wall(x, y, to_x, to_y, width)
        found["crashed" if crashed else (to_x, to_y, ux, uy)] += px * py
    return found


def check_states(model, corridor, states):
    for state in states:
        place = tuple(int(column[state]) for column in (corridor.x, corridor.y, corridor.vx, corridor.vy))
        for number, action in enumerate(product(ACCELERATIONS, repeat=2)):
            slow = outcomes(place, action, corridor.size, corridor.width, corridor.top_speed)
            numbered = {corridor.crashed if to == "crashed" else corridor.number(*to): p for to, p in slow.items()}
            successors, probabilities = model.transitions.row(state, number)
            assert dict(zip(successors.tolist(), probabilities.tolist(), strict=True)) == pytest.approx(
                {to: float(p) for to, p in numbered.items()}, abs=1e-12
            )
            reward = sum(p for to, p in numbered.items() if corridor.is_goal[to])
            assert model.rewards[state, number] == pytest.approx(float(reward), abs=1e-12)


def test_the_default_has_the_published_size(full):
    assert full.n_states == 40_656 + 1
    assert full.n_actions == 25
    assert full.state_name(full.initial_states[0]) == "(29, 2) at speed (0, 0)"
    assert full.terminal.sum() == 4 * 3 * 121 + 1  # the goal's cells at every speed, and the crash
    assert full.action_name(0) == "(-2, -2)"


def test_outcomes_are_those_of_the_slow_implementation(full):
    corridor = Corridor(31, 6, 5)
    rng = np.random.default_rng(0)
    running = np.flatnonzero(~full.terminal)
    near_corner = [state for state in running if 3 <= corridor.x[state] <= 10 and 3 <= corridor.y[state] <= 10]
    check_states(full, corridor, [*rng.choice(running, 12, replace=False), *rng.choice(near_corner, 25, replace=False)])


@pytest.mark.parametrize(
    ("size", "width", "top_speed"),
    [(5, 3, 1), pytest.param(7, 4, 2, marks=pytest.mark.slow), pytest.param(9, 3, 3, marks=pytest.mark.slow)],
)
def test_other_sizes(size, width, top_speed):
    model = am.problems.drone(size, width, top_speed)
    corridor = Corridor(size, width, top_speed)
    assert model.n_states == (size**2 - (size - width) ** 2) * (2 * top_speed + 1) ** 2 + 1
    running = np.flatnonzero(~model.terminal)
    check_states(model, corridor, np.random.default_rng(1).choice(running, 15, replace=False))
    am.testing.check_model(model)


def test_cutting_the_corner_crashes(full):
    corridor, model = Corridor(31, 6, 5), full
    still = list(product(ACCELERATIONS, repeat=2)).index((0, 0))
    cut = dict(zip(*model.transitions.row(corridor.number(8, 4, -4, 4), still), strict=True))
    assert corridor.number(4, 8, -4, 4) not in cut  # through (6, 6)
    past = dict(zip(*model.transitions.row(corridor.number(7, 3, -4, 4), still), strict=True))
    assert past[corridor.number(3, 7, -4, 4)] == pytest.approx(0.68**2)  # through (5, 5), and (6, 4)


def test_a_small_one_is_solved():
    model = am.problems.drone(9, 4, 2)
    solution = am.solve(model, tolerance=1e-3, time_limit=30)
    assert 0.1 < solution.lower <= solution.upper < float(am.q_mdp(model)[model.initial_states].max())
    assert max(am.solve(model, method).value for method in ("atm", "always")) <= solution.upper + 1e-9


@pytest.mark.slow
def test_environment_as_made():
    env = gymnasium.make("actmeasure/Drone-v0")
    assert env.unwrapped.model.n_states == 40_657
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(env)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 4}, "size is 4, expected a whole number from 5 up"),
        ({"size": 31.5}, "size is 31.5"),
        ({"width": 2}, "width is 2"),
        ({"width": 6}, "width is 6, expected less than the size, 6"),
        ({"top_speed": 0}, "top_speed is 0"),
        ({"measuring_cost": -1}, "measuring_cost is -1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(am.ModelError, match=message):
        am.problems.drone(**({"size": 6, "width": 3, "top_speed": 1} | settings))
