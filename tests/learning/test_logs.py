"""Watching a training: a callback for every episode, files for TensorBoard, CSV otherwise, and looks in info["episode"]."""

import csv
import sys

import gymnasium
import numpy as np
import pytest

import actmeasure as am
from actmeasure.envs import ActiveMeasuring, LookStatistics, TabularEnv
from actmeasure.learning import CsvLog, TensorBoardLog, log_to

LAKE = am.problems.frozen_lake(4)


@pytest.mark.parametrize("world", [LAKE, TabularEnv(LAKE)])
def test_the_callback_gets_every_episode_in_order(world):
    agent, seen = am.agents.make("amrl-q"), []
    parts = [
        am.train(agent, world, 20, seed=1, max_steps=30, planned_episodes=40, callback=seen.append) for _ in range(2)
    ]
    assert [episode.number for episode in seen] == list(range(40))
    for name in ("scalarized_return", "reward", "measurements", "steps", "terminated"):
        expected = np.concatenate([getattr(part, name) for part in parts])
        assert [getattr(episode, name) for episode in seen] == expected.tolist()
    assert all(episode.measuring_cost == episode.reward - episode.scalarized_return for episode in seen)


def test_an_error_in_a_callback_ends_training():
    def fail(episode):
        raise LookupError("of the callback")

    agent = am.agents.make("random")
    with pytest.raises(LookupError, match="of the callback"):
        am.train(agent, LAKE, 5, callback=fail)


def test_a_csv_file_has_a_row_for_every_episode_at_once(tmp_path):
    with CsvLog(tmp_path / "new" / "log.csv") as log:
        found = am.train(am.agents.make("random"), LAKE, 7, callback=log)
        rows = list(csv.DictReader((tmp_path / "new" / "log.csv").read_text().splitlines()))
    assert [float(row["scalarized_return"]) for row in rows] == found.scalarized_return.tolist()
    assert [int(row["number"]) for row in rows] == list(range(7))
    with pytest.raises(am.AgentError, match="cannot write"):
        CsvLog(tmp_path)


def test_without_tensorboard_the_log_is_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with log_to(tmp_path) as log:
        am.train(am.agents.make("random"), LAKE, 2, callback=log)
    assert len((tmp_path / "episodes.csv").read_text().splitlines()) == 3
    with pytest.raises(am.MissingExtraError, match="needs the optional extra 'tensorboard'"):
        TensorBoardLog(tmp_path)


@pytest.mark.extras("tensorboard")
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_is_written(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    with log_to(tmp_path) as log:
        found = am.train(am.agents.make("random"), LAKE, 6, callback=log)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["tensors"]) == {
        f"episode/{name}" for name in ("return", "reward", "looks", "looks_cost", "steps")
    }
    written = [(event.step, float(make_ndarray(event.tensor_proto))) for event in events.Tensors("episode/return")]
    assert written == [(number, pytest.approx(value)) for number, value in enumerate(found.scalarized_return)]


def counted(env, steps=40):
    """The end of an episode of looks at every second step, and the looks of it."""
    env.reset(seed=0)
    for step in range(steps):
        *_, terminated, truncated, info = env.step([step % int(env.action_space.nvec[0]), step % 2])
        if terminated or truncated:
            return step + 1, (step + 1) // 2, info["episode"]
        assert "episode" not in info
    raise AssertionError


@pytest.mark.parametrize("inside", [lambda env: env, gymnasium.wrappers.RecordEpisodeStatistics])
def test_looks_and_their_cost_are_in_the_statistics_of_an_episode(inside):
    env = LookStatistics(inside(ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.1, max_steps=30)))
    for _ in range(2):
        steps, looks, found = counted(env)
        assert (found["l"], found["looks"]) == (steps, looks)
        assert found["looks_cost"] == pytest.approx(0.1 * looks)
        assert set(found) == {"r", "l", "t", "looks", "looks_cost"}


def test_statistics_need_an_environment_in_which_looking_costs():
    with pytest.raises(am.SpaceError, match="looking costs nothing"):
        LookStatistics(gymnasium.make("Taxi-v4"))


@pytest.mark.extras("torch", "stable_baselines3")
def test_stable_baselines_keeps_the_looks_of_episodes():
    import stable_baselines3

    env = am.envs.monitored(ActiveMeasuring(gymnasium.make("CartPole-v1"), measuring_cost=0.01))
    agent = stable_baselines3.PPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    agent.learn(256)
    assert agent.ep_info_buffer
    for episode in agent.ep_info_buffer:
        assert episode["looks_cost"] == pytest.approx(0.01 * episode["looks"])
        assert episode["r"] == pytest.approx(episode["l"] - episode["looks_cost"], abs=1e-4)
