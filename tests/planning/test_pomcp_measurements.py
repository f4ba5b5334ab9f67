"""POMCP on models with any measurements: near the optimum, particles as exact beliefs, deprivation, wrong outcomes."""

import numpy as np
import pytest
from brute_force import fatigue, optimal_value, pile_selection
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, general_models

import actmeasure as am
from actmeasure.planning import pomcp

PLANNER = am.planners.POMCP


def tiger(passive=False):
    """The tiger is left or right; listening is an action with a passive outcome, or a measurement while waiting, for 1."""
    P = np.zeros((2, 3, 2))
    P[:, 0], P[:, 1:] = np.eye(2), 0.5
    R = np.array([[0.0, -100.0, 10.0], [0.0, 10.0, -100.0]])
    heard = np.array([[0.85, 0.15], [0.15, 0.85]])
    settings = {"initial": [0.5, 0.5], "discount": 0.95, "action_names": ["wait", "left", "right"]}
    if not passive:
        listening = am.Measurement.noisy("listening", 1.0, probabilities=heard, with_actions=["wait"])
        return am.Model.from_arrays(P, R, measurements=[listening], **settings)
    R[:, 0] = -1.0
    by_action = np.stack([heard, np.full((2, 2), 0.5), np.full((2, 2), 0.5)])
    sound = am.Measurement.noisy("sound", 0.0, probabilities=by_action)
    return am.Model.from_arrays(P, R, passive=sound, **settings)


@pytest.mark.parametrize(
    ("passive", "depth", "least"), [(False, 10, 0.6), pytest.param(True, 20, 0.9, marks=pytest.mark.slow)]
)
def test_returns_on_tiger(passive, depth, least):
    """The optimum is 19.371, or 18.5 in 60 steps; nothing above 0 is possible without listening.

    Where waiting in silence is possible as well, more of the optimum is lost with as many simulations.
    """
    planner = PLANNER(tiger(passive), simulations=1_000, depth=depth, particles=500, nodes=5_000)
    found = am.planners.simulate(planner, episodes=60, max_steps=60, seed=1)
    assert 0 < found.discounted_return.low <= 19.371
    assert found.discounted_return.high >= 19.371 * least
    assert planner.deprivations == 0


@pytest.mark.slow
def test_returns_on_fatigue_are_near_the_optimum_over_ten_periods():
    model = am.lifetime(fatigue(), periods=10)
    planner = PLANNER(model, simulations=3_000, depth=10, particles=500, nodes=10_000)
    found = am.planners.simulate(planner, episodes=400, max_steps=20, seed=2)
    assert found.steps.value == 10
    low, high = found.discounted_return.low, found.discounted_return.high
    assert low <= -34.390916 <= high + 0.05 * 34.390916
    assert found.discounted_return.value > am.solve(model, method="never").value


def test_the_value_at_the_root_nears_the_optimum():
    """Pile selection by sonic test, drilling or none: after two steps all is over, so that little is left to rollouts."""
    for probability in (0.3, 0.7):
        model = pile_selection(probability)
        planner = PLANNER(model, simulations=100_000, depth=2, exploration=200.0, nodes=1_000, seed=3)
        decision = planner.decide(am.Belief.start(model))
        assert planner.value == pytest.approx(optimal_value(model), abs=3.0)
        assert planner.q_values()[decision.action, decision.measurement] == planner.value


@pytest.mark.parametrize(
    "settings", [{}, {"share": False}, {"rollout": "random"}, {"rollout": "blind"}, {"rollout": "q-mdp"}]
)
def test_settings(settings):
    model = tiger()
    planner = PLANNER(model, simulations=2_000, depth=8, nodes=2_000, **settings)
    planner.decide(am.Belief.start(model))
    values = planner.q_values()
    assert values.shape == (3, 2)
    assert np.isnan(values[1:, 1]).all()  # listening is for waiting alone
    assert np.isfinite(values[model.allowed_decisions]).all()
    assert planner.value == np.nanmax(values)


