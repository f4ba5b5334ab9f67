"""ActiveMeasuring around environments of every kind of space."""

import copy
import pickle
import threading
import warnings
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import actmeasure as am
from actmeasure.envs import ActiveMeasuring

# What Gymnasium remarks about any wrapped environment, or about the base environment's own spaces.
EXPECTED_REMARKS = (
    ".*different from the unwrapped version",
    ".*Box action spaces, we recommend using a symmetric and normalized",
    ".*Box observation space (minimum|maximum) value is -?infinity",
    ".*not having a spec",
)


def check(env):
    with warnings.catch_warnings():
        for remark in EXPECTED_REMARKS:
            warnings.filterwarnings("ignore", message=remark)
        check_env(env, skip_render_check=True)


class Tiny(gymnasium.Env):
    """Counts its steps, shows them in every observation and info, and reuses its arrays, as some environments do."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, action_space=None, observation_space=None, ends_after=5, extra=None):
        self.action_space = spaces.Discrete(3) if action_space is None else action_space
        self.observation_space = spaces.Discrete(10) if observation_space is None else observation_space
        self.ends_after = ends_after
        self.extra = {} if extra is None else extra
        self.buffer = np.zeros(2)
        self.received = None
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self.shown = self._fresh()
        return self._observe()

    def step(self, action):
        self.received = action
        assert action in self.action_space
        self.count += 1
        observation, info = self._observe()
        return observation, np.float32(2.0), self.count >= self.ends_after, False, info

    def _fresh(self):
        space = self.observation_space
        if isinstance(space, spaces.Discrete):
            return space.start
        return np.array(space.low if isinstance(space, spaces.Box) else 0)

    def _observe(self):
        self.buffer[:] = self.count
        info = {"state": self.buffer, "nested": {"state": [self.buffer]}, **self.extra}
        if isinstance(self.observation_space, spaces.Discrete):
            return np.int64(self.observation_space.start + self.count), info
        # Changed in place, so that whoever keeps a reference would see the next state for free.
        self.shown += np.ones_like(self.shown)
        return self.shown, info


ACTION_SPACES = {
    "discrete": spaces.Discrete(3),
    "discrete from 5": spaces.Discrete(3, start=5),
    "multi-discrete": spaces.MultiDiscrete([3, 4]),
    "multi-discrete from -1": spaces.MultiDiscrete([3, 4], start=[-1, 2]),
    "multi-discrete int32": spaces.MultiDiscrete([3, 4], dtype=np.int32),
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "box float64": spaces.Box(-2, 3, (1,), np.float64),
    "box int8": spaces.Box(0, 5, (2,), np.int8),
    "box uint8": spaces.Box(0, 5, (2,), np.uint8),
}
OBSERVATION_SPACES = {
    "discrete": spaces.Discrete(20),
    "discrete from -3": spaces.Discrete(20, start=-3),
    "box": spaces.Box(-100, 100, (3,), np.float32),
    "box without zero": spaces.Box(5, 100, (3,), np.float64),
    "box below zero": spaces.Box(-100, -20, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "scalar box": spaces.Box(0, 100, (), np.float32),
    "integer box": spaces.Box(3, 100, (2, 2), np.int64),
}


@pytest.mark.parametrize("observed", OBSERVATION_SPACES)
@pytest.mark.parametrize("acted", ACTION_SPACES)
@pytest.mark.parametrize("reveal_start", [True, False])
def test_check_env_on_every_kind_of_space(acted, observed, reveal_start):
    base = Tiny(copy.deepcopy(ACTION_SPACES[acted]), copy.deepcopy(OBSERVATION_SPACES[observed]))
    check(ActiveMeasuring(base, measuring_cost=0.1, reveal_start=reveal_start))


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0", "Taxi-v4", "CliffWalking-v1", "FrozenLake-v1"]
)
def test_check_env_on_gymnasiums_own(name):
    check(ActiveMeasuring(gymnasium.make(name), measuring_cost=0.1))


def test_spaces_of_discrete():
    env = ActiveMeasuring(Tiny(spaces.Discrete(3, start=5), spaces.Discrete(4, start=-2)), 0.1)
    assert env.action_space == spaces.MultiDiscrete([3, 2], start=[5, 0])
    assert env.observation_space == spaces.Discrete(5, start=-2)
    assert env.reset()[0] == -2
    assert env.step([5, 0])[0] == 2  # the last value: nothing seen
    assert env.unwrapped.received == 5
    assert env.step([7, 1])[0] == 0


def test_spaces_of_box():
    env = ActiveMeasuring(Tiny(spaces.Box(-2, 3, (2,), np.float32), spaces.Box(5, 10, (2,), np.float32)), 0.1)
    assert env.action_space == spaces.Box(np.float32([-2, -2, -1]), np.float32([3, 3, 1]), dtype=np.float32)
    assert env.observation_space["observation"] == spaces.Box(0, 10, (2,), np.float32)
    assert env.observation_space["measured"] == spaces.Discrete(2)
    env.reset()
    observation = env.step(np.float32([1, 2, 0.001]))[0]
    assert observation["measured"] == 1
    np.testing.assert_array_equal(observation["observation"], np.float32([7, 7]))
    np.testing.assert_array_equal(env.unwrapped.received, np.float32([1, 2]))
    observation = env.step(np.float32([1, 2, 0]))[0]
    assert observation["measured"] == 0
    np.testing.assert_array_equal(observation["observation"], np.zeros(2))


def test_a_box_that_has_zero_is_left_alone():
    image = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    assert ActiveMeasuring(Tiny(observation_space=image), 0.1).observation_space["observation"] == image


def test_multi_discrete_gets_one_more_component():
    env = ActiveMeasuring(Tiny(spaces.MultiDiscrete([3, 4], start=[-1, 2], dtype=np.int32)), 0.1)
    assert env.action_space == spaces.MultiDiscrete([3, 4, 2], start=[-1, 2, 0], dtype=np.int32)
    env.reset()
    env.step(env.action_space.sample())
    assert env.unwrapped.received.dtype == np.int32


def test_reward_is_scalarized_and_info_says_how():
    env = ActiveMeasuring(Tiny(), 0.25)
    _, info = env.reset(seed=0)
    assert (info["reward"], info["measuring_cost"], info["measured"]) == (0.0, 0.0, True)
    _, reward, terminated, truncated, info = env.step(np.array([1, 1]))
    assert reward == 1.75
    assert isinstance(reward, float)
    assert (info["reward"], info["measuring_cost"], info["measured"]) == (2.0, 0.25, True)
    _, reward, _, _, info = env.step(np.array([1, 0]))
    assert reward == 2.0
    assert info == {"reward": 2.0, "measuring_cost": 0.0, "measured": False}
    assert terminated is False
    assert truncated is False


def test_a_decision_is_an_action():
    env = ActiveMeasuring(Tiny(), 0.25)
    env.reset()
    assert env.step(am.Decision(2, True))[4]["measured"] is True
    assert env.unwrapped.received == 2


def test_our_entries_of_info_win():
    env = ActiveMeasuring(Tiny(extra={"reward": "theirs", "measured": "theirs", "other": 1}), 0.25)
    assert env.reset()[1]["reward"] == 0.0
    info = env.step([0, 1])[4]
    assert (info["reward"], info["measured"], info["other"]) == (2.0, True, 1)


@pytest.mark.parametrize("name", ["Taxi-v4", "FrozenLake-v1"])
def test_blind_steps_leak_nothing(name):
    env = ActiveMeasuring(gymnasium.make(name), 0.1)
    _, info = env.reset(seed=0)
    assert "prob" in info  # the start is shown
    seen = env.step([0, 1])[4]
    assert "prob" in seen
    observation, _, _, _, info = env.step([0, 0])
    assert observation == env.observation_space.n - 1
    assert set(info) == {"reward", "measuring_cost", "measured"}


def test_a_hidden_start_leaks_nothing():
    env = ActiveMeasuring(gymnasium.make("Taxi-v4"), 0.1, reveal_start=False)
    observation, info = env.reset(seed=0)
    assert observation == 500
    assert info == {"reward": 0.0, "measuring_cost": 0.0, "measured": False}


@pytest.mark.parametrize("space", [spaces.Discrete(10), spaces.Box(0, 100, (2,), np.float32)])
def test_what_was_shown_does_not_follow_the_environment(space):
    env = ActiveMeasuring(Tiny(observation_space=space), 0.1)
    env.reset()
    shown, _, _, _, info = env.step([0, 1])
    before = copy.deepcopy((shown, info))
    env.step([0, 0])  # the environment writes the next state into the arrays it showed
    np.testing.assert_equal((shown, info), before)


def test_info_that_cannot_be_copied_is_left_out():
    env = ActiveMeasuring(Tiny(extra={"lock": threading.Lock(), "other": 1}), 0.1)
    info = env.reset()[1]
    assert "lock" not in info
    assert info["other"] == 1


def test_a_blind_end_is_noticed_but_not_seen():
    env = ActiveMeasuring(Tiny(ends_after=1), 0.1)
    env.reset()
    observation, _, terminated, _, info = env.step([0, 0])
    assert (observation, terminated, info["measured"]) == (10, True, False)


def test_max_steps_and_the_environments_own_truncation():
    env = ActiveMeasuring(Tiny(ends_after=100), 0.1, max_steps=3)
    for _ in range(2):
        env.reset()
        assert [env.step([0, 0])[3] for _ in range(3)] == [False, False, True]
    ending = ActiveMeasuring(Tiny(ends_after=3), 0.1, max_steps=3)
    ending.reset()
    assert [ending.step([0, 0])[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]
    short = ActiveMeasuring(gymnasium.wrappers.TimeLimit(Tiny(ends_after=100), 2), 0.1, max_steps=3)
    short.reset()
    assert [short.step([0, 0])[3] for _ in range(2)] == [False, True]


def test_seeding_is_reproducible():
    env = ActiveMeasuring(gymnasium.make("Taxi-v4", is_rainy=True), 0.1)
    env.action_space.seed(3)
    actions = [env.action_space.sample() for _ in range(50)]

    def run():
        return [env.reset(seed=7)[0]] + [env.step(action)[:4] for action in actions]

    assert run() == run()


def test_vectorised():
    wrap = partial(ActiveMeasuring, measuring_cost=0.1)
    for mode in ("sync", "async"):
        envs = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode, wrappers=[wrap])
        observations, info = envs.reset(seed=0)
        assert observations["observation"].shape == (2, 4)
        observations, rewards, _, _, info = envs.step(np.array([[0, 1], [1, 0]]))
        assert observations["measured"].tolist() == [1, 0]
        np.testing.assert_allclose(rewards, [0.9, 1.0])
        assert info["measured"].tolist() == [True, False]
        envs.close()


def test_made_again_from_its_spec_and_pickled():
    env = ActiveMeasuring(gymnasium.make("Taxi-v4"), 0.1, reveal_start=False, max_steps=7)
    again = gymnasium.make(env.spec)
    assert isinstance(again, ActiveMeasuring)
    assert (again.measuring_cost, again.reveal_start, again.max_steps) == (0.1, False, 7)
    assert pickle.loads(pickle.dumps(env)).measuring_cost == 0.1


def test_measuring_cost_is_found_through_other_wrappers():
    env = gymnasium.wrappers.TimeLimit(ActiveMeasuring(Tiny(), 0.1), 5)
    assert env.get_wrapper_attr("measuring_cost") == 0.1


@pytest.mark.parametrize(
    ("space", "remedy"),
    [
        (spaces.Dict(a=spaces.Discrete(2)), "FlattenObservation"),
        (spaces.Tuple([spaces.Discrete(2)]), "FlattenObservation"),
        (spaces.MultiDiscrete([2, 3]), "FlattenObservation"),
        (spaces.MultiBinary(3), "FlattenObservation"),
        (spaces.Sequence(spaces.Discrete(2)), "TransformObservation"),
    ],
)
def test_refused_observations_name_the_wrapper_to_apply(space, remedy):
    with pytest.raises(
        am.SpaceError, match=rf"observation space of .*{type(space).__name__}.*gymnasium.wrappers.{remedy}"
    ):
        ActiveMeasuring(Tiny(observation_space=space), 0.1)


def test_the_wrapper_it_names_helps():
    blackjack = gymnasium.make("Blackjack-v1")
    with pytest.raises(am.SpaceError, match="FlattenObservation"):
        ActiveMeasuring(blackjack, 0.1)
    check(ActiveMeasuring(gymnasium.wrappers.FlattenObservation(blackjack), 0.1))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict(a=spaces.Discrete(2)),
        spaces.Tuple([spaces.Discrete(2)]),
        spaces.MultiBinary(3),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, ()),
        spaces.MultiDiscrete([[2, 2], [2, 2]]),
    ],
)
def test_refused_actions_name_the_wrapper_to_apply(space):
    with pytest.raises(am.SpaceError, match=r"(?s)action space of .*gymnasium.wrappers.TransformAction"):
        ActiveMeasuring(Tiny(action_space=space), 0.1)


@pytest.mark.parametrize("space", [spaces.MultiBinary(3), spaces.Box(-1, 1, (2, 2)), spaces.Box(-1, 1, ())])
def test_transform_action_helps(space):
    flat = gymnasium.wrappers.TransformAction(
        Tiny(action_space=space), lambda action: spaces.unflatten(space, action), spaces.flatten_space(space)
    )
    check(ActiveMeasuring(flat, 0.1))


@pytest.mark.parametrize("cost", [-0.1, np.nan, np.inf, "much", None, [0.1, 0.2]])
def test_bad_cost(cost):
    with pytest.raises(am.ModelError, match=r"measuring_cost is .*, expected a .*number that is 0 or more"):
        ActiveMeasuring(Tiny(), cost)


@pytest.mark.parametrize("steps", [0, -1, 2.5, "ten", None])
def test_bad_max_steps(steps):
    with pytest.raises(am.ModelError, match=r"max_steps is .*, expected a whole number"):
        ActiveMeasuring(Tiny(), 0.1, max_steps=steps)


@pytest.mark.parametrize(
    "action",
    [1, [1], [1, 2], [1, -1], [9, 0], [3, 0], [-1, 0], [1, 0, 0], [1.0, 0.0], None, "ab", [[1], [0, 1]], {"a": 1}],
)
def test_bad_action(action):
    env = ActiveMeasuring(Tiny(), 0.1)
    env.reset()
    with pytest.raises(am.SpaceError, match=r"the action is .*, expected"):
        env.step(action)


def test_actions_are_counted_from_where_the_space_begins():
    env = ActiveMeasuring(Tiny(spaces.Discrete(3, start=5)), 0.1)
    env.reset()
    for action in ([4, 0], [8, 0]):
        with pytest.raises(am.SpaceError, match=r"expected whole numbers from \[5, 0\] to \[7, 1\]"):
            env.step(action)


def test_bad_reveal_start():
    with pytest.raises(am.ModelError, match="reveal_start is 'no', expected True or False"):
        ActiveMeasuring(Tiny(), 0.1, reveal_start="no")
    with pytest.raises(am.ModelError, match="reveal_start is 'no', expected True or False"):
        am.envs.TabularEnv(am.problems.measuring_value(), reveal_start="no")


def test_wrapping_twice_is_refused():
    with pytest.raises(am.SpaceError, match="already costs"):
        ActiveMeasuring(gymnasium.wrappers.TimeLimit(ActiveMeasuring(Tiny(), 0.1), 5), 0.1)
    with pytest.raises(am.SpaceError, match="already costs"):
        ActiveMeasuring(gymnasium.make("actmeasure/MeasuringValue-v0"), 0.1)
