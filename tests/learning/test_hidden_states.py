"""Learning where looks are not exact: expected transitions against all hidden paths, and the agent that plans on them."""

import itertools
import json

import numpy as np
import pytest
from brute_force import fatigue
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, general_models

import actmeasure as am
from actmeasure.learning.agent import Task
from actmeasure.learning.hidden_states import HiddenStates, ObservedStep

SMALL = {"simulations": 20, "depth": 4, "particles": 20, "nodes": 60}


def some_episode(model, rng, longest=4):
    """A random episode of a model: what an agent knows of it, the first belief and whether it ended."""
    env = am.envs.TabularEnv(model, max_steps=int(rng.integers(1, longest + 1)))
    first, _ = env.reset(seed=int(rng.integers(2**31)))
    start = am.Belief.at(env.outcome(first)[1]) if model.reveal_start else am.Belief.start(model)
    steps, done = [], False
    while not done:
        pairs = np.argwhere(model.allowed_decisions)
        action, measurement = (int(part) for part in pairs[rng.integers(len(pairs))])
        observation, _, terminated, truncated, info = env.step([action, measurement])
        seen = env.outcome(observation)[1]
        steps.append(ObservedStep(action, measurement, None if terminated else seen, info["reward"], terminated))
        done = terminated or truncated
    return start, steps


def by_all_paths(hidden, start, steps):
    """Expected transitions given the outcomes, shape (A, S, S + 1), by adding up all sequences of hidden states."""
    P, n_states = hidden.transitions(), hidden.task.n_states
    ends = steps[-1].terminated
    times, total = np.zeros_like(P), 0.0
    for path in itertools.product(range(n_states), repeat=len(steps) + (not ends)):
        followed = [*path, n_states] if ends else list(path)
        chance = start.dense(n_states)[path[0]]
        for step, before, after in zip(steps, followed, followed[1:], strict=False):
            chance *= P[step.action, before, after]
            if after < n_states:
                chance *= hidden.likelihood(step)[after]
        total += chance
        for step, before, after in zip(steps, followed, followed[1:], strict=False):
            times[step.action, before, after] += chance
    return times / total


@examples(150)
@given(general_models(max_states=3, max_actions=2), st.integers(0, 2**32 - 1))
def test_expected_transitions_are_those_of_all_hidden_paths(model, seed):
    if model.looks_are_exact:
        return
    rng = np.random.default_rng(seed)
    hidden = HiddenStates(Task.of_model(model), prior=0.3)
    hidden.times += rng.random(hidden.times.shape)
    start, steps = some_episode(model, rng)
    expected, before = by_all_paths(hidden, start, steps), hidden.times.copy()
    hidden.add(start, steps)
    np.testing.assert_allclose(hidden.times - before, expected, atol=1e-12)


def test_a_state_that_is_always_seen_is_counted():
    model = am.problems.inspection().replace(passive=am.Measurement.exact("seen"), reveal_start=True)
    hidden = HiddenStates(Task.of_model(model), prior=0.01)
    rng = np.random.default_rng(0)
    counts, paid = np.zeros_like(hidden.times), np.zeros(hidden.sums.shape)
    for _ in range(5):
        hidden.episodes = 0  # all episodes count alike
        state = 0
        steps = []
        for _ in range(20):
            action, after = int(rng.integers(3)), int(rng.integers(5))
            counts[action, state, after] += 1
            paid[action, state] += model.rewards[state, action]
            steps.append(ObservedStep(action, 0, after, float(model.rewards[state, action]), False))
            state = after
        hidden.add(am.Belief.at(0), steps)
    np.testing.assert_allclose(hidden.times, counts, atol=1e-9)
    mass = counts.sum(axis=2) + 0.01 * 6
    np.testing.assert_allclose(hidden.rewards().T, paid / mass, atol=1e-9)  # as `acno-pomcp` where looks are exact


@pytest.mark.slow
def test_it_learns_to_inspect():
    """The last episodes earn several times what the first do, and near what is earned with the dynamics known."""
    model = am.problems.inspection()
    settings = {"simulations": 100, "depth": 10, "particles": 100, "nodes": 500}
    agent = am.agents.make("acno-pomcp", **settings)
    returns = am.train(agent, model, 100, seed=1, max_steps=40).scalarized_return
    known = am.train(am.agents.make("pomcp", model=model, **settings), model, 20, seed=1, max_steps=40)
    assert returns[-30:].mean() > returns[:30].mean() / 2
    assert returns[-30:].mean() > 1.4 * known.scalarized_return.mean()
    learned = agent.model()
    assert (learned.n_states, learned.passive, [one.name for one in learned.measurements]) == (
        6, None, ["visual", "ultrasonic", "opening"],
    )  # fmt: skip
    assert np.abs(learned.transitions.dense()[:3, 0, :5] - model.transitions.dense()[:3, 0]).max() < 0.2
    assert np.abs(learned.rewards[:3, 0] - model.rewards[:3, 0]).max() < 2
    assert am.solve(learned, "atm").value < 0


