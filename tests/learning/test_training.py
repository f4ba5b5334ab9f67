"""Running agents: one source of truth for compiled and Gymnasium loops, continuation, interruption."""

import os
import signal
import threading

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, models, random_schedule

import actmeasure as am


def follower(model, seed=0):
    return am.agents.make("schedule", schedule=random_schedule(model, np.random.default_rng(seed)), model=model)


MAKERS = {
    "random": lambda model: am.agents.make("random", measure_probability=0.3),
    "schedule": follower,
    "atmq": lambda model: am.agents.make("atmq"),
    "dyna-atmq": lambda model: am.agents.make("dyna-atmq"),
    "amrl-q": lambda model: am.agents.make("amrl-q"),
    "foresight": lambda model: am.agents.make("foresight", first=1, sure=2, beliefs=100),
    "acno-otp": lambda model: am.agents.make("acno-otp", simulations=10, exploiting_episodes=7, nodes=100),
    "acno-pomcp": lambda model: am.agents.make("acno-pomcp", simulations=10, nodes=100),
    "pomcp": lambda model: am.agents.make("pomcp", model=model, simulations=10, nodes=100),
}


@pytest.mark.parametrize("name", am.agents.AGENTS)
def test_every_agent_passes_the_public_check(name):
    am.testing.check_agent(MAKERS[name])


@given(models(), st.integers(0, 10**6), st.sampled_from(sorted(MAKERS)))
@examples(40)
def test_compiled_loop_equals_the_gymnasium_loop(model, seed, name):
    compiled = am.train(MAKERS[name](model), model, episodes=15, seed=seed, max_steps=20)
    played = am.train(MAKERS[name](model), am.envs.TabularEnv(model), episodes=15, seed=seed, max_steps=20)
    for field in ("scalarized_return", "reward", "measurements", "steps", "terminated"):
        assert getattr(compiled, field).tolist() == getattr(played, field).tolist()


def test_a_registered_environment_gives_the_same_episodes_as_its_model():
    env = gymnasium.make("actmeasure/FrozenLake-v0", size=4, measuring_cost=0.05)
    model = am.problems.frozen_lake(4, measuring_cost=0.05)
    one = am.train(am.agents.make("random"), env, episodes=30, seed=7)
    other = am.train(am.agents.make("random"), model, episodes=30, seed=7)
    assert one.scalarized_return.tolist() == other.scalarized_return.tolist()


def test_wrapped_environments_run():
    env = am.ActiveMeasuring(gymnasium.make("Taxi-v4"), measuring_cost=0.01)
    episodes = am.train(am.agents.make("random"), env, episodes=3, seed=0, max_steps=50)
    assert episodes.steps.max() <= 50
    assert (episodes.reward - 0.01 * episodes.measurements == pytest.approx(episodes.scalarized_return)) is True


class Recorder(am.agents.Agent):
    """Writes down everything it is told; looks at every other step."""

    def __init__(self):
        self.told = []

    def begin(self, observation):
        self.told.append(("begin", observation))
        self.step = 0

    def decide(self):
        self.step += 1
        return am.Decision(int(self.rng.integers(self.task.n_actions)), self.step % 2 == 0)

    def observe(self, reward, cost, observation, terminated, truncated):
        self.told.append((reward, cost, observation, terminated, truncated))


def test_what_an_agent_of_ones_own_is_told():
    model = am.problems.measuring_value(measuring_cost=0.25)
    agent = Recorder()
    episodes = am.train(agent, model, episodes=50, seed=1, max_steps=6)
    assert agent.task.n_states == 4
    assert agent.task.largest_reward == 1.0
    assert agent.task.planned_episodes == 50
    begins = [told for told in agent.told if told[0] == "begin"]
    steps = [told for told in agent.told if told[0] != "begin"]
    assert begins == [("begin", 0)] * 50
    assert len(steps) == episodes.steps.sum()
    assert sum(told[3] for told in steps) == episodes.terminated.sum()
    assert sum(told[4] for told in steps) == (~episodes.terminated).sum()
    assert {told[1] for told in steps} == {0.0, 0.25}
    assert all((told[2] is not None) == (told[1] > 0) for told in steps)
    assert sum(told[1] for told in steps) == pytest.approx(0.25 * episodes.measurements.sum())
    am.testing.check_agent(lambda model: Recorder())


def test_hidden_starts_are_not_shown():
    model = am.problems.frozen_lake(4).replace(initial=np.eye(16)[0] * 0.5 + np.eye(16)[1] * 0.5, reveal_start=False)
    agent = Recorder()
    am.train(agent, model, episodes=3)
    assert ("begin", None) in agent.told
    assert not any(told == ("begin", 0) for told in agent.told)


