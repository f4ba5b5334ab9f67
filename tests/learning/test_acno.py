"""ACNO-OTP, ACNO-POMCP and POMCP as agents, and what they explore with."""

import gymnasium
import numpy as np
import pytest

import actmeasure as am
from actmeasure.kernels import streams
from actmeasure.kernels.learned_model import count, make_counts
from actmeasure.learning.exploring import CounterExploration, EulerExploration

LAKE = am.problems.frozen_lake(4, "semi-slippery", measuring_cost=0.05)
MAKERS = {
    "otp": lambda model: am.agents.make("acno-otp", simulations=30, exploiting_episodes=8),
    "otp, paper": lambda model: am.agents.make("acno-otp", preset="paper", simulations=30, exploring_episodes=9),
    "otp, euler": lambda model: am.agents.make(
        "acno-otp", preset="published", simulations=30, exploiting_episodes=8, exploring_method="euler", visits=2
    ),
    "pomcp": lambda model: am.agents.make("acno-pomcp", simulations=30),
    "pomcp, paper": lambda model: am.agents.make("acno-pomcp", preset="paper", simulations=30),
    "known": lambda model: am.agents.make("pomcp", model=model, simulations=30, nodes=1_000),
}
LEARNERS = [name for name in MAKERS if name != "known"]


@pytest.mark.parametrize("name", MAKERS)
def test_every_agent_passes_the_public_check(name):
    am.testing.check_agent(MAKERS[name])


WORLDS = {
    "lake": LAKE,
    "costs and hidden starts": LAKE.replace(
        measuring_cost=np.random.default_rng(0).random((16, 4)),
        initial=np.eye(16)[[0, 4, 8]].mean(axis=0),
        reveal_start=False,
    ),
    "cliff": am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.01),
    "hidden cliff": am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.01, reveal_start=False),
}


