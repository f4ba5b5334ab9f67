"""Contract checks of models, policies and agents, to be called in tests of your own.

Each raises `AssertionError` with a sentence that says which part of the contract is broken.
"""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium.utils.env_checker import check_env

from actmeasure import problems
from actmeasure.belief import Belief
from actmeasure.decision import Decision, expected_decision, is_valid
from actmeasure.envs.tabular import TabularEnv
from actmeasure.episodes import Episodes
from actmeasure.errors import ActMeasureError, quoted
from actmeasure.kernel_arrays import measured_world
from actmeasure.kernels import streams
from actmeasure.kernels.simulate import first_state, measured_step
from actmeasure.learning.agent import Agent, CompiledAgent
from actmeasure.learning.train import train
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray
from actmeasure.policy import Policy, is_deterministic
from actmeasure.policy_graph import PolicyGraph
from actmeasure.schedule import Schedule

__all__ = ["check_agent", "check_model", "check_policy"]

#: Largest number of states whose predicted beliefs are checked.
SAMPLE = 200
#: Largest number of transitions with which a model is saved and loaded as `.json`, and as `.pomdp`.
READABLE_ENTRIES = 20_000
POMDP_ENTRIES = 2_000


def check_model(model: Model, seed: int = 0) -> None:
    """Check that a model keeps what the rest of the library relies on.

    Arrays are read-only and consistent; beliefs predicted from it are distributions and agree with the transition
    matrices; it is the same after saving and loading in every format (in the text formats, if it is small; as `.pomdp` up
    to the last bit of its numbers); its environment keeps Gymnasium's contract and plays by the model.
    """
    _require(isinstance(model, Model), f"expected a Model, got {type(model).__name__}")
    _check_shapes(model)
    _check_arrays(model)
    _check_beliefs(model, np.random.default_rng(seed))
    _check_files(model)
    _check_contract(model)
    _check_play(model, seed)


def _check_shapes(model: Model) -> None:
    """Require that every array has the shape that the others imply, and is read-only."""
    table = model.transitions
    n_states, n_actions, n_entries = table.n_states, table.n_actions, len(table.successors)
    n_initial = len(model.initial_states)
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "transitions.offsets": (table.offsets, (n_states * n_actions + 1,)),
        "transitions.successors": (table.successors, (n_entries,)),
        "transitions.probabilities": (table.probabilities, (n_entries,)),
        "rewards": (model.rewards, (n_states, n_actions)),
        "terminal": (model.terminal, (n_states,)),
        "initial_states": (model.initial_states, (n_initial,)),
        "initial_probabilities": (model.initial_probabilities, (n_initial,)),
    }
    if model.transition_rewards is not None:
        expected["transition_rewards"] = (model.transition_rewards, (n_entries,))
    for measurement in _measurements(model):
        name, law = f"the measurement {measurement.name!r}", measurement.law
        if not isinstance(measurement.cost, float):
            cost = "measuring_cost" if model.looks_are_exact else f"cost of {name}"
            expected[cost] = (measurement.cost, (n_states, n_actions))
        if law is not None:
            n_rows = n_states * (n_actions if law.by_action else 1)
            expected[f"law.offsets of {name}"] = (law.offsets, (n_rows + 1,))
            expected[f"law.outcomes of {name}"] = (law.outcomes, (len(law.outcomes),))
            expected[f"law.probabilities of {name}"] = (law.probabilities, (len(law.outcomes),))
    for name, (array, shape) in expected.items():
        _require(isinstance(array, np.ndarray), f"{name} is of type {type(array).__name__}, expected an array")
        _require(array.shape == shape, f"{name} has shape {array.shape}, expected {shape}")
        _require(not array.flags.writeable, f"{name} can be written to; all arrays of a model must be read-only")


def _measurements(model: Model) -> list[Measurement]:
    """Return the measurements of a model and, last, the passive one."""
    return [*model.measurements, *([] if model.passive is None else [model.passive])]


