"""Lists of values where a setting takes one: agents and problems for each, with labels that say which."""

import pytest

import actmeasure as am
from actmeasure.learning.fixed_agents import RandomAgent
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, read_study


class Tuned(RandomAgent):
    def __init__(
        self, rate=0.1, weights=(1.0, 2.0), mode: str | None = None, table: list[float] | float = 0.0, other=None
    ):
        super().__init__()


NAME = f"{__name__}:Tuned"


def labels(settings, name=NAME):
    return [one.label for one in AgentSpec("tuned", name, settings).each()]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["tuned"]),
        ({"rate": 0.5}, ["tuned"]),
        ({"rate": [0.1, 0.3]}, ["tuned rate=0.1", "tuned rate=0.3"]),
        ({"rate": (0.1,)}, ["tuned rate=0.1"]),
        ({"weights": [1.0, 2.0]}, ["tuned"]),  # its default is a tuple
        ({"weights": {"values": [[1.0], [2.0]]}}, ["tuned weights=[1.0]", "tuned weights=[2.0]"]),
        ({"mode": ["a", "b"]}, ["tuned mode=a", "tuned mode=b"]),
        ({"table": [1.0, 2.0]}, ["tuned"]),  # both are possible
        ({"table": {"values": [1.0, 2.0]}}, ["tuned table=1.0", "tuned table=2.0"]),
        ({"other": [1.0, 2.0]}, ["tuned"]),  # it cannot be told
        (
            {"rate": [0.1, 0.3], "mode": ["a", "b"]},
            ["tuned rate=0.1 mode=a", "tuned rate=0.1 mode=b", "tuned rate=0.3 mode=a", "tuned rate=0.3 mode=b"],
        ),
    ],
)
def test_a_list_where_one_value_is_taken_is_a_sweep(settings, expected):
    assert labels(settings) == expected


def test_settings_of_learners_and_problems():
    assert labels({"learning_rate": [0.1, 0.2]}, "atmq") == ["tuned learning_rate=0.1", "tuned learning_rate=0.2"]
    assert labels({"preset": ["paper", "default"]}, "atmq") == ["tuned preset=paper", "tuned preset=default"]
    lake = ProblemSpec("lake", "frozen-lake", {"size": [4, 8], "variant": "slippery"})
    assert [one.label for one in lake.each()] == ["lake size=4", "lake size=8"]
    table = ProblemSpec("value", "measuring-value", {"measuring_cost": [[0.1, 0.2]] * 4})
    assert [one.label for one in table.each()] == ["value"]  # a cost may be a table
    costs = ProblemSpec("value", "measuring-value", {"measuring_cost": {"values": [0.1, 0.2]}}).each()
    assert [one.settings for one in costs] == [{"measuring_cost": 0.1}, {"measuring_cost": 0.2}]
    taxi = ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=[0.1, 0.2], settings={"is_rainy": True}).each()
    assert [one.measuring_cost for one in taxi] == [0.1, 0.2]
    assert taxi[0].settings == {"is_rainy": True}


def test_sweeps_in_a_study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "s"\n[[part]]\nname = "a"\nepisodes = 3\nseeds = 1\n'
        'problems = [{name = "measuring-value", settings = {p = [0.7, 0.9]}}]\n'
        'agents = [{name = "atmq", settings = {learning_rate = [0.1, 0.3], random_measuring = 0.1}}, '
        '{name = "random", label = "r"}]\n'
    )
    study = read_study(file)
    (part,) = study.parts
    assert [one.label for one in part.problems] == ["measuring-value p=0.7", "measuring-value p=0.9"]
    assert [one.label for one in part.agents] == [
        "atmq random_measuring=0.1 learning_rate=0.1",
        "atmq random_measuring=0.1 learning_rate=0.3",
        "r",
    ]
    assert len(study.trials()) == 6
    again = Study.from_json(study.to_json())
    assert again == study
    assert again.parts[0].agents[0].sweep.values == {"learning_rate": 0.1}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": []}, "the sweep of rate has no values"),
        ({"rate": [0.1, 0.1]}, "the sweep of rate has the value 0.1 twice"),
        ({"rate": list(range(2000))}, "gives 2,000 agents, expected 1,000 at most"),
    ],
)
def test_what_cannot_be_swept_is_a_sentence(settings, sentence):
    with pytest.raises(am.StudyError, match=sentence):
        Part("a", "A", ["chain"], [AgentSpec("tuned", NAME, settings)])


def test_settings_and_grids_of_environments():
    """A list is a sweep where the environment's constructor takes one value, and an array where it takes one."""

    def labels(**given):
        part = Part("a", "A", [ProblemSpec("p", **given)], ["random"], 1, 1)
        return [(one.label, {**one.settings, **(one.grid or {})}) for one in part.problems]

    swept = labels(
        gymnasium="CartPole-v1", measuring_cost=0.1, grid={"bins": 2}, settings={"sutton_barto_reward": [True, False]}
    )
    assert swept == [
        ("p sutton_barto_reward=True", {"sutton_barto_reward": True, "bins": 2}),
        ("p sutton_barto_reward=False", {"sutton_barto_reward": False, "bins": 2}),
    ]
    lake = labels(
        gymnasium="FrozenLake-v1", measuring_cost=0.1, settings={"desc": ["SF", "FG"], "max_episode_steps": [10, 20]}
    )
    assert [one["max_episode_steps"] for _, one in lake] == [10, 20]
    assert all(one["desc"] == ["SF", "FG"] for _, one in lake)
    assert len(labels(gymnasium="actmeasure/FrozenLake-v0", settings={"size": [4, 8]})) == 2
    cells = labels(gymnasium="CartPole-v1", measuring_cost=0.1, grid={"bins": {"values": [2, [1, 1, 2, 2]]}})
    assert [one["bins"] for _, one in cells] == [2, [1, 1, 2, 2]]
