"""`train`: run an agent on a model, in a compiled loop, or on an environment, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from actmeasure.envs.contract import Where, checked_flag, checked_observation, checked_reward, reset_parts, step_parts
from actmeasure.envs.tabular import TabularEnv
from actmeasure.episodes import Episode, Episodes
from actmeasure.errors import AgentError, SpaceError, quoted
from actmeasure.interrupts import deferred_interrupts
from actmeasure.kernels import streams
from actmeasure.kernels.jit import running_time
from actmeasure.learning.agent import Agent, CompiledAgent, Task, checked_decision
from actmeasure.learning.learning_agent import own_discount
from actmeasure.model import Model
from actmeasure.settings import LARGEST_RETURN, MOST_EPISODES, MOST_STEPS, real, whole

__all__ = ["check_can_act", "task_of", "train"]

#: Seconds of a piece of a compiled run; between pieces, progress is reported and Ctrl-C has its effect.
PIECE_SECONDS = 0.2
#: Discount of the task on an environment, unless told.
DISCOUNT = 0.95
#: Largest number of pairs (state, action) of an environment: successors are 32-bit numbers.
MOST_PAIRS = 2**31 - 1

#: Called with the number of episodes done and all `Episodes`.
Progress = Callable[[int, Episodes], None]


def train(
    agent: Agent,
    world: Model | gym.Env[Any, Any],
    episodes: int,
    seed: int = 0,
    max_steps: int = 1000,
    discount: float = DISCOUNT,
    planned_episodes: int | None = None,
    progress: Progress | None = None,
    callback: Callable[[Episode], object] | None = None,
) -> Episodes:
    """Let an agent act, and learn, for a number of episodes, and return them.

    The same seed gives the same episodes, whether the world is a `Model`, in a compiled loop, or that model's environment.
    An agent that has been trained before continues with the next episode: two runs of 500 episodes equal one of 1,000. To start
    over, make a new agent.

    Parameters
    ----------
    agent : Agent
    world : Model, or Gymnasium environment in which looking costs
        Wrap other environments with `ActiveMeasuring` first.
    episodes : int
    seed : int
        Of all random numbers of the run, those of an episode being derived from it and the episode's number.
    max_steps : int
        An episode is cut off after this many steps.
    discount : float
        Discount of the task on an environment; a model has its own.
    planned_episodes : int, optional
        Number of episodes that the agent is told to expect, `episodes` by default; give it when a run is made in parts.
    progress : function, optional
        Called several times with the number of episodes done and the `Episodes`, of which that many are filled in.
    callback : function, optional
        Called with every `Episode`, in order; in a compiled loop after the episodes of a moment. `learning.log_to` makes one that
        writes for TensorBoard, or a CSV file.

    Returns
    -------
    Episodes
        Fewer than asked for, with a warning, if interrupted by Ctrl-C; the agent keeps what it has learned.
    """
    episodes = whole(episodes, "episodes", 1, MOST_EPISODES, AgentError)
    seed, max_steps = whole(seed, "seed", error=AgentError), whole(max_steps, "max_steps", 1, MOST_STEPS, AgentError)
    planned = episodes if planned_episodes is None else whole(planned_episodes, "planned_episodes", 1, error=AgentError)
    if not isinstance(agent, Agent):
        remedy = "call the class" if isinstance(agent, type) else "see actmeasure.learning"
        remedy = f"use am.agents.make({quoted(agent)})" if isinstance(agent, str) else remedy
        raise AgentError(f"the agent is {quoted(agent)}, expected an actmeasure Agent; {remedy}")
    task = task_of(world, planned, own_discount(discount, "discount"))
    check_can_act(agent, world)
    _prepare(agent, task)
    try:
        results = Episodes.empty(episodes, task.n_measurements)
    except MemoryError as error:
        raise AgentError(
            f"the results of {episodes:,} episodes do not fit into the memory of this machine; train for fewer, several times"
        ) from error
    first = agent.episodes_done
    report = _reports(progress, callback, first)
    try:
        if isinstance(world, Model) and isinstance(agent, CompiledAgent):
            _run_compiled(agent, world, results, seed, max_steps, report)
        else:
            env = TabularEnv(world, max_steps=max_steps) if isinstance(world, Model) else world
            _run_environment(agent, env, results, seed, max_steps, report)
    except KeyboardInterrupt:
        done = agent.episodes_done - first
        warnings.warn(
            f"interrupted after {done} of {episodes} episodes; these are returned", RuntimeWarning, stacklevel=2
        )
        return results.first(done)
    return results


def _reports(progress: Progress | None, callback: Callable[[Episode], object] | None, first: int) -> Progress:
    """Return the function that is called as episodes are done: it calls both of these, if they are given."""
    seen = 0

    def report(done: int, so_far: Episodes) -> None:
        nonlocal seen
        if callback is not None:
            for index in range(seen, done):
                seen = index + 1
                callback(so_far.episode(index, first + index))
        if progress is not None:
            progress(done, so_far)

    return report


def check_can_act(agent: Agent, world: Model | gym.Env[Any, Any]) -> None:
    """Raise a `ModelError` if an agent cannot act on a model, or on the model of an environment."""
    if isinstance(world, Model):
        agent.check_can_act_on(world)
    elif isinstance(world.unwrapped, TabularEnv):
        agent.check_can_act_on(world.unwrapped.model)


def task_of(world: Model | gym.Env[Any, Any], episodes: int, discount: float = DISCOUNT) -> Task:
    """Return the task of an agent on a model or an environment; a `SpaceError` if agents cannot act on the environment."""
    if isinstance(world, Model):
        return Task.of_model(world, episodes)
    n_states, n_actions = (0, 0) if _shows_outcomes(world) else _sizes(world)
    if isinstance(world.unwrapped, TabularEnv):
        return Task.of_model(world.unwrapped.model, episodes)
    cost = _checked_cost(world.get_wrapper_attr("measuring_cost"))
    shown = not world.has_wrapper_attr("reveal_start") or bool(world.get_wrapper_attr("reveal_start"))
    return Task(n_states, n_actions, cost, discount, None, shown, None, episodes)


def _checked_cost(cost: Any) -> float:
    """Return the measuring cost of an environment as a plain number."""
    value = real(cost, "the environment's measuring_cost", SpaceError)
    if not 0 <= value <= LARGEST_RETURN:
        raise SpaceError(
            f"the environment's measuring_cost is {quoted(cost)}, expected a number from 0 to {LARGEST_RETURN:g}; correct it"
        )
    return value


def _shows_outcomes(env: gym.Env[Any, Any]) -> bool:
    """Return whether an environment is that of a model whose looks are not exact; wrappers must leave its spaces as they are."""
    if not isinstance(env, gym.Env) or not isinstance(env.unwrapped, TabularEnv) or env.unwrapped.model.looks_are_exact:
        return False
    own = env.unwrapped
    if (env.action_space, env.observation_space) != (own.action_space, own.observation_space):
        raise SpaceError(
            f"the spaces of the model's environment, {own.action_space} and {own.observation_space}, were changed by a wrapper, "
            "so that the outcomes of its measurements cannot be told; train on the environment without that wrapper"
        )
    return True


def _sizes(env: gym.Env[Any, Any]) -> tuple[int, int]:
    """Return the numbers of states and actions of an environment; raise a `SpaceError` if its spaces are not finite."""
    if not isinstance(env, gym.Env):
        vector = "; train on its environments one by one" if isinstance(env, gym.vector.VectorEnv) else ""
        raise SpaceError(
            f"the world is of type {type(env).__name__}, expected a Model or a Gymnasium environment{vector}"
        )
    actions, observations = env.action_space, env.observation_space
    if not env.has_wrapper_attr("measuring_cost"):
        raise SpaceError("looking costs nothing in this environment; wrap it: ActiveMeasuring(env, measuring_cost=...)")
    if isinstance(env.get_wrapper_attr("measuring_cost"), tuple):
        raise SpaceError(
            "the measurements of the environment are functions of its observation, but the agents here act where a look shows "
            "the state, or on a Model; train with another library, such as Stable-Baselines3, or make a Model of it"
        )
    if not isinstance(observations, gym.spaces.Discrete):
        raise SpaceError(
            f"the observations are {observations}, but the agents here learn on finitely many states; "
            "discretise the environment: actmeasure.envs.Grid(env, bins=10)"
        )
    if not isinstance(actions, gym.spaces.MultiDiscrete) or actions.shape != (2,) or actions.nvec[1] != 2:
        raise SpaceError(
            f"the actions are {actions}, expected MultiDiscrete([n, 2]): a control action and whether to look"
        )
    if observations.start != 0 or np.any(actions.start != 0):
        raise SpaceError("states and actions must be counted from 0; shift the spaces before wrapping the environment")
    n_states, n_actions = int(observations.n) - 1, int(actions.nvec[0])
    if n_states * n_actions > MOST_PAIRS:
        raise SpaceError(
            f"the environment has {n_states:,} states and {n_actions:,} actions, too many for agents that keep a table of all; "
            "discretise it more coarsely"
        )
    return n_states, n_actions


def _prepare(agent: Agent, task: Task) -> None:
    """Prepare a new agent; check that one that was trained before fits the task."""
    if agent.task is None:
        try:
            agent.prepare(task)
        except MemoryError as error:
            raise AgentError(
                f"the tables of {type(agent).__name__} for {task.n_states:,} states and {task.n_actions:,} actions do not fit "
                "into the memory of this machine; use fewer states"
            ) from error
        if agent.task is None:
            raise AgentError(
                f"prepare() of {type(agent).__name__} does not set the task; call super().prepare(task) in it"
            )
    else:
        agent.check_goes_on_with(task)


def _run_compiled(
    agent: CompiledAgent, model: Model, results: Episodes, seed: int, max_steps: int, progress: Progress
) -> None:
    """Run all episodes with `agent.run`, in pieces of about `PIECE_SECONDS`."""
    done, piece = 0, 1
    with deferred_interrupts() as interrupts:
        while done < len(results):
            begun = running_time()  # without the time of compiling, which the next episodes do not need
            count = min(piece, len(results) - done)
            agent.run(model, seed, agent.episodes_done, max_steps, results.part(done, done + count))
            agent.episodes_done += count
            done += count
            progress(done, results)
            interrupts.check()
            elapsed = running_time() - begun
            piece = max(1, int(count * min(8.0, PIECE_SECONDS / max(elapsed, 1e-9))))


def _run_environment(
    agent: Agent, env: gym.Env[Any, Any], results: Episodes, seed: int, max_steps: int, progress: Progress
) -> None:
    """Run all episodes on an environment, step by step."""
    entropy, scratch = streams.entropy_words(seed), streams.make_stream()
    with deferred_interrupts() as interrupts:
        for episode in range(len(results)):
            number = agent.episodes_done
            agent.reseed(seed, number)
            _one_episode(agent, env, int(streams.world_seed(scratch, entropy, number)), max_steps, results, episode)
            agent.episodes_done += 1
            progress(episode + 1, results)
            interrupts.check()


def _one_episode(
    agent: Agent, env: gym.Env[Any, Any], seed: int, max_steps: int, results: Episodes, episode: int
) -> None:
    """Play one episode; everything that the environment returns is checked here before it reaches the agent."""
    nothing = int(env.observation_space.n) - 1  # type: ignore[attr-defined]
    n_actions, n_looks = env.action_space.nvec.tolist()  # type: ignore[attr-defined]
    numbering = env.unwrapped.numbering if _shows_outcomes(env) else None  # type: ignore[attr-defined]
    number = episode + 1
    observation, _ = reset_parts(env.reset(seed=seed), (number, 0))
    first = checked_observation(observation, 0, nothing, (number, 0))
    agent.begin(None if first == nothing else first if numbering is None else numbering.outcome(first)[1])
    for step in range(1, max_steps + 1):
        where = (number, step)
        action, measurement = checked_decision(agent, agent.decide(), n_actions, n_looks - 1)
        given = env.step(np.array([action, int(measurement)]))
        observation, scalarized, terminated, truncated, info = step_parts(given, where)
        observation = checked_observation(observation, 0, nothing, where)
        scalarized = checked_reward(scalarized, "the environment's reward", where)
        reward, cost, measured = _told(info, where)
        truncated = not terminated and (truncated or step == max_steps)
        seen = (
            None if observation == nothing else observation if numbering is None else numbering.outcome(observation)[1]
        )
        agent.observe(reward, cost, seen, terminated, truncated)
        if results.by_kind is not None and measured:
            results.by_kind[episode, info["measurement"] - 1] += 1
        results.scalarized_return[episode] += scalarized
        results.reward[episode] += reward
        results.measurements[episode] += measured
        results.steps[episode] = step
        results.terminated[episode] = terminated
        if terminated or truncated:
            break


def _told(info: Mapping[str, Any], where: Where) -> tuple[float, float, bool]:
    """Return the reward, the measuring cost and whether the state was measured, from `info` of a step."""
    try:
        reward, cost, measured = info["reward"], info["measuring_cost"], info["measured"]
    except KeyError as missing:
        raise SpaceError(
            f"info of the environment's step has no {missing}; wrap the environment with ActiveMeasuring, or add 'reward', "
            "'measuring_cost' and 'measured' to info"
        ) from missing
    return (
        checked_reward(reward, "'reward' in the environment's info", where),
        checked_reward(cost, "'measuring_cost' in the environment's info", where),
        measured if type(measured) is bool else checked_flag(measured, "measured", where),
    )