def _check_arrays(model: Model) -> None:
    """Require distributions that sum to 1, finite rewards, and no transitions from terminal states."""
    table = model.transitions
    sums: FloatArray = table.stacked().sum(axis=1).reshape(model.n_states, model.n_actions)
    _require(bool(np.allclose(sums[~model.terminal], 1.0)), "a row of the transition table does not sum to 1")
    _require(not sums[model.terminal].any(), "a terminal state has transitions; the episode ends there")
    _require(bool(np.isfinite(model.rewards).all()), "a reward is not a finite number")
    if model.transition_rewards is not None:
        expected: FloatArray = table.stacked(table.probabilities * model.transition_rewards).sum(axis=1)
        _require(
            bool(np.allclose(expected, model.rewards.ravel())),
            "the expected rewards are not the mean of the transition rewards",
        )
    _require(bool(np.isclose(model.initial_probabilities.sum(), 1.0)), "the initial distribution does not sum to 1")
    _require(not model.terminal[model.initial_states].any(), "an episode may begin in a terminal state")
    if len(model.measurements) == 1:
        _require(model.replace(measuring_cost=0.0).measuring_cost == 0.0, "replace(measuring_cost=0) has no effect")
    for measurement in _measurements(model):
        _check_law(model, measurement)


def _check_law(model: Model, measurement: Measurement) -> None:
    """Require that outcomes have distributions in all states that are not terminal, and none in those that are."""
    if measurement.law is not None:
        sums: FloatArray = measurement.law.matrix().sum(axis=1).reshape(-1, model.n_states)
        name = repr(measurement.name)
        _require(bool(np.allclose(sums[:, ~model.terminal], 1.0)), f"a row of the measurement {name} does not sum to 1")
        _require(not sums[:, model.terminal].any(), f"the measurement {name} has outcomes in a terminal state")


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
    laws = [len(one.law.outcomes) for one in _measurements(model) if one.law is not None]
    n_entries = len(model.transitions.successors) + sum(laws)
    suffixes = [".npz", *([".json"] * (n_entries <= READABLE_ENTRIES)), *([".pomdp"] * (n_entries <= POMDP_ENTRIES))]
    with tempfile.TemporaryDirectory() as folder:
        for suffix in suffixes:
            path = Path(folder) / f"model{suffix}"
            try:
                model.save(path)
                loaded = Model.load(path)
            except ActMeasureError as error:
                raise AssertionError(f"the model cannot be saved and loaded as {suffix}: {error}") from error
            same = _same_up_to_rounding(loaded, model) if suffix == ".pomdp" else loaded.equals(model)
            _require(same, f"the model is not the same after saving and loading it as {suffix}")


def _same_up_to_rounding(one: Model, other: Model) -> bool:
    """Return whether two models are equal up to the last bit of probabilities, rewards and costs."""
    exact = (
        (one.transitions.offsets, other.transitions.offsets),
        (one.transitions.successors, other.transitions.successors),
        (one.terminal, other.terminal),
        (one.initial_states, other.initial_states),
        (one.discount, other.discount),
        (one.reveal_start, other.reveal_start),
    )
    if not all(np.array_equal(mine, theirs) for mine, theirs in exact):
        return False
    # Rewards that cancel out to about 0 are as exact as the rewards they are made of.
    size = np.abs(other.rewards if other.transition_rewards is None else other.transition_rewards).max()
    close = (
        (one.transitions.probabilities, other.transitions.probabilities, 0.0),
        (one.initial_probabilities, other.initial_probabilities, 0.0),
        (one.rewards, other.rewards, 1e-15 * size),
    )
    if not all(np.allclose(mine, theirs, rtol=1e-15, atol=atol) for mine, theirs, atol in close):
        return False
    if len(one.measurements) != len(other.measurements) or (one.passive is None) != (other.passive is None):
        return False
    pairs = zip(_measurements(one), _measurements(other), strict=True)
    return all(_same_measurement(mine, theirs, other) for mine, theirs in pairs)


