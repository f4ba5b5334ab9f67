"""A recurrent policy learns when to look on CartPole: PPO with an LSTM (needs the extra `sb3`).

Trains one policy for 50,000 steps, in about a minute on one core, then plays 20 episodes with it. `--full` does so for five
seeds, and prints the mean. `--price 0.01` sets the price of a look; `--steps 256` shows that everything works.

What makes it learn: between two looks a policy has to know what it did. An LSTM of Stable-Baselines3 is not shown its own
actions, which are drawn at random, so that it cannot follow the pole blindly; `LastLook` adds them to the observation.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

import actmeasure as am

#: Price of a look; every step of balance pays 1.
PRICE = 0.2
#: Steps of training, and the number of environments that are stepped at once.
STEPS, ENVIRONMENTS = 50_000, 8
#: Lines that are printed while a policy is trained.
LINES = 5
#: Sizes of position, velocity, angle and angular velocity, by which observations are divided.
SIZES = np.array([2.4, 2.0, 0.2, 2.0], dtype=np.float32)
#: Rewards are multiplied by this for training, so that the values that the network predicts are about 1.
REWARD_SCALE = 0.02
#: Looks longer ago than this count as this old; steps are divided by `AGE_UNIT`.
OLDEST, AGE_UNIT = 100, 10


class LastLook(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Show a policy what it knows anyway: what the last look showed, how long ago that was, and its own last action.

    Observations are an array of shape (7,): the four numbers seen last, the steps since, whether this step was looked at, and -1
    or 1 for the last action (0 at the start).
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(SIZES) + 3,), np.float32)

    def reset(self, **options: Any) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin an episode, whose start is shown."""
        observation, info = self.env.reset(**options)
        return self._known(observation, 0.0), info

    def step(self, action: Any) -> tuple[npt.NDArray[np.float32], Any, bool, bool, dict[str, Any]]:
        """Take an action, and remember it and what it showed."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._known(observation, 2.0 * int(action[0]) - 1.0), reward, terminated, truncated, info

    def _known(self, observation: dict[str, Any], action: float) -> npt.NDArray[np.float32]:
        if observation["measured"]:
            self._seen, self._age = observation["observation"] / SIZES, 0
        else:
            self._age = min(self._age + 1, OLDEST)
        rest = [self._age / AGE_UNIT, float(observation["measured"]), action]
        return np.concatenate([self._seen, rest]).astype(np.float32)


def environment(price: float = PRICE) -> Any:
    """Return CartPole in which looking costs, with looks in the statistics of an episode; its rewards are scaled."""
    measured = am.ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=price)
    known = LastLook(am.envs.monitored(measured))
    return gymnasium.wrappers.TransformReward(known, lambda reward: REWARD_SCALE * float(reward))


def new_agent(seed: int = 0, price: float = PRICE, n_steps: int = 128) -> Any:
    """Return PPO with an LSTM on several environments; it learns after every `n_steps` steps of each."""
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)  # networks this small are slower with several
    network = {"lstm_hidden_size": 64, "net_arch": {"pi": [64], "vf": [64]}}
    return RecurrentPPO(
        "MlpLstmPolicy", DummyVecEnv([lambda: environment(price)] * ENVIRONMENTS), learning_rate=lambda left: 1e-3 * left,
        gamma=0.98, gae_lambda=0.95, n_epochs=10, n_steps=n_steps, batch_size=2 * n_steps, seed=seed, device="cpu",
        policy_kwargs=network,
    )  # fmt: skip


def played(agent: Any, episodes: int, price: float = PRICE) -> list[dict[str, float]]:
    """Return the statistics of episodes that a trained agent plays, with its most probable decisions."""
    env, results = environment(price), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        memory, begins, done, info = None, np.ones(1, dtype=bool), False, {}
        while not done:
            action, memory = agent.predict(observation, state=memory, episode_start=begins, deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            begins, done = np.zeros(1, dtype=bool), terminated or truncated
        results.append(info["episode"])
    return results


def show(when: str, episodes: Any) -> None:
    """Print the mean return, looks and steps of episodes."""
    earned, looks, steps = (np.mean([episode[name] for episode in episodes]) for name in ("r", "looks", "l"))
    print(f"{when:>20}: return {earned:6.1f}, {steps:6.1f} steps, looks after {looks / steps:4.0%} of them", flush=True)


def trained(seed: int, price: float, steps: int) -> list[dict[str, float]]:
    """Train with one seed, print what is earned as it learns, and return the statistics of 20 episodes at the end."""
    agent = new_agent(seed, price, n_steps=min(128, max(1, steps // ENVIRONMENTS)))
    printed = 0

    def report(*_: Any) -> bool:
        nonlocal printed
        if agent.num_timesteps * LINES >= (printed + 1) * steps and agent.ep_info_buffer:
            printed += 1
            show(f"after {agent.num_timesteps:,} steps", agent.ep_info_buffer)
        return True

    agent.learn(steps, callback=report)
    episodes = played(agent, 20, price)
    show(f"trained, seed {seed}", episodes)
    return episodes


def main() -> None:
    """Train, and print what is earned and how often the policy looks as it learns."""
    options = argparse.ArgumentParser(description="A recurrent policy learns when to look on CartPole.")
    options.add_argument("--full", action="store_true", help="five seeds instead of one")
    options.add_argument("--price", type=float, default=PRICE, help="price of a look (default: %(default)s)")
    options.add_argument("--steps", type=int, default=STEPS, help="steps of training (default: %(default)s)")
    given = options.parse_args()
    if find_spec("sb3_contrib") is None:
        print("this example needs the optional extra 'sb3': pip install 'actmeasure[sb3]'")
        return
    returns = []
    for seed in range(5 if given.full else 1):
        returns.append(np.mean([episode["r"] for episode in trained(seed, given.price, given.steps)]))
    if given.full:
        print(f"mean of {len(returns)} seeds: {np.mean(returns):.1f}, from {min(returns):.1f} to {max(returns):.1f}")


if __name__ == "__main__":
    main()
