"""Contract checks that anybody who writes a model or an agent can call, in a test of their own.

Both raise `AssertionError` with a sentence that says what is broken.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure import problems
from actmeasure.agents.base import Agent, CompiledAgent, Task
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.envs.tabular import TabularEnv
from actmeasure.episodes import Episodes
from actmeasure.model import Model
from actmeasure.training import train
from actmeasure.transitions import FloatArray

__all__ = ["check_agent", "check_model"]

#: Check beliefs, and files of text, on at most so many states and transitions, so that large models are checked in seconds.
SAMPLE = 200
READABLE_ENTRIES = 20_000


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def check_model(model: Model, seed: int = 0) -> None:
    """Check that a model is what the rest of the library relies on.

    Arrays are read-only and consistent; beliefs predicted from it are distributions and agree with the transition
    matrices; it is the same after saving and loading in every format; its environment keeps Gymnasium's contract and
    plays by the model.
    """
    _require(isinstance(model, Model), f"expected a Model, got {type(model).__name__}")
    _check_arrays(model)
    _check_beliefs(model, np.random.default_rng(seed))
    _check_files(model)
    _check_environment(model, seed)


def _check_arrays(model: Model) -> None:
    table = model.transitions
    frozen: list[npt.NDArray[Any]] = [
        table.offsets,
        table.successors,
        table.probabilities,
        model.rewards,
        model.terminal,
    ]
    _require(
        not any(array.flags.writeable for array in frozen),
        "the model's arrays can be written to; they must be read-only",
    )
    sums: FloatArray = table.stacked().sum(axis=1).reshape(model.n_states, model.n_actions)
    _require(bool(np.allclose(sums[~model.terminal], 1.0)), "a row of the transition table does not sum to 1")
    _require(not sums[model.terminal].any(), "a terminal state has transitions; the episode ends there")
    if model.transition_rewards is not None:
        expected: FloatArray = table.stacked(table.probabilities * model.transition_rewards).sum(axis=1)
        _require(
            bool(np.allclose(expected, model.rewards.ravel())),
            "the expected rewards are not the mean of the transition rewards",
        )
    _require(bool(np.isclose(model.initial_probabilities.sum(), 1.0)), "the initial distribution does not sum to 1")
    _require(not model.terminal[model.initial_states].any(), "an episode may begin in a terminal state")
    _require(model.replace(measuring_cost=0.0).measuring_cost == 0.0, "replace(measuring_cost=0) has no effect")


def _check_beliefs(model: Model, rng: np.random.Generator) -> None:
    running = np.flatnonzero(~model.terminal)
    states = rng.choice(running, size=min(SAMPLE, len(running)), replace=False)
    for action in range(model.n_actions):
        matrix = model.transitions.matrix(action)
        for state in states:
            after = Belief.at(int(state)).predict(model, action)
            exact = matrix[[int(state)]].toarray().ravel()
            exact[model.terminal] = 0.0
            mass = exact.sum()
            _require(
                after.is_over == (mass == 0), f"the belief after action {action} in state {state} is empty by mistake"
            )
            if mass > 0:
                close = np.allclose(after.dense(model.n_states), exact / mass)
                _require(
                    close, f"the belief after action {action} in state {state} is not the transition row, given running"
                )


def _check_files(model: Model) -> None:
    readable = len(model.transitions.successors) <= READABLE_ENTRIES
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".npz", ".json") if readable else (".npz",):
            path = Path(folder) / f"model{suffix}"
            model.save(path)
            _require(
                Model.load(path).equals(model), f"the model is not the same after saving and loading it as {suffix}"
            )


def _check_environment(model: Model, seed: int) -> None:
    env = TabularEnv(model, max_steps=50)
    rng = np.random.default_rng(seed)
    for episode in range(5):
        observation, _ = env.reset(seed=episode)
        _require(env.observation_space.contains(observation), f"the environment shows {observation} at the start")
        ended = False
        while not ended:
            action = np.array([rng.integers(model.n_actions), rng.integers(2)])
            observation, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            seen = observation != model.n_states
            _require(seen == bool(action[1]), "the environment shows the state exactly when it is not measured")
            _require(np.isclose(reward, info["reward"] - info["measuring_cost"]), "the reward is not scalarized")


def check_agent(make: Callable[[Model], Agent], episodes: int = 20, seed: int = 0) -> None:
    """Check that an agent keeps the contract, on small problems with known, random and hidden starts.

    It decides what the task allows; the same seed gives the same episodes, and another run of the same agent goes on where
    the first left off; a compiled run equals one on the model's environment.

    Parameters
    ----------
    make : function from Model to Agent
        Called for every run with the model of the problem, so that the agent is fresh; most agents ignore the model.
    episodes : int
    seed : int
    """
    for model in _small_models():
        _check_decisions(make(model), model, seed)
        whole = train(make(model), model, episodes, seed=seed, max_steps=30)
        again = train(make(model), model, episodes, seed=seed, max_steps=30)
        _require(
            _same(whole, again), "two runs with the same seed differ; use no randomness but the generator passed in"
        )
        agent = make(model)
        half = episodes // 2
        first = train(agent, model, half, seed=seed, max_steps=30, planned_episodes=episodes)
        second = train(agent, model, episodes - half, seed=seed, max_steps=30)
        _require(agent.episodes_done == episodes, "episodes_done does not count the episodes")
        joined = np.concatenate([first.scalarized_return, second.scalarized_return])
        in_one_go = bool(np.array_equal(joined, whole.scalarized_return))
        _require(in_one_go, "a run that was continued differs from one that was not")
        if isinstance(agent, CompiledAgent):
            played = train(make(model), TabularEnv(model, max_steps=30), episodes, seed=seed, max_steps=30)
            _require(_same(whole, played), "the compiled run differs from the one on the model's environment")


def _small_models() -> list[Model]:
    lake = problems.frozen_lake(4, measuring_cost=0.05)
    free = np.flatnonzero(~lake.terminal)
    anywhere = np.zeros(lake.n_states)
    anywhere[free] = 1 / len(free)
    return [
        problems.measuring_value(),
        lake,
        lake.replace(initial=anywhere),
        lake.replace(initial=anywhere, reveal_start=False),
        problems.tight_bound(),
    ]


def _check_decisions(agent: Agent, model: Model, seed: int) -> None:
    agent.prepare(Task.of_model(model))
    agent.reseed(seed, 0)
    env = TabularEnv(model, max_steps=30)
    observation, _ = env.reset(seed=seed)
    agent.begin(None if observation == model.n_states else int(observation))
    ended = False
    while not ended:
        decision = agent.decide()
        _require(isinstance(decision, Decision), f"decide() gave {decision!r}, expected a Decision")
        _require(
            0 <= decision.action < model.n_actions, f"decide() chose action {decision.action} of {model.n_actions}"
        )
        observation, _, terminated, truncated, info = env.step(np.array([decision.action, int(decision.measure)]))
        ended = terminated or truncated
        seen = None if observation == model.n_states else int(observation)
        agent.observe(info["reward"], info["measuring_cost"], seen, terminated, truncated)


def _same(one: Episodes, other: Episodes) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("scalarized_return", "reward", "measurements", "steps", "terminated")
    )