def _same_measurement(one: Measurement, other: Measurement, model: Model) -> bool:
    """Return whether two measurements are equal up to the last bit of probabilities and prices."""
    mine, theirs = (measurement.table(model.n_states, model.n_actions) for measurement in (one, other))
    same = (one.name, one.outcomes, one.with_actions) == (other.name, other.outcomes, other.with_actions)
    if not same or not np.allclose(mine, theirs, rtol=1e-15, atol=0.0):
        return False
    if one.law is None or other.law is None:
        return one.law is other.law
    return (
        (one.law.n_outcomes, one.law.by_action) == (other.law.n_outcomes, other.law.by_action)
        and np.array_equal(one.law.offsets, other.law.offsets)
        and np.array_equal(one.law.outcomes, other.law.outcomes)
        and np.allclose(one.law.probabilities, other.law.probabilities, rtol=1e-15, atol=0.0)
    )


def _check_contract(model: Model) -> None:
    """Require that the model's environment passes Gymnasium's `check_env` without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check_env(TabularEnv(model, max_steps=50), skip_render_check=True)
        except Exception as error:  # whatever it raises: assertions, warnings, errors of the environment
            raise AssertionError(f"the model's environment does not pass Gymnasium's check_env: {error}") from error


def _check_play(model: Model, seed: int) -> None:
    """Require that states, rewards and measuring costs of the environment are those of the model."""
    if not model.is_exact_look_model:
        _check_outcomes(model, seed)
        return
    env = TabularEnv(model, max_steps=50)
    rng = np.random.default_rng(seed)
    for episode in range(5):
        observation, _ = env.reset(seed=episode)
        shown = observation != model.n_states
        _require(shown == model.reveal_start, f"the environment shows {observation} at the start, against reveal_start")
        ended = False
        while not ended:
            before = observation
            action, look = int(rng.integers(model.n_actions)), int(rng.integers(2))
            observation, reward, terminated, truncated, info = env.step([action, look])
            ended = terminated or truncated
            seen = observation != model.n_states
            _require(seen == bool(look), "the environment does not show the state exactly when it is measured")
            _require(np.isclose(reward, info["reward"] - info["measuring_cost"]), "the reward is not scalarized")
            if look and before != model.n_states:
                _check_step(model, before, action, observation, info)


def _check_outcomes(model: Model, seed: int) -> None:
    """Require that outcomes, rewards and prices of the environment are possible in the model, given what was seen before."""
    env = TabularEnv(model, max_steps=50)
    rng = np.random.default_rng(seed)
    for episode in range(5):
        first = env.outcome(env.reset(seed=episode)[0])[1]
        _require((first is not None) == model.reveal_start, "the environment shows the start against reveal_start")
        belief = Belief.start(model) if first is None else Belief.at(first)
        ended = False
        while not ended:
            action, chosen = int(rng.integers(model.n_actions)), int(rng.integers(1 + len(model.measurements)))
            made = chosen if model.allowed_decisions[action, chosen] else 0
            observation, reward, terminated, truncated, info = env.step([action, chosen])
            ended = terminated or truncated
            measurement, outcome = env.outcome(observation)
            _require(info["measured"] == (made > 0), "the environment does not measure what is allowed and decided")
            _require(outcome is None or measurement == made, "the environment shows the outcome of another measurement")
            _require(np.isclose(reward, info["reward"] - info["measuring_cost"]), "the reward is not scalarized")
            prices = (
                np.zeros(1)
                if made == 0
                else np.unique(
                    model.measurements[made - 1].table(model.n_states, model.n_actions)[belief.states, action]
                )
            )
            _require(
                info["measuring_cost"] in prices, f"the environment charges {info['measuring_cost']} for a measurement"
            )
            if terminated:
                break
            try:
                belief = belief.update(model, action, made, outcome)
            except ActMeasureError as error:
                raise AssertionError(
                    f"the environment shows an outcome that the model does not allow: {error}"
                ) from error


def _check_step(model: Model, state: int, action: int, successor: int, info: dict[str, Any]) -> None:
    """Require that a step between known states is possible in the model, with the model's reward and cost."""
    where = f"action {action} in state {state}"
    table, row = model.transitions, state * model.n_actions + action
    entries = np.flatnonzero(table.row(state, action)[0] == successor)
    _require(len(entries) == 1, f"the environment leads to state {successor} after {where}, which the model does not")
    paid = model.rewards[state, action]
    if model.transition_rewards is not None:
        paid = model.transition_rewards[table.offsets[row] + entries[0]]
    _require(info["reward"] == paid, f"the environment pays {info['reward']} for {where}, the model {paid}")
    cost, charged = model.measuring_costs[state, action], info["measuring_cost"]
    _require(charged == cost, f"the environment charges {charged} for looking with {where}, the model {cost}")


