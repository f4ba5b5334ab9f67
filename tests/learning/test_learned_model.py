"""What an agent has learned of the dynamics, as a model that can be solved; its tables and its belief."""

import gymnasium
import numpy as np
import pytest
from scipy import stats

import actmeasure as am

LEARNERS = ("atmq", "dyna-atmq", "amrl-q")


def explored(model, episodes=300, **settings):
    """An agent that looks at every step, begins anywhere and finds all actions as good as untried for long."""
    agent = am.agents.make(
        "atmq", **{"exploratory_measurements": 10**9, "optimism": 10**6, "learning_rate": 0.0} | settings
    )
    anywhere = np.where(model.terminal, 0.0, 1.0) / np.count_nonzero(~model.terminal)
    am.train(agent, model.replace(initial=anywhere), episodes=episodes, seed=4, max_steps=100)
    return agent


@pytest.fixture(scope="module")
def lake():
    return am.problems.frozen_lake(4, variant="semi-slippery", measuring_cost=0.05)


@pytest.fixture(scope="module")
def agent(lake):
    return explored(lake, episodes=5000)


def merged(model):
    """Chances and rewards of a model whose terminal states are one, the last; shapes (S, A, S + 1) and (S, A)."""
    P = np.stack([model.transitions.matrix(a).toarray() for a in range(model.n_actions)], axis=1)
    together = np.zeros((model.n_states, model.n_actions, model.n_states + 1))
    together[:, :, :-1][:, :, ~model.terminal] = P[:, :, ~model.terminal]
    together[:, :, -1] = P[:, :, model.terminal].sum(axis=2)
    return together, model.rewards


def test_chances_are_within_sampling_error(lake, agent):
    """The largest of all z-scores is no larger than that of as many normal numbers, but for one case in 10,000."""
    learned, (truth, rewards) = agent.model(), merged(lake)
    found = np.stack([learned.transitions.matrix(a).toarray() for a in range(4)], axis=1)
    times = agent.counts.measured.reshape(16, 4)
    running = ~lake.terminal
    assert times[running].min() > 50
    z, number = [], 0
    for state in np.flatnonzero(running):
        for action in range(4):
            p, q, n = truth[state, action], found[state, action], times[state, action]
            assert (q[p == 0] == 0).all(), "a transition that cannot happen"
            assert (q[p == 1] == 1).all()
            chance = (p > 0) & (p < 1)
            z.extend((q - p)[chance] / np.sqrt(p * (1 - p) / n)[chance])
            number += chance.sum()
            pays = rewards[state, action]
            if pays in (0.0, 1.0):
                assert learned.rewards[state, action] == pays
            else:
                assert abs(learned.rewards[state, action] - pays) <= 6 * np.sqrt(pays * (1 - pays) / n)
    assert number > 20
    assert np.abs(z).max() <= stats.norm.isf(1e-4 / number / 2)
    assert 0.5 < np.std(z) < 1.6


def test_it_can_be_solved_and_its_schedule_is_almost_as_good_as_the_best(lake, agent):
    planned, best = am.solve(agent.model().replace(initial=0)), am.solve(lake)
    assert abs(planned.value - best.value) < 0.03
    assert planned.upper - planned.lower <= 1e-6
    plans = {s: planned.schedule[s] for s in np.flatnonzero(~lake.terminal).tolist() if s in planned.schedule}
    earned = am.evaluate(lake, am.Schedule(plans, 16), horizon=200)
    assert earned.discounted_return > best.value - 0.02


def test_what_was_never_tried_changes_nothing(lake):
    agent = am.agents.make("atmq")
    am.train(agent, lake, episodes=3, seed=1, max_steps=10)
    learned = agent.model()
    times = agent.counts.measured.reshape(16, 4)
    assert (times == 0).any()
    assert (times > 0).any()
    for state, action in np.argwhere(times == 0):
        successors, chances = learned.transitions.row(int(state), int(action))
        assert (successors.tolist(), chances.tolist()) == ([state], [1.0])
        assert learned.rewards[state, action] == 0.0
    assert learned.n_states == 17
    assert learned.terminal.tolist() == [False] * 16 + [True]
    am.testing.check_model(learned)


