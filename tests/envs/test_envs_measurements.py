"""Environments of models with any measurements: spaces, outcomes, prices, draws, and Gymnasium's contract."""

import copy
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random
from hypothesis import given
from hypothesis import strategies as st
from rollouts import rollout
from scipy import stats
from strategies import examples, general_models

import actmeasure as am
from actmeasure.envs import TabularEnv
from actmeasure.envs.tabular import SHOWN_START
from actmeasure.kernels.streams import pick

P = np.array(
    [[[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]], [[0.0, 0.6, 0.4], [0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]
)
R = np.array([[0.0, -2.0], [-1.0, -2.0], [-5.0, -2.0]])
SOUND = am.Measurement.noisy("sound", 0.3, probabilities=[[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], with_actions=[0])
OPENING = am.Measurement.exact("opening", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ALARM = am.Measurement.detection("alarm", pod=[0.0, 0.1, 0.7], outcomes=("silent", "alarm"))


def machine(**settings):
    defaults = {"measurements": [SOUND, OPENING], "passive": ALARM, "initial": [0.5, 0.5, 0.0]}
    return am.Model.from_arrays(P, R, **(defaults | settings))


def random_actions(env, count, seed=0):
    return np.random.default_rng(seed).integers(env.action_space.nvec, size=(count, 2))


def test_observations_are_numbered_as_documented():
    env = TabularEnv(machine())
    assert env.action_space == gymnasium.spaces.MultiDiscrete([2, 3])
    assert env.observation_space == gymnasium.spaces.Discrete(2 + 3 + 2 + 1)
    meanings = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (0, 0), (0, 1), (0, None)]
    assert [env.outcome(number) for number in range(8)] == meanings
    assert [env.observation(*meaning) for meaning in meanings] == list(range(8))
    assert env.numbering.counts == (2, 2, 3)
    shown = TabularEnv(machine(), reveal_start=True)
    assert shown.observation_space.n == 11
    starts = [(SHOWN_START, state) for state in range(3)]
    assert [shown.outcome(number) for number in range(7, 11)] == [*starts, (0, None)]
    assert [shown.observation(*start) for start in starts] == [7, 8, 9]
    with pytest.raises(am.SpaceError, match="the observation is 8, expected a whole number from 0 to 7"):
        env.outcome(8)


def test_one_exact_measurement_has_the_observations_of_before():
    for limited in (None, [0]):
        looks = [am.Measurement.exact("look", 0.5, with_actions=limited)]
        env = TabularEnv(machine(measurements=looks, passive=None))
        assert env.observation_space == gymnasium.spaces.Discrete(4)
        assert [env.outcome(number) for number in range(4)] == [(1, 0), (1, 1), (1, 2), (0, None)]
        assert set(env.reset(seed=0)[1]) == {"reward", "measuring_cost", "measured"}
        observation, reward, *_, info = env.step([1, 1])
        assert (observation == 3, info["measured"], reward) == ((True, False, -2.0) if limited else (False, True, -2.5))


@pytest.mark.parametrize("reveal_start", [True, False])
def test_draws_are_the_ones_agreed_on(reveal_start):
    """One number for the transition, a second one only for the outcome of a law."""
    model = machine(reveal_start=reveal_start)
    env, (generator, _) = TabularEnv(model, max_steps=10**6), np_random(5)
    table = model.transitions
    state = int(generator.random() >= 0.5)
    observation, info = env.reset(seed=5)
    assert env.outcome(observation) == ((SHOWN_START, state) if reveal_start else (0, None))
    assert info == {
        "reward": 0.0, "measuring_cost": 0.0, "measured": reveal_start, "measurement": 0,
        "outcome": state if reveal_start else -1,
    }  # fmt: skip
    laws = {0: ALARM.bound(model._sizes()).law, 1: model.measurements[0].law}
    for control, chosen in random_actions(env, 1000).tolist():
        made = 0 if (control, chosen) == (1, 1) else chosen
        cost = {0: 0.0, 1: 0.3, 2: OPENING.cost[state, control]}[made]
        paid = R[state, control]
        entry = pick(table.offsets, table.probabilities, state * 2 + control, generator.random())
        state = int(table.successors[entry])
        outcome = state
        if made != 2:
            law = laws[made]
            outcome = int(law.outcomes[pick(law.offsets, law.probabilities, state, generator.random())])
        observation, reward, terminated, truncated, info = env.step([control, chosen])
        assert env.outcome(observation) == (made, outcome)
        assert (reward, terminated, truncated) == (paid - cost, False, False)
        assert info == {
            "reward": paid, "measuring_cost": cost, "measured": made > 0, "measurement": made, "outcome": outcome
        }  # fmt: skip


@pytest.mark.parametrize("n_outcomes", [3, 40])  # short rows are chosen from in Python, long ones by the kernel
@pytest.mark.parametrize("by_action", [False, True])
def test_frequencies_of_outcomes_are_those_of_the_belief(n_outcomes, by_action):
    rng = np.random.default_rng(n_outcomes)
    Z = rng.dirichlet(np.ones(n_outcomes), size=(2, 3) if by_action else 3)
    model = machine(measurements=[am.Measurement.noisy("rating", 1.0, probabilities=Z), OPENING], initial=0)
    env, start, draws = TabularEnv(model), am.Belief.start(model), 4000
    env.reset(seed=1)
    for action in (0, 1):
        for measurement in (0, 1, 2):
            expected = draws * start.outcomes(model, action, measurement)
            seen = []
            for _ in range(draws):
                env.reset()
                made, outcome = env.outcome(env.step([action, measurement])[0])
                assert made == measurement
                seen.append(outcome)
            found = np.bincount(seen, minlength=len(expected))
            assert not found[expected == 0].any()
            if (expected > 0).sum() > 1:
                usual = expected > 5
                parts = [np.append(counts[usual], counts[~usual].sum()) for counts in (found, expected)]
                keep = parts[1] > 0
                assert stats.chisquare(parts[0][keep], parts[1][keep]).pvalue > 1e-3


@examples(30)
@given(general_models(), st.integers(0, 1000))
def test_every_outcome_is_possible_and_every_price_is_paid(model, seed):
    """Of random models of every kind: what is seen never contradicts the belief, and what is not allowed is not made."""
    env = TabularEnv(model, max_steps=12)
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    kind, first = env.outcome(observation)
    assert (first is not None) == model.reveal_start
    belief = am.Belief.start(model) if first is None else am.Belief.at(first)
    for _ in range(12):
        control, chosen = (int(number) for number in rng.integers(env.action_space.nvec))
        made = chosen if model.allowed_decisions[control, chosen] else 0
        observation, reward, terminated, _, info = env.step([control, chosen])
        assert observation in env.observation_space
        assert info["measured"] == (made > 0)
        assert reward == info["reward"] - info["measuring_cost"]
        assert made > 0 or info["measuring_cost"] == 0.0
        kind, outcome = env.outcome(observation)
        shows = model.shown_by(made)
        if terminated:
            assert (outcome is not None) == (shows is not None and shows.is_exact)
            break
        assert (outcome is None) == (shows is None)
        assert outcome is None or kind == (made if not model.looks_are_exact else 1)
        belief = belief.update(model, control, made, outcome)


def end_after_a_step(**settings):
    looks = [
        am.Measurement.noisy("sound", 0.5, probabilities=[[0.5, 0.5], [0.0, 1.0]]),
        am.Measurement.exact("opening", 2.0),
    ]
    return am.Model.from_arrays(
        [[[0.0, 1.0]], [[0.0, 1.0]]], [[1.0], [0.0]], measurements=looks, terminal=[False, True], **settings
    )


def test_with_the_end_only_an_exact_measurement_shows_something_and_all_are_paid():
    env = TabularEnv(end_after_a_step())
    for measurement, cost, seen in ((0, 0.0, (0, None)), (1, 0.5, (0, None)), (2, 2.0, (2, 1))):
        env.reset(seed=measurement)
        observation, reward, terminated, _, info = env.step([0, measurement])
        assert (env.outcome(observation), reward, terminated) == (seen, 1.0 - cost, True)
        assert info["measurement"] == measurement
        assert (
            env.np_random.random()
            == np.random.Generator(np.random.PCG64(np.random.SeedSequence(measurement))).random(2)[1]
        )
        assert env.outcome(env.step([0, measurement])[0]) == seen  # a step after the end
        assert env.step([0, measurement])[1] == 0.0


def test_a_passive_outcome_that_shows_the_state_is_a_plain_decision_process():
    env = TabularEnv(machine(measurements=[], passive=am.Measurement.exact("everything")))
    assert env.action_space == gymnasium.spaces.MultiDiscrete([2, 1])
    assert env.observation_space.n == 4
    env.reset(seed=0)
    observation, *_, info = env.step([0, 0])
    assert env.outcome(observation)[0] == 0
    assert info["outcome"] == observation
    assert env.measuring_cost == ()
    with pytest.raises(
        am.SpaceError, match=r"expected \[control, measurement\] with .* and a measurement from 0 \(none\) to 0"
    ):
        env.step([0, 1])


@pytest.mark.parametrize("action", [[0, 3], [0, -1], [2, 0], [0, 1.5], [0, None], [0, [1]], 1, "ab", None])
def test_bad_action(action):
    env = TabularEnv(machine())
    env.reset(seed=0)
    with pytest.raises(am.SpaceError, match=r"with a control from 0 to 1 and a measurement from 0 \(none\) to 2"):
        env.step(action)


def test_prices_and_wrapping():
    env = TabularEnv(machine())
    assert env.measuring_cost == (0.3, env.model.measurements[1].cost)
    assert TabularEnv(machine(measurements=[SOUND])).measuring_cost == 0.3
    with pytest.raises(am.SpaceError, match="looking already costs something"):
        am.ActiveMeasuring(env, 0.1)


@pytest.mark.parametrize("model", [machine(), machine(reveal_start=True), machine(passive=None), end_after_a_step()])
def test_gymnasium_checks_the_environment(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(TabularEnv(model, max_steps=20), skip_render_check=True)


def test_seeding_copies_and_pickles():
    env = TabularEnv(machine(), render_mode="ansi")
    actions = random_actions(env, 100)
    assert rollout(env, actions, 3) == rollout(env, actions, 3)
    assert rollout(env, actions, 3) != rollout(env, actions, 4)
    twins = (env, copy.deepcopy(env), pickle.loads(pickle.dumps(env)))
    continued = [[twin.step(action) for action in actions] for twin in twins]
    assert continued[0] == continued[1] == continued[2]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised(mode):
    envs = gymnasium.make_vec("actmeasure/Inspection-v0", num_envs=3, vectorization_mode=mode)
    observations, info = envs.reset(seed=0)
    assert observations.tolist() == [12, 12, 12]
    assert info["outcome"].tolist() == [-1, -1, -1]
    observations, _, _, _, info = envs.step(np.array([[0, 3], [0, 0], [2, 3]]))
    assert info["measuring_cost"].tolist() == [4.0, 0.0, 0.0]
    assert info["measurement"].tolist() == [3, 0, 0]
    assert observations.tolist()[1:] == [12, 12]
    assert 7 <= observations[0] < 9
    envs.close()


def test_text_names_measurements_and_outcomes():
    env = TabularEnv(machine(), render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[0] == "step 0: start hidden"
    env.step([0, 2])
    lines = env.render().splitlines()
    assert lines[0].startswith("step 1: 0, opening: ")
    assert lines[2].endswith("100 %")
    env.step([0, 0])
    assert env.render().splitlines()[0].startswith("step 2: 0, alarm: ")
    assert env.render().splitlines()[3].startswith("last look: at step 1, saw ")
    env.step([0, 1])
    assert env.render().splitlines()[0].startswith("step 3: 0, sound: ")