def test_sharing_samples_all_measurements_of_an_action():
    """20 gambles that end at once, with two measurements each: shared, every simulation is a sample of three decisions."""
    chances = np.linspace(0.2, 0.8, 20)
    P, R = np.zeros((3, 20, 3)), np.zeros((3, 20, 3))
    P[0, :, 1], P[0, :, 2], R[0, :, 1] = chances, 1 - chances, 1.0
    looks = [am.Measurement.partial("a", 0.1, shows=[0, 0, 0]), am.Measurement.exact("b", 0.2)]
    model = am.Model.from_arrays(P, R, measurements=looks, terminal=[False, True, True])
    truth = chances[:, None] - [0.0, 0.1, 0.2]
    errors = []
    for share in (False, True):
        planners = [PLANNER(model, 600, 3, 100.0, share=share, rollout="blind", seed=s, nodes=100) for s in range(30)]
        for planner in planners:
            planner.decide(am.Belief.at(0))
        errors.append(np.sqrt(np.mean([(planner.q_values() - truth) ** 2 for planner in planners])))
    assert errors[1] / errors[0] == pytest.approx(np.sqrt(1 / 3), abs=0.08)


@examples(15)
@given(general_models(), st.integers(0, 1000))
def test_particles_follow_exact_beliefs(model, seed):
    """Probabilities to within some standard deviations; resampling adds a little to the variance at every step."""
    rng = np.random.default_rng(seed)
    planner = PLANNER(model, simulations=1, particles=4_000, nodes=10, seed=seed)
    belief = am.Belief.start(model)
    planner.start(belief)
    for _ in range(4):
        allowed = np.argwhere(model.allowed_decisions)
        action, measurement = (int(part) for part in allowed[rng.integers(len(allowed))])
        chances = belief.outcomes(model, action, measurement)
        if not chances.sum() > 0:
            break
        outcome = int(rng.choice(len(chances), p=chances / chances.sum()))
        outcome = None if model.shown_by(measurement) is None else outcome
        belief = belief.update(model, action, measurement, outcome)
        planner.observe(outcome, am.Decision(action, measurement))
        found = planner.belief().dense(model.n_states)
        exact = belief.dense(model.n_states)
        # At least a tenth of the particles are effective at every step, or they are drawn from the exact belief.
        assert (np.abs(found - exact) <= 5 * np.sqrt(10 * 4 * exact * (1 - exact) / 4_000) + 1e-12).all()


def rare_alarm():
    """Nothing changes; an alarm tells state 1, which is rare, and never sounds in state 0."""
    P = np.eye(3)[:, None, :]
    alarm = am.Measurement.detection("alarm", 0.0, pod=[0.0, 0.9, 0.0])
    return am.Model.from_arrays(P, np.zeros((3, 1)), passive=alarm, initial=[0.999, 0.001, 0.0], terminal=[0, 0, 1])


def test_laws_by_action_weight_particles():
    Z = np.array([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]])  # the second action shows the state
    sensor = am.Measurement.noisy("sensor", 0.1, probabilities=Z)
    P = np.repeat(np.eye(2)[:, None], 2, axis=1)
    model = am.Model.from_arrays(P, np.zeros((2, 2)), measurements=[sensor], initial=[0.5, 0.5])
    planner = PLANNER(model, simulations=5, depth=2, particles=200)
    for action, states in ((0, [0, 1]), (1, [1])):
        planner.start(am.Belief.start(model))
        planner.observe(1, am.Decision(action, 1))
        assert planner.belief().states.tolist() == states


class TestDeprivation:
    def test_particles_are_drawn_from_the_exact_belief(self):
        model = rare_alarm()
        planner = PLANNER(model, simulations=10, particles=20, nodes=10)
        planner.start(am.Belief.start(model))
        planner.observe(0, am.Decision(0, 0))
        planner.observe(1, am.Decision(0, 0))
        assert planner.belief().known == 1
        assert (planner.deprivations, planner.reinvigorated) == (1, 20)

    def test_few_effective_particles_are_replaced_before_none_is_left(self):
        model = rare_alarm()
        planner = PLANNER(model, simulations=10, particles=20_000, nodes=10)
        planner.start(am.Belief.start(model))
        planner.observe(1, am.Decision(0, 0))
        assert (planner.deprivations, planner.reinvigorated) == (0, 20_000)
        assert planner.belief().known == 1

    def test_what_the_model_rules_out_or_costs_too_much(self, monkeypatch):
        model = rare_alarm()
        planner = PLANNER(model, simulations=10, particles=20, nodes=10)
        planner.start(am.Belief.at(0))
        planner.observe(1, am.Decision(0, 0))  # impossible from state 0
        assert (planner.belief().known, planner.deprivations) == (1, 1)
        monkeypatch.setattr(pomcp, "MOST_EXACT_WORK", 0)
        planner.start(am.Belief.start(model))
        planner.observe(1, am.Decision(0, 0))
        assert (planner.belief().known, planner.deprivations) == (1, 2)

    def test_it_is_told_of_simulated_returns(self):
        P = np.array([[[0.96, 0.04]], [[0.96, 0.04]]])
        light = am.Measurement.partial("light", 0.0, shows=["off", "on"])
        model = am.Model.from_arrays(P, np.zeros((2, 1)), passive=light)
        planner = PLANNER(model, simulations=5, particles=1, depth=3, nodes=10)
        found = am.planners.simulate(planner, episodes=20, max_steps=40)
        assert found.deprivations == planner.deprivations > 0
        assert "use more particles" in str(found)