def test_episodes_as_a_table():
    episodes = am.train(am.agents.make("random"), am.problems.frozen_lake(4), episodes=5)
    table = episodes.to_pandas()
    assert list(table.columns) == ["scalarized_return", "reward", "measurements", "steps", "terminated"]
    assert table.steps.tolist() == episodes.steps.tolist()
    assert "Episodes(5, mean return" in repr(episodes)
    assert len(episodes.first(2)) == 2
    assert repr(am.Episodes.empty(0)) == "Episodes(none)"


def test_progress_is_reported_up_to_the_end():
    calls = []
    am.train(
        am.agents.make("random"), am.problems.frozen_lake(4), 300, progress=lambda done, so_far: calls.append(done)
    )
    assert calls[-1] == 300
    assert calls == sorted(calls)


@pytest.mark.parametrize("on_environment", [False, True])
def test_an_interrupt_loses_nothing(on_environment):
    model = am.problems.frozen_lake(4)
    world = am.envs.TabularEnv(model) if on_environment else model
    agent = am.agents.make("random")
    pressed = []

    def press(done, so_far):
        if done >= 3 and not pressed:
            pressed.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted after"):
        before = am.train(agent, world, episodes=500_000, seed=5, progress=press)
    assert 3 <= len(before) < 500_000
    assert agent.episodes_done == len(before)
    after = am.train(agent, world, episodes=50, seed=5)
    whole = am.train(am.agents.make("random"), model, episodes=len(before) + 50, seed=5)
    joined = np.concatenate([before.scalarized_return, after.scalarized_return])
    assert joined.tolist() == whole.scalarized_return.tolist()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_training_works_outside_the_main_thread():
    results = []
    work = threading.Thread(
        target=lambda: results.append(am.train(am.agents.make("random"), am.problems.measuring_value(), episodes=5))
    )
    work.start()
    work.join()
    assert len(results[0]) == 5


def test_numbers_of_numpy():
    model = am.problems.measuring_value()
    for world in (model, am.envs.TabularEnv(model)):
        plain = am.train(am.agents.make("random"), world, 5, seed=2, max_steps=7)
        numpys = am.train(am.agents.make("random"), world, np.int64(5), seed=np.uint8(2), max_steps=np.int32(7))
        assert numpys.scalarized_return.tolist() == plain.scalarized_return.tolist()


class TestLostSchedules:
    """A plan that does not say how to go on ends in a sentence, not in whatever memory lies behind the plans."""

    model = am.problems.measuring_value()
    #: As large as `model`, but one stays wherever one is, for ever.
    stay = am.Model.from_arrays(np.repeat(np.eye(4)[:, None], 2, axis=1), np.zeros((4, 2)), measuring_cost=0.1)

    def worlds(self, model):
        return model, am.envs.TabularEnv(model)

    def run(self, plans, world, start=None, model=None):
        agent = am.agents.make("schedule", schedule=am.Schedule(plans, 4, start), model=model or self.model)
        return am.train(agent, world, episodes=20, max_steps=50)

    def test_the_end_of_a_plan_that_says_it_is_over(self):
        for world in self.worlds(self.model):
            with pytest.raises(
                am.ScheduleError, match=r"plan for state 0 \('s0'\) says that the episode is over after it"
            ):
                self.run({0: am.BlindPlan((1,), then="end")}, world)

    def test_plans_on_a_model_that_is_not_theirs(self):
        for world in self.worlds(self.stay):
            with pytest.raises(
                am.ScheduleError, match="says that the episode is over after it, but the episode still runs"
            ):
                self.run({0: am.BlindPlan((1, 1), then="end")}, world)
            # On its own model this plan surely ends the episode, so that no state is known after it.
            with pytest.raises(
                am.ScheduleError, match="is over, or the state known, after it, but the episode still runs"
            ):
                self.run({0: am.BlindPlan((1, 1), then="known")}, world)
            followed = self.run({0: am.BlindPlan((0,), then="known")}, world)
            assert followed.steps.tolist() == [50] * 20

    def test_the_plan_for_a_hidden_start(self):
        hidden = self.model.replace(initial=[0.5, 0.5, 0.0, 0.0], reveal_start=False)
        for world in self.worlds(hidden):
            with pytest.raises(
                am.ScheduleError, match="the plan for a start that is not shown says that the episode is"
            ):
                self.run({}, world, start=am.BlindPlan((0,), then="end"), model=hidden)

    def test_a_look_that_shows_nothing(self):
        agent = am.agents.make("schedule", schedule=am.Schedule({0: am.BlindPlan((1,))}, 4), model=self.model)
        agent.begin(0)
        assert agent.decide() == am.Decision(1, True)
        agent.observe(0.0, 0.1, None, False, False)
        for _ in range(2):
            with pytest.raises(am.ScheduleError, match="looks at its end, but nothing was shown"):
                agent.decide()
            agent.observe(0.0, 0.0, None, False, False)

    def test_deciding_before_the_beginning(self):
        agent = am.agents.make("schedule", schedule=am.Schedule({}, 4), model=self.model)
        with pytest.raises(am.ScheduleError, match="has no plan"):
            agent.decide()


