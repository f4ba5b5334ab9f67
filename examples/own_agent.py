"""An agent in thirty lines beside the others, with intervals over seeds; `--full` prints the table of the tutorial."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import actmeasure as am


class Surprised(am.agents.Agent):
    """Q-learning on the assumed state; it looks unless a step has always led to the same state.

    Parameters
    ----------
    rate, explore : float
        Of learning, and of acting at random.
    sure : int
        Number of times in a row that a step has led to the same state before it is not measured any more.
    """

    task: am.agents.Task

    def __init__(self, rate: float = 0.2, explore: float = 0.1, sure: int = 5) -> None:
        self.rate, self.explore, self.sure = rate, explore, sure

    def prepare(self, task: am.agents.Task) -> None:
        super().prepare(task)
        self.values = np.zeros((task.n_states, task.n_actions))
        self.successor = np.full((task.n_states, task.n_actions), -1)
        self.times = np.zeros((task.n_states, task.n_actions))

    def begin(self, observation: int | None) -> None:
        self.state = 0 if observation is None else observation

    def decide(self) -> am.Decision:
        best = np.flatnonzero(self.values[self.state] == self.values[self.state].max())
        explores = self.rng.random() < self.explore
        self.action = int(self.rng.integers(self.task.n_actions) if explores else self.rng.choice(best))
        return am.Decision(self.action, measure=bool(self.times[self.state, self.action] < self.sure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        pair = self.state, self.action
        if observation is not None and not terminated:
            surprise = self.times[pair] != 0 and self.successor[pair] != observation
            self.times[pair] = -np.inf if surprise else self.times[pair] + 1
            self.successor[pair] = observation
        after = int(self.successor[pair] if observation is None else observation)
        future = 0.0 if terminated else self.task.discount * self.values[after].max()
        self.values[pair] += self.rate * (reward - cost + future - self.values[pair])
        self.state = after


RIVALS: dict[str, str | Callable[[], am.agents.Agent]] = {
    "Surprised": Surprised,
    "amrl-q": "amrl-q",
    "dyna-atmq": "dyna-atmq",
    "foresight": "foresight",
}


def main() -> None:
    """Train all on the 4x4 semi-slippery lake."""
    if unknown := set(sys.argv[1:]) - {"--full"}:
        sys.exit(f"unknown option {', '.join(sorted(unknown))}; there is --full")
    episodes, seeds = (1_500, 10) if "--full" in sys.argv else (400, 3)
    lake = am.problems.frozen_lake(4, variant="semi-slippery", measuring_cost=0.05)
    print(f"last 200 of {episodes} episodes, {seeds} seeds")
    for name, agent in RIVALS.items():
        summary = am.train_seeds(agent, lake, episodes, seeds, max_steps=200, workers=1).summary(last=200)
        earned, looks = summary["scalarized_return"], summary["measurements"]
        print(
            f"{name:<10} {earned.mean:6.3f} ({earned.low:.3f} to {earned.high:.3f})  looks {looks.mean:.2f}", flush=True
        )
    best = am.solve(lake.replace(discount=0.99)).evaluation
    print(f"best       {best.scalarized_return:6.3f}                   looks {best.measurements:.2f}")


if __name__ == "__main__":
    main()