class TestOutcomes:
    @pytest.mark.parametrize(
        ("outcome", "decision", "message"),
        [
            (None, am.Decision(0, 1), "'listening' shows one of 2; pass its number, from 0 to 1"),
            (2, am.Decision(0, 1), "the outcome of 'listening' is 2"),
            (0, am.Decision(0, 0), "without a measurement nothing is seen; pass None"),
            (0, am.Decision(1, 1), "'listening' cannot be made with action 'left'"),
            (0, am.Decision(0, 2), "the decision is .*a measurement 0 .none. or 1"),
            (None, am.Decision(3, 0), "the decision is .*an action from 0 to 2"),
        ],
    )
    def test_wrong_ones_are_sentences(self, outcome, decision, message):
        planner = PLANNER(tiger(), simulations=10, nodes=10)
        planner.start(am.Belief.start(planner.model))
        with pytest.raises(am.PlanError, match=message):
            planner.observe(outcome, decision)

    def test_outcomes_that_no_running_state_can_give(self):
        P = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
        looks = [am.Measurement.detection("test", 0.1, pod=[0.0, 1.0]), am.Measurement.exact("opening", 1.0)]
        with pytest.warns(am.ModelWarning, match="no state can produce"):
            model = am.Model.from_arrays(P, np.zeros((2, 1)), measurements=looks, terminal=[False, True])
        planner = PLANNER(model, simulations=10, nodes=10)
        planner.start(am.Belief.at(0))
        with pytest.raises(am.PlanError, match="'hit' was seen and the episode goes on, but no state"):
            planner.observe(1, am.Decision(0, 1))
        with pytest.raises(am.PlanError, match="state 1 was shown and the episode goes on"):
            planner.observe(1, am.Decision(0, 2))

    def test_the_tree_of_what_was_seen_is_kept(self):
        planner = PLANNER(tiger(), simulations=2_000, nodes=5_000, particles=2_000)
        assert planner.decide(am.Belief.start(planner.model)) == am.Decision(0, 1)
        planner.observe(0)
        assert planner.histories > 1
        np.testing.assert_allclose(planner.belief().probabilities, [0.85, 0.15], atol=0.04)
        planner.decide()
        planner.observe(None, am.Decision(2, 0))
        np.testing.assert_allclose(planner.belief().probabilities, [0.5, 0.5], atol=0.06)


@examples(10)
@given(general_models(), st.integers(0, 1000))
def test_returns_of_any_model_can_be_simulated(model, seed):
    planner = PLANNER(model, simulations=20, depth=4, particles=20, nodes=50)
    found = am.planners.simulate(planner, episodes=3, max_steps=6, seed=seed)
    assert (found.episodes, found.stopped) == (3, "done")
    assert found.measurements.value <= found.steps.value


@pytest.mark.parametrize("on_environment", [False, True])
def test_the_agent_plays_the_simulated_episodes(on_environment):
    model = am.problems.inspection()
    settings = {"simulations": 50, "depth": 5, "particles": 50, "nodes": 100}
    found = am.planners.simulate(PLANNER(model, **settings), episodes=4, max_steps=15, seed=5)
    world = am.envs.TabularEnv(model, max_steps=15) if on_environment else model
    episodes = am.train(am.agents.make("pomcp", model=model, **settings), world, episodes=4, seed=5, max_steps=15)
    assert found.scalarized_return.value == pytest.approx(episodes.scalarized_return.mean())
    assert found.measurements.value == episodes.measurements.mean()


def test_prices_above_all_rewards_do_not_stop_exploring():
    P, R = np.full((2, 1, 2), 0.5), np.array([[0.001], [0.0]])
    looks = [am.Measurement.detection(name, price, pod=[0.1, 0.9]) for name, price in (("dear", 0.3), ("cheap", 0.05))]
    life = am.lifetime(am.Model.from_arrays(P, R, measurements=looks), periods=2)
    for seed in range(20):
        planner = am.planners.POMCP(life, simulations=2_000, depth=3, seed=seed)
        assert planner.decide(am.Belief.start(life)) == am.Decision(0, 0)
