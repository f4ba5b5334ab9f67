"""What a rendering shows of an episode."""

import sys

import gymnasium
import numpy as np
import pytest

import actmeasure as am
from actmeasure.envs import FrozenLakeEnv, TabularEnv
from actmeasure.envs import lake as module

LEFT, DOWN, RIGHT, UP = range(4)


def lake(mode="rgb_array", **settings):
    env = FrozenLakeEnv(render_mode=mode, **settings)
    env.reset(seed=0)
    return env


def test_text_has_the_facts():
    env = TabularEnv(am.problems.measuring_value(p=0.75, measuring_cost=0.125), render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines() == [
        "step 0: start shown",
        "state: s0",
        "belief: s0 100 %",
        "last look: at step 0, saw s0",
        "return so far: 0 (0 looks)",
    ]
    env.step([1, 0])
    text = env.render().splitlines()
    assert text[0] == "step 1: a1, blind"
    assert text[2] == "belief: s+ 75 %, s- 25 %"
    assert text[3] == "last look: at step 0, saw s0"
    env.step([0, 1])
    text = env.render().splitlines()
    assert text[0] == "step 2: a0, looked"
    assert text[1:4] == ["state: s0", "belief: s0 100 %", "last look: at step 2, saw s0"]
    assert text[4] == "return so far: -0.125 (1 look)"
    env.step([1, 0])
    env.step([1, 0])
    assert "belief: the episode is over" in env.render()


def test_text_of_a_hidden_start_and_of_a_wide_belief():
    model = am.problems.most_likely_successor()
    env = TabularEnv(
        model.replace(initial=np.full(12, 1 / 12) * (np.arange(12) < 11) * 12 / 11),
        reveal_start=False,
        render_mode="ansi",
    )
    env.reset(seed=0)
    text = env.render()
    assert "step 0: start hidden" in text
    assert "last look: never" in text
    assert "and 5 more" in text


def test_the_belief_is_the_exact_one():
    model = am.problems.frozen_lake(size=8, variant="slippery")
    env = TabularEnv(model, render_mode="ansi")
    env.reset(seed=1)
    belief = am.Belief.at(0)
    for action in (RIGHT, RIGHT, DOWN):
        env.step([action, 0])
        belief = belief.predict(model, action)
    assert env._history.belief.is_close(belief)


def test_nothing_is_tracked_without_a_render_mode():
    env = TabularEnv(am.problems.measuring_value())
    env.reset(seed=0)
    env.step([1, 0])
    assert env._history is None
    with pytest.warns(UserWarning, match="shows nothing without a render mode"):
        assert env.render() is None


def test_lake_as_text():
    env = lake("ansi", map=["SFFF", "FHFH", "FFFG"], variant="deterministic", measuring_cost=0.5)
    env.step([RIGHT, 1])
    env.step([RIGHT, 0])
    assert env.render().splitlines() == [
        "step 2: right, blind",
        "last look: at step 1 in row 0, column 1",
        "return so far: -0.5 (1 look)",
        "",
        " S (.)[.] .       S   . 100   .",
        " .  H  .  H       .   H   .   H",
        " .  .  .  G       .   .   .   G",
        "",
        "[ ] you, ( ) last look; right: belief in %",
    ]
    env.step([DOWN, 0])
    env.step([RIGHT, 0])
    assert "the episode is over" in env.render()
    assert "[H]" in env.render()


def test_lake_as_text_shows_belief_and_hides_what_is_unlikely():
    env = lake("ansi", size=8)
    env.step([RIGHT, 0])
    assert env.render().splitlines()[4].split()[-8:] == ["S", "50", "50", ".", ".", ".", ".", "."]
    env = lake("ansi", size=8, variant="slippery", reveal_start=False)
    assert "last look: never" in env.render()


def test_large_lakes_are_shown_in_part():
    text = lake("ansi", size=100, seed=0).render()
    assert "shown: rows 0-15, columns 0-15" in text
    assert max(map(len, text.splitlines())) <= 120
    map_ = ["F" * 60] * 59 + ["F" * 58 + "SG"]
    assert "shown: rows 44-59, columns 44-59" in lake("ansi", map=map_).render()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"size": 8},
        {"size": 2, "seed": 0},
        {"size": 20, "seed": 1},
        {"size": 300, "seed": 1},
        {"map": ["S" + "F" * 70 + "G"]},
    ],
)
def test_pictures_are_of_a_bounded_size(settings):
    picture = lake(**settings).render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert max(picture.shape) <= 800
    assert picture.std() > 5


def cell(picture, row, column, size=96, top=76, left=12):
    """One cell of a 4x4 lake."""
    return picture[top + row * size : top + (row + 1) * size, left + column * size : left + (column + 1) * size]


def has(part, colour):
    return bool((part == colour).all(axis=2).any())


def test_the_picture_shows_belief_state_and_look():
    blind, looking = lake(variant="slippery"), lake(variant="slippery")
    for env in (blind, looking):
        assert has(cell(env.render(), 0, 0), module.YOU)
        assert has(cell(env.render(), 3, 3), module.FLAG)
        assert has(cell(env.render(), 1, 1), module.HOLE)
        assert not has(cell(env.render(), 0, 0), module.ICE)  # darkened by the belief
    blind.step([DOWN, 0])
    looking.step([DOWN, 1])
    assert blind._history.state == looking._history.state
    row, column = divmod(blind._history.state, 4)
    for env in (blind, looking):
        assert has(cell(env.render(), row, column), module.YOU)
    assert not np.array_equal(cell(blind.render(), row, column), cell(looking.render(), row, column))
    assert has(cell(looking.render(), 0, 1), module.ICE) == (looking._history.state != 1)


def test_belief_darkens_a_cell_also_without_colour():
    env = lake(variant="slippery")
    env.step([DOWN, 0])
    grey = env.render().mean(axis=2, keepdims=True)
    corners = [cell(grey, row, column)[60, 10, 0] for row, column in ((1, 0), (0, 1), (3, 2))]
    assert corners[0] == corners[1]  # each 1/3
    assert corners[0] < corners[2] - 40  # not believed in


def test_a_picture_needs_pillow(monkeypatch):
    env = lake()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(am.MissingExtraError, match="a picture of the lake needs the optional extra 'plots'"):
        env.render()
    assert lake("ansi").render()


def test_two_renderings_share_nothing():
    env = lake()
    first = env.render()
    first[:] = 0
    assert env.render().any()


def test_lists_of_frames_through_gymnasium():
    for mode, kind in (("rgb_array_list", np.ndarray), ("ansi_list", str)):
        env = gymnasium.make("actmeasure/FrozenLake-v0", render_mode=mode)
        env.reset(seed=0)
        env.step([DOWN, 0])
        frames = env.render()
        assert len(frames) == 2
        assert all(isinstance(frame, kind) for frame in frames)
