"""TabularEnv: the contract, the model's chances and costs, and exactly which random numbers are drawn."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random
from rollouts import rollout
from scipy import stats

import actmeasure as am
from actmeasure.envs import TabularEnv
from actmeasure.kernels.streams import pick


def random_model(seed=0, n_states=5, n_actions=3, successors=3, ends=True, **settings):
    """A model with random chances, rewards per transition, costs per state and action, and a random start."""
    generator = np.random.default_rng(seed)
    P = np.zeros((n_states, n_actions, n_states))
    for state in range(n_states):
        for action in range(n_actions):
            chosen = generator.choice(n_states, successors, replace=False)
            P[state, action, chosen] = generator.dirichlet(np.ones(successors))
    initial = np.where(np.arange(n_states) == n_states - 1, 0.0, 1.0)
    defaults = {
        "R": generator.normal(size=P.shape) * (np.arange(n_states) < n_states - ends)[:, None, None],
        "measuring_cost": generator.random((n_states, n_actions)),
        "initial": initial / initial.sum(),
        "terminal": np.arange(n_states) == n_states - 1 if ends else None,
    }
    return am.Model.from_arrays(P, **(defaults | settings))


def test_spaces_and_attributes():
    model = random_model()
    env = TabularEnv(model)
    assert env.model is model
    assert env.measuring_cost is model.measuring_cost
    assert env.action_space == gymnasium.spaces.MultiDiscrete([3, 2])
    assert env.observation_space == gymnasium.spaces.Discrete(6)


@pytest.mark.parametrize("successors", [3, 20])  # short rows are chosen from in Python, long ones by the kernel
def test_draws_are_the_ones_agreed_on(successors):
    model = random_model(seed=1, n_states=25, successors=successors)
    env = TabularEnv(model, max_steps=10**6)
    table, (generator, _) = model.transitions, np_random(11)
    offsets = np.array([0, len(model.initial_states)])

    def begin():
        return model.initial_states[pick(offsets, model.initial_probabilities, 0, generator.random())]

    state = begin()
    assert env.reset(seed=11)[0] == state
    for action in np.random.default_rng(2).integers([3, 2], size=(2000, 2)):
        entry = pick(table.offsets, table.probabilities, state * 3 + action[0], generator.random())
        cost = model.measuring_cost[state, action[0]] if action[1] else 0.0
        state = table.successors[entry]
        observation, reward, terminated, _, info = env.step(action)
        assert observation == (state if action[1] else 25)
        assert info == {
            "reward": model.transition_rewards[entry],
            "measuring_cost": cost,
            "measured": bool(action[1]),
        }
        assert reward == model.transition_rewards[entry] - cost
        assert terminated == model.terminal[state]
        if terminated:
            state = begin()
            assert env.reset()[0] == state


def test_one_initial_state_draws_nothing():
    env = TabularEnv(am.problems.measuring_value())
    env.reset(seed=3)
    assert env.np_random.random() == np_random(3)[0].random()


def test_a_given_generator_is_used():
    env = TabularEnv(random_model(), max_steps=10**6)
    runs = []
    for _ in range(2):
        env.np_random = np.random.default_rng(4)
        runs.append(rollout(env, [[0, 1]] * 20, seed=None))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("successors", [3, 12])
def test_frequencies_agree_with_the_model(successors):
    model = random_model(seed=2, n_states=12, successors=successors, ends=False, initial=0)
    env = TabularEnv(model, max_steps=10**9)
    counts = np.zeros((12, 3, 12))
    state, _ = env.reset(seed=5)
    for control in np.random.default_rng(6).integers(3, size=40_000).tolist():
        successor = env.step((control, 1))[0]
        counts[state, control, successor] += 1
        state = successor
    expected = counts.sum(axis=2, keepdims=True) * model.transitions.dense()
    assert not counts[expected == 0].any()
    usual = expected > 5
    statistic = ((counts - expected)[usual] ** 2 / expected[usual]).sum()
    assert stats.chi2.sf(statistic, usual.sum() - 36) > 1e-3


def test_start_frequencies_agree_with_the_model():
    model = random_model(initial=[0.1, 0.2, 0.3, 0.4, 0.0])
    env = TabularEnv(model)
    env.reset(seed=0)
    starts = np.bincount([env.reset()[0] for _ in range(5000)], minlength=5)
    assert starts[4] == 0
    assert stats.chisquare(starts[:4], 5000 * np.array([0.1, 0.2, 0.3, 0.4])).pvalue > 1e-3


def test_rewards_of_state_and_action():
    R = np.arange(15.0).reshape(5, 3)
    R[4] = 0.0
    model = random_model(R=R, measuring_cost=0.5)
    env = TabularEnv(model, max_steps=10**6)
    state, _ = env.reset(seed=0)
    for control in (0, 1, 2):
        successor, reward, terminated, _, info = env.step(np.array([control, 1]))
        assert info["reward"] == 3 * state + control
        assert reward == 3 * state + control - 0.5
        state = env.reset()[0] if terminated else successor


def test_start_hidden_by_the_model_or_by_the_environment():
    shown, hidden = random_model(), random_model(reveal_start=False)
    assert TabularEnv(shown).reset(seed=0)[1]["measured"] is True
    for env in (TabularEnv(hidden), TabularEnv(shown, reveal_start=False)):
        assert env.model.reveal_start is False
        assert env.reset(seed=0) == (5, {"reward": 0.0, "measuring_cost": 0.0, "measured": False})
    assert TabularEnv(hidden, reveal_start=True).reset(seed=0)[0] < 5


def test_hiding_the_start_changes_no_draws():
    model = random_model()
    runs = [rollout(TabularEnv(model, reveal_start=shown), [[1, 1]] * 30, 0) for shown in (True, False)]
    assert [step for step in runs[0] if len(step) == 5] == [step for step in runs[1] if len(step) == 5]


def test_seeding_is_reproducible():
    env = TabularEnv(random_model())
    actions = np.random.default_rng(0).integers([3, 2], size=(200, 2))
    assert rollout(env, actions, 7) == rollout(env, actions, 7)
    assert rollout(env, actions, 7) != rollout(env, actions, 8)


def test_max_steps_truncates():
    env = TabularEnv(random_model(ends=False), max_steps=3)
    for _ in range(2):
        env.reset()
        assert [env.step([0, 0])[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_an_end_with_the_last_step_is_no_truncation():
    env = TabularEnv(am.problems.measuring_value(), max_steps=2)
    env.reset()
    assert [env.step([1, 0])[2:4] for _ in range(2)] == [(False, False), (True, False)]


def test_a_step_after_the_end_stays_there():
    env = TabularEnv(am.problems.measuring_value(measuring_cost=0.3))
    env.reset(seed=0)
    env.step([1, 0])
    assert env.step([1, 0])[2] is True
    assert env.step([1, 1])[:4] == (3, 0.0, True, False)
    assert env.step([0, 0])[:4] == (4, 0.0, True, False)
    assert env.reset()[0] == 0


def test_before_reset():
    env = TabularEnv(random_model(), render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step([0, 0])
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.render()


@pytest.mark.parametrize("action", [(1, True), [1, np.True_], np.array([1, 1], dtype=np.int8), am.Decision(1, True)])
def test_actions_in_many_forms(action):
    env = TabularEnv(random_model())
    env.reset(seed=0)
    assert env.step(action)[4]["measured"] is True


@pytest.mark.parametrize(
    "action", [3, [3, 0], [-1, 0], [0, 2], [0, -1], [0], [0, 1, 1], [0.5, 0], None, "ab", np.array([[0, 1]]), [0, [1]]]
)
def test_bad_action(action):
    env = TabularEnv(random_model())
    env.reset(seed=0)
    with pytest.raises(am.SpaceError, match=r"the action is .*, expected \[control, look\] with a control from 0 to 2"):
        env.step(action)


def test_bad_settings():
    with pytest.raises(am.ModelError, match="expected a Model"):
        TabularEnv("frozen-lake")
    with pytest.raises(am.ModelError, match="max_steps is 0"):
        TabularEnv(random_model(), max_steps=0)
    with pytest.raises(am.SpaceError, match="unknown render mode 'ansy'; did you mean 'ansi'"):
        TabularEnv(random_model(), render_mode="ansy")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_a_copy_goes_on_alike(duplicate, render_mode):
    env = TabularEnv(random_model(ends=False), render_mode=render_mode)
    env.reset(seed=0)
    env.step([0, 0])
    twin = duplicate(env)
    actions = np.random.default_rng(0).integers([3, 2], size=(50, 2))
    assert [env.step(action) for action in actions] == [twin.step(action) for action in actions]


def test_the_wrapper_and_the_tabular_environment_agree():
    """Gymnasium's slippery CliffWalking, wrapped, and its table as a model earn the same."""
    base = gymnasium.make("CliffWalking-v1", is_slippery=True)
    wrapped = am.ActiveMeasuring(base, measuring_cost=0.2, max_steps=50)
    tabular = TabularEnv(am.Model.from_gymnasium(base, measuring_cost=0.2), max_steps=50)
    returns = []
    for seed, env in enumerate((wrapped, tabular)):
        env.reset(seed=seed)
        generator = np.random.default_rng(seed)
        returns.append([episode_return(env, generator) for _ in range(200)])
    assert stats.ks_2samp(*returns).pvalue > 1e-3


def episode_return(env, generator):
    env.reset()
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, _ = env.step(generator.integers([4, 2]))
        total += reward
        over = terminated or truncated
    return total
