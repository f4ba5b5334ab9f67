"""Training with several seeds: the same as one by one, statistics, tables, pictures, and what happens when it is cut short."""

import math
import multiprocessing
import os
import signal
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import actmeasure as am
from actmeasure.learning import RandomAgent
from actmeasure.statistics import running_mean
from actmeasure.studies import SeedRuns, pool, train_agent
from actmeasure.studies import seeds as seed_training
from actmeasure.studies.seed_runs import learning_curve
from actmeasure.studies.seeds import FinishedEpisodes, Training

#: More episodes than are ever finished here.
ENDLESS = 1_000_000


class Failing(RandomAgent):
    """Cannot be prepared."""

    def prepare(self, task):
        raise ZeroDivisionError("nothing to divide by")


@pytest.fixture(scope="module")
def lake():
    return am.problems.frozen_lake(4)


def same(one, other):
    mine, theirs = one.columns(), other.columns()
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def made_up(*lengths, seed=0):
    """Runs with random results."""
    rng = np.random.default_rng(seed)
    episodes = tuple(
        am.Episodes(
            rng.normal(size=n), rng.normal(size=n), rng.integers(0, 9, n), rng.integers(1, 9, n), rng.random(n) < 0.5
        )
        for n in lengths
    )
    return SeedRuns("made-up", tuple(range(len(lengths))), episodes)


def test_the_number_of_workers_changes_nothing(lake):
    settings = {"preset": "published", "learning_rate": 0.2}
    seen = set()
    several = am.train_seeds(
        "atmq", lake, 60, range(3, 6), max_steps=50, settings=settings, workers=2,
        progress=lambda now: seen.add(len(multiprocessing.active_children())),
    )  # fmt: skip
    one = am.train_seeds("atmq", lake, 60, range(3, 6), max_steps=50, settings=settings, workers=1)
    assert max(seen) == 2  # each has a core of its own, if there are two
    assert not multiprocessing.active_children()
    assert same(several, one)
    assert several.seeds == (3, 4, 5)
    assert several.stopped == "done"
    for seed, episodes in zip(one.seeds, one.episodes, strict=True):
        alone = am.train(am.agents.make("atmq", **settings), lake, 60, seed=seed, max_steps=50)
        np.testing.assert_array_equal(episodes.scalarized_return, alone.scalarized_return)


