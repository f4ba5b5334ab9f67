"""What every learning agent keeps to, whatever its settings: the contract, one source of truth, checked settings."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models

import actmeasure as am
from actmeasure.kernels import amrl_q, atmq

LEARNERS = ("atmq", "dyna-atmq", "amrl-q")
PRESETS = ("default", "published", "paper")
EPISODES = ("scalarized_return", "reward", "measurements", "steps", "terminated")


def make(name, preset="default", **given_settings):
    """With few training updates, as the published number of them takes its time."""
    few = {"training_updates": 10} if name == "dyna-atmq" else {}
    return am.agents.make(name, preset=preset, **few | given_settings)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", LEARNERS)
def test_every_preset_passes_the_public_check(name, preset):
    am.testing.check_agent(lambda model: make(name, preset))


def same(one, other):
    return all(getattr(one, field).tolist() == getattr(other, field).tolist() for field in EPISODES)


def same_tables(one, other):
    """Equal in every bit of what was learned."""
    mine, theirs = one.learned(), other.learned()
    return mine.keys() == theirs.keys() and all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


@given(
    models(), st.integers(0, 10**6), st.sampled_from(LEARNERS), st.sampled_from(PRESETS), st.sampled_from([0.0, 0.3])
)
@examples(60)
def test_compiled_loop_equals_the_gymnasium_loop(model, seed, name, preset, chance):
    """Random and hidden starts, costs per state and action, negative rewards, a single action: all are among the models."""
    extra = {} if name == "amrl-q" else {"random_measuring": chance, "exploratory_measurements": 2, "particles": 20}
    compiled, played = make(name, preset, **extra), make(name, preset, **extra)
    one = am.train(compiled, model, episodes=12, seed=seed, max_steps=20)
    other = am.train(played, am.envs.TabularEnv(model), episodes=12, seed=seed, max_steps=20)
    assert same(one, other)
    assert same_tables(compiled, played)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_single_state_and_a_single_action(name):
    model = am.Model.from_arrays(np.ones((1, 1, 1)), np.full((1, 1), -1.0), measuring_cost=0.5)
    agent = make(name)
    one = am.train(agent, model, episodes=5, seed=1, max_steps=30)
    other = am.train(make(name), am.envs.TabularEnv(model), episodes=5, seed=1, max_steps=30)
    assert same(one, other)
    assert (agent.q_values() < 0).any()
    assert agent.belief().known == 0


@pytest.mark.parametrize("name", LEARNERS)
def test_going_on_with_a_model_that_begins_elsewhere(name):
    """An agent keeps what it was told of the start, in both loops."""
    lake = am.problems.frozen_lake(4)
    there = lake.replace(initial=np.eye(16)[[0, 8]].mean(axis=0), reveal_start=False)
    here = lake.replace(initial=np.eye(16)[[1, 4, 6]].mean(axis=0), reveal_start=False)
    runs = []
    for wrap in (lambda model: model, am.envs.TabularEnv):
        agent = make(name)
        am.train(agent, wrap(there), episodes=10, seed=3, max_steps=30)
        runs.append(am.train(agent, wrap(here), episodes=10, seed=3, max_steps=30))
    assert same(*runs)


def growing(n_states=1200):
    """A model in which every transition leads to a new state, so that room for 1,024 of them is not enough."""
    P = np.zeros((n_states, 1, n_states))
    P[np.arange(n_states), 0, (np.arange(n_states) + 1) % n_states] = 1.0
    return am.Model.from_arrays(P, np.zeros((n_states, 1)), measuring_cost=0.0)


@pytest.mark.parametrize("name", LEARNERS)
def test_room_for_transitions_grows_in_the_middle_of_an_episode(name):
    model = growing()
    extra = {"random_decisions": 0.0, "measuring_bias": 1.0} if name == "amrl-q" else {"training_updates": 2}
    compiled, played = am.agents.make(name, **extra), am.agents.make(name, **extra)
    one = am.train(compiled, model, episodes=2, seed=1, max_steps=1300)
    other = am.train(played, am.envs.TabularEnv(model, max_steps=1300), episodes=2, seed=1, max_steps=1300)
    assert same(one, other)
    assert same_tables(compiled, played)
    assert compiled.counts.used[0] == 1201
    assert compiled.counts.measured.sum() == one.measurements.sum() > 1200


@pytest.mark.parametrize("name", LEARNERS)
def test_environments_that_do_not_tell_where_they_begin(name):
    for shown in (True, False):
        env = am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.1, reveal_start=shown)
        agent = make(name)
        episodes = am.train(agent, env, episodes=3, seed=0, max_steps=30)
        assert episodes.steps.max() <= 30
        assert (agent.q_values() < 0).any()
        if shown:
            assert agent.model().initial_states.tolist() == [36]
        else:
            with pytest.raises(am.AgentError, match="no start of an episode"):
                agent.model()


class TestSettings:
    @pytest.mark.parametrize("name", ["atmq", "dyna-atmq"])
    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            *((name, value) for name in ("learning_rate", "random_measuring", "training_greedy", "measure_when_settled")
              for value in (-0.1, 1.1, np.nan, "high", None, True)),
            *(("measure_when_spread", value) for value in (-0.1, 1.1, np.nan, "wide", True)),
            *((name, value) for name in ("particles", "optimism") for value in (0, -1, 2.0, 10**30, True, None, "7")),
            *((name, value) for name in ("exploratory_measurements", "training_updates", "training_needs")
              for value in (-1, 0.5, 10**30, True, None, "7")),
            *(("prior_until", value) for value in (-1, 0.5, 10**30, True, "7")),
            *(("discount", value) for value in (0, -0.5, 1.01, np.nan, "most", True)),
            *(("largest_reward", value) for value in (np.inf, -np.inf, np.nan, "all", True, 10**400)),
            *((name, value) for name in ("optimistic_measuring", "observed_target", "cost_in_target", "prior_in_rewards",
                                         "own_rewards", "knows_it_runs") for value in (0, 1, None, "yes")),
        ],
    )  # fmt: skip
    def test_of_act_then_measure_out_of_range(self, name, setting, value):
        with pytest.raises(am.AgentError, match=rf"^{setting} is .*expected"):
            am.agents.make(name, **{setting: value})

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            *((name, value) for name in ("learning_rate", "random_decisions", "exploring_share") for value in (-1, 2, "x", None)),
            ("measuring_bias", np.inf), ("measuring_bias", "x"), ("discount", 0), ("discount", 2),
        ],
    )  # fmt: skip
    def test_of_amrl_q_out_of_range(self, setting, value):
        with pytest.raises(am.AgentError, match=rf"^{setting} is .*expected"):
            am.agents.make("amrl-q", **{setting: value})

    def test_at_the_edges(self):
        """The smallest and the largest of everything run."""
        edges = [
            {"particles": 1, "optimism": 1, "exploratory_measurements": 0, "prior_until": 0, "measure_when_spread": 0},
            {"particles": 10**6, "optimism": 10**9, "exploratory_measurements": 10**9, "training_needs": 10**9},
            {"prior_until": 10**9, "measure_when_spread": 1, "measure_when_settled": 1, "training_greedy": 1},
            {"training_greedy": 0, "training_needs": 0, "learning_rate": 1, "discount": 1, "random_measuring": 1},
            {"learning_rate": 0, "largest_reward": -1e300}, {"largest_reward": 1e300, "discount": 1e-300},
        ]  # fmt: skip
        for extra in edges:
            agent = am.agents.make("dyna-atmq", **extra)
            am.train(agent, am.problems.frozen_lake(4), episodes=5, max_steps=10)
            assert np.isfinite(agent.q_values()).all()

    def test_numbers_of_numpy(self):
        agent = am.agents.make(
            "atmq",
            learning_rate=np.float32(0.5),
            particles=np.int16(7),
            own_rewards=np.bool_(False),
            discount=np.array(1),
        )
        assert (agent.settings.learning_rate, agent.settings.particles) == (0.5, 7)
        assert agent.settings.own_rewards is False
        assert type(agent.settings.discount) is float

    @pytest.mark.parametrize("name", LEARNERS)
    def test_unknown_names(self, name):
        with pytest.raises(am.AgentError, match="did you mean 'learning_rate'"):
            am.agents.make(name, learning_rat=0.1)
        with pytest.raises(am.AgentError, match="unknown preset 'publish'; did you mean 'published'"):
            am.agents.make(name, preset="publish")
        with pytest.raises(am.AgentError, match=r"unknown preset \['paper'\]"):
            am.agents.make(name, preset=["paper"])
        with pytest.raises(am.AgentError, match="unknown preset None"):
            am.agents.make(name, preset=None)
        with pytest.raises(am.AgentError, match="unknown setting 'rate'"):
            am.agents.AGENTS[name](rate=1)

    def test_names_of_agents(self):
        with pytest.raises(am.AgentError, match="did you mean 'dyna-atmq'"):
            am.agents.make("dyna_atmq")
        with pytest.raises(am.AgentError, match="did you mean 'amrl-q'"):
            am.agents.make("amrlq")

    def test_presets_are_what_they_say(self):
        paper, published = (
            am.agents.make("atmq", preset="paper").settings,
            am.agents.make("atmq", preset="published").settings,
        )
        assert (paper.prior_until, paper.cost_in_target, paper.optimistic_measuring) == (None, True, False)
        assert (paper.observed_target, paper.own_rewards, paper.measure_when_settled) == (False, False, 0.0)
        assert (published.prior_until, published.cost_in_target, published.optimistic_measuring) == (7, False, True)
        updates = {p: am.agents.make("dyna-atmq", preset=p).settings.training_updates for p in PRESETS}
        assert updates == {"default": 25, "published": 625, "paper": 25}
        assert am.agents.make("amrl-q", preset="published").settings.learning_rate == 0.3
        assert am.agents.make("amrl-q", preset="paper").settings.learning_rate == 0.1
        assert am.agents.make("atmq", preset="paper", prior_until=3).settings.prior_until == 3

    def test_the_discount_of_the_task_or_its_own(self):
        model = am.problems.frozen_lake(4, variant="deterministic", discount=0.5)
        values = []
        for discount in (None, 0.9):
            agent = am.agents.make("dyna-atmq", discount=discount)
            am.train(agent, model, episodes=600, max_steps=100)
            values.append(agent.q_values()[0].max())
        assert values == pytest.approx([0.5**5, 0.9**5], rel=1e-3)


@pytest.mark.parametrize("name", LEARNERS)
class TestWorldsThatDoNotFit:
    def test_continuous_environment(self, name):
        env = am.ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=0.1)
        with pytest.raises(am.SpaceError, match="finitely many states"):
            am.train(make(name), env, episodes=1)

    def test_environment_without_the_measuring_contract(self, name):
        with pytest.raises(am.SpaceError, match="wrap it: ActiveMeasuring"):
            am.train(make(name), gymnasium.make("Taxi-v4"), episodes=1)

    def test_another_size(self, name):
        agent = make(name)
        am.train(agent, am.problems.measuring_value(), episodes=1)
        with pytest.raises(am.AgentError, match="trained with 4 states and 2 actions, but this task has 16 and 4"):
            am.train(agent, am.problems.frozen_lake(4), episodes=1)

    def test_nothing_to_read_before_training(self, name, tmp_path):
        agent = make(name)
        for read in (agent.q_values, agent.belief, agent.model, lambda: agent.save(tmp_path / "agent.npz")):
            with pytest.raises(am.AgentError, match="has not been trained yet"):
                read()
        assert list(tmp_path.iterdir()) == []


def test_one_compilation_serves_all_tasks():
    """Compiling a learner takes seconds; costs per state, hidden starts or an agent from a file are no reason to do it again."""
    lake = am.problems.frozen_lake(4)
    worlds = [
        lake,
        lake.replace(measuring_cost=np.ones((16, 4))),
        lake.replace(initial=np.eye(16)[[0, 4]].mean(axis=0)),
    ]
    worlds += [am.ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.1)]
    for name in ("atmq", "amrl-q"):
        for world in worlds:
            env = am.envs.TabularEnv(world) if isinstance(world, am.Model) else world
            am.train(make(name), env, episodes=1, max_steps=5)
    for kernel in (atmq, amrl_q):
        for function in (kernel.begin, kernel.decide, kernel.observe):
            assert len(getattr(function, "signatures", [0])) == 1