def test_untried_actions_pay_the_smallest_reward_seen():
    model = am.Model.from_arrays(np.eye(2)[:, None].repeat(2, axis=1), [[-3.0, -2.0], [-1.0, -1.0]], measuring_cost=0.5)
    agent = am.agents.make("atmq", largest_reward=0.0)
    am.train(agent, model, episodes=1, max_steps=1)
    tried = agent.counts.measured.reshape(2, 2) > 0
    assert tried.sum() == 1
    rewards = agent.model().rewards[:2]
    assert (rewards == rewards[tried]).all()
    assert rewards[tried][0] in (-3.0, -2.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_costs_starts_and_discount_are_taken_over(name, lake):
    costs = np.random.default_rng(0).random((16, 4))
    world = lake.replace(
        measuring_cost=costs, discount=0.8, initial=np.eye(16)[[0, 4]].mean(axis=0), reveal_start=False
    )
    agent = am.agents.make(name)
    am.train(agent, world, episodes=20, max_steps=20)
    learned = agent.model()
    assert learned.discount == 0.8
    assert learned.reveal_start is False
    assert learned.initial_states.tolist() == [0, 4]
    running = ~lake.terminal
    assert learned.measuring_costs[:16][running].tolist() == costs[running].tolist()
    am.testing.check_model(learned)
    assert am.solve(learned, method="never").value <= am.solve(learned).value + 1e-6


@pytest.mark.parametrize("name", LEARNERS)
def test_tables_and_beliefs(name, lake):
    agent = am.agents.make(name)
    shape = (16, 4, 2) if name == "amrl-q" else (16, 4)
    for episodes in range(1, 60):
        am.train(agent, lake, episodes=1, seed=2, max_steps=episodes % 7 + 1, planned_episodes=59)
        belief = agent.belief()
        assert belief.is_over or belief.probabilities.sum() == pytest.approx(1.0)
        assert (np.diff(belief.states) > 0).all()
    values = agent.q_values()
    assert values.shape == shape
    values[:] = 7.0
    assert (agent.q_values() != 7.0).all(), "what is given out is a copy"


def test_values_of_the_deterministic_lake_are_exact():
    """Where nothing is left to chance, the values of the best path are powers of the discount."""
    model = am.problems.frozen_lake(4, variant="deterministic", discount=0.9)
    agent = am.agents.make("dyna-atmq")
    am.train(agent, model, episodes=1000, seed=0)
    path = np.maximum.reduce(agent.q_values(), axis=1)
    assert path[0] == pytest.approx(0.9**5, abs=1e-3)
    assert path[14] == pytest.approx(1.0, abs=1e-3)


def test_starts_of_an_environment_are_counted():
    env = am.ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01)
    agent = am.agents.make("atmq")
    am.train(agent, env, episodes=30, seed=0, max_steps=5)
    assert sum(agent.starts.values()) == 30
    learned = agent.model()
    assert learned.n_states == 501
    assert learned.initial_states.tolist() == sorted(agent.starts)
    assert learned.initial_probabilities.sum() == pytest.approx(1.0)
    assert len(am.solve(learned, method="always").schedule) > 0


def test_without_discount_what_was_never_measured_ends_the_episode():
    lake = am.problems.frozen_lake(4, measuring_cost=0.05, discount=1.0)
    agent = am.agents.make("dyna-atmq")
    am.train(agent, lake, 500)
    assert am.solve(agent.model(discount=0.99), tolerance=1e-3).value > 0.8
    assert am.solve(agent.model(), "atm").value > 0.8


def test_a_start_that_nobody_knows_can_be_given():
    env = am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.01, reveal_start=False)
    agent = am.agents.make("atmq")
    am.train(agent, env, 5, max_steps=50)
    with pytest.raises(am.AgentError, match="initial="):
        agent.model()
    assert agent.model(initial=36).initial_states.tolist() == [36]