@pytest.mark.parametrize("which", WORLDS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_that_is_saved_and_continued_equals_one_that_was_not(which, name, tmp_path):
    world, path = WORLDS[which], tmp_path / "agent.npz"
    uninterrupted = MAKERS[name](None)
    whole = am.train(uninterrupted, world, episodes=18, seed=5, max_steps=20)
    agent, steps = MAKERS[name](None), []
    for _ in range(3):
        steps += am.train(agent, world, episodes=6, seed=5, max_steps=20, planned_episodes=18).steps.tolist()
        agent.save(path)
        agent = am.agents.load(path)
    assert steps == whole.steps.tolist()
    for key, values in agent.learned().items():
        assert values.tobytes() == uninterrupted.learned()[key].tobytes()
    assert agent.settings == uninterrupted.settings


@pytest.mark.parametrize("name", LEARNERS)
def test_damaged_tables_are_refused(name, tmp_path):
    agent, path = MAKERS[name](None), tmp_path / "agent.npz"
    am.train(agent, LAKE, episodes=20, max_steps=20)
    agent.save(path)
    own = "exploring" if "otp" in name else "random_decisions"
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for damaged in (arrays[own] - 7.0, arrays[own][:-1], arrays[own] * np.nan, arrays[own] + 1e6):
        np.savez(path, **arrays | {own: damaged})
        with pytest.raises(am.AgentError, match="the file is damaged"):
            am.agents.load(path)


class TestExploring:
    @pytest.mark.parametrize("exploring_method", ["counter", "euler"])
    @pytest.mark.parametrize("variant", ["semi-slippery", "slippery"])
    def test_the_learned_model_is_within_sampling_error_of_the_truth(self, exploring_method, variant):
        lake = am.problems.frozen_lake(4, variant, measuring_cost=0.05)
        agent = am.agents.make("acno-otp", exploring_method=exploring_method, exploiting_episodes=0, visits=200)
        episodes = am.train(agent, lake, episodes=950, seed=1, max_steps=500)
        assert episodes.measurements.tolist() == episodes.steps.tolist()
        learned, running = agent.model(), np.flatnonzero(~lake.terminal)
        scores = []
        for state in running:
            for action in range(4):
                truth = np.zeros(17)
                successors, chances = lake.transitions.row(int(state), action)
                np.add.at(truth, np.where(lake.terminal[successors], 16, successors), chances)
                found = np.zeros(17)
                np.add.at(found, *learned.transitions.row(int(state), action))
                times = agent.counts.measured[4 * state + action]
                assert times > 0
                assert found[truth == 0].sum() == 0
                unsure = (truth > 0) & (truth < 1)
                scores += ((found - truth)[unsure] / np.sqrt((truth * (1 - truth))[unsure] / times)).tolist()
                assert learned.rewards[state, action] == pytest.approx(
                    lake.rewards[state, action], abs=4 / np.sqrt(times)
                )
        assert np.abs(scores).max() < 4.5
        assert np.mean(np.square(scores)) == pytest.approx(1, abs=0.5)

    def test_the_counter_updates_all_actions_of_the_visited_state(self):
        counts, explorer = make_counts(3, 2, 64), CounterExploration(3, 2, learning_rate=0.5, discount=0.9)
        explorer.table[:] = [0, 0, 0.2, 0.6, 0.4, 0.1]
        count(counts, 0, 1, 0.0)
        count(counts, 0, 1, 0.0)
        count(counts, 0, 2, 0.0)
        count(counts, 0, 3, 0.0)  # the end
        explorer.observe(counts, 0, 0)
        future = (2 * 0.6 + 0.4 + 0.0) / 4
        assert explorer.table.tolist() == pytest.approx([0.5 * (1 / 5 + 0.9 * future), 0.5, 0.2, 0.6, 0.4, 0.1])

    def test_the_counter_breaks_ties_at_random_and_is_greedy(self):
        counts, explorer, stream = make_counts(2, 3, 64), CounterExploration(2, 3), streams.make_stream()
        streams.seed_stream(stream, streams.entropy_words(0), 0, streams.AGENT)
        explorer.table[:3] = [0.5, 0.5, 0.1]
        assert {explorer.decide(counts, 0, stream) for _ in range(50)} == {0, 1}
        explorer.table[:3] = [0.5, 0.6, 0.1]
        assert {explorer.decide(counts, 0, stream) for _ in range(50)} == {1}

    def test_the_bounds_of_euler_enclose_the_chance_to_reach_the_goal(self):
        """With the constant of the theory they hold; with many measurements they close."""
        rng = np.random.default_rng(0)
        P = rng.dirichlet(np.ones(4), size=(4, 2))
        exact = np.zeros((6, 4))
        goal = 5  # state 2, action 1
        for step in range(4, -1, -1):
            values = P @ exact[step + 1]
            values[2, 1] = 1.0
            exact[step] = values.max(axis=1)
        for times, log_term in ((5, 5.0), (50, 5.0), (10**6, 5.0), (10**7, 1e-6)):
            counts = make_counts(4, 2, 64)
            for pair in range(8):
                for successor, number in enumerate(rng.multinomial(times, P[pair // 2, pair % 2])):
                    if number:
                        counts.times[count(counts, pair, successor, 0.0)] += number - 1
                counts.measured[pair] = times
            explorer = EulerExploration(4, 2, horizon=5, log_term=log_term)
            upper, lower = plan(explorer, counts, goal)
            if log_term > 1:
                assert (upper[:5] >= exact[:5] - 1e-9).all()
                assert (lower[:5] <= exact[:5] + 1e-9).all()
            else:
                assert upper[0] == pytest.approx(exact[0], abs=2e-3)
                assert lower[0] == pytest.approx(exact[0], abs=2e-3)
        assert (lower[:5] <= upper[:5]).all()

    def test_euler_measures_everything_often_enough_and_then_acts_at_random(self):
        lake = am.problems.frozen_lake(4, "slippery", measuring_cost=0.05)
        agent = am.agents.make("acno-otp", exploring_method="euler", exploiting_episodes=0, visits=5)
        am.train(agent, lake, episodes=600, seed=0)
        attempts = agent.learned()["exploring"].reshape(16, 4)
        assert (attempts[lake.terminal] == -1).all()
        measured, attempts = (found.reshape(16, 4)[~lake.terminal] for found in (agent.counts.measured, attempts))
        assert ((measured >= 5) | (attempts == 5)).all()
        assert measured.min() > 0


def plan(explorer, counts, goal):
    from actmeasure.kernels import exploring

    exploring.plan_euler(counts, explorer._bounds, goal, explorer.n_actions, explorer.constants)
    return explorer._bounds.upper[:, :-1], explorer._bounds.lower[:, :-1]


class TestObserveThenPlan:
    def test_it_explores_all_but_the_last_episodes(self):
        agent = am.agents.make("acno-otp", simulations=300, exploiting_episodes=20)
        episodes = am.train(agent, am.problems.measuring_value(measuring_cost=0.3), episodes=120, max_steps=50)
        assert (episodes.measurements[:100] == episodes.steps[:100]).all()
        assert (episodes.measurements[100:] < episodes.steps[100:]).all()
        assert agent.planner.model.n_states == 5

    def test_planning_on_the_learned_model_is_nearly_optimal(self):
        """Certified optimum 0.9375 without a discount; the interval is of the mean of 300 episodes."""
        agent = am.agents.make("acno-otp", simulations=3_000, exploiting_episodes=300)
        episodes = am.train(agent, am.problems.measuring_value(measuring_cost=0.05), episodes=700, seed=2)
        earned = episodes.scalarized_return[-300:]
        assert earned.mean() == pytest.approx(0.9375, abs=0.02 + 3 * earned.std() / np.sqrt(300))

    def test_what_it_is_told_in_a_state_that_it_never_saw(self):
        """It acts at random there, as all actions seem to change nothing."""
        agent = am.agents.make("acno-otp", simulations=100, exploring_episodes=0)
        episodes = am.train(agent, LAKE, episodes=20, max_steps=200)
        assert episodes.terminated.mean() > 0.5

    def test_without_a_discount(self):
        agent = am.agents.make("acno-otp", simulations=500, exploiting_episodes=50)
        model = am.problems.measuring_value(measuring_cost=0.05, discount=1.0)
        assert am.train(agent, model, episodes=150).scalarized_return[-50:].mean() > 0.7

    def test_clamping_is_left_out_where_rewards_are_negative(self):
        model = am.Model.from_arrays(np.full((2, 2, 2), 0.5), [[-1.0, 0.0], [0.5, -0.5]], measuring_cost=0.1, initial=0)
        agent = am.agents.make("acno-otp", preset="paper", simulations=20, exploiting_episodes=2)
        assert len(am.train(agent, model, episodes=5, max_steps=10)) == 5

    def test_it_has_to_know_when_to_stop_exploring(self):
        task = am.agents.Task.of_model(LAKE)
        with pytest.raises(am.AgentError, match="does not say how many are planned; set exploring_episodes"):
            am.agents.make("acno-otp").prepare(task)
        am.agents.make("acno-otp", exploring_episodes=10).prepare(task)
        with pytest.raises(am.AgentError, match="all planned episodes but the last 50, but 50 are planned"):
            am.train(am.agents.make("acno-otp"), LAKE, episodes=50)

    def test_presets(self):
        paper, published = (am.agents.make("acno-otp", preset=p).settings for p in ("paper", "published"))
        assert (paper.discount, paper.depth) == (0.95, 25)
        assert (published.discount, published.depth) == (0.99, 10)
        for settings in (paper, published):
            assert (settings.simulations, settings.exploration, settings.particles) == (25_000, 10.0, 2_000)
            assert (settings.rollout, settings.clamp, settings.share) == ("blind", True, False)
            assert (settings.exploring_method, settings.learning_rate, settings.exploring_discount) == (
                "counter",
                0.3,
                0.95,
            )
            assert settings.exploiting_episodes == 50


class TestAcnoPomcp:
    def test_a_step_is_counted_if_the_state_was_known_before_and_after(self):
        agent = am.agents.make("acno-pomcp", simulations=10, random_decisions=1.0, random_decay=1.0)
        told = [(1, True), (2, False), (3, True), (0, True), (1, True)]
        agent.prepare(am.agents.Task.of_model(LAKE))
        agent.reseed(0, 0)
        agent.begin(None)
        for state, look in told:
            agent.decide()
            agent._last = am.Decision(2, look)
            agent.observe(0.5, 0.05, state if look else None, False, False)
        assert agent.counts.measured.sum() == 2
        assert agent.counts.measured[[4 * 3 + 2, 4 * 0 + 2]].tolist() == [1, 1]

    def test_the_prior_counts_everything_once(self):
        agent = am.agents.make("acno-pomcp", preset="paper", simulations=10)
        model = am.problems.measuring_value(p=0.8)
        am.train(agent, model, episodes=1, max_steps=1)
        assert agent.planner.model.transitions.row(0, 0)[1] == pytest.approx(np.full(5, 0.2))
        am.train(agent, model, episodes=60, seed=3)
        agent.begin(0)
        state, action = divmod(int(agent.counts.measured.argmax()), 2)
        measured = agent.counts.measured[2 * state + action]
        chances = agent.planner.model.transitions.row(state, action)[1]
        assert chances.min() == pytest.approx(1 / (5 + measured))

    def test_random_decisions_become_fewer(self):
        agent = am.agents.make("acno-pomcp", preset="paper", simulations=5)
        assert agent.settings.random_decisions == 0.9
        am.train(agent, LAKE, episodes=10)
        assert agent.learned()["random_decisions"][0] == pytest.approx(0.1)

    def test_models_that_are_too_large(self):
        with pytest.raises(am.AgentError, match="more than 10,000,000; use acno-otp"):
            am.train(am.agents.make("acno-pomcp"), am.problems.frozen_lake(50, seed=0), episodes=1)

    def test_it_learns(self):
        agent = am.agents.make("acno-pomcp", simulations=1_000)
        episodes = am.train(agent, am.problems.measuring_value(measuring_cost=0.05), episodes=400, seed=1)
        assert episodes.scalarized_return[-200:].mean() > 0.75


def test_pomcp_on_a_known_model():
    agent = am.agents.make("pomcp", model=LAKE, simulations=3_000)
    episodes = am.train(agent, LAKE, episodes=60, seed=0)
    assert episodes.scalarized_return.mean() > 0.75
    assert "simulations=3000" in repr(agent)
    with pytest.raises(am.AgentError, match="16 states and 4 actions, the task has 4 and 2"):
        am.train(am.agents.make("pomcp", model=LAKE), am.problems.measuring_value(), episodes=1)
    with pytest.raises(am.AgentError, match="needs model"):
        am.agents.make("pomcp")
    with pytest.raises(am.AgentError, match="simulations is 0"):
        am.agents.make("pomcp", model=LAKE, simulations=0)
    with pytest.raises(am.AgentError, match="expected a Model"):
        am.agents.make("pomcp", model=3)


@pytest.mark.parametrize("name", ["acno-otp", "acno-pomcp"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("simulations", 0), ("simulations", 1.5), ("depth", 0), ("exploration", -1), ("exploration", np.nan), ("particles", 0),
        ("discount", 2), ("clamp", 1), ("share", None), ("nodes", 1),
    ],
)  # fmt: skip
def test_settings_out_of_range(name, setting, value):
    with pytest.raises(am.AgentError, match=f"^{setting} is .*expected"):
        am.agents.make(name, **{setting: value})


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        *(("acno-otp", key, -1) for key in ("exploring_episodes", "exploiting_episodes", "learning_rate", "log_term")),
        *(("acno-otp", key, 0) for key in ("exploring_discount", "horizon", "visits")),
        ("acno-otp", "exploring_discount", None),
        *(("acno-pomcp", key, 2) for key in ("random_decisions", "random_decay", "random_least")),
        *(("acno-pomcp", "prior", value) for value in (0, -1, "x")),
    ],
)
def test_own_settings_out_of_range(name, setting, value):
    with pytest.raises(am.AgentError, match=f"^{setting} is .*expected"):
        am.agents.make(name, **{setting: value})


@pytest.mark.parametrize("name", ["acno-otp", "acno-pomcp"])
def test_unknown_names(name):
    with pytest.raises(am.AgentError, match="did you mean 'simulations'"):
        am.agents.make(name, simulation=3)
    with pytest.raises(am.AgentError, match="unknown rollout 'blond'; did you mean 'blind'"):
        am.agents.make(name, rollout="blond")
    with pytest.raises(am.AgentError, match="unknown preset 'papers'"):
        am.agents.make(name, preset="papers")
    with pytest.raises(am.AgentError, match="unknown exploring_method 'count'"):
        am.agents.make("acno-otp", exploring_method="count")


@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_to_read_before_training(name, tmp_path):
    agent = MAKERS[name](None)
    for read in (agent.q_values, agent.belief, agent.model, lambda: agent.save(tmp_path / "agent.npz")):
        with pytest.raises(am.AgentError, match="has not been trained yet"):
            read()
    agent.prepare(am.agents.Task.of_model(LAKE, 20))
    assert np.isnan(agent.q_values()).all()
    assert agent.belief().is_over