@pytest.mark.slow
def test_a_run_that_takes_long_is_handed_over_and_gives_the_same(lake, monkeypatch):
    monkeypatch.setattr(seed_training, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(seed_training, "STARTING_SECONDS", -1e9)
    monkeypatch.setattr(seed_training, "available_cores", lambda: 2)
    monkeypatch.setattr(seed_training, "DELIVERY_SECONDS", 0.0)
    shown = []
    runs = am.train_seeds("amrl-q", lake, 200, 3, progress=shown.append)
    assert same(runs, am.train_seeds("amrl-q", lake, 200, 3, workers=1))
    assert shown[-1].done == shown[-1].total == 600


def test_a_short_run_starts_no_processes(lake, monkeypatch):
    monkeypatch.setattr(seed_training, "_train_in_workers", lambda *_: pytest.fail("started processes"))
    assert len(am.train_seeds("random", lake, 10, 4)) == 4


def test_progress_tells_the_recent_return_of_running_seeds():
    shown = []
    runs = made_up(100, 100)
    finished = FinishedEpisodes((0, 1), 100, shown.append)
    finished.show()
    finished.add(0, runs.episodes[0])
    finished.add(1, runs.episodes[1].first(70))
    finished.show()
    assert (shown[0].done, shown[0].total) == (0, 200)
    assert math.isnan(shown[0].recent_return)
    assert shown[1].done == 170
    assert shown[1].recent_return == pytest.approx(runs.episodes[1].scalarized_return[20:70].mean())


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_keeps_what_is_done(lake, count):
    def press(now):
        if now.done and not pressed:
            pressed.append(now)
            signal.raise_signal(signal.SIGINT)

    pressed = []
    with pytest.warns(RuntimeWarning, match=r"Stopped with Ctrl-C: 0 of 3 seeds are complete; of \d more"):
        runs = am.train_seeds("dyna-atmq", lake, ENDLESS, 3, workers=count, progress=press)
    assert runs.stopped == "interrupted"
    assert all(0 < len(episodes) < ENDLESS for episodes in runs.episodes)
    for seed, episodes in zip(runs.seeds, runs.episodes, strict=True):
        alone = am.train(am.agents.make("dyna-atmq"), lake, min(20, len(episodes)), seed=seed)
        np.testing.assert_array_equal(episodes.first(20).steps, alone.steps)
    assert not multiprocessing.active_children()


def test_ctrl_c_before_the_first_episode_leaves_nothing_to_return(lake, monkeypatch):
    monkeypatch.setattr(Training, "run", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        am.train_seeds("random", lake, 5, 2, workers=1)


@pytest.mark.slow
def test_a_killed_worker_is_said_and_the_rest_kept(lake):
    def kill(now):
        if now.done and not killed:
            killed.append(multiprocessing.active_children()[0])
            os.kill(killed[0].pid, signal.SIGKILL)

    killed = []
    with pytest.warns(RuntimeWarning, match=r"A worker process was killed \(signal 9\), perhaps for lack of memory"):
        runs = am.train_seeds("dyna-atmq", lake, ENDLESS, 2, workers=2, progress=kill)
    assert runs.stopped == "failed"
    assert len(runs) >= 1
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_agents_defined_where_they_are_used_can_be_sent(lake):
    """In a script or a notebook, also without `if __name__ == "__main__":`."""
    here = am.train_seeds(lambda: RandomAgent(0.5), lake, 20, 2, workers=1)
    assert same(am.train_seeds(lambda: RandomAgent(0.5), lake, 20, 2, workers=2), here)


@pytest.mark.slow
def test_a_failing_worker_is_said(lake):
    with pytest.raises(
        am.AgentError,
        match=r"seed [01] failed: ZeroDivisionError: nothing to divide by \(.*, line \d+\); pass workers=1",
    ):
        am.train_seeds(Failing, lake, 5, seeds=[0, 1], workers=2)


def test_own_agents_are_made_anew_for_every_seed(lake):
    settings = {"measure_probability": 0.2}
    own = am.train_seeds(RandomAgent, lake, 20, 2, settings=settings)
    assert same(own, am.train_seeds("random", lake, 20, 2, settings=settings))
    assert own.agent == "RandomAgent"
    unsendable = threading.Lock()

    def make():
        return RandomAgent(0.5 if unsendable else 0.1)

    assert len(am.train_seeds(make, lake, 20, 2)) == 2  # stays in this process
    with pytest.raises(am.AgentError, match="cannot be sent to worker processes"):
        am.train_seeds(make, lake, 20, 2, workers=2)
    trained = RandomAgent()
    am.train(trained, lake, 1)
    with pytest.raises(am.AgentError, match="makes a new agent at every call"):
        am.train_seeds(lambda: trained, lake, 20, 2)


def test_processes_that_may_start_none_do_not(monkeypatch):
    assert pool.available_cores() >= 1
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    assert pool.available_cores() == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": []}, "there are no seeds"),
        ({"seeds": [1, 1]}, "given twice"),
        ({"seeds": [-1]}, "a seed is -1"),
        ({"seeds": 10**30}, "fit into no memory"),
        ({"episodes": 10**30}, "fit into no memory"),
        ({"workers": 0}, "workers is 0"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"planned_episodes": 0}, "planned_episodes is 0"),
        ({"agent": "atm"}, "did you mean 'atmq'"),
        ({"agent": 3}, "the agent is 3"),
        ({"settings": {"larning_rate": 1}}, "did you mean 'learning_rate'"),
        ({"model": "frozen-lake"}, "expected a Model"),
    ],
)
def test_mistakes_are_sentences(lake, changes, sentence):
    arguments = {"agent": "atmq", "model": lake, "episodes": 5, "seeds": 2} | changes
    with pytest.raises(am.ActMeasureError, match=sentence):
        am.train_seeds(**arguments)


def test_one_agent_goes_on_where_it_left_off(lake):
    agent = am.agents.make("atmq")
    first = train_agent(agent, lake, 30, seed=4)
    second = train_agent(agent, lake, 30, seed=4)
    whole = am.train_seeds("atmq", lake, 60, [4])
    assert (first.first_episode, second.first_episode) == (0, 30)
    joined = pd.concat([first.to_pandas(), second.to_pandas()], ignore_index=True)
    pd.testing.assert_frame_equal(joined, whole.to_pandas())