def check_policy(policy: Policy, model: Model, episodes: int = 20, max_steps: int = 100, seed: int = 0) -> None:
    """Check that a policy keeps the contract of `actmeasure.Policy`, in simulated episodes on a model.

    It has the methods `start`, `decide` and `observe`; it can be started in every belief with which an episode of the model
    begins, and leaves the belief as it is; it decides a `Decision` with an action of the model at every step, and takes in both
    *nothing seen* and the outcomes that its measurements show. Unless its attribute `deterministic` is False, it decides the
    same when it is started again and given the same outcomes.

    Parameters
    ----------
    policy : Policy
    model : Model
        The model that the policy was made for.
    episodes : int
    max_steps : int
        Largest number of steps of an episode.
    seed : int

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.frozen_lake(4)
    >>> am.testing.check_policy(am.solve(model).schedule.policy(model), model)
    """
    _require(isinstance(model, Model), f"expected a Model, got {type(model).__name__}")
    _check_methods(policy)
    arrays, stream, entropy = measured_world(model), streams.make_stream(), streams.entropy_words(seed)
    for episode in range(episodes):
        streams.seed_stream(stream, entropy, episode, streams.WORLD)
        state = int(first_state(arrays.world, stream))
        belief = Belief.at(state) if model.reveal_start else Belief.start(model)
        decisions: list[Decision] = []
        outcomes: list[int | None] = []
        _start(policy, belief)
        for _ in range(max_steps):
            decisions.append(_decision(policy, model))
            action, measurement = decisions[-1]
            state, _, _, _, outcome, ended = measured_step(arrays, state, action, measurement, stream)
            if ended:
                break
            outcomes.append(None if outcome < 0 else int(outcome))
            _observe(policy, outcomes[-1])
        if is_deterministic(policy):
            _check_same_decisions(policy, model, belief, decisions, outcomes)


def _check_methods(policy: Any) -> None:
    """Require an instance with the three methods of a policy, each taking the right number of arguments."""
    _require(not isinstance(policy, type), f"the policy is the class {quoted(policy)}; pass an instance of it")
    _require(
        not isinstance(policy, Agent),
        f"the policy is the agent {quoted(policy)}; an agent that follows a policy has it as its attribute `policy`",
    )
    _require(
        not isinstance(policy, Schedule),
        "the policy is a Schedule, which does not know its model; pass schedule.policy(model)",
    )
    _require(
        not isinstance(policy, PolicyGraph),
        "the policy is a PolicyGraph, which does not know its model; pass graph.policy(model)",
    )
    for name, arguments in (("start", ("belief",)), ("decide", ()), ("observe", ("outcome",))):
        method = getattr(policy, name, None)
        call = f"{name}({', '.join(arguments)})"
        _require(callable(method), f"{type(policy).__name__} has no method {call}, which every policy has")
        try:
            inspect.signature(cast("Callable[..., Any]", method)).bind(*arguments)
        except TypeError as error:
            raise AssertionError(f"{type(policy).__name__} cannot be called as {call}: {error}") from error


def _start(policy: Policy, belief: Belief) -> None:
    states, probabilities = belief.states.copy(), belief.probabilities.copy()
    try:
        policy.start(belief)
    except Exception as error:  # whatever it raises: the sentence says when
        raise AssertionError(
            f"start({belief!r}) raised {type(error).__name__}: {error}; a policy can be started in every belief with which "
            "an episode begins"
        ) from error
    same = np.array_equal(belief.states, states) and np.array_equal(belief.probabilities, probabilities)
    _require(same, "start(belief) has changed the arrays of the belief; copy them before writing into them")


