"""Stable-Baselines3 trains on our environments as they are."""

import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from actmeasure.envs import ActiveMeasuring

pytestmark = pytest.mark.extras("torch", "stable_baselines3")

STEPS = 256


def lake():
    return gymnasium.make("actmeasure/FrozenLake-v0", size=4, variant="semi-slippery", measuring_cost=0.05)


def taxi():
    return ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01)


def cart_pole():
    return ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=0.01)


def pendulum():
    return ActiveMeasuring(gymnasium.make("Pendulum-v1"), measuring_cost=0.01)


def inspected_unit():
    return gymnasium.make("actmeasure/Inspection-v0", max_steps=100)


def parts_of_cart_pole():
    """Functions of the true observation: one exact, one with noise."""
    side = ("side", 0.001, lambda state: int(state[0] > 0), Discrete(2))
    angle = ("angle", 0.01, lambda state, rng: np.clip(state[2:3] + rng.normal(0, 0.01), -1, 1), Box(-1.0, 1.0, (1,)))
    return ActiveMeasuring(gymnasium.make("CartPole-v1"), measurements=[side, angle])


@pytest.mark.parametrize(
    ("make", "policy"),
    [
        (lake, "MlpPolicy"),
        (taxi, "MlpPolicy"),
        (cart_pole, "MultiInputPolicy"),
        (pendulum, "MultiInputPolicy"),
        (inspected_unit, "MlpPolicy"),
        (parts_of_cart_pole, "MultiInputPolicy"),
    ],
)
def test_ppo_trains(make, policy):
    import stable_baselines3

    env = make()
    agent = stable_baselines3.PPO(policy, env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    agent.learn(STEPS)
    assert agent.num_timesteps == STEPS
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation)
    assert action in env.action_space
    env.step(action)


@pytest.mark.parametrize("make", [lake, taxi, cart_pole, inspected_unit, parts_of_cart_pole])
def test_its_own_check_passes(make):
    from stable_baselines3.common.env_checker import check_env

    check_env(make(), skip_render_check=True)


def test_ppo_trains_on_several_lakes_at_once():
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env("actmeasure/FrozenLake-v0", n_envs=3, env_kwargs={"size": 4, "measuring_cost": 0.05}, seed=0)
    agent = stable_baselines3.PPO("MlpPolicy", envs, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    agent.learn(192)
    assert agent.num_timesteps == 192


@pytest.mark.slow
@pytest.mark.extras("sb3_contrib")
def test_a_recurrent_policy_learns_to_balance_with_few_looks():
    """Five seeds earned 470 to 490 of 500, with looks after 10 to 17 % of the steps (docs/environments.md)."""
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "recurrent_ppo.py"))
    agent = example["new_agent"](seed=0)
    agent.learn(50_000)
    episodes = example["played"](agent, 10)
    returns, looks, steps = (np.mean([episode[name] for episode in episodes]) for name in ("r", "looks", "l"))
    assert returns > 400
    assert looks < 0.5 * steps


@pytest.mark.extras("sb3_contrib")
def test_the_observations_of_the_example_are_what_a_policy_knows():
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "recurrent_ppo.py"))
    env = example["environment"](price=0.5)
    start, _ = env.reset(seed=0)
    assert start[4:].tolist() == [0.0, 1.0, 0.0]
    blind, reward, *_ = env.step(np.array([1, 0]))
    assert blind[:4].tolist() == start[:4].tolist()
    assert blind[4:].tolist() == pytest.approx([0.1, 0.0, 1.0])
    assert reward == pytest.approx(0.02)
    seen, reward, *_ = env.step(np.array([0, 1]))
    assert seen[4:].tolist() == [0.0, 1.0, -1.0]
    assert (seen[:4] * example["SIZES"]).tolist() == pytest.approx(env.unwrapped.state, rel=1e-5)
    assert reward == pytest.approx(0.02 * 0.5)