def test_summary_is_students_t_over_the_seeds():
    runs = made_up(80, 60, 30)
    found = runs.summary()["scalarized_return"]
    means = [one.scalarized_return[-50:].mean() for one in runs.episodes]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(means), scale=stats.sem(means))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.mean, found.deviation) == pytest.approx((np.mean(means), np.std(means, ddof=1)))
    assert runs.summary(last=1)["steps"].mean == np.mean([one.steps[-1] for one in runs.episodes])
    single = made_up(10).summary()["reward"]
    assert all(math.isnan(value) for value in (single.deviation, single.low, single.high))


def test_table_shows_seeds_or_the_extremes_of_many():
    few, many = made_up(60, 60, 60).table(), made_up(*[60] * 11).table()
    assert few.startswith("made-up, 3 seeds: means of the last 50 episodes\n")
    assert [line.split()[0] for line in few.splitlines()[4:]] == ["0", "1", "2", "mean", "standard", "95"]
    assert [line.split()[0] for line in many.splitlines()[4:]] == ["lowest", "highest", "mean", "standard", "95"]
    assert "mean " not in made_up(20).table()
    assert "up to 50 last episodes" in made_up(20).table()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_are_read_back_to_the_last_bit(tmp_path, ending):
    runs, path = made_up(7, 5), tmp_path / f"episodes.{ending}"
    runs.save(path)
    read = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(read, runs.to_pandas())
    assert list(read.columns) == [
        "seed", "episode", "scalarized_return", "reward", "measurements", "steps", "terminated",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]


def test_tables_need_a_place_and_pyarrow(tmp_path, monkeypatch):
    runs = made_up(3)
    for name, sentence in (("x.txt", "file ending '.txt'"), ("no/x.csv", "there is no folder"), ("", "file ending")):
        with pytest.raises(am.AgentError, match=sentence):
            runs.save(tmp_path / name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(am.MissingExtraError, match=r"pip install 'actmeasure\[data\]'"):
        runs.save(tmp_path / "x.parquet")
    runs.save(tmp_path / "x.csv")


def test_running_mean_is_the_mean_of_the_last():
    values = np.random.default_rng(0).normal(size=30)
    expected = [values[max(0, end - 7) : end].mean() for end in range(1, 31)]
    np.testing.assert_allclose(running_mean(values, 7), expected)


def test_a_curve_uses_seeds_as_far_as_they_go():
    runs = made_up(20, 20, 12)
    curve = learning_curve(runs, "scalarized_return", 1)
    returns = [one.scalarized_return for one in runs.episodes]
    assert curve.mean[5] == pytest.approx(np.mean([values[5] for values in returns]))
    assert curve.mean[15] == pytest.approx(np.mean([values[15] for values in returns[:2]]))
    pair = [values[15] for values in returns[:2]]
    assert curve.low[15] == pytest.approx(stats.t.interval(0.95, 1, loc=np.mean(pair), scale=stats.sem(pair))[0])
    assert np.isnan(learning_curve(made_up(5), "steps", 1).low).all()


@pytest.mark.parametrize("lengths", [(1,), (120,), (120, 120), (2500, 2000, 1)])
def test_learning_curves_are_drawn(tmp_path, lengths):
    runs = made_up(*lengths)
    for ending in ("png", "svg", "pdf"):
        runs.plot(tmp_path / f"curve.{ending}")
        assert (tmp_path / f"curve.{ending}").stat().st_size > 1000
    above, below = runs.plot(tmp_path / "again.png", window=3)
    assert (above.get_ylabel(), below.get_ylabel(), below.get_xlabel()) == ("return", "measurements", "episode")
    assert ("95 % interval" in above.get_legend_handles_labels()[1]) == (len(lengths) > 1)
    with pytest.raises(am.AgentError, match="two matplotlib axes"):
        runs.plot([above])
    with pytest.raises(am.PlanError, match="no ending that can be drawn"):
        runs.plot(tmp_path / "curve.txt")
    with pytest.raises(am.AgentError, match="window is 0"):
        runs.plot(tmp_path / "curve.png", window=0)
