"""Continuous environments on a grid: every cell has a number, and every tabular agent runs."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import actmeasure as am
from actmeasure.envs import ActiveMeasuring, Grid
from actmeasure.errors import SpaceError

CART = {"bins": [1, 2, 6, 3], "high": [2.4, 2.0, 0.21, 2.0], "low": [-2.4, -2.0, -0.21, -2.0]}


def cart(**settings):
    return Grid(gymnasium.make("CartPole-v1"), **(CART | settings))


@given(st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=2), st.integers(1, 7), st.integers(1, 5))
def test_cells_are_what_histogramdd_counts(point, first, second):
    env = Grid(gymnasium.make("MountainCar-v0"), bins=[first, second], low=[-3.0, -2.0], high=[3.0, 1.0])
    assert env.n_states == first * second
    inner = [np.linspace(-3, 3, first + 1)[1:-1], np.linspace(-2, 1, second + 1)[1:-1]]
    ranges = [np.concatenate([[-np.inf], edges, [np.inf]]) for edges in inner]
    counts, _ = np.histogramdd(
        np.clip([point], -1e9, 1e9), bins=[np.nan_to_num(r, posinf=1e10, neginf=-1e10) for r in ranges]
    )
    assert int(np.argmax(counts)) == env.cell_of(np.array(point, dtype=np.float32).astype(float))


def test_the_middle_of_a_cell_is_in_it():
    env = Grid(gymnasium.make("Pendulum-v1"), bins=[3, 5, [-4.0, 0.0, 1.0]], actions=3)
    assert env.shape == (3, 5, 4)
    assert [env.cell_of(env.centre_of(cell)) for cell in range(env.n_states)] == list(range(env.n_states))


def test_a_dimension_without_bounds_has_cells_to_infinity():
    env = Grid(gymnasium.make("CartPole-v1"), bins=4)
    assert env.n_states == 256
    assert np.allclose(env.edges[1], [-1.0, 0.0, 1.0])
    assert env.cell_of([0, -1e30, 0, 1e30]) == env.cell_of([0, -1.1, 0, 1.1])


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("name", "grid"),
    [("CartPole-v1", {"bins": 3}), ("MountainCar-v0", {"bins": 4}), ("Pendulum-v1", {"bins": 3, "actions": 3})],
)
def test_inside_and_outside_of_active_measuring_are_the_same(name, grid, inside):
    plain = gymnasium.make(name)
    env = (
        ActiveMeasuring(Grid(plain, **grid), 0.1)
        if inside
        else Grid(ActiveMeasuring(plain, measuring_cost=0.1), **grid)
    )
    other = ActiveMeasuring(Grid(gymnasium.make(name), **grid), 0.1)
    assert env.action_space == other.action_space
    assert env.observation_space == other.observation_space
    nothing = int(env.observation_space.n) - 1
    assert env.reset(seed=3)[0] == other.reset(seed=3)[0]
    rng = np.random.default_rng(0)
    for _ in range(15):
        action = np.array([rng.integers(env.action_space.nvec[0]), rng.integers(2)])
        found, expected = env.step(action), other.step(action)
        assert found[:4] == expected[:4]
        assert (found[0] == nothing) == (action[1] == 0)
        assert found[4]["measuring_cost"] == (0.1 if action[1] else 0.0)
        if found[2]:
            break


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_the_contract_of_gymnasium_is_kept():
    check_env(cart(), skip_render_check=True)
    again = gymnasium.make(ActiveMeasuring(cart(), 0.1).spec)
    assert again.observation_space == gymnasium.spaces.Discrete(37)


@pytest.mark.parametrize("agent", sorted(set(am.agents.AGENTS) - {"schedule", "pomcp"}))
@pytest.mark.parametrize(
    ("name", "grid"),
    [("CartPole-v1", CART), ("MountainCar-v0", {"bins": [3, 2]}), ("Pendulum-v1", {"bins": 2, "actions": 2})],
)
def test_every_tabular_agent_runs(agent, name, grid):
    settings = {"simulations": 5} if agent.startswith("acno") else {}
    settings |= {"exploring_episodes": 1} if agent == "acno-otp" else {}
    env = ActiveMeasuring(Grid(gymnasium.make(name), **grid), measuring_cost=0.01)
    found = am.train(am.agents.make(agent, **settings), env, episodes=2, max_steps=10)
    assert found.steps.min() >= 1


def test_a_tabular_agent_learns_to_balance_the_pole():
    # Every step pays 1, so that the value of a pair never tried is that of steps without end, 1 / (1 - 0.99).
    agent = am.agents.make("dyna-atmq", largest_reward=100)
    env = ActiveMeasuring(cart(bins=[1, 3, 6, 3], low=[-2.4, -1.5, -0.21, -2.0], high=[2.4, 1.5, 0.21, 2.0]), 0.01)
    learned = am.train(agent, env, episodes=120, max_steps=300, discount=0.99)
    chance = am.train(am.agents.make("random"), env, episodes=50, max_steps=300)
    assert learned.scalarized_return[-40:].mean() > 4 * chance.scalarized_return.mean()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Grid(gymnasium.make("Taxi-v4")), "expected a Box with one axis"),
        (lambda: Grid(3), "expected a Gymnasium environment"),
        (lambda: cart(bins=[1, 2]), "bins has 2 entries, expected 4"),
        (lambda: cart(bins=0), "bins of dimension 0 is 0"),
        (lambda: cart(bins=[1, 1, [2.0, 1.0], 1]), "expected finite numbers that increase"),
        (lambda: cart(low=3.0), "the range of dimension 0 is from 3.0 to 2.4"),
        (lambda: cart(bins=10_000), "cells, expected"),
        (lambda: cart(actions=3), "leave them out"),
        (lambda: Grid(gymnasium.make("Pendulum-v1"), 3), "such as actions=5"),
        (lambda: cart().cell_of([np.nan, 0, 0, 0]), "expected numbers"),
    ],
)
def test_what_cannot_be_is_a_sentence(make, sentence):
    with pytest.raises(SpaceError, match=sentence):
        make()
