"""AMRL-Q: each update compared with the dense reference, and what it does with chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_learners import ReferenceAmrl
from scipy import stats

import actmeasure as am
from actmeasure.kernels import amrl_q

EVENTS = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 4),
        st.sampled_from([0.0, -1.0, 0.25, 1.0]),
        st.sampled_from([False] * 5 + [True]),
    ),
    min_size=1,
    max_size=60,
)


def prepared(model, **settings):
    agent = am.agents.make("amrl-q", **settings)
    agent.prepare(am.agents.Task.of_model(model, 100))
    agent.reseed(0, 0)
    return agent


def world(n_states, n_actions, costs):
    """Of the right sizes; its dynamics are not asked."""
    P = np.repeat(np.eye(n_states)[:, None], n_actions, axis=1)
    return am.Model.from_arrays(P, np.zeros((n_states, n_actions)), measuring_cost=costs, discount=0.9)


@given(
    st.integers(1, 5), st.integers(1, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 10**6), EVENTS
)
@settings(max_examples=150)
def test_both_looks_learn_from_the_state_seen_or_the_likeliest(
    n_states, n_actions, own_costs, random_decisions, seed, events
):
    rng = np.random.default_rng(seed)
    costs = rng.random((n_states, n_actions)) if own_costs else 0.25
    agent = prepared(world(n_states, n_actions, costs), learning_rate=0.3, random_decisions=random_decisions)
    agent.reseed(seed, 0)
    dense = np.broadcast_to(np.asarray(costs), (n_states, n_actions))
    dense = np.vstack([dense, np.full(n_actions, dense.mean())])
    reference = ReferenceAmrl(n_states, n_actions, dense, 0.9, 0.3, 0.1)
    believed = 0
    agent.begin(believed)
    for look_shows, successor, reward, ends in events:
        action, measure = agent.decide()
        if random_decisions == 0:
            assert (action, int(measure)) in reference.best(believed)
        seen = successor % n_states if measure and look_shows else None
        agent.observe(reward, 0.0, seen, ends, False)
        following = reference.end if ends else seen
        if seen is not None:
            reference.count(believed, action, following)
        elif not ends:
            following = int(agent._tables.memory[amrl_q.BELIEVED])
            assert following in reference.likeliest(believed, action)
        reference.learn(believed, action, reward, following, ends)
        reference_table = reference.Q[:n_states]
        assert abs(agent.q_values() - reference_table).max() <= 1e-12 * (1 + abs(reference_table).max())
        assert abs(agent._tables.values - reference.Q.ravel()).max() <= 1e-12 * (1 + abs(reference.Q).max())
        assert agent.counts.measured.tolist() == reference.counts.sum(axis=2).ravel().tolist()
        believed = following
        assert agent._tables.memory[amrl_q.BELIEVED] == believed
        assert agent.belief().is_over == (believed == n_states)
        if ends:
            believed = successor % n_states
            agent.begin(believed)


@pytest.mark.parametrize("variant", ["deterministic", "semi-slippery"])
def test_looking_is_always_worth_less_once_its_bias_is_unlearned(variant):
    """Both looks aim at the same but for the cost c, so that after n updates they differ by (beta + c) (1 - alpha)^n - c."""
    cost, rate, bias = 0.05, 0.1, 0.1
    agent = am.agents.make("amrl-q", learning_rate=rate, measuring_bias=bias)
    am.train(agent, am.problems.frozen_lake(4, variant=variant, measuring_cost=cost), episodes=1000, seed=9)
    blind, looking = np.moveaxis(agent.q_values(), 2, 0)
    lead = looking - blind + cost
    updates = np.log(np.maximum(lead, 1e-14) / (bias + cost)) / np.log(1 - rate)
    exact = lead > 1e-9
    assert abs(updates - updates.round())[exact].max() < 1e-3
    assert (updates[exact] > -0.5).all()
    assert (looking < blind)[updates > 10.5].all()
    assert np.count_nonzero(updates > 10.5) > 10


def test_exploration_takes_any_pair():
    agent = prepared(am.problems.frozen_lake(4), random_decisions=1.0)
    agent.begin(0)
    drawn = np.zeros((4, 2))
    for _ in range(8000):
        action, measure = agent.decide()
        drawn[action, int(measure)] += 1
    assert stats.chisquare(drawn.ravel()).pvalue > 1e-6


def test_ties_are_broken_at_random_and_looking_comes_first():
    agent = prepared(am.problems.frozen_lake(4), random_decisions=0.0)
    agent.begin(0)
    drawn = np.zeros((4, 2))
    for _ in range(4000):
        action, measure = agent.decide()
        drawn[action, int(measure)] += 1
    assert drawn[:, 0].sum() == 0
    assert stats.chisquare(drawn[:, 1]).pvalue > 1e-6


@pytest.mark.parametrize(
    ("share", "planned", "exploring"), [(0.9, 100, 90), (0.9, 10, 9), (0, 10, 0), (1, 7, 7), (0.5, 3, 2)]
)
def test_it_explores_for_a_share_of_the_planned_episodes(share, planned, exploring):
    agent = am.agents.make("amrl-q", exploring_share=share)
    agent.prepare(am.agents.Task.of_model(am.problems.measuring_value(), planned))
    assert agent._parameters.exploring_episodes == exploring


def test_exploration_stops_where_it_should():
    """With exploration at every step half of all steps look; greedily, none does in the end."""
    model = am.problems.frozen_lake(4, variant="deterministic")
    agent = am.agents.make("amrl-q", random_decisions=1.0)
    episodes = am.train(agent, model, episodes=1000, seed=1, max_steps=100)
    looks = episodes.measurements[:900].sum() / episodes.steps[:900].sum()
    assert 0.45 < looks < 0.55
    assert episodes.measurements[-50:].sum() == 0
    fresh = am.train(am.agents.make("amrl-q", random_decisions=1.0), model, episodes=1000, seed=2, max_steps=100)
    assert fresh.measurements[:900].sum() > 1000, "every run explores anew"


def test_of_an_unknown_number_all_episodes_explore():
    agent = am.agents.make("amrl-q")
    task = am.agents.Task.of_model(am.problems.measuring_value(), None)
    agent.prepare(task)
    assert agent._parameters.exploring_episodes > 10**15
    huge = am.agents.make("amrl-q")
    am.train(huge, am.problems.measuring_value(), episodes=2, planned_episodes=10**30)
    assert huge.episodes_done == 2


def test_hidden_starts():
    """It believes in the likeliest start; of an unknown one, in any."""
    lake = am.problems.frozen_lake(4)
    agent = prepared(lake.replace(initial=np.eye(16)[0] * 0.4 + np.eye(16)[8] * 0.6, reveal_start=False))
    agent.begin(None)
    assert agent.belief().known == 8
    lost = am.agents.make("amrl-q")
    lost.prepare(am.agents.Task(16, 4, 0.05, 0.95, None, False, None, None))
    lost.reseed(0, 0)
    drawn = np.zeros(16)
    for _ in range(3200):
        lost.begin(None)
        drawn[lost.belief().known] += 1
    assert stats.chisquare(drawn).pvalue > 1e-6