def test_a_hidden_start_that_can_be_one_state_only():
    """The plan of that state is followed, or else the one for the start; by evaluation and agent alike."""
    model = am.problems.measuring_value().replace(reveal_start=False)
    gamble, back = am.BlindPlan((1, 1), then="end"), am.BlindPlan((0, 1, 1), then="end")
    for plans, start, steps in (({}, gamble, 2), ({0: back}, gamble, 3), ({0: back}, None, 3)):
        schedule = am.Schedule(plans, 4, start)
        assert am.evaluate(model, schedule, horizon=10).steps == steps
        for world in (model, am.envs.TabularEnv(model)):
            agent = am.agents.make("schedule", schedule=schedule, model=model)
            assert am.train(agent, world, episodes=3).steps.tolist() == [steps] * 3
    with pytest.raises(am.ScheduleError, match="no plan for it"):
        am.evaluate(model, am.Schedule({}, 4))


@pytest.mark.slow
def test_a_schedule_for_a_gymnasium_model_runs_on_the_environment():
    """The model has one state more, the end, which the environment does not know of."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    model = am.Model.from_gymnasium(env, measuring_cost=0.01)
    careful = am.Schedule.always_measure([0, 3, 3, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 2, 1, 0, -1])
    agent = am.agents.make("schedule", schedule=careful, model=model)
    played = am.train(agent, am.ActiveMeasuring(env, measuring_cost=0.01), episodes=1000, seed=1)
    exact = am.evaluate(model, careful, horizon=100)  # Gymnasium's own limit
    for name in ("scalarized_return", "measurements", "steps"):
        values = getattr(played, name)
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - getattr(exact, name)) <= 5 * error, name
    assert 0.5 < played.reward.mean() < 0.9


class TestBadInput:
    model = am.problems.measuring_value()

    @pytest.mark.parametrize("numbers", [{"episodes": 0}, {"episodes": 1.5}, {"seed": -1}, {"max_steps": 0}])
    def test_numbers(self, numbers):
        with pytest.raises(am.AgentError, match="expected a whole number from"):
            am.train(am.agents.make("random"), self.model, **{"episodes": 1} | numbers)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"planned_episodes": 0}, "planned_episodes is 0, expected a whole number from 1 up"),
            ({"planned_episodes": 2.5}, "planned_episodes is 2.5"),
            ({"discount": 0}, "discount is 0, expected a number above 0 and at most 1"),
            ({"discount": 1.5}, "discount is 1.5"),
            ({"discount": "high"}, "discount is 'high', expected a number"),
        ],
    )
    def test_what_the_agent_is_told(self, settings, message):
        with pytest.raises(am.AgentError, match=message):
            am.train(am.agents.make("random"), self.model, episodes=1, **settings)

    @pytest.mark.parametrize(
        "decision",
        [None, 0, (0, True), am.Decision(2, True), am.Decision(-1, True), am.Decision(0.5, True), am.Decision(0, 2)],
    )
    def test_decisions_that_are_none(self, decision):
        class Odd(Recorder):
            def decide(self):
                return decision

        for world in (self.model, am.envs.TabularEnv(self.model)):
            with pytest.raises(
                am.AgentError, match=r"decide\(\) of Odd gave .*expected a Decision with an action from 0 to 1"
            ):
                am.train(Odd(), world, episodes=1)

    def test_decisions_of_numpys_numbers(self):
        class Fine(Recorder):
            def decide(self):
                return am.Decision(np.int64(1), np.bool_(True))

        assert am.train(Fine(), self.model, episodes=1).steps[0] == 2

    def test_agents_that_do_not_take_in_the_task(self):
        class Deaf(Recorder):
            def prepare(self, task):
                pass

        with pytest.raises(am.AgentError, match=r"prepare\(\) of Deaf does not set the task; call super"):
            am.train(Deaf(), self.model, episodes=1)

    def test_no_agent(self):
        with pytest.raises(am.AgentError, match=r"expected an actmeasure Agent; use am.agents.make\('random'\)"):
            am.train("random", self.model, episodes=1)
        with pytest.raises(am.AgentError, match="expected an actmeasure Agent; call the class"):
            am.train(am.agents.RandomAgent, self.model, episodes=1)

    def test_no_world(self):
        with pytest.raises(am.SpaceError, match="expected a Model or a Gymnasium environment"):
            am.train(am.agents.make("random"), 3, episodes=1)

    def test_environment_in_which_looking_is_free(self):
        with pytest.raises(am.SpaceError, match="wrap it: ActiveMeasuring"):
            am.train(am.agents.make("random"), gymnasium.make("Taxi-v4"), episodes=1)

    def test_continuous_environment(self):
        env = am.ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=0.1)
        with pytest.raises(am.SpaceError, match="finitely many states"):
            am.train(am.agents.make("random"), env, episodes=1)

    def test_agent_trained_for_another_size(self):
        agent = am.agents.make("random")
        am.train(agent, self.model, episodes=1)
        with pytest.raises(am.AgentError, match="trained with 4 states and 2 actions, but this task has 16 and 4"):
            am.train(agent, am.problems.frozen_lake(4), episodes=1)

    def test_names_and_settings(self):
        with pytest.raises(am.AgentError, match="did you mean 'random'"):
            am.agents.make("randon")
        with pytest.raises(am.AgentError, match="did you mean 'measure_probability'"):
            am.agents.make("random", measuring_probability=1)
        with pytest.raises(am.AgentError, match="measure_probability is 2"):
            am.agents.make("random", measure_probability=2)
        with pytest.raises(am.AgentError, match="needs schedule and model"):
            am.agents.make("schedule")
        with pytest.raises(am.AgentError, match="measure_probability is 'x', expected a probability"):
            am.agents.make("random", measure_probability="x")
        with pytest.raises(am.AgentError, match="schedule is 3, expected a Schedule"):
            am.agents.make("schedule", schedule=3, model=4)
        with pytest.raises(am.AgentError, match="model is 4, expected the Model"):
            am.agents.make("schedule", schedule=am.Schedule({}, 4), model=4)
        with pytest.raises(am.AgentError, match=r"unknown agent \['random'\]; did you mean 'random'"):
            am.agents.make(["random"])

    def test_schedules_that_do_not_fit(self):
        schedule = am.Schedule({0: am.BlindPlan((1,))}, 4)
        for world in (self.model, am.envs.TabularEnv(self.model)):
            agent = am.agents.make("schedule", schedule=schedule, model=self.model)
            with pytest.raises(am.ScheduleError, match=r"no plan for state [12]"):
                am.train(agent, world, episodes=20)
        agent = am.agents.make("schedule", schedule=schedule, model=self.model)
        with pytest.raises(am.AgentError, match="the schedule is for 4 states"):
            am.train(agent, am.problems.frozen_lake(4), episodes=1)
        with pytest.raises(am.ScheduleError, match="may lead to 2 states"):
            am.agents.make("schedule", schedule=am.Schedule({0: am.BlindPlan((1,), then="known")}, 4), model=self.model)


class HalfContract(gymnasium.Env):
    """Has a measuring cost, and not all that goes with it."""

    observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiDiscrete([2, 2])

    def __init__(self, measuring_cost=0.1, info=None):
        self.measuring_cost, self.info = measuring_cost, info or {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 0.0, True, False, self.info


FULL_INFO = {"reward": 0.0, "measuring_cost": 0.0, "measured": False}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (HalfContract(), "info of the environment's step has no 'reward'"),
        (HalfContract(measuring_cost=None), "measuring_cost is None"),
        (HalfContract(info=FULL_INFO | {"reward": float("nan")}), "expected one finite number"),
    ],
)
def test_half_a_measuring_contract_is_a_sentence(env, words):
    with pytest.raises(am.SpaceError, match=words):
        am.train(am.agents.make("atmq"), env, 2)


def test_an_environment_of_ones_own_with_the_whole_contract_runs():
    assert len(am.train(am.agents.make("atmq"), HalfContract(info=FULL_INFO), 3)) == 3


@pytest.mark.parametrize("change", [{"measuring_cost": 5.0}, {"discount": 0.9}, {"reveal_start": False}])
def test_a_learner_goes_on_only_with_the_task_it_learned_for(change):
    lake = am.problems.frozen_lake(4)
    agent = am.agents.make("atmq")
    am.train(agent, lake, 5)
    with pytest.raises(am.AgentError, match="not what the agent was trained with"):
        am.train(agent, lake.replace(**change), 5)