@examples(20)
@given(general_models(), st.integers(0, 1000))
def test_it_acts_on_any_model(model, seed):
    episodes = am.train(am.agents.make("acno-pomcp", **SMALL), model, 3, seed=seed, max_steps=5)
    assert np.isfinite(episodes.scalarized_return).all()


def test_a_run_in_parts_is_the_run():
    whole, parts = (am.agents.make("acno-pomcp", **SMALL) for _ in range(2))
    run = am.train(whole, fatigue(), 6, seed=3, max_steps=10)
    first = am.train(parts, fatigue(), 2, seed=3, max_steps=10, planned_episodes=6)
    rest = am.train(parts, fatigue(), 4, seed=3, max_steps=10, planned_episodes=6)
    np.testing.assert_array_equal(
        run.scalarized_return, np.concatenate([first.scalarized_return, rest.scalarized_return])
    )
    with pytest.raises(am.AgentError, match="3 states and 2 actions, but this task has 5 and 3"):
        am.train(parts, am.problems.inspection(), 1)


def saved(agent, path):
    agent.save(path)
    return am.agents.load(path)


@examples(20)
@given(general_models(), st.integers(0, 1000))
def test_a_saved_agent_goes_on_as_if_it_had_not_been(tmp_path_factory, model, seed):
    path = tmp_path_factory.mktemp("agents") / "agent.npz"
    agent = am.agents.make("acno-pomcp", **SMALL)
    am.train(agent, model, 2, seed=seed, max_steps=5, planned_episodes=4)
    loaded = saved(agent, path)
    assert loaded.model() == agent.model()
    runs = [am.train(one, model, 2, seed=seed, max_steps=5, planned_episodes=4) for one in (agent, loaded)]
    np.testing.assert_array_equal(runs[0].scalarized_return, runs[1].scalarized_return)
    np.testing.assert_array_equal(runs[0].measurements, runs[1].measurements)
    assert loaded.model() == agent.model()


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The arrays of a file of an agent with several measurements, and what it says about itself."""
    path = tmp_path_factory.mktemp("agents") / "agent.npz"
    agent = am.agents.make("acno-pomcp", **SMALL)
    am.train(agent, am.problems.inspection().replace(passive=am.Measurement.partial("alarm", shows=[*"aabbb"])), 2)
    agent.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("about").tobytes()), arrays


def written(about, arrays, path):
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(path, about=text, **arrays)
    return path


@pytest.mark.parametrize(
    ("array", "change", "message"),
    [
        ("hidden_times", lambda x: -1 - x, "contradict each other"),
        ("hidden_times", lambda x: x[:-1], r"expected \(3, 5, 6\)"),
        ("hidden_times", lambda x: x * np.nan, "NaN"),
        ("hidden_products", lambda x: 10 * np.ones_like(x) - 10 * np.eye(5), "contradict each other"),
        ("hidden_sums", lambda x: x.T.copy(), "'hidden_sums' has shape"),
        ("hidden_rewards", lambda x: np.ones(2), "contradict each other"),
        ("hidden_episodes", lambda x: x - 100, "contradict each other"),
        ("hidden_episodes", lambda x: None, "has no 'hidden_episodes'"),
        ("law_probabilities", lambda x: x / 2, "sum to 0.5"),
        ("law_outcomes", lambda x: x + 1, "an outcome is not a number"),
        ("allowed", lambda x: x[:, :2], "'allowed' has shape"),
        ("allowed", lambda x: None, "has no 'allowed'"),
    ],
)
def test_damaged_files_are_named(contents, array, change, message, tmp_path):
    about, arrays = contents
    changed = arrays | {array: change(arrays[array])}
    path = written(about, {name: values for name, values in changed.items() if values is not None}, tmp_path / "a.npz")
    with pytest.raises(am.AgentError, match=message):
        am.agents.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "atmq"}, "unknown key|no 'q'|'hidden_times'"),
        ({"measurements": None}, "do not tell of the same measurements"),
        ({"passive": None}, "'law_offsets' has shape"),
        ({"measurements": []}, "'allowed' has shape"),
        ({"measurements": 1}, "expected a list"),
        ({"n_states": 4}, "has shape|not for"),
    ],
)
def test_a_file_that_tells_something_else_is_refused(contents, changes, message, tmp_path):
    about, arrays = contents
    with pytest.raises(am.AgentError, match=message):
        am.agents.load(written(about | changes, arrays, tmp_path / "a.npz"))


def test_it_goes_on_with_the_same_instruments_only(tmp_path):
    agent = am.agents.make("acno-pomcp", **SMALL)
    am.train(agent, fatigue(), 1, max_steps=5)
    for one in (agent, saved(agent, tmp_path / "agent.npz")):
        look = fatigue().measurements[0]
        other = fatigue().replace(measurements=[am.Measurement.detection(look.name, look.cost, pod=[0.3, 0.6, 0.9])])
        with pytest.raises(am.AgentError, match="what measurements show is not what the agent was trained with"):
            am.train(one, other, 1, max_steps=5)
        am.train(one, fatigue(), 1, max_steps=5)
