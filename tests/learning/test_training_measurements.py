"""Agents on models with any measurements: the compiled loop and the environment agree, and learners say what they need."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, general_models

import actmeasure as am
from actmeasure.envs import TabularEnv
from actmeasure.kernel_arrays import measured_world
from actmeasure.kernels import streams
from actmeasure.kernels.simulate import first_state, measured_step


def assert_same(one, other):
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name], err_msg=name)
    np.testing.assert_array_equal(one.looks, other.looks)


class Follower:
    """Decides by the belief and a counter, and keeps what it was given."""

    def __init__(self, model):
        self.model, self.log = model, []

    def start(self, belief):
        self.belief, self.count = belief, 0

    def decide(self):
        likeliest = int(self.belief.states[self.belief.probabilities.argmax()])
        action = (likeliest + self.count // 3) % self.model.n_actions
        chosen = (self.count + likeliest) % (1 + len(self.model.measurements))
        self.decision = am.Decision(action, chosen if self.model.allowed_decisions[action, chosen] else 0)
        return self.decision

    def observe(self, outcome):
        self.log.append((self.decision, outcome))
        self.belief = self.belief.update(self.model, *self.decision, outcome)  # raises where the outcome is impossible
        self.count += 1


def compiled_episode(model, policy, seed, episode, max_steps):
    """Play an episode with the kernels that simulate any measurements."""
    world, stream = measured_world(model), streams.make_stream()
    streams.seed_stream(stream, streams.entropy_words(seed), episode, streams.WORLD)
    state = int(first_state(world.world, stream))
    policy.start(am.Belief.at(state) if model.reveal_start else am.Belief.start(model))
    total, looks, steps, ended = 0.0, np.zeros(len(model.measurements), dtype=int), 0, False
    while steps < max_steps and not ended:
        action, measurement = policy.decide()
        state, reward, cost, made, outcome, ended = measured_step(world, state, action, measurement, stream)
        total, steps = total + (reward - cost), steps + 1
        if made:
            looks[made - 1] += 1
        if not ended:
            policy.observe(None if outcome < 0 else outcome)
    return total, looks, steps, ended


@examples(30)
@given(general_models(), st.integers(0, 1000))
def test_a_policy_plays_the_same_episodes_compiled_and_on_the_environment(model, seed):
    episodes, max_steps = 4, 15
    inside, outside = Follower(model), Follower(model)
    run = am.train(am.agents.PolicyAgent(inside, model), model, episodes, seed=seed, max_steps=max_steps)
    for episode in range(episodes):
        total, looks, steps, ended = compiled_episode(model, outside, seed, episode, max_steps)
        assert run.scalarized_return[episode] == total
        assert run.looks[episode].tolist() == looks.tolist()
        assert (run.measurements[episode], run.steps[episode], run.terminated[episode]) == (looks.sum(), steps, ended)
    assert inside.log == outside.log
    env = gymnasium.wrappers.OrderEnforcing(TabularEnv(model, max_steps=max_steps))
    assert_same(
        run, am.train(am.agents.PolicyAgent(Follower(model), model), env, episodes, seed=seed, max_steps=max_steps)
    )


@examples(30)
@given(general_models(), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 1.0]))
def test_random_decisions_compiled_and_on_the_environment(model, seed, chance):
    runs = [
        am.train(am.agents.make("random", measure_probability=chance), world, 5, seed=seed, max_steps=20)
        for world in (model, TabularEnv(model, max_steps=20))
    ]
    assert_same(*runs)
    assert runs[0].looks.shape == (5, len(model.measurements))
    assert runs[0].looks.sum(axis=1).tolist() == runs[0].measurements.tolist()


def test_random_agents_choose_each_measurement_as_often():
    run = am.train(
        am.agents.make("random", measure_probability=0.6), am.problems.inspection(), 20, seed=0, max_steps=1000
    )
    shares = run.looks.sum(axis=0) / run.steps.sum()
    np.testing.assert_allclose(shares, [0.2, 0.2, 0.2 * 2 / 3], atol=0.015)  # an opening goes not with a replacement
    parts = am.Episodes.empty(20, 3)
    parts.fill(0, run.first(7))
    parts.fill(7, run.part(7, 20))
    assert_same(run, parts)


def test_the_task_tells_measurements_and_outcomes():
    task = am.agents.Task.of_model(am.problems.inspection())
    assert (task.n_measurements, task.outcomes, task.measuring_cost) == (3, (0, 2, 5, 5), (0.5, 1.5, 4.0))
    assert task.looks_are_exact is False
    exact = am.agents.Task.of_model(am.problems.chain(4))
    assert (exact.n_measurements, exact.outcomes, exact.looks_are_exact) == (1, (0, 5), True)
    assert am.agents.Task(5, 2, 0.1, 0.95, None, True, None, None).outcomes == (0, 5)


@pytest.mark.parametrize("name", ["atmq", "dyna-atmq", "amrl-q", "foresight", "acno-otp"])
def test_tabular_learners_say_that_they_need_exact_looks(name):
    model = am.problems.inspection()
    said = f"the agent '{name}' needs one exact measurement .* and this model has 3; use the agent 'acno-pomcp'"
    for world in (model, gymnasium.make("actmeasure/Inspection-v0")):
        with pytest.raises(am.ModelError, match=said):
            am.train(am.agents.make(name), world, 2)
    with pytest.raises(am.ModelError, match=said):
        am.train_seeds(name, model, 2, seeds=2)
    limited = am.problems.chain(4).replace(measurements=[am.Measurement.exact("look", 0.1, with_actions=[0])])
    with pytest.raises(am.ModelError, match="cannot be made with every action"):
        am.train(am.agents.make(name), limited, 2)


def test_schedules_are_refused():
    schedule = am.Schedule({0: am.BlindPlan((0,), then="measure")}, 5)
    with pytest.raises(am.ModelError, match="the agent 'ScheduleAgent' needs one exact measurement"):
        am.agents.make("schedule", schedule=schedule, model=am.problems.inspection())


def test_a_policy_for_other_measurements_is_refused():
    model = am.problems.inspection()
    other = model.replace(measurements=model.measurements[:2])
    with pytest.raises(am.AgentError, match=r"for other measurements, whose numbers of outcomes are \(0, 2, 5\)"):
        am.train(am.agents.PolicyAgent(Follower(other), other), model, 2)
    agent = am.agents.PolicyAgent(Follower(model), model)
    am.train(agent, model, 2, max_steps=5)
    with pytest.raises(am.AgentError, match="the agent was trained with other measurements"):
        am.train(agent, other, 2)


def test_decisions_are_checked():
    class Wrong(Follower):
        def decide(self):
            return am.Decision(0, 4)

    model = am.problems.inspection()
    with pytest.raises(am.AgentError, match=r"a measurement from 0 \(none\) to 3"):
        am.train(am.agents.PolicyAgent(Wrong(model), model), model, 1)


def test_a_wrapper_that_changes_the_spaces_is_refused():
    class Halved(gymnasium.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gymnasium.spaces.Discrete(7)

        def observation(self, observation):
            return observation // 2

    with pytest.raises(am.SpaceError, match="were changed by a wrapper"):
        am.train(am.agents.make("random"), Halved(gymnasium.make("actmeasure/Inspection-v0")), 1)


def test_many_seeds_count_each_measurement():
    runs = am.train_seeds("random", am.problems.inspection(), 6, seeds=2, max_steps=10, workers=1)
    for seed, episodes in zip(runs.seeds, runs.episodes, strict=True):
        assert_same(episodes, am.train(am.agents.make("random"), am.problems.inspection(), 6, seed=seed, max_steps=10))
    assert "looks" not in runs.columns()
    assert list(runs.columns()) == [
        "seed",
        "episode",
        "scalarized_return",
        "reward",
        "measurements",
        "steps",
        "terminated",
    ]


def test_policies_are_checked_on_such_models():
    model = am.problems.inspection()
    am.testing.check_policy(Follower(model), model, episodes=3)
