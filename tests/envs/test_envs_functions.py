"""ActiveMeasuring with own functions of the true observation."""

import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Tuple
from gymnasium.utils.env_checker import check_env

import actmeasure as am
from actmeasure.envs import ActiveMeasuring


class Counter(gymnasium.Env):
    """Counts to ten; the action is added. Its generator is not used by itself."""

    action_space = Discrete(3)
    observation_space = Discrete(11)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.count, {"secret": self.count}

    def step(self, action):
        self.count = min(self.count + int(action), 10)
        return self.count, 1.0, self.count == 10, False, {"secret": self.count}


class Pair(Counter):
    """The same with observations of a kind that cannot be shown as they are."""

    observation_space = Tuple([Discrete(11), Discrete(2)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return (self.count, 0), {}

    def step(self, action):
        count, *rest = super().step(action)
        return (count, count % 2), *rest


def parity(count):
    return count % 2


def noisy(count, rng):
    return np.array([count + rng.normal()])


PARITY = ("parity", 0.1, parity, Discrete(2))
NOISY = ("noisy", 0.2, noisy, Box(-50.0, 50.0, (1,)))


def counter(**settings):
    return ActiveMeasuring(Counter(), **({"measurements": [PARITY, NOISY]} | settings))


def test_spaces_results_prices_and_fillers():
    env = counter()
    assert env.action_space == MultiDiscrete([3, 3])
    assert dict(env.observation_space.spaces) == {
        "measurement": Discrete(3), "parity": Discrete(3), "noisy": Box(-50.0, 50.0, (1,))
    }  # fmt: skip
    assert env.measuring_cost == (0.1, 0.2)
    observation, info = env.reset(seed=0)
    assert observation == {"measurement": 0, "parity": 2, "noisy": np.zeros(1, np.float32)}
    assert info == {"reward": 0.0, "measuring_cost": 0.0, "measured": False, "measurement": 0}
    observation, reward, *_, info = env.step([1, 1])
    assert observation == {"measurement": 1, "parity": 1, "noisy": np.zeros(1, np.float32)}
    assert reward == 0.9
    assert info == {"reward": 1.0, "measuring_cost": 0.1, "measured": True, "measurement": 1}
    observation, reward, *_, info = env.step([1, 2])
    assert observation["noisy"] == np.float32(2 + np.random.default_rng(0).normal())  # of the environment's generator
    assert observation["noisy"].dtype == np.float32
    assert (observation["measurement"], observation["parity"], reward) == (2, 2, 0.8)
    assert env.step([0, 0])[0]["measurement"] == 0


def test_a_start_that_is_shown():
    env = counter(reveal_start=True)
    assert env.observation_space["measurement"] == Discrete(4)
    assert env.observation_space["start"] == Discrete(12)
    observation, info = env.reset(seed=0)
    assert (observation["measurement"], observation["start"], observation["parity"]) == (3, 0, 2)
    assert info["measured"] is True
    assert info["secret"] == 0  # the environment's own info goes with the true observation, and with it only
    observation, *_, info = env.step([1, 1])
    assert (observation["measurement"], observation["start"]) == (1, 11)
    assert "secret" not in info


@pytest.mark.parametrize(
    "function",
    [
        lambda count, rng: int(rng.integers(2)),
        lambda count, *, rng: int(rng.integers(2)),
        lambda count, rng=None: int(rng.integers(2)),
        lambda count, scale=1, rng=None: int(rng.integers(2)) * scale,
    ],
)
def test_functions_that_draw(function):
    env = counter(measurements=[("drawn", 0.1, function, Discrete(2))])
    env.reset(seed=1)
    drawn = [env.step([0, 1])[0]["drawn"] for _ in range(20)]
    generator = np.random.default_rng(1)
    assert drawn == [int(generator.integers(2)) for _ in range(20)]


@pytest.mark.parametrize("function", [parity, abs, lambda count, factor=1: count * factor, lambda *counts: counts[0]])
def test_functions_that_draw_nothing(function):
    env = counter(measurements=[("f", 0.1, function, Discrete(11))])
    env.reset(seed=1)
    assert env.step([1, 1])[0]["f"] == 1
    assert env.np_random.random() == np.random.default_rng(1).random()


def test_observations_of_any_kind_can_be_measured():
    env = ActiveMeasuring(Pair(), measurements=[("second", 0.1, lambda pair: pair[1], Discrete(2))])
    env.reset(seed=0)
    assert env.step([1, 1])[0] == {"measurement": 1, "second": 1}
    with pytest.raises(am.SpaceError, match="expected Discrete or Box"):
        ActiveMeasuring(Pair(), measurements=[PARITY], reveal_start=True)


def test_one_measurement_with_box_actions():
    angle = ("angle", 0.5, lambda state: np.arctan2(state[1:2], state[:1]), Box(-4.0, 4.0, (1,)))
    env = ActiveMeasuring(gymnasium.make("Pendulum-v1"), measurements=[angle])
    assert env.action_space.shape == (2,)
    env.reset(seed=0)
    observation, *_, info = env.step(np.array([0.1, 1.0], dtype=np.float32))
    assert (observation["measurement"], info["measuring_cost"]) == (1, 0.5)
    assert observation["angle"].shape == (1,)
    assert env.step(np.array([0.1, -1.0], dtype=np.float32))[0]["measurement"] == 0
    with pytest.raises(am.SpaceError, match="with which there can be one measurement, but 2 are given"):
        ActiveMeasuring(gymnasium.make("Pendulum-v1"), measurements=[angle, ("again", *angle[1:])])


@pytest.mark.parametrize(
    ("function", "space"),
    [
        (lambda count: 2, Discrete(2)), (lambda count: -1, Discrete(2)), (lambda count: 0.5, Discrete(2)),
        (lambda count: True, Discrete(2)), (lambda count: None, Discrete(2)), (lambda count: [1], Discrete(2)),
        (lambda count: 3.0, Box(0, 1, ())), (lambda count: [0.5, 0.5], Box(0, 1, (1,))), (lambda count: "x", Box(0, 1, ())),
        (lambda count: np.nan, Box(0, 1, ())), (lambda count: 0.5, Box(0, 9, (), dtype=np.int64)),
    ],
)  # fmt: skip
def test_results_outside_of_the_declared_space(function, space):
    env = counter(measurements=[("bad", 0.1, function, space)])
    env.reset(seed=0)
    env.step([0, 0])
    with pytest.raises(
        am.SpaceError, match=r"the measurement 'bad' returned .* in step 2 of episode 1, expected a value of "
    ):
        env.step([0, 1])


@pytest.mark.parametrize(
    ("measurements", "said"),
    [
        ([], "expected a list of at least one"), (5, "expected a list of at least one"),
        (None, "measuring_cost is None, expected"),
        ([("a", 0.1, parity)], r"expected \(name, price, function, output space\)"),
        ([PARITY, PARITY], "two measurements are named 'parity'"),
        ([("start", *PARITY[1:])], "the name of a measurement is 'start'"),
        ([("measurement", *PARITY[1:])], "name of a measurement"), ([("", *PARITY[1:])], "name of a measurement"),
        ([("a", -1.0, parity, Discrete(2))], "the cost of the measurement 'a' is -1"),
        ([("a", 0.1, "parity", Discrete(2))], "expected a function"),
        ([("a", 0.1, parity, MultiDiscrete([2, 2]))], "expected a gymnasium.spaces.Discrete or Box"),
        ([("a", 0.1, lambda: 0, Discrete(2))], r"takes \(\), expected \(observation\)"),
        ([("a", 0.1, lambda x, y, z: 0, Discrete(2))], r"takes \(x, y, z\), expected \(observation\)"),
        ([("a", 0.1, lambda x, *, y: 0, Discrete(2))], r"takes \(x, y\), expected \(observation\)"),
    ],
)  # fmt: skip
def test_bad_measurements(measurements, said):
    with pytest.raises((am.SpaceError, am.ModelError), match=said):
        ActiveMeasuring(Counter(), measurements=measurements)


def test_both_kinds_of_prices_are_refused():
    with pytest.raises(am.SpaceError, match="measuring_cost and measurements are both given"):
        ActiveMeasuring(Counter(), 0.1, measurements=[PARITY])


@pytest.mark.parametrize("action", [[0, 3], [0, -1], [3, 0], [0], [0.5, 0]])
def test_bad_actions(action):
    env = counter()
    env.reset(seed=0)
    with pytest.raises(am.SpaceError, match="the action is"):
        env.step(action)


@pytest.mark.parametrize("reveal_start", [True, False])
def test_gymnasium_checks_the_environment(reveal_start):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Box limits; errors are raised
        check_env(counter(reveal_start=reveal_start), skip_render_check=True)


def test_pickled_seeded_and_vectorised():
    env = counter()
    again = pickle.loads(pickle.dumps(env))
    for one in (env, again):
        one.reset(seed=5)
    assert [float(env.step([0, 2])[0]["noisy"][0]) for _ in range(9)] == [
        float(again.step([0, 2])[0]["noisy"][0]) for _ in range(9)
    ]
    envs = gymnasium.vector.SyncVectorEnv([counter, counter])
    observations, _ = envs.reset(seed=0)
    assert observations["parity"].tolist() == [2, 2]
    observations, _, _, _, info = envs.step(np.array([[1, 1], [1, 0]]))
    assert observations["measurement"].tolist() == [1, 0]
    assert info["measuring_cost"].tolist() == [0.1, 0.0]


def test_agents_of_this_library_do_not_act_there():
    with pytest.raises(am.SpaceError, match="the measurements of the environment are functions of its observation"):
        am.train(am.agents.make("random"), counter(), 2)
