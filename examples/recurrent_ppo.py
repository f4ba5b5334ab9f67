"""A recurrent policy learns when to look on CartPole: PPO with an LSTM (needs the extra `sb3`).

An observation that was not paid for is zeros with `measured` 0, so that the policy has to remember what it saw. `--full`
trains for 150,000 steps, which takes minutes; without it the run is short, and only shows that everything works.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np

import actmeasure as am

#: Price of a look; every step of balance pays 1.
PRICE = 0.2
EPISODES = 20


def environment() -> Any:
    """Return CartPole in which looking costs, with looks in the statistics of an episode."""
    return am.envs.monitored(am.ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=PRICE))


def played(agent: Any, episodes: int) -> tuple[float, float, float]:
    """Return the mean return, looks and steps of a trained agent."""
    env, results = environment(), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        memory, begins, done, info = None, np.ones(1, dtype=bool), False, {}
        while not done:
            action, memory = agent.predict(observation, state=memory, episode_start=begins, deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            begins, done = np.zeros(1, dtype=bool), terminated or truncated
        results.append([info["episode"][name] for name in ("r", "looks", "l")])
    earned, looks, steps = np.mean(results, axis=0)
    return float(earned), float(looks), float(steps)


def main() -> None:
    """Train and print what is earned, and how often the policy looks."""
    if find_spec("sb3_contrib") is None:
        print("this example needs the optional extra 'sb3': pip install 'actmeasure[sb3]'")
        return
    from sb3_contrib import RecurrentPPO

    full = "--full" in sys.argv
    size: dict[str, Any] = {"n_steps": 512, "batch_size": 128} if full else {"n_steps": 64, "batch_size": 32}
    agent = RecurrentPPO(
        "MultiInputLstmPolicy", environment(), learning_rate=1e-3, gamma=0.99, seed=0, device="cpu", verbose=0, **size
    )
    before = played(agent, EPISODES if full else 2)
    agent.learn(150_000 if full else 256)
    after = played(agent, EPISODES if full else 2)
    for when, (earned, looks, steps) in (("before", before), ("after", after)):
        print(f"{when:<7} return {earned:7.2f}   looks {looks:6.2f} in {steps:6.2f} steps ({looks / steps:.0%})")


if __name__ == "__main__":
    main()