def _decision(policy: Policy, model: Model) -> Decision:
    try:
        decision = policy.decide()
    except Exception as error:
        raise AssertionError(f"decide() raised {type(error).__name__}: {error}") from error
    n_measurements = len(model.measurements)
    _require(
        is_valid(decision, model.n_actions, n_measurements),
        f"decide() returned {quoted(decision)}, {expected_decision(model.n_actions, n_measurements)}",
    )
    return Decision(int(decision.action), int(decision.measurement))


def _observe(policy: Policy, outcome: int | None) -> None:
    try:
        policy.observe(outcome)
    except Exception as error:
        raise AssertionError(
            f"observe({outcome}) raised {type(error).__name__}: {error}; a policy takes in every outcome of its own decisions, a "
            "state (or another outcome's number) or None for nothing seen"
        ) from error


def _check_same_decisions(
    policy: Policy, model: Model, belief: Belief, decisions: list[Decision], outcomes: list[int | None]
) -> None:
    """Require that a policy repeats its decisions after the same start and outcomes."""
    _start(policy, belief)
    for step, decision in enumerate(decisions):
        again = _decision(policy, model)
        _require(
            again == decision,
            f"after the same start and outcomes decide() returned {decision} and then {again} in step {step + 1}; start(belief) "
            "must forget the episode before, and a policy that draws random numbers must say so: deterministic = False",
        )
        if step < len(outcomes):
            _observe(policy, outcomes[step])


def check_agent(make: Callable[[Model], Agent], episodes: int = 20, seed: int = 0) -> None:
    """Check that an agent keeps the contract of `Agent`, on small problems with known, random and hidden starts.

    It decides what the task allows, in every episode; the same seed gives the same episodes, and another run of the same
    agent goes on where the first left off; a compiled run equals one on the model's environment.

    Parameters
    ----------
    make : function from Model to Agent
        Called for every run with the model of the problem, and must return a new agent; most agents ignore the model.
    episodes : int
        Number of episodes of a run, at least 2: the first half is run on its own and then continued.
    seed : int
    """
    _require(
        not isinstance(make, (type, Agent)) and callable(make),
        f"make is {quoted(make)}, expected a function from Model to Agent, such as lambda model: MyAgent()",
    )
    _require(episodes >= 2, f"episodes is {episodes}, expected at least 2, so that there is something to continue")
    for model in _small_models():
        whole = _run(_fresh(make, model), model, episodes, seed)
        again = _run(_fresh(make, model), model, episodes, seed)
        _require(
            _same(whole, again), "two runs with the same seed differ; use no randomness but the generator passed in"
        )
        agent = _fresh(make, model)
        half = episodes // 2
        first = _run(agent, model, half, seed, planned_episodes=episodes)
        second = _run(agent, model, episodes - half, seed)
        _require(agent.episodes_done == episodes, "episodes_done does not count the episodes")
        joined = np.concatenate([first.scalarized_return, second.scalarized_return])
        in_one_go = bool(np.array_equal(joined, whole.scalarized_return))
        _require(in_one_go, "a run that was continued differs from one that was not")
        if isinstance(agent, CompiledAgent):
            played = _run(_fresh(make, model), TabularEnv(model, max_steps=30), episodes, seed)
            _require(_same(whole, played), "the compiled run differs from the one on the model's environment")


def _fresh(make: Callable[[Model], Agent], model: Model) -> Agent:
    try:
        inspect.signature(make).bind(model)
    except TypeError as error:
        raise AssertionError(f"make does not take a model ({error}); write lambda model: MyAgent()") from error
    agent = make(model)
    _require(isinstance(agent, Agent), f"make(model) gave {quoted(agent)}, expected an Agent")
    _require(
        agent.episodes_done == 0, "make(model) gave an agent that has been trained before; make a new one every time"
    )
    return agent


def _run(agent: Agent, world: Model | TabularEnv, episodes: int, seed: int, **settings: Any) -> Episodes:
    """Run `train`, with its errors as sentences of the check."""
    try:
        return train(agent, world, episodes, seed=seed, max_steps=30, **settings)
    except ActMeasureError as error:
        raise AssertionError(str(error)) from error


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


def _same(one: Episodes, other: Episodes) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("scalarized_return", "reward", "measurements", "steps", "terminated")
    )


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)
