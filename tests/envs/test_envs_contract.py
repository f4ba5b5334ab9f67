"""What a faulty environment returns is refused with a sentence, before it reaches compiled code that takes it on trust."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import actmeasure as am
from actmeasure.errors import ActMeasureError, AgentError, SpaceError, quoted

MISSING = object()


class Faulty(gymnasium.Env):
    """Sound for two steps, then returns what it was told to."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)

    def __init__(self, first=(0, {}), **faults):
        self.first, self.faults, self.steps = first, faults, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.first

    def step(self, action):
        self.steps += 1
        sound = {"observation": np.int64(self.steps % 3), "reward": 1, "terminated": False, "truncated": np.False_}
        sound |= {"info": {}} | (self.faults if self.steps > 2 else {})
        return sound["whole"] if "whole" in sound else tuple(sound.values())


class Costly(Faulty):
    """Keeps the contract of `ActiveMeasuring` without it, so that `train` is the only one to check."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.MultiDiscrete([2, 2])
    measuring_cost = 0.1

    def step(self, action):
        given = super().step(action)
        if isinstance(given, tuple) and len(given) == 5 and isinstance(given[4], dict):
            own = {"reward": 1.0, "measuring_cost": 0.1, "measured": True} | given[4]
            given = (*given[:4], {key: value for key, value in own.items() if value is not MISSING})
        return given


OBSERVATIONS = [
    7,
    -1,
    4,
    1.7,
    2.0,
    None,
    "1",
    np.array([1]),
    True,
    np.bool_(True),
    10**30,
    np.nan,
    [1],
    1j,
    np.float64(1),
    10**5000,
    np.ma.masked,
]
REWARDS = [
    np.array([1.0, 2.0]),
    np.array([1.0]),
    None,
    np.nan,
    np.inf,
    -np.inf,
    "1",
    np.array([1.0, 2.0]),
    np.array([1.0]),
    [1.0],
    True,
    10**400,
    1e308,
    1j,
    10**5000,
    np.ma.masked,
]
FLAGS = [None, 0, 1, "no", np.array([True, False]), 1.0, []]
FAULTS = [
    *({"observation": value} for value in OBSERVATIONS),
    *({"reward": value} for value in REWARDS),
    *({name: value} for name in ("terminated", "truncated") for value in FLAGS),
    *({"info": value} for value in (None, [1], "info")),
    *({"whole": value} for value in (None, 3, (), (0, 1.0, False, {}), (0, 1.0, False, False, {}, 0), "abcde", {0: 1})),
]
MAKERS = {
    "random": {},
    "atmq": {},
    "dyna-atmq": {},
    "amrl-q": {},
    "foresight": {"beliefs": 50},
    "acno-otp": {"simulations": 5, "exploring_episodes": 2, "nodes": 50},
    "acno-pomcp": {"simulations": 5, "nodes": 50},
}


def model():
    P = np.zeros((3, 2, 3))
    P[:, :, [1, 2, 0]] = np.eye(3)[:, None, :]
    return am.Model.from_arrays(P, np.ones((3, 2)), measuring_cost=0.1)


def agents():
    made = {name: am.agents.make(name, **settings) for name, settings in MAKERS.items()}
    schedule = am.Schedule({state: am.BlindPlan((0,), then="measure") for state in range(3)}, n_states=3)
    made["schedule"] = am.agents.make("schedule", schedule=schedule, model=model())
    made["pomcp"] = am.agents.make("pomcp", model=model(), simulations=5, nodes=50)
    return made


def test_all_agents_are_tried():
    assert set(agents()) == set(am.agents.AGENTS)


@pytest.mark.parametrize("fault", FAULTS, ids=quoted)
def test_every_fault_is_a_sentence_that_names_the_step(fault):
    env = am.ActiveMeasuring(Faulty(**fault), measuring_cost=0.1)
    with pytest.raises(SpaceError, match=r"in step 3 of episode 1, expected .*; "):
        am.train(am.agents.make("random"), env, 2, max_steps=5)


@pytest.mark.parametrize("fault", FAULTS, ids=quoted)
def test_train_checks_environments_that_are_not_wrapped(fault):
    fault = {"observation": 4} if fault.get("observation") == 7 else fault
    with pytest.raises(SpaceError, match=r"in step 3 of episode 1, expected .*; "):
        am.train(am.agents.make("random"), Costly(**fault), 2, max_steps=5)


@pytest.mark.parametrize("key", ["reward", "measuring_cost", "measured"])
@pytest.mark.parametrize(
    "value", [MISSING, None, np.nan, "1", np.array([1.0, 1.0])], ids=lambda value: type(value).__name__
)
def test_train_checks_what_info_tells(key, value):
    with pytest.raises(SpaceError, match=key):
        am.train(am.agents.make("random"), Costly(info={key: value}), 2, max_steps=5)


@pytest.mark.parametrize(
    "given", [*((value, {}) for value in OBSERVATIONS), None, 0, (0,), (0, {}, 1), (0, None)], ids=quoted
)
def test_every_faulty_reset_is_a_sentence(given):
    env = am.ActiveMeasuring(Faulty(first=given), measuring_cost=0.1)
    with pytest.raises(SpaceError, match=r"at the start of episode 1, expected .*; "):
        am.train(am.agents.make("random"), env, 2, max_steps=5)
    with pytest.raises(SpaceError, match=r"at the start of episode 1, expected .*; "):
        am.train(am.agents.make("random"), Costly(first=given), 2, max_steps=5)


@pytest.mark.parametrize("name", am.agents.AGENTS)
@pytest.mark.parametrize("fault", [{"observation": 7}, {"observation": -1}, {"reward": np.nan}], ids=quoted)
def test_no_agent_gets_to_see_it(name, fault):
    env = am.ActiveMeasuring(Faulty(**fault), measuring_cost=0.1)
    with pytest.raises(SpaceError, match="in step 3"):
        am.train(agents()[name], env, 3, max_steps=5)


@pytest.mark.parametrize(
    "name", [name for name in am.agents.AGENTS if name != "random"]
)  # which looks at nothing it is shown
@pytest.mark.parametrize("state", [7, 3, -1, -2, 10**30, 1.0, "1", True, np.array([1])], ids=quoted)
def test_agents_that_are_called_by_hand_refuse_states_there_are_not(name, state):
    agent = agents()[name]
    agent.prepare(am.agents.Task.of_model(model(), planned_episodes=10))
    agent.reseed(0, 0)
    with pytest.raises(ActMeasureError, match="state"):
        agent.begin(state)
    agent.begin(0)
    agent.decide()
    with pytest.raises(
        AgentError, match=r"the state that the agent is shown is .*, expected None or a whole number from 0 to 2"
    ):
        agent.observe(0.0, 0.0, state, False, False)


def test_an_agent_that_plans_on_another_model_is_told_so():
    P = np.zeros((3, 2, 3))
    P[:, :, 1:] = 0.5
    ends = am.Model.from_arrays(P, np.zeros((3, 2)), measuring_cost=0.1, terminal=[False, False, True])
    env = am.ActiveMeasuring(Faulty(), measuring_cost=0.0)
    with pytest.raises(
        am.PlanError, match=r"state 2 was shown and the episode goes on, but it ends there in the model"
    ):
        am.train(am.agents.make("pomcp", model=ends, simulations=5, rollout="random"), Looking(env), 2, max_steps=9)


class Looking(gymnasium.ActionWrapper):
    """Looks whatever the agent decides."""

    def action(self, action):
        return np.array([action[0], 1])


def test_numbers_of_numpy_are_taken():
    for fault in (
        {"observation": np.array(1)},
        {"observation": np.uint8(1)},
        {"reward": np.array(1.5)},
        {"reward": np.float32(1)},
    ):
        env = am.ActiveMeasuring(Faulty(**fault), measuring_cost=0.1)
        assert am.train(am.agents.make("atmq"), env, 2, max_steps=5).steps.tolist() == [5, 5]
    env = am.ActiveMeasuring(Faulty(terminated=np.array(True)), measuring_cost=0.1)
    assert am.train(am.agents.make("atmq"), env, 2, max_steps=5).terminated.tolist() == [True, True]


class Boxed(Faulty):
    observation_space = spaces.Box(-1, 1, (2,))


@pytest.mark.parametrize(
    "value", [None, "text", [1.0], [[1.0, 2.0]], [1.0, "x"], [1j, 0], 3, [[1.0], [1.0, 2.0]]], ids=quoted
)
@pytest.mark.parametrize("look", [0, 1])
def test_observations_of_a_box_have_its_shape(value, look):
    env = am.ActiveMeasuring(Boxed(first=([0.0, 0.0], {}), observation=value), measuring_cost=0.1)
    env.env.steps = 2
    with pytest.raises(SpaceError, match=r"expected numbers of shape \(2,\)"):
        env.reset(), setattr(env.env, "steps", 2), env.step([0, look])


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (np.uint8, [300.7, np.nan, -1], "whole numbers from 0 to 255"),
        (np.uint8, [1, 2, 256], "whole numbers from 0 to 255"),
        (np.uint8, [0, -1, 0], "whole numbers from 0 to 255"),
        (np.uint8, [0.5, 1, 2], "whole numbers from 0 to 255"),
        (np.int8, [np.inf, 0, 0], "whole numbers from -128 to 127"),
        (np.int64, [0.0, 2.0**63, 0.0], "whole numbers from -9223372036854775808 to 9223372036854775807"),
        (np.int64, np.array([0, 1, 2**63], np.uint64), "whole numbers from -9223372036854775808 to"),
        (np.float32, [1e300, 0, 0], "numbers of at most 3.40282e[+]38 in size"),
    ],
    ids=quoted,
)
def test_an_observation_that_the_type_of_a_box_cannot_hold_is_refused(dtype, value, expected):
    env = Faulty(first=(value, {}))
    env.observation_space = spaces.Box(0, 1, (3,), dtype)
    with pytest.raises(SpaceError, match=f"at the start of episode 1, expected {expected}.*of type {np.dtype(dtype)}"):
        am.ActiveMeasuring(env, measuring_cost=0.1).reset()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.uint8, [0.0, 255.0, 1.0]),
        (np.uint8, np.array([0, 255, 1], np.int64)),
        (np.int64, [True, False, True]),
        (np.float32, [np.nan, np.inf, 5]),
        (np.float64, [0.1, -np.inf, 1e300]),
    ],
    ids=quoted,
)
def test_an_observation_that_the_type_of_a_box_can_hold_is_taken(dtype, value):
    env = Faulty(first=(value, {}))
    env.observation_space = spaces.Box(0, 1, (3,), dtype)
    shown = am.ActiveMeasuring(env, measuring_cost=0.1).reset()[0]["observation"]
    assert shown.dtype == dtype
    np.testing.assert_array_equal(shown, np.asarray(value, dtype))


def test_a_vector_of_environments_is_refused_with_what_to_do():
    many = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("Taxi-v4")] * 2)
    with pytest.raises(SpaceError, match=r"type SyncVectorEnv.*; wrap each environment before"):
        am.ActiveMeasuring(many, measuring_cost=0.1)
    with pytest.raises(SpaceError, match=r"type SyncVectorEnv.*; train on its environments one by one"):
        am.train(am.agents.make("random"), many, 2)
    with pytest.raises(SpaceError, match="type NoneType"):
        am.ActiveMeasuring(None, measuring_cost=0.1)


@pytest.mark.parametrize("setting", ["episodes", "max_steps"])
@pytest.mark.parametrize("value", [10**19, 10**40])
def test_absurd_sizes_are_refused(setting, value):
    with pytest.raises(AgentError, match=f"^{setting} is 1000.*, expected a whole number from 1 to "):
        am.train(am.agents.make("atmq"), model(), **{"episodes": 2} | {setting: value})


def test_more_episodes_than_memory_holds(monkeypatch):
    with pytest.raises(AgentError, match=r"^episodes is 10000000000000, expected a whole number from 1 to 1000000000"):
        am.train(am.agents.make("atmq"), model(), episodes=10**13)

    def full(*sizes):
        raise MemoryError

    monkeypatch.setattr(am.Episodes, "empty", full)
    with pytest.raises(AgentError, match="the results of 1,000 episodes do not fit into the memory"):
        am.train(am.agents.make("atmq"), model(), episodes=1000)


def test_more_states_than_tables_can_have():
    class Vast(Costly):
        observation_space = spaces.Discrete(2**40)

    with pytest.raises(SpaceError, match="too many for agents that keep a table of all"):
        am.train(am.agents.make("atmq"), Vast(), 2)


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf, None, "much", np.ones((3, 2)), 1e200], ids=quoted)
def test_the_environments_price_is_checked(cost):
    env = Costly()
    env.measuring_cost = cost
    with pytest.raises(SpaceError, match="measuring_cost is "):
        am.train(am.agents.make("atmq"), env, 2)


def test_a_look_that_is_no_number():
    class Moved(Faulty):
        action_space = spaces.Box(-1, 1, (1,))

    env = am.ActiveMeasuring(Moved(), measuring_cost=0.1)
    env.reset()
    with pytest.raises(SpaceError, match="expected its last number to be above 0"):
        env.step(np.array([0.0, np.nan]))


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_any_number_of_episodes_can_be_planned(name):
    agent = agents()[name]
    assert len(am.train(agent, model(), 3, max_steps=5, planned_episodes=10**30)) == 3
    agent = agents()[name]
    assert len(am.train(agent, am.envs.TabularEnv(model()), 3, max_steps=5, planned_episodes=10**30)) == 3
